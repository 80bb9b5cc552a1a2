"""Inverse dynamics by the natural orthogonal complement: Newton-Euler equations of all bodies, no multipliers.

Equations (3) to (20) of Kordjazi and Akbarzadeh 2011 (after Angeles and Lee 1988), for any mechanism in space. The
loops enter through L, which gives all joint velocities from the independent ones, so constraint forces never appear.
"""

from dataclasses import dataclass

import numpy as np

from analytic.closures import RANK_TOLERANCE, closure_jacobian, closure_jacobian_rate, solve_dependent
from analytic.kinematics import Poses, Twists, poses, skew, twists
from analytic.redundancy import independent_joints, minimum_norm
from robots.arrays import AnyArray, Array
from robots.efforts import EffortHistory
from robots.mechanism import Mechanism
from robots.motion import Motion
from robots.robot import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class NocModel:
    """The matrices of M q̈ᵃ + C q̇ᵃ + G = τᵃ (equation (12)); qᵃ are the n independent joint coordinates."""

    L: Array
    """Joint orthogonal complement, q̇ = L q̇ᵃ (8) [-], shape (nt, nv, n)."""
    T: Array
    """Natural orthogonal complement, t = T q̇ᵃ (10) [-, m or 1/m], shape (nt, 6 nb, n)."""
    M: Array
    """Inertia matrix (13) [kg, kg m or kg m²], shape (nt, n, n)."""
    C: Array
    """Coriolis and centrifugal matrix (14) [the unit of M, per s], shape (nt, n, n)."""
    G: Array
    """Gravity, external wrenches, springs and damping (15) [N or N m], shape (nt, n)."""


class Noc:
    """The reference: efforts by the natural orthogonal complement."""

    name = "analytic/noc"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        mechanism = case.mechanism
        independent = independent_dofs(mechanism, motion)
        model = noc_model(mechanism, motion.q, motion.qd, independent)
        qdd, qd = motion.qdd[:, independent, None], motion.qd[:, independent, None]
        force = (model.M @ qdd + model.C @ qd)[..., 0] + model.G
        return EffortHistory(
            source=self.name,
            actuators=tuple(actuator.name for actuator in mechanism.actuators),
            t=motion.t,
            effort=minimum_norm(mechanism.selection @ model.L, force, mechanism.effort_scales),
            settings={
                "independent coordinates": ", ".join(_dof_names(mechanism)[i] for i in np.flatnonzero(independent)),
                "rank tolerance": f"{RANK_TOLERANCE:g} of the largest singular value",
            },
        )


def noc_model(mechanism: Mechanism, q: Array, qd: Array, independent: AnyArray) -> NocModel:
    """Natural orthogonal complement and dynamic model at given states (equations (3) to (20)).

    Args:
        mechanism: Robot.
        q: Joint positions [m or rad], shape (nt, nq).
        qd: Joint velocities that keep the loops closed [m/s or rad/s], shape (nt, nv).
        independent: Mask of the independent dofs [-], shape (nv,).
    """
    at = poses(mechanism, q)
    moving = twists(mechanism, at, qd)
    L, L_dot = _joint_orthogonal_complement(
        closure_jacobian(mechanism, at, moving.K, q), closure_jacobian_rate(mechanism, at, moving, q, qd), independent
    )
    nt, nb = at.c.shape[:2]
    K, K_dot = moving.K.reshape(nt, 6 * nb, -1), moving.K_dot.reshape(nt, 6 * nb, -1)
    T = K @ L  # (11)
    T_dot = K_dot @ L + K @ L_dot
    M_total, Omega = _mass(mechanism, at.R), _rotation_rates(moving)
    T_T, L_T = T.swapaxes(1, 2), L.swapaxes(1, 2)
    armature, damping, spring = _joint_effects(mechanism, q)
    M = T_T @ _blocks(M_total, T) + L_T @ (armature[:, None] * L)  # (13), and the rotors of the drives
    C = (
        T_T @ _blocks(M_total, T_dot) + T_T @ _blocks(Omega, _blocks(M_total, T)) + L_T @ (armature[:, None] * L_dot)
    )  # (14)
    G = -(T_T @ _external_wrenches(mechanism, at)[..., None])[..., 0]  # (15)
    passive = (L_T @ (spring + damping * qd)[..., None])[..., 0]
    return NocModel(L=L, T=T, M=M, C=C, G=G + passive)


def independent_dofs(mechanism: Mechanism, motion: Motion) -> AnyArray:
    """Mask of the dofs taken as independent coordinates, shape (nv,): the actuated ones, as many as the robot has dofs.

    If there are more, pivoting chooses those that determine the others best at the middle of the motion.
    """
    joints = independent_joints(mechanism, motion.q[len(motion.t) // 2])
    mask = np.zeros(mechanism.nv, dtype=bool)
    mask[[mechanism.dof_slices[j].start for j in joints]] = True
    return mask


def _joint_orthogonal_complement(Phi: Array, Phi_dot: Array, independent: AnyArray) -> tuple[Array, Array]:
    """L and its rate (equations (8), (9)), both of shape (nt, nv, n); redundant closure rows drop out by rank."""
    nt, _, nv = Phi.shape
    Phi_a, Phi_u = Phi[..., independent], Phi[..., ~independent]
    L, L_dot = np.zeros((nt, nv, Phi_a.shape[-1])), np.zeros((nt, nv, Phi_a.shape[-1]))
    L[:, independent] = np.eye(Phi_a.shape[-1])
    L[:, ~independent] = solve_dependent(Phi_u, Phi_a)
    L_dot[:, ~independent] = solve_dependent(Phi_u, Phi_dot @ L)  # Φ L = 0, differentiated
    return L, L_dot


def _mass(mechanism: Mechanism, R: Array) -> Array:
    """Blocks of M_total in world axes (equations (17), (19)), shape (nt, nb, 6, 6)."""
    inertia = np.array([body.inertia for body in mechanism.bodies])
    blocks = np.zeros((*R.shape[:2], 6, 6))
    blocks[..., :3, :3] = R @ inertia @ R.swapaxes(-1, -2)
    blocks[..., 3:, 3:] = np.array([body.mass for body in mechanism.bodies])[:, None, None] * np.eye(3)
    return blocks


def _rotation_rates(moving: Twists) -> Array:
    """Blocks of Ω (equations (18), (19)), shape (nt, nb, 6, 6)."""
    blocks = np.zeros((*moving.w.shape[:2], 6, 6))
    blocks[..., :3, :3] = skew(moving.w)
    return blocks


def _blocks(blocks: Array, X: Array) -> Array:
    """Block-diagonal matrix (nt, nb, 6, 6) times X (nt, 6 nb, n)."""
    nt, rows, n = X.shape
    return (blocks @ X.reshape(nt, rows // 6, 6, n)).reshape(nt, rows, n)


def _external_wrenches(mechanism: Mechanism, at: Poses) -> Array:
    """Gravity wrenches w^g (equation (20)), less what gravity compensation holds, and the constant external wrenches.

    All about the mass centres [N m, N], shape (nt, 6 nb).
    """
    nt, nb = at.c.shape[:2]
    wrenches = np.zeros((nt, nb, 6))
    for b, body in enumerate(mechanism.bodies):
        wrenches[:, b, 3:] = body.mass * (1 - body.gravity_compensation) * mechanism.gravity
    for load in mechanism.wrenches:
        arm = at.R[:, load.body] @ (load.point - mechanism.bodies[load.body].center)
        wrenches[:, load.body, :3] += load.moment + np.cross(arm, load.force)
        wrenches[:, load.body, 3:] += load.force
    return wrenches.reshape(nt, 6 * nb)


def _joint_effects(mechanism: Mechanism, q: Array) -> tuple[Array, Array, Array]:
    """Armature (nv,), damping (nv,), and the effort it takes to hold the springs [N or N m], shape (nt, nv)."""
    armature, damping, spring = np.zeros(mechanism.nv), np.zeros(mechanism.nv), np.zeros((len(q), mechanism.nv))
    for joint, columns, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
        armature[dofs], damping[dofs] = joint.armature, joint.damping
        if joint.stiffness:
            spring[:, dofs] = joint.stiffness * (q[:, columns] - joint.spring_reference)
    return armature, damping, spring


def _dof_names(mechanism: Mechanism) -> list[str]:
    return [
        joint.name
        for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True)
        for _ in range(dofs.stop - dofs.start)
    ]
