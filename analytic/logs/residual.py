"""Residual efforts: the logged efforts minus the required efforts of the closed loop for the logged motion.

The motion judged is the log's own. Beside the residual stands its floor, the part that the log itself explains: noise
of its columns, propagated through the filter and the equations, and the truncation of the filter.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from loopcheck.analytic.logs.closing.closed_log import ClosedLog, as_motion
from loopcheck.analytic.logs.closing.closed_motion import States
from loopcheck.analytic.logs.evaluation import (
    Slopes,
    evaluate,
    evaluate_together,
    noise_rms,
    slopes,
)
from loopcheck.analytic.logs.signals.filters import Filter, Kernel, interpolating_filter, smoothing_filter, step_filter
from loopcheck.robots.arrays import AnyArray, Array, EffortSeries
from loopcheck.robots.errors import ShapeError
from loopcheck.robots.log import WHOLE, EffortTime, Instantaneous
from loopcheck.robots.motion import Motion

LEAST = 1e-150
"""Least effort that others are divided by [N or N m]; the square of its inverse is finite."""
MARGIN = 1.5
"""Floor over the expected error of a log [-]."""
ROUND_OFF = 1e-11
"""Error of the equations themselves, over the scale of the effort [-]: their sum of terms agrees to that."""
INTERPOLATING = (3, 4, 5, 6)
"""Half windows of polynomials through all samples."""
SMOOTHING = (3, 4, 5, 6, 8, 10, 12, 15, 19, 24, 30, 38, 48, 60, 75, 94, 118, 148)
"""Half windows of polynomials nearly through the samples."""
GROWTH = 4
"""Least power of the window's length with which the truncation error grows [-]."""
LONGEST = 1 / 3
"""Window over the log at most [-]."""
FEW = 60
"""Samples for the comparison of filters [-]."""
FEWER = 12
"""Samples for the differentiation of the equations [-]."""
SCALED = 400
"""Samples for the scale of a later part of a residual, and for the half-step lag [-]."""
NOISELESS = 1e-12
"""Noise over the efforts below which a log counts as free of noise [-]."""
FEWEST_JUDGED = 6
"""Samples to judge at least [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Part of a residual that the log itself explains, an entry for each actuator."""

    noise: Array
    """Expected rms by the noise of the columns [N or N m], shape (na,)."""
    truncation: Array
    """Expected rms by the truncation of the filter and the error of the clock [N or N m], shape (na,)."""
    largest_truncation: Array
    """The largest over time [N or N m], shape (na,)."""
    reference: Array
    """Error of the equations themselves [N or N m], shape (na,)."""
    chatter: Array
    """Expected rms by alternating values in the columns, noise or motion [N or N m], shape (na,)."""
    samples: int
    """Number of judged samples."""

    @property
    def rms(self) -> Array:
        """Root mean square below which a residual has no meaning [N or N m], shape (na,)."""
        return MARGIN * np.sqrt(self.noise**2 + self.truncation**2 + self.reference**2)

    @property
    def largest(self) -> Array:
        """Largest residual below which it has no meaning [N or N m], shape (na,)."""
        noise = self._largest_of(self.noise)
        return MARGIN * np.sqrt(noise**2 + self.largest_truncation**2 + self.reference**2)

    @property
    def largest_chatter(self) -> Array:
        """Largest effect of whatever alternates in the columns [N or N m], shape (na,)."""
        return MARGIN * self._largest_of(self.chatter)

    def _largest_of(self, rms: Array) -> Array:
        largest: Array = rms * np.sqrt(2 * np.log(max(self.samples, 2)))
        return largest


@dataclass(frozen=True, slots=True, kw_only=True)
class Residual:
    """Logged against required efforts, under an assumption about the time of the efforts."""

    effort_time: EffortTime
    """When the efforts are taken to have acted."""
    filter: Filter
    """Filter that makes positions, velocities, accelerations and efforts consistent."""
    bases: Array
    """Numbers of the base samples [-], shape (n,)."""
    motion: Motion
    """The closed motion that is judged."""
    effort: Array
    """Applied efforts, filtered as the motion; of redundant actuators the part that moves the robot, shape (n, na)."""
    needed: Array
    """Efforts required by the equations [N or N m], shape (n, na)."""
    internal: Array
    """Internal load of redundant actuators [N or N m], shape (n, na)."""
    unactuated: Array
    """Unexplained force along unactuated motions [N or N m], shape (n, nv)."""
    scale: Array
    """Scale of the errors of each actuator [N or N m], shape (na,)."""
    floor: Floor
    gap: float
    """Largest loop gap as logged [m or rad]; NaN for a log of the drives only."""
    moved: float
    """Largest correction of a joint onto the closures [m or rad]; NaN for a log of the drives only."""
    start_peak: Array
    """Largest residual before the judged window [N or N m], shape (na,); 0 if all samples are judged."""
    derivatives: Slopes
    """Derivatives of the residual by the columns of the log."""

    @property
    def residual(self) -> Array:
        """Residual efforts [N or N m], shape (n, na)."""
        return self.effort - self.needed

    @property
    def rms(self) -> Array:
        """Root mean square of the residual [N or N m], shape (na,)."""
        return np.sqrt((self.residual**2).mean(axis=0))

    @property
    def largest(self) -> Array:
        """Largest residual [N or N m], shape (na,)."""
        return np.abs(self.residual).max(axis=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """Filters of a kind, from fine to coarse; the truncation of each follows from the difference to the next."""

    filters: tuple[Filter, ...]
    divisors: tuple[float, ...]
    """Difference of each filter except the last to the next, over its truncation error [-]."""
    shifts: tuple[int, ...] = (0,)
    """Samples for the comparison of averages by the first filter with the second."""

    def bases(self, samples: int, first: float) -> Array:
        """Base samples from a first sample on, few and evenly spread, common to all filters."""
        every = [kernels.bases(samples - max(self.shifts)) for kernels in self.filters]
        if not every or not all(len(bases) for bases in every):
            return np.zeros(0)
        start = max(float(np.ceil(first)), *(bases[0] for bases in every))
        common = np.arange(start, max(min(bases[-1] for bases in every) + 1, start))
        return evenly(common, FEW)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expected:
    """Residual caused by noise and truncation of a filter, root mean squares, each of shape (na,)."""

    filter: Filter
    noise: Array
    truncation: Array
    largest_truncation: Array
    chatter: Array
    size: Array
    """Of the required efforts."""
    derivatives: Slopes
    """Derivatives of the residual by the columns of the log."""

    @property
    def cost(self) -> float:
        """Both together, over the size of the efforts [-]."""
        return _relative(np.hypot(self.noise, self.truncation), self.size)

    @property
    def is_noisy(self) -> bool:
        """Whether noise dominates."""
        return _relative(self.noise, self.size) > max(_relative(self.truncation, self.size), NOISELESS)


def _relative(values: Array, size: Array) -> float:
    return float(np.linalg.norm(values / np.maximum(size, LEAST)))


def residual_efforts(
    closed: ClosedLog,
    effort_time: EffortTime,
    *,
    start: float = -np.inf,
    noiseless: bool = False,
    most: int | None = None,
    derivatives: Slopes | None = None,
) -> Residual:
    """Residual efforts of a log, by the filter with the least sum of noise and truncation.

    Args:
        effort_time: Time at which its efforts acted.
        start: Beginning of the judged samples [s].
        noiseless: Whether the log is free of noise, as that of a simulation: no smoothing, alternating values are
            motion,
            and the floor is that of its last digits.
        most: Largest number of judged samples, evenly spread; by default all.
        derivatives: Derivatives of the residual by the columns, of a log of about the same motion; by default its own.

    Raises:
        ShapeError: If the log is too short.
        LoopClosureError: If its loops cannot be closed.
    """
    log = closed.log
    best = _best(closed, effort_time, start, derivatives, noiseless=noiseless)
    chosen = best.filter
    bases = evenly(chosen.bases(len(log.t)), most)
    evaluation = evaluate(closed, chosen, bases)
    kept = evaluation.t >= start
    states = evaluation.states if kept.all() else evaluation.states.rows(kept)
    motion = as_motion(closed.mechanism, evaluation.t[kept], states)
    scale = closed.scale(states.kinematics_of(closed.mechanism), states.qdd)
    return Residual(
        effort_time=effort_time,
        filter=chosen,
        bases=bases[kept],
        motion=motion,
        effort=evaluation.effort[kept],
        needed=evaluation.needed[kept],
        internal=evaluation.internal[kept],
        unactuated=evaluation.unactuated[kept],
        scale=scale,
        floor=_floor(best, _by_clock(closed, states, evaluation.needed[kept]), scale),
        gap=closed.gap,
        moved=evaluation.moved,
        start_peak=np.abs(evaluation.residual[~kept]).max(axis=0, initial=0.0),
        derivatives=best.derivatives,
    )


def from_later_start(
    closed: ClosedLog, earlier: Residual, start: float, *, most: int | None = None, derivatives: Slopes | None = None
) -> Residual:
    """`residual_efforts` from a later start on; takes the samples of the earlier residual if the filter is the same.

    Args:
        earlier: Residual of the same log.
        start: Beginning of the judged samples [s].
        most: Largest number of judged samples, if the filter is another one.
        derivatives: See `residual_efforts`.
    """
    best = _best(closed, earlier.effort_time, start, derivatives)
    if earlier.filter.name != best.filter.name:
        return residual_efforts(closed, earlier.effort_time, start=start, most=most, derivatives=derivatives)
    later = earlier.motion.t >= start
    few = at_rows(earlier, np.flatnonzero(later))
    states = States(q=few.motion.q, qd=few.motion.qd, qdd=few.motion.qdd)
    some = states.rows(evenly(np.arange(len(states.q)), SCALED))
    scale = closed.scale(some.kinematics_of(closed.mechanism), some.qdd)
    floor = _floor(best, _by_clock(closed, states, few.needed), scale)
    start_peak = np.abs(earlier.residual[~later]).max(axis=0, initial=0.0)
    return replace(few, scale=scale, floor=floor, start_peak=start_peak, derivatives=best.derivatives)


def _best(
    closed: ClosedLog, effort_time: EffortTime, start: float, derivatives: Slopes | None, *, noiseless: bool = False
) -> _Expected:
    """The filter with the least sum of noise and truncation.

    Raises:
        ShapeError: If the log is too short.
    """
    log = closed.log
    late, first = acting_after(effort_time, log.dt), (start - log.t[0]) / log.dt
    expected = _expected(closed, _exact_family(closed, late), first, derivatives, noiseless=noiseless)
    if not noiseless and (not expected or min(expected, key=lambda e: e.cost).is_noisy):
        expected += _expected(closed, _smoothing_family(closed, late), first, derivatives)
    if not expected:
        raise ShapeError(
            f"log '{log.name}': must have more samples from {max(start, log.t[0]):g} s on, got "
            f"{(log.t >= start).sum()}: too few for every filter"
        )
    return min(expected, key=lambda e: e.cost)


def at_rows(residual: Residual, rows: AnyArray) -> Residual:
    """A residual at some of its samples.

    Args:
        rows: Numbers of the samples [-], shape (m,).
    """
    motion = residual.motion
    return replace(
        residual,
        bases=residual.bases[rows],
        motion=replace(motion, t=motion.t[rows], q=motion.q[rows], qd=motion.qd[rows], qdd=motion.qdd[rows]),
        effort=residual.effort[rows],
        needed=residual.needed[rows],
        internal=residual.internal[rows],
        unactuated=residual.unactuated[rows],
        floor=replace(residual.floor, samples=len(rows)),
    )


def _floor(expected: _Expected, by_clock: EffortSeries, scale: Array) -> Floor:
    """The floor of a residual, with the effect of the error of the clock (n, na)."""
    return Floor(
        noise=expected.noise,
        truncation=np.hypot(expected.truncation, np.sqrt((by_clock**2).mean(axis=0))),
        largest_truncation=np.hypot(expected.largest_truncation, np.abs(by_clock).max(axis=0)),
        reference=ROUND_OFF * scale,
        chatter=expected.chatter,
        samples=len(by_clock),
    )


def _by_clock(closed: ClosedLog, states: States, needed: EffortSeries) -> EffortSeries:
    """Change of the required efforts (n, na) by the error of the step: velocities and accelerations scale with it."""
    error = closed.log.clock
    if not error:
        return np.zeros_like(needed)
    faster = States(q=states.q, qd=states.qd * (1 + error), qdd=states.qdd * (1 + error) ** 2)
    return closed.needed(faster.kinematics_of(closed.mechanism), faster.qdd).effort - needed


def half_step_lag(closed: ClosedLog, residual: Residual) -> Array:
    """Residual caused by positions half a step late, as semi-implicit integrators place them, rms.

    Returns:
        Root mean square [N or N m], shape (na,); 0 unless every held step is judged.
    """
    kernels, needed = residual.filter, residual.needed
    if kernels.late != 0.5 or not kernels.uses_velocities:
        return np.zeros(needed.shape[1])
    early = replace(kernels, position=Kernel(begin=0, weights=np.ones(1)))
    rows = evenly(np.arange(len(residual.bases)), SCALED)
    return np.sqrt(((needed[rows] - evaluate(closed, early, residual.bases[rows]).needed) ** 2).mean(axis=0))


def _exact_family(closed: ClosedLog, late: float | None) -> _Family:
    """Filters for logs without noise."""
    log, uses_velocities = closed.log, closed.qd is not None
    if late is None:
        steps = tuple(step_filter(log.dt, stride=stride, uses_velocities=uses_velocities) for stride in (1, 2))
        return _Family(filters=steps, divisors=(3.0,), shifts=(0, 1) if uses_velocities else (0,))
    halves = [half for half in INTERPOLATING if 2 * half + FEWEST_JUDGED <= len(log.t)]
    through = (interpolating_filter(log.dt, half, late, uses_velocities=uses_velocities) for half in halves)
    return _Family(filters=tuple(through), divisors=(1.0,) * (len(halves) - 1))


def _smoothing_family(closed: ClosedLog, late: float | None) -> _Family:
    """Filters for logs with noise."""
    log, uses_velocities = closed.log, closed.qd is not None
    halves = [half for half in SMOOTHING if 2 * half + 1 <= LONGEST * len(log.t)]
    nearly = (smoothing_filter(log.dt, half, late, uses_velocities=uses_velocities) for half in halves)
    return _Family(filters=tuple(nearly), divisors=tuple((b / a) ** GROWTH - 1 for a, b in pairwise(halves)))


def acting_after(effort_time: EffortTime, dt: float) -> float | None:
    """Time of action of an effort after its row [steps of the log]; None if throughout its step.

    Args:
        effort_time: Time at which efforts acted.
        dt: Step of the log [s].
    """
    if isinstance(effort_time, Instantaneous):
        return 0.0
    if effort_time.seconds > WHOLE * dt and not effort_time.until:
        return None
    return (-1 if effort_time.until else 1) * effort_time.seconds / (2 * dt)


def evenly(values: AnyArray, most: int | None) -> AnyArray:
    """At most so many of some values, evenly spread; all without a limit.

    Args:
        values: The values [any unit], shape (n,).
    """
    if most is None or len(values) <= most:
        return values
    return values[np.unique(np.linspace(0, len(values) - 1, most).astype(int))]


def _expected(
    closed: ClosedLog, family: _Family, first: float, derivatives: Slopes | None, *, noiseless: bool = False
) -> list[_Expected]:
    """Residual caused by noise and truncation for each filter but the last; empty if the log is too short."""
    bases = family.bases(len(closed.log.t), first)
    if len(bases) < FEWEST_JUDGED or len(family.filters) < 2:
        return []
    shifts = [family.shifts, *[(0,)] * (len(family.filters) - 1)]
    pairs = list(zip(family.filters, shifts, strict=True))
    every = iter(evaluate_together(closed, [(one, bases + shift) for one, of_filter in pairs for shift in of_filter]))
    evaluations = [[next(every) for _ in of_filter] for of_filter in shifts]
    residuals = [np.mean([one.residual for one in several], axis=0) for several in evaluations]
    middle, few = evaluations[len(evaluations) // 2][0], evenly(np.arange(len(bases)), FEWER)
    derivatives = derivatives or slopes(closed, middle.states.rows(few))
    size = closed.size(middle.needed)
    reach = max(kernels.reach for kernels in family.filters) + max(family.shifts)
    spread = [kernels.spread(reach, of_filter) for kernels, of_filter in zip(family.filters, shifts, strict=True)]
    known, expected = replace(closed, exact=noiseless), []
    for k, divisor in enumerate(family.divisors):
        change, kernels, own = residuals[k + 1] - residuals[k], family.filters[k], family.filters[k].spread(reach)
        chatter, noise, of_change = (
            noise_rms(log, derivatives, weights, uses_velocities=kernels.uses_velocities)
            for log, weights in ((closed, own), (known, own), (known, spread[k + 1] - spread[k]))
        )
        whole = np.sqrt((change**2).mean(axis=0))
        truncation = np.sqrt(np.maximum(whole**2 - of_change**2, 0.0)) / divisor
        share = np.divide(truncation, whole, out=np.zeros_like(whole), where=whole > 0)
        largest = np.abs(change).max(axis=0) * share
        expected.append(
            _Expected(
                filter=kernels,
                noise=noise,
                truncation=truncation,
                largest_truncation=largest,
                chatter=chatter,
                size=size,
                derivatives=derivatives,
            )
        )
    return expected
