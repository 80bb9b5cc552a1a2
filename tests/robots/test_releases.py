"""Releases older than declared: one line with the remedy and exit status 2, before anything else is imported."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import loopcheck
from loopcheck import engines
from loopcheck.robots import releases
from loopcheck.robots.errors import EngineError
from loopcheck.robots.releases import extras, too_old
from loopcheck.validation import cli


def fake(folder: Path, name: str, version: str) -> None:
    """Metadata of a package of some release, which stand before those of the installed one."""
    place = folder / f"{name}-{version}.dist-info"
    place.mkdir()
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", encoding="utf-8")


def lowest() -> dict[str, str]:
    """Lowest release of each package that every installation has, by the parser of `packaging`."""
    found = map(Requirement, importlib.metadata.requires("loopcheck") or [])
    return {
        requirement.name: next(part.version for part in requirement.specifier if part.operator == ">=")
        for requirement in found
        if "extra" not in str(requirement.marker)
    }


def test_requirements_are_those_of_the_standard_parser() -> None:
    assert dict(releases._required(())) == lowest()
    assert dict(releases._required(("pinocchio", "dask"))).keys() == {"pin", "dask", "distributed"}
    assert {"pinocchio", "usd", "dask"} < {*extras()}
    assert not too_old()
    assert not too_old("no such extra")


@pytest.mark.parametrize(
    ("installed", "needed", "is_old"),
    [
        ("8.1.0", "8.1", False),
        ("8.0.9", "8.1", True),
        ("4.0.0", "4", False),
        ("3.10.0", "3.8", False),
        ("3.8.0rc1", "3.8", False),
        ("3.7.1.post2", "3.8", True),
        ("10", "9.9.9", False),
    ],
)
def test_releases_are_ordered_by_their_numbers(
    installed: str, needed: str, is_old: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: [f"click[x]<99,>={needed} ; python_version > '3'"])
    monkeypatch.setattr(releases, "_installed", lambda name: installed)
    assert bool(too_old()) == is_old


def test_every_package_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name in lowest():
        fake(tmp_path, name.replace("-", "_"), "0.0.1")
    message = too_old()
    for name, release in lowest().items():
        assert f"{name} must be of release {release} or later, got 0.0.1" in message
        assert f"'{name}>={release}'" in message.split(". Run: pip install ")[1]


@pytest.mark.parametrize("name", ["click", "mujoco", "numpy"])
@pytest.mark.parametrize("arguments", [("--help",), ("gate", "nowhere.xml"), ("study", "sweep", "3prr")])
def test_a_command_ends_with_one_line(name: str, arguments: tuple[str, ...], tmp_path: Path) -> None:
    """Without an import of the package, which may fail."""
    fake(tmp_path, name, "0.9.1")
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("raise TypeError('old')", encoding="utf-8")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from loopcheck.__main__ import main; main()"
    ended = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)
    release = lowest()[name]
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr == (
        f"loopcheck: {name} must be of release {release} or later, got 0.9.1. Run: pip install '{name}>={release}'\n"
    )


def test_the_library_names_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(vars(loopcheck), "judge", raising=False)
    fake(tmp_path, "mujoco", "3.5.0")
    with pytest.raises(ImportError, match=r"^mujoco must be of release 3\.10 or later, got 3\.5\.0\. Run: pip"):
        _ = loopcheck.judge


def test_a_package_without_metadata_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a folder of our files without an installation, or of a package that conda installs otherwise."""
    monkeypatch.setattr(releases, "_installed", lambda name: "")
    assert not too_old()

    def absent(name: str) -> list[str]:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "requires", absent)
    assert not too_old()


def test_an_older_engine_is_named_before_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(engines, "installed", lambda name: True)
    fake(tmp_path, "pin", "3.9.0")
    with pytest.raises(EngineError, match=r"^pinocchio: pin must be of release 4\.0 or later, got 3\.9\.0\. Run: pip "):
        engines.load("pinocchio/kkt")
    assert not too_old()  # nobody asked for it


def test_an_error_by_an_older_optional_package_is_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(**_: object) -> int:
        raise ImportError("cannot import name 'x' from 'pyarrow'")

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(cli, "cli", fails)
    fake(tmp_path, "pyarrow", "9.0.0")
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("loopcheck: pyarrow must be of release 17 or later, got 9.0.0. Run: pip")
