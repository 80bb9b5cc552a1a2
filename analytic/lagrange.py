"""Inverse dynamics by Lagrange's equations: energies of the spanning tree differentiated, multipliers for the loops.

T(q, q̇) = ½ q̇ᵀ M(q) q̇ and V(q) are written down for the tree whose loops are cut. Their derivatives, and that of the
closure residual, are taken by the complex step, which is exact to round-off. Nothing is shared with `noc` but poses and
the directions of the joints: no rates of Jacobians, no Newton-Euler equation.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from analytic.closures import RANK_TOLERANCE, closure_residual
from analytic.kinematics import Poses, poses, retract, skew, twist_matrices
from robots.arrays import AnyArray, Array
from robots.efforts import EffortHistory
from robots.mechanism import Joint, Mechanism
from robots.motion import Motion
from robots.robot import Case

STEP = 1e-40
"""Imaginary step [m or rad]: its square vanishes beside 1, so the derivative has no truncation error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LagrangeModel:
    """The terms of M q̈ + C q̇ + g + d = Sᵀτ + Φᵀλ + f for the spanning tree."""

    M: Array
    """Inertia matrix, second derivative of the kinetic energy [kg, kg m or kg m²], shape (nt, nv, nv)."""
    coriolis: Array
    """Christoffel terms, C q̇ [N or N m], shape (nt, nv)."""
    gravity: Array
    """Derivative of the potential energy of weights and springs [N or N m], shape (nt, nv)."""
    dissipation: Array
    """Derivative of Rayleigh's function of the dampers [N or N m], shape (nt, nv)."""
    load: Array
    """Virtual work of the constant external wrenches, per displacement of each dof [N or N m], shape (nt, nv)."""
    Phi: Array
    """Derivative of the closure residual [m/rad or m/m], shape (nt, nc, nv)."""


class Lagrange:
    """Efforts from energies, with the loop-closure multipliers solved for."""

    name = "analytic/lagrange"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        mechanism = case.mechanism
        model = lagrange_model(mechanism, motion.q, motion.qd)
        inertial = (model.M @ motion.qdd[..., None])[..., 0]
        force = inertial + model.coriolis + model.gravity + model.dissipation - model.load
        return EffortHistory(
            source=self.name,
            actuators=tuple(actuator.name for actuator in mechanism.actuators),
            t=motion.t,
            effort=_eliminate_multipliers(model.Phi, mechanism.selection, force),
            settings={
                "derivatives": f"complex step of {STEP:g}",
                "rank tolerance": f"{RANK_TOLERANCE:g} of the largest singular value",
            },
        )


def lagrange_model(mechanism: Mechanism, q: Array, qd: Array) -> LagrangeModel:
    """Terms of Lagrange's equations of the first kind.

    Args:
        mechanism: Robot.
        q: Joint positions [m or rad], shape (nt, nq).
        qd: Joint velocities [m/s or rad/s], shape (nt, nv).
    """

    def partials(of: Callable[[AnyArray], AnyArray]) -> Array:
        """Derivatives of a function of q along each dof, as a new last axis."""
        steps = 1j * STEP * np.eye(mechanism.nv)
        columns = [of(np.broadcast_to(step, (len(q), mechanism.nv))).imag / STEP for step in steps]
        return np.stack(columns, axis=-1) if columns else np.zeros((len(q), 0, 0))

    M = inertia_matrix(mechanism, poses(mechanism, q))
    M_q = partials(lambda step: _inertia_near(mechanism, q, step))  # (nt, i, j, k): ∂M_ij/∂q_k
    christoffel = (M_q + M_q.swapaxes(2, 3) - M_q.transpose(0, 3, 2, 1)) / 2
    # c_ijk q̇_j q̇_k with c_ijk = (∂M_ij/∂q_k + ∂M_ik/∂q_j − ∂M_jk/∂q_i) / 2
    V_q = partials(lambda step: potential_energy(mechanism, retract(mechanism, q, step))[:, None])
    return LagrangeModel(
        M=M,
        coriolis=np.einsum("tijk,tj,tk->ti", christoffel, qd, qd),
        gravity=V_q[:, 0],
        dissipation=_damping(mechanism) * qd,
        load=partials(lambda step: _work_of_wrenches(mechanism, q, step)[:, None])[:, 0],
        Phi=partials(lambda step: _residual_near(mechanism, q, step)),
    )


def inertia_matrix(mechanism: Mechanism, at: Poses) -> AnyArray:
    """Inertia matrix of the spanning tree: the kinetic energy is ½ q̇ᵀ M q̇.

    Args:
        mechanism: Robot.
        at: Its poses; may be complex.

    Returns:
        M [kg, kg m or kg m²], shape (nt, nv, nv).
    """
    K = twist_matrices(mechanism, at)
    armature = np.concatenate([np.zeros(0), *(np.full(s.stop - s.start, j.armature) for j, s in _joints(mechanism))])
    M = np.broadcast_to(np.diag(armature), (len(at.p), mechanism.nv, mechanism.nv)).astype(K.dtype)
    for b, body in enumerate(mechanism.bodies):
        J_w, J_v = K[:, b, :3], K[:, b, 3:]
        in_body = at.R[:, b].swapaxes(1, 2) @ J_w
        M = M + body.mass * J_v.swapaxes(1, 2) @ J_v + in_body.swapaxes(1, 2) @ body.inertia @ in_body
    return M


def potential_energy(mechanism: Mechanism, q: AnyArray) -> AnyArray:
    """Potential energy of weights and springs.

    Args:
        mechanism: Robot.
        q: Joint positions [m or rad], shape (nt, nq); may be complex.

    Returns:
        V [J], shape (nt,).
    """
    at = poses(mechanism, q)
    masses = np.array([body.mass * (1 - body.gravity_compensation) for body in mechanism.bodies])
    V = -(at.c @ mechanism.gravity) @ masses
    for joint, columns in zip(mechanism.joints, mechanism.q_slices, strict=True):
        if joint.stiffness:
            V = V + joint.stiffness * (q[:, columns.start] - joint.spring_reference) ** 2 / 2
    return V


def _inertia_near(mechanism: Mechanism, q: Array, step: AnyArray) -> AnyArray:
    """M in the local coordinates of a small step from q, to first order in it.

    For ball and free joints the velocity is J_r(step) times the rate of the step, J_r = 1 − [step]×/2 for turns in body
    axes; the local coordinates make Lagrange's equations hold without further terms.
    """
    M = inertia_matrix(mechanism, poses(mechanism, retract(mechanism, q, step)))
    J_r = np.broadcast_to(np.eye(mechanism.nv), M.shape).astype(M.dtype)
    for joint, dofs in _joints(mechanism):
        if joint.kind in ("ball", "free"):
            turn = slice(dofs.stop - 3, dofs.stop)
            J_r[:, turn, turn] -= skew(step[:, turn]) / 2
    return J_r.swapaxes(1, 2) @ M @ J_r


def _residual_near(mechanism: Mechanism, q: Array, step: AnyArray) -> AnyArray:
    moved = retract(mechanism, q, step)
    return closure_residual(mechanism, poses(mechanism, moved), moved)


def _work_of_wrenches(mechanism: Mechanism, q: Array, step: AnyArray) -> AnyArray:
    """Work of the external wrenches over a small step from q, to first order in it [J], shape (nt,)."""
    here, there = poses(mechanism, q), poses(mechanism, retract(mechanism, q, step))
    work = np.zeros(len(q), step.dtype)
    for load in mechanism.wrenches:
        b = load.body
        work += (there.p[:, b] + there.R[:, b] @ load.point) @ load.force
        turn = there.R[:, b] @ here.R[:, b].swapaxes(1, 2)  # 1 + [small rotation]×
        rotation = np.stack([turn[:, 2, 1], turn[:, 0, 2], turn[:, 1, 0]], axis=1)
        work += rotation @ load.moment
    return work


def _joints(mechanism: Mechanism) -> Iterator[tuple[Joint, slice]]:
    return zip(mechanism.joints, mechanism.dof_slices, strict=True)


def _damping(mechanism: Mechanism) -> Array:
    return np.concatenate([np.zeros(0), *(np.full(s.stop - s.start, j.damping) for j, s in _joints(mechanism))])


def _eliminate_multipliers(Phi: Array, S: Array, force: Array) -> Array:
    """Efforts τ of least norm in force = Sᵀτ + Φᵀλ, shape (nt, na).

    The passive rows hold no effort and give the multipliers up to the null space of Φᵘᵀ. Where constraints are
    redundant, that part of λ does not act on the actuators either; where actuators are, it is their internal effort.
    """
    driven = S.any(axis=0)
    Phi_a_T, Phi_u_T = Phi.swapaxes(1, 2)[:, driven], Phi.swapaxes(1, 2)[:, ~driven]
    inverse = np.linalg.pinv(Phi_u_T, rcond=RANK_TOLERANCE)
    lam = inverse @ force[:, ~driven, None]
    per_force = np.linalg.pinv(S[:, driven].T)
    tau = per_force @ (force[:, driven, None] - Phi_a_T @ lam)
    on_actuators = per_force @ Phi_a_T
    internal = on_actuators @ (np.eye(Phi.shape[1]) - inverse @ Phi_u_T)
    U, size, _ = np.linalg.svd(internal, full_matrices=False)
    whole = np.linalg.norm(per_force, axis=(-2, -1)) * np.linalg.norm(Phi, axis=(1, 2))  # loops may spare the actuators
    U = U * (size > RANK_TOLERANCE * whole[:, None])[:, None]
    return (tau - U @ (U.swapaxes(1, 2) @ tau))[..., 0]
