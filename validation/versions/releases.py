"""Releases of an engine in the user's package index, and a Python with each of them; both by uv."""

import importlib.metadata
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from packaging.version import InvalidVersion, Version

from loopcheck import engines
from loopcheck.robots.errors import HarnessError
from loopcheck.validation.execution import uv
from loopcheck.validation.execution.environment_making import chosen_python, parsed, unstated_needs

DEFAULT = 10
"""Number of releases if none is named."""
NUMPY = "1.26.4"
"""numpy of all environments: the last for releases of engines from before numpy 2."""
BEFORE_NUMPY_2 = ("3.11", "3.12")
"""Versions of Python with wheels of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Releases:
    """Releases of an engine, the oldest first."""

    engine: str
    versions: tuple[str, ...]
    python: str
    """Interpreter, or version of Python, with wheels of them."""
    offline: bool = False
    """Whether the package index cannot be reached."""

    def command(self, version: str, *, pinned: bool = True) -> tuple[str, ...]:
        """Command that starts Python with a release: the running one if it has the release.

        Args:
            pinned: Whether numpy has the version of the other releases, or one that the release requires.
        """
        if version == here(self.engine):
            return (sys.executable, "-I")
        numbers = re.search(r"3\.\d+", self.python)
        name = uv.THIS if self.python == sys.executable else numbers[0] if numbers else ""
        numpy = NUMPY if name in BEFORE_NUMPY_2 else importlib.metadata.version("numpy")
        packages: tuple[str, ...] = (
            f"{engines.distribution(self.engine)}=={version}",
            f"numpy=={numpy}" if pinned else "numpy",
        )
        packages += tuple(unstated_needs(self.engine, version))
        options = ("--isolated", "--no-project", *(["--offline"] if self.offline else []), "--python", self.python)
        return (uv.program(), "run", "--quiet", *options, *(f"--with={one}" for one in packages), "python", "-I")


def here(engine: str) -> str:
    """The installed release; empty if the engine is not installed."""
    return importlib.metadata.version(engines.distribution(engine)) if engines.installed(engine) else ""


def wanted(requirements: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Engine and versions of some requirements ENGINE or ENGINE==VERSION, the oldest first; MuJoCo by default.

    Raises:
        HarnessError: If a text is no such requirement, or the engines differ.
    """
    pairs = [*map(parsed, requirements)]
    names = list(dict.fromkeys(engine for engine, _ in pairs)) or ["mujoco"]
    if len(names) > 1:
        raise HarnessError(f"all releases must be of one engine, got {', '.join(names)}")
    try:
        return names[0], tuple(sorted({version for _, version in pairs if version}, key=Version))
    except InvalidVersion as error:
        raise HarnessError(f"release must be a number such as 3.6.0, got {error}") from error


def releases(engine: str, named: Sequence[str], *, only: bool = False) -> Releases:
    """The releases to run: from the oldest to the newest of the named ones, or the last ten.

    Args:
        named: Versions, the oldest first; a single one means all releases from it on.
        only: Run the named versions alone.

    Raises:
        HarnessError: If the package index lacks a version, or uv cannot list the releases.
    """
    if only or [*named] == [here(engine)]:
        elsewhere = [version for version in named if version != here(engine)]
        python = _python(engine, elsewhere[0]) if elsewhere else sys.executable
        return Releases(engine=engine, versions=tuple(named), python=python)
    python = _python(engine, named[0] if named else "")
    with TemporaryDirectory() as folder:
        try:
            found, offline = [*_listed(engine, named, python, Path(folder), ())], False
        except uv.UvError as error:
            if _is_final(error):
                raise HarnessError(f"{engines.distribution(engine)}: no such release: {error}") from error
            try:
                found, offline = [*_listed(engine, named, python, Path(folder), ("--offline",))], True
            except uv.UvError as second:
                raise HarnessError(
                    f"the releases of {engines.distribution(engine)} cannot be listed: {error}. "
                    "Name installed or downloaded releases with --only"
                ) from second
    return Releases(engine=engine, versions=tuple(reversed(found)), python=python, offline=offline)


def _python(engine: str, version: str) -> str:
    """A Python with wheels of a release; the running one if uv cannot find out."""
    try:
        with TemporaryDirectory() as folder:
            return chosen_python(engine, version, (), Path(folder))
    except HarnessError as error:
        if isinstance(error.__cause__, uv.UvError) and _is_final(error.__cause__):
            raise
        return sys.executable


def _listed(engine: str, named: Sequence[str], python: str, folder: Path, options: Sequence[str]) -> Iterator[str]:
    """Releases with wheels, the newest first, by the resolver of uv: it respects the user's indexes and settings."""
    package, minor = engines.distribution(engine), re.search(r"3\.\d+", python)
    bound = f"=={named[-1]}" if len(named) > 1 else ""
    resolution = ("pip", "compile", "-", "--no-deps", "--only-binary", ":all:", "--no-header", "--no-annotate")
    wheels = ("--python-version", uv.THIS if python == sys.executable or minor is None else minor[0])
    for number in range(DEFAULT if not named else sys.maxsize):
        try:
            text = uv.uv((*resolution, *wheels, *options), folder, package + bound)
        except uv.UvError as error:
            if number and _is_final(error):
                return
            raise
        version = text.split("==")[1].split()[0]
        if named and Version(version) < Version(named[0]):
            if (number and len(named) == 1) or len(named) > 1:
                return
            raise HarnessError(f"{package}: the newest release is {version}, got {named[0]}")
        yield version
        bound = f"<{version}"


def _is_final(error: uv.UvError) -> bool:
    """Whether an error of uv means that no release is left, not that the index cannot be reached."""
    return "No solution found" in str(error) and not re.search(
        r"offline|connectivity|network", str(error), re.IGNORECASE
    )
