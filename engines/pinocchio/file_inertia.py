"""Inertias of the links of a URDF by Pinocchio's own parser."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from loopcheck.engines.boundary import silenced
from loopcheck.engines.pinocchio._tree import guarded
from loopcheck.robots.errors import EngineError
from loopcheck.robots.formats.urdf import is_urdf
from loopcheck.robots.second_reading.tables import Link


def links(path: Path) -> Sequence[Link]:
    """See `loopcheck.engines.contract.FileInertia.links`."""
    if not is_urdf(path):
        raise EngineError("pinocchio: reads loops of no format but URDF")
    with silenced(), guarded("pinocchio"):
        return list(_links(pin.buildModelFromUrdf(str(path))))


def _links(model: Any) -> Iterator[Link]:
    """The first link of a joint has the inertia of all links that are fixed to it."""
    seen = {0}  # the world
    for frame in model.frames:
        if frame.type != pin.FrameType.BODY:
            continue
        joint = int(frame.parentJoint)
        if joint in seen:
            yield Link(name=frame.name, X=np.eye(4))
            continue
        seen.add(joint)
        inertia = model.inertias[joint]
        yield Link(name=frame.name, X=np.eye(4), mass=inertia.mass, center=inertia.lever, inertia=inertia.inertia)
