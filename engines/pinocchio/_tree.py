"""The spanning tree of a mechanism in Pinocchio, built through its API, and the loads that Pinocchio lacks.

Pinocchio's reader of MJCF loses parts of a model.

A free joint becomes a translation along the world's axes and a ball behind it, so that all velocities are those of the
`Mechanism`: Pinocchio's own free joint moves along the axes of the body. Quaternions are (x, y, z, w) in Pinocchio.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin

from loopcheck.engines.boundary import converted, of_paths, want_representable
from loopcheck.engines.loads import joint_springs, laws, on_joints, pulls, tendon_forces, wrenches
from loopcheck.robots.arrays import AnyArray, Array, JointForces, JointPositions, JointVelocities
from loopcheck.robots.mechanism import WORLD, Body, Joint, Mechanism, Wrench

UNIVERSE = 0
"""Pinocchio's number of the joint that is the world."""
ALIGNED: Mapping[tuple[str, tuple[float, ...]], Any] = {
    ("hinge", (1.0, 0.0, 0.0)): pin.JointModelRX,
    ("hinge", (0.0, 1.0, 0.0)): pin.JointModelRY,
    ("hinge", (0.0, 0.0, 1.0)): pin.JointModelRZ,
    ("slide", (1.0, 0.0, 0.0)): pin.JointModelPX,
    ("slide", (0.0, 1.0, 0.0)): pin.JointModelPY,
    ("slide", (0.0, 0.0, 1.0)): pin.JointModelPZ,
}
"""The fastest model of a joint along an axis of its body."""
BEHIND: Mapping[str, tuple[int, ...]] = {
    "hinge": (0,),
    "slide": (0,),
    "ball": (1, 2, 3, 0),
    "free": (0, 1, 2, 4, 5, 6, 3),
}
"""Our place at each place of Pinocchio's within the positions of a joint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A mechanism in Pinocchio, its loops cut; velocities stand as in the mechanism."""

    mechanism: Mechanism
    model: Any
    data: Any
    joints: tuple[tuple[int, ...], ...]
    """Pinocchio's numbers of the joints that each joint is made of."""
    bodies: tuple[int, ...]
    """Pinocchio's number of the frame of each body."""
    order: AnyArray
    """Our place in q at each place of Pinocchio's [-], shape (nq,)."""
    zero: Array
    """Our position at zero of Pinocchio's position [m or rad], shape (nq,)."""
    damping: Array
    """Damping of joints, absent from Pinocchio [N s/m or N m s/rad], shape (nv,)."""

    def positions(self, q: JointPositions) -> Array:
        """Joint positions in Pinocchio's order, quaternions of length one."""
        return pin.normalize(self.model, (q - self.zero)[self.order])

    def ours(self, x: JointPositions) -> Array:
        """Joint positions as the mechanism has them.

        Args:
            x: Pinocchio's [m or rad], shape (nq,).
        """
        q = np.array(self.zero)
        q[self.order] += x
        return q

    def place(self, body: int, point: Array, rotation: Array | None = None) -> tuple[int, Any]:
        """Pinocchio's joint that carries a frame of a body, and the pose of the frame on it.

        Args:
            body: Index of the body, or `WORLD`.
            point: Origin of the frame in that of the body [m], shape (3,).
            rotation: Its axes there [-], shape (3, 3); by default those of the body.
        """
        local = pin.SE3(np.eye(3) if rotation is None else np.array(rotation), np.array(point))
        if body == WORLD:
            return UNIVERSE, local
        frame = self.model.frames[self.bodies[body]]
        return frame.parentJoint, frame.placement * local


def lost_of_tree(mechanism: Mechanism) -> Iterator[str]:
    """Elements that Pinocchio's tree lacks."""
    yield from of_paths(mechanism)
    for tendon in mechanism.tendons:
        if tendon.armature:
            yield f"armature of tendon '{tendon.name}' (rotors only on single degrees of freedom)"


def build(mechanism: Mechanism) -> Tree:
    """The spanning tree in Pinocchio, in the gravity of the mechanism, with the rotors of its joints.

    Raises:
        NotRepresentableError: If a tendon has armature: Pinocchio's rotors are on single dofs.
    """
    want_representable("pinocchio", lost_of_tree(mechanism))
    model = pin.Model()
    model.gravity.linear = np.array(mechanism.gravity)
    joints: list[tuple[int, ...]] = [()] * len(mechanism.joints)
    bodies: list[int] = []
    for b, body in enumerate(mechanism.bodies):
        carrier, pose = _pose_in_carrier(model, bodies, body)
        for j in mechanism.joints_of[b]:
            joints[j], pose = _add_joint(model, mechanism.joints[j], carrier, pose)
            carrier = joints[j][-1]
        inertia = pin.Inertia(body.mass, np.array(body.center), np.array(body.inertia))
        frame = pin.Frame(f"body{b}", carrier, 0, pose, pin.FrameType.BODY, inertia)
        bodies.append(int(model.addFrame(frame)))
    model.armature = _per_dof(mechanism, "armature")
    order, zero = _counting(mechanism)
    return Tree(
        mechanism=mechanism,
        model=model,
        data=model.createData(),
        joints=tuple(joints),
        bodies=tuple(bodies),
        order=order,
        zero=zero,
        damping=_per_dof(mechanism, "damping"),
    )


guarded = partial(converted, errors=(ValueError, RuntimeError))
"""Converts the exceptions of the engine."""


def is_loaded(mechanism: Mechanism) -> bool:
    """Whether there are loads that Pinocchio lacks."""
    return bool(laws(mechanism) or mechanism.wrenches or any(joint.damping for joint in mechanism.joints))


def load_forces(tree: Tree, q: JointPositions, qd: JointVelocities) -> JointForces:
    """Generalized force of springs, dampers, external wrenches and gravity compensation [N or N m], shape (nv,).

    It is computed from Pinocchio's positions of the bodies, and acts by its Jacobians.
    """
    force = joint_springs(tree.mechanism, q) + tendon_forces(tree.mechanism, q, qd) - tree.damping * qd
    return on_joints(force, loads(tree, q, qd), partial(_rows, tree))


def loads(tree: Tree, q: JointPositions, qd: JointVelocities) -> tuple[Wrench, ...]:
    """External wrenches, gravity compensation and forces of springs between points, at Pinocchio's positions."""
    pin.computeJointJacobians(tree.model, tree.data, tree.positions(q))
    velocity = partial(_rows, tree)
    between = pulls(tree.mechanism, partial(_position, tree), lambda body, point: velocity(body, point)[:3] @ qd)
    return (*wrenches(tree.mechanism), *between)


def _position(tree: Tree, body: int, point: Array) -> Array:
    joint, place = tree.place(body, point)
    return np.asarray((tree.data.oMi[joint] * place).translation)


def _rows(tree: Tree, body: int, point: Array) -> Array:
    """Linear and angular velocity of a point of a body, world axes [m/rad, m/m, - or 1/m], shape (6, nv)."""
    joint, place = tree.place(body, point)
    if joint == UNIVERSE:
        return np.zeros((6, tree.model.nv))
    jacobian = pin.getFrameJacobian(tree.model, tree.data, joint, place, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
    return np.asarray(jacobian.reshape(6, tree.model.nv))  # a single column comes as a vector


def _pose_in_carrier(model: Any, bodies: list[int], body: Body) -> tuple[int, Any]:
    """Pinocchio's joint that carries the parent of a body, and the pose of the body on it."""
    given = pin.SE3(np.array(body.rotation), np.array(body.position))
    if body.parent == WORLD:
        return UNIVERSE, given
    frame = model.frames[bodies[body.parent]]
    return frame.parentJoint, frame.placement * given


def _add_joint(model: Any, joint: Joint, carrier: int, pose: Any) -> tuple[tuple[int, ...], Any]:
    """Numbers of the added joints, and the pose of the body on the last."""
    if joint.kind == "free":  # its position is not counted from where the body is given
        moved = model.addJoint(carrier, pin.JointModelTranslation(), pin.SE3.Identity(), f"{joint.name} position")
        turned = model.addJoint(moved, pin.JointModelSpherical(), pin.SE3.Identity(), joint.name)
        return (int(moved), int(turned)), pin.SE3.Identity()
    anchor = pin.SE3(np.eye(3), np.array(joint.anchor))
    added = model.addJoint(carrier, _joint_model(joint), pose * anchor, joint.name)
    return (int(added),), anchor.inverse()


def _joint_model(joint: Joint) -> Any:
    if joint.kind == "ball":
        return pin.JointModelSpherical()
    if aligned := ALIGNED.get((joint.kind, tuple(joint.axis.tolist()))):
        return aligned()
    unaligned = pin.JointModelRevoluteUnaligned if joint.kind == "hinge" else pin.JointModelPrismaticUnaligned
    return unaligned(np.array(joint.axis))


def _counting(mechanism: Mechanism) -> tuple[AnyArray, Array]:
    """`order` and `zero` of a tree."""
    order, zero = np.zeros(mechanism.nq, dtype=int), np.zeros(mechanism.nq)
    for joint, places in zip(mechanism.joints, mechanism.q_slices, strict=True):
        order[places] = places.start + np.array(BEHIND[joint.kind])
        if joint.kind in ("hinge", "slide"):
            zero[places] = joint.rest_position
    return order, zero


def _per_dof(mechanism: Mechanism, quantity: str) -> Array:
    """A quantity of the joints at each of their dofs, shape (nv,)."""
    of_joints = zip(mechanism.joints, mechanism.dof_slices, strict=True)
    return np.concatenate([np.zeros(0), *(np.full(s.stop - s.start, getattr(j, quantity)) for j, s in of_joints)])
