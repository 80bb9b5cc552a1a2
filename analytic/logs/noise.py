"""How noisy the columns of a log are: independent errors by high differences, and the steps numbers are rounded to."""

from collections.abc import Iterator
from math import comb

import numpy as np

from robots.arrays import Array
from robots.log import Log

ORDERS = (6, 8, 10, 12, 14, 16)
"""Orders of the differences [-]: what moves smoothly vanishes in one of them, noise in none."""
MOST_LOST = 3
"""Differences that must be left of the samples at least [-]."""
ROBUST = 1.3
"""How far a deviation by medians may be above that by squares where errors are normal [-]."""
NORMAL = 0.6745
"""Median of the magnitude of a normal error of deviation one [-]."""
WHOLE = 1e-3
"""How near to whole multiples of a step all values must be to count as rounded to it [steps]."""
MOST_STEPS = 1e6
"""Least differences within the range of a column up to which it may be codes [-]: beyond, rounding is no matter."""
PARTS = (1, 2, 3)
"""How many codes the least difference of a column may be [-]."""
MOST_DIGITS = 10
"""Decimals to which an exporter may round [-]; with more it is no matter."""
STUCK = 8
"""Rows on which a column stands still from which on it may be stuck [-]."""
MOVING = 0.1
"""Part of its range by which another column moves meanwhile [-]."""


def noise(values: Array) -> Array:
    """Standard deviation of the independent errors in each column, at least that of rounding.

    Args:
        values: Samples [any unit], shape (nt, columns).

    Returns:
        Standard deviation [unit of the column], shape (columns,).
    """
    orders = [order for order in ORDERS if order <= len(values) - MOST_LOST]
    by_order = np.array([_difference_noise(values, order) for order in orders])
    return np.maximum(by_order.min(axis=0), resolution(values) / np.sqrt(12))


def resolution(values: Array) -> Array:
    """The step that each column is rounded to, as by an encoder or an exporter.

    Args:
        values: Samples [any unit], shape (nt, columns).

    Returns:
        Steps [unit of the column], shape (columns,); 0 where there is none to be seen.
    """
    return np.array([_resolution(column) for column in values.T])


def stuck_codes(log: Log) -> Iterator[str]:
    """Columns of positions that stand still while others move, as those of an encoder that hangs, a phrase each.

    Args:
        log: The log.
    """
    ranges = np.maximum(np.ptp(log.q, axis=0), np.finfo(float).tiny)
    for joint in log.joints:
        for column in range(log.q.shape[1])[log.columns_of(joint)[0]]:
            first, last = _longest_standstill(log.q[:, column])
            others = np.ptp(log.q[first : last + 1], axis=0) / ranges
            if last - first >= STUCK and others.max() > MOVING and np.ptp(log.q[:, column]):
                span = f"from t = {log.t[first]:.6g} to {log.t[last]:.6g} s"
                yield f"positions of '{joint}' stand still {span} while others move: stuck codes?"


def _longest_standstill(column: Array) -> tuple[int, int]:
    """First and last row of the longest run of one value."""
    changes = np.flatnonzero(np.diff(column)) + 1
    starts, ends = np.r_[0, changes], np.r_[changes, len(column)]
    k = int(np.argmax(ends - starts))
    return int(starts[k]), int(ends[k]) - 1


def _difference_noise(values: Array, order: int) -> Array:
    """Deviation by the differences of an order, robust against single jumps, shape (columns,)."""
    squares = np.diff(values, order, axis=0) ** 2 / comb(2 * order, order)
    return np.minimum(np.sqrt(squares.mean(axis=0)), ROBUST * np.sqrt(np.median(squares, axis=0)) / NORMAL)


def _resolution(column: Array) -> float:
    levels = np.unique(column)
    if len(levels) < 2:
        return 0.0
    return max(_code_step(levels), _decimal_step(levels))


def _code_step(levels: Array) -> float:
    """The step of which all levels, ascending, are whole multiples, as codes of an encoder are."""
    least = float(np.diff(levels).min())
    for part in PARTS if np.ptp(levels) < MOST_STEPS * least else ():
        counts = (levels - levels[0]) / (least / part)
        step = float(np.ptp(levels) / np.round(counts[-1]))  # the least difference is itself a little off
        if (np.abs((levels - levels[0]) / step - np.round(counts)) < WHOLE).all():
            return step
    return 0.0


def _decimal_step(levels: Array) -> float:
    """The decimal to which all levels are rounded."""
    for digits in range(MOST_DIGITS):
        scaled = levels * 10.0**digits
        if (np.abs(scaled - np.round(scaled)) < WHOLE).all() and np.abs(scaled).max() < 1 / np.finfo(float).eps / 1e3:
            return 10.0**-digits
    return 0.0
