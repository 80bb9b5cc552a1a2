"""Zubizarreta et al. 2010: the platform of the 3-RRR goes round a circle."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from loopcheck.analytic.motion.jets import Jet, arccos, arctan, cos, drive, sin, sqrt
from loopcheck.analytic.motion.laws import Prescription, of_task, require_joints, require_positive
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


def prescription(
    mechanism: Mechanism, start: Array, *, radius: float = 0.1, period: float = 2.0, theta: float = 0.0
) -> Prescription:
    """Motion of the 3-RRR: P goes once round a circle about O at constant speed, the platform does not turn.

    Zubizarreta et al. 2010, section 4.8. The motors follow by inverse kinematics in the working mode of the start.

    Args:
        mechanism: The 3-RRR.
        start: Positions of the actuated joints in the starting guess [rad], shape (3,).
        radius: Radius of the circle [m].
        period: Time of a turn [s].
        theta: Orientation of the platform [rad].
    """
    require_joints(mechanism, "zubizarreta2010", ("qa1", "qa2", "qa3"))
    require_positive("zubizarreta2010", radius=radius, period=period)
    legs = planar_legs(mechanism)
    _require_within_reach(mechanism, legs, radius, theta)
    inverse = partial(motor_angles, legs, legs.spans(theta), np.array(start))
    path = partial(_round_circle, radius, 2 * np.pi / period, theta)
    return of_task({"x": "m", "y": "m", "θ": "rad"}, path, inverse, period)


def _require_within_reach(mechanism: Mechanism, legs: PlanarLegs, radius: float, theta: float) -> None:
    """Check that the legs reach the whole circle without stretching out."""
    apart = np.abs(legs.spans(theta))
    nearest, farthest = apart - radius, apart + radius
    inner, outer = np.abs(legs.proximal - legs.distal), legs.proximal + legs.distal
    for i in range(3):
        if not inner[i] < nearest[i] <= farthest[i] < outer[i]:
            raise MechanismError(
                f"{mechanism.model.path}: motion law 'zubizarreta2010': reach of leg {i + 1} must cover "
                f"{nearest[i]:g} to {farthest[i]:g} m for the circle, got {inner[i]:g} to {outer[i]:g} m"
            )


def _round_circle(radius: float, rate: float, theta: float, t: Array) -> list[Jet]:
    """Pose (x, y, θ) of a platform that goes round a circle and does not turn."""
    time = Jet.of_time(t)
    return [radius * cos(rate * time), radius * sin(rate * time), 0.0 * time + theta]
