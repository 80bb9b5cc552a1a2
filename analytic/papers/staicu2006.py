"""Staicu, Li, Liu, Wang and Wang 2006: inverse dynamics of the 2T1R by recursive matrices, equations (1) to (18).

Frames as in the paper's figure 2: a matrix a_{k,k−1} turns components in T_{k−1} into components in T_k. Legs A and B
are bodies 1 (slider) and 2 (leg). Leg C is 1 (slider), 2 (transmission bar), 3 and 6 (bars of the parallelogram),
4 (closing bar) and 5 (platform). All arrays of components have shape (nt, 3), all matrices (nt, 3, 3).
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.papers import AS_CORRECTED, read_errata, want_known, want_plain
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import LoopClosureError, NotRepresentableError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

ERRATA = read_errata(__file__)

A1 = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
A2 = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
A3 = np.diag([-1.0, -1.0, 1.0])
A4 = np.array([[0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
A5 = np.diag([-1.0, 1.0, -1.0])
A6 = np.array([[0.0, 0.0, -1.0], [0.0, -1.0, 0.0], [-1.0, 0.0, 0.0]])
"""The constant matrices a1 to a6 of (2)."""
U1, U2, U3 = np.eye(3)
U3_TILDE = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
ROUND_OFF = 1e-13
"""Largest distance of the sliders of a solved pose from the prescribed values [m]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """Lengths [m], masses [kg] and inertia tensors about the joints [kg m²] of the last section."""

    r: float
    R: float
    L: float
    b: float
    """Half of the width of the parallelogram."""
    m: Array
    """Masses of slider, leg or bar, and platform, shape (3,)."""
    J2: Array
    """Tensor of a leg about its upper joint, x axis along it, shape (3, 3)."""
    J3: Array
    """Tensor of the platform about C5 in the axes of T5, shape (3, 3)."""
    cL: float
    """Distance of the mass centre of a leg or bar from its upper joint."""
    cP: float
    """Distance of the mass centre of the platform from C5, towards P."""

    @property
    def h(self) -> float:
        """Height of the sliders over P in the first position (7) [m]."""
        return float(np.sqrt(self.L**2 - (self.R - self.r) ** 2))

    @property
    def alpha(self) -> float:
        """Inclination α of the legs in the first position (7) [rad]."""
        return float(np.arcsin((self.R - self.r) / self.L))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """First or second rates of the relative coordinates, or a virtual motion; each of shape (nt,)."""

    v: Mapping[str, Array]
    """Of the sliders A, B, C [m/s or m/s²]."""
    w21: Mapping[str, Array]
    """Of body 2 of each leg about its slider [rad/s or rad/s²]."""
    w32: Array
    """Of the bars about the transmission bar."""
    w54: Array
    """Of the platform about the closing bar."""
    platform: Array
    """Of y, z and θ, shape (nt, 3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Absolute motion of a body, in its frame, by the recursions (8) to (13)."""

    R: Array
    """Matrix from T0 to the frame of the body, a_k0."""
    w: Array
    """Angular velocity [rad/s]."""
    e: Array
    """Angular acceleration [rad/s²]."""
    g: Array
    """Acceleration of its joint [m/s²]."""


def parameters(mechanism: Mechanism) -> Parameters:
    """The paper's parameters of the model.

    Raises:
        NotRepresentableError: If a body is missing, or the model has an element that the paper's model lacks.
    """
    bodies = {body.name: body for body in mechanism.bodies}
    for name in ("sliderA", "sliderB", "sliderC", "legA", "legB", "bar3", "bar6", "platform"):
        if name not in bodies:
            raise NotRepresentableError(f"analytic/paper: the 2T1R of the paper must have a body '{name}'")
    leg, platform = bodies["legA"], bodies["platform"]
    want_plain(mechanism)
    arm, offset = leg.center, platform.center
    leg_axes = np.array([-U3, U1, -U2])  # x2 along the leg, z2 the hinge X of leg A, as rows in body axes
    about_joint = leg.inertia + leg.mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    about_C5 = platform.inertia + platform.mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
    axes5 = np.array([U1, -U3, U2])
    return Parameters(
        r=float(mechanism.site("P").position[0]),
        R=-float(bodies["sliderC"].position[0]),
        L=-float(mechanism.site("legA_end").position[2]),
        b=float(bodies["bar3"].position[1]),
        m=np.array([bodies["sliderA"].mass, leg.mass, platform.mass]),
        J2=leg_axes @ about_joint @ leg_axes.T,
        J3=axes5 @ about_C5 @ axes5.T,
        cL=-float(arm[2]),
        cP=float(offset[0]),
    )


def efforts(case: Case, motion: Motion, printed: Set[str] = AS_CORRECTED) -> Array:
    """Forces of the three sliders by equations (6) to (18).

    Args:
        case: The 2T1R in a configuration.
        motion: The prescribed motion; only that of the sliders is used.
        printed: Keys of errata that are left as printed.

    Returns:
        Efforts [N], shape (nt, 3).

    Raises:
        NotFoundError: If an erratum is unknown.
        LoopClosureError: If no pose of the platform has the prescribed displacements of the sliders.
    """
    want_known(printed, ERRATA)
    p, drive = parameters(case.mechanism), motion.law(motion.t)
    x = platform_coordinates(p, drive.q)
    rotations = frames(p, x)
    rates = relative_velocities(p, rotations, _given(drive.qd))
    accelerations = relative_accelerations(p, rotations, rates, _given(drive.qdd))
    if printed:  # the paper prescribes the platform, and finds the rest by the equations as printed
        rates = inverse_velocities(p, rotations, rates.platform, printed)
        accelerations = inverse_accelerations(p, rotations, rates, accelerations.platform, printed)
    links = body_motions(p, rotations, rates, accelerations, printed)
    forces = resultants(p, links, case.mechanism.gravity)
    columns = []
    for own in "ABC":
        unit = {leg: np.full(len(x), float(leg == own)) for leg in "ABC"}
        virtual = relative_velocities(p, rotations, unit, printed)
        columns.append(actuator_force(own, forces, virtual))
    return np.stack(columns, axis=1)


def platform_coordinates(p: Parameters, sliders: Array) -> Array:
    """y, z and θ of the platform from the displacements of the sliders, by Newton's method on (6).

    Args:
        sliders: Displacements λ of A, B, C [m], shape (nt, 3).

    Returns:
        y, z [m] and θ [rad], shape (nt, 3).

    Raises:
        LoopClosureError: If Newton's method does not converge.
    """
    x, coordinates = np.zeros(3), np.zeros_like(sliders)
    for k, displacements in enumerate(sliders):
        for _ in range(30):
            value, slope = slider_displacements(p, x)
            if np.abs(value - displacements).max() < ROUND_OFF / 100:
                break
            x = x - np.linalg.solve(slope, value - displacements)
        residual = float(np.abs(slider_displacements(p, x)[0] - displacements).max())
        if not residual < ROUND_OFF:
            raise LoopClosureError(
                f"analytic/paper: equations (6) have no solution near sample {k}: residual {residual:.3g}",
                residual=residual,
                tolerance=ROUND_OFF,
                time=float("nan"),
            )
        coordinates[k] = x
    return coordinates


def slider_displacements(p: Parameters, x: Array) -> tuple[Array, Array]:
    """Displacements of the sliders by (6), and their derivatives.

    Args:
        x: y, z [m] and θ [rad], shape (3,).

    Returns:
        λ of A, B, C [m], shape (3,), and their derivatives with respect to y, z, θ [-, m/rad], shape (3, 3).
    """
    y, z, theta = x
    a, b, across = y + p.R - p.r, p.R - p.r - y, p.R - p.r * np.cos(theta)
    down = np.sqrt(p.L**2 - np.array([a**2, b**2, y**2 + across**2]))
    value = z - p.h + down + np.array([0, 0, p.r * np.sin(theta)])
    turn = p.r * np.cos(theta) - across * p.r * np.sin(theta) / down[2]
    return value, np.array([[-a / down[0], 1, 0], [b / down[1], 1, 0], [-y / down[2], 1, turn]])


def frames(p: Parameters, x: Array) -> Mapping[str, Array]:
    """The matrices (1) by name, with the angles that solve (6).

    Args:
        x: y, z [m] and θ [rad], shape (nt, 3).
    """
    y, _, theta = x.T
    side = p.R - p.r
    phi32 = np.arcsin(y / p.L)
    phi21 = {
        "A": np.arcsin((side + y) / p.L),
        "B": np.arcsin((side - y) / p.L),
        "C": np.arcsin((p.R - p.r * np.cos(theta)) / (p.L * np.cos(phi32))),
    }
    turned = {leg: _turn(angle - p.alpha) @ _turn(p.alpha) @ A4 for leg, angle in phi21.items()}
    c10, c21 = np.broadcast_to(A3, (len(x), 3, 3)), turned["C"]
    c32, c43, c62 = _turn(phi32) @ A4, _turn(phi32) @ A5, _turn(phi32) @ A4
    c54 = _turn(theta + phi21["C"] - p.alpha) @ _turn(p.alpha) @ A6
    c20 = c21 @ c10
    c30 = c32 @ c20
    return {
        "A10": np.broadcast_to(A1, c10.shape),
        "B10": np.broadcast_to(A2, c10.shape),
        "C10": c10,
        "A21": turned["A"],
        "B21": turned["B"],
        "C21": c21,
        "A20": turned["A"] @ A1,
        "B20": turned["B"] @ A2,
        "C20": c20,
        "C30": c30,
        "C50": c54 @ c43 @ c30,
        "C52": c54 @ c43 @ c32,
        "C32": c32,
        "C43": c43,
        "C54": c54,
        "C62": c62,
    }


def connectivity(
    p: Parameters, rotations: Mapping[str, Array], *, turn: bool = False, arm: bool = False
) -> tuple[Array, Array, Array]:
    """Factors of ω21 of legs A, B, C and of ω32 and ω54 of leg C in the connectivity conditions (14).

    Args:
        rotations: The matrices (1).
        turn: Whether the factor of ω21 of leg C is as printed.
        arm: Whether the factor of ω54 is as printed.

    Returns:
        Factors of ω21, shape (nt, 3 legs, 3), of ω32 and of ω54, shape (nt, 3) [m].
    """
    T = {name: matrix.swapaxes(1, 2) for name, matrix in rotations.items()}
    straight = [p.L * T[f"{leg}20"] @ U3_TILDE @ U1 for leg in "AB"]
    platform = T["C32"] @ U2 if turn else T["C52"] @ U1
    bent = -_apply(T["C20"] @ U3_TILDE, p.L * (T["C32"] @ U2) - p.r * platform)
    on_bars = -p.L * T["C30"] @ U3_TILDE @ U2
    on_platform = (p.L if arm else p.r) * T["C50"] @ U3_TILDE @ U1
    return np.stack([*straight, bent], axis=1), on_bars, on_platform


def relative_velocities(
    p: Parameters, rotations: Mapping[str, Array], sliders: Mapping[str, Array], printed: Set[str] = AS_CORRECTED
) -> Rates:
    """Relative velocities and platform velocities from the velocities of the sliders, by (14).

    With unit velocities of the sliders these are the characteristic virtual velocities.

    Args:
        rotations: The matrices (1).
        sliders: Velocities of A, B, C [m/s].
        printed: Keys of errata that are left as printed.
    """
    return _from_sliders(_factors_of_velocities(p, rotations, printed), sliders, {})


def relative_accelerations(
    p: Parameters, rotations: Mapping[str, Array], rates: Rates, sliders: Mapping[str, Array]
) -> Rates:
    """Relative accelerations and platform accelerations from the accelerations of the sliders, by (15).

    Args:
        rotations: The matrices (1).
        rates: The relative velocities.
        sliders: Accelerations of A, B, C [m/s²].
    """
    return _from_sliders(connectivity(p, rotations), sliders, velocity_terms(p, rotations, rates))


def velocity_terms(
    p: Parameters, rotations: Mapping[str, Array], rates: Rates, printed: Set[str] = AS_CORRECTED
) -> Mapping[str, Array]:
    """Part of the platform's acceleration on the right of (15), by leg [m/s²].

    Args:
        rotations: The matrices (1).
        rates: The relative velocities.
        printed: Keys of errata that are left as printed.
    """
    T = {name: matrix.swapaxes(1, 2) for name, matrix in rotations.items()}
    twice = U3_TILDE @ U3_TILDE
    terms = {leg: -((p.L * rates.w21[leg] ** 2)[:, None] * (T[f"{leg}20"] @ twice @ U1)) for leg in "AB"}
    w21, w32, w54 = (w[:, None] for w in (rates.w21["C"], rates.w32, rates.w54))
    along = p.L * (T["C32"] @ U2) - p.r * (T["C52"] @ U1)
    if "mixed_terms" in printed:
        bars, platform = T["C20"] @ U3_TILDE @ U2, _apply(T["C20"] @ U3_TILDE, T["C52"] @ U1)
    else:
        bars = _apply(T["C20"] @ U3_TILDE, T["C32"] @ U3_TILDE @ U2)
        platform = _apply(T["C20"] @ U3_TILDE, T["C52"] @ U3_TILDE @ U1)
    terms["C"] = (
        w21**2 * _apply(T["C20"] @ twice, along)
        + w32**2 * p.L * (T["C30"] @ twice @ U2)
        - w54**2 * p.r * (T["C50"] @ twice @ U1)
        + 2 * w21 * w32 * p.L * bars
        - 2 * w21 * w54 * p.r * platform
    )
    return terms


def inverse_velocities(p: Parameters, rotations: Mapping[str, Array], platform: Array, printed: Set[str]) -> Rates:
    """All relative velocities from the velocities of the platform, by (14) with errata as printed.

    Args:
        rotations: The matrices (1).
        platform: Rates of y, z, θ [m/s, m/s, rad/s], shape (nt, 3).
        printed: Keys of errata that are left as printed.
    """
    return _from_platform(_factors_of_velocities(p, rotations, printed), platform, {})


def inverse_accelerations(
    p: Parameters, rotations: Mapping[str, Array], rates: Rates, platform: Array, printed: Set[str]
) -> Rates:
    """All relative accelerations from the accelerations of the platform, by (15) with errata as printed.

    Args:
        rotations: The matrices (1).
        rates: The relative velocities.
        platform: Second rates of y, z, θ [m/s², m/s², rad/s²], shape (nt, 3).
        printed: Keys of errata that are left as printed.
    """
    factors = connectivity(p, rotations, turn="acceleration_turn" in printed, arm="acceleration_arm" in printed)
    return _from_platform(factors, platform, velocity_terms(p, rotations, rates, printed))


def body_motions(
    p: Parameters, rotations: Mapping[str, Array], rates: Rates, accelerations: Rates, printed: Set[str] = AS_CORRECTED
) -> Mapping[str, Link]:
    """Angular velocities and accelerations of all bodies and accelerations of their joints, by (8) to (13).

    Args:
        rotations: The matrices (1).
        printed: Keys of errata that are left as printed.
    """
    still = np.zeros_like(rates.platform)
    links = {}
    for leg in "ABC":
        slider = Link(R=rotations[f"{leg}10"], w=still, e=still, g=accelerations.v[leg][:, None] * U3)
        links[f"{leg}1"] = slider
        # (8) and (9) hold as printed for the first hinge of every leg: its slider does not turn
        links[f"{leg}2"] = _next(slider, rotations[f"{leg}21"], (rates.w21[leg], accelerations.w21[leg]), np.zeros(3))
    chain = (
        ("C3", "C2", "C32", (rates.w32, accelerations.w32), -p.b * U3),
        ("C6", "C2", "C62", (rates.w32, accelerations.w32), p.b * U3),
        ("C4", "C3", "C43", (rates.w32, accelerations.w32), -p.L * U2),
        ("C5", "C4", "C54", (rates.w54, accelerations.w54), p.b * U1),
    )
    for name, before, matrix, joint, arm in chain:
        links[name] = _next(links[before], rotations[matrix], joint, arm, printed)
    return links


def resultants(p: Parameters, links: Mapping[str, Link], gravity: Array) -> Mapping[str, tuple[Array, Array]]:
    """F_k and M_k of (18): forces and moments of inertia less weight of each body and all that follow it.

    Args:
        links: Motion of the bodies.
        gravity: Acceleration of gravity, axes of T0 [m/s²], shape (3,).
    """
    bar_axes = np.array([U3, -U1, -U2])  # T3 from T2 at φ32 = 0, up to signs: y3 along the bar
    J_bar = bar_axes @ p.J2 @ bar_axes.T
    slider, leg, platform = p.m
    own = {f"{name}1": (slider, np.zeros(3), np.zeros((3, 3))) for name in "ABC"}
    own |= {f"{name}2": (leg, p.cL * U1, p.J2) for name in "AB"}
    own |= {"C2": (0.0, np.zeros(3), np.zeros((3, 3))), "C4": (0.0, np.zeros(3), np.zeros((3, 3)))}
    own |= dict.fromkeys(("C3", "C6"), (leg, -p.cL * U2, J_bar))
    own["C5"] = (platform, p.cP * U1, p.J3)
    forces: dict[str, tuple[Array, Array]] = {}
    following = {
        "A1": [("A2", np.zeros(3))],
        "B1": [("B2", np.zeros(3))],
        "C1": [("C2", np.zeros(3))],
        "C2": [("C3", -p.b * U3), ("C6", p.b * U3)],
        "C3": [("C4", -p.L * U2)],
        "C4": [("C5", p.b * U1)],
    }
    for name in ("A2", "A1", "B2", "B1", "C5", "C4", "C3", "C6", "C2", "C1"):
        link, (mass, center, J) = links[name], own[name]
        weight = mass * link.R @ gravity
        acceleration = link.g + np.cross(link.w, np.cross(link.w, center)) + np.cross(link.e, center)
        F = mass * acceleration - weight
        M = mass * np.cross(center, link.g) + link.e @ J + np.cross(link.w, link.w @ J) - np.cross(center, weight)
        for other, arm in following.get(name, []):
            back = link.R @ links[other].R.swapaxes(1, 2)
            F_next = _apply(back, forces[other][0])
            F, M = F + F_next, M + _apply(back, forces[other][1]) + np.cross(arm, F_next)
        forces[name] = F, M
    return forces


def actuator_force(own: str, forces: Mapping[str, tuple[Array, Array]], virtual: Rates) -> Array:
    """Force of the slider A, B or C by the virtual powers (17) [N], shape (nt,)."""
    power = forces[f"{own}1"][0][:, 2].copy()
    for leg in "ABC":
        power += virtual.w21[leg] * forces[f"{leg}2"][1][:, 2]
    for body, w in (("C3", virtual.w32), ("C4", virtual.w32), ("C5", virtual.w54), ("C6", virtual.w32)):
        power += w * forces[body][1][:, 2]
    return power


def _next(before: Link, c: Array, joint: tuple[Array, Array], arm: Array, printed: Set[str] = AS_CORRECTED) -> Link:
    """Motion of the next body by (11) to (13)."""
    rate, acceleration = joint[0][:, None] * U3, joint[1][:, None] * U3
    turned = _apply(c, before.w)
    base = acceleration if "epsilon_base" in printed else before.e
    carried = np.cross(before.w, np.cross(before.w, arm)) + np.cross(before.e, arm)
    if "gamma_base" not in printed:
        carried = carried + before.g
    return Link(
        R=c @ before.R,
        w=turned + rate,
        e=_apply(c, base) + acceleration + np.cross(turned, rate),
        g=_apply(c, carried),
    )


def _factors_of_velocities(
    p: Parameters, rotations: Mapping[str, Array], printed: Set[str]
) -> tuple[Array, Array, Array]:
    return connectivity(p, rotations, turn="velocity_turn" in printed, arm="velocity_arm" in printed)


def _from_sliders(
    factors: tuple[Array, Array, Array], sliders: Mapping[str, Array], right: Mapping[str, Array]
) -> Rates:
    """Solve (14) or (15) for ω21 of three legs, ω32, and the rates of y, z, θ, with ω54 = ω21 + θ̇."""
    w21, w32, w54 = factors
    nt = len(w32)
    A, b = np.zeros((nt, 7, 7)), np.zeros((nt, 7))
    for row, leg, axes in ((0, "A", slice(1, 3)), (2, "B", slice(1, 3)), (4, "C", slice(0, 3))):
        k, rows = "ABC".index(leg), slice(row, row + axes.stop - axes.start)
        A[:, rows, k] = w21[:, k, axes]
        A[:, rows, 4:6] = -np.eye(3)[axes, 1:]  # the platform's velocity, to the left
        b[:, rows] = -(sliders[leg][:, None] * U3)[:, axes] + (right[leg][:, axes] if right else 0.0)
    A[:, 4:, 2] += w54
    A[:, 4:, 3], A[:, 4:, 6] = w32, w54
    x = np.asarray(np.linalg.solve(A, b[..., None])[..., 0], dtype=np.float64)
    return Rates(
        v=dict(sliders),
        w21={leg: x[:, k] for k, leg in enumerate("ABC")},
        w32=x[:, 3],
        w54=x[:, 2] + x[:, 6],
        platform=x[:, 4:],
    )


def _from_platform(factors: tuple[Array, Array, Array], platform: Array, right: Mapping[str, Array]) -> Rates:
    """Solve (14) or (15) for the rates of the sliders, ω21 and ω32."""
    w21, w32, w54 = factors
    moving = np.concatenate([np.zeros((len(platform), 1)), platform[:, :2]], axis=1)
    v, turning = {}, {}
    for k, leg in enumerate("AB"):
        A = np.stack([np.broadcast_to(U3[1:], (len(platform), 2)), w21[:, k, 1:]], axis=2)
        b = moving[:, 1:] + (right[leg][:, 1:] if right else 0.0)
        v[leg], turning[leg] = np.linalg.solve(A, b[..., None])[..., 0].T
    A = np.stack([np.broadcast_to(U3, w32.shape), w21[:, 2] + w54, w32], axis=2)
    b = moving + (right["C"] if right else 0.0) - w54 * platform[:, 2:]
    v["C"], turning["C"], bars = np.linalg.solve(A, b[..., None])[..., 0].T
    return Rates(v=v, w21=turning, w32=bars, w54=turning["C"] + platform[:, 2], platform=platform)


def _turn(angle: Array | float) -> Array:
    """a^φ of (2): components in a frame turned by an angle about its z axis, shape (nt, 3, 3) or (3, 3)."""
    c, s = np.cos(angle), np.sin(angle)
    matrix = np.zeros((*np.shape(angle), 3, 3))
    matrix[..., 0, 0], matrix[..., 0, 1], matrix[..., 1, 0], matrix[..., 1, 1] = c, s, -s, c
    matrix[..., 2, 2] = 1
    return matrix


def _given(values: Array) -> Mapping[str, Array]:
    return dict(zip("ABC", values.T, strict=True))


def _apply(matrix: Array, vector: Array) -> Array:
    return (matrix @ vector[..., None])[..., 0]
