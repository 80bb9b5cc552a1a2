"""Drake's discrete plant and its solver SAP, stepped at several step sizes and extrapolated to step zero.

Loops are Drake's constraints, drives are actuators that hold a velocity. Both are as hard as SAP permits. A simulation
forgets half of its start in each step, however short, so it starts some steps before the span. If the finest step still
changes the extrapolated efforts, finer steps are added.
"""

from dataclasses import dataclass, replace
from typing import Self

from loopcheck.engines.drake._equations import equations
from loopcheck.engines.drake._plant import STRONGEST, guarded
from loopcheck.engines.drake._stepping import GAIN, Run, simulate
from loopcheck.engines.equations import held_drives
from loopcheck.engines.forward import Steps
from loopcheck.robots.efforts import EffortHistory, Refinable, Rung
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

FARTHEST = 0.08
"""Longest time before the span [s]."""
LEAD_UNACTUATED = 12
"""Steps before the span of robots with unactuated motions, which leave the state that leads to the start [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings(Steps):
    """Settings of the simulations.

    Steps are no finer than needed: SAP stops at a residual of a millionth of the momentum, which is more beside
    the effort of a shorter step.
    """

    parts: tuple[int, ...] = (1, 2, 4, 8)
    """Steps per sample of the motion, fewest first; if samples are more than `LONGEST` apart, per part of that time."""
    more: int = 3
    """Most simulations that are added, each with steps twice as fine as the last."""
    kept: int = 4
    """Number of the finest simulations that are extrapolated; 0 for all."""
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
        lead = min(settings.lead, LEAD_UNACTUATED) if undriven else settings.lead

        def rung(dt: float) -> Rung:
            run = Run(dt=dt, lead=min(lead, int(FARTHEST / dt)), drives=drives, strongest=settings.strongest)
            return simulate(mechanism, motion, run)

        words = _in_words(settings, lead, undriven=undriven > 0)
        return settings.history(self.name, case, motion, (drives, undriven), rung, words)

    def tightened(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.tightened`; the tolerance of SAP cannot be set from Python."""
        return type(self)(self.settings)

    def refined(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.refined`; its own steps, and a finer step."""
        return type(self)(replace(self.settings, beyond=self.settings.beyond + 1))


def _in_words(settings: Settings, lead: int, *, undriven: bool) -> dict[str, str]:
    """Every relevant setting, as text."""
    return {
        "pre-roll": f"{lead} steps before the span, "
        f"{FARTHEST:g} s at most, with initial velocities of half a step earlier"
        + ("; then the state of unactuated motions at the start" if undriven else ""),
        "loops": "AddBallConstraint, AddWeldConstraint and AddCouplerConstraint",
        "solver": "discrete plant with SAP; its tolerance cannot be set",
        "drives": f"actuators with controller gains p 1e-9 and d {GAIN:g}, desired velocity (x(t+dt) - x)/dt, "
        f"effort at most {settings.strongest:g}; read by the net actuation port",
        "loads": "springs as force elements, external wrenches and gravity compensation as applied spatial forces",
    }
