"""A folder of results held by one command, and the journal of what it has computed so far."""

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from diskcache import Cache
from filelock import FileLock, Timeout

from robots.errors import OutputError
from validation.tables import want_writable

JOURNAL = ".unfinished"
LOCK = ".lock"


class Journal:
    """Results of calls by key, safe on disk from the moment they are there; and how many calls were lost."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self.lost = 0
        """How many calls were interrupted, died or hung."""

    def known(self, keys: Sequence[str]) -> dict[str, Any]:
        """The results that are there."""
        return {key: self._cache[key] for key in keys if key in self._cache}

    def keep(self, key: str, result: Any) -> None:
        """Put a result on disk.

        Raises:
            OutputError: If it cannot be written.
        """
        try:
            self._cache[key] = result
        except (OSError, sqlite3.Error) as error:
            raise OutputError(f"{self._cache.directory}: cannot be written: {error}") from error


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold a folder for the results of one command.

    Args:
        folder: Where the results go; made if it is not there.

    Raises:
        OutputError: If the folder cannot be written, or another command holds it.
    """
    want_writable(folder)
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
        raise OutputError(f"{folder}: another loopcheck is writing there; want another folder, or wait") from error
    except (OSError, sqlite3.Error) as error:
        raise OutputError(f"{getattr(error, 'filename', None) or folder}: cannot be written: {error}") from error
    finally:
        _remove_empty(made)


@contextmanager
def claimed(folder: Path, *, resume: bool = False) -> Iterator[Journal]:
    """Hold a folder for the results of one command, with the journal of what it computes.

    The journal goes when the command has come to its end and nothing was lost; after a kill, or where a call was lost,
    it stays for the next command that resumes.

    Args:
        folder: Where the results go; made if it is not there.
        resume: Whether to go on from the journal that is there; otherwise it is thrown away.

    Raises:
        OutputError: If the folder cannot be written, or another command holds it.
    """
    with held(folder), _journal(folder / JOURNAL, resume=resume) as journal:
        yield journal


@contextmanager
def _journal(folder: Path, *, resume: bool) -> Iterator[Journal]:
    if not resume:
        shutil.rmtree(folder, ignore_errors=True)
    cache = Cache(str(folder), eviction_policy="none")
    journal = Journal(cache)
    is_done = False
    try:
        yield journal
        is_done = not journal.lost
    finally:
        is_empty = len(cache) == 0
        cache.close()
        if is_done or is_empty:
            shutil.rmtree(folder)


def _remove_empty(folders: Sequence[Path]) -> None:
    """Remove folders that were made for nothing, the innermost first."""
    for folder in folders:
        if folder.exists() and not any(folder.iterdir()):
            folder.rmdir()
