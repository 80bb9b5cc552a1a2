"""Files of tuned settings: copies of the user's own but for what is set, and the difference."""

import difflib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from engines.tuning import Settings
from robots.errors import OutputError
from robots.mjcf import files_of
from robots.robot import Case
from validation.studies.tune.engine import tuning_of

TUNED = "tuned"


def write_tuned(case: Case, engine: str, settings: Settings, folder: Path) -> tuple[Path, list[str]]:
    """Write the user's files with other settings, and whatever they need beside them.

    Args:
        case: Whose model it is.
        engine: The engine.
        settings: What to set.
        folder: Where they go.

    Returns:
        The file with the settings, and the lines of the difference.

    Raises:
        MechanismError: If the files cannot say it.
        OutputError: If they cannot be written.
    """
    model = case.mechanism.model.path.absolute()
    changed = tuning_of(engine).files(case.mechanism, settings)
    parts = [path.absolute() for path in files_of(model) if path.is_file()]
    home = Path(os.path.commonpath([path.parent for path in (model, *parts)]))
    try:
        for path in parts:
            if path != model and path not in changed:
                _place(path, home, folder, model).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, _place(path, home, folder, model))
        for path, content in changed.items():
            place = _place(path, home, folder, model)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        main = _place(model, home, folder, model)
        if model not in changed and model.suffix == ".xml" and not any(path.suffix == ".py" for path in changed):
            shutil.copyfile(model, main)
    except OSError as error:
        raise OutputError(f"{folder}: cannot write the tuned files: {error.strerror}") from error
    scripts = [_place(path, home, folder, model) for path in changed if path.suffix == ".py"]
    return (scripts or [main])[0], [line for path, new in changed.items() for line in difference(path, new)]


def replace_files(changed: Mapping[Path, bytes]) -> None:
    """Write changed files in the place of the user's own.

    Args:
        changed: Their contents by path.

    Raises:
        OutputError: If they cannot be written.
    """
    for path, content in changed.items():
        try:
            draft = path.with_name(f".{path.name}.tuned")
            draft.write_bytes(content)
            draft.replace(path)
        except OSError as error:
            raise OutputError(f"{path}: cannot be written: {error.strerror}") from error


def difference(path: Path, new: bytes) -> list[str]:
    """Lines of the difference of a file to what it is to be.

    Args:
        path: The file; it need not be there.
        new: What it is to be.
    """
    old = path.read_bytes() if path.is_file() else b""
    before, after = (text.decode("utf-8", "replace").splitlines() for text in (old, new))
    return list(difflib.unified_diff(before, after, path.name, f"{path.stem}, tuned", lineterm="", n=1))


def _place(path: Path, home: Path, folder: Path, model: Path) -> Path:
    """Where the copy of a file goes; that of the model itself is called tuned."""
    place = folder / os.path.relpath(path, home)
    return place.with_name(f"{TUNED}.xml") if path == model else place
