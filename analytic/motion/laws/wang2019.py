"""Wang et al. 2019: the tool of the 2PUR-2RPU goes once round a helix."""

from functools import partial

import numpy as np

from loopcheck.analytic.motion.jets import Jet, arcsin, arctan, cos, sin
from loopcheck.analytic.motion.laws import Prescription, of_task, require_joints, require_positive
from loopcheck.analytic.motion.platforms.crossed_limbs import CrossedLimbs, crossed_limbs, limb_coordinates
from loopcheck.robots.arrays import Array, Times
from loopcheck.robots.mechanism import Mechanism


def prescription(
    mechanism: Mechanism, start: Array, *, radius: float, height: float, pitch: float, duration: float
) -> Prescription:
    """Motion of the 2PUR-2RPU: its tool goes once round a helix (42) to (47) by the law (B-1).

    Wang et al. 2019. The acceleration is continuous; the third derivative jumps at the beginning and the end.

    Args:
        mechanism: The 2PUR-2RPU.
        start: Positions of the actuated joints in the starting guess [m], shape (4,); not used.
        radius: Radius of the helix [m].
        height: Its initial height [m].
        pitch: Its rise in a turn [m].
        duration: Time of the turn [s].
    """
    require_joints(mechanism, "wang2019", ("q1", "q2", "q3", "q4"))
    require_positive("wang2019", radius=radius, height=height, pitch=pitch, duration=duration)
    limbs = crossed_limbs(mechanism)
    path = partial(_helix, limbs, (radius, height, pitch), duration)
    inverse = partial(limb_coordinates, limbs)
    return of_task({"α": "rad", "β": "rad", "ζ": "m"}, path, inverse, duration)


def _helix(robot: CrossedLimbs, path: tuple[float, float, float], duration: float, t: Times) -> list[Jet]:
    """α, β, ζ of the 2PUR-2RPU when its tool goes once round a helix (42) to (47) by the law (B-1).

    Args:
        path: Radius, initial height and pitch of the helix [m].
        duration: Time T of the turn [s].
    """
    radius, height, pitch = path
    phi = modified_trapezoid(t, duration)
    x, y, z = radius * cos(phi) - radius, radius * sin(phi), height + phi * (pitch / (2 * np.pi))
    alpha, beta = arctan(-y / z), arcsin(x / robot.h)
    return [alpha, beta, (z - robot.h * cos(beta) * cos(alpha)) / cos(alpha)]


def modified_trapezoid(t: Times, T: float) -> Jet:
    """The angle φ of (B-1), 0 to 2π, with continuous acceleration; the outer pieces go on beyond the span.

    Args:
        T: Time of the turn [s].
    """
    s, tau, pi = Jet.of_time(t), 2 * np.pi, np.pi
    pieces = [
        2 / T * s - sin(4 * pi / T * s) / tau,
        0.25 - 1 / tau + 2 / T * (s - T / 8) + 4 * pi / T**2 * (s - T / 8) * (s - T / 8),
        -pi / 2 + 2 * (1 + pi) / T * s - sin(4 * pi / T * (s - T / 4)) / tau,
        (2 + pi) + (pi / 2 + 2 * (1 + pi) / T * (s - T) - sin(4 * pi / T * (s - 3 * T / 4)) / tau),
        (2 + pi) + (-0.25 + 1 / tau + 2 / T * (s - 7 * T / 8) - 4 * pi / T**2 * (s - 7 * T / 8) * (s - 7 * T / 8)),
        (2 + pi) + (2 / T * (s - T) - sin(4 * pi / T * (s - T)) / tau),
    ]
    piece = np.searchsorted(np.array([1 / 8, 3 / 8, 1 / 2, 5 / 8, 7 / 8]) * T, t, side="right")
    chosen = [np.choose(piece, [getattr(jet, part) for jet in pieces]) for part in ("x", "d", "dd")]
    return Jet(*chosen) * (tau / (2 + pi))
