"""Kordjazi and Akbarzadeh 2011: accelerations of the sliders of the 3-PRR."""

from functools import partial

import numpy as np

from loopcheck.analytic.motion.laws import Prescription, require_joints
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive


def prescription(mechanism: Mechanism, start: Array, *, displacement: float = 0.1595) -> Prescription:
    """Motion of the 3-PRR: accelerations sin 3t, sin 2t, 0.5 sin 3t from rest, for a second.

    Kordjazi and Akbarzadeh 2011, equations (37) and (38).

    Args:
        start: Positions of the actuated joints in the starting guess [m], shape (3,); not used.
        displacement: Initial displacement of all sliders [m].
    """
    require_joints(mechanism, "kordjazi2011", ("q1", "q2", "q3"))
    return Prescription(law=partial(_accelerated_sines, displacement), span=(0.0, 1.0))


def _accelerated_sines(displacement: float, t: Array) -> Drive:
    s3, c3, s2, c2 = np.sin(3 * t), np.cos(3 * t), np.sin(2 * t), np.cos(2 * t)
    q1, q2 = t / 3 - s3 / 9, t / 2 - s2 / 4
    qd1, qd2 = (1 - c3) / 3, (1 - c2) / 2
    return Drive(
        q=displacement + np.stack([q1, q2, q1 / 2], axis=-1),
        qd=np.stack([qd1, qd2, qd1 / 2], axis=-1),
        qdd=np.stack([s3, s2, s3 / 2], axis=-1),
    )
