"""Actuated coordinates of the spatial platform robots in closed form: from the pose of the platform, with exact rates.

The poses are jets, so that a formula for the coordinate brings its velocity and acceleration along.
"""

from dataclasses import dataclass

import numpy as np

from analytic.jets import Jet, arccos, cos, drive, sin, sqrt
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


def swaying(robot: SixLegs, sines: Array, t: Array) -> Drive:
    """Coordinates of the legs when each coordinate of the platform is c + a sin(2πft + φ).

    Args:
        robot: Its geometry.
        sines: Rows c, a, f, φ for px py pz φ θ ψ [m or rad, the same, Hz, rad], shape (6, 4).
        t: Time [s], shape (nt,).
    """
    time = Jet.of_time(t)
    return leg_coordinates(robot, [sin(time * (2 * np.pi * f) + p) * a + c for c, a, f, p in sines])


def leg_coordinates(robot: SixLegs, pose: list[Jet]) -> Drive:
    """Coordinates of the six legs of a platform at (px, py, pz, φ, θ, ψ), R = Rz(ψ) Ry(θ) Rx(φ)."""
    position, R = pose[:3], _rotation(pose[3], pose[4], pose[5])
    legs = []
    for S, U in zip(robot.S, robot.U, strict=True):
        arm = [p + sum((R[i][j] * U[j] for j in range(3)), start=p * 0.0) - S[i] for i, p in enumerate(position)]
        squared = arm[0] * arm[0] + arm[1] * arm[1] + arm[2] * arm[2]
        if robot.lengths is None:
            legs.append(sqrt(squared))
        else:
            a, b = robot.lengths
            legs.append(arccos((squared - (a**2 + b**2)) / (2 * a * b)))
    return drive(legs)


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
    slider = mechanism.joints[mechanism.actuators[2].joint].body
    return ThreeLegs(
        r=float(mechanism.site("P").position[0]),
        R=-float(mechanism.bodies[slider].position[0]),
        L=-float(mechanism.site("legA_end").position[2]),
    )


def staicu_motion(robot: ThreeLegs, t: Array) -> Drive:
    """Sliders of the 2T1R in its motion (5).

    Args:
        robot: Its geometry.
        t: Time [s], shape (nt,).
    """
    time = Jet.of_time(t)
    squared = time * time
    y = -squared * (squared - 1.3 * time + 0.3)
    z = 0.2 * squared * (2.0 * squared - time - 1.0)
    return slider_coordinates(robot, y, z, 0.4 * sin(4 * np.pi * time))


def slider_coordinates(robot: ThreeLegs, y: Jet, z: Jet, theta: Jet) -> Drive:
    """Displacements λ of the sliders A, B, C when P is at (0, y, z − h) and the platform turned by θ about Y."""
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
