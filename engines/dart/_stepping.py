"""Steps DART through a motion with the loops closed by its own constraints, and reads its servos."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, assert_never

import dartpy
import numpy as np

from loopcheck.engines.boundary import silenced
from loopcheck.engines.dart._loads import apply_loads, point_motion
from loopcheck.engines.dart._loops import opening
from loopcheck.engines.dart._skeleton import Tree, build, guarded
from loopcheck.engines.forward import Readings
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation, Rung
from loopcheck.robots.mechanism import WORLD, ConnectClosure, Mechanism, RigidClosure, WeldClosure
from loopcheck.robots.motion import Motion

UNLIMITED = 1e9
"""Force of servos that is never reached [N or N m]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A simulation."""

    dt: float
    """Step, a divisor of the step of the motion [s]."""
    lead: int
    """Number of steps before the span."""
    drives: tuple[int, ...]
    """Places of the driven coordinates that are driven."""
    erp: float
    """Fraction of the opening of a loop that a step takes back [-]."""
    strongest: float = UNLIMITED
    """Largest force of the servos [N or N m]."""


def simulate(mechanism: Mechanism, motion: Motion, run: Run) -> Rung:
    """Simulate a motion at a step size.

    DART moves positions with the velocities at the end of a step, so that its velocities at some time are those
    of half a step earlier.

    Args:
        run: Settings of the stepping.

    Raises:
        NotRepresentableError: If the mechanism has an element that DART cannot represent.
        EngineError: If DART fails, or its state is not finite.
    """
    clock = perf_counter()
    begin = motion.t[0] - run.lead * run.dt
    traced = motion.assemble(np.array([begin - run.dt / 2, begin]))
    with guarded(f"dart: steps of {run.dt:g} s"), silenced():
        tree = build(mechanism)
        tree.put(traced.q[1], traced.qd[0])
        positions, forces, drift = _march(tree, motion, run)
    targets, driven = motion.law(motion.t), [mechanism.drives[k].joints[0] for k in run.drives]
    rotors = np.array([mechanism.joints[j].armature for j in driven])
    rest = np.array([mechanism.joints[j].rest_position[0] for j in driven])
    readings = Readings(
        dt=run.dt,
        drives=run.drives,
        forces=forces + rotors * targets.qdd[:, run.drives],
        tracked=[mechanism.drives[k] for k in run.drives],
        miss=positions + rest - targets.q[:, run.drives],
        drift=drift,
    )
    return readings.rung(mechanism, "dart", clock)


def close_loops(world: Any, tree: Tree, erp: float) -> None:
    """Add a constraint for each closure, at its ends in the state.

    Args:
        world: DART's world with the skeleton.
        tree: The mechanism in DART, its loops closed.
        erp: Fraction of the opening of a loop that a step corrects [-].
    """
    for closure in tree.mechanism.rigid_closures:
        constraint = _constraint(tree, closure)
        constraint.setErrorReductionParameter(erp)
        constraint.setMaxErrorReductionVelocity(UNLIMITED)
        world.getConstraintSolver().addConstraint(constraint)


def world_with(tree: Tree, dt: float) -> Any:
    """A world of DART with a skeleton in it and a step [s]."""
    world = dartpy.simulation.World()
    world.setTimeStep(dt)
    world.setGravity(tree.mechanism.gravity)
    world.addSkeleton(tree.skeleton)
    return world


def _march(tree: Tree, motion: Motion, run: Run) -> tuple[Array, Array, Deviation]:
    """Positions of the driven joints, as DART counts them, forces of their servos, each at the samples, and drift."""
    world, mechanism = world_with(tree, run.dt), tree.mechanism
    close_loops(world, tree, run.erp)
    driven = [mechanism.drives[k].joints[0] for k in run.drives]
    servos = [tree.joints[j][0] for j in driven]
    for servo in servos:
        servo.setActuatorType(dartpy.dynamics.ActuatorType.SERVO)
        servo.setForceUpperLimit(0, run.strongest)
        servo.setForceLowerLimit(0, -run.strongest)
    places = [servo.getIndexInSkeleton(0) for servo in servos]
    per_sample = round(motion.dt / run.dt)
    steps = range(-run.lead, (len(motion.t) - 1) * per_sample + 1)
    rest = [mechanism.joints[j].rest_position[0] for j in driven]
    targets = motion.law(motion.t[0] + run.dt * np.arange(steps.start, steps.stop + 1)).q[:, run.drives] - rest
    positions, forces, drift = [], [], Deviation()
    for k, target in zip(steps, targets[1:], strict=True):
        x = np.array(tree.skeleton.getPositions())[places]
        reported = k >= 0 and k % per_sample == 0
        if reported:
            drift = drift.or_worse(opening(tree))
            positions.append(x)
        _command(servos, (target - x) / run.dt)
        apply_loads(tree)
        world.step(False)
        if reported:
            forces.append([servo.getConstraintImpulse(0) / run.dt for servo in servos])
    return np.array(positions), np.array(forces), drift


def _command(servos: Sequence[Any], rates: Array) -> None:
    for servo, rate in zip(servos, rates.tolist(), strict=True):
        servo.setCommand(0, rate)


def _constraint(tree: Tree, closure: RigidClosure) -> Any:
    """DART's constraint; the world is no body there."""
    (first, point), *others = [
        (tree.bodies[body], (body, point))
        for body, point in ((closure.body1, closure.point1), (closure.body2, closure.point2))
        if body != WORLD
    ]
    bodies = [first, *(node for node, _ in others)]
    match closure:
        case ConnectClosure():
            return dartpy.constraint.BallJointConstraint(*bodies, point_motion(tree, *point)[0])
        case WeldClosure():
            return dartpy.constraint.WeldJointConstraint(*bodies)
        case _:
            assert_never(closure)
