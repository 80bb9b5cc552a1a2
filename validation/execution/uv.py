"""The program uv, which makes environments, and its search for Pythons and wheels."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from loopcheck.robots.errors import HarnessError

THIS = f"{sys.version_info.major}.{sys.version_info.minor}"
"""Version of the running Python."""
PYTHONS = tuple(dict.fromkeys((THIS, "3.11", "3.12", "3.13", "3.14")))
"""Python versions with possible wheels of engines, beginning with the running version."""
NO_WHEELS = re.compile(r"no (usable )?wheels")
"""Message of uv if a package has no wheels for a Python."""
NO_VERSION = "there is no version of"
"""Message of uv if a package does not have the version."""


class UvError(HarnessError):
    """Failure of uv, with its message."""


def program() -> str:
    """Path of uv.

    Raises:
        UvError: If it is not installed.
    """
    places = (str(Path(sys.executable).parent), os.environ.get("PATH", ""))
    found_program = os.environ.get("UV") or shutil.which("uv", path=os.pathsep.join(places))
    if not found_program:
        raise UvError("uv is not installed: pip install uv")
    return found_program


def uv(arguments: Sequence[str], folder: Path, standard_input: str = "") -> str:
    """Run uv, and return its output.

    Args:
        arguments: Arguments of its command line.
        folder: Working folder outside of projects, as uv would use their settings.
        standard_input: Content of stdin.

    Raises:
        UvError: If it fails.
    """
    command = (program(), "--quiet", *arguments)
    surroundings = {name: text for name, text in os.environ.items() if name not in ("VIRTUAL_ENV", "PYTHONPATH")}
    try:
        done = subprocess.run(
            command, cwd=folder, env=surroundings, input=standard_input, capture_output=True, text=True, check=False
        )
    except OSError as error:
        raise UvError(f"{command[0]}: cannot be started: {error.strerror}") from error
    if done.returncode:
        raise UvError(" ".join(done.stderr.split()).removeprefix("error: ") or f"uv ended with {done.returncode}")
    return done.stdout


def has_wheels(requirement: str, python: str, options: Sequence[str], folder: Path) -> bool:
    """Return whether a package has wheels for a Python on this machine.

    Args:
        requirement: The package, as `pybullet>=3.2.6`.
        python: Version of Python, as 3.11.
        options: Package sources for uv.
        folder: Working folder of uv.

    Raises:
        UvError: If uv cannot find out: no network, or an unknown package.
    """
    resolution = ("pip", "compile", "-", "--no-deps", "--only-binary", ":all:", "--python-version", python)
    try:
        uv((*resolution, "--python", sys.executable, *options), folder, requirement)
    except UvError as error:
        if NO_WHEELS.search(str(error)):
            return False
        raise
    return True


def interpreter(version: str, folder: Path) -> str | None:
    """A Python of this machine; None without an interpreter of that version.

    Args:
        version: Version of Python, as 3.11.
        folder: Working folder of uv.
    """
    if version == THIS:
        return sys.executable
    try:
        return uv(("python", "find", "--no-python-downloads", "--no-project", "--system", version), folder).strip()
    except UvError:
        return None
