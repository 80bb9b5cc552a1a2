"""Coordinates of a rigid body of Exudyn: position of its mass centre, and Euler parameters (w, x, y, z)."""

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.engines.exudyn._frames import Frame, Pose
from loopcheck.robots.arrays import Array

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
