"""The rigid bodies given to Exudyn: one for each joint of a body, since an Exudyn joint connects two bodies.

All but the last of a body are massless, as an ideal cross of a universal joint.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.engines.mechanics import rotation
from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.mechanism import WORLD, Joint, Mechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """A rigid body of Exudyn, placed by a joint, or rigidly, on another."""

    body: int
    """Index of the body of the mechanism that it is, or is on the way to."""
    joint: int | None
    """Index of the joint that moves it; None if it is fixed."""
    before: int
    """Place of the frame that it is placed on, or `WORLD`."""
    position: Array
    """Its origin in that frame at the joint's reference [m], shape (3,)."""
    rotation: Array
    """Rotation from its axes to the axes of that frame at the joint's reference [-], shape (3, 3)."""
    center: Array
    """Its mass centre, the origin in Exudyn: a tiny inertia about another point would be lost [m], shape (3,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pose:
    """Pose and motion of a frame, world axes."""

    R: Array = field(default_factory=lambda: np.eye(3))
    """Rotation from its axes to the world's [-], shape (3, 3)."""
    p: Array = field(default_factory=lambda: np.zeros(3))
    """Origin [m], shape (3,)."""
    w: Array = field(default_factory=lambda: np.zeros(3))
    """Angular velocity [rad/s], shape (3,), or (n, 3) for n motions in the same position."""
    v: Array = field(default_factory=lambda: np.zeros(3))
    """Velocity of the origin [m/s], shape (3,) or (n, 3)."""
    alpha: Array = field(default_factory=lambda: np.zeros(3))
    """Angular acceleration [rad/s²], shape (3,) or (n, 3)."""
    a: Array = field(default_factory=lambda: np.zeros(3))
    """Acceleration of the origin [m/s²], shape (3,) or (n, 3)."""

    def motion_of(self, point: Array) -> tuple[Array, Array, Array]:
        """Position, shape (3,), velocity and acceleration, each (3,) or (n, 3), of a point of it [m, m/s, m/s²].

        Args:
            point: The point in its axes [m], shape (3,).
        """
        r = self.R @ point
        return self.p + r, self.v + _cross(self.w, r), self.a + _turned(self, r)


def frames(mechanism: Mechanism) -> tuple[Frame, ...]:
    """The frames of all bodies, each after its carrier."""
    chain: list[Frame] = []
    last = {WORLD: WORLD}
    for b, body in enumerate(mechanism.bodies):
        before, position, rotation = last[body.parent], body.position, body.rotation
        joints = mechanism.joints_of[b] or (None,)
        for k, j in enumerate(joints, start=1):
            center = body.center if k == len(joints) else np.zeros(3)
            frame = Frame(body=b, joint=j, before=before, position=position, rotation=rotation, center=center)
            chain.append(frame)
            before, position, rotation = len(chain) - 1, np.zeros(3), np.eye(3)
        last[b] = before
    return tuple(chain)


def places(chain: Sequence[Frame]) -> dict[int, int]:
    """Place of the frame of each body; the world is its own.

    Args:
        chain: Result of `frames`.
    """
    return {WORLD: WORLD, **{frame.body: place for place, frame in enumerate(chain)}}


def poses(mechanism: Mechanism, chain: Sequence[Frame], q: JointPositions, qd: Array, qdd: Array) -> list[Pose]:
    """Poses of all frames and their motion.

    Args:
        qd: Joint velocities [m/s or rad/s], shape (nv,) or (n, nv).
        qdd: Joint accelerations [m/s² or rad/s²], shape (nv,) or (n, nv).
    """
    chain_poses: list[Pose] = []
    still = np.zeros((*qd.shape[:-1], 3))
    world = Pose(w=still, v=still, alpha=still, a=still)
    for frame in chain:
        on = world if frame.before == WORLD else chain_poses[frame.before]
        p, v, a = on.motion_of(frame.position)
        pose = Pose(R=on.R @ frame.rotation, p=p, w=on.w, v=v, alpha=on.alpha, a=a)
        if frame.joint is not None:
            dofs = mechanism.dof_slices[frame.joint]
            joint, x = mechanism.joints[frame.joint], q[mechanism.q_slices[frame.joint]]
            pose = _MOVES[joint.kind](pose, joint, x, qd[..., dofs], qdd[..., dofs])
        chain_poses.append(pose)
    return chain_poses


def _hinge(pose: Pose, joint: Joint, x: Array, xd: Array, xdd: Array) -> Pose:
    n = pose.R @ joint.axis
    R = pose.R @ Rotation.from_rotvec(joint.axis * (x - joint.rest_position)).as_matrix()
    return _turn(pose, joint, R, n * xd, n * xdd)


def _ball(pose: Pose, joint: Joint, x: Array, xd: Array, xdd: Array) -> Pose:
    R = pose.R @ rotation(x).as_matrix()
    return _turn(pose, joint, R, xd @ R.T, xdd @ R.T)


def _slide(pose: Pose, joint: Joint, x: Array, xd: Array, xdd: Array) -> Pose:
    n = pose.R @ joint.axis
    r = n * (x - joint.rest_position)
    return Pose(
        R=pose.R,
        p=pose.p + r,
        w=pose.w,
        v=pose.v + _cross(pose.w, r) + n * xd,
        alpha=pose.alpha,
        a=pose.a + _turned(pose, r) + 2 * _cross(pose.w, n * xd) + n * xdd,
    )


def _free(pose: Pose, joint: Joint, x: Array, xd: Array, xdd: Array) -> Pose:
    R = rotation(x).as_matrix()
    return Pose(R=R, p=x[:3], w=xd[..., 3:] @ R.T, v=xd[..., :3], alpha=xdd[..., 3:] @ R.T, a=xdd[..., :3])


_MOVES = {"hinge": _hinge, "slide": _slide, "ball": _ball, "free": _free}


def _turn(pose: Pose, joint: Joint, R: Array, rate: Array, growth: Array) -> Pose:
    """Turn about the joint's anchor at a rate, world axes, that grows in the axes of the pose."""
    p, v, a = pose.motion_of(joint.anchor)
    turned = Pose(R=R, p=p, w=pose.w + rate, v=v, alpha=pose.alpha + growth + _cross(pose.w, rate), a=a)
    p, v, a = turned.motion_of(-joint.anchor)
    return Pose(R=R, p=p, w=turned.w, v=v, alpha=turned.alpha, a=a)


def _turned(pose: Pose, r: Array) -> Array:
    """Acceleration of a point at r from the origin beside that of the origin [m/s²], shape (3,) or (n, 3)."""
    return _cross(pose.alpha, r) + _cross(pose.w, _cross(pose.w, r))


def _cross(a: Array, b: Array) -> Array:
    """As numpy's, which takes several times as long for few products, shape (3,) or (n, 3)."""
    (a0, a1, a2), (b0, b1, b2) = a.T, b.T
    return np.array([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0]).T


COORDINATES = 7
"""Of a body."""


def coordinates(chain: Sequence[Frame], chain_poses: Sequence[Pose]) -> tuple[Array, Array, Array]:
    """Coordinates of all bodies, shape (7 bodies,), their velocities and accelerations, each of shape (..., 7 bodies).

    Args:
        chain: Frames of the bodies.
    """
    R = np.array([pose.R for pose in chain_poses])
    e = np.roll(Rotation.from_matrix(R).as_quat(), 1, axis=1)
    w, alpha = (np.stack([getattr(pose, name) for pose in chain_poses], axis=-2) for name in ("w", "alpha"))
    e_t = _half_product(w, e)
    e_tt = _half_product(alpha, e) + _half_product(w, e_t)
    at_center = [pose.motion_of(frame.center) for frame, pose in zip(chain, chain_poses, strict=True)]
    linear = (np.stack(vectors, axis=-2) for vectors in zip(*at_center, strict=True))
    whole = (np.concatenate(parts, axis=-1) for parts in zip(linear, (e, e_t, e_tt), strict=True))
    c, c_t, c_tt = (values.reshape(*values.shape[:-2], -1) for values in whole)
    return c, c_t, c_tt


def poses_of(c: Array) -> tuple[Array, Array]:
    """Rotations [-], shape (nt, bodies, 3, 3), and mass centres [m], shape (nt, bodies, 3), of all bodies.

    Args:
        c: Coordinates of all bodies [m or -], shape (nt, 7 bodies).
    """
    split = c.reshape(len(c), -1, COORDINATES)
    quaternions = np.roll(split[..., 3:], -1, axis=-1)
    R = Rotation.from_quat(quaternions.reshape(-1, 4)).as_matrix()
    return R.reshape(*quaternions.shape[:2], 3, 3), split[..., :3]


def _half_product(w: Array, e: Array) -> Array:
    """Half the quaternion product (0, w) e, shape (..., bodies, 4)."""
    real = -np.sum(w * e[..., 1:], axis=-1, keepdims=True)
    return np.concatenate([real, e[..., :1] * w + np.cross(w, e[..., 1:])], axis=-1) / 2
