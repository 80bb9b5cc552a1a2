"""Noise of the columns of a log: independent errors, and the steps of rounding.

High differences remove every smooth motion, and with it most of the information about the noise: the sixth of 50
samples determines it to 20 %. Splines with few knots keep nearly all of it, but only for a motion that they can follow.
So, starting from the highest difference, the order is lowered as long as the remaining scatter does not grow beyond
chance (Lepski 1990).
"""

from collections.abc import Callable, Iterator
from functools import partial
from math import comb

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.log import Log

ORDERS = (6, 8, 10, 12, 14, 16)
"""Orders of the differences [-]: smooth motion vanishes at a high order, noise does not."""
KNOTS = (3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32)
"""Samples between the knots of splines [-]."""
SPLINE_DEGREE = 5
CHANCE = 2.0
"""Standard deviations by which an estimate may exceed an estimate of higher order [-]."""
ALIKE = 0.01
"""Relative deviation of two estimates that are as sure as each other [-]."""
MOST_LOST = 3
"""Differences that must be left of the samples at least [-]."""
ROBUST = 1.3
"""Largest ratio of a deviation by medians to a deviation by squares for normal errors [-]."""
NORMAL = 0.6745
"""Median of the magnitude of a normal error with unit deviation [-]."""
WHOLE = 1e-3
"""Largest distance of values from whole multiples of a step to count as rounded to it [steps]."""
MOST_STEPS = 1e6
"""Largest number of codes within the range of a column [-]; with more codes, rounding is negligible."""
PARTS = (1, 2, 3)
"""Largest number of codes in the least difference of a column [-]."""
MOST_DIGITS = 10
"""Largest number of decimals of an exporter [-]; with more decimals, rounding is negligible."""
STUCK = 8
"""Least number of constant rows of a stuck column [-]."""
MOVING = 0.1
"""Least motion of a further column meanwhile, relative to its range [-]."""


def noise(values: Array) -> Array:
    """Standard deviation of the independent errors in each column, at least that of rounding.

    Args:
        values: Samples [any unit], shape (nt, columns).

    Returns:
        Standard deviation [unit of the column], shape (columns,).
    """
    estimate, goes_on = np.full(values.shape[1], np.inf), np.arange(values.shape[1])
    surer: list[tuple[float, Array]] = []
    for scatter, deviation_of in _estimates(len(values)):
        if not goes_on.size:  # no column can be told any better
            break
        deviation = deviation_of(values[:, goes_on])
        is_alike = np.ones(len(goes_on), dtype=bool)
        for other, before in surer:
            chance = 1 + CHANCE * np.sqrt(max(other**2 - scatter**2, 0.0) + ALIKE**2)
            is_alike &= deviation <= before[goes_on] * chance
        goes_on = goes_on[is_alike]
        estimate[goes_on] = deviation[is_alike]
        surer.append((scatter, estimate.copy()))
        goes_on = goes_on[estimate[goes_on] > 0]  # nothing is below none
    return np.maximum(estimate, rounding_step(values) / np.sqrt(12))


def rounding(values: Array) -> Array:
    """Standard deviation of the last digits of columns that a program computed, in single or in double precision.

    Args:
        values: Samples [any unit], shape (nt, columns).

    Returns:
        Standard deviation [unit of the column], shape (columns,).
    """
    single = (values == values.astype(np.float32)).all(axis=0)
    eps = np.where(single, np.finfo(np.float32).eps, np.finfo(float).eps)
    return eps * np.sqrt((values**2).mean(axis=0) / 12)


def rounding_step(values: Array) -> Array:
    """Rounding step of each column, as of an encoder or an exporter.

    Args:
        values: Samples [any unit], shape (nt, columns).

    Returns:
        Steps [unit of the column], shape (columns,); 0 for a column without visible rounding.
    """
    return np.array([_rounding_step(column) for column in values.T])


def stuck_codes(log: Log) -> Iterator[str]:
    """Columns of positions that stand still while others move, as those of a stuck encoder, a phrase each."""
    ranges = np.maximum(np.ptp(log.q, axis=0), np.finfo(float).tiny)
    for joint in log.joints:
        for column in range(log.q.shape[1])[log.columns_of(joint)[0]]:
            first, last = _longest_standstill(log.q[:, column])
            others = np.ptp(log.q[first : last + 1], axis=0) / ranges
            if last - first >= STUCK and others.max() > MOVING and np.ptp(log.q[:, column]):
                span = f"from t = {log.t[first]:.6g} to {log.t[last]:.6g} s"
                yield f"positions of '{joint}' are constant {span} although further joints move. Is the encoder stuck?"


def _longest_standstill(column: Array) -> tuple[int, int]:
    """First and last row of the longest run of equal values."""
    changes = np.flatnonzero(np.diff(column)) + 1
    starts, ends = np.r_[0, changes], np.r_[changes, len(column)]
    k = int(np.argmax(ends - starts))
    return int(starts[k]), int(ends[k]) - 1


def _estimates(samples: int) -> Iterator[tuple[float, Callable[[Array], Array]]]:
    """The relative scatter of each estimate of the noise [-], and its function of columns (samples, any).

    The first removes most.
    """
    for order in reversed([order for order in ORDERS if order <= samples - MOST_LOST]):
        weights = np.array([comb(order, k) * (-1.0) ** k for k in range(order + 1)]) / np.sqrt(comb(2 * order, order))
        correlation = np.correlate(weights, weights, "full")
        scatter = float(np.sqrt((correlation**2).sum() / (2 * (samples - order))))
        yield scatter, partial(_by_differences, order)
    for apart in KNOTS:
        spans = round((samples - 1) / apart)
        spare = samples - spans - SPLINE_DEGREE
        if spans > 1 and spare >= MOST_LOST:
            yield float(1 / np.sqrt(2 * spare)), partial(_by_splines, spans, spare)


def _by_differences(order: int, values: Array) -> Array:
    return _deviation(np.diff(values, order, axis=0) ** 2 / comb(2 * order, order))


def _by_splines(spans: int, spare: int, values: Array) -> Array:
    from scipy.interpolate import make_lsq_spline

    samples = len(values)
    t = np.arange(samples, dtype=float)
    ends = np.ones(SPLINE_DEGREE)
    knots = np.concatenate([0 * ends, np.linspace(0, t[-1], spans + 1), t[-1] * ends])
    left = values - make_lsq_spline(t, values, knots, SPLINE_DEGREE)(t)
    return _deviation(left**2 * samples / spare)


def _deviation(squares: Array) -> Array:
    """Root mean square of errors by their squares (n, columns), robust against single jumps."""
    return np.minimum(np.sqrt(squares.mean(axis=0)), ROBUST * np.sqrt(np.median(squares, axis=0)) / NORMAL)


def _rounding_step(column: Array) -> float:
    levels = np.unique(column)
    if len(levels) < 2:
        return 0.0
    return max(_code_step(levels), _decimal_step(levels))


def _code_step(levels: Array) -> float:
    """The step that divides all levels, ascending, as codes of an encoder."""
    least = float(np.diff(levels).min())
    for part in PARTS if np.ptp(levels) < MOST_STEPS * least else ():
        counts = (levels - levels[0]) / (least / part)
        step = float(np.ptp(levels) / np.round(counts[-1]))  # the least difference is itself a little off
        if (np.abs((levels - levels[0]) / step - np.round(counts)) < WHOLE).all():
            return step
    return 0.0


def _decimal_step(levels: Array) -> float:
    """The decimal place of rounding of all levels."""
    for digits in range(MOST_DIGITS):
        scaled = levels * 10.0**digits
        if np.diff(scaled).min() < 0.5:  # two of them would be one: all that is small is near zero
            continue
        if (np.abs(scaled - np.round(scaled)) < WHOLE).all() and np.abs(scaled).max() < 1 / np.finfo(float).eps / 1e3:
            return 10.0**-digits
    return 0.0
