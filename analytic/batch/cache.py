"""Machine code of tapes in the user's cache, so that each is compiled once for a machine."""

import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path

DIGEST = hashlib.sha256().digest_size


def folder() -> Path:
    """The folder, which may be missing."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "loopcheck" / "tapes"


def read(key: str) -> bytes | None:
    """Value stored under a key; None if it is missing or damaged."""
    with suppress(OSError):
        content = (folder() / key).read_bytes()
        digest, code = content[:DIGEST], content[DIGEST:]
        if hashlib.sha256(code).digest() == digest:
            return code
    return None


def write(key: str, code: bytes) -> None:
    """Keep something under a key, whole or not at all; a folder that cannot be written is no error."""
    with suppress(OSError):
        folder().mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder(), delete=False) as file:
            file.write(hashlib.sha256(code).digest() + code)
        Path(file.name).replace(folder() / key)
