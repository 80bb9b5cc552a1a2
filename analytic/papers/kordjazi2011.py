"""Kordjazi and Akbarzadeh 2011: inverse dynamics of the planar 3-PRR, equations (23) to (35) in their notation.

Nine joint coordinates q1 … q9, numbered as in the paper's figure 3: sliders q1 q2 q3 from their corners, slider-link
hinges q4 q5 q6, link-platform hinges q7 q8 q9, all relative. Bodies 1 2 3 are the sliders, 4 5 6 the links, 7 the
platform. Planar vectors are complex numbers x + iy in the equations of the loops, three-vectors in those of the twists.
"""

from collections.abc import Set
from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.papers import AS_CORRECTED, read_errata, want_known, want_plain
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.errors import LoopClosureError, NotRepresentableError
from loopcheck.robots.mechanism import Body, ConnectClosure, Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

ERRATA = read_errata(__file__)

CORNERS = 2 * np.pi / 3 * np.arange(3)
"""Directions of the guides, e_i = (cos, sin) of these (33) [rad]."""
Z = np.array([0.0, 0.0, 1.0])
ROUND_OFF = 1e-13
"""Largest residual of the loop equations [m or rad]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Lengths [m], masses [kg] and moments of inertia [kg m²] of Table 1 and equation (36)."""

    l1: float
    """Length of a link."""
    l2: float
    """Distance of the platform's joints from P."""
    l3: float
    """Side of the base triangle."""
    lc: float
    """Distance of a link's mass centre from its slider."""
    m: Array
    """Masses of bodies 1 to 7, shape (7,)."""
    I: Array
    """Moments of inertia about Z of bodies 1 to 7, shape (7,)."""


def parameters(mechanism: Mechanism) -> Parameters:
    """The paper's parameters of the model, which must have the paper's bodies and symmetry.

    Raises:
        NotRepresentableError: If a body is missing, the legs differ, a mass centre is off its line, or a joint has an
            element
            that the paper's model lacks.
    """
    bodies = {body.name: body for body in mechanism.bodies}
    required = [*(f"slider{i}" for i in (1, 2, 3)), *(f"link{i}" for i in (1, 2, 3)), "platform"]
    missing = [name for name in required if name not in bodies]
    if missing:
        raise NotRepresentableError(f"analytic/paper: the 3-PRR of the paper must have a body '{missing[0]}'")
    ordered = [bodies[name] for name in required]
    P = mechanism.site("P")
    own = Parameters(
        l1=float(bodies["platform"].position[0]),
        l2=float(P.position[0]),
        l3=float(np.linalg.norm(bodies["slider2"].position - bodies["slider1"].position)),
        lc=float(bodies["link1"].center[0]),
        m=np.array([body.mass for body in ordered]),
        I=np.array([body.inertia[2, 2] for body in ordered]),
    )
    _want_paper_geometry(mechanism, ordered, own)
    return own


def _want_paper_geometry(mechanism: Mechanism, ordered: list[Body], own: Parameters) -> None:
    corners = own.l3 * np.array([0, 1, np.exp(1j * np.pi / 3)])
    on_platform = own.l2 * (1 - np.exp(1j * CORNERS))  # joints 7, 8, 9 from joint 7, x towards P
    loops = {closure.name: closure for closure in mechanism.closures if isinstance(closure, ConnectClosure)}
    if set(loops) != {"q8", "q9"}:
        raise NotRepresentableError("analytic/paper: the 3-PRR of the paper must have the closures 'q8' and 'q9'")
    pairs = [
        *(("corner", _planar(body.position), corner) for body, corner in zip(ordered[:3], corners, strict=True)),
        *(("mass centre of a slider", _planar(body.center), 0) for body in ordered[:3]),
        *(("mass centre of a link", _planar(body.center), own.lc) for body in ordered[3:6]),
        ("mass centre of the platform", _planar(ordered[6].center), own.l2),
        *((f"platform point of {n}", _planar(loops[n].point1), on_platform[k]) for k, n in ((1, "q8"), (2, "q9"))),
        *((f"link point of {n}", _planar(loops[n].point2), own.l1) for n in ("q8", "q9")),
    ]
    for what, got, required in pairs:
        if abs(got - required) > ROUND_OFF:
            raise NotRepresentableError(f"analytic/paper: {what} must be {required:g} m as in the paper, got {got:g} m")
    want_plain(mechanism)


def efforts(case: Case, motion: Motion, printed: Set[str] = AS_CORRECTED) -> Array:
    """Forces of the three sliders by equations (12) to (20) with (23) to (35).

    Args:
        case: The 3-PRR in a variant, mode and configuration.
        motion: The prescribed motion; only that of the sliders is used.
        printed: Keys of errata that are left as printed.

    Returns:
        Efforts [N], shape (nt, 3).

    Raises:
        NotFoundError: If an erratum is unknown.
        LoopClosureError: If the paper's loop equations have no solution near the guess.
    """
    want_known(printed, ERRATA)
    p = parameters(case.mechanism)
    drive = motion.law(motion.t)
    q = joint_coordinates(p, drive.q, _guess(case), printed)
    Phi_a, Phi_u = np.split(loop_jacobian(p, q, printed), [3], axis=2)
    L = np.concatenate([np.broadcast_to(np.eye(3), (len(q), 3, 3)), -np.linalg.solve(Phi_u, Phi_a)], axis=1)  # (9)
    qd = (L @ drive.qd[..., None])[..., 0]  # (8)
    L_dot = np.zeros_like(L)
    L_dot[:, 3:] = -np.linalg.solve(Phi_u, loop_jacobian_rate(p, q, qd, printed) @ L)
    K, K_dot, w = twist_matrix(p, q, qd, printed)
    T, T_dot = K @ L, K_dot @ L + K @ L_dot  # (11)
    inertia = p.I * (1e-6 if "inertia_unit" in printed else 1.0)
    M_total = np.concatenate(
        [np.concatenate([np.full(3, I), np.full(3, m)]) for I, m in zip(inertia, p.m, strict=True)]
    )
    weight = np.concatenate([np.concatenate([np.zeros(3), m * case.mechanism.gravity]) for m in p.m])  # (20)
    T_T = T.swapaxes(1, 2)
    M = T_T @ (M_total[:, None] * T)  # (13)
    C = T_T @ (M_total[:, None] * T_dot) + T_T @ _omega_times(w, M_total[:, None] * T)  # (14)
    G = -T_T @ weight  # (15)
    return (M @ drive.qdd[..., None] + C @ drive.qd[..., None])[..., 0] + G  # (12)


def positions_of_P(p: Parameters, q: AnyArray, printed: Set[str] = AS_CORRECTED) -> AnyArray:
    """The three vectors Q1, Q2, Q3 to the platform's centre along the legs, by the transforms (23) to (27).

    Args:
        q: Joint coordinates [m or rad], shape (nt, 9).
        printed: Keys of errata that are left as printed.

    Returns:
        Q1, Q2, Q3 as complex numbers [m], shape (nt, 3).
    """
    A, e = p.l3 * np.array([0, 1, np.exp(1j * np.pi / 3)]), np.exp(1j * CORNERS)
    link = p.l1 * np.exp(1j * q[:, 3:6])
    turned = np.exp(1j * q[:, 3:6])
    if "link_frames" in printed:
        link[:, 1:], turned[:, 1:] = 0, 1
    return A + e * (q[:, :3] + link + turned * p.l2 * np.exp(1j * q[:, 6:]))


def loop_equations(p: Parameters, q: Array, printed: Set[str] = AS_CORRECTED) -> Array:
    """The six constraint functions φ of (29) and (35).

    Args:
        q: Joint coordinates [m or rad], shape (nt, 9).
        printed: Keys of errata that are left as printed.

    Returns:
        φ1 … φ6 [m, m, m, m, rad, rad], shape (nt, 6).
    """
    q1, q2, q3, q4, q5, q6, q7, q8, q9 = q.T
    s3, c, s, l1, l2, l3 = np.sqrt(3) / 2, np.cos, np.sin, p.l1, p.l2, p.l3
    x1, y1 = l2 * c(q4 + q7) + l1 * c(q4), l2 * s(q4 + q7) + l1 * s(q4)
    x2, y2 = l2 * c(q8 + q5) + l1 * c(q5), l2 * s(q8 + q5) + l1 * s(q5)
    x3, y3 = l2 * c(q9 + q6) + l1 * c(q6), l2 * s(q9 + q6) + l1 * s(q6)
    phi = np.stack(
        [
            x1 + q1 + x2 / 2 + s3 * y2 + q2 / 2 - l3,
            y1 + y2 / 2 - s3 * x2 - s3 * q2,
            x1 + q1 + x3 / 2 - s3 * y3 + q3 / 2 - l3 / 2,
            y1 + y3 / 2 + s3 * q3 + s3 * x3 - s3 * l3,
            np.remainder(q4 + q7 - q8 - q5 + np.pi, 2 * np.pi) - np.pi,
            np.remainder(q8 + q5 - q9 - q6 + np.pi, 2 * np.pi) - np.pi,
        ],
        axis=1,
    )
    return _loop_pairs(phi, printed)


def loop_jacobian(p: Parameters, q: Array, printed: Set[str] = AS_CORRECTED) -> Array:
    """Derivative Φ of the constraint functions (3).

    Args:
        q: Joint coordinates [m or rad], shape (nt, 9).
        printed: Keys of errata that are left as printed.

    Returns:
        Φ [m/rad or m/m], shape (nt, 6, 9).
    """
    outer = 1j * p.l2 * np.exp(1j * (q[:, 3:6] + q[:, 6:]))  # derivative of each leg along its platform hinge
    inner = outer + 1j * p.l1 * np.exp(1j * q[:, 3:6])  # … and along its link hinge
    return _loop_pairs(_loop_rows(inner, outer, slides=1.0), printed)


def loop_jacobian_rate(p: Parameters, q: Array, qd: Array, printed: Set[str] = AS_CORRECTED) -> Array:
    """Time derivative of Φ.

    Args:
        q: Joint coordinates [m or rad], shape (nt, 9).
        qd: Their rates [m/s or rad/s], shape (nt, 9).
        printed: Keys of errata that are left as printed.

    Returns:
        Rate of Φ [m/rad/s or 1/s], shape (nt, 6, 9).
    """
    outer = -p.l2 * np.exp(1j * (q[:, 3:6] + q[:, 6:])) * (qd[:, 3:6] + qd[:, 6:])
    inner = outer - p.l1 * np.exp(1j * q[:, 3:6]) * qd[:, 3:6]
    return _loop_pairs(_loop_rows(inner, outer, slides=0.0), printed)


def joint_coordinates(p: Parameters, sliders: Array, guess: Array, printed: Set[str] = AS_CORRECTED) -> Array:
    """Solve the six constraint equations for q4 … q9 by Newton's method, each sample from its predecessor.

    Args:
        sliders: Positions of the sliders q1, q2, q3 [m], shape (nt, 3).
        guess: Joint coordinates near the first sample [m or rad], shape (9,).
        printed: Keys of errata that are left as printed.

    Returns:
        Joint coordinates [m or rad], shape (nt, 9).

    Raises:
        LoopClosureError: If Newton's method does not converge.
    """
    q, solution = guess[None].copy(), np.zeros((len(sliders), 9))
    for k, actuated in enumerate(sliders):
        q[0, :3] = actuated
        for _ in range(50):
            phi = loop_equations(p, q, printed)
            if np.abs(phi).max() < ROUND_OFF / 100:
                break
            q[0, 3:] -= np.linalg.solve(loop_jacobian(p, q, printed)[0, :, 3:], phi[0])
        residual = float(np.abs(loop_equations(p, q, printed)).max())
        if not residual < ROUND_OFF:
            raise LoopClosureError(
                f"analytic/paper: equations (29), (35) have no solution near sample {k}: residual {residual:.3g}",
                residual=residual,
                tolerance=ROUND_OFF,
                time=float("nan"),
            )
        solution[k] = q[0]
    return solution


def twist_matrix(p: Parameters, q: Array, qd: Array, printed: Set[str] = AS_CORRECTED) -> tuple[Array, Array, Array]:
    """K of (30) to (34) with its rate, and the angular velocities that make Ω (19).

    Args:
        q: Joint coordinates [m or rad], shape (nt, 9).
        qd: Their rates [m/s or rad/s], shape (nt, 9).
        printed: Keys of errata that are left as printed.

    Returns:
        K and its rate, shape (nt, 42, 9), and the angular velocities [rad/s], shape (nt, 7, 3).
    """
    nt = len(q)
    K, K_dot = np.zeros((nt, 7, 6, 9)), np.zeros((nt, 7, 6, 9))
    along = np.zeros(3) if "v1" in printed else CORNERS
    for i in range(3):
        K[:, i, 3:, i] = _vector(np.exp(1j * along[i]))  # slider
        K[:, 3 + i, 3:, i] = _vector(np.exp(1j * CORNERS[i]))
        K[:, 3 + i, 2, 3 + i] = 1
        r_ii = p.lc * np.exp(1j * (CORNERS[i] + q[:, 3 + i]))  # slider joint to the link's mass centre
        K[:, 3 + i, 3:, 3 + i], K_dot[:, 3 + i, 3:, 3 + i] = _vector(1j * r_ii), _vector(-r_ii * qd[:, [3 + i]].T[0])
    r_7t = p.l2 * np.exp(1j * (q[:, 3] + q[:, 6]))
    r_47 = p.l1 * np.exp(1j * q[:, 3]) + (0 if "r47" in printed else r_7t)
    r_7t_dot = 1j * r_7t * (qd[:, 3] + qd[:, 6])
    r_47_dot = 1j * p.l1 * np.exp(1j * q[:, 3]) * qd[:, 3] + (0 if "r47" in printed else r_7t_dot)
    K[:, 6, 3:, 0] = _vector(np.array(1.0 + 0j))
    K[:, 6, 3:, 3], K_dot[:, 6, 3:, 3] = _vector(1j * r_47), _vector(1j * r_47_dot)
    K[:, 6, 3:, 6], K_dot[:, 6, 3:, 6] = _vector(1j * r_7t), _vector(1j * r_7t_dot)
    K[:, 6, 2, 3], K[:, 6, 2, 6] = 0 if "omega7" in printed else 1, 1
    w = np.einsum("tbij,tj->tbi", K[:, :, :3], qd)
    return K.reshape(nt, 42, 9), K_dot.reshape(nt, 42, 9), w


def _loop_rows(inner: AnyArray, outer: AnyArray, *, slides: float) -> Array:
    """Rows of Φ or of its rate from the derivatives of the legs along their hinges, each (nt, 3)."""
    e = np.exp(1j * CORNERS)
    rows = np.zeros((len(inner), 6, 9))
    for pair, leg in ((0, 1), (2, 2)):  # φ1, φ2 are Q1 − Q2; φ3, φ4 are Q1 − Q3
        for sign, i in ((1, 0), (-1, leg)):
            for column, derivative in ((i, slides), (3 + i, inner[:, i]), (6 + i, outer[:, i])):
                value = sign * e[i] * derivative
                rows[:, pair, column], rows[:, pair + 1, column] = value.real, value.imag
    rows[:, 4, [3, 6]], rows[:, 4, [7, 4]] = slides, -slides
    rows[:, 5, [7, 4]], rows[:, 5, [8, 5]] = slides, -slides
    return rows


def _loop_pairs(rows: Array, printed: Set[str]) -> Array:
    """Rows of (29), or rows of the pair that (28) prints: Q2 − Q3 = (Q1 − Q3) − (Q1 − Q2)."""
    if "loop_pair" in printed:
        rows[:, 2:4] -= rows[:, 0:2]
    return rows


def _omega_times(w: Array, X: Array) -> Array:
    """Ω X (18), (19) for X of shape (nt, 42, n)."""
    blocks = X.reshape(len(X), 7, 6, -1)
    turned = np.zeros_like(blocks)
    turned[:, :, :3] = np.cross(w[..., None], blocks[:, :, :3], axis=2)
    return turned.reshape(X.shape)


def _guess(case: Case) -> Array:
    """Joint coordinates near the start of the mode, shape (9,)."""
    joints = {joint.name: k for k, joint in enumerate(case.mechanism.joints)}
    q = np.zeros(9)
    for k in range(7):
        q[k] = case.guess[case.mechanism.q_slices[joints[f"q{k + 1}"]].start]
    alpha = q[3] + q[6]
    q[7], q[8] = alpha - q[4], alpha - q[5]
    return q


def _planar(vector: Array) -> complex:
    return complex(vector[0], vector[1])


def _vector(z: AnyArray) -> Array:
    """Three-vectors of planar vectors, shape (..., 3)."""
    return np.stack([z.real, z.imag, np.zeros_like(z.real)], axis=-1)
