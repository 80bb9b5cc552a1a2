"""Staicu et al. 2006: the platform of the 2T1R moves by polynomials and turns by a sine."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from loopcheck.analytic.motion.jets import Jet, cos, drive, sin, sqrt
from loopcheck.analytic.motion.laws import Prescription, of_task, require_joints
from loopcheck.robots.arrays import Array, Times
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive


def prescription(mechanism: Mechanism, start: Array) -> Prescription:
    """Motion (5) of the 2T1R: y = −t²(t² − 1.3t + 0.3), z = 0.2t²(2t² − t − 1), θ = 0.4 sin 4πt, for a second.

    Staicu et al. 2006. It does not begin or end at rest, because θ swings through.

    Args:
        start: Positions of the actuated joints in the starting guess [m], shape (3,); not used.
    """
    require_joints(mechanism, "staicu2006", ("A", "B", "C"))
    inverse = partial(slider_coordinates, three_legs(mechanism))
    return of_task({"y": "m", "z": "m", "θ": "rad"}, _motion, inverse, 1.0)


def _motion(t: Times) -> list[Jet]:
    """y, z and θ of the 2T1R in its motion (5)."""
    time = Jet.of_time(t)
    squared = time * time
    y = -squared * (squared - 1.3 * time + 0.3)
    z = 0.2 * squared * (2.0 * squared - time - 1.0)
    return [y, z, 0.4 * sin(4 * np.pi * time)]


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
