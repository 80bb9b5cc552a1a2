"""PyBullet's constraint solver and velocity motors, stepped at several step sizes and extrapolated to step zero.

If the finest step still changes the extrapolated efforts, finer steps are added: the necessary step depends on the
speed of the robot, and Bullet is of first order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import Self

import numpy as np

from loopcheck.engines.boundary import want_representable
from loopcheck.engines.extrapolation import readings_at_zero, unsettled, without_step
from loopcheck.engines.forward import EXTRAPOLATED, divided, forward_history, in_ms, in_words
from loopcheck.engines.projection import drives_along, null_space
from loopcheck.engines.pybullet._angles import in_angles
from loopcheck.engines.pybullet._jacobian import closure_jacobian
from loopcheck.engines.pybullet._motors import Motors, motors
from loopcheck.engines.pybullet._stepping import Driven, Run, Simulation, simulate
from loopcheck.engines.pybullet._world import BASE_LINK, World, opened, pybullet, refuse
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import EffortHistory, ReadsWrenches, Refinable
from loopcheck.robots.mechanism import WORLD, Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

UNLIMITED = 1e9
"""Force of motors and loops, and joint velocity, that are never reached [N, N m, m/s or rad/s]."""
STRONGEST = UNLIMITED
"""Largest force of the motors [N or N m]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of the simulations; by default as `loopcheck study refinement` recommends for all robots."""

    parts: tuple[int, ...] = (2, 4, 8, 16)
    """Steps per sample of the motion, fewest first; if samples are more than `LONGEST` apart, per part of that time."""
    settled: float = inf
    """Finer steps are added while more than this is left in the extrapolated efforts, over their peak [-]."""
    lead: int = 10
    """Steps before the span; with `erp` 1 the start is forgotten after two, or more if the solver converges slowly."""
    erp: float = 1.0
    """Fraction of the opening of a loop that a step takes back [-]."""
    iterations: int = 2000
    """Most iterations of the sequential-impulse solver in a step; well-conditioned robots stop at a few hundred."""
    residual: float = 1e-28
    """Squared change of a constraint's velocity that ends the solver's iterations [m²/s² or rad²/s²].

    A loop close to a singularity converges slowly: at 1e-24, a four-bar has an error of 1e-6; a tenth more
    iterations reduce it to 1e-8.
"""
    substeps: int = 0
    """PyBullet's own division of a step."""
    direct: bool = True
    """Whether the direct solver is used for loops that it solves correctly."""
    wrenches: bool = False
    """Whether forces in the joints are read."""
    damping: float = 0.0
    """Linear and angular damping of every link [1/s]; Bullet's default is 0.04."""


PATIENCE = 50
"""Factor on the iterations of the first step for runs without steps before the span [-]."""
FINER = 8
"""Divisor of the steps for robots with unactuated motions, which may vibrate on springs [-]."""
MORE = 2
"""Most rungs that are added, each twice as fine as the last."""
OWN = Settings(settled=5e-7)
"""Settings of the route."""


class PybulletForward(Refinable, ReadsWrenches):
    """Efforts read from PyBullet's motors while its own solver keeps the loops closed."""

    name = "pybullet/forward"

    def __init__(self, settings: Settings = OWN) -> None:
        """With the settings of the route, or with others."""
        self.settings = settings

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        mechanism = case.mechanism
        refuse(mechanism, motion.q, closed=True)
        plan = _plan(mechanism, motion, self.settings)
        if plan.motors.stand_ins:  # another actuation: the efforts can be converted, the forces in the joints are other
            plan = replace(plan, settings=replace(plan.settings, wrenches=False))
        simulations = list(_simulations(mechanism, motion, plan))
        ladder = [simulation.rung for simulation in simulations]
        return forward_history(
            self.name,
            mechanism,
            motion,
            ladder,
            effort=without_step(ladder),
            wrenches=readings_at_zero([rung.dt for rung in ladder], [rung.wrenches for rung in ladder]),
            settings={"steps": in_ms(ladder), **_in_words(plan)},
            note=_note(mechanism, plan, simulations[-1].unconverged),
        )

    def with_wrenches(self) -> Self:
        """See `loopcheck.robots.efforts.ReadsWrenches.with_wrenches`."""
        return type(self)(replace(self.settings, wrenches=True))

    def tightened(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.tightened`; the tolerance is of a square."""
        settings = self.settings
        return type(self)(replace(settings, residual=settings.residual / 100**2, iterations=2 * settings.iterations))

    def refined(self) -> Self:
        """See `loopcheck.robots.efforts.Refinable.refined`; with `erp` 1 its constraints are not soft.

        As much less is left as makes it add as many rungs.
        """
        settings = self.settings
        parts, settled = tuple(2 * count for count in settings.parts), settings.settled / 2 ** len(settings.parts)
        return type(self)(replace(settings, parts=parts, settled=settled))


@dataclass(frozen=True, slots=True)
class _Plan:
    motors: Motors
    undriven: bool
    """Whether the robot has unactuated motions."""
    direct: bool
    """Whether the direct solver is taken."""
    settings: Settings


def _in_words(plan: _Plan) -> dict[str, str]:
    """Every relevant setting, as text."""
    settings = plan.settings
    iterative = (
        f"sequential impulse, at most {settings.iterations} iterations, residual threshold {settings.residual:g}, "
        f"{settings.substeps or 'no'} substeps"
    )
    return {
        "solver": f"direct (Dantzig); after a failure {iterative}" if plan.direct else iterative,
        "extrapolation": in_words("the efforts of all steps", settled=settings.settled, more=MORE),
        "pre-roll": f"{0 if plan.undriven else settings.lead} steps before the span, with initial velocities of "
        "half a step earlier",
        "loops": f"createConstraint (point-to-point, fixed, gear), erp {settings.erp:g} each and globally, "
        "force limit off",
        "motors": "VELOCITY_CONTROL with target (x(t+dt) - x)/dt, gain 1, "
        f"force at most {STRONGEST:g}; read by getJointState",
        "damping": f"linear and angular {settings.damping:g}; joint damping as in the model; "
        "motors of passive joints off",
        "loads": "springs, external wrenches and gravity compensation applied before each step",
    }


def _simulations(mechanism: Mechanism, motion: Motion, plan: _Plan) -> Iterator[Simulation]:
    """The simulations, coarsest step first; finer steps are added until the efforts are settled, or cease to settle."""
    settings, simulations = plan.settings, list[Simulation]()
    finest = max(settings.parts)
    parts = (*settings.parts, *(finest * 2**k for k in range(1, MORE + 1)))
    for run in _runs(mechanism, motion, plan, parts):
        rungs = [simulation.rung for simulation in simulations]
        if len(rungs) >= len(settings.parts) and unsettled(rungs) <= settings.settled:
            return
        simulations.append(simulate(mechanism, motion, run))
        yield simulations[-1]


def _runs(mechanism: Mechanism, motion: Motion, plan: _Plan, parts: Sequence[int]) -> list[Run]:
    """The simulations with so many steps per sample, fewest first.

    Bullet moves the positions with the velocities at the end of a step, so that its velocities at some time are those
    of half a step earlier. Undriven dofs cannot be led to the start: without damping they do not reach it, with damping
    they grow backwards in time.
    """
    settings = plan.settings
    lead = 0 if plan.undriven else settings.lead
    steps = divided(motion.dt) / (np.array(parts) * (FINER if plan.undriven else 1))
    begin = motion.t[0] - steps[:, None] * [lead + 0.5, lead]
    traced = motion.assemble(np.unique(begin))
    q, qd, _ = in_angles(mechanism, traced.q, traced.qd, traced.qdd)
    ready, drive = partial(prepare, settings, plan.direct), partial(_drive, settings)
    patience = PATIENCE if plan.undriven else 1
    return [
        Run(
            dt=float(dt),
            lead=lead,
            q=q[start],
            qd=qd[earlier],
            motors=plan.motors,
            prepare=ready,
            drive=drive,
            patience=patience,
            wrenches=settings.wrenches,
        )
        for dt, (earlier, start) in zip(steps, np.searchsorted(traced.t, begin), strict=True)
    ]


def prepare(settings: Settings, direct: bool, world: World, loops: tuple[int, ...]) -> None:
    """Apply these settings to PyBullet, before the state is set.

    Args:
        settings: Settings that differ from PyBullet's defaults.
        direct: Whether the direct solver is taken.
        loops: PyBullet's numbers of the constraints.
    """
    where = {"physicsClientId": world.client}
    kind = pybullet.CONSTRAINT_SOLVER_LCP_DANTZIG if direct else pybullet.CONSTRAINT_SOLVER_LCP_SI
    stop = {"numSolverIterations": settings.iterations, "solverResidualThreshold": settings.residual}
    pybullet.setPhysicsEngineParameter(constraintSolverType=kind, **stop, **where)
    pybullet.setPhysicsEngineParameter(
        erp=settings.erp, numSubSteps=settings.substeps, reportSolverAnalytics=1, **where
    )
    for loop in loops:
        pybullet.changeConstraint(loop, maxForce=UNLIMITED, erp=settings.erp, **where)
    moving = {"linearDamping": settings.damping, "angularDamping": settings.damping, "maxJointVelocity": UNLIMITED}
    for link in range(BASE_LINK, pybullet.getNumJoints(world.tree, **where)):
        pybullet.changeDynamics(world.tree, link, **moving, **where)


def _drive(settings: Settings, driven: Driven, q: Array, target: Array) -> None:
    pybullet.setJointMotorControlArray(
        driven.world.tree,
        driven.links,
        pybullet.VELOCITY_CONTROL,
        targetVelocities=((target - q) / driven.dt).tolist(),
        forces=[STRONGEST] * len(driven.links),
        velocityGains=[1.0] * len(driven.links),
        physicsClientId=driven.world.client,
    )


def _plan(mechanism: Mechanism, motion: Motion, settings: Settings) -> _Plan:
    """Drives as many coordinates as move independently: more motors would contradict each other.

    Bullet's direct solver requires independent constraints, and it is wrong for constraints with both ends in the same
    multibody, as here all bodies are.
    """
    want_representable("pybullet", _of_gaps(mechanism))
    q, _, _ = in_angles(mechanism, motion.q, motion.qd, motion.qdd)
    with opened(mechanism) as world:
        J, tree = closure_jacobian(world, q[len(q) // 2]), world.mechanism
        places = drives_along(partial(closure_jacobian, world), q, tree.rates_of(tree.drives))
        driving = motors(world, mechanism, motion, places)
        to_world = not tree.coordinate_closures and all(WORLD in (c.body1, c.body2) for c in tree.rigid_closures)
        uncoupled = to_world and not world.rotors
    dof = null_space(J).shape[1]
    direct = settings.direct and uncoupled and len(J) == tree.nv - dof
    return _Plan(motors=driving, undriven=dof > len(places), direct=direct, settings=settings)


def _of_gaps(mechanism: Mechanism) -> Iterator[str]:
    """Loops that its solver iterates on without an end: a minute of no result."""
    if mechanism.closing.accuracy:
        yield f"loops whose redundant equations contradict each other by {mechanism.closing.accuracy:.1e} of the size"


def _note(mechanism: Mechanism, plan: _Plan, unconverged: float) -> str:
    carried = [drive.name for k, drive in enumerate(mechanism.drives) if k not in plan.motors.places]
    notes = [EXTRAPOLATED]
    if carried:
        notes.append(
            f"motors of {', '.join(carried)} off, because fewer drives determine the motion: compare projected efforts"
        )
    if plan.motors.stand_ins:
        names = ", ".join(mechanism.drives[k].name for k in plan.motors.places if not mechanism.drives[k].is_joint)
        notes.append(
            f"tendons have no motors; motors of joints coupled to them by the loops move {names}, "
            "so forces in the joints are not read"
        )
    if unconverged:
        limit = plan.settings.iterations
        notes.append(f"the solver stopped at its limit of {limit} iterations in {unconverged:.0%} of the steps")
    return "; ".join(notes)
