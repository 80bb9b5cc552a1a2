"""Copies of a model with its parts and meshes, in the same relative places."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from loopcheck.robots.errors import MechanismError


def places_of_copies(files: Iterable[Path], home: Path, folder: Path) -> dict[Path, Path]:
    """Paths of copies of files, relative to a folder as the files are to their home.

    Args:
        files: The files; they need not exist.
        home: The folder that contains all of them.
        folder: The folder of the copies.

    Raises:
        MechanismError: If a file lies outside of their home.
    """
    places = {}
    for file in files:
        place = Path(os.path.relpath(file, home))
        if ".." in place.parts:
            raise MechanismError(f"{file}: must be in the folder of the model, {home.absolute()}, to be copied with it")
        places[file] = folder / place
    return places


def write_copies(places: Mapping[Path, Path], changed: Mapping[Path, bytes]) -> None:
    """Copy files, or write their new contents; a file is never copied onto itself.

    Args:
        places: New path of each file.
        changed: New contents by file.

    Raises:
        OSError: If a file cannot be read or written.
    """
    for file, place in places.items():
        if place.resolve() != file.resolve():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(changed[file] if file in changed else file.read_bytes())
