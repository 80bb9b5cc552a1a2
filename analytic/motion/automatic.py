"""A motion for a robot that comes without one: smooth, bounded, periodic, from rest, inside the joint limits."""

from functools import partial

import numpy as np

from analytic.kinematics.closures import RANK_TOLERANCE, closure_jacobian_at, null_space
from analytic.kinematics.tree import poses
from robots.arrays import Array
from robots.mechanism import Coordinate, Mechanism
from robots.motion import Drive, Law, Motion

SPAN = (0.0, 2.0)
"""First and last time [s]."""
SHORT_SPAN = (0.0, 0.5)
"""The same where something moves that nothing drives: it may spin up, fall or swing out of all bounds."""
SWING = 0.3
"""Half of the largest swing of a hinge [rad], and of a slide relative to the robot's size [-]."""
ROOM = 0.9
"""Fraction of the way to a joint limit that a swing may take [-]."""
WELL_AWAY = 0.1
"""Fraction of the starting pose's conditioning that must be left all along the motion [-]."""


def swing(
    mechanism: Mechanism, q: Array, drives: tuple[Coordinate, ...], scale: float, *, span: tuple[float, float]
) -> Law:
    """Every drive swings to one side of its position and back, with one, two or three periods in the span.

    Args:
        mechanism: Robot.
        q: Starting pose [m or rad], shape (nq,).
        drives: Coordinates that move.
        scale: Fraction of the largest swing [-].
        span: First and last time [s].
    """
    start = mechanism.values_of(drives, q[None])[0]
    rate = 2 * np.pi * np.array([1.0 + k % 3 for k in range(len(drives))]) / (span[1] - span[0])
    return partial(_cosines, start, scale * room(mechanism, q, drives), rate)


def room(mechanism: Mechanism, q: Array, drives: tuple[Coordinate, ...]) -> Array:
    """Half of the largest swing of each drive from its position, towards the side that has more room [m or rad].

    Args:
        mechanism: Robot.
        q: Starting pose [m or rad], shape (nq,).
        drives: Coordinates that move.
    """
    size = _size(mechanism, q)
    rooms = [
        sum(w * _room(mechanism, j, q, size) for j, w in zip(drive.joints, drive.weights, strict=True))
        for drive in drives
    ]
    return np.array(rooms)


def within_limits(mechanism: Mechanism, drives: tuple[Coordinate, ...], motion: Motion) -> bool:
    """Whether joints that start inside their limits stay there, as far as the drives decide it.

    Args:
        mechanism: Robot.
        drives: Coordinates that move.
        motion: The motion.
    """
    held = np.concatenate([closure_jacobian_at(mechanism, motion.q[:1])[0], mechanism.rates_of(drives)])
    free = np.abs(null_space(held)).max(axis=1, initial=0.0) > RANK_TOLERANCE
    for joint, columns, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
        if joint.limits is not None and not free[dofs.start]:
            low, high = joint.limits
            x = motion.q[:, columns.start]
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


def _room(mechanism: Mechanism, j: int, q: Array, size: float) -> float:
    """Half of the largest swing of a joint from its position, towards the side that has more room [m or rad]."""
    joint, x = mechanism.joints[j], float(q[mechanism.q_slices[j].start])
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
