"""Frames as matrices of position and axes, shape (4, 4), and the rotations that files state."""

from collections.abc import Sequence

import numpy as np

from loopcheck.robots.arrays import Array


def rigid_frame(position: Array | Sequence[float], rotation: Array) -> Array:
    """A frame.

    Args:
        position: Origin [m], shape (3,).
        rotation: Axes in columns [-], shape (3, 3).

    Returns:
        Position and axes [m and -], shape (4, 4).
    """
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = rotation, position
    return X


def of_quaternion(quaternion: Array | Sequence[float]) -> Array:
    """Rotation matrix [-], shape (3, 3).

    Args:
        quaternion: Rotation (w, x, y, z) of any length above zero [-], shape (4,).
    """
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_quat(np.asarray(quaternion, dtype=float), scalar_first=True).as_matrix())


def quaternion(rotation: Array) -> Array:
    """Unit quaternion (w, x, y, z) of a rotation [-], shape (4,).

    Args:
        rotation: Rotation matrix [-], shape (3, 3).
    """
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_matrix(np.array(rotation)).as_quat(scalar_first=True))


def of_angles(angles: Array | Sequence[float]) -> Array:
    """Rotation matrix of roll, pitch and yaw [-], shape (3, 3).

    Args:
        angles: Rotations about the fixed X, Y and Z axes, in this order [rad], shape (3,).
    """
    roll, pitch, yaw = angles
    return _turn(2, yaw) @ _turn(1, pitch) @ _turn(0, roll)


def angles_of(rotation: Array) -> Array:
    """Roll, pitch and yaw [rad], shape (3,), that give the rotation to round-off at every pitch.

    Near a pitch of a right angle, yaw is uncertain; the roll is computed with the yaw that was chosen.

    Args:
        rotation: Rotation matrix [-], shape (3, 3).
    """
    yaw = np.arctan2(rotation[1, 0], rotation[0, 0])
    pitch = np.arctan2(-rotation[2, 0], np.hypot(rotation[0, 0], rotation[1, 0]))
    left = _turn(1, -pitch) @ _turn(2, -yaw) @ rotation
    return np.array([np.arctan2(left[2, 1], left[1, 1]), pitch, yaw])


def _turn(axis: int, angle: float) -> Array:
    R = np.eye(3)
    i, k = [(1, 2), (2, 0), (0, 1)][axis]
    R[i, i] = R[k, k] = np.cos(angle)
    R[i, k], R[k, i] = -np.sin(angle), np.sin(angle)
    return R


def of_axis(axis: Array, angle: float) -> Array:
    """Rotation matrix [-], shape (3, 3).

    Args:
        axis: Unit axis [-], shape (3,).
        angle: Angle about it [rad].
    """
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_rotvec(angle * axis).as_matrix())
