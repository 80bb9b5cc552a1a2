"""Zubizarreta et al. 2010: the platform of the 3-RRR goes round a circle."""

from functools import partial

import numpy as np

from loopcheck.analytic.motion.jets import Jet, cos, sin
from loopcheck.analytic.motion.laws import Prescription, of_task, require_joints, require_positive
from loopcheck.analytic.motion.platforms.planar_legs import PlanarLegs, motor_angles, planar_legs
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.mechanism import Mechanism


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
