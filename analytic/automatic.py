"""A motion for a robot that comes without one: smooth, bounded, periodic, from rest, inside the joint limits."""

from functools import partial

import numpy as np

from analytic.kinematics import poses
from robots.arrays import Array
from robots.mechanism import Mechanism
from robots.motion import Drive, Law

SPAN = (0.0, 2.0)
"""First and last time [s]."""
SWING = 0.3
"""Half of the largest swing of a hinge [rad], and of a slide relative to the robot's size [-]."""
ROOM = 0.9
"""Fraction of the way to a joint limit that a swing may take [-]."""
WELL_AWAY = 0.1
"""Fraction of the starting pose's conditioning that must be left all along the motion [-]."""


def swing(mechanism: Mechanism, q: Array, joints: tuple[int, ...], scale: float) -> Law:
    """Every joint swings to one side of its position and back, with one, two or three periods in the span.

    Args:
        mechanism: Robot.
        q: Starting pose [m or rad], shape (nq,).
        joints: Joints that move; hinges and slides.
        scale: Fraction of the largest swing [-].
    """
    start = q[[mechanism.q_slices[j].start for j in joints]]
    swings = np.array([_room(mechanism, j, x, _size(mechanism, q)) for j, x in zip(joints, start, strict=True)])
    rate = 2 * np.pi * np.array([1.0 + k % 3 for k in range(len(joints))]) / (SPAN[1] - SPAN[0])
    return partial(_cosines, start, scale * swings, rate)


def within_limits(mechanism: Mechanism, q: Array) -> bool:
    """Whether joints that start inside their limits stay there.

    Args:
        mechanism: Robot.
        q: Joint positions along a motion [m or rad], shape (nt, nq).
    """
    for joint, columns in zip(mechanism.joints, mechanism.q_slices, strict=True):
        if joint.limits is not None:
            low, high = joint.limits
            x = q[:, columns.start]
            if low <= x[0] <= high and not (low <= x.min() and x.max() <= high):
                return False
    return True


def _cosines(start: Array, amplitude: Array, rate: Array, t: Array) -> Drive:
    angle = t[:, None] * rate
    return Drive(
        q=start + amplitude * (1 - np.cos(angle)),
        qd=amplitude * rate * np.sin(angle),
        qdd=amplitude * rate**2 * np.cos(angle),
    )


def _room(mechanism: Mechanism, j: int, x: float, size: float) -> float:
    """Half of the largest swing of a joint from a position, towards the side that has more room [m or rad]."""
    joint = mechanism.joints[j]
    half = SWING * (size if joint.kind == "slide" else 1.0)
    if joint.limits is None or not joint.limits[0] <= x <= joint.limits[1]:
        return half
    down, up = x - joint.limits[0], joint.limits[1] - x
    return min(half, ROOM * up / 2) if up >= down else -min(half, ROOM * down / 2)


def _size(mechanism: Mechanism, q: Array) -> float:
    """Half of the largest distance of joints or mass centres from their mean [m]."""
    at = poses(mechanism, q[None])
    points = np.concatenate([at.anchors[0], at.c[0]])
    return float(np.linalg.norm(points - points.mean(axis=0), axis=1).max()) / 2
