"""Simbody's own constrained dynamics, integrated with the drives prescribed; their multipliers are the efforts.

Loops and drives are constraints on accelerations, solved with their redundancy, and met by projection on the levels of
velocities and positions. Of a redundantly actuated robot only as many coordinates are driven as move independently.
"""

from dataclasses import dataclass, replace
from typing import Self

from loopcheck.engines.equations import carried_note, held_drives
from loopcheck.engines.forward import forward_history, own_steps
from loopcheck.engines.simbody._equations import equations
from loopcheck.engines.simbody._opensim import guarded
from loopcheck.engines.simbody._simulation import DEGREE, Run, simulate, want_regular
from loopcheck.robots.efforts import EffortHistory, Refinable
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

FINEST = 2.5e-3
"""Upper bound of the finest step [s]; the ladder doubles it twice."""
FINEST_FREE = FINEST / 4
"""The same for robots with unactuated motions, which may vibrate on springs."""
RUNGS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the simulations; by default as `loopcheck study refinement` recommends for all robots."""

    steps: tuple[float, ...] = ()
    """Steps that divide the report grid, coarsest first [s]; empty: three steps, halved until `FINEST`."""
    division: int = 1
    """Divisor of `FINEST` [-]."""
    tolerance: float = 1e-11
    """Tolerance of the projection onto constraints on positions and velocities [m, rad, or per s]."""
    degree: int = DEGREE
    """Of the prescribed splines; odd, and at most seven."""


OWN = Settings()
"""Settings of the route."""


class SimbodyForward(Refinable):
    """Efforts from a simulation of the closed loop with Simbody's constraints, its drives among them."""

    name = "simbody/forward"

    def __init__(self, settings: Settings = OWN) -> None:
        """With the settings of the route, or with others."""
        self.settings = settings

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        mechanism, settings = case.mechanism, self.settings
        want_regular(mechanism, motion)
        with guarded(self.name):
            drives, undriven = held_drives(equations(mechanism), motion)
        finest = (FINEST_FREE if undriven else FINEST) / settings.division
        steps = settings.steps or tuple(own_steps(motion.dt, finest=finest, rungs=RUNGS))
        runs = [Run(dt=dt, tolerance=settings.tolerance, drives=drives, degree=settings.degree) for dt in steps]
        ladder = [simulate(mechanism, motion, run) for run in runs]
        return forward_history(
            self.name,
            mechanism,
            motion,
            ladder,
            settings=in_words(replace(settings, steps=steps)),
            note="; ".join(carried_note(mechanism, drives)),
        )

    def tightened(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.tightened`."""
        return type(self)(replace(self.settings, tolerance=self.settings.tolerance / 100))

    def refined(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.refined`; its constraints are rigid."""
        settings = self.settings
        steps = tuple(dt / 2 for dt in settings.steps)
        return type(self)(replace(settings, steps=steps, division=2 * settings.division))


def in_words(settings: Settings) -> dict[str, str]:
    """Every relevant setting, as text."""
    return {
        "integrator": "OpenSim's Manager, RungeKuttaMerson, fourth order, every step of maximum size",
        "steps": f"{', '.join(f'{1e3 * dt:g}' for dt in settings.steps)} ms; the finest is reported",
        "loops": f"PointConstraint, WeldConstraint, CoordinateCouplerConstraint; projected to {settings.tolerance:g}, "
        "or to twice the initial loop gap",
        "drives": f"prescribed coordinates, GCVSpline of degree {settings.degree} with a knot per step; the effort is "
        "minus the multiplier",
        "loads": "springs, dampers, external wrenches and gravity compensation as forces of OpenSim",
    }
