"""A platform on six legs sways: each coordinate of its pose is a sine."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from loopcheck.analytic.motion.jets import Jet, sin
from loopcheck.analytic.motion.laws import Prescription, of_task, require_joints, require_positive
from loopcheck.analytic.motion.platforms.six_legs import LEGS, leg_coordinates, six_legs
from loopcheck.robots.arrays import Array, Times, frozen
from loopcheck.robots.mechanism import Mechanism


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
