"""Inertia matrix of the spanning tree."""

import numpy as np

from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.mechanism import Mechanism


def inertia_matrix(state: State) -> AnyArray:
    """Inertia matrix of the spanning tree at positions, which may be complex: the kinetic energy is ½ q̇ᵀ M q̇.

    Returns:
        M [kg, kg m or kg m²], shape (nt, nv, nv).
    """
    mechanism, body_poses, K = state.mechanism, state.poses, state.K
    armature = np.diag(per_dof(mechanism, "armature"))
    for tendon in mechanism.tendons:
        w = mechanism.rates_of((tendon.length,))
        armature = armature + tendon.armature * w.T @ w
    M = np.broadcast_to(armature, (len(body_poses.p), mechanism.nv, mechanism.nv)).astype(K.dtype)
    nt, rows = len(body_poses.p), 3 * len(mechanism.bodies)
    masses = np.array([body.mass for body in mechanism.bodies])
    inertias = np.array([body.inertia for body in mechanism.bodies]).reshape(-1, 3, 3)
    J_v = K[:, :, 3:].reshape(nt, rows, mechanism.nv)
    in_body = body_poses.R.swapaxes(2, 3) @ K[:, :, :3]
    J_w, spin = (x.reshape(nt, rows, mechanism.nv) for x in (in_body, inertias @ in_body))
    M = M + J_v.swapaxes(1, 2) @ (np.repeat(masses, 3)[:, None] * J_v) + J_w.swapaxes(1, 2) @ spin
    return M


def per_dof(mechanism: Mechanism, attribute: str) -> Array:
    """A property of the joints for each dof, shape (nv,)."""
    dofs = [s.stop - s.start for s in mechanism.dof_slices]
    return np.repeat([float(getattr(joint, attribute)) for joint in mechanism.joints], dofs)
