"""The folders of a user, which nobody else may read or write."""

import os
from pathlib import Path


def user_folder(name: str) -> Path:
    """A folder in the user's cache, made if it is not there.

    Args:
        name: Name of the folder.

    Raises:
        OSError: If it cannot be made.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "loopcheck" / name
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def data_folder(name: str) -> Path:
    """Where a folder is among the user's data, which is kept until the user removes it; it need not be there yet.

    Args:
        name: Name of the folder.
    """
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "loopcheck" / name
