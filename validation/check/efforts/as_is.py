"""Errors of unmodified simulations: residual efforts of their logs after the initial transient."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import comb

import numpy as np

from loopcheck.analytic.dynamics.powers import scale_of
from loopcheck.analytic.logs.closing.closed_log import ClosedLog, closed_log
from loopcheck.analytic.logs.evaluation import Slopes, evaluate
from loopcheck.analytic.logs.residual import MARGIN, evenly, residual_efforts
from loopcheck.analytic.logs.signals.filters import Filter, step_filter
from loopcheck.robots.arrays import AnyArray, Array, Efforts, EffortSeries, JointPositions, Times
from loopcheck.robots.efforts import FOLLOWING, AsIs
from loopcheck.robots.errors import HarnessError, listed
from loopcheck.robots.log import UNMODELLED, Held, Log
from loopcheck.robots.mechanism import Mechanism
from loopcheck.validation.common.limits import (
    DEPENDS_ON_BANDWIDTH,
    FEWEST_ROUND_OFF,
    FEWEST_SCALED,
    FEWEST_SETTLED,
    RUNNING_MEDIAN,
    SAME_READING,
    SEPARABLE,
    SETTLED,
    SETTLED_RANGE,
    SMALLEST_TRANSIENT,
)
from loopcheck.validation.common.readings import differences

AT_ONCE = 2000
"""Steps per evaluation: thirty bodies with as many dofs need 100 kB each."""
ORDER = 6
"""Order of the time differences that cancel the initial transient and keep all round-off."""
MEDIAN_OF_NORMAL = 0.6745
"""Median of the magnitude of a normal variable, over its standard deviation [-]."""
NOTABLE = 0.05
"""Largest part of contacts, limits and dry friction in an effort that goes unmentioned for a drive that lags [-]."""
NAMED = 4
"""Largest number of named actuators at a limit of their range."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Residual efforts over time."""

    t: Array
    """Times [s], shape (n,)."""
    residual: Array
    """Applied effort minus the effort required by the closed loop [N or N m], shape (n, na)."""
    needed: Array
    """Effort required by the closed loop [N or N m], shape (n, na)."""
    scale: Array
    """Scale of the errors of each actuator [N or N m], shape (na,)."""
    floor: Array
    """Noise floor of the root mean square [N or N m], shape (na,); NaN if the floors are not estimated."""
    floor_of_largest: Array
    """Noise floor of the largest value [N or N m], shape (na,); NaN likewise."""
    chatter: Array
    """Largest contribution of oscillation from step to step [N or N m], shape (na,); NaN likewise."""
    internal: Array
    """Internal load of redundant actuators [N or N m], shape (n, na)."""
    left_out: Array
    """Largest effort equivalent to reported contacts, limits and dry friction, not checked, shape (na,)."""
    derivatives: Slopes | None = None
    """Derivatives of the residual by the columns of the log; missing if the floors are not estimated."""

    def relative(self, effort: EffortSeries) -> Array:
        """Efforts over the scales of their actuators [-], shape (n, na); zero for actuators without load."""
        return np.divide(effort, self.scale, out=np.zeros_like(effort), where=self.scale > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """Error of a run after its initial transient."""

    rms: Array
    """Root mean square of each actuator's residual effort [N or N m], shape (na,)."""
    largest: Array
    """The largest [N or N m], shape (na,); after the shortest transient where the transient is not separable, and of a
    redundant robot for the drives that hold the motion worst. See `bounds`."""
    floor: Array
    """Noise floor of the root mean square [N or N m], shape (na,)."""
    floor_of_largest: Array
    """Noise floor of the largest value [N or N m], shape (na,); with half of the range of the largest value where the
    transient is not separable, or different drives can hold the motion."""
    scale: Array
    """Scale of the errors of each actuator, from the judged motion [N or N m], shape (na,)."""
    internal: Array
    """Largest internal load of redundant actuators [N or N m], shape (na,)."""
    start_peak: Array
    """Largest residual effort before the window [N or N m], shape (na,)."""
    window: float
    """Time from which the run is judged: duration of the visible initial transient, half of the motion if `bounds`, and
    infinite if no part is judged [s]."""
    reason: str = ""
    """Reason of a missing verdict: not followed or not settled; empty with a verdict."""
    bounds: bool = False
    """Whether a run that follows its motion does not settle: `largest` is then that of its second half, with the rest
    of the transient. It bounds the error: an agreement holds, a larger error shows nothing."""
    note: str = ""
    """Remark for the reader of the numbers."""
    derivatives: Slopes | None = None
    """Derivatives of the residual by the columns of the log, for the floors of other runs along the motion."""


def residual_series(mechanism: Mechanism, log: Log, guess: JointPositions) -> Series:
    """Residual efforts of every step of a log, with the engine's notes on effects outside the equations.

    Args:
        guess: Joint positions near the first sample.

    Raises:
        HarnessError: If the log does not fit the robot, or is too short.
    """
    return _series(closed_log(mechanism, log, guess))


def step_residuals(mechanism: Mechanism, log: Log, guess: JointPositions) -> EffortSeries:
    """Residual efforts alone of each step of a log with velocities, without a limit on the number of steps.

    Args:
        guess: Joint positions near the first sample.

    Returns:
        Logged minus required effort [N or N m], shape (n, na).

    Raises:
        HarnessError: If the log does not fit the robot, or is too short.
    """
    closed, kernels = closed_log(mechanism, log, guess), step_filter(log.dt, uses_velocities=True)
    bases = kernels.bases(len(log.t))
    parts = np.array_split(bases, -(-len(bases) // AT_ONCE))
    return np.concatenate([evaluate(closed, kernels, part).residual for part in parts])


def _series(
    closed: ClosedLog, most: int | None = None, start: float = -np.inf, derivatives: Slopes | None = None
) -> Series:
    """Residual efforts of the steps from a start time on, at most so many, with floors by known derivatives."""
    log = closed.log
    effort_time = log.effort_time if isinstance(log.effort_time, Held) else Held(log.dt)
    judged = residual_efforts(closed, effort_time, start=start, noiseless=True, most=most, derivatives=derivatives)
    return Series(
        t=judged.motion.t,
        residual=judged.residual,
        needed=judged.needed,
        scale=judged.scale,
        floor=judged.floor.rms,
        floor_of_largest=judged.floor.largest,
        chatter=judged.floor.largest_chatter,
        internal=judged.internal,
        left_out=np.abs(log.unmodelled).max(axis=0),
        derivatives=judged.derivatives,
    )


def _without_floors(closed: ClosedLog, kernels: Filter, most: int | None) -> Series:
    """Residual efforts of the steps, at most so many, without the floors, whose derivatives take most of the time."""
    judged = evaluate(closed, kernels, evenly(kernels.bases(len(closed.log.t)), most))
    none = np.full(judged.needed.shape[1], np.nan)
    return Series(
        t=judged.t,
        residual=judged.residual,
        needed=judged.needed,
        scale=scale_of(judged.states.kinematics_of(closed.mechanism), judged.states.qdd).scale,
        floor=none,
        floor_of_largest=none,
        chatter=none,
        internal=judged.internal,
        left_out=none,
    )


def settled(
    mechanism: Mechanism,
    as_is: AsIs,
    *,
    most: int | None = None,
    start: float = -np.inf,
    derivatives: Slopes | None = None,
) -> Settled:
    """Error of a run after its initial transient.

    The run starts again from the exact state in the middle of the motion. The transient lasts as long as both runs
    differ by more than a tenth of the remaining error.

    Args:
        most: Largest number of judged samples of each run, evenly spread; by default all samples.
        start: Samples before this time are not judged [s].
        derivatives: Those of an earlier run along the motion; by default of this run, which takes most of the time.
    """
    try:
        closed = closed_log(mechanism, as_is.log, as_is.log.q[0])
        kernels = step_filter(closed.log.dt, uses_velocities=closed.qd is not None)
        again = closed_log(mechanism, as_is.restarted, as_is.restarted.q[0], alike=closed)
        second = evaluate(again, kernels, evenly(kernels.bases(len(again.log.t)), most))
        has_floors = _has_few(second.t)
        whole = _series(closed, most, derivatives=derivatives) if has_floors else _without_floors(closed, kernels, most)
    except HarnessError as error:
        reasons = [not_followed(as_is), f"its log cannot be judged: {error}"]
        return _nothing(mechanism.na, "; ".join(reason for reason in reasons if reason))
    # Where the transient ends is not seen in one run: its error may be as large as what remains. Two runs that began at
    # different times differ by their transients alone, so their difference shows it, whatever the remaining error is.
    beside = _beside(closed, kernels, whole, second.t)
    window, lasts = start_window(beside, second.t, second.residual)
    begin, lost = max(whole.t[0], start), not_followed(as_is)
    since, middle = max(whole.t[0] + window, begin), max(second.t[0], begin)
    settles, is_long = ((whole.t >= time).sum() >= FEWEST_SETTLED for time in (since, middle))
    bounds = bool(is_long and not settles and not lost)
    judged = whole.t >= (since if settles else middle if bounds else whole.t[0])
    window = (middle if bounds else since) - whole.t[0]
    residual, before = whole.residual[judged], whole.residual[~judged]
    # The noise floors of a window are those of its own samples: the initial push is rougher, and would excuse the rest.
    is_all = bool(judged.all())
    later = whole
    if not (has_floors and is_all):
        known, few = derivatives or whole.derivatives, most if is_all else FEWEST_SCALED
        later = _series(closed, few, whole.t[judged][0], known)
    start_peak = np.abs(before).max(axis=0, initial=0.0)
    lasting = [actuator.name for actuator, is_seen in zip(mechanism.actuators, lasts, strict=True) if is_seen]
    apart, early, late = _errors_of_windows(whole, beside, second.t, second.residual, later.floor_of_largest)
    apart &= settles  # without an end of the transient both windows are the same
    largest = np.where(apart, early, np.abs(residual).max(axis=0))
    by_drives = {", ".join(as_is.drives): largest, **_held_otherwise(mechanism, as_is, whole.t[judged][0], most)}
    least, greatest = np.min([*by_drives.values()], axis=0), np.max([*by_drives.values()], axis=0)
    notes = (
        _bound(later, greatest) if bounds else "",
        _note(as_is, later, np.inf if bounds else window, start_peak, lasting),
        _not_separable(mechanism, later, apart, early, late),
        _at_bandwidths(mechanism, as_is, later, greatest),
        _by_drives(mechanism, later, by_drives),
        _other_readings(as_is.log, later.scale),
    )
    return Settled(
        rms=np.sqrt((residual**2).mean(axis=0)),
        largest=greatest,
        floor=later.floor,
        floor_of_largest=later.floor_of_largest + np.where(apart, (early - late) / 2, 0.0) + (greatest - least) / 2,
        scale=later.scale,
        internal=np.abs(whole.internal[judged]).max(axis=0),
        start_peak=start_peak,
        window=window,
        reason="; ".join(reason for reason in (lost, "" if settles else _not_settled(as_is)) if reason),
        bounds=bounds,
        note="; ".join(part for part in notes if part),
        derivatives=later.derivatives,
    )


def _held_otherwise(mechanism: Mechanism, as_is: AsIs, begin: float, most: int | None) -> dict[str, Efforts]:
    """Largest residual efforts from a time on of runs held by other drives, by the names of these drives."""
    largest = {}
    for drives, log in as_is.others.items():
        with suppress(HarnessError):  # drives that lose the motion do not hold it
            closed = closed_log(mechanism, log, log.q[0])
            run = _without_floors(closed, step_filter(log.dt, uses_velocities=closed.qd is not None), most)
            largest[drives] = np.abs(run.residual[run.t >= begin]).max(axis=0)
    return largest


def _by_drives(mechanism: Mechanism, series: Series, largest: Mapping[str, Efforts]) -> str:
    """Largest error of the actuator that depends most on the drives that hold the motion, for each choice."""
    relative = np.array([series.relative(values) for values in largest.values()])
    k = int(np.argmax(np.ptp(relative, axis=0)))
    if np.ptp(relative[:, k]) <= series.relative(series.floor_of_largest)[k]:
        return ""
    each = ", ".join(f"{names} {error:.2g}" for names, error in zip(largest, relative[:, k], strict=True))
    return (
        "the error depends on the drives that hold the motion; largest error of "
        f"{mechanism.actuators[k].name} over the scale, held by: {each}"
    )


def _at_bandwidths(mechanism: Mechanism, as_is: AsIs, series: Series, largest: Efforts) -> str:
    """Bandwidths of the controller at which a run follows its motion, and the errors if they depend on them."""
    if not as_is.bandwidth > 0:
        return ""
    width, slow = as_is.bandwidth, as_is.slower
    lost = f", not at {as_is.not_at:.3g}" if as_is.not_at > 0 else ""
    followed = f"followed at {f'{slow[0]:.3g} to ' if slow else ''}{width:.3g} rad/s{lost} (this motion)"
    if slow is None:
        return followed
    try:
        closed = closed_log(mechanism, slow[1], slow[1].q[0])
        run = _without_floors(closed, step_filter(slow[1].dt, uses_velocities=closed.qd is not None), FEWEST_SCALED)
    except HarnessError:  # it follows, but its log cannot be judged
        return followed
    at_slow = np.abs(run.residual[run.t >= series.t[0]]).max(axis=0)
    k = int(np.argmax(series.relative(largest)))
    fast, slowly, floor = (float(series.relative(values)[k]) for values in (largest, at_slow, series.floor_of_largest))
    if max(fast, slowly) <= DEPENDS_ON_BANDWIDTH * min(fast, slowly) + floor:
        return followed
    cause = ": the controller works against the softness of the loops" if fast > slowly else ""
    errors = f"{slowly:.2g} at {slow[0]:.3g} rad/s, {fast:.2g} at {width:.3g} rad/s"
    return f"{followed}; largest error of {mechanism.actuators[k].name} over the scale {errors}{cause}"


def _beside(closed: ClosedLog, kernels: Filter, whole: Series, t: Array) -> Series:
    """A run at the steps on both sides of some times (n,); faster changes between these steps are lost."""
    every = kernels.bases(len(closed.log.t))
    if len(whole.t) == len(every):
        return whole
    place = np.round((t - closed.log.t[0]) / closed.log.dt - kernels.late, 6)
    bases = np.unique(np.clip(np.concatenate([np.floor(place), np.ceil(place)]), every[0], every[-1]))
    beside = evaluate(closed, kernels, bases)
    return replace(whole, t=beside.t, residual=beside.residual, needed=beside.needed)


def _errors_of_windows(
    whole: Series, beside: Series, t: Times, residual: EffortSeries, floor: Efforts
) -> tuple[AnyArray, Array, Array]:
    """Actuators without a separable transient, and the largest errors after the shortest and the longest transient.

    Args:
        whole: The run from the first sample.
        beside: The same run at the times of the second run.
        t: Times of the second run [s], shape (n,).
        residual: Its residual efforts [N or N m], shape (n, na).
        floor: Noise floor of the largest value.

    Returns:
        Flags, and the errors [N or N m], each of shape (na,).
    """
    short, long = SETTLED_RANGE
    shortest = start_window(beside, t, residual, part=short)[0]
    longest = min(start_window(beside, t, residual, part=long, median=1)[0], (whole.t[-1] - whole.t[0]) / 2)
    early, late = (
        np.abs(whole.residual[whole.t >= whole.t[0] + window]).max(axis=0, initial=0.0)
        for window in (min(shortest, longest), longest)
    )
    apart = (early > SEPARABLE * late) & (early - late > floor) & (whole.relative(early) > SMALLEST_TRANSIENT)
    return apart, early, late


def start_window(
    whole: Series, t: Times, residual: EffortSeries, *, part: float = SETTLED, median: int = RUNNING_MEDIAN
) -> tuple[float, AnyArray]:
    """Length of the initial transient in the residual efforts, and actuators with a transient of unlimited length.

    The transient of an actuator is over when it changes no error by a tenth of the worst actuator's error, and no
    smaller error by a tenth of that error.

    Args:
        whole: The run from the first sample.
        t: Times of the run from the exact state in the middle [s], shape (n,).
        residual: Its residual efforts [N or N m], shape (n, na).
        part: Largest change by a transient that is over, relative to the remaining error [-].
        median: Samples of the running median of the change [-].

    Returns:
        Length [s], infinite if up to the last sample, and flags of the actuators with a transient up to the last sample
        [-], shape (na,).
    """
    from scipy.ndimage import median_filter  # only simulations as they are pay for its import

    along = np.stack([np.interp(t, whole.t, column) for column in whole.residual.T], axis=1)
    difference, error = whole.relative(residual - along), np.abs(whole.relative(along))
    noise = np.sqrt(2) * whole.relative(whole.chatter) if _has_few(t) else _round_off(difference)
    # its edge repeats the first sample, so that a transient of one step stays: forces of loops build up in one step
    difference = median_filter(np.abs(difference), (median, 1), mode="nearest")
    worst = _start_window(t, difference.max(axis=1), error.max(axis=1), float(noise.max(initial=0.0)), part)
    columns = zip(difference.T, error.T, noise, strict=True)
    own = np.array([_start_window(t, *column, part) for column in columns])
    over = np.isfinite(own)
    return max(worst, *own[over], 0.0), ~over


def _has_few(t: Times) -> bool:
    """Whether samples are too few to estimate round-off from them."""
    return len(t) // 4 < FEWEST_ROUND_OFF


def _round_off(difference: Array) -> Array:
    """Largest difference due to the round-off of two runs [-], (na,): the alternating part in their last quarter.

    A transient is smooth there or over; in single precision two runs always differ in their last digits.

    Args:
        difference: Difference of their residual efforts, over the scale [-], shape (n, na).
    """
    last = difference[-(len(difference) // 4) :]
    alternating = np.abs(np.diff(last, ORDER, axis=0))
    of_median = np.median(alternating, axis=0) / MEDIAN_OF_NORMAL  # single large steps do not count
    rms = np.where(of_median > 0, of_median, np.sqrt((alternating**2).mean(axis=0)))
    sigma = rms / np.sqrt(comb(2 * ORDER, ORDER))
    noise: Array = MARGIN * sigma * np.sqrt(2 * np.log(len(difference)))
    return noise


def _start_window(t: Array, difference: Array, error: Array, noise: float, part: float) -> float:
    """Time until differences (n,) fall below an error (n,) and the noise [s]; infinite if they never do."""
    left = np.sqrt(np.cumsum(error[::-1] ** 2)[::-1] / np.arange(len(error), 0, -1))
    seen_later = np.maximum.accumulate(difference[::-1])[::-1]
    over = np.flatnonzero(seen_later <= np.maximum(part * left, max(SMALLEST_TRANSIENT, noise)))
    if not over.size or len(difference) - over[0] < FEWEST_SETTLED:
        return float("inf")
    return float(t[over[0]] - t[0])


def not_followed(as_is: AsIs) -> str:
    """Reason of a run whose drives leave the motion, in words; empty if they follow it."""
    if as_is.follows:
        return ""
    worst = float(as_is.following.max())
    limits = f", with {_at_limits(as_is)}" if as_is.at_limits else _left_out(as_is.log)
    name = f"'{as_is.drives[int(np.argmax(as_is.following))]}'" if as_is.drives else "a drive"
    controller = f" by computed torque at any bandwidth up to {as_is.bandwidth:.3g} rad/s" * (as_is.bandwidth > 0)
    return (
        f"not followed{controller}: {name} must stay within {100 * FOLLOWING:g} % of its stroke, got "
        f"{100 * worst:.2g} %{limits}"
    )


def _left_out(log: Log) -> str:
    """Largest effort equivalent to contacts, limits and dry friction over that of its actuator, in words."""
    forces, efforts = (np.abs(np.nan_to_num(values)).max(axis=0) for values in (log.unmodelled, log.effort))
    parts = np.divide(forces, efforts, out=np.zeros_like(forces), where=efforts > 0)
    k = int(np.argmax(parts))
    if parts[k] <= NOTABLE:
        return ""
    times = f"{parts[k]:.2g} times the largest effort of {log.actuators[k]}"
    return f"; contacts, limits or dry friction act with up to {times}"


def _at_limits(as_is: AsIs) -> str:
    most = sorted(as_is.at_limits.items(), key=lambda item: -item[1])
    named = listed([f"{name} {count}" for name, count in most], NAMED)
    return f"{sum(as_is.at_limits.values())} controls or forces at a limit of their range ({named})"


def _not_settled(as_is: AsIs) -> str:
    half = (as_is.log.t[-1] - as_is.log.t[0]) / 2
    times = f", {half / as_is.timeconst:.3g} time constants of its loops" if np.isfinite(as_is.timeconst) else ""
    return f"not settled: the initial transient is still visible after half of the motion ({half:.3g} s{times})"


def _bound(series: Series, largest: Efforts) -> str:
    worst = float(series.relative(largest).max())
    return f"its second half, with the rest of the transient, bounds the error to {worst:.2g} of the scale"


def _note(as_is: AsIs, series: Series, window: float, start_peak: Array, lasting: Sequence[str]) -> str:
    parts = []
    if np.isfinite(window):
        times = f" ({window / as_is.timeconst:.3g} time constants of its loops)" if np.isfinite(as_is.timeconst) else ""
        before = float(series.relative(start_peak).max())
        parts.append(
            f"judged from {window:.3g} s on{times}; largest error before, in the initial transient: {before:.2g}"
        )
        if lasting:
            parts.append(
                f"the initial transient lasts longer for actuators whose error is much smaller: {', '.join(lasting)}"
            )
    if series.left_out.any():
        size = float(series.relative(series.left_out).max())
        parts.append(
            f"contacts, limits and dry friction are not checked: the values of the engine are used, up to {size:.2g} "
            "of the scale"
        )
    if as_is.at_limits and not not_followed(as_is):  # which says so itself
        parts.append(_at_limits(as_is))
    return "; ".join(parts)


def _not_separable(mechanism: Mechanism, series: Series, apart: AnyArray, early: Array, late: Array) -> str:
    if not apart.any():
        return ""
    k = int(np.argmax(np.where(apart, series.relative(early), -1.0)))
    before, after = (float(series.relative(values)[k]) for values in (early, late))
    return (
        f"transient not separable: largest error of {mechanism.actuators[k].name} {before:.2g} of the scale after the "
        f"shortest transient, {after:.2g} after the longest"
    )


def _other_readings(log: Log, scale: Array) -> str:
    """Differences of the engine's other readings from the applied effort, as a text."""
    others = {kind: values for kind, values in log.readings.items() if kind != UNMODELLED}
    off = {kind: size for kind, size in differences(log.effort, others, scale).items() if size > SAME_READING}
    figures = ", ".join(f"{kind} {size:.2g}" for kind, size in off.items())
    return f"readings that differ from the applied effort, rms difference over the scale: {figures}" if off else ""


def _nothing(na: int, reason: str) -> Settled:
    none = np.full(na, np.nan)
    return Settled(
        rms=none,
        largest=none,
        floor=none,
        floor_of_largest=none,
        scale=none,
        internal=none,
        start_peak=none,
        window=float("nan"),
        reason=reason,
    )
