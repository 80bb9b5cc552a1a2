"""Choice of the reading and the window by which a log is judged.

A *reading* is a time at which the efforts of a row acted. If the log does not state it, the usual habits of writing
rows are tried: before the step, after the step, and efforts at the time of the row. The reading with the least residual
in the settled part counts; a reading with up to twice this residual must lead to the same verdict.

A *window* is all samples, or those after an unsettled start if all do not agree. All readings and windows have one
peak, the smallest: the spike of a start would hide later errors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypedDict

import numpy as np

from loopcheck.analytic.logs.closing.closed_log import ClosedLog
from loopcheck.analytic.logs.parameters import Fit, fit
from loopcheck.analytic.logs.residual import LEAST, Residual, at_rows, from_later_start, residual_efforts
from loopcheck.robots.arrays import AnyArray, Array, Efforts
from loopcheck.robots.log import EffortTime, Held, Instantaneous
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.common.accuracy import Requirement, requirement
from loopcheck.validation.common.limits import (
    ACCURACY,
    DECAYED,
    LATEST_START,
    SETTLED_LEVEL,
    UNDECIDED_TIMES,
    UNDECLARED_HOLD,
)
from loopcheck.validation.common.verdicts import IDLE, NO_LOAD, accuracy_divisor

SAMPLES = 400
"""Most samples by which readings are compared [-]."""
HALF, LATE = 0.5, 0.75
"""Parts of a log after which its start has ended [-]; after the second, too little is left for a verdict."""
USUAL = 0.9
"""Part of the samples that move at most as fast as a motion does [-]; an unsettled start jumps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A reading of the efforts of a log."""

    reading: EffortTime
    closed: ClosedLog
    """The log, with efforts that acted from the times of their rows on if they acted until these times."""
    residual: Residual
    required: Requirement
    fit: Fit | None = None


class Choice(NamedTuple):
    """The reading and the window of a log."""

    candidates: Sequence[Candidate]
    """The basis of the verdict, its rivals, and all other readings by a few samples."""
    rivals: int
    """Number of candidates that must lead to the same verdict."""
    unsettled: str = ""
    """Start that is not judged, as a phrase; empty if all samples are judged."""
    obstacle: str = ""
    """Reason for no verdict: the start takes most of the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the choice."""

    start: float | None = None
    """Samples before this time are ignored [s]; by default those of an unsettled start."""
    fitted: Sequence[str] = ()
    """Parameters fitted to the residual, as in `LogOptions`; the remaining residual is judged."""
    accuracy: float = ACCURACY
    """Largest residual that agrees, over the largest effort that the motion requires [-].

    An unsettled start is looked for only in a log that exceeds it."""
    most: int | None = None
    """Largest number of judged samples [-]; by default all."""


class GivenOptions(TypedDict, total=False):
    """`Options` as keyword arguments."""

    start: float | None
    fitted: Sequence[str]
    accuracy: float
    most: int | None


def choice_of(case: Case, closed: ClosedLog, options: Options) -> Choice:
    """The reading and the window by which a log is judged.

    Raises:
        ShapeError: If the log is too short.
        LoopClosureError: If its loops cannot be closed.
    """
    tried = sorted(_tried(case, closed, options), key=lambda one: _settled_size(one, options))
    least = UNDECIDED_TIMES * _settled_size(tried[0], options)
    rivals = [one for k, one in enumerate(tried) if k == 0 or _settled_size(one, options) < least]
    if options.fitted:
        return _after_fit(case, [_in_full(case, one, options) for one in rivals], options)
    whole = [_in_full(case, tried[0], options), *tried[1:]]
    judged = whole[: len(rivals)]
    if options.start is not None:
        return Choice(_with_peak(whole, judged), len(rivals))
    near = [one for one in tried[1:] if size_of(one.residual) < UNDECIDED_TIMES * size_of(tried[0].residual)]
    every = _with_peak([whole[0], *near, *(one for one in tried[1:] if one not in near)], [whole[0], *near])
    if all(_agrees(one, options.accuracy) for one in every[: 1 + len(near)]):  # there is no unsettled start
        return Choice(every, 1 + len(near))
    whole = _with_peak(whole, judged)
    starts = [end for one in judged for end in _ends_of_start(one.residual, options.accuracy / 2)]
    if not starts:
        return Choice(whole, len(rivals))
    best, (start, leaves_enough) = whole[0], max(starts)
    if not leaves_enough:
        end = _later_rows(best, start)
        words = f"not settled before t = {start:.6g} s: log a longer motion, or state --from"
        return Choice(whole, len(rivals), obstacle=words if _agrees(end, options.accuracy) else "")
    few = replace(options, most=SAMPLES)
    rest = [_in_full(case, one, few, start) for one in whole[1 : len(rivals)]]
    later = [_in_full(case, best, options, start), *rest, *(_later_rows(one, start) for one in whole[len(rivals) :])]
    error = float(over(np.abs(best.residual.residual[best.residual.motion.t < start]), later[0].required.divisor).max())
    words = f"the start is not settled: samples before {start:.6g} s are not judged (error up to {error:.2g})"
    return Choice(_with_peak(later, [*judged, *later[: len(rivals)]]), len(rivals), words)


def read_as(closed: ClosedLog, when: EffortTime) -> ClosedLog:
    """The log with efforts that acted from the times of their rows on, if each acted for a step until its time.

    Args:
        closed: A log as it is.
    """
    log = replace(closed.log, effort_time=when)
    shifted = log.from_their_times()
    if shifted is log:
        return closed
    qd = None if closed.qd is None else closed.qd[:-1]
    return replace(closed, log=shifted, q=closed.q[:-1], qd=qd, effort=closed.effort[1:])


def with_rates_of_steps(closed: ClosedLog) -> ClosedLog | None:
    """The log with velocities of semi-implicit steps, positions₊ = positions + h · velocities₊; None with quaternions.

    By positions alone, half a step is open: such an integrator places them by the velocity of the end of the step.

    Args:
        closed: A log without velocities.
    """
    if closed.nearby is None and closed.mechanism.nq != closed.mechanism.nv:
        return None
    log = closed.log
    later = {kind: values[1:] for kind, values in log.readings.items()}
    qd = None if log.qd is None else log.qd[1:]
    wrenches = {name: values[1:] for name, values in log.wrenches.items()}
    log = replace(
        log,
        t=log.t[1:],
        q=log.q[1:],
        qd=qd,
        qdd=None,
        effort=log.effort[1:],
        readings=later,
        unused={},
        wrenches=wrenches,
    )
    return replace(
        closed,
        log=log,
        q=closed.q[1:],
        qd=np.diff(closed.q, axis=0) / log.dt,
        effort=closed.effort[1:],
        qd_error=np.sqrt(2) * closed.q_error / log.dt,
    )


def shift_of(residual: Residual) -> float:
    """Apparent delay of the applied efforts against the assumed time, by least squares over all actuators [s]."""
    scale = np.maximum(residual.scale, LEAST)
    rate = np.gradient(residual.effort, residual.motion.t, axis=0)[1:-1] / scale
    left = residual.residual[1:-1] / scale
    size = float((rate**2).sum())
    return float((rate * left).sum()) / size if size else 0.0


def size_of(residual: Residual, scale: Efforts | None = None) -> float:
    """Root mean square of a residual over the scales of all actuators [-].

    Args:
        residual: The residual.
        scale: Scales [N or N m], shape (na,); by default its own.
    """
    return float(np.linalg.norm(residual.rms / np.maximum(residual.scale if scale is None else scale, LEAST)))


def settled_start(
    residual: Residual,
    left: Array,
    least: float,
    motion: Motion | None = None,
    *,
    stride: int = 1,
    settled: float = HALF,
) -> float | None:
    """End of an unsettled start [s]; None if there is none.

    Args:
        residual: Residual of some samples.
        left: Its errors [N or N m], shape (n, na).
        least: Error over the largest required effort that counts as settled [-].
        motion: The judged motion; by default that of the residual.
        stride: Samples per sample that determines the start [-].
        settled: Part of the log after which all errors are settled errors [-]. Up to a half, the end is early, and the
            robot moves after it.
    """
    motion = residual.motion if motion is None else motion
    t, first, last = residual.motion.t[::stride], float(motion.t[0]), float(motion.t[-1])
    middle = first + settled * (last - first)
    if not (t >= middle).any() or not (t < middle).any():
        return None
    errors = _errors(residual, left, middle)[::stride]
    unsettled = t[errors > max(least, SETTLED_LEVEL * float(errors[t >= middle].max()))]
    if not len(unsettled):
        return None
    unit = 10.0 ** (np.floor(np.log10(last - first)) - 2)
    start = float(f"{np.ceil((unsettled[-1] + residual.motion.dt) / unit) * unit:.6g}")
    rates = np.abs(motion.qd).max(axis=1)
    latest = LATEST_START if settled <= HALF else settled
    rests = settled <= HALF and rates[motion.t >= start].max(initial=0.0) < np.quantile(rates, USUAL) / 2
    return start if start - first <= latest * (last - first) and not rests else None


def _ends_of_start(residual: Residual, least: float) -> Iterator[tuple[float, bool]]:
    """End of a start whose errors decay, as those of a transient [s], and whether enough motion is left."""
    t = residual.motion.t
    for settled in (HALF, LATE):
        start = settled_start(residual, residual.residual, least, settled=settled)
        if start is not None:
            errors = _errors(residual, residual.residual, t[0] + settled * (t[-1] - t[0]))[t < start]
            *early, late = (part.max(initial=0.0) for part in np.array_split(errors, 3))
            if max(early) >= DECAYED * late:
                yield start, settled <= HALF
                return


def _errors(residual: Residual, left: Array, settled: float) -> Array:
    """Errors over the largest effort required from a time on, worst actuator [-], shape (n,)."""
    divisor = peak_at(residual, residual.motion.t >= settled)
    return np.asarray(over(np.abs(left), divisor).max(axis=1))


def peak_at(residual: Residual, rows: AnyArray) -> Efforts:
    """Largest required effort at some samples, that an accuracy multiplies [N or N m], shape (na,).

    Args:
        residual: The residual.
        rows: Numbers or mask of the samples [-], shape (n,).
    """
    peak: Array = np.abs(residual.needed[rows]).max(axis=0, initial=0.0)
    return accuracy_divisor(peak, residual.scale)


def _tried(case: Case, closed: ClosedLog, options: Options) -> Iterator[Candidate]:
    """Readings by few samples: the declared one, or all habits."""
    log = closed.log
    if log.effort_time is not None:
        yield _candidate(case, closed, log.effort_time, options)
        return
    habits = [
        _candidate(case, closed, when, options) for when in (Instantaneous(), Held(log.dt), Held(log.dt, until=True))
    ]
    yield from habits
    hold = 2 * shift_of(habits[0].residual)  # of a decimated log: the step of the controller is shorter
    if 0 < abs(hold) < UNDECLARED_HOLD * log.dt:
        part = _candidate(case, closed, Held(abs(hold), until=hold < 0), options)
        least = min(_settled_size(one, options) for one in habits)
        if _settled_size(part, options) * UNDECIDED_TIMES <= least:  # with a free time everything fits a little better
            yield part


def _candidate(case: Case, closed: ClosedLog, when: EffortTime, options: Options) -> Candidate:
    shifted = read_as(closed, when)
    most = SAMPLES if options.most is None else min(SAMPLES, options.most)
    acted = Held(when.seconds) if shifted is not closed and isinstance(when, Held) else when
    residual = residual_efforts(shifted, acted, start=_stated(options), most=most)
    candidate = Candidate(reading=when, closed=shifted, residual=residual, required=_required(case, residual))
    stepped = with_rates_of_steps(shifted) if residual.filter.is_of_steps and shifted.qd is None else None
    if stepped is None:
        return candidate
    residual = residual_efforts(stepped, acted, start=_stated(options), most=most)
    other = Candidate(reading=when, closed=stepped, residual=residual, required=_required(case, residual))
    least = (
        1.0 if closed.log.effort_time is None else UNDECIDED_TIMES
    )  # a log that states its time is taken at its word
    is_better = _settled_size(other, options) * least <= _settled_size(candidate, options)
    return other if is_better else candidate


def _in_full(case: Case, few: Candidate, options: Options, start: float | None = None) -> Candidate:
    """A reading by all samples, from a later start on."""
    before = few.residual
    if start is None and (len(before.bases) < SAMPLES or (options.most or SAMPLES + 1) <= SAMPLES):
        return few
    slopes = before.derivatives if start is None or options.most else None
    if start is None:
        residual = residual_efforts(
            few.closed, before.effort_time, start=_stated(options), most=options.most, derivatives=slopes
        )
    else:
        residual = from_later_start(few.closed, before, start, most=options.most, derivatives=slopes)
    return replace(few, residual=residual, required=_required(case, residual))


def _later_rows(few: Candidate, start: float) -> Candidate:
    """A reading by its samples from a later start on, with the floor of all samples."""
    rows = np.flatnonzero(few.residual.motion.t >= start)
    if not len(rows):
        return few
    later = at_rows(few.residual, rows)
    peak: Array = np.abs(later.needed).max(axis=0)
    return replace(few, residual=later, required=replace(few.required, peak=peak))


def _after_fit(case: Case, whole: Sequence[Candidate], options: Options) -> Choice:
    """Readings by what a fit leaves."""
    fits = [fit(one.closed, one.residual, options.fitted) for one in whole]
    fitted = [
        replace(one, fit=found, residual=found.after, required=_required(case, found.after))
        for one, found in zip(whole, fits, strict=True)
    ]
    fitted.sort(key=lambda one: size_of(one.residual))
    least = UNDECIDED_TIMES * size_of(fitted[0].residual)
    rivals = max(sum(size_of(one.residual) < least for one in fitted), 1)
    return Choice(fitted, rivals, "")


def _with_peak(candidates: Sequence[Candidate], judged: Sequence[Candidate]) -> list[Candidate]:
    """Candidates with the smallest peak of the judged readings and windows."""
    peak = np.min([one.required.peak for one in judged], axis=0)
    return [replace(one, required=replace(one.required, peak=peak)) for one in candidates]


def _required(case: Case, residual: Residual) -> Requirement:
    return requirement(case.mechanism, residual.motion, residual.needed, residual.scale)


def _agrees(candidate: Candidate, accuracy: float) -> bool:
    residual, required = candidate.residual, candidate.required
    figures = zip(residual.largest, residual.floor.largest, strict=True)
    found = [required.judged(k, float(e), float(f), accuracy) for k, (e, f) in enumerate(figures)]
    return all(verdict == "agree" or note.startswith((IDLE, NO_LOAD)) for verdict, note in found)


def _settled_size(candidate: Candidate, options: Options) -> float:
    """Root mean square in the later half of the samples, or in the stated window, over the scales [-]."""
    residual = candidate.residual
    t = residual.motion.t
    if options.start is not None:
        return size_of(residual)
    return size_of(at_rows(residual, np.flatnonzero(t >= (t[0] + t[-1]) / 2)))


def _stated(options: Options) -> float:
    return -np.inf if options.start is None else options.start


def over(values: Array, divisor: Efforts) -> Array:
    """Values over the largest required efforts, 0 where nothing acts.

    Args:
        values: Efforts [N or N m], shape (n, na).
        divisor: Largest required efforts.
    """
    return np.divide(values, divisor, out=np.zeros(np.broadcast_shapes(values.shape, divisor.shape)), where=divisor > 0)
