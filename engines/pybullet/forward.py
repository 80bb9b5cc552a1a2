"""PyBullet's constraint solver and velocity motors, stepped at several step sizes and extrapolated to step zero."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from engines.projection import independent_drives, null_space
from engines.pybullet._angles import in_angles
from engines.pybullet._bullet import pybullet
from engines.pybullet._jacobian import closure_jacobian
from engines.pybullet._motors import Motors, motors
from engines.pybullet._stepping import Command, Run, simulate
from engines.pybullet._world import BASE_LINK, World, opened
from robots.arrays import Array
from robots.efforts import EffortHistory
from robots.mechanism import WORLD, CoordinateClosure, Mechanism
from robots.motion import Motion
from robots.robot import Case

PARTS = (2, 4, 8, 16)
"""Steps per sample of the motion; if samples are more than `LONGEST` apart, per equal part of that time."""
LONGEST = 0.05
"""Longest time that is divided into so many steps [s]."""
LEAD = 10
"""Steps before the span; with `ERP` 1 the start is forgotten after two, or more where the solver converges slowly."""
ERP = 1.0
"""Fraction of the opening of a loop that a step takes back [-]."""
ITERATIONS = 2000
"""Most iterations of the sequential-impulse solver in a step; well-conditioned robots stop at a few hundred."""
RESIDUAL = 1e-24
"""Squared change of a constraint's velocity at which the solver stops [m²/s² or rad²/s²]."""
UNLIMITED = 1e9
"""Force of loops, and joint velocity, that are never reached [N, N m, m/s or rad/s]."""
STRONGEST = UNLIMITED
"""Largest force of the motors [N or N m]."""
ITERATIVE = f"sequential impulse, at most {ITERATIONS} iterations, residual threshold {RESIDUAL:g}, no substeps"
DIRECT = f"direct (Dantzig), or where it fails {ITERATIVE}"

SETTINGS = {
    "extrapolation": "Richardson: value at step zero of the polynomial through the efforts of all steps",
    "pre-roll": f"{LEAD} steps before the span, started with the velocities of half a step earlier",
    "loops": f"createConstraint (point-to-point, fixed, gear), erp {ERP:g} of each and globally, force limit off",
    "motors": "VELOCITY_CONTROL with target (x(t+dt) - x)/dt, gain 1, force limit off; read by getJointState",
    "damping": "linear and angular 0; joint damping as in the model; default motors of passive joints off",
    "loads": "springs, external wrenches and gravity compensation applied before each step",
}


class PybulletForward:
    """Efforts read from PyBullet's motors while its own solver keeps the loops closed."""

    name = "pybullet/forward"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        mechanism = case.mechanism
        plan = _plan(mechanism, motion)
        simulations = [simulate(mechanism, motion, run) for run in _runs(mechanism, motion, plan)]
        ladder = tuple(simulation.rung for simulation in simulations)
        return EffortHistory(
            source=self.name,
            actuators=tuple(actuator.name for actuator in mechanism.actuators),
            t=motion.t,
            effort=_extrapolated([rung.dt for rung in ladder], [rung.effort for rung in ladder]),
            closure_drift=ladder[-1].closure_drift,
            tracking_error=ladder[-1].tracking_error,
            settings={
                "steps": ", ".join(f"{1e3 * rung.dt:g}" for rung in ladder) + " ms",
                "solver": DIRECT if plan.direct else ITERATIVE,
                **SETTINGS,
            },
            ladder=ladder,
            note=_note(mechanism, plan, simulations[-1].unconverged),
        )


@dataclass(frozen=True, slots=True)
class _Plan:
    motors: Motors
    direct: bool
    """Whether the direct solver is right."""


def _runs(mechanism: Mechanism, motion: Motion, plan: _Plan) -> list[Run]:
    """The simulations, coarsest step first.

    Bullet moves the positions with the velocities at the end of a step, so that the velocities it has at some time are
    those of half a step earlier. The starts are traced back from the span, that of the finest step first.
    """
    divided = motion.dt / np.ceil(motion.dt / LONGEST - 1e-9)
    runs, traced = [], motion
    for dt in (float(divided / parts) for parts in reversed(PARTS)):
        traced = traced.assemble(motion.t[0] - dt * np.array([LEAD + 0.5, LEAD]))
        q, qd, _ = in_angles(mechanism, traced.q, traced.qd, traced.qdd)
        start = {"dt": dt, "q": q[1], "qd": qd[0]}
        runs.append(Run(**start, lead=LEAD, motors=plan.motors, prepare=partial(prepare, plan.direct), drive=_drive))
    return runs[::-1]


def prepare(direct: bool, world: World, loops: tuple[int, ...]) -> None:
    """Set the solver, take away damping and limits, and let constraints be stiff.

    Args:
        direct: Whether to solve directly.
        world: The mechanism in PyBullet.
        loops: PyBullet's numbers of the constraints.
    """
    where = {"physicsClientId": world.client}
    kind = pybullet.CONSTRAINT_SOLVER_LCP_DANTZIG if direct else pybullet.CONSTRAINT_SOLVER_LCP_SI
    pybullet.setPhysicsEngineParameter(
        constraintSolverType=kind, numSolverIterations=ITERATIONS, solverResidualThreshold=RESIDUAL, **where
    )
    pybullet.setPhysicsEngineParameter(erp=ERP, numSubSteps=0, reportSolverAnalytics=1, **where)
    for loop in loops:
        pybullet.changeConstraint(loop, maxForce=UNLIMITED, erp=ERP, **where)
    still = {"linearDamping": 0.0, "angularDamping": 0.0, "maxJointVelocity": UNLIMITED}
    for link in range(BASE_LINK, pybullet.getNumJoints(world.tree, **where)):
        pybullet.changeDynamics(world.tree, link, **still, **where)


def _drive(world: World, command: Command) -> None:
    pybullet.setJointMotorControlArray(
        world.tree,
        [world.joints[j] for j in command.joints],
        pybullet.VELOCITY_CONTROL,
        targetVelocities=((command.target - command.q) / command.dt).tolist(),
        forces=[STRONGEST] * len(command.joints),
        velocityGains=[1.0] * len(command.joints),
        physicsClientId=world.client,
    )


def _extrapolated(steps: list[float], efforts: list[Array]) -> Array:
    """Value at step zero of the polynomial through the efforts [N or N m], shape (nt, na)."""
    h = np.array(steps)
    weights = [np.prod(others / (others - own)) for own, others in ((h[i], np.delete(h, i)) for i in range(len(h)))]
    return np.tensordot(weights, np.array(efforts), axes=1)


def _plan(mechanism: Mechanism, motion: Motion) -> _Plan:
    """Drives as many coordinates as move independently: more motors would fight each other.

    They are chosen at the middle of the motion. Bullet's direct solver wants independent constraints, and it is wrong
    for those with both ends in one multibody, as here all bodies are in one.
    """
    q, _, _ = in_angles(mechanism, motion.q, motion.qd, motion.qdd)
    with opened(mechanism) as world:
        J, tree = closure_jacobian(world, q[len(q) // 2]), world.mechanism
        places = independent_drives(J, tree.rates_of(tree.drives))
        driving = motors(world, mechanism, motion, places)
        to_world = all(not isinstance(c, CoordinateClosure) and WORLD in (c.body1, c.body2) for c in tree.closures)
        uncoupled = to_world and not world.rotors
    independent = len(J) == tree.nv - null_space(J).shape[1]
    return _Plan(motors=driving, direct=uncoupled and independent)


def _note(mechanism: Mechanism, plan: _Plan, unconverged: float) -> str:
    carried = [drive.name for k, drive in enumerate(mechanism.drives) if k not in plan.motors.places]
    notes = ["first-order steps, extrapolated to step zero; drift and tracking error are of the finest step"]
    if carried:
        notes.append(f"motors of {', '.join(carried)} off, as the others move the robot: compare projected efforts")
    if plan.motors.stand_ins:
        names = ", ".join(mechanism.drives[k].name for k in plan.motors.places if not mechanism.drives[k].is_joint)
        notes.append(f"tendons have no motor: those of joints that the loops tie to them move {names}")
    if unconverged:
        notes.append(f"the solver stopped at its limit of {ITERATIONS} iterations in {unconverged:.0%} of those steps")
    return "; ".join(notes)
