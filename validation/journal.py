"""A folder of results held by one command, and the journal of what it has computed so far."""

import hashlib
import hmac
import os
import pickle
import secrets
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from diskcache import Cache, Disk
from diskcache.core import MODE_PICKLE
from filelock import FileLock, Timeout

from robots.errors import OutputError
from validation.tables import want_writable
from validation.user_folder import user_folder

JOURNAL = ".unfinished"
LOCK = ".lock"
SIGNATURE = hashlib.sha256().digest_size
"""Length of a signature, and of the secret that makes it [byte]."""


class NoPickles(Disk):  # type: ignore[misc]
    """What a cache keeps, where a pickle of its own, which could call anything, is never read."""

    def fetch(self, mode: int, filename: str, value: Any, read: bool) -> Any:
        """The content of an entry, None if it is a pickle."""
        return None if mode == MODE_PICKLE else super().fetch(mode, filename, value, read)


class Journal:
    """Results of calls by key, safe on disk from the moment they are there; and how many calls were lost.

    Results are pickles, and a folder of results may be somebody else's. Each is signed with a secret of the user;
    nothing without that signature is read, it is computed again.
    """

    def __init__(self, cache: Cache) -> None:
        self._cache, self._secret = cache, _secret()
        self.lost = 0
        """How many calls were interrupted, died or hung."""

    def known(self, keys: Sequence[str]) -> dict[str, Any]:
        """The results that are there and are the user's own."""
        contents = {key: self._cache.get(key) for key in keys}
        return {
            key: pickle.loads(content[SIGNATURE:]) for key, content in contents.items() if self._is_own(key, content)
        }

    def keep(self, key: str, result: Any) -> None:
        """Put a result on disk.

        Raises:
            OutputError: If it cannot be written.
        """
        try:
            content = pickle.dumps(result)
            self._cache[key] = self._signature(key, content) + content
        except (OSError, sqlite3.Error) as error:
            raise OutputError(f"{self._cache.directory}: cannot be written: {error}") from error

    def _is_own(self, key: str, content: Any) -> bool:
        if not isinstance(content, bytes):
            return False
        return hmac.compare_digest(content[:SIGNATURE], self._signature(key, content[SIGNATURE:]))

    def _signature(self, key: str, content: bytes) -> bytes:
        return hmac.digest(self._secret, key.encode() + content, "sha256")


def _secret() -> bytes:
    """What only the user can sign with; where it cannot be kept, only this process can."""
    try:
        path = user_folder("journal") / "secret"
        with NamedTemporaryFile(dir=path.parent) as file:  # which nobody else may read
            file.write(secrets.token_bytes(SIGNATURE))
            file.flush()
            with suppress(FileExistsError):
                os.link(file.name, path)
        return path.read_bytes()
    except OSError:
        return secrets.token_bytes(SIGNATURE)


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
    cache = Cache(str(folder), disk=NoPickles, eviction_policy="none")
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
