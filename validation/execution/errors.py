"""Errors of our own: one line for whoever reads a table or a terminal, the whole in a file of the user's."""

import hashlib
import re
import traceback
from collections.abc import Iterable

from loopcheck.robots.errors import INTERNAL
from loopcheck.validation.execution.user_folder import user_folder

WHOLE = "traceback"
"""Before the path of the traceback, at the end of the note on an internal error."""


def internal_error(error: BaseException) -> str:
    """One line on an error of our own; the whole of it is written into the user's folder, once for all that are alike.

    Args:
        error: What was raised, here or in a worker process.
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
    """What notes say of errors of our own, each line once.

    Args:
        notes: Of the rows of tables.
    """
    lines = (re.search(rf"{INTERNAL}: .*?; {WHOLE}[^;]*", note) for note in notes)
    return list(dict.fromkeys(line[0] for line in lines if line))
