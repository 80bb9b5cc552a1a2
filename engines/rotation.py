"""Rotations between axes of joints as a model has them and as an engine does."""

import numpy as np

from loopcheck.robots.arrays import Array


def axes_along(axis: Array, along: Array) -> Array:
    """A rotation that turns one axis of an engine's joint into the joint's [-], shape (3, 3).

    Args:
        axis: Axis of the joint [-], shape (3,).
        along: Axis that the engine's joint has, one of the coordinates' [-], shape (3,).
    """
    from scipy.spatial.transform import Rotation

    if np.allclose(axis, -along):
        return Rotation.from_rotvec(np.pi * np.roll(along, 1)).as_matrix()
    cross = np.cross(along, axis)
    size = float(np.linalg.norm(cross))
    angle = np.arctan2(size, along @ axis)
    return Rotation.from_rotvec(cross / size * angle if size else np.zeros(3)).as_matrix()
