"""What every `kkt` route does with the matrices it reads from its engine."""

import numpy as np

from robots.arrays import Array

RANK_TOLERANCE = 1e-5
"""Singular values below this fraction of the largest count as zero [-]: CAD models never close below 1e-7 m."""


def projected_efforts(force: Array, J: Array, S: Array) -> Array:
    """Efforts of least norm that balance a generalized force on the motions that keep the loops closed.

    With N = null(J), τ = pinv(NᵀSᵀ) Nᵀ (M q̈ + b): the multipliers of the loops drop out, redundant rows of J included.

    Args:
        force: Generalized force M q̈ + b on the joints [N or N m], shape (nv,).
        J: Loop-closure Jacobian [m/rad or m/m], shape (nc, nv).
        S: Actuator velocities per joint velocity [-], shape (na, nv).

    Returns:
        Efforts of the actuators [N or N m], shape (na,).
    """
    if J.size:
        _, values, V = np.linalg.svd(J)
        rank = int((values > RANK_TOLERANCE * values[0]).sum())
        N = V[rank:].T
    else:
        N = np.eye(J.shape[1])
    return np.linalg.pinv((S @ N).T, rcond=RANK_TOLERANCE) @ (N.T @ force)
