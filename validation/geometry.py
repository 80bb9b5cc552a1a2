"""Points of the bodies over time, to draw the robot with: joints, closures and the traced point."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from analytic.kinematics import Poses, poses
from robots.arrays import AnyArray
from robots.mechanism import WORLD, CoordinateClosure, Mechanism
from robots.motion import Motion

TRACE = "trace"


def point_rows(mechanism: Mechanism, motion: Motion, trace: str | None) -> Iterator[Mapping[str, Any]]:
    """Rows of the table of points: t, body, point, x, y, z.

    Args:
        mechanism: Robot.
        motion: Its motion.
        trace: Site whose path is drawn, or None.

    Raises:
        NotFoundError: If there is no such site.
    """
    at = poses(mechanism, motion.q)
    for body, name, paths in _points(mechanism, at, trace):
        for t, (x, y, z) in zip(motion.t, np.broadcast_to(paths, (len(motion.t), 3)), strict=True):
            yield {"t": t, "body": body, "point": name, "x": x, "y": y, "z": z}


def _points(mechanism: Mechanism, at: Poses, trace: str | None) -> Iterator[tuple[str, str, AnyArray]]:
    """Name of the body, name of the point and its path, (nt, 3) or (3,)."""
    for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True):
        child, parent = joint.body, mechanism.bodies[joint.body].parent
        yield _name(mechanism, child), joint.name, _path(at, child, joint.anchor)
        if joint.kind == "slide" and parent == WORLD:
            yield (
                "world",
                joint.name,
                mechanism.bodies[child].position + mechanism.bodies[child].rotation @ joint.anchor,
            )
        elif joint.kind != "free":
            yield _name(mechanism, parent), joint.name, at.anchors[:, dofs.start]
    for closure in mechanism.closures:
        if not isinstance(closure, CoordinateClosure):
            for body, point in ((closure.body1, closure.point1), (closure.body2, closure.point2)):
                yield _name(mechanism, body), closure.name, _path(at, body, point)
    if trace is not None:
        site = mechanism.site(trace)
        yield TRACE, site.name, _path(at, site.body, site.position)


def _name(mechanism: Mechanism, body: int) -> str:
    return "world" if body == WORLD else mechanism.bodies[body].name


def _path(at: Poses, body: int, point: AnyArray) -> AnyArray:
    return point if body == WORLD else at.p[:, body] + at.R[:, body] @ point
