"""DART's own solver and servos, stepped at several step sizes and extrapolated to step zero.

Loops are `BallJointConstraint` and `WeldJointConstraint`, drives are servos that meet the motion at the end of a step.
Positions are right to second order then; efforts are of first order, as a step evaluates the velocity terms half a step
early. If the finest step still changes the extrapolated efforts, finer steps are added.
"""

from dataclasses import dataclass, replace
from math import inf
from typing import Self

from loopcheck.engines.dart._equations import equations
from loopcheck.engines.dart._skeleton import guarded
from loopcheck.engines.dart._stepping import UNLIMITED, Run, simulate
from loopcheck.engines.equations import carried_note, held_drives
from loopcheck.engines.extrapolation import without_step
from loopcheck.engines.forward import EXTRAPOLATED, divided, forward_history, in_ms, in_words, settled_rungs
from loopcheck.robots.efforts import EffortHistory, Refinable, Rung
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

FINER = 2
"""Divisor of the steps for robots with unactuated motions, which may vibrate on springs [-]."""
MORE = 2
"""Most rungs that are added, each twice as fine as the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the simulations; by default as `loopcheck study refinement` recommends for all robots."""

    parts: tuple[int, ...] = (2, 4, 8, 16)
    """Steps per sample of the motion, fewest first; if samples are more than `LONGEST` apart, per part of that time."""
    settled: float = inf
    """Finer steps are added while more than this is left in the extrapolated efforts, over their peak [-]."""
    beyond: int = 0
    """Number of finer steps taken instead of the same number of coarsest steps, for settled efforts."""
    lead: int = 10
    """Steps before the span; with `erp` 1 the start is forgotten after two."""
    erp: float = 1.0
    """Fraction of the opening of a loop that a step takes back [-]; DART's default is 0.01."""
    strongest: float = UNLIMITED
    """Largest force of the servos [N or N m]."""


OWN = Settings(settled=2e-7)
"""Settings of the route."""


class DartForward(Refinable):
    """Efforts read from DART's servos while its own solver keeps the loops closed."""

    name = "dart/forward"

    def __init__(self, settings: Settings = OWN) -> None:
        """With the settings of the route, or with others."""
        self.settings = settings

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        mechanism = case.mechanism
        with guarded(self.name):
            drives, undriven = held_drives(equations(mechanism), motion)
        _want_no_idle_rotor(mechanism, drives)
        ladder = self._rungs(mechanism, motion, drives, undriven)
        return forward_history(
            self.name,
            mechanism,
            motion,
            ladder,
            effort=without_step(ladder),
            settings={"steps": in_ms(ladder), **_in_words(self.settings, undriven=undriven > 0)},
            note="; ".join([EXTRAPOLATED, *carried_note(mechanism, drives)]),
        )

    def tightened(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.tightened`; its solver is direct and has no tolerance."""
        return type(self)(self.settings)

    def refined(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.refined`; its own steps, and a finer step."""
        return type(self)(replace(self.settings, beyond=self.settings.beyond + 1))

    def _rungs(self, mechanism: Mechanism, motion: Motion, drives: tuple[int, ...], undriven: int) -> list[Rung]:
        """The simulations, coarsest step first; finer steps are added until the efforts are settled."""
        settings = self.settings

        def rung(count: int) -> Rung:
            dt = divided(motion.dt) / (count * (FINER if undriven else 1))
            lead = 0 if undriven else settings.lead  # what nothing drives cannot be led to the start
            run = Run(dt=dt, lead=lead, drives=drives, erp=settings.erp, strongest=settings.strongest)
            return simulate(mechanism, motion, run)

        settled, beyond = settings.settled, settings.beyond
        return settled_rungs(rung, settings.parts, settled=settled, more=MORE, beyond=beyond)


def _in_words(settings: Settings, *, undriven: bool) -> dict[str, str]:
    """Every relevant setting, as text."""
    return {
        "extrapolation": in_words("the efforts of all steps", settled=settings.settled, more=MORE),
        "pre-roll": f"{0 if undriven else settings.lead} steps before the span, with initial velocities of half a "
        "step earlier",
        "loops": f"BallJointConstraint and WeldJointConstraint, error reduction {settings.erp:g}, force mixing 1e-9",
        "solver": "direct, Dantzig's for boxed constraints, DART's default",
        "drives": "SERVO with command (x(t+dt) - x)/dt and forces of at most "
        f"{settings.strongest:g}; read by getConstraintImpulse over the step",
        "springs and dampers": "of joints by DART, implicit in the step",
        "loads": "springs of balls and between points, external wrenches and gravity compensation before each step; "
        "rotors of drives by their prescribed acceleration",
    }


def _want_no_idle_rotor(mechanism: Mechanism, drives: tuple[int, ...]) -> None:
    """Refuse rotors of dependent joints, which DART lacks.

    Raises:
        NotRepresentableError: If the robot has such a rotor.
    """
    for k, drive in enumerate(mechanism.drives):
        joint = mechanism.joints[drive.joints[0]]
        if joint.armature and k not in drives:
            raise NotRepresentableError(
                f"dart: not supported: armature of joint '{joint.name}', a drive without effort (joints have no rotors)"
            )
