"""Imports OpenSim, which contains Simbody, without its log; conversion of numbers and arrays to its types and back."""

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from loopcheck.engines.boundary import converted, silenced
from loopcheck.robots.arrays import Array

with silenced():
    opensim: Any = import_module("opensim")
opensim.Logger.setLevelString("Off")
opensim.Logger.removeFileSink()  # else it writes opensim.log into the working directory


def vec3(values: Sequence[float] | Array) -> Any:
    """Three numbers in Simbody's type.

    Args:
        values: The numbers [any unit], shape (3,).
    """
    return opensim.Vec3(*(float(x) for x in values))


def vector(values: Array) -> Any:
    """Any many numbers in Simbody's type.

    Args:
        values: The numbers [any unit], shape (n,).
    """
    return opensim.Vector.createFromMat(np.ascontiguousarray(values, dtype=np.float64))


def fixed_angles(R: Array) -> Any:
    """A rotation in OpenSim's form: angles about x, y and z of the turning frame [rad].

    Args:
        R: Rotation [-], shape (3, 3).
    """
    return vec3(angles(R))


def angles(R: Array) -> Array:
    """Angles of R = Rx Ry Rz [rad], shape (3,), right to round-off also at 90° of the second.

    Args:
        R: Rotation [-], shape (3, 3).
    """
    x = np.arctan2(-R[1, 2], R[2, 2])
    c, s = np.cos(x), np.sin(x)
    _, y_row, z_row = np.array([[1.0, 0.0, 0.0], [0.0, c, s], [0.0, -s, c]]) @ R
    return np.array([x, np.arctan2(R[0, 2], z_row[2]), np.arctan2(y_row[0], y_row[1])])


def matrix(values: Any) -> Array:
    """A matrix of Simbody's, shape (rows, columns)."""
    rows, columns = values.nrow(), values.ncol()
    return np.array(values.to_numpy()).reshape(rows, columns) if rows and columns else np.zeros((rows, columns))


def pose(frame: Any, state: Any) -> tuple[Array, Array]:
    """Pose of a frame of OpenSim: its axes [-], shape (3, 3), and its origin [m], shape (3,), in the world."""
    transform = frame.getTransformInGround(state)
    R = transform.R().asMat33()
    return np.array([[R.get(i, k) for k in range(3)] for i in range(3)]), np.array(transform.p().to_numpy())


guarded = partial(converted, errors=(RuntimeError, ValueError, TypeError), quiet=True)
"""Converts the exceptions of the engine."""
