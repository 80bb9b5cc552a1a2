"""Forces in the joints as PyBullet reports them: reactions of the joints, and forces of the constraints of loops."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from loopcheck.engines.declarations import WrenchReading
from loopcheck.engines.pybullet._world import World, body_frames, pybullet
from loopcheck.robots.arrays import Array
from loopcheck.robots.connections import connections
from loopcheck.robots.mechanism import WORLD, CoordinateClosure, Mechanism, WeldClosure

READINGS = (
    WrenchReading(
        name="jointReactionForces",
        carriers="bodies",
        point="centre of mass of the child",
        axes="inertial frame of the child; force first",
        sign="on the child",
        code="""
f, m = np.split(np.array(pybullet.getJointState(robot, joint)[2]), 2)  # after enableJointForceTorqueSensor
center, orientation = pybullet.getDynamicsInfo(robot, joint)[3:5]
Q = np.array(pybullet.getMatrixFromQuaternion(orientation)).reshape(3, 3)
force, moment = Q @ f, Q @ m + np.cross(center - anchor, Q @ f)
moment += axis * motor  # getJointState()[3]; of a slide: force += axis * motor, and its moment about the anchor
""",
        drive="not included if a motor drives; included with TORQUE_CONTROL",
        time="mean over the step",
        fault="v × S q̇, gyroscopic moments and damping count twice; the motor of a slide acts at the mass centre of "
        "its parent, a gear about the axis of its first joint",
    ),
    WrenchReading(
        name="getConstraintState",
        carriers="closures",
        point="point of the constraint",
        axes="world; moments of a fixed constraint along the axes of its frame on the parent",
        sign="minus on the parent of the constraint for points; on the parent for fixed constraints",
        code="""
R = np.array(pybullet.getMatrixFromQuaternion(pybullet.getLinkState(robot, parent)[5])).reshape(3, 3)  # before the step
reading = np.array(pybullet.getConstraintState(constraint))  # after the step
force, moment = -R.T @ reading, np.zeros(3)  # JOINT_POINT2POINT
force, moment = R.T @ reading[:3], reading[3:]  # JOINT_FIXED
""",
        time="mean over the step",
    ),
)
"""See `loopcheck.engines.contract.Wrenches`."""


class Read(NamedTuple):
    """Readings of a step."""

    joints: Array
    """Reactions of the joints before all bodies, and the forces of their motors, shape (bodies, 7)."""
    loops: list[Array]
    """Forces of the constraints, each of shape (rows,)."""


def enable(world: World) -> None:
    """Switch on the sensors of the joints before all bodies."""
    for link in world.links:
        pybullet.enableJointForceTorqueSensor(world.tree, link, enableSensor=True, physicsClientId=world.client)


def read(world: World, loops: Sequence[int]) -> Read:
    """Readings of the last step.

    Args:
        loops: PyBullet's numbers of the constraints.
    """
    where = {"physicsClientId": world.client}
    forces = [np.atleast_1d(pybullet.getConstraintState(loop, **where)) for loop in loops]
    states = pybullet.getJointStates(world.tree, world.links, **where)
    return Read(np.array([[*reaction, motor] for _, _, reaction, motor in states]), forces)


def wrenches(world: World, mechanism: Mechanism, poses: Array, readings: Sequence[Read]) -> Mapping[str, Array]:
    """Wrenches of the connections by reading [N m, N], shape (nt, connections, 6).

    Args:
        mechanism: Robot; balls and all.
        poses: Results of `inertial_poses` before the steps [m, -], shape (nt, bodies, 7).
        readings: Results of `read` after the steps.
    """
    carriers, (_, R) = connections(mechanism), body_frames(world, poses)
    of_bodies, of_closures = np.full((2, len(poses), len(carriers), 6), np.nan)
    constraints = iter(k for k, c in enumerate(world.mechanism.loop_closures) if not isinstance(c, CoordinateClosure))
    for k, (_, body, point, closure) in enumerate(carriers):
        if closure is None:
            center, Q = world.inertial_frames[body]
            force, moment, motor = np.split(np.array([each.joints[body] for each in readings]), [3, 6], axis=1)
            force, moment = force @ Q.T, moment @ Q.T
            for j in world.mechanism.joints_of[body][-1:]:
                joint = world.mechanism.joints[j]
                (force if joint.kind == "slide" else moment)[:] += motor * joint.axis  # of a slide, at the centre too
            of_bodies[:, k] = np.concatenate([moment + np.cross(center - point, force), force], axis=1)
            continue
        place, is_weld = next(constraints), isinstance(closure, WeldClosure)
        rows = np.array([each.loops[place] for each in readings])
        rows *= (1 if is_weld else -1) * (-1 if body == WORLD else 1)  # the world comes second
        of_closures[:, k, 3:] = (rows[:, None, :3] @ R[:, body])[:, 0]
        of_closures[:, k, :3] = rows[:, 3:] if is_weld else 0.0
    return {"jointReactionForces": of_bodies, "getConstraintState": of_closures}
