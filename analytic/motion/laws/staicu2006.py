"""Staicu et al. 2006: the platform of the 2T1R moves by polynomials and turns by a sine."""

from functools import partial

import numpy as np

from loopcheck.analytic.motion.jets import Jet, sin
from loopcheck.analytic.motion.laws import Prescription, of_task, require_joints
from loopcheck.analytic.motion.platforms.three_legs import slider_coordinates, three_legs
from loopcheck.robots.arrays import Array, Times
from loopcheck.robots.mechanism import Mechanism


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
