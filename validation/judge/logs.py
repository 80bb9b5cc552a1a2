"""Judges a log: its residual efforts against an accuracy, within the noise floor of the log.

`log_readings` chooses the time of application of the efforts and the judged samples; a verdict that depends on an
undecided time is `not comparable`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np

from loopcheck.analytic.kinematics.mobility import open_start
from loopcheck.analytic.logs.closing.closed_log import ClosedLog, closed_log
from loopcheck.analytic.logs.parameters import Fit
from loopcheck.analytic.logs.residual import Residual, half_step_lag
from loopcheck.analytic.logs.signals.noise import stuck_codes
from loopcheck.analytic.logs.signals.rates import wrong_rates
from loopcheck.analytic.logs.signals.stamps import at_equal_steps
from loopcheck.analytic.motion.laws import RECORDED
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError, SingularityError, ToleranceError
from loopcheck.robots.formats.mjcf import varying_forces
from loopcheck.robots.log import UNMODELLED, EffortTime, Held, Instantaneous, Log
from loopcheck.robots.logs.log_description import Side
from loopcheck.robots.logs.log_description import in_words as time_in_words
from loopcheck.robots.robot import Case, MotionSpec
from loopcheck.validation.common import sources
from loopcheck.validation.common.accuracy import Requirement, Verdict
from loopcheck.validation.common.limits import ACCURACY, CONTRADICTED_HOLD, INTERNAL_LOAD, UNEXPLAINED_FORCE
from loopcheck.validation.common.verdicts import JUDGED
from loopcheck.validation.judge.log_readings import GivenOptions, Options, choice_of, shift_of, size_of
from loopcheck.validation.judge.wrenches import JudgedWrenches, judge_wrenches

REPORTED = "actuator_force"
"""Column of the forces that MuJoCo reports."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOptions:
    """Options of the judgement of logs."""

    accuracy: float = ACCURACY
    """Largest residual that agrees, over the largest effort that the motion requires of the actuator [-]."""
    effort_time: EffortTime | None = None
    """Time of application of the efforts, instead of the statement in the log."""
    side: Side | None = None
    """Side of the gear on which the efforts are, instead of the statement in the log."""
    start: float | None = None
    """Samples before this time are ignored [s]; by default those of an unsettled start."""
    fitted: tuple[str, ...] = ()
    """Fitted terms, `friction`, `shift`, `offset` or `mass:BODY`; the verdict is on the residual after the fit."""
    internal_load: float = INTERNAL_LOAD
    """Largest internal load of redundant actuators, over the largest effort that the motion requires [-]."""

    def __post_init__(self) -> None:
        if not 0 < self.accuracy < np.inf:
            raise ToleranceError(f"accuracy must be positive and finite, got {self.accuracy:g}")
        if not self.internal_load >= 0:
            raise ToleranceError(f"internal load must be at least 0, got {self.internal_load:g}")
        if self.start is not None and not self.start < np.inf:
            raise ToleranceError(f"from must be a finite time in s, got {self.start:g}")
        object.__setattr__(self, "fitted", tuple(dict.fromkeys(self.fitted)))  # twice the same is told from nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedLog:
    """Findings on a log."""

    case: Case
    """Case with the name of the log as its mode, and its motion."""
    log: Log
    """The log at equal steps, without velocities that are wrong."""
    residuals: tuple[Residual, ...]
    """Residuals of each reading in the judged samples, the basis of the verdict first; empty after a failure."""
    readings: tuple[EffortTime, ...] = ()
    """Time of application of the efforts in each of the residuals."""
    wrenches: JudgedWrenches | None = None
    """Findings on the wrenches in connections; None if the log has none, or after a failure."""
    rivals: int = 1
    """Number of residuals that must lead to the same verdict; the others are far larger, and of few samples."""
    unsettled: str = ""
    """Start that is not judged, as a phrase."""
    obstacle: str = ""
    """Reason for no verdict, as a phrase."""
    lags: tuple[Array, ...] = ()
    """Effect on each residual of positions half a step late, rms [N or N m], each of shape (na,)."""
    fits: tuple[Fit, ...] = ()
    """Fit for each assumption; the residuals are its remainders."""
    required: tuple[Requirement, ...] = ()
    """Efforts that the judged motion requires, for each of the residuals."""
    doubts: tuple[str, ...] = ()
    """Defects of the log, a phrase for each."""
    failure: str = ""
    """Reason for missing residuals."""
    opening: str = ""
    """Gap of the start pose of the file, as a phrase."""
    sampling: str = ""
    """Reading of unequal steps in time, as a phrase."""
    unused_velocities: Array | None = None
    """Velocities of the log that are wrong [m/s or rad/s], shape (nt, dofs)."""
    closed: ClosedLog | None = None
    """The log with closed loops, for the search for causes; absent after it."""
    read: ClosedLog | None = None
    """The same by the reading of the first residual."""
    given: Log | None = None
    """The log as it was given, for the search for causes."""
    causes: tuple[str, ...] = ()
    """Proven causes of a disagreement, or the best partial cause, with the options that remove it, a phrase each."""

    @property
    def source(self) -> str:
        """Family and name."""
        return f"{sources.LOG}/{self.log.name}"


def judge_log(
    case: Case,
    log: Log,
    *,
    alike: ClosedLog | None = None,
    **options: Unpack[GivenOptions],
) -> JudgedLog:
    """Residual efforts of a log; runs in a worker process.

    Args:
        case: Robot and configuration, and the mode of the assembly if the log contains the drives only.
        alike: A closed log with the same motion.
        **options: See `log_readings.Options`.

    Raises:
        HarnessError: If the log does not fit the robot, or is too short.
    """
    given = log
    stuck = (*stuck_codes(log), *_wrong_hold(log))
    log, sampling = at_equal_steps(log.from_their_times())
    asked = Options(**options)
    if not log.has_efforts:  # nothing to read the efforts by
        if asked.fitted:
            raise MechanismError(f"log '{log.name}': a fit must have efforts, got none")
        start = -np.inf if asked.start is None else asked.start
        log, asked = replace(log, effort_time=Instantaneous()), replace(asked, start=start)
    doubts = (*wrong_rates(log), *stuck)
    moved = case.robot.model_copy(update={"motion": MotionSpec(law=RECORDED)})  # it has no law, so no task coordinates
    own = replace(case, mode=log.name, robot=moved)
    opening = open_start(case.mechanism, case.guess)
    unused = None
    if any(doubt.startswith("velocities") for doubt in doubts) and _is_scalar(log):
        unused = log.qd
        log, doubts = replace(log, qd=None), (*doubts, "velocities are not used")
    judged = JudgedLog(case=own, log=log, residuals=(), doubts=doubts, opening=opening, sampling=sampling)
    try:
        closed = closed_log(case.mechanism, log, case.guess, alike)
        candidates, rivals, unsettled, obstacle = choice_of(case, closed, asked)
        first = candidates[0].residual.motion.t[0] if unsettled else asked.start
        start = -np.inf if first is None else float(first)
        wrenches = judge_wrenches(closed, candidates[0], start=start, accuracy=asked.accuracy)
        lags = [half_step_lag(one.closed, one.residual) for one in candidates]
    except SingularityError as error:
        return replace(judged, failure=str(error))
    return replace(
        judged,
        residuals=tuple(one.residual for one in candidates),
        readings=tuple(one.reading for one in candidates),
        wrenches=wrenches,
        rivals=rivals,
        unsettled=unsettled,
        obstacle=obstacle,
        required=tuple(one.required for one in candidates),
        lags=tuple(lags),
        fits=tuple(one.fit for one in candidates if one.fit),
        unused_velocities=unused,
        closed=closed,
        read=candidates[0].closed,
        given=replace(given, wrenches={}),
    )


def _wrong_hold(log: Log) -> Iterator[str]:
    """A hold that the efforts do not keep, as of milliseconds for seconds, as a phrase."""
    when, span = log.effort_time, float(log.t[-1] - log.t[0])
    if not isinstance(when, Held) or when.seconds < CONTRADICTED_HOLD * log.dt:
        return
    changes = int(np.any(np.diff(log.effort, axis=0) != 0, axis=1).sum())
    if changes > CONTRADICTED_HOLD * (span / when.seconds + 1):
        yield (
            f"stated hold of efforts: {when.seconds:g} s, but they change every {span / changes:.3g} s: "
            f"each row is judged as applied for {log.dt:.3g} s"
        )


def verdicts(judged: JudgedLog, accuracy: float, internal_load: float = INTERNAL_LOAD) -> list[Verdict]:
    """The verdict on each actuator.

    Args:
        accuracy: Largest residual that agrees, over the largest effort that the motion requires [-].
        internal_load: Largest internal load of redundant actuators, over the same effort [-].
    """
    actuators = range(judged.case.mechanism.na)
    if judged.failure or not judged.log.has_efforts:
        return [Verdict("not comparable", judged.failure or "the log has no efforts") for _ in actuators]
    required = judged.required
    by_assumption = [
        [one.judged(k, float(residual.largest[k]), float(residual.floor.largest[k]), accuracy) for k in actuators]
        for one, residual in zip(required, judged.residuals, strict=True)
    ]
    first = judged.residuals[0]
    left_over = _left_over(judged, first, accuracy * float(required[0].divisor.max()))
    reported = _reported(judged) if "disagree" in {one.verdict for one in by_assumption[0]} else ""
    internal = np.abs(first.internal).max(axis=0)
    is_unphysical = any(one.is_unphysical for of_one in judged.fits[:1] for one in of_one.estimates)
    of_actuators = []
    for k, (verdict, reason) in enumerate(by_assumption[0]):
        load = required[0].internal_load(k, float(internal[k]), accuracy, internal_load)
        obstacles = (
            judged.obstacle,
            "depends on the time of application of the efforts: state --effort-time"
            * any(other[k].verdict != verdict for other in by_assumption[1 : judged.rivals]),
            left_over,
            load.note * bool(load.verdict),
            "correct the defect of the log" * (bool(judged.doubts) and verdict == "agree"),
            "a fitted parameter is at its physical bound: is the model wrong?" * (is_unphysical and verdict == "agree"),
        )
        obstacle = next(filter(None, obstacles), "") if verdict in JUDGED[:2] else ""
        is_decided = verdict != "not comparable" and not obstacle
        parts = (
            obstacle,
            reason,
            *(judged.causes if verdict == "disagree" and is_decided else ()),
            judged.opening,
            judged.sampling,
            sampling_that_would_do(first, required[0], k, accuracy) if verdict == "not comparable" else "",
            "" if load.verdict else load.note,
            *_fitted(judged),
            judged.unsettled,
            _assumed(judged),
            _unchecked(judged.log),
            reported if verdict == "disagree" and is_decided else "",
            *judged.doubts,
        )
        of_actuators.append(Verdict(verdict if is_decided else "not comparable", "; ".join(filter(None, parts))))
    return of_actuators


def summary_rows(judged: JudgedLog, asked: LogOptions) -> Iterator[Mapping[str, Any]]:
    """Values of a log in its rows of the summary, by actuator."""
    of_actuators = verdicts(judged, asked.accuracy, asked.internal_load)
    for k, (verdict, note) in enumerate(of_actuators if judged.log.has_efforts or judged.failure else ()):
        actuator = judged.case.mechanism.actuators[k].name
        row: dict[str, Any] = {"actuator": actuator, "tolerance": asked.accuracy, "verdict": verdict, "note": note}
        for first in judged.residuals[:1]:
            largest, peak, scale = first.largest[k], np.abs(first.needed[:, k]).max(), first.scale[k]
            row |= {"max_error": largest, "rms_error": first.rms[k], "peak": peak, "scale": scale}
            row["relative_error"] = largest / scale if scale else np.nan
            row["peak_error"] = largest / peak if peak else np.nan
            row["closure_drift"] = first.gap
        yield row
    defect = judged.obstacle or "correct the defect of the log" * bool(judged.doubts)
    for row in judged.wrenches.summary_rows() if judged.wrenches else ():
        if row["verdict"] == "agree" and defect:
            row |= {"verdict": "not comparable", "note": "; ".join((defect, row["note"], *judged.doubts))}
        yield row


def fit_rows(judged: JudgedLog) -> Iterator[Mapping[str, Any]]:
    """A row for each fitted parameter, for each assumption on the efforts."""
    robot, variant, mode, configuration = judged.case.key
    where = {"robot": robot, "variant": variant, "mode": mode, "configuration": configuration, "source": judged.source}
    for of_one in judged.fits[:1]:
        sizes = {"before": size_of(of_one.before), "after": size_of(of_one.after)}
        for estimate in of_one.estimates:
            yield {
                **where,
                "parameter": estimate.name,
                "unit": estimate.unit,
                "value": estimate.value,
                "half_width": estimate.half_width,
                "unbounded": estimate.unbounded,
                "alike": estimate.alike,
                **sizes,
            }


def log_rows(judged: JudgedLog) -> Iterator[Mapping[str, Any]]:
    """A row for each actuator and assumption of when the efforts acted."""
    robot, variant, mode, configuration = judged.case.key
    where = {"robot": robot, "variant": variant, "mode": mode, "configuration": configuration, "source": judged.source}
    for place, residual in enumerate(judged.residuals if judged.log.has_efforts else ()):
        floor, divisors = residual.floor, judged.required[place].divisor
        for k, actuator in enumerate(judged.case.mechanism.actuators):
            yield {
                **where,
                "actuator": actuator.name,
                "unit": judged.case.mechanism.actuator_units[k],
                "effort_time": time_in_words(judged.readings[place]),
                "assumed": "declared" if judged.log.effort_time else "assumed" if not place else "other",
                "filter": residual.filter.name,
                "dt": judged.log.dt,
                "from": float(residual.motion.t[0]),
                "samples": float(floor.samples),
                "rms": residual.rms[k],
                "largest": residual.largest[k],
                "rms_floor": floor.rms[k],
                "largest_floor": floor.largest[k],
                "noise": floor.noise[k],
                "truncation": floor.truncation[k],
                "scale": residual.scale[k],
                "divisor": divisors[k],
                "start_peak": residual.start_peak[k],
                "half_step_lag": judged.lags[place][k],
                "internal": float(np.abs(residual.internal[:, k]).max()),
                "shift": shift_of(residual),
                "gap": residual.gap,
                "moved": residual.moved,
            }
    for row in judged.wrenches.log_rows() if judged.wrenches else ():
        yield {**where, **row}


def sampling_that_would_do(residual: Residual, required: Requirement, actuator: int, accuracy: float) -> str:
    """Sampling of a log that an accuracy needs, as a clause; empty if the noise floor is not the obstacle.

    Args:
        residual: Residual of the log.
        actuator: Number of the actuator.
        accuracy: Largest residual that agrees, over the largest effort that the motion requires [-].
    """
    floor, dt, limit = residual.floor, residual.motion.dt, accuracy * float(required.divisor[actuator])
    largest = float(floor.largest[actuator])
    excess = (min(float(residual.largest[actuator]), largest) + largest) / limit if limit else 0.0
    if not 1 < excess < np.inf:
        return ""
    if floor.noise[actuator] > floor.truncation[actuator]:
        return f"sample every {dt / excess**2:.2g} s, or log with {excess:.2g} times the resolution"
    order = 2 if isinstance(residual.effort_time, Held) and residual.effort_time.seconds > 0.999 * dt else 4
    return f"sample every {dt / excess ** (1 / order):.2g} s"


def _is_scalar(log: Log) -> bool:
    return all(kind in ("hinge", "slide") for kind in log.kinds)


def _fitted(judged: JudgedLog) -> Iterator[str]:
    """Fitted changes of the model, a phrase each, and the residual before and after."""
    for of_one in judged.fits[:1]:
        for estimate in of_one.estimates:
            yield f"fitted {estimate}"
        sizes = ", ".join(f"{size_of(one):.2g}" for one in (of_one.before, of_one.after))
        yield f"residual over the scale before and after the fit: {sizes}"


def _unchecked(log: Log) -> str:
    """Forces of the log that are added to its efforts, as a phrase."""
    forces = zip(log.actuators, log.unmodelled.T, strict=True)
    columns = ", ".join(f"{name}.{UNMODELLED}" for name, x in forces if x.any())
    return f"contacts, limits and dry friction are taken from the log unchecked: {columns}" if columns else ""


def _reported(judged: JudgedLog) -> str:
    """A cause of wrong efforts in a log of MuJoCo: the force at the beginning of a step acts under Euler only."""
    varying = varying_forces(judged.case.mechanism.model)
    is_reported = any(REPORTED in name and ours.endswith(".effort") for name, ours in judged.log.columns.items())
    if not varying or not is_reported or any("acted_effort" in words for words in judged.causes):
        return ""
    integrator = next(iter(varying.values())).integrator
    return (
        f"{REPORTED} is the force at the beginning of a step; under {integrator} the effort of a servo changes within "
        "the step: log loopcheck.acted_effort(...).effort as 'effort'"
    )


def _assumed(judged: JudgedLog) -> str:
    """The reading of a log that states none, with the size of each, as a phrase."""
    if len(judged.readings) < 2:
        return ""
    sizes = [
        f"{time_in_words(when)} {size_of(residual, judged.residuals[0].scale):.2g}"
        for when, residual in zip(judged.readings, judged.residuals, strict=True)
    ]
    chosen, others = sizes[: judged.rivals], ", ".join(sizes[judged.rivals :])
    words = f"efforts assumed {time_in_words(judged.readings[0])}"
    if len(chosen) > 1:
        names = " and ".join(map(time_in_words, judged.readings[: judged.rivals]))
        words = f"time of the efforts not decided between {names}"
    alternatives = f" (alternatives: {others})" if others else ""
    return f"{words}: residual over the scale {', '.join(chosen)}{alternatives}"


def _left_over(judged: JudgedLog, residual: Residual, limit: float) -> str:
    """Unexplained force at the unactuated dofs, beyond a multiple of the largest limit of an effort [N or N m]."""
    by_dof = np.sqrt((residual.unactuated**2).mean(axis=0))
    if by_dof.max(initial=0.0) <= UNEXPLAINED_FORCE * limit:
        return ""
    worst = int(np.argmax(by_dof))
    mechanism = judged.case.mechanism
    names = [j.name for j, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True) if dofs.start <= worst]
    return (
        f"unexplained force of {by_dof[worst]:.3g} (N or N m) at joint '{names[-1]}' along an unactuated dof; "
        "is friction, a limit or a contact missing from the model?"
    )
