"""How the spatial platform robots move, and their inverse kinematics in closed form: the actuated joints from the pose.

The poses are jets, so that a formula for the coordinate brings its velocity and acceleration along.
"""

from dataclasses import dataclass

import numpy as np

from analytic.jets import Jet, arccos, arcsin, arctan, cos, drive, sin, sqrt
from robots.arrays import Array
from robots.errors import MechanismError
from robots.mechanism import Mechanism
from robots.motion import Drive

LEGS = range(1, 7)


@dataclass(frozen=True, slots=True, kw_only=True)
class SixLegs:
    """Geometry of a platform on six legs: |S U| is the coordinate of a leg, or follows from its elbow's angle."""

    S: Array
    """Spherical joints of the legs, world [m], shape (6, 3)."""
    U: Array
    """Universal joints of the legs, platform frame [m], shape (6, 3)."""
    lengths: tuple[float, float] | None
    """Lower and upper link of a leg with an elbow [m]; None where the leg is prismatic."""


def six_legs(mechanism: Mechanism) -> SixLegs:
    """The geometry of a model whose legs hang from the platform, named as in `6spu` and `6x6r`.

    Raises:
        MechanismError: If a joint is missing.
        NotFoundError: If the site of a spherical joint is missing.
    """
    joints = {joint.name: joint for joint in mechanism.joints}
    for name in [*(f"u{k}b" for k in LEGS), *(f"leg{k}" for k in LEGS)]:
        if name not in joints:
            raise MechanismError(f"{mechanism.model.path}: a platform on six legs wants a joint '{name}'")
    hinges = [joints[f"u{k}b"] for k in LEGS]
    uppers = [mechanism.bodies[hinge.body] for hinge in hinges]
    elbow = joints["leg1"]
    lengths = None
    if elbow.kind == "hinge":
        lengths = float(np.linalg.norm(elbow.anchor)), float(np.linalg.norm(hinges[0].anchor))
    return SixLegs(
        S=np.array([mechanism.site(f"S{k}").position for k in LEGS]),
        U=np.array([body.position + body.rotation @ hinge.anchor for body, hinge in zip(uppers, hinges, strict=True)]),
        lengths=lengths,
    )


def swaying(sines: Array, t: Array) -> list[Jet]:
    """Pose of a platform each of whose coordinates is c + a sin(2πft + φ).

    Args:
        sines: Rows c, a, f, φ for px py pz φ θ ψ [m or rad, the same, Hz, rad], shape (6, 4).
        t: Time [s], shape (nt,).
    """
    time = Jet.of_time(t)
    return [sin(time * (2 * np.pi * f) + p) * a + c for c, a, f, p in sines]


def leg_coordinates(robot: SixLegs, pose: list[Jet]) -> Drive:
    """Coordinates of the six legs of a platform at (px, py, pz, φ, θ, ψ), R = Rz(ψ) Ry(θ) Rx(φ)."""
    position, R = pose[:3], _rotation(pose[3], pose[4], pose[5])
    S, U = robot.S.T[..., None], robot.U.T[..., None]  # a row a leg, a column a time
    arm = [p + sum((R[i][j] * U[j] for j in range(3)), start=p * 0.0) - S[i] for i, p in enumerate(position)]
    legs = arm[0] * arm[0] + arm[1] * arm[1] + arm[2] * arm[2]
    if robot.lengths is None:
        legs = sqrt(legs)
    else:
        a, b = robot.lengths
        legs = arccos((legs - (a**2 + b**2)) / (2 * a * b))
    return Drive(*(np.ascontiguousarray(part.T) for part in (legs.x, legs.d, legs.dd)))


def _rotation(phi: Jet, theta: Jet, psi: Jet) -> list[list[Jet]]:
    """Rz(ψ) Ry(θ) Rx(φ), row by row."""
    (s1, c1), (s2, c2), (s3, c3) = ((sin(angle), cos(angle)) for angle in (phi, theta, psi))
    return [
        [c3 * c2, c3 * s2 * s1 - s3 * c1, c3 * s2 * c1 + s3 * s1],
        [s3 * c2, s3 * s2 * s1 + c3 * c1, s3 * s2 * c1 - c3 * s1],
        [-s2, c2 * s1, c2 * c1],
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreeLegs:
    """Geometry of the 2T1R (Staicu et al. 2006, section 1)."""

    r: float
    """Distance of the platform's joints from P [m]."""
    R: float
    """Distance of the guides from O [m]."""
    L: float
    """Length of legs and bars [m]."""


def three_legs(mechanism: Mechanism) -> ThreeLegs:
    """The geometry of a model named as in `2t1r`.

    Raises:
        NotFoundError: If a site is missing.
    """
    slider = mechanism.joints[mechanism.actuators[2].coordinate.joints[0]].body
    return ThreeLegs(
        r=float(mechanism.site("P").position[0]),
        R=-float(mechanism.bodies[slider].position[0]),
        L=-float(mechanism.site("legA_end").position[2]),
    )


def staicu_motion(t: Array) -> list[Jet]:
    """y, z and θ of the 2T1R in its motion (5).

    Args:
        t: Time [s], shape (nt,).
    """
    time = Jet.of_time(t)
    squared = time * time
    y = -squared * (squared - 1.3 * time + 0.3)
    z = 0.2 * squared * (2.0 * squared - time - 1.0)
    return [y, z, 0.4 * sin(4 * np.pi * time)]


def slider_coordinates(robot: ThreeLegs, pose: list[Jet]) -> Drive:
    """Displacements λ of the sliders A, B, C when P is at (0, y, z − h) and the platform turned by θ about Y."""
    y, z, theta = pose
    apart, L2 = robot.R - robot.r, robot.L**2
    below = z - np.sqrt(L2 - apart**2)
    across = robot.R - robot.r * cos(theta)
    return drive(
        [
            below + sqrt(L2 - (y + apart) * (y + apart)),
            below + sqrt(L2 - (y - apart) * (y - apart)),
            below + robot.r * sin(theta) + sqrt(L2 - y * y - across * across),
        ]
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossedLimbs:
    """Geometry of the 2PUR-2RPU (Wang et al. 2019, Table 1) [m]."""

    l: float
    """Length of the limbs B1A1 and B2A2."""
    l3: float
    """Distance of the pivots B3 and B4 from the plane y = 0."""
    f: float
    """Distance of the platform's joints from P."""
    d: float
    """Height of the pivots."""
    e: float
    """Distance between A1A2 and A3A4."""
    h: float
    """Length of the tool."""


def crossed_limbs(mechanism: Mechanism) -> CrossedLimbs:
    """The geometry of a model named as in `2pur2rpu`.

    Raises:
        NotFoundError: If a site is missing.
    """
    pivot = mechanism.bodies[mechanism.site("rod4_end").body].position
    return CrossedLimbs(
        l=float(mechanism.site("link2_end").position[2]),
        l3=float(pivot[1]),
        f=float(mechanism.site("A4").position[1]),
        d=float(pivot[2]),
        e=-float(mechanism.site("A2").position[2]),
        h=float(mechanism.site("tool").position[2]),
    )


def helical_motion(robot: CrossedLimbs, path: tuple[float, float, float], duration: float, t: Array) -> list[Jet]:
    """α, β, ζ of the 2PUR-2RPU when its tool goes once round a helix (42) to (47) by the law (B-1).

    Args:
        robot: Its geometry.
        path: Radius, initial height and pitch of the helix [m].
        duration: Time T of the turn [s].
        t: Time [s], shape (nt,).
    """
    radius, height, pitch = path
    phi = modified_trapezoid(t, duration)
    x, y, z = radius * cos(phi) - radius, radius * sin(phi), height + phi * (pitch / (2 * np.pi))
    alpha, beta = arctan(-y / z), arcsin(x / robot.h)
    return [alpha, beta, (z - robot.h * cos(beta) * cos(alpha)) / cos(alpha)]


def modified_trapezoid(t: Array, T: float) -> Jet:
    """The angle φ of (B-1), 0 to 2π, with continuous acceleration; the outer pieces go on beyond the span.

    Args:
        t: Time [s], shape (nt,).
        T: Time of the turn [s].
    """
    s, tau, pi = Jet.of_time(t), 2 * np.pi, np.pi
    pieces = [
        2 / T * s - sin(4 * pi / T * s) / tau,
        0.25 - 1 / tau + 2 / T * (s - T / 8) + 4 * pi / T**2 * (s - T / 8) * (s - T / 8),
        -pi / 2 + 2 * (1 + pi) / T * s - sin(4 * pi / T * (s - T / 4)) / tau,
        (2 + pi) + (pi / 2 + 2 * (1 + pi) / T * (s - T) - sin(4 * pi / T * (s - 3 * T / 4)) / tau),
        (2 + pi) + (-0.25 + 1 / tau + 2 / T * (s - 7 * T / 8) - 4 * pi / T**2 * (s - 7 * T / 8) * (s - 7 * T / 8)),
        (2 + pi) + (2 / T * (s - T) - sin(4 * pi / T * (s - T)) / tau),
    ]
    piece = np.searchsorted(np.array([1 / 8, 3 / 8, 1 / 2, 5 / 8, 7 / 8]) * T, t, side="right")
    chosen = [np.choose(piece, [getattr(jet, part) for jet in pieces]) for part in ("x", "d", "dd")]
    return Jet(*chosen) * (tau / (2 + pi))


def limb_coordinates(robot: CrossedLimbs, pose: list[Jet]) -> Drive:
    """Actuated coordinates at α, β, ζ by (39)."""
    alpha, beta, zeta = pose
    sa, ca, sb, cb = sin(alpha), cos(alpha), sin(beta), cos(beta)
    f, e = robot.f, robot.e
    z1, z2 = zeta - f * sb - e * cb, zeta + f * sb - e * cb
    up3, out3 = zeta * ca - f * sa - robot.d, robot.l3 - f * ca - zeta * sa
    up4, out4 = zeta * ca + f * sa - robot.d, f * ca - zeta * sa - robot.l3
    return drive(
        [
            f * cb - e * sb - sqrt(robot.l**2 - z1 * z1),
            sqrt(robot.l**2 - z2 * z2) - f * cb - e * sb,
            sqrt(up3 * up3 + out3 * out3),
            sqrt(up4 * up4 + out4 * out4),
        ]
    )
