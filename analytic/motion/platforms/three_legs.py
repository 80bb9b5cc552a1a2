"""The 2T1R: its sliders from y, z and θ of the platform."""

from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.motion.jets import Jet, cos, drive, sin, sqrt
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive


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
