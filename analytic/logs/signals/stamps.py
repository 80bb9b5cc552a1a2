"""Logs with unequal steps in time: values at equal steps, from the stamps as they are or from the numbers of the rows.

Either the stamps are right and the sampling jitters, or the sampling is regular and the stamps jitter, as those of a
receiver. The wrong reading moves every value by an error of the stamp times its rate, which looks like noise. So the
smoother reading is taken. If neither is clearly smoother, this error counts as noise.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from loopcheck.analytic.logs.signals.noise import noise
from loopcheck.robots.arrays import AnyArray, Array, Times
from loopcheck.robots.errors import ShapeError
from loopcheck.robots.log import Log

CLEAR = 1.2
"""Least ratio of the noise in two readings of the stamps that decides between them [-]."""
MOST_NAMED = 100.0
"""Largest ratio that is stated [-]."""
REGULAR = 0.5
"""Largest deviation of a stamp from its grid point, over the step, in a regular sampling [-]: beyond, the number of the
grid point is unknown."""
FOLLOWED = 0.2
"""Part of a stamp's deviation by which the clock follows it [-]."""
AGREEING = 5
"""Neighbouring rows whose majority decides on a missing sample [-]."""
REFINED = 5
"""Most repetitions of the numbering of the rows [-]."""
GAP = 1.5
"""Least step over the usual step that is a gap [-]."""
HALVED, BRIDGED = 15.0, 4.0
"""Change of a cubic with every second sample, over its error: between neighbours, and in a gap of one sample [-]."""
ROUNDED = 1e-6
"""Distance of a grid point from the first or last stamp by round-off, over the step [-]."""
LONGEST = 100
"""Largest ratio of grid points to rows [-]: a clock that jumps, as when it is set, exceeds any memory."""
DRAWN = 8
"""Columns of noise that measure the smoothing by interpolation [-]."""
COLUMNS = ("q", "qd", "qdd", "effort")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    """Rows of a log as samples of a regular grid."""

    rows: AnyArray
    """Number of the grid point of each row [-], shape (nt,)."""
    t: Times
    """Times of all grid points [s], shape (n,)."""

    @property
    def dt(self) -> float:
        """Step [s]."""
        return float(self.t[1] - self.t[0])

    def late(self, stamps: Times) -> Times:
        """Deviation of each stamp from its grid point [s], shape (nt,)."""
        return stamps - self.t[self.rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """Columns of a log at equal steps, and their noise."""

    t: Times
    """Times [s], shape (n,)."""
    values: Mapping[str, Array]
    noise: Mapping[str, Array]
    """Standard deviation of each column, without the smoothing by interpolation [units of the columns]."""
    unseen: Mapping[str, Array]
    """The part that the columns do not show: smoothed noise, and errors of the interpolation [the same]."""


def at_equal_steps(log: Log) -> tuple[Log, str]:
    """A log at equal steps in time, and a phrase that states the reading of its stamps.

    Returns:
        The log itself and an empty phrase, if its steps are equal. Otherwise values by cubic interpolation; `errors`
        contains what the noise of the columns does not show.

    Raises:
        ShapeError: If nearly all samples of the regular grid are missing.
    """
    if log.has_equal_steps:
        return log, ""
    _want_continuous(log)
    grid = _grid_of(log.t)
    late = grid.late(log.t)
    jitter = float(np.sqrt((late**2).mean()))
    what = f"steps between {np.diff(log.t).min():.3g} and {np.diff(log.t).max():.3g} s"
    if np.abs(late).max() > REGULAR * grid.dt:
        even = np.linspace(log.t[0], log.t[-1], len(log.t))
        return _taken(log, _reading(log, log.t, even)), f"{what}: read at their stamps"
    missing = len(grid.t) - len(log.t)
    what += f", {missing} of {len(grid.t)} samples missing" * (missing > 0)
    within = (grid.t >= log.t[0] - ROUNDED * grid.dt) & (grid.t <= log.t[-1] + ROUNDED * grid.dt)
    stamped = _reading(log, log.t, grid.t[within])
    regular = _reading(log, grid.t[grid.rows], grid.t)
    clock = float(jitter / (grid.dt * np.std(grid.rows) * np.sqrt(len(log.t))))
    ratio = _roughest(log, stamped, regular, jitter)
    times = max(ratio, 1 / ratio)
    smoother = f"the noise is {'over ' * (times > MOST_NAMED)}{min(times, MOST_NAMED):.3g} times smaller"
    if ratio > CLEAR:
        return replace(
            _taken(log, regular), clock=clock
        ), f"{what}: read as a regular grid, {smoother} than at their stamps"
    if ratio < 1 / CLEAR:
        return _taken(log, stamped), f"{what}: read at their stamps, {smoother} than on a regular grid"
    text = (
        f"{what}: stamps and a regular grid are equally smooth: their difference of {jitter:.2g} s rms counts as noise"
    )
    return replace(_taken(log, stamped, jitter), clock=clock), text


def _want_continuous(log: Log) -> None:
    steps = np.diff(log.t)
    usual, k = float(np.median(steps)), int(steps.argmax())
    if log.t[-1] - log.t[0] > LONGEST * len(log.t) * usual:
        raise ShapeError(
            f"log '{log.name}': must be continuous, got a gap of {steps[k]:.3g} s after t = {log.t[k]:.6g} s beside "
            f"steps of {usual:.3g} s. Does a stamp lack, or was the clock set? Cut the log there"
        )


def _grid_of(t: Times) -> _Grid:
    """The regular grid with the smallest deviation from the stamps, with all rows or with gaps."""
    steps = np.diff(t)
    usual = float(np.median(steps))
    ahead = _followed(t, usual)
    back = _followed(-t[::-1], usual)
    grids = [_refined(t, rows) for rows in (np.arange(len(t)), ahead, back[-1] - back[::-1])]
    return min(grids, key=lambda grid: float((grid.late(t) ** 2).sum()))


def _followed(t: Times, step: float) -> AnyArray:
    """Numbers of rows [-], shape (nt,), by a clock that follows the stamps: single jitters move it little.

    Args:
        step: Usual step [s].
    """
    rows, clock = [0], float(t[0])
    for stamp in t[1:]:
        steps = max(round((float(stamp) - clock) / step), 1)
        clock += steps * step
        clock += FOLLOWED * (float(stamp) - clock)
        rows.append(rows[-1] + steps)
    return np.array(rows)


def _refined(t: Times, rows: AnyArray) -> _Grid:
    """A numbering that agrees with the straight line through its stamps, except single ones."""
    from scipy.ndimage import median_filter

    for _ in range(REFINED):
        step, start = np.polynomial.polynomial.polyfit(rows, t, 1)[::-1]
        least = np.arange(len(t))
        skipped = median_filter(np.round((t - start) / step).astype(int) - least, AGREEING, mode="nearest")
        better = np.maximum.accumulate(skipped) + least
        better -= better[0]
        if (better == rows).all():
            break
        rows = better
    step, start = np.polynomial.polynomial.polyfit(rows, t, 1)[::-1]
    return _Grid(rows=rows, t=start + step * np.arange(rows[-1] + 1, dtype=np.float64))


def _reading(log: Log, stamps: Times, t: Times) -> _Reading:
    """Columns at times, by a cubic through the samples at their stamps."""
    columns = {name: values for name in COLUMNS if (values := getattr(log, name)) is not None}
    values = {name: _cubic(stamps, x, t) for name, x in columns.items()}
    white = np.random.default_rng(0).normal(size=(len(stamps), DRAWN))
    kept = min(float(np.mean(noise(_cubic(stamps, white, t)) / noise(white))), 1.0)
    shown = {name: noise(x) for name, x in values.items()}
    errors = {name: _interpolation_error(stamps, x, t) for name, x in columns.items()}
    return _Reading(
        t=t,
        values=values,
        noise={name: x / kept for name, x in shown.items()},
        unseen={name: np.hypot(shown[name] * np.sqrt(kept**-2 - 1), errors[name]) for name in columns},
    )


def _cubic(stamps: Times, values: Array, t: Times) -> Array:
    from scipy.interpolate import CubicSpline

    return np.asarray(CubicSpline(stamps, values)(np.clip(t, stamps[0], stamps[-1])))


def _interpolation_error(stamps: Times, values: Array, t: Times) -> Array:
    """Error of the cubic at times, by its change with every second sample, rms; the largest of gaps and the rest."""
    if np.array_equal(stamps, t):
        return np.zeros(values.shape[1])
    second = np.unique(np.r_[np.arange(0, len(stamps), 2), len(stamps) - 1])
    change = _cubic(stamps, values, t) - _cubic(stamps[second], values[second], t)
    steps = np.diff(stamps)
    in_gap = (steps > GAP * np.median(steps))[np.clip(np.searchsorted(stamps, t) - 1, 0, len(steps) - 1)]
    parts = ((change[~in_gap], HALVED), (change[in_gap], BRIDGED))
    return np.max([np.sqrt((part**2).mean(axis=0)) / divisor for part, divisor in parts if len(part)], axis=0)


def _roughest(log: Log, stamped: _Reading, regular: _Reading, jitter: float) -> float:
    """Noise of the positions at their stamps over that of a regular grid [-], where the stamps matter most."""
    least = np.maximum(np.minimum(stamped.noise["q"], regular.noise["q"]), np.finfo(float).tiny)
    column = int(np.argmax(jitter * _rates(log.t, log.q) / least))
    floor = np.finfo(float).eps * np.abs(log.q[:, column]).max()
    return float((stamped.noise["q"][column] + floor) / (regular.noise["q"][column] + floor))


def _rates(t: Times, values: Array) -> Array:
    """Root mean square of the rates of columns [per s], smoothed over a few steps."""
    from scipy.interpolate import make_lsq_spline

    spans = max(len(t) // 8, 1)
    knots = np.r_[[t[0]] * 4, np.quantile(t, np.arange(1, spans) / spans), [t[-1]] * 4]
    return np.sqrt((make_lsq_spline(t, values, knots, 3)(t, 1) ** 2).mean(axis=0))


def _taken(log: Log, reading: _Reading, jitter: float = 0.0) -> Log:
    """A log by a reading of its stamps; jitter [s] of its stamps counts as noise."""
    columns: dict[str, Any] = dict(reading.values)
    moved = {name: jitter * _rates(log.t, getattr(log, name)) for name in reading.values}
    return replace(
        log,
        t=reading.t,
        unused={},
        **columns,
        readings={kind: _linear(log.t, x, reading.t) for kind, x in log.readings.items()},
        wrenches={name: _linear(log.t, x, reading.t) for name, x in log.wrenches.items()},
        errors={name: np.hypot(x, moved[name]) for name, x in reading.unseen.items()},
    )


def _linear(stamps: Times, values: Array, t: Times) -> Array:
    """Columns at times, linear between samples; NaN beside missing values."""
    return np.stack([np.interp(t, stamps, column) for column in values.T], axis=1)
