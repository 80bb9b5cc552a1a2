"""Angeles 2014: dynamics of platform manipulators with six six-axis legs, in the notation of the document.

Every leg is a serial chain from the base: three revolutes that meet at S, the actuated joint 4, and two revolutes that
meet at U at right angles and carry the platform. The operation point of all of them is C, the mass centre of the
platform, so that J_J θ̇_J = t_M (twists with the angular part first). Joint 4 is prismatic along S–U, or a revolute
with the axis of joint 5. The document numbers no equations; the errata name the place.
"""

from collections.abc import Container, Mapping, Set
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.analytic.papers import AS_CORRECTED, read_errata, want_known, want_plain
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import LoopClosureError, NotRepresentableError
from loopcheck.robots.mechanism import Body, Mechanism, Wrench
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

ERRATA = read_errata(__file__)

LEGS = range(1, 7)
ACTUATED = 3
"""Place of the actuated joint 4 in a leg."""
ROUND_OFF = 1e-12
"""Largest distance of the actuated coordinates of a solved pose from the prescribed values [m or rad]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Geometry [m], masses [kg] and inertia tensors about mass centres [kg m²]; legs are numbered I to VI."""

    S: Array
    """Intersections of the first three axes of each leg, world, shape (6, 3)."""
    U: Array
    """Intersections of the last two axes of each leg, from C, platform axes, shape (6, 3)."""
    e6: Array
    """Directions of the last axes, platform axes, shape (6, 3)."""
    lengths: tuple[float, float] | None
    """Lower and upper link of a leg with a revolute joint 4; None for a prismatic leg."""
    C: Array
    """Mass centre of the platform in its own frame, shape (3,)."""
    m: Array
    """Masses of lower link, upper link and platform, shape (3,)."""
    c: Array
    """Mass centres of lower and upper link, from the origins S and U, or S and the elbow, shape (2, 3)."""
    I: Array
    """Inertia of lower link, upper link and platform, in their axes, shape (3, 3, 3)."""
    nW: Array
    """External moment on the platform, world axes [N m], shape (3,)."""
    fW: Array
    """External force at C, world axes [N], shape (3,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Legs:
    """All legs at the poses and twists of the platform; shapes begin with (nt, 6)."""

    e: Array
    """Axes of joints 1 to 6 [-], shape (nt, 6, 6, 3)."""
    e_dot: Array
    """Their rates [1/s], shape (nt, 6, 6, 3)."""
    o: Array
    """A point of each axis, from C [m], shape (nt, 6, 6, 3): r_i = −o_i."""
    o_dot: Array
    """Their velocities relative to C [m/s], shape (nt, 6, 6, 3)."""
    J: Array
    """J_J: twist of the platform per joint rate [-, m, 1/m], shape (nt, 6, 6, 6)."""
    J_dot: Array
    """Its rate [1/s, m/s], shape (nt, 6, 6, 6)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """M q̈ + N q̇ = τ_W + τ_G + Λ φ, and its matrices."""

    T: Array
    """T = Y⁻¹ Z: twist of the platform per actuated rate [-, m, 1/m], shape (nt, 6, 6)."""
    L: Array
    """L_J = J_J⁻¹ T: joint rates of each leg per actuated rate [-], shape (nt, 6, 6, 6)."""
    M: Array
    """Inertia [kg, kg m or kg m²], shape (nt, 6, 6)."""
    N: Array
    """Coriolis and centrifugal terms [the unit of M, per s], shape (nt, 6, 6)."""
    tau_W: Array
    """Tᵀ w_W: external wrench and weight of the platform [N or N m], shape (nt, 6)."""
    tau_G: Array
    """Weights of the legs [N or N m], shape (nt, 6)."""
    Lambda: Array
    """Λ = [L_Iᵀ e_Ik … L_VIᵀ e_VIk] [-], shape (nt, 6, 6)."""


def loop_count(joints: int, links: int) -> int:
    """Number ι of independent loops, Euler's formula for graphs."""
    return joints - links + 1


def degree_of_freedom(joints: int, links: int) -> int:
    """Degree of freedom of a chain of revolute and prismatic joints: 6 per moving link, less 5 per joint."""
    return 6 * (links - 1) - 5 * joints


def parameters(mechanism: Mechanism) -> Parameters:
    """The document's parameters of a model with legs hanging from the platform.

    Raises:
        NotRepresentableError: If a body or joint is missing, the legs differ, or the model has an element that this one
            lacks.
    """
    bodies = {body.name: body for body in mechanism.bodies}
    joints = {joint.name: joint for joint in mechanism.joints}
    required = ["platform", *(f"{part}{k}" for part in ("lower", "upper") for k in LEGS)]
    _want(required, bodies, "body")
    _want([*(f"leg{k}" for k in LEGS), *(f"u{k}{axis}" for axis in "ab" for k in LEGS)], joints, "joint")
    platform, elbow, hinge = bodies["platform"], joints["leg1"], joints["u1b"]
    uppers = [bodies[f"upper{k}"] for k in LEGS]
    load = _load(mechanism, platform)
    own = Parameters(
        S=np.array([mechanism.site(f"S{k}").position for k in LEGS]),
        U=np.array([body.position + body.rotation @ hinge.anchor - platform.center for body in uppers]),
        e6=np.array([body.rotation @ joints[f"u{k}a"].axis for k, body in zip(LEGS, uppers, strict=True)]),
        lengths=(float(elbow.anchor[2]), float(hinge.anchor[2])) if elbow.kind == "hinge" else None,
        C=platform.center,
        m=np.array([bodies["lower1"].mass, bodies["upper1"].mass, platform.mass]),
        c=np.array([bodies["lower1"].center, bodies["upper1"].center]),
        I=np.array([bodies["lower1"].inertia, bodies["upper1"].inertia, platform.inertia]),
        nW=load.moment,
        fW=load.force,
    )
    _want_alike(bodies)
    want_plain(mechanism, wrench=True)
    return own


def efforts(case: Case, motion: Motion, printed: Set[str] = AS_CORRECTED) -> Array:
    """Efforts φ = Λ⁻¹ (M q̈ + N q̇ − τ_W − τ_G) of the six actuated joints.

    Args:
        case: A platform on six legs in a configuration.
        motion: The prescribed motion; only that of the actuated joints is used.
        printed: Keys of errata that are left as printed.

    Returns:
        Efforts [N or N m], shape (nt, 6).

    Raises:
        NotFoundError: If an erratum is unknown.
        LoopClosureError: If no pose near the guess has the prescribed coordinates.
    """
    want_known(printed, ERRATA)
    p, drive = parameters(case.mechanism), motion.law(motion.t)
    C, R = platform_poses(p, drive.q, _guess(case))
    model = dynamic_model(p, (C, R), drive.qd, case.mechanism.gravity, printed)
    inertial = _times(model.M, drive.qdd) + _times(model.N, drive.qd)
    return _solve(model.Lambda, (inertial - model.tau_W - model.tau_G)[..., None])[..., 0]


def accelerations(model: Model, rates: Array, phi: Array) -> Array:
    """Forward dynamics in state-space form: ṙ = M⁻¹ (−N r + τ_W + τ_G + Λ φ).

    Args:
        model: The model at the states.
        rates: Rates r of the actuated joints [m/s or rad/s], shape (nt, 6).
        phi: Efforts of the actuators [N or N m], shape (nt, 6).

    Returns:
        Accelerations of the actuated joints [m/s² or rad/s²], shape (nt, 6).
    """
    force = -_times(model.N, rates) + model.tau_W + model.tau_G + _times(model.Lambda, phi)
    return _solve(model.M, force[..., None])[..., 0]


def dynamic_model(
    p: Parameters, pose: tuple[Array, Array], rates: Array, gravity: Array, printed: Set[str] = AS_CORRECTED
) -> Model:
    """The model at given states.

    Args:
        pose: Positions of C [m], shape (nt, 3), and rotations of the platform [-], shape (nt, 3, 3).
        rates: Rates of the actuated joints [m/s or rad/s], shape (nt, 6).
        gravity: Acceleration of gravity, world axes [m/s²], shape (3,).
        printed: Keys of errata that are left as printed.
    """
    C, R = pose
    still = np.zeros((len(C), 6))
    legs = legs_at(p, pose, still)
    Y, Z, _, _ = twist_shape(p, legs, printed)
    T = _solve(Y, Z)
    t = _times(T, rates)
    legs = legs_at(p, pose, t)
    Y, Z, Y_dot, Z_dot = twist_shape(p, legs, printed)
    T_dot = _solve(Y, Z_dot - Y_dot @ T)
    L = _solve(legs.J, T[:, None])
    L_dot = _solve(legs.J, T_dot[:, None] - legs.J_dot @ L)
    L_T, T_T = L.swapaxes(2, 3), T.swapaxes(1, 2)
    M_M, W = _dyads(p.m[2], R @ p.I[2] @ R.swapaxes(1, 2), t[:, :3])
    I_J, C_J, gamma = leg_dynamics(p, legs, L @ rates[:, None, :, None], gravity)
    sign = -1.0 if "coriolis_sign" in printed else 1.0
    of_legs = (L if "n_transpose" in printed else L_T) @ (I_J @ L_dot + sign * C_J @ L)
    w_W = np.concatenate([p.nW, p.fW + p.m[2] * gravity])
    by_leg = L[:, :, ACTUATED] if "lambda_transpose" not in printed else L[..., ACTUATED]  # rows: L_Jᵀ e_Jk or L_J e_Jk
    return Model(
        T=T,
        L=L,
        M=T_T @ M_M @ T + (L_T @ I_J @ L).sum(1),
        N=T_T @ (M_M @ T_dot + W @ M_M @ T) + of_legs.sum(1),
        tau_W=T_T @ w_W,
        tau_G=np.zeros_like(rates) if "leg_gravity" in printed else (L_T @ gamma[..., None])[..., 0].sum(1),
        Lambda=by_leg.swapaxes(1, 2),
    )


def platform_poses(p: Parameters, q: Array, guess: tuple[Array, Array]) -> tuple[Array, Array]:
    """Poses with given actuated coordinates by Newton's method on Y t = Z q̇, each sample from its predecessor.

    Args:
        q: Actuated coordinates [m or rad], shape (nt, 6).
        guess: Position of C [m], shape (1, 3), and rotation [-], shape (1, 3, 3), near the first sample.

    Returns:
        Positions of C [m], shape (nt, 3), and rotations [-], shape (nt, 3, 3).

    Raises:
        LoopClosureError: If Newton's method does not converge.
    """
    C, R = guess
    positions, rotations, still = np.zeros((len(q), 3)), np.zeros((len(q), 3, 3)), np.zeros((1, 6))
    for k, drives in enumerate(q):
        for _ in range(20):
            gap = drives - actuated_coordinates(p, (C, R))
            if np.abs(gap).max() < ROUND_OFF / 1000:
                break
            Y, Z, _, _ = twist_shape(p, legs_at(p, (C, R), still))
            step = _times(_solve(Y, Z), gap)
            C, R = C + step[:, 3:], _turned(R, step[0, :3])
        residual = float(np.abs(drives - actuated_coordinates(p, (C, R))).max())
        if not residual < ROUND_OFF:
            raise LoopClosureError(
                f"analytic/paper: no pose near sample {k} has the prescribed coordinates: residual {residual:.3g}",
                residual=residual,
                tolerance=ROUND_OFF,
                time=float("nan"),
            )
        positions[k], rotations[k] = C[0], R[0]
    return positions, rotations


def actuated_coordinates(p: Parameters, pose: tuple[Array, Array]) -> Array:
    """Coordinates of the actuated joints: |SU|, or the angle of the elbow.

    Args:
        pose: Positions of C [m], shape (nt, 3), and rotations of the platform [-], shape (nt, 3, 3).

    Returns:
        Actuated coordinates [m or rad], shape (nt, 6).
    """
    C, R = pose
    d = np.linalg.norm(C[:, None] + p.U @ R.swapaxes(1, 2) - p.S, axis=2)
    if p.lengths is None:
        return d
    a, b = p.lengths
    return np.arccos((d**2 - a**2 - b**2) / (2 * a * b))


def legs_at(p: Parameters, pose: tuple[Array, Array], t: Array) -> Legs:
    """Axes of all legs and their Jacobians J_J, with their rates.

    Args:
        pose: Positions of C [m], shape (nt, 3), and rotations of the platform [-], shape (nt, 3, 3).
        t: Twists of the platform [rad/s, m/s], shape (nt, 6).
    """
    C, R = pose
    e, o = _axes(p, C, R)
    J = _jacobian(p, e, o)
    theta_dot = _solve(J, np.broadcast_to(t[:, None, :, None], (*J.shape[:2], 6, 1)))[..., 0]
    # Each axis turns with the links before it; the axes of joints 4 and 5 are fixed in the links around joint 4.
    turning = e * (theta_dot * _turns(p))[..., None]
    w_before = np.cumsum(turning, axis=2) - turning
    w_before[:, :, 5] = t[:, None, :3]  # e6 is fixed in the platform
    e_dot = np.cross(w_before, e)
    o_dot = np.zeros_like(o)
    o_dot[:, :, :3] = -t[:, None, None, 3:]
    o_dot[:, :, 4:] = np.cross(t[:, None, None, :3], o[:, :, 4:])
    if p.lengths is None:
        o_dot[:, :, 3] = o_dot[:, :, 0]
    else:
        w_lower = turning[:, :, :3].sum(2)
        o_dot[:, :, 3] = o_dot[:, :, 0] + np.cross(w_lower, o[:, :, 3] - o[:, :, 0])
    return Legs(e=e, e_dot=e_dot, o=o, o_dot=o_dot, J=J, J_dot=_jacobian_rate(p, (e, o), (e_dot, o_dot)))


def twist_shape(p: Parameters, legs: Legs, printed: Set[str] = AS_CORRECTED) -> tuple[Array, Array, Array, Array]:
    """Y and Z in Y t_M = Z q̇, free of passive joint rates, and their rates.

    The product with A_J = [R_J1 1] removes the first three joints of a leg, that with u_J the last two.

    Args:
        printed: Keys of errata that are left as printed.

    Returns:
        Y, Z and their rates, each of shape (nt, 6, 6).
    """
    arm = legs.o[:, :, :1] - legs.o  # r_i − r1
    arm_dot = legs.o_dot[:, :, :1] - legs.o_dot
    a5, a6 = (np.cross(legs.e[:, :, i], arm[:, :, 4]) for i in (4, 5))
    a5_dot, a6_dot = (
        np.cross(legs.e_dot[:, :, i], arm[:, :, 4]) + np.cross(legs.e[:, :, i], arm_dot[:, :, 4]) for i in (4, 5)
    )
    u, u_dot = np.cross(a5, a6), np.cross(a5_dot, a6) + np.cross(a5, a6_dot)
    if p.lengths is None:
        a4, a4_dot = legs.e[:, :, 3], legs.e_dot[:, :, 3]
    else:
        a4 = np.cross(legs.e[:, :, 3], arm[:, :, 3])
        a4_dot = np.cross(legs.e_dot[:, :, 3], arm[:, :, 3]) + np.cross(legs.e[:, :, 3], arm_dot[:, :, 3])
    r1, r1_dot = -legs.o[:, :, 0], -legs.o_dot[:, :, 0]
    sign = 1.0 if "twist_sign" in printed else -1.0
    Y = np.concatenate([sign * np.cross(r1, u), u], axis=-1)
    Y_dot = np.concatenate([sign * (np.cross(r1_dot, u) + np.cross(r1, u_dot)), u_dot], axis=-1)
    zeta, zeta_dot = (u * a4).sum(-1), (u_dot * a4 + u * a4_dot).sum(-1)
    diagonal = np.eye(6)
    return Y, zeta[..., None] * diagonal, Y_dot, zeta_dot[..., None] * diagonal


def leg_dynamics(p: Parameters, legs: Legs, theta_dot: Array, gravity: Array) -> tuple[Array, Array, Array]:
    """I_J, C_J and the generalized weight γ_J of each leg as a serial manipulator of two links.

    Args:
        theta_dot: Joint rates θ̇_J [rad/s or m/s], shape (nt, 6, 6, 1).
        gravity: Acceleration of gravity, world axes [m/s²], shape (3,).

    Returns:
        I_J and C_J, shape (nt, 6, 6, 6), and γ_J, shape (nt, 6, 6) [N, N m and their multiples].
    """
    nt = len(legs.e)
    I_J, C_J, gamma = np.zeros((nt, 6, 6, 6)), np.zeros((nt, 6, 6, 6)), np.zeros((nt, 6, 6))
    turning = legs.e * (theta_dot[..., 0] * _turns(p))[..., None]
    for link, moved_by in enumerate((3, 4)):
        w = turning[:, :, :moved_by].sum(2)
        R = _link_axes(p, legs)[link]
        # Lower links and revolute joints carry their mass from a point of their own; a slide carries it from U.
        origin = (0, 4 if p.lengths is None else 3)[link]
        center = legs.o[:, :, origin] + R @ p.c[link]
        center_dot = legs.o_dot[:, :, origin] + np.cross(w, R @ p.c[link])
        T_i, T_i_dot = np.zeros((nt, 6, 6, 6)), np.zeros((nt, 6, 6, 6))
        for i in range(moved_by):
            e, e_dot = legs.e[:, :, i], legs.e_dot[:, :, i]
            if i == ACTUATED and p.lengths is None:
                T_i[..., 3:, i], T_i_dot[..., 3:, i] = e, e_dot
                continue
            arm, arm_dot = center - legs.o[:, :, i], center_dot - legs.o_dot[:, :, i]
            T_i[..., :3, i], T_i_dot[..., :3, i] = e, e_dot
            T_i[..., 3:, i] = np.cross(e, arm)
            T_i_dot[..., 3:, i] = np.cross(e_dot, arm) + np.cross(e, arm_dot)
        M_i, W_i = _dyads(p.m[link], R @ p.I[link] @ R.swapaxes(2, 3), w)
        T_T = T_i.swapaxes(2, 3)
        I_J += T_T @ M_i @ T_i
        C_J += T_T @ (M_i @ T_i_dot + W_i @ M_i @ T_i)
        gamma += T_T[..., 3:] @ (p.m[link] * gravity)
    return I_J, C_J, gamma


def _axes(p: Parameters, C: Array, R: Array) -> tuple[Array, Array]:
    """Axes of the joints and a point of each from C; the first three are X, Y, Z of R_lower = Rx Ry Rz."""
    nt = len(C)
    e, o = np.zeros((nt, 6, 6, 3)), np.zeros((nt, 6, 6, 3))
    U = p.U @ R.swapaxes(1, 2)
    S = p.S - C[:, None]
    d = np.linalg.norm(U - S, axis=2, keepdims=True)
    n = (U - S) / d
    e6 = p.e6 @ R.swapaxes(1, 2)
    e5 = _unit(np.cross(e6, n))
    z_lower, elbow, e4 = n, S, n
    if p.lengths is not None:
        a, b = p.lengths
        q = np.arccos((d**2 - a**2 - b**2) / (2 * a * b))
        y = np.cross(n, e5)
        z_lower = ((a + b * np.cos(q)) * n + b * np.sin(q) * y) / d
        elbow, e4 = S + a * z_lower, e5
    e[:, :, 0] = (1.0, 0.0, 0.0)
    e[:, :, 1], e[:, :, 2] = _unit(np.cross(z_lower, e[:, :, 0])), z_lower
    e[:, :, 3], e[:, :, 4], e[:, :, 5] = e4, e5, e6
    o[:, :, :3], o[:, :, 3], o[:, :, 4:] = S[:, :, None], elbow, U[:, :, None]
    return e, o


def _link_axes(p: Parameters, legs: Legs) -> tuple[Array, Array]:
    """Rotations of lower and upper links, x along e5 and z along the link, shape (nt, 6, 3, 3) each."""
    x = legs.e[:, :, 4]
    z_lower = legs.e[:, :, 2]
    z_upper = z_lower if p.lengths is None else _unit(legs.o[:, :, 4] - legs.o[:, :, 3])
    lower, upper = (np.stack([x, np.cross(z, x), z], axis=-1) for z in (z_lower, z_upper))
    return lower, upper


def _jacobian(p: Parameters, e: Array, o: Array) -> Array:
    J = np.concatenate([e, np.cross(e, -o)], axis=-1)
    if p.lengths is None:
        J[:, :, ACTUATED] = np.concatenate([np.zeros_like(e[:, :, ACTUATED]), e[:, :, ACTUATED]], axis=-1)
    return J.swapaxes(2, 3)


def _jacobian_rate(p: Parameters, lines: tuple[Array, Array], rates: tuple[Array, Array]) -> Array:
    (e, o), (e_dot, o_dot) = lines, rates
    J_dot = np.concatenate([e_dot, np.cross(e_dot, -o) + np.cross(e, -o_dot)], axis=-1)
    if p.lengths is None:
        slide = e_dot[:, :, ACTUATED]
        J_dot[:, :, ACTUATED] = np.concatenate([np.zeros_like(slide), slide], axis=-1)
    return J_dot.swapaxes(2, 3)


def _turns(p: Parameters) -> Array:
    """1 for the revolutes of a leg, 0 for a prismatic joint, shape (6,)."""
    turns = np.ones(6)
    turns[ACTUATED] = p.lengths is not None
    return turns


def _dyads(mass: float, inertia: Array, w: Array) -> tuple[Array, Array]:
    """Inertia dyads and angular-velocity dyads, shape (..., 6, 6), of tensors (..., 3, 3) in world axes."""
    M, W = np.zeros((*w.shape[:-1], 6, 6)), np.zeros((*w.shape[:-1], 6, 6))
    M[..., :3, :3], M[..., 3:, 3:] = inertia, mass * np.eye(3)
    W[..., :3, :3] = np.cross(w[..., None, :], np.eye(3)).swapaxes(-1, -2)
    return M, W


def _turned(R: Array, angle: Array) -> Array:
    """Rotations (1, 3, 3) turned by a small rotation vector in world axes."""
    return Rotation.from_rotvec(angle).as_matrix() @ R


def _unit(a: Array) -> Array:
    return a / np.linalg.norm(a, axis=-1, keepdims=True)


def _times(A: Array, x: Array) -> Array:
    return (A @ x[..., None])[..., 0]


def _guess(case: Case) -> tuple[Array, Array]:
    """Pose near the start of the mode: position of C (1, 3) and rotation (1, 3, 3)."""
    joints = {
        joint.name: columns.start for joint, columns in zip(case.mechanism.joints, case.mechanism.q_slices, strict=True)
    }
    px, py, pz, psi, theta, phi = (case.guess[joints[name]] for name in ("px", "py", "pz", "psi", "theta", "phi"))
    R = Rotation.from_euler("ZYX", [psi, theta, phi]).as_matrix()
    platform = next(body for body in case.mechanism.bodies if body.name == "platform")
    return (np.array([px, py, pz]) + R @ platform.center)[None], R[None]


def _want(names: list[str], present: Container[str], kind: str) -> None:
    for name in names:
        if name not in present:
            raise NotRepresentableError(
                f"analytic/paper: a platform on six legs must have a {kind} '{name}', the model has no such {kind}"
            )


def _want_alike(bodies: Mapping[str, Body]) -> None:
    for part in ("lower", "upper"):
        first = bodies[f"{part}1"]
        for k in LEGS:
            own = bodies[f"{part}{k}"]
            same = own.mass == first.mass and np.array_equal(own.center, first.center)
            if not same or not np.array_equal(own.inertia, first.inertia):
                raise NotRepresentableError(
                    f"analytic/paper: all legs must be equal, '{own.name}' differs from '{first.name}'"
                )


def _load(mechanism: Mechanism, platform: Body) -> Wrench:
    """The external wrench w_W; zero by default."""
    body = next(b for b, own in enumerate(mechanism.bodies) if own is platform)
    moment, force = np.zeros(3), np.zeros(3)
    for load in mechanism.wrenches:
        if load.body != body or not np.array_equal(load.point, platform.center):
            raise NotRepresentableError("analytic/paper: external wrenches must act at the platform's mass centre")
        moment, force = moment + load.moment, force + load.force
    return Wrench(body=body, point=platform.center, moment=moment, force=force)


def _solve(A: Array, b: Array) -> Array:
    return np.asarray(np.linalg.solve(A, b), dtype=np.float64)
