"""`loopcheck engines`: environments made, listed, renewed and removed; a failure names the command that repairs it.

A substitute for uv makes an environment of this interpreter and its packages, and records its requests.
"""

import importlib.metadata
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import Mock

import pytest
from packaging.requirements import Requirement

from loopcheck import engines
from loopcheck.robots.errors import HarnessError
from loopcheck.validation.execution import environment_making as making
from loopcheck.validation.execution import uv
from loopcheck.validation.execution.environments import PLACE, broken_environments, environments
from loopcheck.validation.execution.folders import IMPORT_FOLDER
from tests.validation.conftest import Command
from tests.validation.other_python import make_environment, share_packages

HERE = importlib.metadata.version("mujoco")
SAID = "error: No solution found: because {} has no usable wheels, your requirements are unsatisfiable"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(PLACE, str(tmp_path / "engines"))
    return tmp_path / "engines"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Requests to uv; it makes environments that share the packages of this environment."""
    commands: list[list[str]] = []

    def uv_stand_in(arguments: Sequence[str], folder: Path, standard_input: str = "") -> str:
        commands.append([*arguments, *standard_input.split()])
        if arguments[0] == "venv":
            share_packages(Path(arguments[-1]))
        return ""

    monkeypatch.setattr(uv, "uv", uv_stand_in)
    monkeypatch.setattr(uv, "program", lambda: "uv")
    return commands


def test_an_environment_is_added_renewed_and_removed(
    place: Path, asked: list[list[str]], loopcheck: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The version in its name is the imported version, not the requested version."""
    monkeypatch.setattr(making, "_imported_in", lambda _, engine: making.imported(engine))  # without another process
    status, out, err = loopcheck("engines", "add", "mujoco")
    name = f"mujoco-{HERE}-py{sys.version_info.major}{sys.version_info.minor}"
    assert (status, err, out.startswith(f"{name}: added; Python ")) == (0, "", True)
    (environment,) = environments()
    assert (environment.name, environment.version, environment.request["version"]) == (name, HERE, "")
    out = loopcheck("engines")[1]
    assert f"environment {name}, for versions" in out
    environment.folder.rename(environment.folder.with_name("mujoco-1.0-py311"))
    assert loopcheck("engines", "update")[1] == f"mujoco-1.0-py311: updated, now {name}\n"
    assert [one.name for one in environments()] == [name]
    assert loopcheck("engines", "remove", "mujoco")[1] == f"{name}: removed\n"
    assert environments() == ()


def test_to_look_for_environments_makes_no_folder(place: Path, loopcheck: Command) -> None:
    assert loopcheck("engines")[0] == 0
    assert not place.exists()


def test_it_gets_what_our_workers_need_and_no_other_engine() -> None:
    first, *rest = making.packages_with("drake", "", making._needs())
    assert first.startswith("drake>=1.51")
    names = {Requirement(text).name for text in rest}
    assert not names & (making.UNNEEDED | {engines.distribution(name) for name in engines.engine_names()} - {"mujoco"})
    assert {"numpy", "scipy", "mujoco", "pydantic"} <= names


def test_it_gets_what_its_engine_needs_and_does_not_ask_for() -> None:
    assert "torch>=2.6" in making.packages_with("genesis", "", making._needs())
    assert not [text for text in making.packages_with("drake", "", making._needs()) if "torch" in text]


@pytest.mark.parametrize(("engine", "built"), [("genesis", ["pygltflib"]), ("drake", [])])
def test_only_what_comes_as_source_alone_is_built(
    engine: str, built: list[str], place: Path, asked: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Genesis needs such a package: without it none of its environments can be made."""
    monkeypatch.setattr(making, "_imported_in", lambda *_: ("1.0", "3.11.0", "2.4.0"))
    making.add(engine, python=sys.executable)
    (install,) = (command for command in asked if command[:2] == ["pip", "install"])
    assert install[install.index("--only-binary") + 1] == ":all:"
    assert [install[k + 1] for k, word in enumerate(install) if word == "--no-binary"] == built


@pytest.mark.extended("test_it_gets_what_our_workers_need_and_no_other_engine")
def test_workers_need_no_package_that_is_left_out() -> None:
    modules = [
        "loopcheck.validation.execution.remote_calls",
        "loopcheck.validation.check.efforts.evaluate",
        "loopcheck.validation.check.audit.audit",
        "loopcheck.validation.check.efforts.resolution",
        "loopcheck.validation.tune.budget",
        "loopcheck.validation.studies.control.runs",
        "loopcheck.validation.studies.free_motion.measure",
    ]
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({sorted(making.UNNEEDED)!r}))\n"
        f"from importlib import import_module; [import_module(name) for name in {modules!r}]"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=IMPORT_FOLDER, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("engine", "version", "exact"),
    [("pybullet", "3.2.6", ["numpy<2", "pyarrow<20"]), ("pybullet", "3.2.7", []), ("drake", "1.51.1", [])],
)
def test_a_release_gets_what_it_does_not_say_it_needs(engine: str, version: str, exact: list[str]) -> None:
    needs = making.packages_with(
        engine, version, ["numpy>=2.0", "pyarrow>=17", "scipy>=1", engines.distribution(engine)]
    )
    rest = exact or ["numpy>=2.0", "pyarrow>=17"]
    assert needs == [f"{engines.distribution(engine)}=={version}", *rest, "scipy>=1"]


def test_an_engine_is_asked_for_by_its_name_or_its_package() -> None:
    names = ("physx", "sapien==3.0.3", "simbody", "opensim", "pin", "mujoco-mjx", "mujoco")
    asked = [making.parsed(name) for name in names]
    engine_names = ["physx", "physx", "simbody", "simbody", "pinocchio", "mjx", "mujoco"]
    assert asked == [(name, "3.0.3" if k == 1 else "") for k, name in enumerate(engine_names)]


def test_what_is_cut_short_is_made_anew(
    place: Path, asked: list[list[str]], loopcheck: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = place / "making-mujoco-1"
    make_environment(place, "mujoco", whole=False).folder.rename(draft)
    assert "unfinished making-mujoco-1: loopcheck engines add mujoco" in " ".join(loopcheck("engines")[1].split())
    monkeypatch.setattr(making, "_imported_in", lambda _, engine: making.imported(engine))
    environment = making.add("mujoco", python=sys.executable)
    assert (environments(), broken_environments()) == ((environment,), ())
    assert making.add("mujoco", python=sys.executable).name == environment.name  # instead of the first
    assert making.remove("mujoco") == [environment.name]
    make_environment(place, "mujoco", whole=False)
    assert making.remove("mujoco") == ["mujoco-1.0-py311"]


@pytest.mark.parametrize(
    ("step", "reason", "mend"),
    [
        ("compile", "error sending request", "loopcheck engines add drake --find-links FOLDER"),
        ("venv", "No interpreter found for Python 3.11", "loopcheck engines add drake --python PATH"),
        ("install", "error sending request", "loopcheck engines add drake --find-links FOLDER"),
        ("install", "has no usable wheels", "loopcheck engines add drake --python PATH"),
    ],
)
def test_what_fails_says_what_mends_it(
    step: str, reason: str, mend: str, place: Path, loopcheck: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def uv_stand_in(arguments: Sequence[str], folder: Path, standard_input: str = "") -> str:
        if step in arguments:
            raise uv.UvError(reason)
        return ""

    monkeypatch.setattr(uv, "uv", uv_stand_in)
    monkeypatch.setattr(uv, "program", lambda: "uv")
    status, _, err = loopcheck("engines", "add", "drake")
    assert (status, err.count("\n")) == (2, 1)
    assert reason in err
    assert err.endswith(f". Run: {mend}\n")
    assert (environments(), broken_environments()) == ((), ())


def test_without_uv_the_reason_is_that(place: Path, loopcheck: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setenv("PATH", str(place))
    monkeypatch.setattr(sys, "executable", str(place / "python"))
    assert loopcheck("engines", "add", "drake")[2] == "loopcheck: uv is not installed: pip install uv\n"


def test_a_python_is_chosen_that_the_engine_has_wheels_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """This interpreter if possible; then one of this machine; then one from uv; none without any."""
    wheels, machine = {"3.12", "3.13"}, {"3.13": "/usr/bin/python3.13"}
    monkeypatch.setattr(uv, "THIS", "3.11")
    monkeypatch.setattr(uv, "PYTHONS", ("3.11", "3.12", "3.13"))

    def uv_stand_in(arguments: Sequence[str], folder: Path, standard_input: str = "") -> str:
        version = arguments[arguments.index("--python-version") + 1] if "compile" in arguments else ""
        if arguments[1] == "find" and arguments[-1] in machine:
            return f"{machine[arguments[-1]]}\n"
        if arguments[1] == "find" or version not in wheels:
            raise uv.UvError(SAID.format(standard_input))
        return ""

    def chosen() -> str:
        return making.chosen_python("drake", "1.58.0", (), tmp_path)

    monkeypatch.setattr(uv, "uv", uv_stand_in)
    assert chosen() == "/usr/bin/python3.13"
    machine.clear()
    assert chosen() == "3.12"
    wheels.add("3.11")
    assert chosen() == sys.executable
    wheels.clear()
    answer = uv.UvError("Because there is no version of drake==9.9 and you require drake==9.9, ...")
    with pytest.raises(HarnessError, match=r"drake==1\.58\.0: no wheels for Python 3\.11, 3\.12, 3\.13"):
        chosen()
    monkeypatch.setattr(uv, "has_wheels", Mock(side_effect=answer))
    with pytest.raises(HarnessError, match=r"drake==1\.58\.0: the package index has no such version$"):
        chosen()


@pytest.mark.extended("test_what_is_cut_short_is_made_anew")
def test_an_engine_that_cannot_be_imported_there_is_no_environment(
    place: Path, asked: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(making, "imported", int)  # what stands for an import that fails there
    with pytest.raises(HarnessError, match="mujoco: cannot be imported in its environment"):
        making.add("mujoco", python=sys.executable)
    assert (environments(), broken_environments()) == ((), ())
