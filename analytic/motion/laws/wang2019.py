"""Wang et al. 2019: the tool of the 2PUR-2RPU goes once round a helix."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from loopcheck.analytic.motion.jets import Jet, arcsin, arctan, cos, drive, sin, sqrt
from loopcheck.analytic.motion.laws import Prescription, of_task, require_joints, require_positive
from loopcheck.robots.arrays import Array, Times
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive


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


def prescription(
    mechanism: Mechanism, start: Array, *, radius: float, height: float, pitch: float, duration: float
) -> Prescription:
    """Motion of the 2PUR-2RPU: its tool goes once round a helix (42) to (47) by the law (B-1).

    Wang et al. 2019. The acceleration is continuous; the third derivative jumps at the beginning and the end.

    Args:
        mechanism: The 2PUR-2RPU.
        start: Positions of the actuated joints in the starting guess [m], shape (4,); not used.
        radius: Radius of the helix [m].
        height: Its initial height [m].
        pitch: Its rise in a turn [m].
        duration: Time of the turn [s].
    """
    require_joints(mechanism, "wang2019", ("q1", "q2", "q3", "q4"))
    require_positive("wang2019", radius=radius, height=height, pitch=pitch, duration=duration)
    limbs = crossed_limbs(mechanism)
    path = partial(_helix, limbs, (radius, height, pitch), duration)
    inverse = partial(limb_coordinates, limbs)
    return of_task({"α": "rad", "β": "rad", "ζ": "m"}, path, inverse, duration)


def _helix(robot: CrossedLimbs, path: tuple[float, float, float], duration: float, t: Times) -> list[Jet]:
    """α, β, ζ of the 2PUR-2RPU when its tool goes once round a helix (42) to (47) by the law (B-1).

    Args:
        path: Radius, initial height and pitch of the helix [m].
        duration: Time T of the turn [s].
    """
    radius, height, pitch = path
    phi = modified_trapezoid(t, duration)
    x, y, z = radius * cos(phi) - radius, radius * sin(phi), height + phi * (pitch / (2 * np.pi))
    alpha, beta = arctan(-y / z), arcsin(x / robot.h)
    return [alpha, beta, (z - robot.h * cos(beta) * cos(alpha)) / cos(alpha)]


def modified_trapezoid(t: Times, T: float) -> Jet:
    """The angle φ of (B-1), 0 to 2π, with continuous acceleration; the outer pieces go on beyond the span.

    Args:
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
