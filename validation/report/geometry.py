"""Points of the bodies over time, to draw the robot with: joints, closures and the traced point."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import Poses
from loopcheck.robots.arrays import AnyArray, Array, JointPositions
from loopcheck.robots.mechanism import WORLD, Mechanism, pairs_of_points
from loopcheck.robots.motion import Motion

TRACE = "trace"
SAME = 1e-9
"""Points closer than this are merged [m]."""
FRAMES = 60
"""Largest number of steps of an animation."""


def point_rows(mechanism: Mechanism, motion: Motion, trace: str | None) -> Iterator[Mapping[str, Any]]:
    """Rows of the table of points: t, body, point, x, y, z.

    Args:
        trace: Site with a drawn path, or None.

    Raises:
        NotFoundError: If the site is unknown.
    """
    return _rows(mechanism, motion.t, motion.q, trace)


def pose_rows(mechanism: Mechanism, q: JointPositions) -> Iterator[Mapping[str, Any]]:
    """Rows of the table of points for a robot that stands still."""
    return _rows(mechanism, np.zeros(1), q[None], None)


def steps_shown(count: int) -> AnyArray:
    """Samples that an animation shows: few, evenly spaced, with the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(FRAMES, count)).round().astype(int))


def _rows(mechanism: Mechanism, t: Array, q: Array, trace: str | None) -> Iterator[Mapping[str, Any]]:
    for body, name, path in _points(mechanism, State.at_rest(mechanism, q).poses, trace):
        for instant, (x, y, z) in zip(t, np.broadcast_to(path, (len(t), 3)), strict=True):
            yield {"t": instant, "body": body, "point": name, "x": x, "y": y, "z": z}


def _points(mechanism: Mechanism, body_poses: Poses, trace: str | None) -> Iterator[tuple[str, str, AnyArray]]:
    """Name of the body, name of the point and its path, (nt, 3) or (3,)."""
    for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True):
        if joint.body == WORLD:
            continue  # the length of a tendon
        child, parent = joint.body, mechanism.bodies[joint.body].parent
        yield _name(mechanism, child), joint.name, _path(body_poses, child, joint.anchor)
        if joint.kind == "slide" and parent == WORLD:
            yield (
                "world",
                joint.name,
                mechanism.bodies[child].position + mechanism.bodies[child].rotation @ joint.anchor,
            )
        elif joint.kind != "free":
            yield _name(mechanism, parent), joint.name, body_poses.anchors[:, dofs.start]
    pairs = [(closure, pair) for closure in mechanism.closures for pair in pairs_of_points(closure)]
    for closure, pair in pairs:
        for body, point in ((pair.body1, pair.point1), (pair.body2, pair.point2)):
            yield _name(mechanism, body), closure.name, _path(body_poses, body, point)
    if trace is not None:
        site = mechanism.site(trace)
        yield TRACE, site.name, _path(body_poses, site.body, site.position)


def _name(mechanism: Mechanism, body: int) -> str:
    return "world" if body == WORLD else mechanism.bodies[body].name


def _path(body_poses: Poses, body: int, point: AnyArray) -> AnyArray:
    return point if body == WORLD else body_poses.p[:, body] + body_poses.R[:, body] @ point
