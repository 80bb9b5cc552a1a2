"""One source on one case: what it found, or why it found nothing. Runs in a worker process."""

import time
from dataclasses import dataclass, replace

import numpy as np

from analytic.assembly import prescribe
from analytic.energy import power_imbalance
from analytic.redundancy import moving_efforts
from robots.arrays import Array
from robots.efforts import EffortHistory, Source
from robots.errors import HarnessError, NotRepresentableError
from robots.motion import Motion
from robots.robot import Case
from validation import sources


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one source found on one case."""

    case: Case
    source: str
    history: EffortHistory | None
    """The efforts; None if there are none."""
    projected: EffortHistory | None = None
    """The part of an engine's efforts that moves the robot, where it is redundantly actuated."""
    failure: str = ""
    """The verdict if there are no efforts: `not run` or `not comparable`."""
    note: str = ""
    """Why there are none, or what a reader of the numbers must know."""
    wall_time: float | None = None
    """Time it took [s]."""
    power_imbalance: float | None = None
    """Power in less rate of change of energy, relative to the peak power [-]; analytic sources only."""

    @property
    def compared(self) -> EffortHistory | None:
        """What is compared with the reference: efforts are unique only up to their internal part."""
        return self.projected or self.history


def evaluate(case: Case, motion: Motion, source: str, *, varied: Source | None = None) -> Outcome:
    """Compute the efforts of a source, and turn whatever goes wrong into an outcome that says so.

    Args:
        case: Robot, variant, mode and configuration.
        motion: The prescribed motion.
        source: Its name.
        varied: The source with other settings than its own.
    """
    start = time.perf_counter()
    try:
        history = (varied or sources.load(source)).compute_efforts(case, motion)
    except NotRepresentableError as error:
        return Outcome(case=case, source=source, history=None, failure="not comparable", note=str(error))
    except HarnessError as error:
        return Outcome(case=case, source=source, history=None, failure="not run", note=str(error))
    except Exception as error:  # a bug of ours or of an engine is a result too: the other rows must not be lost
        note = f"internal error: {type(error).__name__}: {error}"
        return Outcome(case=case, source=source, history=None, failure="not run", note=note)
    wall_time = time.perf_counter() - start
    analytic = source in sources.ANALYTIC
    projected = None if analytic else _projected(case, motion, history)
    return Outcome(
        case=case,
        source=source,
        history=history,
        projected=projected,
        note="; ".join(part for part in (history.note, _internal(case, history, projected)) if part),
        wall_time=wall_time,
        power_imbalance=power_imbalance(case.mechanism, motion, history.effort) if analytic else None,
    )


def _projected(case: Case, motion: Motion, history: EffortHistory) -> EffortHistory | None:
    """The part of the efforts that moves the robot, if it is redundantly actuated and they are on its time grid."""
    U = moving_efforts(case.mechanism, motion)
    names = tuple(actuator.name for actuator in case.mechanism.actuators)
    if U is None or history.actuators != names or len(history.t) != len(motion.t):
        return None

    def moving(effort: Array) -> Array:
        return (U @ (U.swapaxes(1, 2) @ effort[..., None]))[..., 0]

    ladder = tuple(replace(rung, effort=moving(rung.effort)) for rung in history.ladder)
    return replace(history, effort=moving(history.effort), ladder=ladder)


def _internal(case: Case, history: EffortHistory, projected: EffortHistory | None) -> str:
    if projected is None:
        return ""
    internal = float(np.abs(history.effort - projected.effort).max())
    weighting = "; 1 N m weighs as 1 N" if len(set(case.mechanism.actuator_units)) > 1 else ""
    return (
        "redundantly actuated: given and compared is the part of the efforts that moves the robot; its own split has "
        f"an internal part of up to {internal:.3g}, against {float(np.abs(projected.effort).max()):.3g}{weighting}"
    )


def prescribe_or_error(case: Case, dt: float | None) -> Motion | HarnessError:
    """The motion of a case, or the error that says why there is none."""
    try:
        return prescribe(case, dt=dt)
    except HarnessError as error:
        return error
