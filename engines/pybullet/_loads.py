"""Forces that Bullet knows nothing of: springs on joints, external wrenches, and what holds the weight of bodies."""

from collections.abc import Iterator

import numpy as np

from engines.pybullet._bullet import pybullet
from engines.pybullet._jacobian import point_jacobian
from engines.pybullet._world import World, body_pose
from robots.arrays import Array
from robots.mechanism import Wrench


def load_forces(world: World, q: Array, qd: Array) -> Array:
    """Generalized force of springs, dampers, external wrenches and gravity compensation.

    Args:
        world: The mechanism in PyBullet.
        q: Joint positions [m or rad], shape (nq,).
        qd: Joint velocities [m/s or rad/s], shape (nv,).

    Returns:
        Force on the joints [N or N m], shape (nv,).
    """
    mechanism = world.mechanism
    force = -np.array([joint.damping for joint in mechanism.joints]) * qd
    for j, effort in springs(world, q):
        force[j] += effort
    for load in wrenches(world):
        linear, angular = point_jacobian(world, load.body, load.point, q)
        force += load.force @ linear + load.moment @ angular
    return force


def apply_loads(world: World, q: Array) -> None:
    """Let all but the dampers act during the next step; those are in the URDF.

    Args:
        world: The mechanism in PyBullet.
        q: Joint positions [m or rad], shape (nq,).
    """
    where = {"physicsClientId": world.client}
    for j, effort in springs(world, q):
        pybullet.setJointMotorControl2(world.tree, world.joints[j], pybullet.TORQUE_CONTROL, force=effort, **where)
    for load in wrenches(world):
        p, R = body_pose(world, load.body)
        link, point = world.link(load.body), (p + R @ load.point).tolist()
        pybullet.applyExternalForce(world.tree, link, load.force.tolist(), point, pybullet.WORLD_FRAME, **where)
        pybullet.applyExternalTorque(world.tree, link, load.moment.tolist(), pybullet.WORLD_FRAME, **where)


def springs(world: World, q: Array) -> Iterator[tuple[int, float]]:
    """Joints with a spring, and its force on each [N or N m].

    Args:
        world: The mechanism in PyBullet.
        q: Joint positions [m or rad], shape (nq,).
    """
    for j, joint in enumerate(world.mechanism.joints):
        if joint.stiffness:
            yield j, joint.stiffness * (joint.spring_reference - float(q[j]))


def wrenches(world: World) -> Iterator[Wrench]:
    """External wrenches, and the force at the mass centre of each body with gravity compensation."""
    yield from world.mechanism.wrenches
    for b, body in enumerate(world.mechanism.bodies):
        if body.gravity_compensation:
            held = -body.gravity_compensation * body.mass * world.mechanism.gravity
            yield Wrench(body=b, point=body.center, moment=np.zeros(3), force=held)
