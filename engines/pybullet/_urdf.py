"""Writes the spanning tree of a `Mechanism` as URDF text that PyBullet reads without loss.

A link moves with each joint: its axes are those of the body, its origin is the anchor of the joint. All but the last
link of a body with several joints are massless. Inertias are given in principal axes: Bullet keeps a diagonal only. It
has no armature: that becomes the inertia of a rotor on the base, to be geared to its joint one to one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loopcheck.engines.mechanics import BALL_OR_FREE
from loopcheck.robots.arrays import Array, frozen
from loopcheck.robots.formats.mjcf_writer import numbers
from loopcheck.robots.mechanism import WORLD, Body, Joint, Mechanism

Z = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotor:
    """A chain of hinges that are geared to joints, with a round inertia at its end."""

    joints: tuple[int, ...]
    """Indices of the joints in the mechanism without balls, of the first hinge on."""
    axes: Array
    """Axes of the hinges in the unrotated pose [-], shape (joints, 3)."""
    inertia: float
    """Each principal moment of the last link [kg m²]."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", frozen(self.axes, (len(self.joints), 3), name="rotor, axes"))


def rotors(mechanism: Mechanism) -> tuple[Rotor, ...]:
    """The rotors of all joints of a mechanism.

    Args:
        mechanism: Robot, with its balls.
    """
    return tuple(
        rotor
        for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True)
        for rotor in _of_joint(joint, dofs)
    )


def _of_joint(joint: Joint, dofs: slice) -> Iterator[Rotor]:
    if not joint.armature:
        return
    turning = tuple(range(dofs.stop - 3, dofs.stop)) if joint.kind in BALL_OR_FREE else ()
    for j in range(dofs.start, dofs.stop - len(turning)):
        yield Rotor(joints=(j,), axes=Z[None], inertia=joint.armature)
    if turning:
        yield Rotor(joints=turning, axes=np.eye(3), inertia=joint.armature)


BASE = "base"
"""Name of the fixed link that all root bodies hang on: the world."""
KINDS: Mapping[str, str] = {"hinge": "continuous", "slide": "prismatic"}
"""URDF's names of the joints."""
FLAT = 8 * float(np.finfo(float).eps)
"""Margin between the largest principal moment of a body and the sum of the two smaller moments [-]."""
NOWHERE, UPRIGHT = np.zeros(3), np.eye(3)


def urdf(mechanism: Mechanism, rotors: Sequence[Rotor]) -> str:
    """The spanning tree as URDF text, one element a line because PyBullet misreads very long lines.

    The link of body 3 is called `body3`, joint 5 is called `joint5`, and the first hinge of rotor 2 `rotor2.0`.

    Args:
        mechanism: Robot, with hinges and slides only.
    """
    lines = [*_link(BASE, 0.0, NOWHERE)]
    for b in range(len(mechanism.bodies)):
        lines += _body(mechanism, b)
    for k, rotor in enumerate(rotors):
        lines += _rotor(k, rotor)
    return "\n".join(['<robot name="mechanism">', *lines, "</robot>", ""])


def origin_of_link(mechanism: Mechanism, body: int) -> Array:
    """Origin of the link of a body or of the world in its frame [m], shape (3,): the anchor of its last joint."""
    anchors = [joint.anchor for joint in mechanism.joints if joint.body == body]
    return anchors[-1] if anchors else NOWHERE


def principal(body: Body) -> tuple[Array, Array]:
    """Principal moments of inertia [kg m²], shape (3,), and their axes in the body frame as columns [-], shape (3, 3).

    Bullet sets all moments to zero if a moment exceeds the sum of the others, as by round-off for a flat body.
    """
    moments, Q = np.linalg.eigh(body.inertia)
    Q[:, 0] *= np.sign(np.linalg.det(Q))
    moments[2] = min(moments[2], (moments[0] + moments[1]) * (1 - FLAT))
    return moments, Q


def _body(mechanism: Mechanism, b: int) -> Iterator[str]:
    """The links of a body and the joints that lead to them; a body without joints is fixed to its parent."""
    body = mechanism.bodies[b]
    parent = BASE if body.parent == WORLD else f"body{body.parent}"
    start, R = body.position - origin_of_link(mechanism, body.parent), body.rotation
    joints = [(j, joint) for j, joint in enumerate(mechanism.joints) if joint.body == b]
    moments, Q = principal(body)
    yield from _link(f"body{b}", body.mass, moments, _origin(body.center - origin_of_link(mechanism, b), Q))
    if not joints:
        yield from _joint(f"fixed{b}", "fixed", (parent, f"body{b}"), _origin(start, R))
    for j, joint in joints:
        last = j == joints[-1][0]
        child = f"body{b}" if last else f"behind{j}"
        if not last:
            yield from _link(child, 0.0, NOWHERE)
        origin = _origin(start + R @ joint.anchor, R)
        yield from _joint(f"joint{j}", KINDS[joint.kind], (parent, child), origin, *_movement(joint))
        parent, start, R = child, -joint.anchor, UPRIGHT


def _rotor(k: int, rotor: Rotor) -> Iterator[str]:
    """Links that turn about the mass centre of the last, which is fixed: neither weight nor reaction enters."""
    parent = BASE
    for i, axis in enumerate(rotor.axes):
        child = f"drive{k}.{i}"
        last = i == len(rotor.axes) - 1
        yield from _link(child, 0.0, np.full(3, rotor.inertia) if last else NOWHERE)
        movement = f'<axis xyz="{numbers(axis)}"/>'
        yield from _joint(f"rotor{k}.{i}", "continuous", (parent, child), _origin(NOWHERE, UPRIGHT), movement)
        parent = child


def _link(name: str, mass: float, moments: Array, origin: str = "") -> Iterator[str]:
    ixx, iyy, izz = (repr(float(moment)) for moment in moments)
    yield f'<link name="{name}">'
    yield "<inertial>"
    yield origin or _origin(NOWHERE, UPRIGHT)
    yield f'<mass value="{mass!r}"/>'
    yield f'<inertia ixx="{ixx}" ixy="0" ixz="0" iyy="{iyy}" iyz="0" izz="{izz}"/>'
    yield "</inertial>"
    yield "</link>"


def _joint(name: str, kind: str, links: tuple[str, str], *elements: str) -> Iterator[str]:
    yield f'<joint name="{name}" type="{kind}">'
    yield f'<parent link="{links[0]}"/>'
    yield f'<child link="{links[1]}"/>'
    yield from elements
    yield "</joint>"


def _movement(joint: Joint) -> Iterator[str]:
    """Axis, damping, and disabled limits: the lower is above the upper."""
    yield f'<axis xyz="{numbers(joint.axis)}"/>'
    yield f'<dynamics damping="{joint.damping!r}" friction="0"/>'
    yield '<limit lower="1" upper="-1" effort="0" velocity="0"/>'


def _origin(position: Array, R: Array) -> str:
    return f'<origin xyz="{numbers(position)}" rpy="{numbers(_roll_pitch_yaw(R))}"/>'


def _roll_pitch_yaw(R: Array) -> Array:
    """Angles with R = Rz(yaw) Ry(pitch) Rx(roll) [rad], shape (3,); as exact at a pitch of 90°."""
    yaw = np.arctan2(R[1, 0], R[0, 0])
    pitch = np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0]))
    s, c = np.sin(yaw), np.cos(yaw)
    roll = np.arctan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1])
    return np.array([roll, pitch, yaw])
