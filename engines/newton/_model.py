"""A mechanism as Newton's model: its tree as an articulation, its closures as joints outside of it.

A body with several hinges and slides gets a single joint of Newton (D6) that slides, then turns. All numbers there are
of single precision.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, assert_never

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.engines.boundary import converted
from loopcheck.engines.mechanics import rotation
from loopcheck.engines.newton._coordinates import newton_positions, own_positions, own_velocities, rates
from loopcheck.engines.newton._newton import newton, warp
from loopcheck.engines.newton._support import is_floating, want_carried
from loopcheck.engines.own_drives import Gains
from loopcheck.robots.arrays import AnyArray, Array, JointPositions, JointVelocities
from loopcheck.robots.mechanism import POSITIONS, WORLD, ConnectClosure, Joint, Mechanism, RigidClosure, WeldClosure

NOTHING = np.zeros(3)
UNDAMPED: Mapping[str, float] = {"steel:rigid_body_angular_damping": 0.0}
"""Steel fills in 0.05 per second for bodies that float."""
guarded = partial(converted, errors=(ValueError, RuntimeError, TypeError, NotImplementedError))
"""Converts the exceptions of the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A mechanism in Newton."""

    mechanism: Mechanism
    model: Any
    """Newton's `Model`."""
    state: Any
    """Its `State`."""

    def put(self, q: JointPositions, qd: JointVelocities) -> None:
        """Set the state of the tree, and from it that of the bodies."""
        state = self.state
        positions, velocities = state.joint_q.numpy(), state.joint_qd.numpy()
        positions[: self.mechanism.nq] = newton_positions(self.mechanism, q)
        velocities[: self.mechanism.nv] = rates(self.mechanism, q) @ qd
        state.joint_q.assign(positions)
        state.joint_qd.assign(velocities)
        newton.eval_fk(self.model, state.joint_q, state.joint_qd, state)

    def joint_state(self, state: Any) -> tuple[Array, Array]:
        """Joint positions [m or rad], shape (nq,), and velocities [m/s or rad/s], shape (nv,), of a state of Newton's.

        Args:
            state: A `State` with the joints of the tree first, and up to date.
        """
        q = own_positions(self.mechanism, numbers(state.joint_q)[: self.mechanism.nq])
        return q, own_velocities(self.mechanism, q, numbers(state.joint_qd)[: self.mechanism.nv])

    def body_poses(self) -> tuple[Array, Array]:
        """Origins of the bodies [m], shape (nb, 3), and their axes [-], shape (nb, 3, 3), by Newton's kinematics."""
        return poses_of(self.state)


def poses_of(state: Any) -> tuple[Array, Array]:
    """Origins of the bodies of a state [m], shape (nb, 3), and their axes [-], shape (nb, 3, 3)."""
    poses = state.body_q.numpy().astype(float)
    return poses[:, :3], Rotation.from_quat(poses[:, 3:]).as_matrix()


def build(
    mechanism: Mechanism, gains: Gains | None = None, *, floats: bool = False, stands: Tree | None = None
) -> Tree:
    """The mechanism in Newton, in the gravity of the mechanism.

    Args:
        gains: Of Newton's drives on the joints that have a motor; by default there are none.
        floats: Whether a body with six free dofs gets a free joint instead: Kamino has no other form of it.
        stands: The same in a state with closed loops, for the measurement of closures; by default no such state.

    Raises:
        NotRepresentableError: If an element of the mechanism has no counterpart.
    """
    want_carried(mechanism)
    builder = newton.ModelBuilder(gravity=tuple(mechanism.gravity), up_axis=newton.Axis.Z)
    newton.solvers.SolverSteel.register_custom_attributes(builder)
    links = [
        builder.add_link(
            mass=body.mass,
            com=tuple(body.center),
            inertia=body.inertia,
            lock_inertia=True,
            label=body.name,
            custom_attributes=UNDAMPED,
        )
        for body in mechanism.bodies
    ]
    joints = [_add_joint(builder, mechanism, b, gains, floats=floats) for b in links]
    builder.add_articulation(joints)
    for closure in mechanism.rigid_closures:
        _close(builder, closure)
    if stands is not None:
        _stand(builder, stands, floats=floats)
    model = builder.finalize()
    return Tree(mechanism=mechanism, model=model, state=model.state())


def numbers(array: Any) -> AnyArray:
    """Content of an array of Warp, in double precision."""
    return np.array(array.numpy(), dtype=float)


def _stand(builder: Any, stands: Tree, *, floats: bool) -> None:
    """Let the model begin in a state: some solvers take the reference of a closure from it."""
    mechanism, poses = stands.mechanism, stands.state.body_q.numpy()
    positions, starts = stands.state.joint_q.numpy(), stands.model.joint_q_start.numpy()
    for b, own in enumerate(mechanism.joints_of):
        builder.body_q[b] = warp.transform(*poses[b])
        begin = builder.joint_q_start[b]
        count = sum(POSITIONS[mechanism.joints[j].kind] for j in own)
        values = poses[b] if floats and is_floating(mechanism, b) else positions[starts[b] :][:count]
        builder.joint_q[begin : begin + len(values)] = values.tolist()


def _add_joint(builder: Any, mechanism: Mechanism, b: int, gains: Gains | None, *, floats: bool) -> int:
    """The joint of a body; its number."""
    body, own = mechanism.bodies[b], [mechanism.joints[j] for j in mechanism.joints_of[b]]
    turning = [joint for joint in own if joint.kind in ("hinge", "ball")]
    anchor = turning[0].anchor if turning else NOTHING
    place = {
        "parent_xform": _pose(body.position + body.rotation @ anchor, body.rotation),
        "child_xform": _pose(anchor, np.eye(3)),
        "label": body.name,
    }
    if not own:
        return int(builder.add_joint_fixed(body.parent, b, **place))
    if own[0].kind == "free" or (floats and is_floating(mechanism, b)):
        return int(builder.add_joint_free(b, parent=body.parent, label=body.name))
    if own[0].kind == "ball":
        return _add_ball(builder, body.parent, own[0], place)
    driven = {drive.joints[0]: k for k, drive in enumerate(mechanism.drives)} if gains else {}
    linear, angular = (
        [
            _axis(mechanism.joints[j], _law(gains, driven.get(j)))
            for j in mechanism.joints_of[b]
            if mechanism.joints[j].kind == kind
        ]
        for kind in ("slide", "hinge")
    )
    if len(own) > 1:
        return int(builder.add_joint_d6(body.parent, b, linear_axes=linear, angular_axes=angular, **place))
    add = builder.add_joint_prismatic if linear else builder.add_joint_revolute
    return int(add(body.parent, b, axis=(linear or angular)[0], **place))


def _add_ball(builder: Any, parent: int, joint: Joint, place: Mapping[str, Any]) -> int:
    """A ball joint; its number."""
    loads = {"armature": joint.armature, "damping": joint.damping, "stiffness": joint.stiffness, "friction": 0.0}
    added = int(builder.add_joint_ball(parent, joint.body, **loads, **place))
    begin = builder.joint_q_start[added]
    builder.joint_rest_q[begin : begin + 4] = rotation(joint.spring_reference).as_quat().tolist()
    return added


def _law(gains: Gains | None, drive: int | None) -> dict[str, Any]:
    """Settings that turn a joint into a driven joint."""
    if gains is None or drive is None:
        return {}
    return {
        "target_ke": float(gains.stiffness[drive]),
        "target_kd": float(gains.damping[drive]),
        "actuator_mode": newton.JointTargetMode.POSITION_VELOCITY,
    }


def _axis(joint: Joint, law: dict[str, Any]) -> Any:
    """An axis of a joint, without limits and dry friction."""
    return newton.ModelBuilder.JointDofConfig(
        axis=tuple(joint.axis),
        armature=joint.armature,
        damping=joint.damping,
        stiffness=joint.stiffness,
        rest_q=float((joint.spring_reference - joint.rest_position)[0]),
        friction=0.0,
        **law,
    )


def _close(builder: Any, closure: RigidClosure) -> None:
    """A joint outside of the articulation: its child must be a body of it."""
    (parent, at_parent), (child, at_child) = (closure.body1, closure.point1), (closure.body2, closure.point2)
    turn = closure.rotation if isinstance(closure, WeldClosure) else np.eye(3)
    if child == WORLD:
        (parent, at_parent), (child, at_child), turn = (child, at_child), (parent, at_parent), turn.T
    place = {
        "parent_xform": _pose(at_parent, turn),
        "child_xform": _pose(at_child, np.eye(3)),
        "label": closure.name,
    }
    match closure:
        case ConnectClosure():
            builder.add_joint_ball(parent, child, **place)
        case WeldClosure():
            builder.add_joint_fixed(parent, child, **place)
        case _:
            assert_never(closure)


def _pose(position: Array, R: Array) -> Any:
    return warp.transform(tuple(position), tuple(Rotation.from_matrix(R).as_quat()))
