"""Copies of a model and of the parts and meshes that belong to it, which lie to each other as the originals do."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from loopcheck.robots.errors import MechanismError


def places_of_copies(files: Iterable[Path], home: Path, folder: Path) -> dict[Path, Path]:
    """Where copies of files go, as far from a folder as they are from their home.

    Args:
        files: The files; they need not be there.
        home: The folder in which all of them lie.
        folder: Where they go.

    Raises:
        MechanismError: If one does not lie in their home.
    """
    places = {}
    for file in files:
        place = Path(os.path.relpath(file, home))
        if ".." in place.parts:
            raise MechanismError(f"{file}: must be in the folder of the model, {home.absolute()}, to be copied with it")
        places[file] = folder / place
    return places


def write_copies(places: Mapping[Path, Path], changed: Mapping[Path, bytes]) -> None:
    """Write files, as they are or as they are to be; none over itself.

    Args:
        places: Where each goes.
        changed: Contents of those that are to be others.

    Raises:
        OSError: If one cannot be read or written.
    """
    for file, place in places.items():
        if place.resolve() != file.resolve():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(changed[file] if file in changed else file.read_bytes())
