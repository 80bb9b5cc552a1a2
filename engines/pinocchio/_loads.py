"""Forces that Pinocchio lacks: springs, dampers, external wrenches and gravity compensation, as efforts on joints.

They are computed from Pinocchio's positions of the bodies, and act by its Jacobians.
"""

from collections.abc import Iterator

import numpy as np
import pinocchio as pin

from loopcheck.engines.mechanics import wrenches
from loopcheck.engines.pinocchio._tree import UNIVERSE, Tree
from loopcheck.robots.arrays import Array, JointForces, JointPositions, JointVelocities
from loopcheck.robots.mechanism import Joint, Mechanism, Wrench


def is_loaded(mechanism: Mechanism) -> bool:
    """Whether there are any such forces."""
    return bool(
        mechanism.tendons
        or mechanism.point_springs
        or mechanism.wrenches
        or any(joint.stiffness or joint.damping for joint in mechanism.joints)
        or any(body.gravity_compensation for body in mechanism.bodies)
    )


def load_forces(tree: Tree, q: JointPositions, qd: JointVelocities) -> JointForces:
    """Generalized force of springs, dampers, external wrenches and gravity compensation.

    Returns:
        Force on the joints [N or N m], shape (nv,).
    """
    force = joint_springs(tree.mechanism, q) + _tendon_springs(tree.mechanism, q) - tree.damping @ qd
    pin.computeJointJacobians(tree.model, tree.data, tree.positions(q))
    for load in (*wrenches(tree.mechanism), *_pulls(tree, qd)):
        J = _jacobian(tree, load.body, load.point)
        force += load.force @ J[:3] + load.moment @ J[3:]
    return force


def joint_springs(mechanism: Mechanism, q: JointPositions) -> Array:
    """Force of the springs of joints [N or N m], shape (nv,)."""
    force = np.zeros(mechanism.nv)
    for joint, places, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
        if joint.stiffness:
            force[dofs] = -joint.stiffness * _stretch(joint, q[places])
    return force


def _tendon_springs(mechanism: Mechanism, q: Array) -> Array:
    force = np.zeros(mechanism.nv)
    for tendon in mechanism.tendons:
        length = float(mechanism.values_of((tendon.length,), q[None])[0, 0])
        pull = tendon.stiffness * (length - np.clip(length, *tendon.rest))
        force -= pull * mechanism.rates_of((tendon.length,))[0]
    return force


def _stretch(joint: Joint, x: Array) -> Array:
    """Displacement of a joint from the rest position of its spring, turns as a rotation vector [m or rad], (dofs,)."""
    rest = joint.spring_reference
    if joint.kind in ("hinge", "slide"):
        return x - rest
    turn = pin.log3(_rotation(rest[-4:]).T @ _rotation(x[-4:]))
    return np.concatenate([x[:-4] - rest[:-4], turn])


def _rotation(quaternion: Array) -> Array:
    w, x, y, z = quaternion
    return pin.Quaternion(w, x, y, z).normalized().toRotationMatrix()


def _jacobian(tree: Tree, body: int, point: Array) -> Array:
    """Linear and angular velocity of a point of a body, world axes [m/rad, m/m, - or 1/m], shape (6, nv)."""
    joint, place = tree.place(body, point)
    if joint == UNIVERSE:
        return np.zeros((6, tree.model.nv))
    jacobian = pin.getFrameJacobian(tree.model, tree.data, joint, place, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
    return jacobian.reshape(6, tree.model.nv)  # a single column comes as a vector


def _pulls(tree: Tree, qd: Array) -> Iterator[Wrench]:
    """Forces of springs and dampers between two points at Pinocchio's positions of the bodies."""
    for spring in tree.mechanism.point_springs:
        (p1, J1), (p2, J2) = ((_position(tree, *end), _jacobian(tree, *end)[:3]) for end in spring.ends)
        line = p2 - p1
        length = float(np.linalg.norm(line))
        pull = spring.stiffness * (length - np.clip(length, *spring.rest))
        pull += spring.damping * (line / length) @ ((J2 - J1) @ qd)
        for (body, point), sign in zip(spring.ends, (1, -1), strict=True):
            yield Wrench(body=body, point=point, moment=np.zeros(3), force=sign * pull * line / length)


def _position(tree: Tree, body: int, point: Array) -> Array:
    joint, place = tree.place(body, point)
    return (tree.data.oMi[joint] * place).translation
