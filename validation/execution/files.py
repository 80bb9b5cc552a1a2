"""Folders locked by a command, and files that are replaced completely or not at all."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from loopcheck.robots.errors import OutputError

RECORD = "run.json"
LOCK = ".lock"
DRAFTS = ".writing"
"""Folder of files that are not yet complete."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a folder of results against other commands; the folder is made if necessary.

    Raises:
        OutputError: If the folder is not writable, has a link to another place, or another command writes there.
    """
    want_writable(folder)
    _want_inside(folder)
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    lock = FileLock(folder / LOCK, blocking=False)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with lock:
            try:
                yield
            finally:
                (folder / LOCK).unlink(missing_ok=True)
    except Timeout as error:
        raise OutputError(f"{folder}: another loopcheck process writes there. Wait, or name another folder") from error
    except OSError as error:
        raise OutputError(f"{getattr(error, 'filename', None) or folder}: cannot be written: {error}") from error
    finally:
        _remove_empty(made)


def want_writable(folder: Path) -> None:
    """See that results can be written into a folder, without making it yet.

    Raises:
        OutputError: If they cannot.
    """
    nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise OutputError(f"{folder}: must be a writable folder: {nearest}: {error.strerror}") from error


def _want_inside(folder: Path) -> None:
    """See that no file of results, at most one folder below, is a link through which another file would be written."""
    inside = os.path.realpath(folder)
    for path in [*folder.glob("*"), *folder.glob("*/*")]:
        if path.is_symlink() and not (place := Path(os.path.realpath(path))).is_relative_to(inside):
            raise OutputError(
                f"{path}: must not be a link to another place, got {place}. Remove it, or name another folder"
            )


@contextmanager
def drafts(folder: Path) -> Iterator[Path]:
    """A folder for new files that replace the old files together at the end, the record last, and not after an error.

    Args:
        folder: Final folder of the files, made if necessary. Drafts of a killed command are removed.
    """
    draft = folder / DRAFTS
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        yield draft
        for path in sorted(draft.iterdir(), key=lambda path: (path.name == RECORD, path.name)):
            path.replace(folder / path.name)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders that stayed empty, the innermost first."""
    for folder in folders:
        if folder.exists() and not any(folder.iterdir()):
            folder.rmdir()
