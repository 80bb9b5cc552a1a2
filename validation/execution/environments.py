"""Environments of engines made by `loopcheck engines`, used for engines that the running Python cannot import.

An environment is a folder with a name such as `pybullet-3.2.7-py311`. Its description is written last, as the mark of
a complete environment.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from packaging.version import Version

from loopcheck import engines
from loopcheck.validation.execution.folders import data_folder

PLACE = "LOOPCHECK_ENGINES"
"""Environment variable with the folder of the environments."""
MARKER = "environment.json"
"""Description of an environment; it exists only if the environment is complete."""
METADATA = ("*.dist-info", "*.egg-info")
"""Names of folders that contain the version of a package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A Python with an engine and the requirements of workers."""

    folder: Path
    engine: str
    """Name of the engine."""
    version: str
    """Name of its package in the package index."""
    python: str
    """Version of its Python."""
    numpy: str
    """Version of its numpy."""
    size: int
    """Size of its files on disk [byte], including files shared with the cache of uv."""
    request: Mapping[str, str]
    """Version, Python and folder of wheels, as requested by the user."""

    @property
    def name(self) -> str:
        """Name of its folder."""
        return self.folder.name

    @property
    def interpreter(self) -> Path:
        """Executable file of its Python."""
        return interpreter_in(self.folder)

    @property
    def description(self) -> Path:
        """The file that describes it."""
        return self.folder / MARKER

    def write(self, folder: Path) -> None:
        """Write the description, the mark of a complete environment.

        Args:
            folder: Where it was made.

        Raises:
            OSError: If it cannot be written.
        """
        content = {name: value for name, value in asdict(self).items() if name != "folder"}
        (folder / MARKER).write_text(json.dumps(content, indent=2), encoding="utf-8")

    def packages(self) -> str:
        """Digest of the versions of all packages; results computed here depend on no other property of it."""
        return digest_of_packages([*self.folder.glob("lib/*/site-packages"), self.folder / "Lib/site-packages"])


def interpreter_in(folder: Path) -> Path:
    """Path of the Python of an environment.

    Args:
        folder: Folder of the environment.
    """
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def digest_of_packages(folders: Iterable[Path]) -> str:
    """Digest of the names and versions of all installed packages except loopcheck, from the names of their metadata.

    The metadata of loopcheck change with each build, and its code is part of every key anyway.

    Args:
        folders: Folders of packages.
    """
    names = {path.name for folder in folders for kind in METADATA for path in folder.glob(kind)}
    packages = {name for name in names if not name.startswith("loopcheck")}
    return hashlib.sha256("\n".join(sorted(packages)).encode()).hexdigest()


def environments_folder() -> Path:
    """Folder of all environments; it may not exist yet."""
    place = os.environ.get(PLACE)
    return Path(place).absolute() if place else data_folder("engines")


def environments() -> tuple[Environment, ...]:
    """All that are whole, by engine, the newest version of each first."""
    whole = [environment for folder in _folders() if (environment := _read(folder)) is not None]
    newest_first = sorted(whole, key=lambda environment: Version(environment.version), reverse=True)
    return tuple(sorted(newest_first, key=lambda environment: environment.engine))


def broken_environments() -> tuple[Path, ...]:
    """Folders of incomplete environments and of environments without their Python."""
    return tuple(folder for folder in _folders() if _read(folder) is None)


def environment_of(engine: str) -> Environment | None:
    """The environment that computes an engine; None if the engine is importable here or has no environment.

    Args:
        engine: Name of the engine; None for any other text.
    """
    if engine not in engines.engine_names() or engines.installed(engine):
        return None
    return next((environment for environment in environments() if environment.engine == engine), None)


def is_there(engine: str) -> bool:
    """Return whether an engine can compute, here or in an environment."""
    return engines.installed(engine) or environment_of(engine) is not None


def engine_versions() -> Mapping[str, str]:
    """Versions of the engines that can compute, here or in an environment of their own, in the order of their names."""
    elsewhere = {name: environment.version for name, environment in used_environments().items()}
    return dict(sorted({**elsewhere, **engines.versions()}.items()))


def used_environments() -> Mapping[str, Environment]:
    """The environments of all engines that are not importable here, by engine."""
    newest = {environment.engine: environment for environment in reversed(environments())}
    return {
        name: newest[name] for name in sorted(newest) if name in engines.engine_names() and not engines.installed(name)
    }


def _folders() -> Sequence[Path]:
    try:
        return sorted(path for path in environments_folder().iterdir() if path.is_dir())
    except OSError:  # what cannot be read holds none
        return []


def _read(folder: Path) -> Environment | None:
    """The environment in a folder, if it is whole."""
    try:
        content = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        environment = Environment(folder=folder, **content)
        Version(environment.version)
    except (OSError, ValueError, TypeError):
        return None
    return environment if environment.interpreter.exists() else None
