"""The size of a robot: the reference for its lengths.

It does not depend on the pose, so a relative limit has the same meaning all along a motion. It grows with all lengths:
a robot in metres and the same robot in millimetres get the same verdict.
"""

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion


def size(mechanism: Mechanism) -> float:
    """The longest of its links [m]: distance of two joints, closures or mass centres of a body, or of the world.

    1 m if it has no length at all.
    """
    return mechanism.stacked.longest_link or 1.0


def size_in_motion(mechanism: Mechanism, motion: Motion) -> float:
    """Its size, or the travel of a slide if that is larger [m]."""
    slides = [
        columns.start
        for joint, columns in zip(mechanism.joints, mechanism.q_slices, strict=True)
        if joint.kind == "slide"
    ]
    stroke = float(np.ptp(motion.q[:, slides], axis=0).max(initial=0.0))
    return max(mechanism.stacked.longest_link, stroke) or 1.0


def unit_rates(mechanism: Mechanism) -> Array:
    """Reference rate of each dof, used to compare rotations with translations.

    Returns:
        1 rad of a turn, the size of the robot of a slide [m or rad], shape (nv,).
    """
    length, units = size(mechanism), np.ones(mechanism.nv)
    for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True):
        if joint.kind in ("slide", "free"):
            units[dofs.start : dofs.start + (1 if joint.kind == "slide" else 3)] = length
    return units
