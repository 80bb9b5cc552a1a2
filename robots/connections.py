"""Connections of a mechanism, which carry wrenches, and the common convention of these wrenches.

A connection is a body with its parent, or a closure of two bodies. Its wrench acts on the body from its parent, or on
body 1 from body 2, about a point of that body, in the axes of that body.
"""

from typing import NamedTuple

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import ConnectClosure, Joint, Mechanism, WeldClosure

COMPONENTS = ("moment.x", "moment.y", "moment.z", "force.x", "force.y", "force.z")
"""Components of a wrench [N m, N], in the axes of the connection."""


class Connection(NamedTuple):
    """A body and its parent, or a closure of two bodies."""

    name: str
    """Name of the body's last joint, of a body without joints, or of a closure."""
    body: int
    """Index of the body that the wrench acts on and whose axes it has, or `WORLD`."""
    point: Array
    """Point of the wrench in the frame of the body [m], shape (3,)."""
    closure: ConnectClosure | WeldClosure | None = None


def connections(mechanism: Mechanism) -> list[Connection]:
    """Connections that carry wrenches: bodies in their order, then closures of bodies.

    Left out are bodies that a free joint without rotor, damper and spring connects with their parent.
    """
    found = []
    for b, body in enumerate(mechanism.bodies):
        joints = [mechanism.joints[j] for j in mechanism.joints_of[b]]
        if not joints or not all(map(_is_free, joints)):
            found.append(Connection((joints[-1] if joints else body).name, b, anchor(mechanism, b)))
    taken = {connection.name for connection in found}
    for closure in mechanism.rigid_closures:
        name = f"{closure.name} (closure)" if closure.name in taken else closure.name
        found.append(Connection(name, closure.body1, closure.point1, closure))
    return found


def anchor(mechanism: Mechanism, body: int) -> Array:
    """Point of the wrench on a body from its parent: the last anchor, or the origin of a body without one."""
    joints = [mechanism.joints[j] for j in mechanism.joints_of[body]]
    return joints[-1].anchor if joints and joints[-1].kind != "free" else np.zeros(3)


def _is_free(joint: Joint) -> bool:
    return joint.kind == "free" and not (joint.armature or joint.damping or joint.stiffness)
