"""Drake's discrete plant and its solver SAP, stepped at several step sizes and extrapolated to step zero.

Loops are Drake's constraints, drives are actuators that hold a velocity. Both are as hard as SAP permits. A simulation
forgets half of its start in each step, however short, so it starts some steps before the span. If the finest step still
changes the extrapolated efforts, finer steps are added.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import Self

from loopcheck.engines.drake._equations import equations
from loopcheck.engines.drake._plant import STRONGEST, guarded
from loopcheck.engines.drake._stepping import GAIN, Run, simulate
from loopcheck.engines.equations import carried_note, held_drives
from loopcheck.engines.extrapolation import without_step
from loopcheck.engines.forward import EXTRAPOLATED, divided, forward_history, in_ms, in_words, settled_rungs
from loopcheck.robots.efforts import EffortHistory, Refinable, Rung
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

FARTHEST = 0.08
"""Longest time before the span [s]."""
LEAD_UNACTUATED = 12
"""Steps before the span of robots with unactuated motions, which leave the state that leads to the start [-]."""
FINER = 2
"""Divisor of the steps for robots with unactuated motions, which may vibrate on springs [-]."""
MORE = 3
"""Most rungs that are added, each twice as fine as the last."""
KEPT = 4
"""Number of the finest step sizes that are extrapolated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the simulations.

    Steps are no finer than needed: SAP stops at a residual of a millionth of the momentum, which is more beside
    the effort of a shorter step.
    """

    parts: tuple[int, ...] = (1, 2, 4, 8)
    """Steps per sample of the motion, fewest first; if samples are more than `LONGEST` apart, per part of that time."""
    settled: float = inf
    """Finer steps are added while more than this is left in the extrapolated efforts, over their peak [-]."""
    beyond: int = 0
    """Number of finer steps taken instead of the same number of coarsest steps, for settled efforts."""
    lead: int = 30
    """Steps before the span, if they take no longer than `FARTHEST`: half of how it starts is forgotten in each."""
    strongest: float = STRONGEST
    """Largest effort of the actuators [N or N m]."""


OWN = Settings(settled=2e-6)
"""Settings of the route."""


class DrakeForward(Refinable):
    """Efforts read from Drake's actuators while its own solver keeps the loops closed."""

    name = "drake/forward"

    def __init__(self, settings: Settings = OWN) -> None:
        """With the settings of the route, or with others."""
        self.settings = settings

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        mechanism, settings = case.mechanism, self.settings
        with guarded(self.name):
            drives, undriven = held_drives(equations(mechanism), motion)
        ladder = self._rungs(mechanism, motion, drives, undriven)
        return forward_history(
            self.name,
            mechanism,
            motion,
            ladder,
            effort=without_step(ladder[-KEPT:]),
            settings={"steps": in_ms(ladder), **_in_words(settings, undriven=undriven > 0)},
            note="; ".join([EXTRAPOLATED, *carried_note(mechanism, drives)]),
        )

    def tightened(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.tightened`; the tolerance of SAP cannot be set from Python."""
        return type(self)(self.settings)

    def refined(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.refined`; its own steps, and a finer step."""
        return type(self)(replace(self.settings, beyond=self.settings.beyond + 1))

    def _rungs(self, mechanism: Mechanism, motion: Motion, drives: tuple[int, ...], undriven: int) -> list[Rung]:
        """The simulations, coarsest step first; finer steps are added until the efforts are settled."""
        settings = self.settings

        def rung(count: int) -> Rung:
            dt = divided(motion.dt) / (count * (FINER if undriven else 1))
            lead = min(settings.lead, LEAD_UNACTUATED if undriven else settings.lead, int(FARTHEST / dt))
            return simulate(mechanism, motion, Run(dt=dt, lead=lead, drives=drives, strongest=settings.strongest))

        settled, beyond = settings.settled, settings.beyond
        return settled_rungs(rung, settings.parts, settled=settled, more=MORE, beyond=beyond, kept=KEPT)


def _in_words(settings: Settings, *, undriven: bool) -> dict[str, str]:
    """Every relevant setting, as text."""
    return {
        "extrapolation": in_words(f"the finest {KEPT} steps", settled=settings.settled, more=MORE),
        "pre-roll": f"{min(settings.lead, LEAD_UNACTUATED) if undriven else settings.lead} steps before the span, "
        f"{FARTHEST:g} s at most, with initial velocities of half a step earlier"
        + ("; then the state of unactuated motions at the start" if undriven else ""),
        "loops": "AddBallConstraint, AddWeldConstraint and AddCouplerConstraint",
        "solver": "discrete plant with SAP; its tolerance cannot be set",
        "drives": f"actuators with controller gains p 1e-9 and d {GAIN:g}, desired velocity (x(t+dt) - x)/dt, "
        f"effort at most {settings.strongest:g}; read by the net actuation port",
        "loads": "springs as force elements, external wrenches and gravity compensation as applied spatial forces",
    }
