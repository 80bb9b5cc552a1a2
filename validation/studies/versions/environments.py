"""Environments that differ in their MuJoCo: made by uv, or interpreters that the user has; and how to run in them.

The rooms of the loopcheck that runs now are copied into a folder of their own, with its metadata, and run from there:
an installed loopcheck lies beside the MuJoCo it was installed with, which must not come along.
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

from packaging.requirements import Requirement

from robots.errors import HarnessError

ROOMS = ("robots", "analytic", "engines", "validation")
HOUSE = Path(__file__).parents[3]
PLACE = ".loopcheck"
FOLLOWER = """
import os, runpy, sys, threading
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(1)), daemon=True).start()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a program that ends when the process which has started it does, and its end of the pipe is closed."""
BAD_INPUT = 2
"""Exit status of a command that has written nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """An interpreter with a version of MuJoCo, or the reason why there is none."""

    mujoco: str
    """Version of MuJoCo."""
    made: str
    """Where the environment comes from."""
    interpreter: tuple[str, ...] = ()
    """Command that starts Python in it."""
    lacks: str = ""
    """Why there is none; empty if there is."""


def this_one() -> Environment:
    """The environment of this process."""
    version = importlib.metadata.version("mujoco")
    return Environment(mujoco=version, made="installed here", interpreter=(sys.executable,))


def made_by_uv(version: str) -> Environment:
    """An environment with a version of MuJoCo, and all else that loopcheck needs in the versions installed here."""
    made = "made by uv"
    uv = shutil.which("uv", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", ""))))
    if uv is None:
        lacks = "uv is not installed: pip install uv, or name an interpreter that has it with --python"
        return Environment(mujoco=version, made=made, lacks=lacks)
    options = ("run", "--quiet", "--isolated", "--no-project", "--python", sys.executable)
    packages = (f"--with={package}" for package in (*_needs(), f"mujoco=={version}"))
    interpreter = (uv, *options, *packages, "python")
    _, reason = _version_in(interpreter)
    if reason:
        return Environment(mujoco=version, made=made, lacks=f"the environment could not be made: {reason}")
    return Environment(mujoco=version, made=made, interpreter=interpreter)


def of_interpreter(path: Path) -> Environment:
    """The environment of an interpreter that the user has.

    Raises:
        HarnessError: If it cannot be started, or has no MuJoCo.
    """
    version, reason = _version_in((str(path),))
    if reason:
        raise HarnessError(f"{path}: want an interpreter that has MuJoCo and what loopcheck needs: {reason}")
    return Environment(mujoco=version, made=str(path), interpreter=(str(path),))


@contextmanager
def rooms(folder: Path) -> Iterator[Path]:
    """A folder with the packages of the loopcheck that runs now and its metadata, and nothing else.

    Args:
        folder: Where it stands: at the same place after a kill, or what has been computed would not be known again.
    """
    place = folder / PLACE
    shutil.rmtree(place, ignore_errors=True)
    try:
        for room in ROOMS:
            shutil.copytree(HOUSE / room, place / room)  # compiled files too, which saves a second
        shutil.copy(HOUSE / "loopcheck.py", place)
        about = importlib.metadata.distribution("loopcheck")
        metadata = place / f"loopcheck-{about.version}.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(about.read_text("METADATA") or about.read_text("PKG-INFO") or "", encoding="utf-8")
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


def run_in(environment: Environment, place: Path, arguments: Sequence[str]) -> str:
    """Run loopcheck in an environment.

    Args:
        environment: Where.
        place: What `rooms` made.
        arguments: Of the command line.

    Returns:
        Why it has written no results; empty if it has.
    """
    if environment.lacks:
        return environment.lacks
    status, _, errors = _call((*environment.interpreter, "-c", FOLLOWER, str(place / "loopcheck.py"), *arguments))
    lines = errors.splitlines() or [f"it ended with status {status}"]
    has_ended = status in (0, 1, 3) and "Traceback (most recent call last)" not in errors
    return "" if has_ended else lines[-1].removeprefix("loopcheck: ")


def _version_in(interpreter: Sequence[str]) -> tuple[str, str]:
    """Version of MuJoCo that an interpreter has, and, if it has none, why."""
    status, version, errors = _call((*interpreter, "-c", "import mujoco; print(mujoco.__version__)"))
    return version.strip(), " ".join(errors.split()) or "it says nothing" if status else ""


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


def _needs() -> Iterator[str]:
    """What loopcheck needs besides MuJoCo, in the versions installed here."""
    for text in importlib.metadata.requires("loopcheck") or ():
        need = Requirement(text)
        if need.name != "mujoco" and (need.marker is None or need.marker.evaluate({"extra": ""})):
            extras = f"[{','.join(sorted(need.extras))}]" if need.extras else ""
            yield f"{need.name}{extras}=={importlib.metadata.version(need.name)}"
