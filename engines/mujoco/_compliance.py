"""Which compliances the constraints of a simulation get: such that efforts at two of them extrapolate to none.

How small they must be depends on the robot, and simulations tell whether they are. A step that is too long for the
robot changes the efforts as well, the more the harder the constraints are: what is chosen at a step holds where a finer
one does not make the compliances that it starts from suit much better.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from math import inf
from typing import TypeAlias

from loopcheck.engines.extrapolation import relative_change, value_at_zero
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.errors import EngineError

LINEAR = 3e-8
"""Largest change of the extrapolated efforts by doubled compliance within the linear range, over their peak [-].

The remaining error is quadratic in the compliance: a third of that change.
"""
NEAR = 5e-6
"""Largest loop gap and tracking error of sufficiently stiff constraints.

[-]: lengths over the size of the robot, or rad.
"""
HARDER, SOFTER = (0.1, 0.01, 1e-3, 1e-4), (10.0, 100.0, 1000.0)
"""Factor on unsuitable compliances [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What came of one simulation."""

    effort: Array
    """Of the actuators [N or N m], shape (nt, na)."""
    closure_drift: Deviation
    tracking_error: Deviation
    wall_time: float
    """Time it took [s]."""
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    """Forces in the joints, see `loopcheck.robots.efforts.EffortHistory.wrenches`."""


Simulated: TypeAlias = Callable[[float, float], Run]
"""Simulates at a step [s] and a compliance [-]."""


def each_once(simulated: Simulated) -> Simulated:
    """The simulations, each pair of step and compliance run once: a diverged one keeps its error."""

    @cache
    def outcome(dt: float, compliance: float) -> Run | EngineError:
        try:
            return simulated(dt, compliance)
        except EngineError as error:
            return error

    def run(dt: float, compliance: float) -> Run:
        found = outcome(dt, compliance)
        if isinstance(found, EngineError):
            raise found
        return found

    return run


@dataclass(frozen=True, slots=True)
class Choice:
    """Compliances, and how well they suit the robot."""

    compliances: tuple[float, ...]
    change: float = 0.0
    """Of the extrapolated efforts from twice as soft constraints, over their peak [-]."""
    miss: float = 0.0
    """Opening of the loops or distance of the drives from the motion, the larger of both [-]."""

    @property
    def excess(self) -> float:
        """How many times the efforts change too much, or the motion is missed too far, the larger of both [-]."""
        return max(self.change / LINEAR, self.miss / NEAR)

    @property
    def suits(self) -> bool:
        """Whether neither is so."""
        return self.excess <= 1


def choose(own: tuple[float, ...], simulated: Simulated, steps: Sequence[float], size: float) -> Choice:
    """The compliances that suit a robot, at the coarsest step that does not diverge and where finer ones help little.

    Args:
        own: Compliances that it starts from [-].
        steps: Steps, coarsest first [s]; without any, the compliances stay.
        size: Of the robot [m].
    """
    chosen, before = Choice(own), inf
    for dt in steps:
        looked_at = partial(_looked_at, simulated, dt, size)
        try:
            first = looked_at(own)
        except EngineError:
            continue
        best = _better(looked_at, first, HARDER)
        chosen = best if best is not first else _better(looked_at, first, SOFTER)
        if chosen.suits or first.excess > before / 2:  # of those it starts from, as none but the step is another
            break
        before = first.excess
    return chosen


def _better(looked_at: Callable[[tuple[float, ...]], Choice], own: Choice, factors: Sequence[float]) -> Choice:
    """The best of some compliances on the way to ever harder or softer ones, while each is better than the last."""
    best = own
    for factor in factors:
        if best.suits:
            break
        try:
            other = looked_at(tuple(factor * compliance for compliance in own.compliances))
        except EngineError:
            break
        if not other.excess < best.excess:
            break
        best = other
    return best


def _looked_at(simulated: Simulated, dt: float, size: float, compliances: tuple[float, ...]) -> Choice:
    levels = (*compliances, 2 * max(compliances))
    efforts = [simulated(dt, level).effort for level in levels]
    softer = value_at_zero(levels[1:], efforts[1:])
    change = relative_change(softer, value_at_zero(levels[:-1], efforts[:-1]))
    soft = simulated(dt, levels[-2])
    return Choice(compliances, change, soft.closure_drift.or_worse(soft.tracking_error).over(size))
