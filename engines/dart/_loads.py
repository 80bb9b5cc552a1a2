"""External wrenches, compensated weights, springs of balls and between points, at the positions of DART's bodies.

DART stores loads along the axes of the body, so they are applied anew in each state.
"""

from collections.abc import Iterator

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.engines.dart._skeleton import BALL_OR_FREE, Tree, rotation
from loopcheck.engines.mechanics import wrenches
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import WORLD, Wrench


def apply_loads(tree: Tree) -> None:
    """Let the loads of a mechanism act in the state that DART has."""
    tree.skeleton.clearExternalForces()
    for load in (*wrenches(tree.mechanism), *_pulls(tree), *_turns(tree)):
        if load.body != WORLD:
            body = tree.bodies[load.body]
            body.addExtForce(load.force, load.point, False, True)
            body.addExtTorque(load.moment, False)


def joint_forces(tree: Tree) -> tuple[Array, Array]:
    """Forces of the springs of joints except balls, and of the dampers of joints [N or N m], shape (nv,) each.

    By DART's values: its inverse dynamics evaluates them at the joints of the next step.
    """
    springs = -per_dof(tree, "SpringStiffness") * (tree.skeleton.getPositions() - per_dof(tree, "RestPosition"))
    return springs, -per_dof(tree, "DampingCoefficient") * tree.skeleton.getVelocities()


def per_dof(tree: Tree, quantity: str) -> Array:
    """A quantity of DART's joints at each of their dofs, shape (nv,)."""
    joints = [joint for parts in tree.joints for joint in parts]
    return np.array([getattr(joint, f"get{quantity}")(k) for joint in joints for k in range(joint.getNumDofs())])


def turn(tree: Tree, j: int) -> Rotation:
    """Rotation of a ball or free joint at DART's pose from the rest orientation of its spring."""
    q = tree.ours(np.array(tree.skeleton.getPositions()))[tree.mechanism.q_slices[j]]
    return rotation(tree.mechanism.joints[j].spring_reference).inv() * rotation(q)


def ball_spring(tree: Tree, j: int) -> Array:
    """Moment of the spring of a ball or free joint at DART's pose, body axes [N m], shape (3,)."""
    return np.array(-tree.mechanism.joints[j].stiffness * turn(tree, j).as_rotvec())


def _turns(tree: Tree) -> Iterator[Wrench]:
    """Moments of the springs of balls on both bodies."""
    for j, joint in enumerate(tree.mechanism.joints):
        if joint.kind not in BALL_OR_FREE or not joint.stiffness:
            continue
        moment = tree.bodies[joint.body].getWorldTransform().rotation() @ ball_spring(tree, j)
        for body, sign in ((joint.body, 1), (tree.mechanism.bodies[joint.body].parent, -1)):
            yield Wrench(body=body, point=np.zeros(3), moment=sign * moment, force=np.zeros(3))


def _pulls(tree: Tree) -> Iterator[Wrench]:
    """Forces of springs and dampers between two points at the positions of DART's bodies."""
    for spring in tree.mechanism.point_springs:
        (p1, v1), (p2, v2) = (point_motion(tree, *end) for end in spring.ends)
        line = p2 - p1
        length = float(np.linalg.norm(line))
        pull = spring.stiffness * (length - np.clip(length, *spring.rest))
        pull += spring.damping * (line / length) @ (v2 - v1)
        for (body, point), sign in zip(spring.ends, (1, -1), strict=True):
            yield Wrench(body=body, point=point, moment=np.zeros(3), force=sign * pull * line / length)


def point_motion(tree: Tree, body: int, point: Array) -> tuple[Array, Array]:
    """Position in DART of a point of a body [m], shape (3,), and its velocity [m/s], shape (3,).

    Args:
        body: Index of the body, or `WORLD`.
        point: The point in the body frame [m], shape (3,).
    """
    if body == WORLD:
        return point, np.zeros(3)
    node = tree.bodies[body]
    pose = node.getWorldTransform()
    return pose.rotation() @ point + pose.translation(), np.array(node.getLinearVelocity(point))
