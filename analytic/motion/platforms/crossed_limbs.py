"""The 2PUR-2RPU: its four actuated joints from α, β and ζ."""

from dataclasses import dataclass

from loopcheck.analytic.motion.jets import Jet, cos, drive, sin, sqrt
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
