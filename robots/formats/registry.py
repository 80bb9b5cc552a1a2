"""Formats of model files besides MJCF: how each is recognized and read."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from loopcheck.robots.catalogue import MODEL_SUFFIXES
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.losses import Loss
from loopcheck.robots.formats.sdf import is_sdf, left_out_of_sdf, losses_of_sdf, sdf_spec
from loopcheck.robots.formats.urdf import files_of_urdf, is_urdf, left_out_of, losses_of_urdf, urdf_spec
from loopcheck.robots.formats.usd import files_of_usd, is_usd, left_out_of_usd, losses_of_usd, usd_spec


class ModelFormat(NamedTuple):
    """A format that is read into an `MjSpec`."""

    name: str
    """With its article, for messages."""
    matches: Callable[[Path], bool]
    """Whether a file has this format."""
    spec: Callable[[Path], Any]
    """The model as an editable `MjSpec`."""
    files: Callable[[Path], tuple[Path, ...]]
    """The file and the files that it names."""
    left_out: Callable[[Path], tuple[str, ...]]
    """Features that no source takes into account, a sentence each."""
    losses: Callable[[Path], Iterator[Loss]]
    """Names that are not read, one loss for each occurrence."""


def _alone(path: Path) -> tuple[Path, ...]:
    return (path,)


FORMATS = (
    ModelFormat("a URDF", is_urdf, urdf_spec, files_of_urdf, left_out_of, losses_of_urdf),
    ModelFormat("an SDF", is_sdf, sdf_spec, _alone, left_out_of_sdf, losses_of_sdf),
    ModelFormat("a USD", is_usd, usd_spec, files_of_usd, left_out_of_usd, losses_of_usd),
)


def format_of(path: Path) -> ModelFormat | None:
    """Format of a model file; None for MJCF."""
    return next((form for form in FORMATS if form.matches(path)), None)


def want_model_suffix(path: Path) -> None:
    """Refuse a file that is no model, by its suffix.

    Raises:
        MechanismError: If it is a xacro, or has an unknown suffix.
    """
    if path.suffix.lower() == ".xacro":
        expanded = path.stem if "." in path.stem else f"{path.stem}.urdf"
        raise MechanismError(f"{path}: xacro must be expanded. Run: xacro {path.name} > {expanded}")
    if path.suffix.lower() not in MODEL_SUFFIXES:
        raise MechanismError(
            f"{path}: the suffix of a model must be one of {', '.join(sorted(MODEL_SUFFIXES))}, got '{path.suffix}'"
        )


def want_mjcf(path: Path) -> None:
    """Refuse a file of another format where settings of MuJoCo are to be written.

    Raises:
        MechanismError: If the file is not an MJCF; the message names the conversion.
    """
    form = format_of(path)
    if form is not None:
        raise MechanismError(
            f"{path}: settings of a simulation must be written into an MJCF, got {form.name}. Run: loopcheck convert "
            f"{path.name} {path.stem}.xml"
        )
