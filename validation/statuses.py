"""Exit statuses: one rule for all commands, and one line on an error of our own, whose whole goes into a file."""

import hashlib
import traceback
from collections.abc import Mapping

from validation.user_folder import user_folder

BAD_INPUT = 2
INCOMPLETE = 3
OWN_ERROR = 70
INTERNAL = "internal error"
"""How a note begins where something was raised that is not ours to raise."""
WHOLE = "the whole of it"
"""What such a note says last, and where that is."""


def exit_status(verdicts: Mapping[str, int], internal_errors: int = 0) -> int:
    """Exit status of a study: 70 error of our own, 1 a comparison disagrees, 3 one is missing or none is there, else 0.

    Args:
        verdicts: How many comparisons have which verdict; those not named here are not judged.
        internal_errors: How many results are errors of our own.
    """
    if internal_errors:
        return OWN_ERROR
    if verdicts.get("disagree"):
        return 1
    if verdicts.get("not comparable") or verdicts.get("not run"):
        return INCOMPLETE
    return 0 if verdicts.get("agree") or verdicts.get("as expected") else INCOMPLETE


def internal_error(error: BaseException) -> str:
    """One line on an error of our own; the whole of it is written into the user's folder, once for all that are alike.

    Args:
        error: What was raised.
    """
    line = f"{INTERNAL}: {' '.join(f'{type(error).__name__}: {error}'.split())}"
    text = "".join(traceback.format_exception(error))
    try:
        path = user_folder("errors") / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.txt"
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as failure:
        return f"{line}; {WHOLE} cannot be written: {failure.strerror}"
    return f"{line}; {WHOLE}: {path}"
