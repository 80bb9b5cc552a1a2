"""Writes the spanning tree of a `Mechanism` as URDF text that PyBullet reads without loss.

A link moves with each joint: its axes are those of the body, its origin is the joint's anchor. All but the last link of a
body with several joints are massless. Inertias are given in principal axes, because Bullet keeps only the diagonal.
"""

from collections.abc import Iterator

import numpy as np

from robots.arrays import Array
from robots.errors import NotRepresentableError
from robots.mechanism import WORLD, Body, Joint, JointClosure, Mechanism, WeldClosure

BASE = "world"
"""Name of the fixed link that all root bodies hang on."""
KINDS = {"hinge": "continuous", "slide": "prismatic"}
"""URDF's names of the joints."""
SPACING = float(np.finfo(float).eps)


def urdf(mechanism: Mechanism) -> str:
    """The spanning tree as URDF text, one element a line: PyBullet misreads very long lines.

    Links and joints are named by their index: `body3` moves with the last joint of body 3, `joint5` is joint 5.

    Raises:
        NotRepresentableError: If the mechanism has something that PyBullet cannot carry.
    """
    refuse(mechanism)
    lines = ['<?xml version="1.0"?>', '<robot name="mechanism">', f'<link name="{BASE}"/>']
    for b in range(len(mechanism.bodies)):
        lines += _body(mechanism, b)
    return "\n".join([*lines, "</robot>", ""])


def refuse(mechanism: Mechanism) -> None:
    """Raise for whatever of the mechanism would be lost.

    Raises:
        NotRepresentableError: It names the first such element.
    """
    for what in _lost(mechanism):
        raise NotRepresentableError(f"pybullet: {what}")


def anchor(mechanism: Mechanism, b: int) -> Array:
    """Origin of the link of a body, in the body frame [m], shape (3,): the anchor of its last joint."""
    joints = _joints(mechanism, b)
    return mechanism.joints[joints[-1]].anchor if joints else np.zeros(3)


def principal(body: Body) -> tuple[Array, Array]:
    """Principal moments of inertia [kg m²], shape (3,), and the axes as columns in the body frame [-], shape (3, 3).

    Bullet rejects a moment that exceeds the sum of the other two even by round-off, which those of a flat body may; the
    largest moment is kept a few units in the last place below.
    """
    moments, Q = np.linalg.eigh(body.inertia)
    Q[:, 0] *= np.linalg.det(Q)
    moments[2] = min(moments[2], (moments[0] + moments[1]) * (1 - 8 * SPACING))
    return moments, Q


def _lost(mechanism: Mechanism) -> Iterator[str]:
    for body in mechanism.bodies:
        if body.gravity_compensation:
            yield f"gravity compensation of body '{body.name}': its weight would be carried in full"
    for joint in mechanism.joints:
        if joint.kind not in KINDS:
            yield f"{joint.kind} joint '{joint.name}': only hinges and slides are carried"
        if joint.armature:
            yield f"armature of joint '{joint.name}': the inertia of its drive would be lost"
    for closure in mechanism.closures:
        if isinstance(closure, JointClosure):
            yield f"joint closure '{closure.name}': the joints would move freely"


def _joints(mechanism: Mechanism, b: int) -> list[int]:
    return [j for j, joint in enumerate(mechanism.joints) if joint.body == b]


def _body(mechanism: Mechanism, b: int) -> Iterator[str]:
    """The links and joints of a body."""
    body, joints = mechanism.bodies[b], _joints(mechanism, b)
    parent, R = (BASE, body.rotation) if body.parent == WORLD else (f"body{body.parent}", body.rotation)
    origin = np.zeros(3) if body.parent == WORLD else anchor(mechanism, body.parent)
    for j in joints[:-1]:
        yield f'<link name="between{j}"/>'
    yield from _link(f"body{b}", body, anchor(mechanism, b))
    start = body.position - origin  # where the frame of the body stands, from the origin of the parent's link
    for j in joints:
        pass
