"""A robot in PyBullet: with its defaults, or undamped with the solver as tight as it goes."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from loopcheck.engines.own_drives import REACTION, REPORTED
from loopcheck.engines.pybullet._bullet import pybullet
from loopcheck.engines.pybullet._loads import apply_loads, set_state
from loopcheck.engines.pybullet._loops import close_loops, follow_curves, geared
from loopcheck.engines.pybullet._world import World, joint_state, opened
from loopcheck.engines.pybullet.routes.forward import OWN, prepare
from loopcheck.engines.simulation import Free, Pace, Readings, State
from loopcheck.robots.arrays import Efforts, JointForces, JointPositions, JointVelocities
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
        world = self.world
        set_state(world, q, qd)
        for joint in world.moving:
            pybullet.setJointMotorControl2(world.tree, joint, pybullet.VELOCITY_CONTROL, force=0.0, **self._where)
        for j in world.mechanism.actuated_joints:
            pybullet.enableJointForceTorqueSensor(world.tree, world.joints[j], enableSensor=True, **self._where)

    def state(self) -> State:
        """See `loopcheck.engines.simulation.Robots.state`."""
        return joint_state(self.world)

    def step(self, command: Efforts, count: int = 1) -> Readings:
        """See `loopcheck.engines.simulation.Robots.step`: forces of the motors, and reactions of the joints.

        Both are NaN for an actuator of a tendon.
        """
        force = command @ self.world.mechanism.selection
        for _ in range(count):
            if self._gears:
                follow_curves(self.world, self._gears, self.state()[0])
            apply_loads(self.world)
            self.push(force)
        reported, reaction = np.array(list(self._readings())).T
        return {REPORTED: reported, REACTION: reaction}

    def push(self, force: JointForces) -> None:
        """Make a step with forces on the driven joints; they add to the loads."""
        world, driven = self.world, self.world.mechanism.actuated_joints
        links, forces = [world.joints[j] for j in driven], [float(force[j]) for j in driven]
        pybullet.setJointMotorControlArray(world.tree, links, pybullet.TORQUE_CONTROL, forces=forces, **self._where)
        solved = pybullet.stepSimulation(**self._where) or ()
        self.iterations += max((island["numIterationsUsed"] for island in solved), default=1)

    def _readings(self) -> Iterator[tuple[float, float]]:
        """Force of the motor, and reaction along the axis of the joint, of each actuator."""
        world = self.world
        for actuator in world.mechanism.actuators:
            if not actuator.coordinate.is_joint:
                yield np.nan, np.nan
                continue
            j = actuator.coordinate.joints[0]
            joint = world.mechanism.joints[j]
            _, _, wrench, motor = pybullet.getJointState(world.tree, world.joints[j], **self._where)
            on_link = wrench[:3] if joint.kind == "slide" else wrench[3:]
            _, Q = world.inertial_frames[joint.body]
            yield motor, float(joint.axis @ Q @ on_link)  # in the axes of the inertial frame, about its origin


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
