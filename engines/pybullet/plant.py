"""Robots that a controller drives in PyBullet, stepped together with its default solver and damping."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

import numpy as np

from loopcheck.engines.pybullet._bullet import pybullet
from loopcheck.engines.pybullet._loops import close_loops
from loopcheck.engines.pybullet._world import World, opened
from loopcheck.robots.arrays import Array, EffortSeries, PositionSeries, VelocitySeries
from loopcheck.robots.mechanism import Mechanism


class PybulletRobots:
    """A client for each mechanism, its loops closed by PyBullet's own constraints."""

    def __init__(self, worlds: Sequence[World], q: PositionSeries, qd: VelocitySeries) -> None:
        """Put every robot into its state, with all motors off.

        Args:
            worlds: The robots, with hinges and slides only and a gear of one at every actuator.
        """
        self._worlds = worlds
        for world, positions, velocities in zip(worlds, q, qd, strict=True):
            close_loops(world)
            where = {"physicsClientId": world.client}
            state = zip(world.moving, world.positions(positions), world.rates(velocities), strict=True)
            for joint, position, velocity in state:
                pybullet.resetJointState(world.tree, joint, position, velocity, **where)
                pybullet.setJointMotorControl2(world.tree, joint, pybullet.VELOCITY_CONTROL, force=0.0, **where)

    def state(self) -> tuple[Array, Array]:
        """Joint positions [m or rad], shape (n, nq), and velocities, shape (n, nv); not finite where one has failed."""
        states = [
            pybullet.getJointStates(world.tree, world.joints, physicsClientId=world.client) for world in self._worlds
        ]
        read = np.array([[joint[:2] for joint in robot] for robot in states], dtype=float)
        return read[..., 0] + [world.reference for world in self._worlds], read[..., 1]

    def step(self, tau: EffortSeries, dt: float) -> None:
        """Hold the efforts for one step.

        Args:
            dt: Length of the step [s].
        """
        for world, efforts in zip(self._worlds, tau @ self._worlds[0].mechanism.selection, strict=True):
            where = {"physicsClientId": world.client}
            pybullet.setTimeStep(dt, **where)
            driven = world.mechanism.actuated_joints
            links, forces = [world.joints[j] for j in driven], [float(efforts[j]) for j in driven]
            pybullet.setJointMotorControlArray(world.tree, links, pybullet.TORQUE_CONTROL, forces=forces, **where)
            pybullet.stepSimulation(**where)


@contextmanager
def robots(mechanisms: Sequence[Mechanism], q: PositionSeries, qd: VelocitySeries) -> Iterator[PybulletRobots]:
    """Robots in PyBullet.

    Args:
        mechanisms: The robots, with hinges and slides only.

    Raises:
        EngineError: If PyBullet fails.
    """
    with ExitStack() as stack:
        yield PybulletRobots([stack.enter_context(opened(mechanism)) for mechanism in mechanisms], q, qd)
