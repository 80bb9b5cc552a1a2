"""Forces that Bullet lacks: springs, dampers of tendons and balls, external wrenches, gravity compensation."""

from collections.abc import Iterator

import numpy as np

from loopcheck.engines.pybullet._bullet import pybullet
from loopcheck.engines.pybullet._jacobian import point_jacobian
from loopcheck.engines.pybullet._world import World, body_pose, joint_state, place
from loopcheck.robots.arrays import Array, JointForces, JointPositions, JointVelocities
from loopcheck.robots.mechanism import WORLD, Wrench


def load_forces(world: World, q: JointPositions, qd: JointVelocities) -> JointForces:
    """Generalized force of springs, dampers, external wrenches and gravity compensation.

    Returns:
        Force on the joints [N or N m], shape (nv,).
    """
    force = _on_joints(world, q, qd) - np.array([joint.damping for joint in world.mechanism.joints]) * qd
    if world.passive.point_springs:
        set_state(world, q, qd)  # they pull where the bodies are
    for load in (*world.passive.wrenches, *_pulls(world, q, qd)):
        linear, angular = point_jacobian(world, load.body, load.point, q)
        force += load.force @ linear + load.moment @ angular
    return force


def apply_loads(world: World) -> None:
    """Apply all but the dampers of joints (these are in the URDF) during the next step, at PyBullet's state."""
    where, loads = {"physicsClientId": world.client}, world.passive.wrenches
    if world.passive.by_state:
        q, qd = joint_state(world)
        forces = _on_joints(world, q, qd).tolist()
        pybullet.setJointMotorControlArray(world.tree, world.joints, pybullet.TORQUE_CONTROL, forces=forces, **where)
        loads = (*loads, *_pulls(world, q, qd))
    for load in loads:
        link, point = world.link(load.body), place(world, load.body, load.point)
        pybullet.applyExternalForce(world.tree, link, load.force.tolist(), point, pybullet.WORLD_FRAME, **where)
        pybullet.applyExternalTorque(world.tree, link, load.moment.tolist(), pybullet.WORLD_FRAME, **where)


def set_state(world: World, q: JointPositions, qd: JointVelocities) -> None:
    """Set the positions and velocities of all joints and rotors."""
    for joint, position, velocity in zip(world.moving, world.positions(q), world.rates(qd), strict=True):
        pybullet.resetJointState(world.tree, joint, position, velocity, physicsClientId=world.client)


def _on_joints(world: World, q: Array, qd: Array) -> Array:
    """Springs of joints, and springs and dampers of tendons and balls [N or N m], shape (nv,)."""
    force = np.zeros(world.mechanism.nv)
    for j, effort in springs(world, q):
        force[j] += effort
    for tendon, w in world.passive.tendons:
        length = float(w @ q)
        force -= (tendon.stiffness * (length - np.clip(length, *tendon.rest)) + tendon.damping * (w @ qd)) * w
    for turn in world.passive.turns:
        force[turn.dofs] += turn.effort(q[turn.dofs], qd[turn.dofs])
    return force


def springs(world: World, q: JointPositions) -> Iterator[tuple[int, float]]:
    """Joints with a spring of their own, and its force on each [N or N m]."""
    for j, joint in world.passive.springs:
        yield j, joint.stiffness * float(joint.spring_reference[0] - q[j])


def _pulls(world: World, q: Array, qd: Array) -> Iterator[Wrench]:
    """Forces of springs and dampers between two points at PyBullet's positions of the bodies."""
    for spring in world.passive.point_springs:
        (p1, R1), (p2, R2) = (body_pose(world, body) for body, _ in spring.ends)
        line = p2 + R2 @ spring.point2 - p1 - R1 @ spring.point1
        length = float(np.linalg.norm(line))
        pull = spring.stiffness * (length - np.clip(length, *spring.rest))
        if spring.damping:
            v1, v2 = (point_jacobian(world, *end, q)[0] @ qd for end in spring.ends)
            pull += spring.damping * (line / length) @ (v2 - v1)
        for (body, point), sign in zip(spring.ends, (1, -1), strict=True):
            if body != WORLD:
                yield Wrench(body=body, point=point, moment=np.zeros(3), force=sign * pull * line / length)
