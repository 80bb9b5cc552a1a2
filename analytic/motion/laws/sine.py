"""Every actuated joint swings about its starting position: a law for any robot."""

from functools import partial

import numpy as np

from loopcheck.analytic.motion.laws import Prescription, require_positive
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive


def prescription(
    mechanism: Mechanism,
    start: Array,
    *,
    amplitude: float = 0.02,
    frequency: float = 1.0,
    duration: float = 1.0,
) -> Prescription:
    """Every actuated joint swings about its starting position, each with a phase shift to the joint before.

    The whole swing of joint k is a (cos φ_k − cos(2πft + φ_k)), φ_k = k radians, so it starts at the starting pose.

    Args:
        start: Positions of the actuated joints in the starting guess [m or rad], shape (actuated joints,).
        amplitude: Half of the swing, a [m or rad].
        frequency: Frequency, f [Hz].
        duration: Length of the motion [s].
    """
    require_positive("sine", amplitude=amplitude, frequency=frequency, duration=duration)
    law = partial(_swing, np.array(start), amplitude, 2 * np.pi * frequency)
    return Prescription(law=law, span=(0.0, duration))


def _swing(start: Array, amplitude: float, rate: float, t: Array) -> Drive:
    phase = np.arange(len(start), dtype=float)
    angle = rate * t[:, None] + phase
    return Drive(
        q=start + amplitude * (np.cos(phase) - np.cos(angle)),
        qd=amplitude * rate * np.sin(angle),
        qdd=amplitude * rate**2 * np.cos(angle),
    )
