"""Efforts of redundantly actuated robots: of all efforts that move the robot alike, those of least norm."""

import numpy as np
from scipy.linalg import qr

from analytic.closures import RANK_TOLERANCE, closure_jacobian_at, null_space
from robots.arrays import AnyArray, Array
from robots.mechanism import Coordinate, Mechanism
from robots.motion import Motion


def minimum_norm(A: Array, force: Array) -> Array:
    """Efforts of least norm that act on the independent coordinates as a given generalized force.

    From the QR decomposition A = Q U the efforts are Q U⁻ᵀ f; if there are as many actuators as dofs they are unique.

    Args:
        A: Actuator velocities per independent velocity [-], shape (nt, na, n) with na ≥ n and full column rank.
        force: Generalized force on the independent coordinates [N or N m], shape (nt, n).

    Returns:
        Efforts of the actuators [N or N m], shape (nt, na).
    """
    Q, U = np.linalg.qr(A)
    return (Q @ np.linalg.solve(U.swapaxes(1, 2), force[..., None]))[..., 0]


def moving_efforts(mechanism: Mechanism, motion: Motion) -> Array | None:
    """The efforts that move a redundantly actuated robot, as directions: what is orthogonal to them is internal.

    They span the range of S N, the actuator velocities of all motions N = null(Φ) that keep the loops closed. The norm
    is over the efforts as they are, so all actuators should have one unit.

    Args:
        mechanism: Robot.
        motion: Its motion.

    Returns:
        Orthonormal basis U at each sample, shape (nt, na, dof): U Uᵀ τ moves the robot as τ does and has the least
        norm. None if there are no more actuators than degrees of freedom, whose efforts are unique.
    """
    Phi = closure_jacobian_at(mechanism, motion.q)
    if not Phi.size:
        return None
    dof = null_space(Phi[len(motion.t) // 2]).shape[1]
    if mechanism.na <= dof:
        return None
    N = np.linalg.svd(Phi)[2][:, mechanism.nv - dof :].swapaxes(1, 2)
    return np.linalg.qr(mechanism.selection @ N)[0]


def independent_drives(mechanism: Mechanism, q: Array) -> tuple[Coordinate, ...]:
    """Of the driven coordinates, those whose motion determines that of all the others, chosen by pivoting.

    Args:
        mechanism: Robot.
        q: Closed pose [m or rad], shape (nq,).
    """
    N = null_space(closure_jacobian_at(mechanism, q[None])[0])
    return tuple(mechanism.drives[k] for k in _independent_rows(mechanism.rates_of(mechanism.drives) @ N))


def independent_dofs(mechanism: Mechanism, motion: Motion) -> AnyArray:
    """Mask of the dofs taken as independent coordinates: driven ones first, as many as the robot has dofs.

    Pivoting chooses those that determine the others best at the middle of the motion.

    Args:
        mechanism: Robot.
        motion: Its motion.

    Returns:
        Mask [-], shape (nv,).
    """
    N = null_space(closure_jacobian_at(mechanism, motion.q[[len(motion.t) // 2]])[0])
    driven = mechanism.selection.any(axis=0)
    mask = np.zeros(mechanism.nv, dtype=bool)
    for candidates in (np.flatnonzero(driven), np.flatnonzero(~driven)):
        left = N @ null_space(N[mask])  # motions that do not move what is chosen already
        mask[candidates[_independent_rows(left[candidates])]] = True
    return mask


def undriven_dofs(mechanism: Mechanism, q: Array) -> int:
    """How many degrees of freedom no actuator moves: their motion follows from the dynamics.

    Args:
        mechanism: Robot.
        q: Closed pose [m or rad], shape (nq,).
    """
    N = null_space(closure_jacobian_at(mechanism, q[None])[0])
    return N.shape[1] - len(_independent_rows(mechanism.selection @ N))


def _independent_rows(A: Array) -> list[int]:
    """Rows that span all others, ascending."""
    if not A.size:
        return []
    R, order = qr(A.T, pivoting=True, mode="r")
    size = np.abs(np.diag(R))
    return sorted(int(k) for k in order[: int((size > RANK_TOLERANCE * size[0]).sum())])
