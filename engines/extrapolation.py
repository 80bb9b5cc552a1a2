"""Richardson's extrapolation: what efforts at several sizes of a step, or of a softness, say of size zero."""

from collections.abc import Sequence
from math import inf

import numpy as np

from robots.arrays import Array

IDLE = 1e-3
"""An actuator whose peak is below this fraction of the largest one is idle: its changes are seen beside that [-]."""


def value_at_zero(sizes: Sequence[float], efforts: Sequence[Array]) -> Array:
    """Value at size zero of the polynomial through the efforts [N or N m], shape (nt, na)."""
    h = np.array(sizes)
    weights = [np.prod(others / (others - own)) for own, others in ((h[i], np.delete(h, i)) for i in range(len(h)))]
    return np.tensordot(weights, np.array(efforts), axes=1)


def unsettled(sizes: Sequence[float], efforts: Sequence[Array]) -> float:
    """What is left in extrapolated efforts [-]: they go on to change in the ratio of their last two changes.

    Nothing that finer steps would take away, where they have ceased to settle; infinite for fewer than three.

    Args:
        sizes: Sizes, largest first [any unit].
        efforts: Efforts at each [N or N m], of shape (nt, na).
    """
    if len(sizes) < 3:
        return inf
    *_, a, b, c = (value_at_zero(sizes[:count], efforts[:count]) for count in range(1, len(sizes) + 1))
    before, last = relative_change(a, c), relative_change(b, c)
    return last**2 / before if last < before else 0.0


def relative_change(efforts: Array, others: Array) -> float:
    """Largest distance between two answers, over the peak of its actuator in the second [-].

    It tells how far an extrapolation is settled where it comes from one more size than the other. Newtons and newton
    metres are compared only to tell what is idle.

    Args:
        efforts: Efforts [N or N m], shape (nt, na).
        others: Those of the better answer [N or N m], shape (nt, na).
    """
    peaks = np.abs(others).max(axis=0, initial=0.0)
    size = np.maximum(peaks, IDLE * peaks.max(initial=0.0))
    change = np.abs(efforts - others).max(axis=0, initial=0.0)
    return float(np.divide(change, size, out=np.zeros_like(change), where=size > 0).max(initial=0.0))
