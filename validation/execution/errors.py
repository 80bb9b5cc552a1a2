"""Internal errors: one line for tables and the terminal, and the traceback in a file of the user."""

import hashlib
import re
import traceback
from collections.abc import Iterable

from loopcheck.robots.errors import INTERNAL
from loopcheck.validation.execution.folders import user_folder

WHOLE = "traceback"
"""Before the path of the traceback, at the end of the note on an internal error."""
AUDIT = "audit of our efforts:"
"""Begins an internal error that has no traceback: a result of loopcheck misses a limit of its own."""


def internal_error(error: BaseException) -> str:
    """One line on an internal error; its traceback is written to the user's folder, once per distinct traceback.

    Args:
        error: Exception raised here or in a worker process.
    """
    line = f"{INTERNAL}: {' '.join(f'{type(error).__name__}: {error}'.split())}".encode(errors="replace").decode()
    whole = "".join(traceback.format_exception(error)).encode(errors="replace")  # a file's name may be no UTF-8
    try:
        path = user_folder("errors") / f"{hashlib.sha256(whole).hexdigest()[:16]}.txt"
        path.write_bytes(whole)
    except OSError as failure:
        return f"{line}; {WHOLE} cannot be written: {failure.strerror}"
    return f"{line}; {WHOLE}: {path}"


def internal_errors(notes: Iterable[str]) -> list[str]:
    """Internal errors in the notes of tables, each line once."""
    lines = (re.search(rf"{INTERNAL}: (.*?; {WHOLE}|{AUDIT})[^;]*", note) for note in notes)
    return list(dict.fromkeys(line[0] for line in lines if line))
