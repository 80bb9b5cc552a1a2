"""Bandwidths of the controller at which tuned settings stay within the accuracy."""

import math
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import NamedTuple

PER_DECADE = 6
"""Number of tried bandwidths in a decade [-]."""
APART = 1.1
"""Largest ratio of the lowest bandwidth that fails to the highest that holds [-]."""
DIGITS = 3
"""Significant digits of a tried bandwidth, so that a file states it exactly [-]."""


class Bandwidths(NamedTuple):
    """Range of bandwidths without a gap among the tried values [rad/s]."""

    lowest: float
    highest: float
    below: float | None
    """Next lower value, which fails; None if no lower value was tried."""
    above: float | None
    """Next higher value, which fails; None if no higher value was tried."""


def bandwidths(
    holds: Callable[[Sequence[float]], Sequence[bool]], usual: float, limits: tuple[float, float]
) -> Bandwidths | None:
    """Range around the usual bandwidth at which a claim holds; None if it fails at the usual bandwidth.

    Args:
        holds: Tries the claim at some bandwidths [rad/s].
        usual: Bandwidth of the search and the proof [rad/s].
        limits: Lowest and highest value to try [rad/s].
    """
    lower = _series(usual, 1 / PER_DECADE, math.floor(PER_DECADE * math.log10(usual / limits[0])))
    higher = _series(usual, -1 / PER_DECADE, math.floor(PER_DECADE * math.log10(limits[1] / usual)))
    tried = [usual, *lower, *higher]
    results = dict(zip(tried, holds(tried), strict=True))
    if not results[usual]:
        return None
    lowest, highest = ([usual, *takewhile(results.__getitem__, side)][-1] for side in (lower, higher))
    below, above = (next((one for one in side if not results[one]), None) for side in (lower, higher))
    while above and above > APART * highest:
        middle = _rounded(math.sqrt(above * highest))
        (held,) = holds([middle])
        highest, above = (middle, above) if held else (highest, middle)
    return Bandwidths(lowest, highest, below, above)


def _series(usual: float, decades: float, count: int) -> list[float]:
    """Values from the usual bandwidth away, each lower by so many decades than the last [rad/s]."""
    return [_rounded(usual * 10 ** (-decades * k)) for k in range(1, count + 1)]


def _rounded(bandwidth: float) -> float:
    return float(f"{bandwidth:.{DIGITS}g}")
