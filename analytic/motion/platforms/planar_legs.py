"""The planar 3-RRR: its motors from the pose of the platform, in the working mode of a start."""

from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.motion.jets import Jet, arccos, arctan, cos, drive, sin, sqrt
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive

PLANE = np.array([1, 1j, 0])
"""Makes a vector of the plane a complex number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanarLegs:
    """Three legs of two links in the plane; vectors are complex numbers x + iy."""

    A: AnyArray
    """Points A_i [m], shape (3,)."""
    C: AnyArray
    """Points C_i in the axes of the platform, from P [m], shape (3,)."""
    proximal: Array
    """Lengths A_iB_i [m], shape (3,)."""
    distal: Array
    """Lengths B_iC_i [m], shape (3,)."""

    def spans(self, theta: float) -> AnyArray:
        """Vectors from A_i to C_i [m], shape (3,), with P at O and the platform turned by theta [rad]."""
        return self.C * np.exp(1j * theta) - self.A


def planar_legs(mechanism: Mechanism) -> PlanarLegs:
    """The geometry of a model named as in `3rrr`.

    Raises:
        MechanismError: If a body is missing.
        NotFoundError: If a site is missing.
    """
    bodies = {body.name: body for body in mechanism.bodies}
    for name in ["platform", *(f"{link}{i}" for link in ("proximal", "distal") for i in (1, 2, 3))]:
        if name not in bodies:
            raise MechanismError(f"{mechanism.model.path}: a platform on planar legs must have a body '{name}'")
    P = mechanism.site("P").position
    ends = [bodies["platform"].position, *(mechanism.site(f"distal{i}_end").position for i in (2, 3))]
    return PlanarLegs(
        A=np.array([bodies[f"proximal{i}"].position for i in (1, 2, 3)]) @ PLANE,
        C=np.array([mechanism.site(f"platform{i}").position - P for i in (1, 2, 3)]) @ PLANE,
        proximal=np.array([bodies[f"distal{i}"].position[0] for i in (1, 2, 3)]),
        distal=np.array([end[0] for end in ends]),
    )


def motor_angles(robot: PlanarLegs, spans: AnyArray, start: Array, pose: list[Jet]) -> Drive:
    """Motors at (x, y, θ), in the working mode and the turn of a start, by the law of cosines.

    Args:
        spans: Vectors from A_i to C_i from which no leg turns by 90° or more [m], shape (3,).
        start: Motors at the start [rad], shape (3,).
        pose: x, y and θ.
    """
    outwards = np.angle(spans)
    x, y, theta = pose
    motors = []
    for A, C, L, l, outward, near in zip(robot.A, robot.C, robot.proximal, robot.distal, outwards, start, strict=True):
        right = x + C.real * cos(theta) - C.imag * sin(theta) - A.real  # A_i to C_i
        up = y + C.real * sin(theta) + C.imag * cos(theta) - A.imag
        along = right * np.cos(outward) + up * np.sin(outward)  # positive: the leg turns by less than 90°
        across = up * np.cos(outward) - right * np.sin(outward)
        squared = along * along + across * across
        elbow = 1.0 if np.sin(outward - near) > 0 else -1.0  # sign of sin qp
        inside = arccos((squared + (L**2 - l**2)) / (sqrt(squared) * (2 * L)))  # angle at A_i
        turns = np.round((near - outward + elbow * np.pi / 4) / (2 * np.pi))
        motors.append(arctan(across / along) - elbow * inside + (outward + 2 * np.pi * turns))
    return drive(motors)
