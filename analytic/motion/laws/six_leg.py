"""A platform on six legs sways: each coordinate of its pose is a sine."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from loopcheck.analytic.motion.jets import Jet, arccos, cos, sin, sqrt
from loopcheck.analytic.motion.laws import Prescription, of_task, require_joints, require_positive
from loopcheck.robots.arrays import Array, Times, frozen
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive

LEGS = range(1, 7)


def prescription(
    mechanism: Mechanism, start: Array, *, sines: Sequence[Sequence[float]], duration: float
) -> Prescription:
    """Motion of a platform on six legs: each coordinate of its pose (px, py, pz, φ, θ, ψ) is c + a sin(2πft + φ).

    Args:
        mechanism: The robot, `6spu` or `6x6r`.
        start: Positions of the actuated joints in the starting guess [m or rad], shape (6,); not used.
        sines: A row c, a [m or rad], f [Hz], φ [rad] for each coordinate of the pose.
        duration: Length of the motion [s].
    """
    require_joints(mechanism, "six_leg", tuple(f"leg{k}" for k in LEGS))
    require_positive("six_leg", duration=duration)
    rows = frozen(sines, (6, 4), name="motion law 'six_leg', sines")
    inverse = partial(leg_coordinates, six_legs(mechanism))
    pose = {"px": "m", "py": "m", "pz": "m", "φ": "rad", "θ": "rad", "ψ": "rad"}
    return of_task(pose, partial(_swaying, rows), inverse, duration)


def _swaying(sines: Array, t: Times) -> list[Jet]:
    """Pose of a platform with coordinates c + a sin(2πft + φ).

    Args:
        sines: Rows c, a, f, φ for px py pz φ θ ψ [m or rad, the same, Hz, rad], shape (6, 4).
    """
    time = Jet.of_time(t)
    return [sin(time * (2 * np.pi * f) + p) * a + c for c, a, f, p in sines]


@dataclass(frozen=True, slots=True, kw_only=True)
class SixLegs:
    """Geometry of a platform on six legs: |S U| is the coordinate of a leg, or follows from its elbow's angle."""

    S: Array
    """Spherical joints of the legs, world [m], shape (6, 3)."""
    U: Array
    """Universal joints of the legs, platform frame [m], shape (6, 3)."""
    lengths: tuple[float, float] | None
    """Lower and upper link of a leg with an elbow [m]; None for a prismatic leg."""


def six_legs(mechanism: Mechanism) -> SixLegs:
    """The geometry of a model with legs hanging from the platform, named as in `6spu` and `6x6r`.

    Raises:
        MechanismError: If a joint is missing.
        NotFoundError: If the site of a spherical joint is missing.
    """
    joints = {joint.name: joint for joint in mechanism.joints}
    for name in [*(f"u{k}b" for k in LEGS), *(f"leg{k}" for k in LEGS)]:
        if name not in joints:
            raise MechanismError(f"{mechanism.model.path}: a platform on six legs must have a joint '{name}'")
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
