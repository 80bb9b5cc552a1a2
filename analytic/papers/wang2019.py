"""Wang, Belzile, Angeles and Li 2019: the redundantly actuated 2PUR-2RPU by the natural orthogonal complement.

Generalized coordinates x = (α, β, ζ). Section 4.1 numbers the bodies slider 1, link B1A1, slider 2, link B2A2, rods
B3A3 and B4A4, platform; Appendix A, and this module, number the sliders 1, 2 and the links 3, 4. The motion of the
four actuated joints is given; x follows from (39), and q̇ = A ẋ has more rows than columns.
"""

from collections.abc import Set
from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.papers import AS_CORRECTED, read_errata, want_known, want_plain
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.errors import LoopClosureError, NotRepresentableError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

ERRATA = read_errata(__file__)

STEP = 1e-40
"""Imaginary step: the rates of T and A are derivatives along ẋ, taken without truncation error."""
ROUND_OFF = 1e-13
"""Largest distance of the actuated joints of a solved pose from the prescribed values [m]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Lengths of Table 1 and figure 3 [m], masses [kg] and inertia tensors in axes of the links [kg m²]."""

    l: float
    l3: float
    f: float
    d: float
    e: float
    lc: float
    """Mass centre of B1A1 and B2A2 from B."""
    qc: float
    """Mass centre of B3A3 and B4A4 from A."""
    m: Array
    """Masses of sliders 1, 2, links 1, 2, rods 3, 4 and platform, as T1 to T7, shape (7,)."""
    I: Array
    """Central inertia tensors in the same order, shape (7, 3, 3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """τ = I ẍ + C ẋ − γ (25), and its matrices."""

    T: Array
    """Twist-shaping matrices [-, m, 1/m], shape (nt, 7, 6, 3)."""
    I: Array
    """Generalized inertia [kg, kg m or kg m²], shape (nt, 3, 3)."""
    C: Array
    """Coriolis and centrifugal terms [the unit of I, per s], shape (nt, 3, 3)."""
    gamma: Array
    """Generalized weight [N m, N m, N], shape (nt, 3)."""


def parameters(mechanism: Mechanism) -> Parameters:
    """The paper's parameters of the model.

    Raises:
        NotRepresentableError: If a body is missing, or the model has an element that the paper's model lacks.
    """
    bodies = {body.name: body for body in mechanism.bodies}
    required = ("slider1", "slider2", "link1", "link2", "rod3", "rod4", "platform")
    for name in required:
        if name not in bodies:
            raise NotRepresentableError(f"analytic/paper: the 2PUR-2RPU of the paper must have a body '{name}'")
    want_plain(mechanism)
    ordered = [bodies[name] for name in required]
    return Parameters(
        l=float(mechanism.site("link2_end").position[2]),
        l3=float(bodies["rod4"].position[1]),
        f=float(mechanism.site("A4").position[1]),
        d=float(bodies["rod4"].position[2]),
        e=-float(mechanism.site("A2").position[2]),
        lc=float(bodies["link1"].center[2]),
        qc=-float(bodies["rod3"].center[1]),
        m=np.array([body.mass for body in ordered]),
        I=np.array([body.inertia for body in ordered]),
    )


def efforts(case: Case, motion: Motion, printed: Set[str] = AS_CORRECTED) -> Array:
    """Minimum-norm forces of the four sliders (36).

    Args:
        case: The 2PUR-2RPU in a configuration.
        motion: The prescribed motion; only that of the actuated joints is used.
        printed: Keys of errata that are left as printed.

    Returns:
        Efforts [N], shape (nt, 4).

    Raises:
        NotFoundError: If an erratum is unknown.
        LoopClosureError: If no pose has the prescribed coordinates.
    """
    want_known(printed, ERRATA)
    p, drive = parameters(case.mechanism), motion.law(motion.t)
    x, xd, xdd = generalized_motion(p, drive.q, drive.qd, drive.qdd)
    model = dynamic_model(p, x, xd, case.mechanism.gravity, printed)
    tau = (model.I @ xdd[..., None] + model.C @ xd[..., None])[..., 0] - model.gamma  # (25)
    scale = case.mechanism.effort_scales  # one newton each, if the robot's file does not say otherwise
    return scale * minimum_norm(scale[:, None] * actuation(p, x), tau)


def minimum_norm(A: Array, tau: Array) -> Array:
    """τ_a0 = Q_L U⁻ᵀ τ from the QR decomposition of A (33) to (36).

    Args:
        A: Actuated rates per generalized rate [-, m], shape (nt, 4, 3).
        tau: Generalized forces [N m, N m, N], shape (nt, 3).

    Returns:
        Efforts of the actuators [N], shape (nt, 4).
    """
    Q, R = np.linalg.qr(A, mode="complete")
    Q_L, U = Q[..., :3], R[:, :3]
    return (Q_L @ np.linalg.solve(U.swapaxes(1, 2), tau[..., None]))[..., 0]


def dynamic_model(p: Parameters, x: Array, xd: Array, gravity: Array, printed: Set[str] = AS_CORRECTED) -> Model:
    """The model (13) to (24) at given states.

    Args:
        x: α, β, ζ [rad, rad, m], shape (nt, 3).
        xd: Their rates [rad/s, rad/s, m/s], shape (nt, 3).
        gravity: Acceleration of gravity, axes of the base [m/s²], shape (3,).
        printed: Keys of errata that are left as printed.
    """
    T = twist_shaping(p, x, printed)
    T_dot = twist_shaping(p, x + 1j * STEP * xd, printed).imag / STEP
    R = _axes(p, x)
    w = (T[:, :, :3] @ xd[:, None, :, None])[..., 0]
    M, W = np.zeros((*T.shape[:2], 6, 6)), np.zeros((*T.shape[:2], 6, 6))
    M[..., :3, :3] = R @ p.I @ R.swapaxes(2, 3)
    M[..., 3:, 3:] = p.m[:, None, None] * np.eye(3)
    W[..., :3, :3] = np.cross(w[..., None, :], np.eye(3)).swapaxes(2, 3)
    T_T = T.swapaxes(2, 3)
    return Model(
        T=T,
        I=(T_T @ M @ T).sum(1),
        C=(T_T @ (M @ T_dot + W @ M @ T)).sum(1),
        gamma=np.einsum("tbix,b,i->tx", T[:, :, 3:], p.m, gravity),  # (23)
    )


def generalized_motion(p: Parameters, q: Array, qd: Array, qdd: Array) -> tuple[Array, Array, Array]:
    """α, β, ζ and their rates from the four actuated joints, by Newton's method on (39) with q̇ = A ẋ (28).

    Args:
        q: Actuated joints [m], shape (nt, 4).
        qd: Their rates [m/s], shape (nt, 4).
        qdd: Their second rates [m/s²], shape (nt, 4).

    Returns:
        x, ẋ and ẍ, each of shape (nt, 3).

    Raises:
        LoopClosureError: If no pose near that before has the prescribed coordinates.
    """
    x, poses = np.array([[0.0, 0.0, 0.6 * p.l]]), np.zeros((len(q), 3))
    for k, drives in enumerate(q):
        for _ in range(30):
            gap = drives - actuated_coordinates(p, x).real
            if np.abs(gap).max() < ROUND_OFF / 1000:
                break
            x = x + (np.linalg.pinv(actuation(p, x)) @ gap[..., None])[..., 0]
        residual = float(np.abs(drives - actuated_coordinates(p, x).real).max())
        if not residual < ROUND_OFF:
            raise LoopClosureError(
                f"analytic/paper: equation (39) has no solution near sample {k}: residual {residual:.3g}",
                residual=residual,
                tolerance=ROUND_OFF,
                time=float("nan"),
            )
        poses[k] = x[0]
    back = np.linalg.pinv(actuation(p, poses))
    xd = (back @ qd[..., None])[..., 0]
    A_dot = actuation(p, poses + 1j * STEP * xd).imag / STEP
    return poses, xd, (back @ (qdd[..., None] - A_dot @ xd[..., None]))[..., 0]


def actuated_coordinates(p: Parameters, x: AnyArray) -> AnyArray:
    """Inverse displacement (39).

    Args:
        x: α, β, ζ [rad, rad, m], shape (nt, 3); may be complex.

    Returns:
        q1 … q4 [m], shape (nt, 4).
    """
    beta, s = x[:, 1], _Shorthand(p, x)
    return np.stack(
        [
            -s.g11 + p.f * np.cos(beta) - p.e * np.sin(beta),
            s.g21 - p.f * np.cos(beta) - p.e * np.sin(beta),
            np.sqrt(s.g33),
            np.sqrt(s.g43),
        ],
        axis=1,
    )


def actuation(p: Parameters, x: AnyArray) -> AnyArray:
    """A of q̇ = A ẋ (28), the derivative of (39).

    Args:
        x: α, β, ζ [rad, rad, m], shape (nt, 3); may be complex.

    Returns:
        A [-, m], shape (nt, 4, 3).
    """
    s, sa, ca = _Shorthand(p, x), np.sin(x[:, 0]), np.cos(x[:, 0])
    q3, q4 = np.sqrt(s.g33), np.sqrt(s.g43)
    A = np.zeros((len(x), 4, 3), x.dtype)
    A[:, 0, 1], A[:, 0, 2] = -s.k11 * s.g12 / s.g11 - s.k12, s.g12 / s.g11
    A[:, 1, 1], A[:, 1, 2] = s.k22 - s.k21 * s.g22 / s.g21, -s.g22 / s.g21
    A[:, 2, 0], A[:, 2, 2] = -(s.g31 * s.k31 + s.g32 * s.k32) / q3, (s.g31 * ca - s.g32 * sa) / q3
    A[:, 3, 0], A[:, 3, 2] = (s.g41 * s.k41 - s.g42 * s.k42) / q4, (s.g41 * ca - s.g42 * sa) / q4
    return A


def twist_shaping(p: Parameters, x: AnyArray, printed: Set[str] = AS_CORRECTED) -> AnyArray:
    """The matrices T1 to T7 of Appendix A, angular part first.

    Args:
        x: α, β, ζ [rad, rad, m], shape (nt, 3); may be complex.
        printed: Keys of errata that are left as printed.

    Returns:
        T1 … T7 [-, m, 1/m], shape (nt, 7, 6, 3).
    """
    s, (alpha, beta, zeta) = _Shorthand(p, x), x.T
    sa, ca, c = np.sin(alpha), np.cos(alpha), p.lc / p.l
    T = np.zeros((len(x), 7, 3, 6), x.dtype)  # rows α, β, ζ, as printed
    A = actuation(p, x)
    T[:, 0, :, 3], T[:, 1, :, 3] = A[:, 0], A[:, 1]

    t3, t4, t7 = T[:, 2], T[:, 3], T[:, 6]
    sign = {key: -1.0 if key in printed else 1.0 for key in ("t3_beta", "t4_beta_w", "t4_zeta_w")}
    more = {key: 1 + c if key in printed else 1 - c for key in ("t4_beta_v", "t4_zeta_v")}
    t3[:, 0, 0] = t4[:, 0, 0] = 1
    t3[:, 0, 4:] = -c * (s.g12 * [ca, sa]).T
    t3[:, 1, 1:3] = sign["t3_beta"] * (s.k11 / s.g11 * [ca, sa]).T
    t3[:, 1, 3] = (c - 1) * s.k11 * s.g12 / s.g11 - s.k12
    t3[:, 1, 4:] = c * (s.k11 * [sa, -ca]).T
    t3[:, 2, 1:3] = -(1 / s.g11 * [ca, sa]).T
    t3[:, 2, 3] = (1 - c) * s.g12 / s.g11
    t3[:, 2, 4:] = t4[:, 2, 4:] = c * np.stack([-sa, ca], axis=1)

    t4[:, 0, 4:] = -c * (s.g22 * [ca, sa]).T
    t4[:, 1, 1:3] = sign["t4_beta_w"] * (s.k21 / s.g21 * [ca, sa]).T
    t4[:, 1, 3] = -more["t4_beta_v"] * s.k21 * s.g22 / s.g21 + s.k22
    t4[:, 1, 4:] = c * (s.k21 * [-sa, ca]).T
    t4[:, 2, 1:3] = sign["t4_zeta_w"] * (1 / s.g21 * [ca, sa]).T
    t4[:, 2, 3] = -more["t4_zeta_v"] * s.g22 / s.g21

    turn3, rise3 = (s.g31 * s.k32 - s.g32 * s.k31) / s.g33, (s.g31 * sa + s.g32 * ca) / s.g33
    turn4, rise4 = (s.g42 * s.k41 + s.g41 * s.k42) / s.g43, (s.g42 * ca + s.g41 * sa) / s.g43
    T[:, 4, 0, 0], T[:, 4, 0, 4], T[:, 4, 0, 5] = turn3, s.k33 * turn3 - s.k32, -s.k34 * turn3 - s.k31
    T[:, 4, 2, 0], T[:, 4, 2, 4], T[:, 4, 2, 5] = rise3, s.k33 * rise3 - sa, ca - s.k34 * rise3
    T[:, 5, 0, 0], T[:, 5, 0, 4], T[:, 5, 0, 5] = turn4, s.k43 * turn4 - s.k42, -s.k44 * turn4 + s.k41
    T[:, 5, 2, 0], T[:, 5, 2, 4], T[:, 5, 2, 5] = rise4, s.k43 * rise4 - sa, ca - s.k44 * rise4

    t7[:, 0, 0], t7[:, 1, 1], t7[:, 1, 2] = 1, ca, sa
    if "t7_alpha" not in printed:
        t7[:, 0, 4:] = -(zeta * [ca, sa]).T
    along = [0 * sa, -sa, ca]
    if "t7_zeta" in printed:
        along = [np.sin(beta), -sa * np.cos(beta), ca * np.cos(beta)]
    t7[:, 2, 3:] = np.stack(along, axis=1)
    return T.swapaxes(2, 3)


class _Shorthand:
    """The definitions k_ij and g_ij at the end of Appendix A, each of shape (nt,)."""

    def __init__(self, p: Parameters, x: AnyArray) -> None:
        alpha, beta, zeta = x.T
        f, e, sa, ca, sb, cb = p.f, p.e, np.sin(alpha), np.cos(alpha), np.sin(beta), np.cos(beta)
        self.k11, self.k12 = f * cb - e * sb, e * cb + f * sb
        self.k21, self.k22 = f * cb + e * sb, f * sb - e * cb
        self.k31, self.k32 = zeta * sa + f * ca, zeta * ca - f * sa
        self.k41, self.k42 = f * ca - zeta * sa, f * sa + zeta * ca
        self.g12, self.g22 = zeta - f * sb - e * cb, zeta + f * sb - e * cb
        self.g11, self.g21 = np.sqrt(p.l**2 - self.g12**2), np.sqrt(p.l**2 - self.g22**2)
        self.g31, self.g32 = zeta * ca - f * sa - p.d, p.l3 - f * ca - zeta * sa
        self.g41, self.g42 = zeta * ca + f * sa - p.d, -p.l3 + f * ca - zeta * sa
        self.g33, self.g43 = self.g31**2 + self.g32**2, self.g41**2 + self.g42**2
        self.k33, self.k34 = p.qc * self.g31 / np.sqrt(self.g33), p.qc * self.g32 / np.sqrt(self.g33)
        self.k43, self.k44 = p.qc * self.g41 / np.sqrt(self.g43), p.qc * self.g42 / np.sqrt(self.g43)


def _axes(p: Parameters, x: Array) -> Array:
    """Rotations of the bodies from the directions of their axes, shape (nt, 7, 3, 3)."""
    s, (alpha, beta, _) = _Shorthand(p, x), x.T
    nt, zero = len(x), np.zeros(len(x))
    X = np.broadcast_to([1.0, 0.0, 0.0], (nt, 3))
    V = np.stack([zero, np.cos(alpha), np.sin(alpha)], axis=1)
    up = np.cross(X, V)
    W = np.sin(beta)[:, None] * X + np.cos(beta)[:, None] * up
    along1, along2 = (
        (sign * g[:, None] * X + h[:, None] * up) / p.l for sign, g, h in ((1, s.g11, s.g12), (-1, s.g21, s.g22))
    )
    rods = (
        np.stack([zero, b, a], axis=1) / np.sqrt(g)[:, None]
        for a, b, g in ((s.g31, s.g32, s.g33), (s.g41, s.g42, s.g43))
    )
    still = np.broadcast_to(np.eye(3), (nt, 3, 3))
    turned = [np.stack([np.cross(V, z), V, z], axis=2) for z in (along1, along2)]
    turned += [np.stack([X, y, np.cross(X, y)], axis=2) for y in rods]
    return np.stack([still, still, *turned, np.stack([np.cross(V, W), V, W], axis=2)], axis=1)
