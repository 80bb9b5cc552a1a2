"""Evaluation of one source on one case, in a worker process: its result, or the reason for its absence."""

import time
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from loopcheck.analytic.dynamics.couples import offset_couples
from loopcheck.analytic.dynamics.energy import power_imbalance
from loopcheck.analytic.dynamics.powers import effort_scale
from loopcheck.analytic.dynamics.resolution import file_resolution
from loopcheck.analytic.kinematics.redundancy import moving_part, undriven_dofs
from loopcheck.analytic.motion.assembly import finely_sampled
from loopcheck.analytic.motion.automatic import halved
from loopcheck.analytic.motion.laws import RECORDED
from loopcheck.analytic.motion.prescribe import depends_on_gravity, prescribe
from loopcheck.analytic.motion.random_motion import random_motion
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import EffortHistory, Limits, ReadsWrenches, Stepped
from loopcheck.robots.errors import EngineError, EngineNotInstalledError, HarnessError, NotRepresentableError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, MotionSpec, modes
from loopcheck.robots.size import size_in_motion
from loopcheck.validation.check.efforts.as_is import settled
from loopcheck.validation.check.efforts.outcome import (
    STIFF_ON_GAPS,
    Failed,
    Modelled,
    Ran,
    Redundant,
    Reference,
    Unmodified,
    is_stiff_on_gaps,
)
from loopcheck.validation.common import sources
from loopcheck.validation.common.accuracy import requirement
from loopcheck.validation.common.limits import UNFORCED
from loopcheck.validation.common.verdicts import NOT_SUPPORTED
from loopcheck.validation.execution.errors import internal_error

RANDOM = "random"
"""Name of random motions: a controller may follow one smooth motion by chance, so simulations run on both."""
START = "positions, velocities and accelerations of the analytic dynamics; the simulation is independent afterwards"
"""Source of the initial state of unactuated dofs in a simulation."""
HARMLESS = 1e-9
"""Largest effort of the couples of offsets, over the peak of the actuator, that is round-off [-]."""
RIGID = 1e-9
"""Accuracy of the loops above which a simulation that keeps all equations rigid has taken minutes for nothing [-]."""

R = TypeVar("R", bound=Ran)


def evaluate(
    case: Case, motion: Motion, source: str, limits: Limits | None = None, reads_wrenches: bool = False
) -> Ran | Failed:
    """Compute the efforts of a source; an outcome with the reason replaces any failure.

    Args:
        limits: Limits of the verdict: a simulation omits finer steps than it needs. By default it takes all steps.
        reads_wrenches: Whether a simulation also reads the forces in the joints, if it can.
    """
    if motion.unforced > UNFORCED and sources.simulates(source):
        note = (
            "the logged motion must satisfy the equations of the unactuated dofs in this configuration, but their "
            f"accelerations differ by {motion.unforced:.2g} of the largest; a simulation would leave the motion"
        )
        return Failed(case=case, source=source, verdict="not comparable", note=note)
    if motion.contradiction and sources.simulates(source):
        note = f"the log contradicts itself; no simulation can follow it: {motion.contradiction}"
        return Failed(case=case, source=source, verdict="not comparable", note=note)
    if case.mechanism.closing.accuracy > RIGID and is_stiff_on_gaps(case, source) and not _reduces_rows(source):
        return Failed(case=case, source=source, verdict=NOT_SUPPORTED, note=STIFF_ON_GAPS)
    outcome = outcome_of(case, motion, source, partial(_efforts_of, source, case, motion, limits, reads_wrenches))
    if isinstance(outcome, Failed):
        rigid = outcome.is_engine_error and is_stiff_on_gaps(case, source)
        note = f"{STIFF_ON_GAPS} ({outcome.note})"
        return Failed(case=case, source=source, verdict=NOT_SUPPORTED, note=note) if rigid else outcome
    return _with_origin_of_start(outcome, motion) if sources.simulates(source) else outcome


def _reduces_rows(source: str) -> bool:
    return bool(getattr(sources.load(source), "reduces_rows", False))


def _efforts_of(source: str, case: Case, motion: Motion, limits: Limits | None, reads_wrenches: bool) -> EffortHistory:
    """Efforts of a source at the samples of a motion; a controller gets more samples."""
    driven = finely_sampled(case.mechanism, motion) if sources.is_as_is(source) else motion
    loaded = sources.load(source)
    if reads_wrenches and isinstance(loaded, ReadsWrenches):
        loaded = loaded.with_wrenches()
    if limits is not None and isinstance(loaded, Stepped):
        loaded = loaded.within(limits)
    history = loaded.compute_efforts(case, driven)
    if driven is motion:
        return history
    every = (len(driven.t) - 1) // (len(motion.t) - 1)
    return replace(history, t=history.t[::every], effort=history.effort[::every])


def _with_origin_of_start(outcome: Ran, motion: Motion) -> Ran:
    """The outcome of a simulation, with the origin of the initial state of undriven dofs in its settings and note."""
    if not undriven_dofs(outcome.case.mechanism, motion.q[0]):
        return outcome
    settings = {**outcome.history.settings, "initial state of unactuated dofs": START}
    note = _joined(outcome.note, f"initial state of unactuated dofs: {START}")
    return replace(outcome, history=replace(outcome.history, settings=settings), note=note)


def outcome_of(case: Case, motion: Motion, source: str, compute: Callable[[], EffortHistory]) -> Ran | Failed:
    """The computed efforts of a source, as the type of its situation."""
    outcome = attempt(case, source, compute)
    if isinstance(outcome, Failed):
        return outcome
    history, outcome = outcome.history, replace(outcome, size=size_in_motion(case.mechanism, motion))
    if source in sources.ANALYTIC:
        imbalance = power_imbalance(case.mechanism, motion, history.effort)
        modelled = _as(Modelled, outcome, power_imbalance=imbalance, at_rest=imbalance is None)
        return _reference(modelled, motion) if source == sources.REFERENCE else modelled
    if history.as_is is not None:
        left = settled(case.mechanism, history.as_is)
        return _as(Unmodified, outcome, note=_joined(left.reason, left.note, history.note), settled=left)
    projected = _projected(case, motion, history)
    if projected is None:
        return outcome
    note = _joined(history.note, _internal(case, history, projected))
    return _as(Redundant, outcome, note=note, projected=projected)


def _as(kind: type[R], outcome: Ran, **more: Any) -> R:
    """The outcome as another type."""
    return kind(**{field.name: getattr(outcome, field.name) for field in fields(outcome)} | more)


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def _reference(modelled: Modelled, motion: Motion) -> Reference:
    """The reference with the scales of its efforts, and how far these are from the sum of their terms."""
    mechanism, history = modelled.case.mechanism, modelled.history
    terms = effort_scale(mechanism, motion)
    difference = np.abs(terms.effort - history.effort).max(0, initial=0.0)
    smallest = np.finfo(float).tiny  # an effort where nothing acts must be zero
    return _as(
        Reference,
        modelled,
        required=requirement(mechanism, motion, history.effort, terms.scale),
        term_sum=float((difference / np.maximum(terms.scale, smallest)).max()),
        offsets=_effect_of_offsets(mechanism, motion, history) if mechanism.offsets else "",
        unresolved=file_resolution(mechanism, motion) if mechanism.closing.accuracy else None,
    )


def _effect_of_offsets(mechanism: Mechanism, motion: Motion, history: EffortHistory) -> str:
    """Effect of the offsets along the pins of the file on the efforts of a simulation, in words."""
    couples, peaks = offset_couples(mechanism, motion, history.effort), np.abs(history.effort).max(axis=0, initial=0.0)
    largest = int(np.divide(couples, peaks, out=np.zeros_like(couples), where=peaks > 0).argmax())
    worst = couples[largest] / peaks[largest] if peaks[largest] > 0 else 0.0
    lengths = ", ".join(f"{1e3 * offset.length:.3g} mm at '{offset.closure}'" for offset in mechanism.offsets)
    acts = (
        f"acts as a couple: {100 * worst:.2g} % of '{history.actuators[largest]}' in rigid loops, more in soft loops, "
        "which pull along the pin"
        if worst > HARMLESS
        else "is harmless"
    )
    return f"the file's offset along the pin ({lengths}) {acts}; `gate --fix` removes it"


def attempt(case: Case, source: str, compute: Callable[[], EffortHistory]) -> Ran | Failed:
    """The efforts computed by a source; an outcome with the reason replaces any failure."""
    start = time.perf_counter()
    try:
        history = compute()
    except NotRepresentableError as error:
        return Failed(case=case, source=source, verdict=NOT_SUPPORTED, note=str(error))
    except HarnessError as error:
        failed = isinstance(error, EngineError) and not isinstance(error, EngineNotInstalledError)
        return Failed(case=case, source=source, verdict="not run", note=str(error), is_engine_error=failed)
    except Exception as error:  # a bug of ours or of an engine is a result too: the other rows must not be lost
        return Failed(case=case, source=source, verdict="not run", note=internal_error(error))
    return Ran(case=case, source=source, history=history, note=history.note, wall_time=time.perf_counter() - start)


def _projected(case: Case, motion: Motion, history: EffortHistory) -> EffortHistory | None:
    """The part of the efforts that moves the robot, if it is redundantly actuated and they are on its time grid."""
    Pi = moving_part(case.mechanism, motion)
    names = tuple(actuator.name for actuator in case.mechanism.actuators)
    if Pi is None or history.actuators != names or len(history.t) != len(motion.t):
        return None

    def moving(effort: Array) -> Array:
        return (Pi @ effort[..., None])[..., 0]

    ladder = tuple(replace(rung, effort=moving(rung.effort)) for rung in history.ladder)
    return replace(history, effort=moving(history.effort), ladder=ladder)


def _internal(case: Case, history: EffortHistory, projected: EffortHistory) -> str:
    internal = float(np.abs(history.effort - projected.effort).max())
    moving, weighed = float(np.abs(projected.effort).max()), weighting(case.mechanism)
    return (
        "redundant actuation: only the part of the efforts that moves the robot is compared; the other, "
        f"internal part is up to {internal:.3g} beside {moving:.3g}{'; ' * bool(weighed)}{weighed}"
    )


def weighting(mechanism: Mechanism) -> str:
    """Weights of efforts of different actuators, in words, if they are not plain."""
    if (mechanism.effort_scales == 1).all():
        return "1 N m weighs as 1 N" if len(set(mechanism.actuator_units)) > 1 else ""
    scales = zip(mechanism.actuators, mechanism.actuator_units, strict=True)
    return "efforts of equal weight: " + ", ".join(f"{a.effort_scale:g} {unit} of {a.name}" for a, unit in scales)


def motion_key(case: Case) -> tuple[str, str, str, str]:
    """Key of a motion: robot, variant, mode, and the configuration if the motion depends on it."""
    return (*case.key[:3], case.configuration if depends_on_gravity(case) else "")


def prescribe_or_error(case: Case, dt: float | None) -> Motion | HarnessError:
    """The motion of a case, or the error with the reason for its absence."""
    try:
        return prescribe(case, dt=dt)
    except HarnessError as error:
        return error


def halved_or_error(case: Case, motion: Motion, reason: str) -> Motion | HarnessError:
    """Half of a generated motion that fails, or the error with the reason for its absence; see `halved`."""
    try:
        return halved(case.mechanism, motion, reason)
    except HarnessError as error:
        return error


def random_case(case: Case) -> Case:
    """The case on its random motion, with a mode name that no other mode of the robot has."""
    mode = f"{case.mode}-{RANDOM}"
    while mode in modes(case.mechanism):
        mode = f"{mode}-{RANDOM}"
    robot = case.robot.model_copy(update={"motion": MotionSpec(law=RECORDED)})  # it has no law, so no task coordinates
    return replace(case, mode=mode, robot=robot)


def random_motion_or_error(case: Case, motion: Motion) -> Motion | HarnessError:
    """The random motion of a case, or the error with the reason for its absence.

    Args:
        motion: Its own motion, at least as large.
    """
    try:
        return random_motion(case.mechanism, motion)
    except HarnessError as error:
        return error
