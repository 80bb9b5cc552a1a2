"""Names of robots and files that commands take, checked without reading a model: this module imports no numpy."""

from collections.abc import Iterable
from pathlib import Path

from loopcheck.robots.errors import MechanismError, NotFoundError, OutputError

CATALOGUE = Path(__file__).parent
ROBOT_FILE = "robot.toml"
LOOP_DIALECTS = ("gepetto", "constraint", "robonex", "solidworks", "fusion")
"""Ways to state the loops of a URDF, the first by default."""
MODEL_SUFFIXES = frozenset({".xml", ".mjcf", ".urdf", ".sdf", ".world", ".usd", ".usda", ".usdc", ".usdz"})


def names() -> tuple[str, ...]:
    """Names of the catalogue robots."""
    return tuple(sorted(path.parent.name for path in CATALOGUE.glob(f"*/{ROBOT_FILE}")))


def transmission_names() -> tuple[str, ...]:
    """Names of the published transmissions."""
    return tuple(sorted(path.stem for path in (CATALOGUE / "transmissions").glob("*.toml")))


def is_transmission(target: str) -> bool:
    """Whether a target is the name of a published transmission, or a TOML file of the same form."""
    return target in transmission_names() or (Path(target).suffix == ".toml" and Path(target).is_file())


def is_model_file(target: str | Path) -> bool:
    """Whether a target has the form of a model file's path; the file may be missing."""
    path = Path(target)
    return path.is_file() or path.suffix.lower() in MODEL_SUFFIXES


def want_targets(targets: Iterable[str | Path]) -> None:
    """Check that targets exist: catalogue robots, model files or folders with a `robot.toml`.

    Raises:
        NotFoundError: If a target is a name, but of no catalogue robot.
        MechanismError: If a target is a path, but not of a model file or of the folder of a robot.
    """
    for target in targets:
        path = Path(target)
        if str(target) in names() or path.is_file() or (path / ROBOT_FILE).is_file():
            continue
        if path.is_dir():
            raise MechanismError(f"{path}: the folder of a robot must contain {ROBOT_FILE}, got a folder without it")
        if is_model_file(target):
            raise MechanismError(f"{path}: the model file must exist, got no such file")
        raise NotFoundError("target (robot, model file, or folder with robot.toml)", str(target), names())


def want_files(paths: Iterable[Path]) -> None:
    """Check that files exist.

    Raises:
        OutputError: If a file does not exist.
    """
    for path in paths:
        if not path.is_file():
            raise OutputError(f"{path}: the file must exist, got no such file")


def absolute(target: str) -> str:
    """A target that does not depend on the working directory: the name of a catalogue robot, or an absolute path."""
    return target if target in names() else str(Path(target).absolute())
