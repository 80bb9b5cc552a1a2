"""Environments with different versions of an engine, by uv or by the user, and the command line of loopcheck in them.

The packages of the running loopcheck are copied into a separate folder with its metadata, and run from there: beside
an installed loopcheck are the engines of its own environment, which must not be imported.
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.requirements import Requirement

import loopcheck
from loopcheck import engines
from loopcheck.robots.errors import HarnessError
from loopcheck.validation.execution import uv
from loopcheck.validation.execution.environment_making import chosen_python, packages_with, unstated_needs
from loopcheck.validation.execution.folders import COMPUTING, ROOT

PLACE = ".loopcheck"
FOLLOWER = """
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
from loopcheck.robots.processes import end_with_parent
end_with_parent(sys.stdin.read)
from loopcheck.robots import releases
releases.too_old = lambda *extras: ""  # the old release is what is compared
runpy.run_module("loopcheck", run_name="__main__", alter_sys=True)
"""
"""Runs a program that ends with its parent process, when its end of the pipe is closed."""
BAD_INPUT = 2
"""Exit status of a command without results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineVersion:
    """An interpreter with a version of an engine, or the reason for its absence."""

    engine: str
    """Name of the engine."""
    version: str
    """Version of its package."""
    made: str
    """Origin of the environment."""
    interpreter: tuple[str, ...] = ()
    """Command that starts Python in it."""
    lacks: str = ""
    """Reason for a missing environment; empty if it exists."""


def this_one(engine: str) -> EngineVersion:
    """The installed version, in this process.

    Args:
        engine: Name of an engine that is installed.
    """
    version = importlib.metadata.version(engines.distribution(engine))
    return EngineVersion(engine=engine, version=version, made="installed here", interpreter=(sys.executable,))


def made_by_uv(engine: str, version: str) -> EngineVersion:
    """An environment with a version of an engine and all requirements, in a Python with wheels of the engine.

    In the running Python, the requirements have the versions installed here.
    """
    interpreter: tuple[str, ...] = ()
    try:
        interpreter, lacks = _uv_run(engine, version), ""
    except uv.UvError as error:
        lacks = f"{error}. Or name an interpreter that has it with --python"
    except HarnessError as error:
        lacks = str(error)
    return EngineVersion(engine=engine, version=version, made="made by uv", interpreter=interpreter, lacks=lacks)


def _uv_run(engine: str, version: str) -> tuple[str, ...]:
    """Command that starts Python in an environment of uv.

    Raises:
        HarnessError: If the environment cannot be made.
    """
    program = uv.program()
    python = sys.executable
    if engine != "mujoco":
        with TemporaryDirectory() as folder:  # away from projects, whose settings uv would take
            python = chosen_python(engine, version, (), Path(folder))
    is_here = python == sys.executable
    needs = _needs(exact=is_here and not unstated_needs(engine, version))
    packages = (f"--with={package}" for package in packages_with(engine, version, needs))
    command = (program, "run", "--quiet", "--isolated", "--no-project", "--python", python, *packages, "python")
    _, reason = _version_in(engine, command)
    if reason:
        place = "" if is_here else f" with Python {python}, for which it has wheels"
        raise HarnessError(f"the environment could not be made{place}: {reason.split(' cause: ')[0]}")
    return command


def of_interpreter(engine: str, path: Path) -> EngineVersion:
    """The environment of an interpreter that the user has.

    Args:
        path: The interpreter.

    Raises:
        HarnessError: If it cannot be started, or has no such engine.
    """
    version, reason = _version_in(engine, (str(path),))
    if reason:
        name = engines.lineage(engine)
        raise HarnessError(
            f"{path}: --python must be an interpreter with {name} and the packages of loopcheck: {reason}"
        )
    return EngineVersion(engine=engine, version=version, made=str(path), interpreter=(str(path),))


@contextmanager
def rooms(folder: Path) -> Iterator[Path]:
    """A folder with the packages and metadata of the running loopcheck only.

    Args:
        folder: Parent folder, the same after a kill, as stored results depend on it.
    """
    place = folder / PLACE
    shutil.rmtree(place, ignore_errors=True)
    try:
        for package in (*COMPUTING, "validation"):
            shutil.copytree(ROOT / package, place / "loopcheck" / package)  # compiled files too, which saves a second
        for module in ("__init__.py", "__main__.py"):
            shutil.copy(Path(loopcheck.__file__).with_name(module), place / "loopcheck")
        about = importlib.metadata.distribution("loopcheck")
        metadata = place / f"loopcheck-{about.version}.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(about.read_text("METADATA") or about.read_text("PKG-INFO") or "", encoding="utf-8")
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def run_in(environment: EngineVersion, place: Path, arguments: Sequence[str]) -> str:
    """Run loopcheck in an environment.

    Args:
        place: Result of `rooms`.
        arguments: Arguments of the command line.

    Returns:
        Reason for missing results; empty if they are written.
    """
    if environment.lacks:
        return environment.lacks
    status, _, errors = _call((*environment.interpreter, "-c", FOLLOWER, str(place), *arguments))
    lines = errors.splitlines() or [f"exit status {status}"]
    has_ended = status in (0, 1, 3) and "Traceback (most recent call last)" not in errors
    return "" if has_ended else lines[-1].removeprefix("loopcheck: ")


def _version_in(engine: str, interpreter: Sequence[str]) -> tuple[str, str]:
    """Version of an engine in an interpreter, or the reason for its absence."""
    program = (
        "import importlib, importlib.metadata; "
        f"importlib.import_module({engines.engine(engine).requires!r}); "
        f"print(importlib.metadata.version({engines.distribution(engine)!r}))"
    )
    status, text, errors = _call((*interpreter, "-c", program))
    version = text.split()[-1] if text.split() else ""  # some engines print when they are imported
    return version, " ".join(errors.split()) or "no error message" if status else ""


def _call(command: Sequence[str]) -> tuple[int, str, str]:
    """Exit status, stdout and stderr of a command; without this process's search path if it starts another Python."""
    own = command[0] == sys.executable
    surroundings = {name: text for name, text in os.environ.items() if own or name not in ("PYTHONPATH", "PYTHONHOME")}
    theirs, ours = os.pipe()  # ours is closed when this process ends, however it does
    try:
        done = subprocess.run(command, env=surroundings, stdin=theirs, capture_output=True, text=True, check=False)
    except OSError as error:
        return BAD_INPUT, "", str(error.strerror)
    finally:
        os.close(theirs)
        os.close(ours)
    return done.returncode, done.stdout, done.stderr.strip()


def _needs(*, exact: bool) -> Iterator[str]:
    """Requirements of loopcheck, in exactly the versions installed here or in the supported ranges."""
    for text in importlib.metadata.requires("loopcheck") or ():
        need = Requirement(text)
        if need.marker is not None and not need.marker.evaluate({"extra": ""}):
            continue
        extras = f"[{','.join(sorted(need.extras))}]" if need.extras else ""
        yield f"{need.name}{extras}=={importlib.metadata.version(need.name)}" if exact else text
