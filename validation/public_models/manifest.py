"""The manifest: the public models, their addresses, and the hashes of all their files."""

import re
import tomllib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.robots.schema import reason_of
from loopcheck.validation.public_models.patching import Rule

MANIFEST = Path(__file__).with_name("models")
"""Folder of the manifest, with a file per repository."""
UNWRITABLE = re.compile(r"[\x00-\x1f\x7f\\]")
"""Characters that no path may contain: control characters, and separators of folders on other systems."""


def is_inside(path: str) -> bool:
    """Return whether a path with `/` between its parts stays in the folder that it is relative to."""
    parts = PurePosixPath(path).parts
    hidden = any(part.lower() == ".git" for part in parts)
    return bool(parts) and not (path.startswith("/") or ".." in parts or hidden or UNWRITABLE.search(path))


class AtlasModel(BaseModel):
    """An MJCF in a repository."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=100)
    """Name of the model in tables and options."""
    path: str
    """Path of the MJCF in the repository."""
    licence: str = ""
    """SPDX identifier; empty if the repository has no licence."""
    mesh_licence: str = ""
    """Licence of its meshes; `none` without meshes."""
    files: tuple[str, ...] = ()
    """Other required files: included parts, and meshes."""
    actuated: tuple[str, ...] = ()
    """Joints with an additional motor, for files without actuators."""
    start: str = ""
    """Keyframe of the initial pose; by default the first, or qpos0 without keyframes."""
    pose: dict[str, tuple[float, ...]] = {}
    """Other initial positions of joints [m or rad], if the pose of the file is singular or open."""
    patches: tuple[Rule, ...] = ()
    """Changes of the MJCF before the computation."""
    patched_sha256: str = Field(default="", pattern=r"^([0-9a-f]{64})?$")
    """SHA-256 of the patched MJCF; empty without patches."""

    @property
    def every_file(self) -> tuple[str, ...]:
        """The MJCF and all further files of the model."""
        return (self.path, *self.files)

    @property
    def patched_path(self) -> str:
        """Path of the computed MJCF: with patches a file beside the original, in the cache only."""
        path = PurePosixPath(self.path)
        return str(path.with_name(f"{self.id}.patched.xml")) if self.patches else self.path

    @model_validator(mode="after")
    def _is_patched_as_said(self) -> "AtlasModel":
        if bool(self.patches) != bool(self.patched_sha256):
            raise ValueError(
                f"'{self.id}' must have both patches and the SHA-256 of the patched file, or neither of them"
            )
        return self


class Repository(BaseModel):
    """A repository at a commit, and the models that are taken from it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    repository: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9_][A-Za-z0-9._-]*$")
    """OWNER/NAME."""
    commit: str = Field(pattern=r"^[0-9a-f]{40}$")
    copied_from: str = ""
    """OWNER/NAME of the repository of its models; empty for a local copy that represents them."""
    models: tuple[AtlasModel, ...]
    files: dict[str, str]
    """SHA-256 of every file of its models, by path, or the name of its object in git."""

    @field_validator("files")
    @classmethod
    def _lie_inside(cls, files: dict[str, str]) -> dict[str, str]:
        for path, digest in files.items():
            if not is_inside(path):
                raise ValueError(f"paths must stay in the repository, got {path!r}")
            if not re.fullmatch(r"[0-9a-f]{64}|[0-9a-f]{40}", digest):
                raise ValueError(f"files: '{path}' must have a SHA-256 or the name of a git object, got {digest!r}")
        return files

    @model_validator(mode="after")
    def _are_pinned(self) -> "Repository":
        missing = [path for model in self.models for path in model.every_file if path not in self.files]
        if missing:
            raise ValueError(f"files: every file of a model must have a SHA-256, missing: {', '.join(missing)}")
        return self


class Entry(BaseModel):
    """A model with the repository that it is taken from."""

    model_config = ConfigDict(frozen=True)

    repository: Repository
    model: AtlasModel

    @property
    def sha256(self) -> str:
        """Hash of its MJCF."""
        return self.repository.files[self.model.path]


def entries(patterns: Sequence[str] = (), folder: Path = MANIFEST) -> list[Entry]:
    """The models of a manifest.

    Args:
        patterns: Patterns of names or repositories, as `*cassie*` or `OWNER/*`; by default all models.
        folder: Folder of the manifest.

    Raises:
        MechanismError: If a file of the manifest is bad, or two models have one name.
        NotFoundError: If a pattern matches no model.
    """
    every = [Entry(repository=one, model=model) for one in repositories(folder) for model in one.models]
    names = [entry.model.id for entry in every]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise MechanismError(f"{folder}: models must have different names, got twice: {', '.join(twice)}")
    for pattern in patterns:
        if not any(_fits(entry, pattern) for entry in every):
            raise NotFoundError("model of the atlas", pattern, names)
    return [entry for entry in every if not patterns or any(_fits(entry, pattern) for pattern in patterns)]


def repositories(folder: Path) -> Iterator[Repository]:
    """The repositories of a manifest.

    Raises:
        MechanismError: If the manifest is empty, or a file of it is bad.
    """
    paths = sorted(folder.glob("*.toml"))
    if not paths:
        raise MechanismError(f"{folder}: must contain a file NAME.toml for each repository, found no such file")
    for path in paths:
        try:
            yield Repository.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:  # a ValidationError is one
            reason = reason_of(error, Repository) if isinstance(error, ValidationError) else str(error)
            raise MechanismError(f"{path}: {reason}") from error


def _fits(entry: Entry, pattern: str) -> bool:
    return fnmatchcase(entry.model.id, pattern) or fnmatchcase(entry.repository.repository, pattern)
