"""Error of efforts in tests without a case and its scales."""

import numpy as np

from loopcheck.robots.arrays import Array


def relative_error(candidate: Array, reference: Array) -> float:
    """Largest error over time of any actuator, over its own peak [-], which is at most its scale: no error is hidden.

    Args:
        candidate: Efforts to judge [N or N m], shape (nt, na).
        reference: Reference efforts [N or N m], shape (nt, na).

    Returns:
        The error; infinite for a nonzero effort beside a zero reference.
    """
    errors, peaks = np.abs(candidate - reference).max(0), np.abs(reference).max(0)
    return float(np.divide(errors, peaks, out=np.where(errors == 0, 0.0, np.inf), where=peaks > 0).max())
