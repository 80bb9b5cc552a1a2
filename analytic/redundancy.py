"""Efforts of redundantly actuated robots: of all efforts that move the robot alike, those of least norm."""

import numpy as np

from robots.arrays import Array


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
