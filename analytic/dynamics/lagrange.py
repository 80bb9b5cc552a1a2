"""Inverse dynamics by Lagrange's equations: energies of the spanning tree differentiated, multipliers for the loops.

T(q, q̇) = ½ q̇ᵀ M(q) q̇ and V(q) are written down for the tree of the cut loops. Their derivatives, that of the closure
residual, and that of Φ(q) q̇ along q̇, are taken by the complex step, which is exact to round-off. Of the motion only q
and the rates of the drives are used; the other rates follow from these derivatives. With `noc` it shares poses, the
directions of the joints, the closure residual and Φ, but no rate of a Jacobian and no Newton-Euler equation.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.kinematics.closures import (
    RANK_TOLERANCE,
    closure_of_rows,
    pseudo_inverse,
    row_factors,
)
from loopcheck.analytic.kinematics.inertia import inertia_matrix, per_dof
from loopcheck.analytic.kinematics.redundancy import independent_drives, undriven_dofs
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import Poses, point_of, retract, rotation_of, skew
from loopcheck.robots.arrays import AccelerationSeries, AnyArray, Array, PositionSeries, VelocitySeries, svd
from loopcheck.robots.efforts import EffortHistory
from loopcheck.robots.mechanism import WORLD, Joint, Mechanism, WeldClosure
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.robots.size import resolved_part, unit_rates

STEP = 1e-40
"""Imaginary step [m or rad]: its square vanishes beside 1, so the derivative has no truncation error."""
SMALL = 1e-6
"""Squared sine of half a rotation below which a series replaces the formula of its angle [-]."""


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
    closure_bias: Array
    """Derivative of Φ(q) q̇ along q̇, Φ̇ q̇ [m/s² or rad/s²], shape (nt, nc)."""

    def force(self, qdd: AccelerationSeries) -> Array:
        """Generalized force on the spanning tree that a motion requires, Sᵀτ + Φᵀλ [N or N m], shape (nt, nv)."""
        inertial: Array = (self.M @ qdd[..., None])[..., 0]
        return inertial + self.coriolis + self.gravity + self.dissipation - self.load


@dataclass(frozen=True, slots=True, kw_only=True)
class _RateSolver:
    """Constraints on the rates by closures and drives: Φ q̇ = 0 and W q̇ = ṡ."""

    inverse: Array
    """Rates per opening of the closures and per rate of the drives, least squares, shape (nt, nv, nc + drives)."""
    W: Array
    """Rates of the drives per joint velocity [-, or m per rad], shape (drives, nv)."""
    driven: int
    """Number of degrees of freedom moved by the drives; smaller than the number of redundant drives."""
    units: Array
    """Reference rate of each dof, used to compare rotations with translations [m or rad], shape (nv,)."""
    Z_T: Array
    """Basis of the unactuated rates, orthonormal over the units, in rows [-], shape (nt, undriven, nv)."""

    @property
    def closed(self) -> Array:
        """Rates of closures that stay closed, shape (nt, nc)."""
        nt, _, rows = self.inverse.shape
        return np.zeros((nt, rows - len(self.W)))

    def rates(self, opening: Array, rates: Array) -> Array:
        """Rates of least norm (nt, nv) that open the closures at some rates (nt, nc) while the drives stand still.

        They serve for accelerations: motions that closures and drives do not constrain are left out.
        """
        right = np.concatenate([opening, rates @ self.W.T], axis=1)
        return (self.inverse @ right[..., None])[..., 0]

    def free(self, rates: Array) -> Array:
        """The unconstrained part of rates (nt, nv)."""
        return (self.Z_T.swapaxes(1, 2) @ (self.Z_T @ (rates / self.units**2)[..., None]))[..., 0]


class Lagrange:
    """Efforts from energies, with the loop-closure multipliers solved for."""

    name = "analytic/lagrange"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        mechanism = case.mechanism
        constraints = _held(mechanism, motion.q)
        qd = constraints.rates(constraints.closed, motion.qd) + constraints.free(motion.qd)
        model = lagrange_model(mechanism, motion.q, qd)
        force = model.force(constraints.rates(-model.closure_bias, motion.qdd))
        force = force + _correction(model.M, constraints.Z_T, force)
        return EffortHistory(
            source=self.name,
            actuators=tuple(actuator.name for actuator in mechanism.actuators),
            t=motion.t,
            effort=_eliminate_multipliers(model.Phi, mechanism, force, constraints.driven),
            settings={
                "state": "q and rates of the drives; passive rates by the complex step of the closures",
                "derivatives": f"complex step of {STEP:g}",
                "rank tolerance": f"{RANK_TOLERANCE:g} relative to rows of unit length",
            },
        )


def lagrange_model(mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> LagrangeModel:
    """Terms of Lagrange's equations of the first kind."""
    here = State.at_rest(mechanism, q)
    M_q, V_q, slopes, load = _partials(
        here,
        _inertia_near,
        lambda near, _: potential_energy(near)[:, None],
        lambda near, _: lengths(mechanism, near.poses),
        lambda near, _: work_of_wrenches(mechanism, here.poses, near.poses)[:, None],
    )
    # M_q of shape (nt, i, j, k): ∂M_ij/∂q_k
    christoffel = (M_q + M_q.swapaxes(2, 3) - M_q.transpose(0, 3, 2, 1)) / 2
    # c_ijk q̇_j q̇_k with c_ijk = (∂M_ij/∂q_k + ∂M_ik/∂q_j − ∂M_jk/∂q_i) / 2
    Phi = _closure_derivatives(mechanism, q)
    bias = _opening_rate_near(mechanism, q, 1j * STEP * qd, qd).imag / STEP
    P = resolved_part(mechanism, Phi)
    return LagrangeModel(
        M=inertia_matrix(here),
        coriolis=np.einsum("tijk,tj,tk->ti", christoffel, qd, qd),
        gravity=V_q[:, 0],
        dissipation=_dissipation(mechanism, qd, slopes),
        load=load[:, 0],
        Phi=Phi if P is None else P @ Phi,
        closure_bias=bias if P is None else (P @ bias[..., None])[..., 0],
    )


def _partials(here: State, *functions: Callable[[State, AnyArray], AnyArray]) -> list[Array]:
    """Derivatives of functions of a state near another, and of the step to it (nt, nv), each as a new last axis."""
    mechanism, q = here.mechanism, here.q
    columns: list[list[Array]] = [[] for _ in functions]
    for step in np.broadcast_to(1j * STEP * np.eye(mechanism.nv)[:, None], (mechanism.nv, len(q), mechanism.nv)):
        near = State.at_rest(mechanism, retract(mechanism, q, step))
        for values, function in zip(columns, functions, strict=True):
            values.append(function(near, step).imag / STEP)
    return [np.stack(values, axis=-1) for values in columns]


def _held(mechanism: Mechanism, q: Array) -> _RateSolver:
    middle, W = q[len(q) // 2], mechanism.rates_of(mechanism.drives)
    Phi = _closure_derivatives(mechanism, q)
    P = resolved_part(mechanism, Phi)
    Phi = Phi if P is None else P @ Phi
    units = unit_rates(mechanism)
    rows = np.concatenate([Phi, np.broadcast_to(W, (len(q), *W.shape))], axis=1) * units
    factors = row_factors(rows)
    undriven = undriven_dofs(mechanism, middle)
    return _RateSolver(
        inverse=units[:, None] * pseudo_inverse(factors * rows) * factors.swapaxes(1, 2),
        units=units,
        W=W,
        driven=len(independent_drives(mechanism, middle)),
        Z_T=svd(factors * rows)[2][:, mechanism.nv - undriven :] * units,
    )


def potential_energy(state: State) -> AnyArray:
    """Potential energy of weights and springs at positions, which may be complex [J], shape (nt,)."""
    mechanism, q, body_poses = state.mechanism, state.q, state.poses
    masses = np.array([body.mass * (1 - body.gravity_compensation) for body in mechanism.bodies])
    V = -(body_poses.c @ mechanism.gravity) @ masses
    for joint, columns in zip(mechanism.joints, mechanism.q_slices, strict=True):
        if joint.stiffness:
            V = V + joint.stiffness * _squared_stretch(joint, q[:, columns]) / 2
    for tendon in mechanism.tendons:
        length = mechanism.values_of((tendon.length,), q)[:, 0]
        V = V + tendon.stiffness * beyond(length, tendon.rest) ** 2 / 2
    for spring, length in zip(mechanism.point_springs, lengths(mechanism, body_poses).T, strict=True):
        V = V + spring.stiffness * beyond(length, spring.rest) ** 2 / 2
    return V


def lengths(mechanism: Mechanism, body_poses: Poses) -> AnyArray:
    """Lengths of the springs between two points.

    Args:
        body_poses: Its poses; may be complex.

    Returns:
        Lengths [m], shape (nt, springs).
    """
    length = np.zeros((len(body_poses.p), len(mechanism.point_springs)), body_poses.p.dtype)
    for k, spring in enumerate(mechanism.point_springs):
        p1, p2 = (point_of(body_poses, *end) for end in spring.ends)
        length[:, k] = np.sqrt(((p2 - p1) ** 2).sum(1))  # not norm(): that is not holomorphic
    return length


def beyond(length: AnyArray, rest: Array | tuple[float, float]) -> AnyArray:
    """Stretch or compression of a spring beyond its slack range [m or rad], shape (nt,).

    Args:
        length: Its length [m or rad], shape (nt,); may be complex.
        rest: Both lengths between which it is slack [m or rad], shape (2,).
    """
    low, high = rest
    return np.where(length.real > high, length - high, np.where(length.real < low, length - low, 0))


def _squared_stretch(joint: Joint, x: AnyArray) -> AnyArray:
    """Square of how far a joint's spring is stretched from rest [m² or rad²], shape (nt,); x of (nt, entries of q)."""
    rest = joint.spring_reference
    if joint.kind in ("hinge", "slide"):
        return (x[:, 0] - rest[0]) ** 2
    turned = _squared_angle(rotation_of(x[:, -4:]), rotation_of(rest[None, -4:])[0])
    return turned if joint.kind == "ball" else turned + ((x[:, :3] - rest[:3]) ** 2).sum(1)


def _squared_angle(R: AnyArray, R_rest: Array) -> AnyArray:
    """Square of the angle between rotations [rad²], shape (nt,); holomorphic also at zero."""
    x = (3 - np.trace(R_rest.T @ R, axis1=1, axis2=2)) / 4  # sin² of half the angle
    half = np.arcsin(np.sqrt(np.where(np.abs(x) < SMALL, SMALL, x)))
    return np.where(np.abs(x) < SMALL, 4 * x * (1 + x / 3 + 8 * x**2 / 45), 4 * half**2)


def _inertia_near(near: State, step: AnyArray) -> AnyArray:
    """M in the local coordinates of a small step to a state, to first order in it.

    For ball and free joints the velocity is J_r(step) times the rate of the step, J_r = 1 − [step]×/2 for turns in body
    axes; the local coordinates make Lagrange's equations hold without further terms.
    """
    mechanism, M = near.mechanism, inertia_matrix(near)
    if all(joint.kind in ("hinge", "slide") for joint in mechanism.joints):
        return M
    J_r = np.broadcast_to(np.eye(mechanism.nv), M.shape).astype(M.dtype)
    for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True):
        if joint.kind in ("ball", "free"):
            turn = slice(dofs.stop - 3, dofs.stop)
            J_r[:, turn, turn] -= skew(step[:, turn]) / 2
    return J_r.swapaxes(1, 2) @ M @ J_r


def _closure_derivatives(mechanism: Mechanism, q: Array) -> Array:
    """Φ as the derivative of the closure residual, shape (nt, nc, nv).

    The rotation of a weld that rounding leaves open has other derivatives than the rows whose rate is used, J.
    """
    if mechanism.closing.accuracy:
        return State.at_rest(mechanism, q).every_Phi
    return _partials(State.at_rest(mechanism, q), lambda near, _: near.gap)[0]


def _opening_rate_near(mechanism: Mechanism, q: Array, step: AnyArray, qd: Array) -> AnyArray:
    """Φ q̇ after a small step from q, q̇ the same, shape (nt, nc)."""
    near = State.at_rest(mechanism, retract(mechanism, q, step))
    rate = (near.every_Phi @ qd[..., None])[..., 0]
    if mechanism.closing.accuracy:  # the axes of a weld must not turn its noise into the rows that the file resolves
        here = State.at_rest(mechanism, q)
        for row, body in _turns(mechanism):
            turned = here.poses.R[:, body].swapaxes(1, 2) @ near.poses.R[:, body]
            rate[:, row : row + 3] = (turned @ rate[:, row : row + 3, None])[..., 0]
    return rate


def _turns(mechanism: Mechanism) -> Iterator[tuple[int, int]]:
    """First row of the rotation of each weld in Φ, and the body whose axes it has, unless it is the world."""
    rows = closure_of_rows(mechanism)
    for k, closure in enumerate(mechanism.closures):
        if isinstance(closure, WeldClosure) and closure.body1 != WORLD:
            yield rows.index(k) + 3, closure.body1


def work_of_wrenches(mechanism: Mechanism, here: Poses, displaced: Poses) -> AnyArray:
    """Work of the external wrenches over a small displacement, to first order in it [J], shape (nt,)."""
    work = np.zeros(len(here.p), displaced.p.dtype)
    for load in mechanism.wrenches:
        b = load.body
        work += (displaced.p[:, b] + displaced.R[:, b] @ load.point) @ load.force
        turn = displaced.R[:, b] @ here.R[:, b].swapaxes(1, 2)  # 1 + [small rotation]×
        rotation = np.stack([turn[:, 2, 1], turn[:, 0, 2], turn[:, 1, 0]], axis=1)
        work += rotation @ load.moment
    return work


def _dissipation(mechanism: Mechanism, qd: Array, slopes: Array) -> Array:
    """Gradient of Rayleigh's function ½ Σ d v² of all dampers [N or N m], shape (nt, nv).

    The slopes are those of the lengths between two points, (nt, springs, nv).
    """
    D = np.diag(per_dof(mechanism, "damping"))
    for tendon in mechanism.tendons:
        w = mechanism.rates_of((tendon.length,))
        D = D + tendon.damping * w.T @ w
    rates = np.einsum("tkj,tj->tk", slopes, qd) * [spring.damping for spring in mechanism.point_springs]
    return qd @ D + np.einsum("tk,tkj->tj", rates, slopes)


def _correction(M: Array, Z_T: Array, force: Array) -> Array:
    """Contribution of the unactuated dofs' accelerations to the generalized force [N or N m], shape (nt, nv).

    Along the motions Z that neither open a loop nor move an actuator, M δ + force must vanish.
    """
    delta = Z_T.swapaxes(1, 2) @ -np.linalg.solve(Z_T @ M @ Z_T.swapaxes(1, 2), Z_T @ force[..., None])
    return (M @ delta)[..., 0]


def _eliminate_multipliers(Phi: Array, mechanism: Mechanism, force: Array, driven: int) -> Array:
    """Efforts τ of least norm |τ / scale| in force = Sᵀτ + Φᵀλ, shape (nt, na), if actuators move some dofs.

    Forces that no multipliers can balance are left to the actuators: P = 1 − Φ⁺Φ removes the rest, also for redundant
    constraints. Gears are divided out first, so that the rank of P Sᵀ does not depend on them.
    """
    units = unit_rates(mechanism)
    S, Phi, force = mechanism.selection * units, Phi * units, force * units
    gear = np.linalg.norm(S, axis=1)
    rows = row_factors(Phi) * Phi
    P = np.eye(Phi.shape[2]) - pseudo_inverse(rows) @ rows
    A = P @ (S / gear[:, None]).T
    effort = np.linalg.pinv(A, rcond=RANK_TOLERANCE) @ (P @ force[..., None])
    internal = svd(A)[2][:, driven:].swapaxes(1, 2)  # efforts that move nothing
    weight = (gear * mechanism.effort_scales)[:, None]
    effort = effort - internal @ (np.linalg.pinv(internal / weight) @ (effort / weight))
    return effort[..., 0] / gear
