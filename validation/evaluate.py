"""One source on one case: what it found, or why it found nothing. Runs in a worker process."""

import time
from dataclasses import dataclass

from analytic.assembly import prescribe
from analytic.energy import power_imbalance
from robots.efforts import EffortHistory
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
    failure: str = ""
    """The verdict if there are no efforts: `not run` or `not comparable`."""
    note: str = ""
    """Why there are none, or what a reader of the numbers must know."""
    wall_time: float | None = None
    """Time it took [s]."""
    power_imbalance: float | None = None
    """Power in less rate of change of energy, relative to the peak power [-]; analytic sources only."""


def evaluate(case: Case, motion: Motion, source: str) -> Outcome:
    """Compute the efforts of a source, and turn whatever goes wrong into an outcome that says so."""
    start = time.perf_counter()
    try:
        history = sources.load(source).compute_efforts(case, motion)
    except NotRepresentableError as error:
        return Outcome(case=case, source=source, history=None, failure="not comparable", note=str(error))
    except HarnessError as error:
        return Outcome(case=case, source=source, history=None, failure="not run", note=str(error))
    except Exception as error:  # a bug of ours or of an engine is a result too: the other rows must not be lost
        note = f"internal error: {type(error).__name__}: {error}"
        return Outcome(case=case, source=source, history=None, failure="not run", note=note)
    wall_time = time.perf_counter() - start
    analytic = source in sources.ANALYTIC
    return Outcome(
        case=case,
        source=source,
        history=history,
        note=history.note,
        wall_time=wall_time,
        power_imbalance=power_imbalance(case.mechanism, motion, history.effort) if analytic else None,
    )


def prescribe_or_error(case: Case, dt: float | None) -> Motion | HarnessError:
    """The motion of a case, or the error that says why there is none."""
    try:
        return prescribe(case, dt=dt)
    except HarnessError as error:
        return error
