"""Evaluation of one source on one case, in a worker process: its result, or the reason for its absence."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

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
from loopcheck.robots.efforts import EffortHistory, Limits, Stepped
from loopcheck.robots.errors import EngineError, EngineNotInstalledError, HarnessError, NotRepresentableError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, MotionSpec, modes
from loopcheck.robots.size import size_in_motion
from loopcheck.validation.comparison import sources
from loopcheck.validation.comparison.accuracy import Requirement, requirement
from loopcheck.validation.comparison.as_is import Settled, settled
from loopcheck.validation.comparison.limits import UNFORCED
from loopcheck.validation.comparison.verdicts import NOT_SUPPORTED
from loopcheck.validation.execution.errors import internal_error

RANDOM = "random"
"""Name of random motions: a controller may follow one smooth motion by chance, so simulations run on both."""


START = "positions, velocities and accelerations of the analytic dynamics; the simulation is independent afterwards"
"""Source of the initial state of unactuated dofs in a simulation."""


HARMLESS = 1e-9
"""Largest effort of the couples of offsets, over the peak of the actuator, that is round-off [-]."""
RIGID = 1e-9
"""Accuracy of the loops above which a simulation that keeps all equations rigid has taken minutes for nothing [-]."""
STIFF_ON_GAPS = (
    "the redundant equations of the loops contradict each other by the rounding of the file, which rigid constraints "
    "turn into forces. Write the file with more digits, or close each pin once"
)
"""Reason for missing efforts of a simulation with rigid loops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of one source on one case."""

    case: Case
    source: str
    history: EffortHistory | None
    """The efforts; None after a failure."""
    projected: EffortHistory | None = None
    """The part of the engine's efforts that moves the robot, for redundant actuation."""
    failure: str = ""
    """The verdict without efforts: `not run` or `not comparable`."""
    note: str = ""
    """Reason of the failure, or remark for the reader of the numbers."""
    wall_time: float | None = None
    """Wall time [s]."""
    power_imbalance: float | None = None
    """Power minus rate of change of energy, relative to the acting powers [-]; only of analytic sources in motion."""
    at_rest: bool = False
    """Whether the robot is at rest, without a power balance of analytic sources."""
    is_engine_error: bool = False
    """Whether the engine failed, for example with a state that is not finite."""
    required: Requirement | None = None
    """Peaks and scales of the required efforts; the reference only."""
    settled: Settled | None = None
    """Remaining error of an unmodified simulation after its initial transient, the basis of its verdict."""
    unresolved: Array | None = None
    """Part of each effort that the digits of the file leave open [N or N m], shape (na,), found with the reference."""
    offsets: str = ""
    """Effect of offsets along the pins of the file, found with the reference."""
    size: float | None = None
    """Size of the robot in its motion [m]; by default the size of its links."""
    term_sum: float | None = None
    """Largest distance of the efforts from the signed sum of their terms, over the scale [-]; the reference only."""

    @property
    def scale(self) -> Array | None:
        """Scale of the errors of each actuator [N or N m], shape (na,); the reference only."""
        return self.required.scale if self.required else None

    @property
    def compared(self) -> EffortHistory | None:
        """The efforts to compare with the reference, without their internal part, which the motion leaves open."""
        return self.projected or self.history


def evaluate(case: Case, motion: Motion, source: str, limits: Limits | None = None) -> Outcome:
    """Compute the efforts of a source; an outcome with the reason replaces any failure.

    Args:
        limits: Limits of the verdict: a simulation omits finer steps than it needs. By default it takes all steps.
    """
    if motion.unforced > UNFORCED and sources.simulates(source):
        note = (
            "the logged motion must satisfy the equations of the unactuated dofs in this configuration, but their "
            f"accelerations differ by {motion.unforced:.2g} of the largest; a simulation would leave the motion"
        )
        return Outcome(case=case, source=source, history=None, failure="not comparable", note=note)
    if motion.contradiction and sources.simulates(source):
        note = f"the log contradicts itself; no simulation can follow it: {motion.contradiction}"
        return Outcome(case=case, source=source, history=None, failure="not comparable", note=note)
    if case.mechanism.closing.accuracy > RIGID and is_stiff_on_gaps(case, source) and not _reduces_rows(source):
        return Outcome(case=case, source=source, history=None, failure=NOT_SUPPORTED, note=STIFF_ON_GAPS)
    outcome = outcome_of(case, motion, source, partial(_efforts_of, source, case, motion, limits))
    if outcome.is_engine_error and is_stiff_on_gaps(case, source):
        return replace(outcome, failure=NOT_SUPPORTED, note=f"{STIFF_ON_GAPS} ({outcome.note})", is_engine_error=False)
    return _with_origin_of_start(outcome, motion) if sources.simulates(source) else outcome


def _reduces_rows(source: str) -> bool:
    return bool(getattr(sources.load(source), "reduces_rows", False))


def is_stiff_on_gaps(case: Case, source: str) -> bool:
    """Return whether a source makes the loops rigid, although the equations of the file contradict each other."""
    if not case.mechanism.closing.accuracy or sources.is_log(source):
        return False
    return sources.simulates(source) and not sources.is_as_is(source)


def _efforts_of(source: str, case: Case, motion: Motion, limits: Limits | None) -> EffortHistory:
    """Efforts of a source at the samples of a motion; a controller gets more samples."""
    driven = finely_sampled(case.mechanism, motion) if sources.is_as_is(source) else motion
    loaded = sources.load(source)
    if limits is not None and isinstance(loaded, Stepped):
        loaded = loaded.within(limits)
    history = loaded.compute_efforts(case, driven)
    if driven is motion:
        return history
    every = (len(driven.t) - 1) // (len(motion.t) - 1)
    return replace(history, t=history.t[::every], effort=history.effort[::every])


def _with_origin_of_start(outcome: Outcome, motion: Motion) -> Outcome:
    """The outcome of a simulation, with the origin of the initial state of undriven dofs in its settings and note."""
    history = outcome.history
    if history is None or not undriven_dofs(outcome.case.mechanism, motion.q[0]):
        return outcome
    settings = {**history.settings, "initial state of unactuated dofs": START}
    note = "; ".join(filter(None, (outcome.note, f"initial state of unactuated dofs: {START}")))
    return replace(outcome, history=replace(history, settings=settings), note=note)


def outcome_of(case: Case, motion: Motion, source: str, compute: Callable[[], EffortHistory]) -> Outcome:
    """Outcome of the computed efforts of a source, with its power balance and the part that moves the robot."""
    outcome = attempt(case, source, compute)
    history = outcome.history
    if history is None:
        return outcome
    outcome = replace(outcome, size=size_in_motion(case.mechanism, motion))
    if source == sources.REFERENCE:
        outcome = _with_scale(outcome, case, motion, history)
    if source in sources.ANALYTIC:
        imbalance = power_imbalance(case.mechanism, motion, history.effort)
        return replace(outcome, power_imbalance=imbalance, at_rest=imbalance is None)
    if history.as_is is not None:
        left = settled(case.mechanism, history.as_is)
        return replace(outcome, settled=left, note="; ".join(filter(None, (left.reason, left.note, history.note))))
    projected = _projected(case, motion, history)
    notes = (history.note, _internal(case, history, projected))
    return replace(outcome, projected=projected, note="; ".join(part for part in notes if part))


def _with_scale(outcome: Outcome, case: Case, motion: Motion, history: EffortHistory) -> Outcome:
    """The reference with the scales of its efforts, and how far these are from the sum of their terms."""
    terms = effort_scale(case.mechanism, motion)
    difference = np.abs(terms.effort - history.effort).max(0, initial=0.0)
    smallest = np.finfo(float).tiny  # an effort where nothing acts must be zero
    return replace(
        outcome,
        required=requirement(case.mechanism, motion, history.effort, terms.scale),
        term_sum=float((difference / np.maximum(terms.scale, smallest)).max()),
        offsets=_effect_of_offsets(case.mechanism, motion, history) if case.mechanism.offsets else "",
        unresolved=file_resolution(case.mechanism, motion) if case.mechanism.closing.accuracy else None,
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


def attempt(case: Case, source: str, compute: Callable[[], EffortHistory]) -> Outcome:
    """The efforts computed by a source; an outcome with the reason replaces any failure."""
    start = time.perf_counter()
    try:
        history = compute()
    except NotRepresentableError as error:
        return Outcome(case=case, source=source, history=None, failure=NOT_SUPPORTED, note=str(error))
    except HarnessError as error:
        failed = isinstance(error, EngineError) and not isinstance(error, EngineNotInstalledError)
        return Outcome(
            case=case, source=source, history=None, failure="not run", note=str(error), is_engine_error=failed
        )
    except Exception as error:  # a bug of ours or of an engine is a result too: the other rows must not be lost
        return Outcome(case=case, source=source, history=None, failure="not run", note=internal_error(error))
    return Outcome(case=case, source=source, history=history, note=history.note, wall_time=time.perf_counter() - start)


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


def _internal(case: Case, history: EffortHistory, projected: EffortHistory | None) -> str:
    if projected is None:
        return ""
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
