"""Efforts of redundantly actuated robots: of all efforts that move the robot alike, those of least norm.

The norm is over the efforts divided by their scales, `Actuator.effort_scale`, so that newtons and newton metres add up.
"""

import numpy as np
from scipy.linalg import qr

from analytic.closures import RANK_TOLERANCE, closure_jacobian_at, null_space
from robots.arrays import Array
from robots.mechanism import Mechanism
from robots.motion import Motion


def minimum_norm(A: Array, force: Array, scale: Array) -> Array:
    """Efforts of least norm that act on the independent coordinates as a given generalized force.

    From the QR decomposition W A = Q U, W = diag(scale), the efforts are W Q U⁻ᵀ f; if there are as many actuators as
    dofs they are unique.

    Args:
        A: Actuator velocities per independent velocity [-], shape (nt, na, n) with na ≥ n and full column rank.
        force: Generalized force on the independent coordinates [N or N m], shape (nt, n).
        scale: Effort of each actuator that counts as one [N or N m], shape (na,).

    Returns:
        Efforts of the actuators [N or N m], shape (nt, na).
    """
    Q, U = np.linalg.qr(scale[:, None] * A)
    return scale * (Q @ np.linalg.solve(U.swapaxes(1, 2), force[..., None]))[..., 0]


def moving_part(mechanism: Mechanism, motion: Motion) -> Array | None:
    """The projector of efforts on the part that moves a redundantly actuated robot; the rest is internal.

    With N = null(Φ) the motions that keep the loops closed, W the scales of the efforts and U an orthonormal basis of
    the range of W S N, it is Π = W U Uᵀ W⁻¹: Π τ moves the robot as τ does and has the least norm.

    Args:
        mechanism: Robot.
        motion: Its motion.

    Returns:
        Π at each sample [ratios of the units of the efforts], shape (nt, na, na). None if there are no more actuators
        than degrees of freedom, whose efforts are unique.
    """
    Phi = closure_jacobian_at(mechanism, motion.q)
    if not Phi.size:
        return None
    dof = null_space(Phi[len(motion.t) // 2]).shape[1]
    if mechanism.na <= dof:
        return None
    N = np.linalg.svd(Phi)[2][:, mechanism.nv - dof :].swapaxes(1, 2)
    scale = mechanism.effort_scales
    U = np.linalg.qr(scale[:, None] * (mechanism.selection @ N))[0]
    return scale[:, None] * (U @ U.swapaxes(1, 2)) / scale


def independent_joints(mechanism: Mechanism, q: Array) -> tuple[int, ...]:
    """Of the actuated joints, those whose motion determines that of all the others, chosen by pivoting.

    Args:
        mechanism: Robot.
        q: Closed pose [m or rad], shape (nq,).
    """
    joints = mechanism.actuated_joints
    dofs = [mechanism.dof_slices[j].start for j in joints]
    N = null_space(closure_jacobian_at(mechanism, q[None])[0])
    R, order = qr(N[dofs].T, pivoting=True, mode="r")
    size = np.abs(np.diag(R))
    free = int((size > RANK_TOLERANCE * size[0]).sum())
    return tuple(joints[k] for k in sorted(order[:free]))
