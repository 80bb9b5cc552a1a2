"""What a source says about a case: a type per situation, so that no later module asks what its fields are.

```text
Outcome ── Failed                    no efforts, with the reason
        └─ Ran                       an engine
             ├─ Redundant            an engine with more actuators than the motion determines
             ├─ Unmodified           the unmodified simulation of the user's file
             └─ Modelled             an analytic model, with its power balance
                  └─ Reference       the model that the others are held against
```
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeGuard

from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import EffortHistory
from loopcheck.robots.robot import Case
from loopcheck.validation.check.efforts.as_is import Settled
from loopcheck.validation.common import sources
from loopcheck.validation.common.accuracy import Requirement
from loopcheck.validation.common.verdicts import NOT_SUPPORTED

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
    note: str = ""
    """Remark for the reader of the numbers, or reason of a failure."""

    @property
    def compared(self) -> EffortHistory | None:
        """The efforts to compare with the reference."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(Outcome):
    """A source without efforts."""

    verdict: str
    """`not run`, `not comparable` or `not supported`."""
    is_engine_error: bool = False
    """Whether the engine failed, for example with a state that is not finite."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran(Outcome):
    """A source with efforts."""

    history: EffortHistory
    wall_time: float | None = None
    """Wall time [s]."""
    size: float | None = None
    """Size of the robot in its motion [m]; by default the size of its links."""

    @property
    def compared(self) -> EffortHistory:
        """The efforts to compare with the reference."""
        return self.history

    @property
    def own_figures(self) -> Mapping[str, float | None]:
        """Figures that need no reference, by their limit in the tolerances [-]; None if not computed."""
        return {}

    @property
    def wrenches(self) -> Mapping[str, Array]:
        """Wrenches of the connections that it has read, by reading; of its log, by connection."""
        return self.history.as_is.log.wrenches if self.history.as_is else self.history.wrenches


@dataclass(frozen=True, slots=True, kw_only=True)
class Redundant(Ran):
    """An engine on a redundantly actuated robot: the motion leaves a part of its efforts open."""

    projected: EffortHistory
    """The part of the efforts that moves the robot."""

    @property
    def compared(self) -> EffortHistory:
        """The efforts to compare with the reference, without their internal part."""
        return self.projected


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmodified(Ran):
    """An unmodified simulation."""

    settled: Settled
    """Remaining error after its initial transient, the basis of its verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Modelled(Ran):
    """An analytic model."""

    power_imbalance: float | None = None
    """Power minus rate of change of energy, relative to the acting powers [-]; only in motion."""
    at_rest: bool = False
    """Whether the robot is at rest, without a power balance."""

    @property
    def balance(self) -> float | None:
        """The power imbalance, zero at rest [-]; None if not computed."""
        return 0.0 if self.at_rest else self.power_imbalance

    @property
    def own_figures(self) -> Mapping[str, float | None]:
        """Figures that need no reference, by their limit in the tolerances [-]; None if not computed."""
        return {"power_imbalance": self.balance}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference(Modelled):
    """The model that all others are held against."""

    required: Requirement
    """Peaks and scales of the required efforts."""
    unresolved: Array | None = None
    """Part of each effort that the digits of the file leave open [N or N m], shape (na,)."""
    offsets: str = ""
    """Effect of offsets along the pins of the file."""
    term_sum: float | None = None
    """Largest distance of the efforts from the signed sum of their terms, over the scale [-]."""

    @property
    def scale(self) -> Array:
        """Scale of the errors of each actuator [N or N m], shape (na,)."""
        return self.required.scale

    @property
    def own_figures(self) -> Mapping[str, float | None]:
        """Figures that need no reference, by their limit in the tolerances [-]; None if not computed."""
        return {"power_imbalance": self.balance, "term_sum": self.term_sum}


def is_unsupported(outcome: Outcome) -> TypeGuard[Failed]:
    """Return whether a source cannot represent an element of the model."""
    return isinstance(outcome, Failed) and outcome.verdict == NOT_SUPPORTED


def is_stiff_on_gaps(case: Case, source: str) -> bool:
    """Return whether a source makes the loops rigid, although the equations of the file contradict each other."""
    if not case.mechanism.closing.accuracy or sources.is_log(source):
        return False
    return sources.simulates(source) and not sources.is_as_is(source)
