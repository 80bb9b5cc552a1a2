"""Where an engine computes: in the Python that runs now, or in an environment of its own that `loopcheck engines` made.

An environment is a folder named for what it holds, as `pybullet-3.2.7-py311`. What describes it is written last, so
that one whose making was cut short is told from a whole one.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from packaging.version import Version

from loopcheck import engines
from loopcheck.validation.execution.user_folder import data_folder

PLACE = "LOOPCHECK_ENGINES"
"""Environment variable with the folder of the environments."""
MARKER = "environment.json"
"""Description of an environment; it exists only if the environment is complete."""
METADATA = ("*.dist-info", "*.egg-info")
"""Names of folders that contain the version of a package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """A Python of its own with an engine and what our workers need."""

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

    def write(self) -> None:
        """Say that it is whole.

        Raises:
            OSError: If it cannot be written.
        """
        content = {name: value for name, value in asdict(self).items() if name != "folder"}
        self.description.write_text(json.dumps(content, indent=2), encoding="utf-8")

    def packages(self) -> str:
        """Digest of the versions of all that it holds: what is computed there rests on nothing else of it."""
        return digest_of_packages([*self.folder.glob("lib/*/site-packages"), self.folder / "Lib/site-packages"])


def interpreter_in(folder: Path) -> Path:
    """Where the Python of an environment is.

    Args:
        folder: Of the environment.
    """
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def digest_of_packages(folders: Iterable[Path]) -> str:
    """Digest of the versions of all packages but this one, which the names of their metadata hold.

    This one's metadata come and go beside its sources when it is built, and its code is part of every key anyway.

    Args:
        folders: Where packages are.
    """
    names = {path.name for folder in folders for kind in METADATA for path in folder.glob(kind)}
    packages = {name for name in names if not name.startswith("loopcheck")}
    return hashlib.sha256("\n".join(sorted(packages)).encode()).hexdigest()


def environments_folder() -> Path:
    """Where environments are, once there is one."""
    place = os.environ.get(PLACE)
    return Path(place).absolute() if place else data_folder("engines")


def environments() -> tuple[Environment, ...]:
    """All that are whole, by engine, the newest version of each first."""
    whole = [environment for folder in _folders() if (environment := _read(folder)) is not None]
    newest_first = sorted(whole, key=lambda environment: Version(environment.version), reverse=True)
    return tuple(sorted(newest_first, key=lambda environment: environment.engine))


def broken_environments() -> tuple[Path, ...]:
    """Folders of environments that were not made to the end, or whose Python is gone."""
    return tuple(folder for folder in _folders() if _read(folder) is None)


def environment_of(engine: str) -> Environment | None:
    """Where an engine computes if it is not importable here; None if it is, or there is no environment for it.

    Args:
        engine: Name of the engine; of anything else there is none.
    """
    if engine not in engines.engine_names() or engines.installed(engine):
        return None
    return next((environment for environment in environments() if environment.engine == engine), None)


def is_there(engine: str) -> bool:
    """Whether an engine can compute, here or in an environment of its own."""
    return engines.installed(engine) or environment_of(engine) is not None


def engine_versions() -> Mapping[str, str]:
    """Versions of the engines that can compute, here or in an environment of their own, in the order of their names."""
    elsewhere = {name: environment.version for name, environment in used_environments().items()}
    return dict(sorted({**elsewhere, **engines.versions()}.items()))


def used_environments() -> Mapping[str, Environment]:
    """The environments in which engines compute, by engine."""
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
