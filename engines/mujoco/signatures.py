"""Functions of MuJoCo whose arguments differ between the versions that loopcheck runs with."""

from typing import Any

import mujoco
import numpy as np
from packaging.version import Version

from loopcheck.robots.arrays import Array

FULL_MATRIX_FROM_DATA = Version(mujoco.__version__) >= Version("3.10")
"""Since then `mj_fullM` takes the data and finds the sparse matrix itself."""


def inertia_matrix(model: Any, data: Any) -> Array:
    """Inertia matrix of the spanning tree at the computed position in `data` [kg, kg m or kg m²], shape (nv, nv)."""
    M = np.zeros((model.nv, model.nv))
    if FULL_MATRIX_FROM_DATA:
        mujoco.mj_fullM(model, data, M)
    else:
        mujoco.mj_fullM(model, M, data.qM)
    return M
