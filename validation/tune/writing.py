"""Files of tuned settings: copies of the user's files with other settings, and their difference."""

import difflib
import os
from collections.abc import Mapping
from pathlib import Path

from loopcheck.robots.errors import OutputError
from loopcheck.robots.formats.model_file import files_of
from loopcheck.robots.robot import Case
from loopcheck.validation.common.model_copies import places_of_copies, write_copies

TUNED = "tuned"


def write_tuned(case: Case, changed: Mapping[Path, bytes], folder: Path) -> tuple[Path, list[str]]:
    """Write the user's files with other settings, and all files that they need.

    Args:
        changed: New contents, by the paths of the replaced files.

    Returns:
        The file with the settings, and the lines of the difference.

    Raises:
        OutputError: If they cannot be written.
    """
    model = case.mechanism.model.path.absolute()
    parts = [path.absolute() for path in files_of(model) if path.is_file()]
    home = Path(os.path.commonpath([path.parent for path in (model, *parts)]))
    places = places_of_copies((model, *parts, *changed), home, folder)
    places[model] = places[model].with_name(f"{TUNED}.xml")
    is_script = any(path.suffix == ".py" for path in changed)  # then the model stays where it is
    for path in changed:
        if places[path].resolve() == path.resolve():
            raise OutputError(
                f"{folder}: contains the input {path.name}; name another folder with --out, or use --in-place"
            )
    try:
        write_copies({path: place for path, place in places.items() if path in changed or not is_script}, changed)
    except OSError as error:
        raise OutputError(f"{folder}: tuned files cannot be written: {error.strerror}") from error
    main = next((places[path] for path in changed if path.suffix == ".py"), places[model])
    return main, [line for path, new in changed.items() for line in difference(path, new)]


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
    """Lines of the difference between a file and its new content.

    Args:
        path: The file; it may not exist.
    """
    old = path.read_bytes() if path.is_file() else b""
    before, after = (text.decode("utf-8", "replace").splitlines() for text in (old, new))
    return list(difflib.unified_diff(before, after, path.name, f"{path.stem}, tuned", lineterm="", n=1))
