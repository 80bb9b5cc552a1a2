"""What routes do with the matrices they read from their engine."""

import numpy as np
from scipy.linalg import qr

from robots.arrays import Array

RANK_TOLERANCE = 1e-5
"""Singular values below this fraction of the largest count as zero [-]: CAD models never close below 1e-7 m."""


def projected_efforts(M: Array, force: Array, J: Array, S: Array, scale: Array) -> Array:
    """Efforts of least norm that balance a generalized force on the motions that keep the loops closed.

    With N = null(J), τ = pinv(NᵀSᵀ) Nᵀ (M q̈ + b): the multipliers of the loops drop out, redundant rows of J included.
    Along the motions Z of N that no actuator sees nothing can be balanced: there q̈ is what leaves no force.
    Where efforts have scales, what is internal to τ, B with NᵀSᵀB = 0, is then taken off in their norm |τ / scale|.

    Args:
        M: Mass matrix [kg, kg m or kg m²], shape (nv, nv).
        force: Generalized force M q̈ + b on the joints [N or N m], shape (nv,).
        J: Loop-closure Jacobian [m/rad or m/m], shape (nc, nv).
        S: Actuator velocities per joint velocity [-], shape (na, nv).
        scale: Effort of each actuator that counts as one [N or N m], shape (na,).

    Returns:
        Efforts of the actuators [N or N m], shape (na,).
    """
    N = null_space(J)
    Z = N @ null_space(S @ N)
    force = force - M @ Z @ np.linalg.solve(Z.T @ M @ Z, Z.T @ force)
    on_motions = (S @ N).T
    effort = np.linalg.pinv(on_motions, rcond=RANK_TOLERANCE) @ (N.T @ force)
    B = null_space(on_motions)
    return effort - B @ np.linalg.lstsq(B / scale[:, None], effort / scale)[0]


def independent_drives(J: Array, W: Array) -> list[int]:
    """The driven coordinates to drive: as many as move independently, because more drives fight each other.

    Pivoting chooses those that determine the others best. The others are left at zero effort, which is right for the
    part of the efforts that moves the robot.

    Args:
        J: Loop-closure Jacobian [m/rad or m/m], shape (nc, nv).
        W: Rates of all driven coordinates per joint velocity [-, or m per rad], shape (drives, nv).

    Returns:
        Places among the driven coordinates, ascending.
    """
    R, order = qr((W @ null_space(J)).T, pivoting=True, mode="r")
    size = np.abs(np.diag(R))
    return sorted(int(place) for place in order[: int((size > RANK_TOLERANCE * size[0]).sum())])


def null_space(J: Array) -> Array:
    """Orthonormal basis of what a matrix takes to zero [-], shape (nv, dof): of J, motions that keep the loops closed.

    Args:
        J: Loop-closure Jacobian or another matrix [m/rad or m/m], shape (nc, nv).
    """
    if not J.size:
        return np.eye(J.shape[1])
    _, values, V = np.linalg.svd(J)
    rank = int((values > RANK_TOLERANCE * values[0]).sum())
    return V[rank:].T
