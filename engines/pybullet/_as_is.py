"""PyBullet as its user steps it, driven along a motion by torques, and its record."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from loopcheck.engines.as_is import Record
from loopcheck.engines.computed_torque import bandwidth, computed_torque, drive_matrices
from loopcheck.engines.equations import Demands, demands_along
from loopcheck.engines.own_drives import REACTION, REPORTED
from loopcheck.engines.pybullet._angles import from_angles, in_angles
from loopcheck.engines.pybullet._equations import PybulletEquations
from loopcheck.engines.pybullet._loops import opening
from loopcheck.engines.pybullet._world import World, inertial_poses, opened, pybullet
from loopcheck.engines.pybullet.simulation import STEP, PybulletRobot
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.errors import EngineError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion

Prepare: TypeAlias = Callable[[World, tuple[int, ...]], None]
"""Changes defaults; called with PyBullet's numbers of the constraints."""


def nothing(world: World, loops: tuple[int, ...]) -> None:
    """Leave everything as it comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stepping:
    """Settings of the stepping; by default PyBullet's own."""

    step: float = STEP
    """Step [s]."""
    bandwidth: float = bandwidth(STEP)
    """Of the controller, that of the default step for any step [rad/s]."""
    prepare: Prepare = nothing
    """Changes defaults."""


AS_IT_COMES = Stepping()


def demands(mechanism: Mechanism, motion: Motion) -> Demands:
    """The drives that hold a motion, and its demands by PyBullet's matrices."""
    states = in_angles(mechanism, motion.q, motion.qd, motion.qdd)
    with opened(mechanism) as world:
        return demands_along(PybulletEquations(world), states)


def simulate(
    mechanism: Mechanism,
    motion: Motion,
    known: Demands,
    *,
    start: int | Array = 0,
    stepping: Stepping = AS_IT_COMES,
) -> Record:
    """A run along a motion to its end.

    Args:
        known: Result of `demands`.
        start: Number of the sample of the motion at whose exact state the run starts, or joint positions at which it
            starts at rest [m or rad], shape (nq,).
        stepping: Settings of the stepping.

    Raises:
        NotRepresentableError: If the mechanism has an element that PyBullet cannot represent.
        EngineError: If PyBullet fails, or its state is not finite any more.
    """
    sample, step = start if isinstance(start, int) else 0, stepping.step
    independent, begin = known[0], float(motion.t[sample])
    steps = (begin, step, int(np.floor((motion.t[-1] - begin) / step + 1e-9)) + 1)
    controller = computed_torque(motion, known[1], independent, steps, stepping.bandwidth)
    first = (motion.q[[sample]], motion.qd[[sample]], motion.qdd[[sample]])
    if not isinstance(start, int):
        first = (start[None], 0 * first[1], 0 * first[2])
    q, qd, _ = in_angles(mechanism, *first)
    angles, rates, efforts, poses, read = [], [], [], [], []
    with opened(mechanism) as world:
        A, W = drive_matrices(world.mechanism, independent)
        robot = PybulletRobot(world)
        robot.put(q[0], qd[0])
        robot.timestep = step
        pybullet.setPhysicsEngineParameter(reportSolverAnalytics=1, physicsClientId=world.client)
        stepping.prepare(world, robot.loops)
        for k in range(len(controller.t)):
            position, velocity = robot.state()
            angles.append(position)
            rates.append(velocity)
            poses.append(inertial_poses(world))
            efforts.append(controller.efforts(k, A @ position, W @ velocity))
            read.append(robot.step(efforts[-1]))
        finite = np.isfinite(angles).all()
        drift = opening(world, np.array(angles), np.array(poses)) if finite else Deviation(np.inf, np.inf)
    x, xd, acted = np.array(angles), np.array(rates), np.array(efforts)
    if not (np.isfinite(x).all() and np.isfinite(xd).all() and np.isfinite(acted).all()):
        raise EngineError("pybullet/as_is: the simulation diverged: its state is not finite")
    positions, velocities = from_angles(mechanism, x, xd)
    return Record(
        controller=controller,
        positions=x @ A.T,
        q=positions,
        qd=velocities,
        acted=acted,
        readings={"commanded": acted} | {kind: np.array([row[kind] for row in read]) for kind in (REPORTED, REACTION)},
        at_limits={},
        drift=drift,
        iterations=robot.iterations / len(controller.t),
        independent=tuple(independent),
        holds_itself=False,
    )
