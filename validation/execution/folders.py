"""Folders of the running loopcheck, and folders of a user, inaccessible to other users."""

import os
from pathlib import Path

import loopcheck

ROOT = Path(__file__).parents[2]
"""Folder of the packages: the checkout, or `loopcheck` in an installation."""
IMPORT_FOLDER = Path(loopcheck.__file__).parents[1]
"""Parent folder of `loopcheck`: a checkout or an installation."""
COMPUTING = ("robots", "analytic", "engines")
"""Packages with an effect on every task: engines, laws and papers are imported by name."""


def user_folder(name: str) -> Path:
    """A folder in the user's cache, made if it is not there.

    Raises:
        OSError: If it cannot be made.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "loopcheck" / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def data_folder(name: str) -> Path:
    """Path of a folder in the user's data, kept until the user removes it; it may not exist yet."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "loopcheck" / name
