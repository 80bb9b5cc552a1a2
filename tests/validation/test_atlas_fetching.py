"""Models are fetched as in the manifest or not at all, and no code of a repository runs."""

import shutil
import subprocess
import tomllib
from pathlib import Path

import pandas as pd
import pytest

from loopcheck.robots.errors import HarnessError, MechanismError, NotFoundError
from loopcheck.validation.public_models import fetching
from loopcheck.validation.public_models.fetching import FetchError, fetched
from loopcheck.validation.public_models.manifest import MANIFEST, Entry, entries, is_inside
from tests.validation.atlas_repository import NAME, SHELL, TEXTS, make_repository, write_manifest
from tests.validation.conftest import Command


@pytest.fixture(scope="module")
def remotes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A folder of bare repositories on a server without filters, and the commit."""
    folder = tmp_path_factory.mktemp("remotes")
    return folder, make_repository(folder)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's cache, empty; and the working folder of the process, to detect new files."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path / "cache"


def test_files_lie_as_in_the_repository_and_are_fetched_once(remotes: tuple[Path, str], tmp_path: Path) -> None:
    folder, commit = remotes
    shutil.copytree(folder, tmp_path / "mirror")
    entry = _entry(tmp_path, commit, "with part/model.xml", "parts/part.xml")
    path = fetched(entry, f"file://{tmp_path}/mirror/")
    assert path.read_text() == TEXTS["with part/model.xml"]
    assert (path.parent.parent / "parts/part.xml").read_text() == TEXTS["parts/part.xml"]
    shutil.rmtree(tmp_path / "mirror")
    assert fetched(entry, f"file://{tmp_path}/mirror") == path
    (path.parent.parent / "parts/part.xml").write_text("spoilt")
    assert fetched(entry, f"file://{tmp_path}/mirror") == path  # from the objects that are here already
    assert (path.parent.parent / "parts/part.xml").read_text() == TEXTS["parts/part.xml"]


@pytest.mark.extended("test_a_model_of_menagerie_is_a_target_and_fetched_once")
@pytest.mark.usefixtures("tables_only")
def test_a_public_model_is_a_target(
    remotes: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loopcheck: Command
) -> None:
    folder, commit = remotes
    entry = _entry(tmp_path, commit, "four bar/four_bar.xml")
    monkeypatch.setattr(fetching, "PUBLIC", f"file://{folder}")
    monkeypatch.setattr(fetching, "entries", lambda: [entry])
    target = f"atlas:{entry.model.id}"
    assert loopcheck("check", target, "--source", "analytic/lagrange", "--jobs", "1", "--out", tmp_path / "out")[0] == 0
    summary = pd.read_csv(tmp_path / "out/summary.csv")
    assert set(summary["robot"]) == {entry.model.id}
    assert "agree" in set(summary["verdict"])
    status, _, err = loopcheck("check", "atlas:no-such")
    assert (status, len(err.splitlines())) == (2, 1)
    assert entry.model.id in err


def _pin(folder: Path, commit: str, name: str, tree: str = "") -> Path:
    """A table of Menagerie with a folder of the repository of the tests."""
    tree = (
        tree
        or subprocess.run(
            ["git", f"--git-dir={folder / NAME}", "rev-parse", f"{commit}:{name}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    )
    path = folder.parent / f"{tree}.toml"
    lines = [f'repository = "{NAME}"', f'commit = "{commit}"', "[models]"]
    path.write_text("\n".join([*lines, f'"{name}" = {{ file = "four_bar.xml", tree = "{tree}" }}']), encoding="utf-8")
    return path


@pytest.fixture
def menagerie(remotes: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local Menagerie with the folder 'four bar'."""
    shutil.copytree(remotes[0], tmp_path / "mirror")
    monkeypatch.setattr(fetching, "PUBLIC", f"file://{tmp_path}/mirror")
    monkeypatch.setattr(fetching, "MENAGERIE", _pin(tmp_path / "mirror", remotes[1], "four bar"))
    return tmp_path / "mirror"


def test_a_model_of_menagerie_is_a_target_and_fetched_once(
    menagerie: Path, tmp_path: Path, cache: Path, loopcheck: Command
) -> None:
    assert loopcheck("gate", "menagerie:four bar")[0] == 0
    shutil.rmtree(menagerie)
    assert loopcheck("gate", "menagerie:four bar/heavier")[0] == 0
    loopcheck("convert", "menagerie:four bar", tmp_path / "leg.urdf")
    assert (tmp_path / "leg.urdf").exists()
    paths = {path.name: path for path in (cache / "loopcheck/atlas").rglob("*.xml")}
    assert {name: path.read_text() for name, path in paths.items()} == {
        name.removeprefix("four bar/"): text for name, text in TEXTS.items() if name.startswith("four bar/")
    }
    paths["four_bar.xml"].write_text("spoilt")
    assert loopcheck("gate", "menagerie:four bar")[0] == 0
    assert paths["four_bar.xml"].read_text() == TEXTS["four bar/four_bar.xml"]
    for target in ("menagerie:five bar", "menagerie:four bar/none"):
        status, _, err = loopcheck("gate", target)
        assert (status, len(err.splitlines())) == (2, 1)
    assert "renamed" in err


def test_another_folder_than_the_pinned_one_is_refused(
    menagerie: Path, remotes: tuple[Path, str], monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.setattr(fetching, "MENAGERIE", _pin(menagerie, remotes[1], "four bar", "0" * 40))
    with pytest.raises(FetchError, match=r"must be the object 0{40}, got [0-9a-f]{40}"):
        fetching.fetched_menagerie_robot("four bar")
    assert not list(cache.rglob("*.xml"))


def test_menagerie_is_pinned_by_folder() -> None:
    table = tomllib.loads(fetching.MENAGERIE.read_text(encoding="utf-8"))
    assert table["models"]["agility_cassie"]["file"] == "cassie.xml"
    assert all(is_inside(f"{name}/{model['file']}") for name, model in table["models"].items())
    assert {len(text) for text in (table["commit"], *(model["tree"] for model in table["models"].values()))} == {40}


def test_a_server_that_knows_filters_gives_what_is_needed_alone(tmp_path: Path, cache: Path) -> None:
    commit = make_repository(tmp_path / "filtering", has_filters=True)
    path = fetched(_entry(tmp_path, commit, "four bar/four_bar.xml"), f"file://{tmp_path}/filtering")
    assert path.read_text() == TEXTS["four bar/four_bar.xml"]
    listing = ["git", "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)"]
    kinds = subprocess.run(
        listing, cwd=cache / "loopcheck/atlas" / NAME / "objects.git", capture_output=True, text=True, check=True
    ).stdout.split()
    assert kinds.count("blob") == 1


def test_a_name_with_shell_syntax_meets_no_shell(remotes: tuple[Path, str], tmp_path: Path) -> None:
    folder, commit = remotes
    assert fetched(_entry(tmp_path, commit, SHELL), f"file://{folder}").read_text() == TEXTS[SHELL]
    assert not list(Path.cwd().iterdir())


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("link.xml", "'link.xml' is a link"),
        ("linked/part.xml", "'linked' is a link"),
        ("module", "'module' is a submodule"),
        ("large.stl", "got a Git LFS pointer"),
        ("absent.xml", "the commit has no such file"),
        ("parts", "the commit has no such file"),
    ],
)
def test_what_is_no_plain_file_is_refused_by_name(
    remotes: tuple[Path, str], tmp_path: Path, cache: Path, path: str, reason: str
) -> None:
    folder, commit = remotes
    with pytest.raises(FetchError, match=f"^{NAME}@{commit[:12]}:{path}: .*{reason}"):
        fetched(_entry(tmp_path, commit, path), f"file://{folder}")
    assert not list((cache / "loopcheck/atlas" / NAME).glob(f"{commit}/**/*"))


def test_another_hash_is_refused_and_leaves_nothing(remotes: tuple[Path, str], tmp_path: Path, cache: Path) -> None:
    folder, commit = remotes
    manifest = write_manifest(tmp_path / "m", commit, {"x": ["parts/part.xml"]}, **{"parts/part.xml": "0" * 64})
    with pytest.raises(FetchError, match=r"parts/part.xml: must have the SHA-256 0{64}, got [0-9a-f]{64}"):
        fetched(entries((), manifest)[0], f"file://{folder}")
    assert not list((cache / "loopcheck/atlas" / NAME).glob(f"{commit}/**/*.xml"))


@pytest.mark.parametrize(
    "remote", ["ext::sh -c touch% owned", "--upload-pack=touch owned", "robots", "fd::3", "file://-x"]
)
def test_a_remote_that_could_start_a_program_is_refused(remotes: tuple[Path, str], tmp_path: Path, remote: str) -> None:
    with pytest.raises(FetchError, match="--remote must begin with"):
        fetched(_entry(tmp_path, remotes[1], "parts/part.xml"), remote)


def test_what_git_says_is_one_line(remotes: tuple[Path, str], tmp_path: Path) -> None:
    for remote, commit in ((f"file://{tmp_path}/nowhere", remotes[1]), (f"file://{remotes[0]}", "1" * 40)):
        with pytest.raises(HarnessError) as failure:
            fetched(_entry(tmp_path, commit, "parts/part.xml"), remote)
        assert str(failure.value).strip()
        assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    "path", ["../x.xml", "a/../../x", "/etc/passwd", ".git/hooks/post-checkout", "a/.GIT/config", "a\\b", "a\nb", ""]
)
def test_a_manifest_whose_path_leaves_its_repository_is_refused(tmp_path: Path, path: str) -> None:
    assert not is_inside(path)
    manifest = write_manifest(tmp_path / "m", "1" * 40, {"x": [path]})
    with pytest.raises(MechanismError, match=r"robots\.toml: files: .*paths must stay in the repository"):
        entries((), manifest)


def test_a_bad_manifest_is_refused_in_a_line(tmp_path: Path) -> None:
    manifest = write_manifest(tmp_path / "m", "1" * 40, {"x": ["a.xml"], "y": ["b.xml"]})
    with pytest.raises(NotFoundError, match=r"unknown model of the atlas: 'z\*'. Known: x, y"):
        entries(("z*",), manifest)
    assert [entry.model.id for entry in entries(("y", "owner/none-but-y", "y*")[:1], manifest)] == ["y"]
    shutil.copy(manifest / "robots.toml", manifest / "twin.toml")
    with pytest.raises(MechanismError, match="got twice: x, y"):
        entries((), manifest)
    text = (manifest / "twin.toml").read_text()
    for spoilt in (text.replace("1" * 40, "main"), text.replace("[files]", "[others]"), "models = ["):
        (manifest / "robots.toml").write_text(spoilt)
        with pytest.raises(MechanismError, match=r"robots\.toml: ") as failure:
            entries((), manifest)
        assert "\n" not in str(failure.value)
    with pytest.raises(MechanismError, match=r"must contain a file NAME\.toml"):
        entries((), tmp_path)


def test_the_manifest_holds_what_the_issue_asks_for() -> None:
    every = entries()
    assert len(every) >= 100
    assert len({entry.repository.repository for entry in every}) >= 40
    assert {path.suffix for path in MANIFEST.iterdir()} == {".toml"}  # pointers and hashes, and nothing of a model


def _entry(tmp_path: Path, commit: str, *paths: str) -> Entry:
    return entries((), write_manifest(tmp_path / "manifest", commit, {"model": paths}))[0]
