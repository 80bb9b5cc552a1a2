"""Inverse dynamics by the natural orthogonal complement: Newton-Euler equations of all bodies, no multipliers.

Equations (3) to (20) of Kordjazi and Akbarzadeh 2011 (after Angeles and Lee 1988), for any mechanism in space. The
loops enter through L, which gives all joint velocities from the independent velocities, so constraint forces never
appear.
"""

from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.kinematics.closures import RANK_TOLERANCE
from loopcheck.analytic.kinematics.redundancy import independent_choices, minimum_norm, rates_of_drives, undriven_dofs
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import Poses, Twists, cross, joint_stretch, point_of, skew
from loopcheck.robots.arrays import AccelerationSeries, AnyArray, Array, EffortSeries, VelocitySeries, svd
from loopcheck.robots.efforts import EffortHistory
from loopcheck.robots.mechanism import WORLD, Mechanism, PointSpring
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class NocModel:
    """The matrices of M q̈ᵃ + C q̇ᵃ + D q̇ᵃ + G = τᵃ (equation (12)); qᵃ are the n independent coordinates."""

    L: Array
    """Joint orthogonal complement, q̇ = L q̇ᵃ (8) [-], shape (nt, nv, n)."""
    T: Array
    """Natural orthogonal complement, t = T q̇ᵃ (10) [-, m or 1/m], shape (nt, 6 nb, n)."""
    M: Array
    """Inertia matrix (13) [kg, kg m or kg m²], shape (nt, n, n)."""
    C: Array
    """Coriolis and centrifugal matrix (14) [the unit of M, per s], shape (nt, n, n): Ṁ − 2C is skew."""
    D: Array
    """Viscous damping of joints, tendons and springs between points [the unit of C], shape (nt, n, n)."""
    G: Array
    """Gravity, external wrenches and springs (15) [N or N m], shape (nt, n)."""

    def force(self, acceleration: AccelerationSeries, velocity: VelocitySeries) -> Array:
        """Generalized force that a motion requires (12) [N or N m], shape (nt, n).

        Args:
            acceleration: Of the independent coordinates [m/s² or rad/s²], shape (nt, n).
            velocity: Of the same [m/s or rad/s], shape (nt, n).
        """
        moving = self.M @ acceleration[..., None] + (self.C + self.D) @ velocity[..., None]
        force: Array = moving[..., 0] + self.G
        return force


class Noc:
    """The reference: efforts by the natural orthogonal complement."""

    name = "analytic/noc"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        mechanism = case.mechanism
        needed = needed_efforts(State(mechanism=mechanism, q=motion.q, qd=motion.qd), motion.qdd)
        return EffortHistory(
            source=self.name,
            actuators=tuple(actuator.name for actuator in mechanism.actuators),
            t=motion.t,
            effort=needed.effort,
            settings={
                "independent coordinates": _choices_in_words(mechanism, motion, needed.choices),
                "rank tolerance": f"{RANK_TOLERANCE:g} relative to rows of unit length",
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededEfforts:
    """Matrices and forces of the equations along a motion."""

    effort: Array
    """Efforts of least norm of the actuators [N or N m], shape (nt, na)."""
    unactuated: Array
    """Generalized force along unactuated motions of the independent joints [N or N m], shape (nt, nv).

    Zero if the unactuated dofs move by the dynamics."""
    choices: list[tuple[AnyArray, AnyArray]]
    """Masks of the independent dofs (nv,) and of the samples (nt,) that they were taken at."""


def needed_efforts(state: State, qdd: AccelerationSeries) -> NeededEfforts:
    """The required efforts of states, for any accelerations of unactuated dofs.

    Args:
        state: Positions with closed loops, and velocities that keep them closed.
        qdd: Joint accelerations that keep them closed.
    """
    mechanism, q, qd = state.mechanism, state.q, state.qd
    effort, unactuated = np.zeros((len(q), mechanism.na)), np.zeros((len(q), mechanism.nv))
    undriven = undriven_dofs(mechanism, q[len(q) // 2])
    choices = independent_choices(state)
    for independent, samples in choices:
        part = state if samples.all() else state.rows(samples)
        model = noc_model(part, independent)
        force = model.force(qdd[samples][:, independent], qd[samples][:, independent])
        effort[samples], unactuated[np.ix_(samples, independent)] = shared_efforts(mechanism, model, force, undriven)
    return NeededEfforts(effort=effort, unactuated=unactuated, choices=choices)


def shared_efforts(mechanism: Mechanism, model: NocModel, force: Array, undriven: int) -> tuple[EffortSeries, Array]:
    """Efforts of least norm for a required force; motions that no drive moves follow from the dynamics.

    Args:
        force: Generalized force that the motion requires [N or N m], shape (nt, n).
        undriven: Number of dofs without a drive.

    Returns:
        Efforts [N or N m], shape (nt, na), and the part of the force along undriven motions, shape (nt, n).
    """
    driving, coasting = _driving_and_coasting(rates_of_drives(mechanism) @ model.L, undriven)
    left = (coasting @ coasting.swapaxes(1, 2) @ force[..., None])[..., 0]
    force = force + _force_of_coasting(model.M, coasting, force)
    on_driving = (driving.swapaxes(1, 2) @ force[..., None])[..., 0]
    return minimum_norm(mechanism.selection @ model.L @ driving, on_driving, mechanism.effort_scales), left


def _choices_in_words(mechanism: Mechanism, motion: Motion, choices: list[tuple[AnyArray, AnyArray]]) -> str:
    """The independent coordinates, and the number of changes of their choice."""
    names = _dof_names(mechanism)
    of_samples = np.zeros(len(motion.t), dtype=int)
    for k, (_, samples) in enumerate(choices):
        of_samples[samples] = k
    changes = np.flatnonzero(np.diff(of_samples))
    parts = [", ".join(names[i] for i in np.flatnonzero(mask)) for mask, _ in choices]
    if not changes.size:
        return parts[0]
    times = ", ".join(f"{motion.t[k + 1]:g}" for k in changes[:5])
    count = f"the choice changes {len(changes)} times, at t = {times}{' ...' * (len(changes) > 5)} s"
    return f"{' or '.join(parts)}; {count}"


def noc_model(state: State, independent: AnyArray) -> NocModel:
    """Natural orthogonal complement and dynamic model at given states (equations (3) to (20)).

    Args:
        state: Positions, and velocities that keep the loops closed.
        independent: Mask of the independent dofs [-], shape (nv,).
    """
    return model_along(state, *_joint_orthogonal_complement(state, independent))


def model_along(state: State, L: Array, L_dot: Array) -> NocModel:
    """The same model in the coordinates of any joint orthogonal complement (equations (10) to (20)).

    Args:
        L: Joint velocities per rate of each coordinate [-, or ratios of the units], shape (nt, nv, n).
        L_dot: Its rate [the unit of L, per s], shape (nt, nv, n).
    """
    K, K_dot = _twist_maps(state)
    return _model(state, L, L_dot, K @ L, K_dot @ L + K @ L_dot)  # (11)


def tree_model(state: State) -> NocModel:
    """The same model of the spanning tree, with cut loops: all its dofs are independent, L is the identity.

    Args:
        state: Positions and velocities.
    """
    nv = state.mechanism.nv
    L = np.broadcast_to(np.eye(nv), (len(state.q), nv, nv))
    return _model(state, L, np.zeros_like(L), *_twist_maps(state))


def _twist_maps(state: State) -> tuple[Array, Array]:
    """Twists of all bodies per joint velocity, and the rate, each of shape (nt, 6 nb, nv)."""
    moving, (nt, nb) = state.twists, state.poses.c.shape[:2]
    return moving.K.reshape(nt, 6 * nb, -1), moving.K_dot.reshape(nt, 6 * nb, -1)


def _model(state: State, L: Array, L_dot: Array, T: Array, T_dot: Array) -> NocModel:
    """Equations (12) to (20), with L, T and their rates."""
    mechanism, bodies, moving = state.mechanism, state.poses, state.twists
    M_total, Omega = _mass(mechanism, bodies.R), _rotation_rates(moving)
    T_T, L_T = T.swapaxes(1, 2), L.swapaxes(1, 2)
    rotors = mechanism.stacked.rotors
    M = T_T @ _blocks(M_total, T) + L_T @ rotors @ L  # (13), and the rotors of the drives
    C = T_T @ (_blocks(M_total, T_dot) + _blocks(Omega, _blocks(M_total, T))) + L_T @ rotors @ L_dot  # (14)
    D = L_T @ _damping(state) @ L
    wrenches = _external_wrenches(mechanism, bodies) + _wrenches_of_point_springs(state)
    G = -(T_T @ wrenches[..., None])[..., 0]  # (15)
    springs = (L_T @ _springs(mechanism, state.q)[..., None])[..., 0]
    return NocModel(L=L, T=T, M=M, C=C, D=D, G=G + springs)


def _driving_and_coasting(A: Array, undriven: int) -> tuple[Array, Array]:
    """Directions of the independent velocities that move a drive, and that move no drive, each (nt, n, columns).

    A has the rates of the drives per independent velocity (nt, drives, n).
    """
    if not undriven:
        n = A.shape[-1]
        return np.eye(n)[None], np.zeros((1, n, 0))
    V = svd(A)[2].swapaxes(1, 2)
    driven = A.shape[-1] - undriven
    return V[..., :driven], V[..., driven:]


def _force_of_coasting(M: Array, coasting: Array, force: Array) -> Array:
    """Contribution of the unactuated accelerations to a generalized force (nt, n): along them no force remains."""
    Z_T = coasting.swapaxes(1, 2)
    accelerations = -np.linalg.solve(Z_T @ M @ coasting, Z_T @ force[..., None])
    return (M @ coasting @ accelerations)[..., 0]


def _joint_orthogonal_complement(state: State, independent: AnyArray) -> tuple[Array, Array]:
    """L and its rate (equations (8), (9)), both of shape (nt, nv, n); redundant closure rows drop out by rank."""
    (nt, _, nv), n = state.Phi.shape, int(independent.sum())
    L, L_dot = np.zeros((nt, nv, n)), np.zeros((nt, nv, n))
    dependent = state.dependent_rates(independent)
    L[:, independent] = np.eye(n)
    L[:, ~independent] = dependent(state.Phi[..., independent])
    L_dot[:, ~independent] = dependent(state.Phi_dot @ L)  # Φ L = 0, differentiated
    return L, L_dot


def _mass(mechanism: Mechanism, R: Array) -> Array:
    """Blocks of M_total in world axes (equations (17), (19)), shape (nt, nb, 6, 6)."""
    inertia = mechanism.stacked.inertia
    blocks = np.zeros((*R.shape[:2], 6, 6))
    blocks[..., :3, :3] = R @ inertia[:, :3, :3] @ R.swapaxes(-1, -2)
    blocks[..., 3:, 3:] = inertia[:, 3:, 3:]
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


def _external_wrenches(mechanism: Mechanism, bodies: Poses) -> Array:
    """Gravity wrenches w^g (equation (20)), less gravity compensation, and the constant external wrenches.

    All about the mass centres [N m, N], shape (nt, 6 nb).
    """
    nt, nb = bodies.c.shape[:2]
    wrenches = np.zeros((nt, nb, 6))
    wrenches[..., 3:] = mechanism.stacked.weights
    for load in mechanism.wrenches:
        arm = bodies.R[:, load.body] @ (load.point - mechanism.bodies[load.body].center)
        wrenches[:, load.body, :3] += load.moment + cross(arm, load.force)
        wrenches[:, load.body, 3:] += load.force
    return wrenches.reshape(nt, 6 * nb)


def body_wrenches(state: State, qdd: AccelerationSeries) -> tuple[Array, Array]:
    """Wrench that each body needs from its joints and closures, about its mass centre (equations (16) to (20)).

    Returns:
        Wrenches [N m, N], shape (nt, nb, 6), and the sums of the sizes of their terms, moment and force, (nt, nb, 2).
    """
    mechanism, moving = state.mechanism, state.twists
    twist = moving.K @ state.qd[:, None, :, None]
    rate = moving.K @ qdd[:, None, :, None] + moving.K_dot @ state.qd[:, None, :, None]
    M = _mass(mechanism, state.poses.R)
    loads = _external_wrenches(mechanism, state.poses), _wrenches_of_point_springs(state, damped=True)
    terms = [
        (M @ rate)[..., 0],
        (_rotation_rates(moving) @ M @ twist)[..., 0],
        *(-x.reshape(*M.shape[:2], 6) for x in loads),
    ]
    sizes = sum(np.linalg.norm(x.reshape(*M.shape[:2], 2, 3), axis=-1) for x in terms)
    return np.sum(terms, axis=0), np.asarray(sizes)


def _wrenches_of_point_springs(state: State, *, damped: bool = False) -> Array:
    """Wrenches of springs between two points, about the mass centres [N m, N], shape (nt, 6 nb).

    Args:
        damped: Whether to add those of their dampers.
    """
    bodies = state.poses
    nt, nb = bodies.c.shape[:2]
    wrenches = np.zeros((nt, nb, 6))
    for spring in state.mechanism.point_springs:
        along, length, ends = _line(spring, bodies)
        pull = spring.stiffness * (length - np.clip(length, *spring.rest))
        if damped and spring.damping:
            moving = state.twists
            apart = sum(-sign * (moving.v[:, b] + cross(moving.w[:, b], arm)) for b, arm, sign in ends)
            pull = pull + spring.damping * (along * apart).sum(axis=1)
        for b, arm, sign in ends:
            force = sign * pull[:, None] * along
            wrenches[:, b] += np.concatenate([cross(arm, force), force], axis=1)
    return wrenches.reshape(nt, 6 * nb)


def _line(spring: PointSpring, bodies: Poses) -> tuple[Array, Array, list[tuple[int, Array, int]]]:
    """Direction from the first point of a spring to the second (nt, 3), and their distance (nt,).

    Also the moving bodies, the points in them from the mass centre (nt, 3), and the sign of the pull.
    """
    p1, p2 = (point_of(bodies, *end) for end in spring.ends)
    length = np.linalg.norm(p2 - p1, axis=1)
    points = zip(spring.ends, (p1, p2), (1, -1), strict=True)
    ends = [(b, p - bodies.c[:, b], sign) for (b, _), p, sign in points if b != WORLD]
    return (p2 - p1) / length[:, None], length, ends


def _damping(state: State) -> Array:
    """Viscous damping of joints, tendons and springs between points on the joint velocities, shape (nt, nv, nv)."""
    mechanism = state.mechanism
    W = mechanism.rates_of([tendon.length for tendon in mechanism.tendons])
    on_joints = np.diag(mechanism.stacked.damping) + (W.T * [tendon.damping for tendon in mechanism.tendons]) @ W
    damping = np.broadcast_to(on_joints, (len(state.q), *on_joints.shape))
    for spring in mechanism.point_springs:
        if spring.damping:
            along, _, ends = _line(spring, state.poses)
            velocity = sum(-sign * (state.K[:, b, 3:] - skew(arm) @ state.K[:, b, :3]) for b, arm, sign in ends)
            rate = along[:, None] @ velocity
            damping = damping + spring.damping * rate.swapaxes(1, 2) @ rate
    return damping


def _springs(mechanism: Mechanism, q: Array) -> Array:
    """Effort it takes to hold the springs of joints and tendons [N or N m], shape (nt, nv)."""
    effort = np.zeros((len(q), mechanism.nv))
    for joint, columns, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
        if joint.stiffness:
            effort[:, dofs] = joint.stiffness * joint_stretch(joint, q[:, columns])
    for tendon in mechanism.tendons:
        length = mechanism.values_of((tendon.length,), q)
        pull = tendon.stiffness * (length - np.clip(length, *tendon.rest))  # slack between the two lengths
        effort += pull * mechanism.rates_of((tendon.length,))
    return effort


def _dof_names(mechanism: Mechanism) -> list[str]:
    return [
        joint.name
        for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True)
        for _ in range(dofs.stop - dofs.start)
    ]
