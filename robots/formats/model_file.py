"""The model file of a mechanism, with the content of every file that it reads."""

import hashlib
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self, TypeAlias

import mujoco

from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.registry import format_of

ANCHORS = "anchors"
"""Kind of the overrides that put the anchors of closures elsewhere, by closure, body (point1 or point2) [m]."""
Overrides: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""New values by kind of element, its name and its attribute."""
FOLDERS = {"meshes": "meshdir", "hfields": "meshdir", "skins": "meshdir", "textures": "texturedir"}
"""Attribute of the compiler with the folder of each kind of asset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFile:
    """The MJCF a mechanism was read from, with the changes a variant makes to it.

    The hashes make results that are stored for a model depend on all its files: an engine reads more of a file than
    `Mechanism` has.
    """

    path: Path
    """The MJCF."""
    overrides: Overrides = field(default_factory=dict)
    """New values by kind of element, its name and its attribute, as `{"body": {"link1": {"mass": 0.5}}}`."""
    actuated: tuple[str, ...] = ()
    """Joints that get a motor each, instead of the actuators of the MJCF, or those of its actuators that act; empty:
    all its actuators."""
    leave_out: tuple[str, ...] = ()
    """Losses of the file that the user accepts, TAG or TAG:NAME."""
    hashes: Mapping[str, str] = field(default_factory=dict, repr=False)
    """SHA-256 of the MJCF, its includes and assets by path; computed from the files, empty for a missing file."""

    def __post_init__(self) -> None:
        path = self.path.absolute()
        if str(path) not in self.hashes:  # the same file with other overrides keeps the hashes of its first reading
            files = [path]
            with suppress(MechanismError):  # the reader of the model reports it
                files += files_of(path) if path.is_file() else []
            object.__setattr__(self, "hashes", {str(file): file_hash(file) for file in sorted({*files})})

    def with_overrides(self, overrides: Overrides) -> Self:
        """The same MJCF with more changes, which override its present changes.

        Args:
            overrides: As `ModelFile.overrides`.
        """
        merged = {kind: dict(elements) for kind, elements in self.overrides.items()}
        for kind, elements in overrides.items():
            changed = merged.setdefault(kind, {})
            for name, values in elements.items():
                changed[name] = {**changed.get(name, {}), **values}
        return replace(self, overrides=merged)

    @property
    def as_written(self) -> Self:
        """The same MJCF with the anchors of its closures where the file has them."""
        return replace(self, overrides={kind: each for kind, each in self.overrides.items() if kind != ANCHORS})

    def want_unchanged(self) -> None:
        """Check that the files have the content of the first reading.

        Raises:
            MechanismError: If a file was edited since then.
        """
        for file, content in self.hashes.items():
            if file_hash(Path(file)) != content:
                raise MechanismError(f"{file}: must not change during a command. Run the command again")


def file_hash(path: Path) -> str:
    """SHA-256 of the content of a file, empty for a missing file."""
    if not path.is_file():
        return ""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_of(path: Path) -> tuple[Path, ...]:
    """A model and the files it names: included parts, meshes, pictures, a loop file; whether they are there or not.

    Raises:
        MechanismError: If the file is not a model.
    """
    form = format_of(path)
    if form is not None:
        return form.files(path)
    with captured_warnings(), in_one_line(path):
        files = {Path(name) for name in mujoco.mju_getXMLDependencies(str(path))}
        with suppress(ValueError):  # the reader of the model reports it
            files.update(_assets(mujoco.MjSpec.from_file(str(path))))
        return tuple(sorted(files))


def xml_files(path: Path) -> tuple[Path, ...]:
    """An MJCF and the MJCF files that it includes."""
    with captured_warnings(), suppress(ValueError, RuntimeError, mujoco.FatalError):
        names = mujoco.mju_getXMLDependencies(str(path))
        others = {Path(name) for name in names if Path(name).suffix.lower() in (".xml", ".mjcf")}
        return (path, *sorted(other for other in others if not other.exists() or not other.samefile(path)))
    return (path,)


def _assets(spec: Any) -> Iterator[Path]:
    """Places of the assets; MuJoCo's list of dependencies ignores `strippath`, and `meshdir` of height fields."""
    for kind, folder in FOLDERS.items():
        for asset in getattr(spec, kind):
            for name in filter(None, (asset.file, *getattr(asset, "cubefiles", ()))):
                file = Path(name).name if spec.strippath else name
                yield Path(spec.modelfiledir, getattr(asset.compiler, folder), file)


@contextmanager
def captured_warnings() -> Iterator[list[str]]:
    """Collect MuJoCo's warnings in a list, instead of in a log file in the user's folder."""
    messages: list[str] = []
    previous = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(messages.append)
    try:
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # deprecated attributes of the MJCF
            yield messages
    finally:
        mujoco.set_mju_user_warning(previous)


@contextmanager
def in_one_line(path: Path) -> Iterator[None]:
    """Convert errors of MuJoCo's compiler to a message of a single line.

    Args:
        path: The MJCF.

    Raises:
        MechanismError: If MuJoCo raises an error.
    """
    try:
        yield
    except MechanismError as error:
        raise MechanismError(f"{path}: {error}") from error
    except RuntimeError as error:  # what the bindings make of an exception that they do not know, as of bad_alloc
        raise MechanismError(f"{path}: MuJoCo's compiler failed: a size or a count is too large") from error
    except (ValueError, mujoco.FatalError) as error:
        reason = " ".join(str(error).split())
        raise MechanismError(f"{path}: MuJoCo's compiler rejected the file: {reason}") from error
