"""Forward dynamics: accelerations from efforts, in two independent ways, and motions integrated from them.

`noc` solves M q̈ᵃ = Aᵀτ − C q̇ᵃ − G for the independent coordinates. `multipliers` solves the equations of the cut tree
together with the closures differentiated twice, Φ q̈ = −Φ̇ q̇, for accelerations and multipliers; redundant closures are
handled by rank in both.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.integrate import solve_ivp

from analytic.closures import RANK_TOLERANCE, closure_jacobian, closure_jacobian_rate, solve_dependent
from analytic.continuation import CLOSED, close
from analytic.kinematics import poses, position_rate, retract, twist_matrices, twists
from analytic.lagrange import lagrange_model
from analytic.noc import noc_model
from robots.arrays import AnyArray, Array
from robots.errors import LoopClosureError
from robots.mechanism import Mechanism

EffortLaw: TypeAlias = Callable[[float], Array]
"""Efforts of the actuators [N or N m] at a time [s], shape (na,)."""

STEP = 1e-40
"""Imaginary step in time [s]: its square vanishes beside 1, so the derivative has no truncation error."""


def accelerations_by_noc(mechanism: Mechanism, q: Array, qd: Array, effort: Array, independent: AnyArray) -> Array:
    """Joint accelerations by the natural orthogonal complement (Kordjazi and Akbarzadeh 2011, (12) solved for q̈ᵃ).

    Args:
        mechanism: Robot.
        q: Joint positions with closed loops [m or rad], shape (nt, nq).
        qd: Joint velocities that keep them closed [m/s or rad/s], shape (nt, nv).
        effort: Efforts of the actuators [N or N m], shape (nt, na).
        independent: Mask of the independent dofs [-], shape (nv,).

    Returns:
        Accelerations [m/s² or rad/s²], shape (nt, nv).
    """
    model = noc_model(mechanism, q, qd, independent)
    A = mechanism.selection @ model.L
    driving = (A.swapaxes(1, 2) @ effort[..., None])[..., 0]
    coriolis = (model.C @ qd[:, independent, None])[..., 0]
    free = np.linalg.solve(model.M, (driving - coriolis - model.G)[..., None])
    at = poses(mechanism, q)
    moving = twists(mechanism, at, qd)
    Phi = closure_jacobian(mechanism, at, moving.K, q)
    Phi_dot = closure_jacobian_rate(mechanism, at, moving, q, qd)
    qdd = np.zeros_like(qd)
    qdd[:, independent] = free[..., 0]
    right = Phi @ qdd[..., None] + Phi_dot @ qd[..., None]
    qdd[:, ~independent] = solve_dependent(Phi[..., ~independent], right)[..., 0]
    return qdd


def accelerations_by_multipliers(mechanism: Mechanism, q: Array, qd: Array, effort: Array) -> tuple[Array, Array]:
    """Joint accelerations and multipliers of M q̈ + h = Sᵀτ + Φᵀλ + f with Φ q̈ = −Φ̇ q̇, f from external wrenches.

    Args:
        mechanism: Robot, each dof of whose spanning tree has inertia.
        q: Joint positions with closed loops [m or rad], shape (nt, nq).
        qd: Joint velocities that keep them closed [m/s or rad/s], shape (nt, nv).
        effort: Efforts of the actuators [N or N m], shape (nt, na).

    Returns:
        Accelerations [m/s² or rad/s²], shape (nt, nv), and the multipliers of least norm [N or N m], shape (nt, nc).
    """
    model = lagrange_model(mechanism, q, qd)
    force = effort @ mechanism.selection + model.load - model.coriolis - model.gravity - model.dissipation
    Phi, Phi_T = model.Phi, model.Phi.swapaxes(1, 2)
    unconstrained = np.linalg.solve(model.M, force[..., None])
    compliance = Phi @ np.linalg.solve(model.M, Phi_T)
    right = Phi @ unconstrained + _velocity_term(mechanism, q, qd)[..., None]
    lam = -np.linalg.pinv(compliance, rcond=RANK_TOLERANCE**2, hermitian=True) @ right
    qdd = unconstrained + np.linalg.solve(model.M, Phi_T @ lam)
    return qdd[..., 0], lam[..., 0]


def simulate(
    mechanism: Mechanism, effort: EffortLaw, q: Array, qd: Array, t: Array, *, independent: AnyArray
) -> tuple[Array, Array]:
    """Integrate the motion that given efforts cause, with the loops closed at every evaluation.

    The independent velocities and all positions are integrated (Dormand and Prince, order 8); dependent positions are
    corrected by Newton's method and dependent velocities follow from the closures.

    Args:
        mechanism: Robot.
        effort: Efforts over time.
        q: Joint positions at the first time, loops closed [m or rad], shape (nq,).
        qd: Joint velocities there [m/s or rad/s], shape (nv,).
        t: Increasing times [s], shape (nt,).
        independent: Mask of the independent dofs [-], shape (nv,).

    Returns:
        Joint positions, shape (nt, nq), and velocities, shape (nt, nv).

    Raises:
        LoopClosureError: If the loops come open.
    """

    def state(time: float, y: Array) -> tuple[Array, Array]:
        closed, residual = close(mechanism, y[None, : mechanism.nq], ~independent)
        if residual > CLOSED:
            raise LoopClosureError(
                f"{mechanism.model.path}: the simulation cannot keep the loops closed at t = {time:g} s: want a gap "
                f"of at most {CLOSED:g}, got {residual:.3g} (m or rad)",
                residual=residual,
                tolerance=CLOSED,
                time=time,
            )
        return closed, _dependent_velocities(mechanism, closed, y[None, mechanism.nq :], independent)

    def rate(time: float, y: Array) -> Array:
        q, qd = state(time, y)
        qdd = accelerations_by_noc(mechanism, q, qd, effort(time)[None], independent)
        return np.concatenate([position_rate(mechanism, q, qd)[0], qdd[0, independent]])

    start = np.concatenate([q, qd[independent]])
    solution = solve_ivp(rate, (t[0], t[-1]), start, method="DOP853", t_eval=t, rtol=1e-11, atol=1e-12)
    states = [state(float(time), y) for time, y in zip(solution.t, solution.y.T, strict=True)]
    return np.concatenate([q for q, _ in states]), np.concatenate([qd for _, qd in states])


def _dependent_velocities(mechanism: Mechanism, q: Array, free: Array, independent: AnyArray) -> Array:
    """All joint velocities from the independent ones of shape (nt, n)."""
    at = poses(mechanism, q)
    qd = np.zeros((len(q), mechanism.nv))
    qd[:, independent] = free
    Phi = closure_jacobian(mechanism, at, twists(mechanism, at, qd).K, q)
    qd[:, ~independent] = solve_dependent(Phi[..., ~independent], Phi @ qd[..., None])[..., 0]
    return qd


def _velocity_term(mechanism: Mechanism, q: Array, qd: Array) -> Array:
    """Φ̇ q̇ by the complex step along the motion, not by the closed form that `noc` uses, shape (nt, nc)."""
    moved = retract(mechanism, q, 1j * STEP * qd)
    at = poses(mechanism, moved)
    Phi = closure_jacobian(mechanism, at, twist_matrices(mechanism, at), moved)
    return (Phi.imag / STEP @ qd[..., None])[..., 0]
