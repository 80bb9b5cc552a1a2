"""A robot in PyBullet: with its defaults, or undamped with the solver as tight as it goes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from loopcheck.engines.own_drives import REACTION, REPORTED
from loopcheck.engines.pybullet._equations import apply_loads, start
from loopcheck.engines.pybullet._loops import close_loops, follow_curves, geared
from loopcheck.engines.pybullet._world import World, joint_state, opened, pybullet
from loopcheck.engines.pybullet.routes.forward import OWN, prepare
from loopcheck.engines.simulation import Free, Pace, Readings, State
from loopcheck.robots.arrays import Array, Efforts, JointForces, JointPositions, JointVelocities
from loopcheck.robots.mechanism import Mechanism

STEP = 1 / 240
"""PyBullet's default step [s]."""
SETTINGS = (
    "default: steps of 1/240 s, default damping; tight: steps of 1 ms or 1/100 of the "
    "span, no damping, converged solver"
)
"""See `loopcheck.engines.contract.Simulation`."""


class PybulletRobot:
    """See `loopcheck.engines.simulation.Robot`; balls and free joints are angles."""

    def __init__(self, world: World) -> None:
        """Close the loops by PyBullet's own constraints, at the default step."""
        self.world, self.loops = world, close_loops(world)
        self.iterations = 0
        """Iterations of the solver in all steps; a step without a report counts as one [-]."""
        self._gears, self._step, self._where = geared(world, self.loops), STEP, {"physicsClientId": world.client}
        self._selection, self._driven = world.mechanism.selection, world.mechanism.actuated_joints
        self._links, self._sensors = [world.joints[j] for j in self._driven], list(_sensors(world))

    @property
    def timestep(self) -> float:
        """See `loopcheck.engines.simulation.Robot.timestep`."""
        return self._step

    @timestep.setter
    def timestep(self, step: float) -> None:
        self._step = step
        pybullet.setTimeStep(step, **self._where)

    def put(self, q: JointPositions, qd: JointVelocities, t: float = 0.0) -> None:
        """See `loopcheck.engines.simulation.Robot.put`.

        The motors that PyBullet starts with are switched off, and the sensors of the drives on.
        """
        start(self.world, q, qd)
        for link in self._links:
            pybullet.enableJointForceTorqueSensor(self.world.tree, link, enableSensor=True, **self._where)

    def state(self) -> State:
        """See `loopcheck.engines.simulation.Robots.state`."""
        return joint_state(self.world)

    def step(self, command: Efforts, count: int = 1) -> Readings:
        """See `loopcheck.engines.simulation.Robots.step`: forces of the motors, and reactions of the joints.

        Both are NaN for an actuator of a tendon.
        """
        force = command @ self._selection
        for _ in range(count):
            if self._gears:
                follow_curves(self.world, self._gears, self.state()[0])
            apply_loads(self.world)
            self.push(force)
        reported, reaction = np.array(list(self._readings())).T
        return {REPORTED: reported, REACTION: reaction}

    def push(self, force: JointForces) -> None:
        """Make a step with forces on the driven joints; they add to the loads."""
        tree, forces = self.world.tree, [float(force[j]) for j in self._driven]
        pybullet.setJointMotorControlArray(tree, self._links, pybullet.TORQUE_CONTROL, forces=forces, **self._where)
        solved = pybullet.stepSimulation(**self._where) or ()
        self.iterations += max((island["numIterationsUsed"] for island in solved), default=1)

    def _readings(self) -> Iterator[tuple[float, float]]:
        """Force of the motor, and reaction along the axis of the joint, of each actuator."""
        for sensor in self._sensors:
            if sensor is None:
                yield np.nan, np.nan
                continue
            _, _, wrench, motor = pybullet.getJointState(self.world.tree, sensor.link, **self._where)
            yield motor, float(sensor.axis @ wrench[sensor.part])


class _Sensor(NamedTuple):
    """Sensor of the joint of an actuator."""

    link: int
    """PyBullet's index of the joint."""
    part: slice
    """The force or the moment in PyBullet's wrench."""
    axis: Array
    """Axis of the joint in the axes of the inertial frame, about whose origin PyBullet reports [-], shape (3,)."""


def _sensors(world: World) -> Iterator[_Sensor | None]:
    """The sensor of each actuator; none for an actuator of a tendon."""
    for actuator in world.mechanism.actuators:
        if not actuator.coordinate.is_joint:
            yield None
            continue
        j = actuator.coordinate.joints[0]
        joint = world.mechanism.joints[j]
        _, Q = world.inertial_frames[joint.body]
        part = slice(3) if joint.kind == "slide" else slice(3, None)
        yield _Sensor(world.joints[j], part, joint.axis @ Q)


@contextmanager
def simulate(mechanism: Mechanism, tight: bool = False) -> Iterator[PybulletRobot]:
    """See `loopcheck.engines.contract.Simulation.simulate`."""
    with opened(mechanism) as world:
        robot = PybulletRobot(world)
        if tight:
            prepare(OWN, False, world, robot.loops)
        yield robot


free_motion = Free(simulate=simulate, tight_pace=Pace(step=1e-3, fewest=10))
"""See `loopcheck.engines.contract.Simulation.free_motion`."""
