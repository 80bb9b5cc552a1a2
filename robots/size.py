"""The size of a robot: what its lengths are large or small against.

It does not depend on the pose, so that whatever is judged by it means the same all along a motion, and grows with all
lengths: a robot in metres and the same one in millimetres are judged alike.
"""

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import WORLD, Mechanism
from loopcheck.robots.motion import Motion


def size(mechanism: Mechanism) -> float:
    """The longest of its links [m]: distance of two joints, closures or mass centres of one body, or of the world.

    One metre if it has no length at all.
    """
    return _longest_link(mechanism) or 1.0


def size_in_motion(mechanism: Mechanism, motion: Motion) -> float:
    """Its size, or how far a slide goes where that is more [m]."""
    slides = [
        columns.start
        for joint, columns in zip(mechanism.joints, mechanism.q_slices, strict=True)
        if joint.kind == "slide"
    ]
    stroke = float(np.ptp(motion.q[:, slides], axis=0).max(initial=0.0))
    return max(_longest_link(mechanism), stroke) or 1.0


def unit_rates(mechanism: Mechanism) -> Array:
    """What counts as one in the rate of each dof where turns and slides are weighed against each other.

    Returns:
        1 rad of a turn, the size of the robot of a slide [m or rad], shape (nv,).
    """
    length, units = size(mechanism), np.ones(mechanism.nv)
    for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True):
        if joint.kind in ("slide", "free"):
            units[dofs.start : dofs.start + (1 if joint.kind == "slide" else 3)] = length
    return units


def _longest_link(mechanism: Mechanism) -> float:
    points: dict[int, list[Array]] = {b: [] for b in range(WORLD, len(mechanism.bodies))}
    for b, body in enumerate(mechanism.bodies):
        points[b].append(body.center)
        joints = [mechanism.joints[j] for j in mechanism.joints_of[b]]
        if any(joint.kind == "free" for joint in joints):
            continue  # it is joined to nothing
        for anchor in [joint.anchor for joint in joints] or [np.zeros(3)]:
            points[b].append(anchor)
            points[body.parent].append(body.position + body.rotation @ anchor)
    for closure in mechanism.rigid_closures:
        points[closure.body1].append(closure.point1)
        points[closure.body2].append(closure.point2)
    return max(float(np.linalg.norm(np.array(ends)[:, None] - ends, axis=-1).max()) for ends in points.values() if ends)
