"""Efforts of a four-bar that was read from a file, against the closed form of `planar_four_bar`."""

import numpy as np

from loopcheck.analytic.dynamics.noc import needed_efforts
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.motion.assembly import assemble
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive
from loopcheck.robots.robot import modes
from tests.planar_four_bar import START, law, needed

RATE = 7.0
"""Angular rate of the motion [rad/s]."""


def four_bar_error(mechanism: Mechanism) -> float:
    """Largest error of the crank's torque relative to its peak; the crank of the file is at zero at START."""

    def crank(t: np.ndarray) -> Drive:
        q, qd, qdd = (np.array(column)[:, None] for column in zip(*(law(float(x), RATE) for x in t), strict=True))
        return Drive(q=q - START, qd=qd, qdd=qdd)

    t = np.linspace(0.0, 0.8, 9)
    guess = next(iter(modes(mechanism).values()))
    motion = assemble(mechanism, crank, guess, t, drives=mechanism.drives, where="four-bar")
    effort = needed_efforts(State(mechanism=mechanism, q=motion.q, qd=motion.qd), motion.qdd).effort[:, 0]
    expected = np.array([needed(float(x), RATE) for x in t])
    return float(np.abs(effort - expected).max() / np.abs(expected).max())
