"""Writes a mechanism as a URDF with its loops in one of five dialects, every number with 17 digits.

Gepetto's dialect carries the most: point and frame closures between links, motors, and balls. Frames of the links lie
at their joints; bodies with several joints become chains of massless links.
"""

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.catalogue import LOOP_DIALECTS
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.carried import effort_of
from loopcheck.robots.formats.linkage import GROUND, inverse
from loopcheck.robots.formats.linkage_from_mechanism import linkage_of, loops_of
from loopcheck.robots.formats.loop_files import Loop
from loopcheck.robots.formats.mjcf_writer import numbers
from loopcheck.robots.formats.rigid_frames import angles_of, of_axis, rigid_frame
from loopcheck.robots.formats.spec_loops import PIN, SECOND_POINT
from loopcheck.robots.mechanism import WORLD, Actuator, Body, Joint, Mechanism

GEPETTO, CONSTRAINT, ROBONEX, SOLIDWORKS, FUSION = LOOP_DIALECTS
WORLD_LINK = "world"
"""Name of the root link, which MuJoCo's reader takes for the world."""
ZERO_GAP = 1e-12
"""Largest gap of a loop that is closed with all joints at zero [m or -]."""
TYPES = {"slide": "prismatic", "ball": "revolute", "free": "floating"}
NO_LIMIT = 1e3
"""Velocity limit of joints [rad/s or m/s]: the format requires a number, a mechanism has none."""


@dataclass(slots=True)
class _Writer:
    """A URDF under construction."""

    mechanism: Mechanism
    robot: ET.Element
    taken: set[str] = field(default_factory=set)
    """Names of links and joints."""

    def unique(self, name: str) -> str:
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name

    def link(self, name: str, body: Body | None = None) -> None:
        """A link at the last joint of its body."""
        element = ET.SubElement(self.robot, "link", {"name": name})
        if body is not None and (body.mass or np.any(body.inertia)):
            inertial = ET.SubElement(element, "inertial")
            shift = self.shift(self.mechanism.bodies.index(body))
            ET.SubElement(inertial, "origin", {"xyz": numbers(body.center - shift), "rpy": "0 0 0"})
            ET.SubElement(inertial, "mass", {"value": numbers([body.mass])})
            I, axes = body.inertia, "xyz"
            moments = {f"i{axes[i]}{axes[k]}": numbers([I[i, k]]) for i in range(3) for k in range(i, 3)}
            ET.SubElement(inertial, "inertia", moments)

    def joint(self, name: str, kind: str, ends: tuple[str, str], X: Array) -> ET.Element:
        """A joint between two links, its origin as a frame."""
        element = ET.SubElement(self.robot, "joint", {"name": name, "type": kind})
        ET.SubElement(element, "parent", {"link": ends[0]})
        ET.SubElement(element, "child", {"link": ends[1]})
        ET.SubElement(element, "origin", {"xyz": numbers(X[:3, 3]), "rpy": numbers(angles_of(X[:3, :3]))})
        return element

    def shift(self, b: int) -> Array:
        """Origin of a body's link in the frame of the body [m], shape (3,)."""
        joints = [self.mechanism.joints[j] for j in self.mechanism.joints_of[b]] if b != WORLD else []
        return joints[-1].anchor if joints and joints[-1].kind != "free" else np.zeros(3)

    def link_of(self, b: int) -> str:
        """Name of a body's link."""
        return WORLD_LINK if b == WORLD else self.mechanism.bodies[b].name


def urdf_texts(mechanism: Mechanism, dialect: str = GEPETTO) -> tuple[str, str]:
    """A URDF and its loop file; the file is empty for loops in the URDF itself.

    Args:
        mechanism: The part that the format carries, see `loopcheck.robots.formats.carried`.
        dialect: A key of `DIALECTS`.

    Raises:
        MechanismError: If the dialect cannot state a loop or a ball joint.
    """
    import yaml

    writer = _Writer(mechanism, ET.Element("robot", {"name": mechanism.model.path.stem}))
    writer.taken |= {WORLD_LINK, *(body.name for body in mechanism.bodies), *(j.name for j in mechanism.joints)}
    writer.link(WORLD_LINK)
    for b, body in enumerate(mechanism.bodies):
        _write_body(writer, b, body)
    for actuator in mechanism.actuators:
        _write_transmission(writer, actuator)
    content = DIALECTS[dialect](writer)
    ET.indent(writer.robot)
    text = f'<?xml version="1.0"?>\n{ET.tostring(writer.robot, encoding="unicode")}\n'
    return text, yaml.safe_dump(content, sort_keys=False, allow_unicode=True) if content else ""


def _write_body(writer: _Writer, b: int, body: Body) -> None:
    """The link of a body, after a massless link for each of its joints but the last."""
    mechanism = writer.mechanism
    X = rigid_frame(body.position - writer.shift(body.parent), body.rotation)
    parent, before = writer.link_of(body.parent), np.zeros(3)
    joints = [mechanism.joints[j] for j in mechanism.joints_of[b]]
    for k, joint in enumerate(joints):
        is_last = k == len(joints) - 1
        child = body.name if is_last else writer.unique(f"{body.name}, after {joint.name}")
        writer.link(child, body if is_last else None)
        anchor = np.zeros(3) if joint.kind == "free" else joint.anchor
        X = X @ rigid_frame(anchor - before, np.eye(3))
        _write_joint(writer, joint, (parent, child), X @ _at_zero(joint))
        parent, before, X = child, anchor, np.eye(4)
    if not joints:
        writer.link(body.name, body)
        writer.joint(writer.unique(f"{body.name}, fixed"), "fixed", (parent, body.name), X)


def _at_zero(joint: Joint) -> Array:
    """Frame of a joint at zero in its frame at rest [m and -], shape (4, 4)."""
    if joint.kind == "hinge":
        return rigid_frame(np.zeros(3), of_axis(joint.axis, -joint.rest_position[0]))
    return rigid_frame(-joint.rest_position[0] * joint.axis if joint.kind == "slide" else np.zeros(3), np.eye(3))


def _write_joint(writer: _Writer, joint: Joint, ends: tuple[str, str], X: Array) -> None:
    kind = TYPES.get(joint.kind, "revolute" if joint.limits else "continuous")
    element = writer.joint(joint.name, kind, ends, X)
    if joint.kind == "free":
        return
    ET.SubElement(element, "axis", {"xyz": numbers(joint.axis) if joint.kind != "ball" else "1 0 0"})
    if joint.damping or joint.friction:
        ET.SubElement(element, "dynamics", {"damping": numbers([joint.damping]), "friction": numbers([joint.friction])})
    effort = next((effort_of(a) for a in writer.mechanism.actuators if a.coordinate.name == joint.name), None)
    limit = {} if joint.limits is None else dict(zip(("lower", "upper"), map(repr, joint.limits), strict=True))
    if limit or effort is not None or kind in ("revolute", "prismatic"):
        ET.SubElement(element, "limit", {**limit, "effort": numbers([effort or 0.0]), "velocity": numbers([NO_LIMIT])})
    for closure in writer.mechanism.coordinate_closures:
        if closure.follower.name == joint.name and closure.leader is not None:
            leader = writer.mechanism.joints[closure.leader.joints[0]]
            constant, slope = closure.coefficients[:2]
            offset = joint.rest_position[0] + constant - slope * leader.rest_position[0]
            ET.SubElement(
                element,
                "mimic",
                {"joint": leader.name, "multiplier": numbers([slope]), "offset": numbers([offset])},
            )


def _gepetto(writer: _Writer) -> dict[str, Any]:
    """Links at the ends of the loops: their names in pairs, and the kind of each loop."""
    pairs, kinds = [], []
    for loop in _loops(writer):
        ends = ((loop.parent, loop.parent_frame), (loop.child, loop.child_frame))
        points = [np.eye(4)]
        if loop.kind == "revolute":
            points.append(rigid_frame(PIN * loop.axis, np.eye(3)))
        for name, point in zip((loop.name, f"{loop.name}{SECOND_POINT}"), points, strict=False):
            pair = []
            for k, (link, X) in enumerate(ends):
                pair.append(writer.unique(f"{name}, end {k + 1}"))
                writer.link(pair[-1])
                writer.joint(writer.unique(f"{pair[-1]}, fixed"), "fixed", (link, pair[-1]), X @ point)
            pairs.append(pair)
            kinds.append("6d" if loop.kind == "fixed" else "3d")
    balls = _balls(writer)
    return {
        "closed_loop": pairs,
        "type": kinds,
        "name_mot": _motors(writer),
        "joint_name": balls,
        "joint_type": ["SPHERICAL"] * len(balls),
    }


def _constraints(writer: _Writer) -> dict[str, Any]:
    """Elements of the URDF itself."""
    _want_no_balls(writer, CONSTRAINT)
    for loop in _loops(writer):
        element = ET.SubElement(writer.robot, "constraint", {"name": loop.name, "type": loop.kind})
        for end, link, X in (("parent", loop.parent, loop.parent_frame), ("child", loop.child, loop.child_frame)):
            ET.SubElement(element, end, {"link": link})
            values = {"xyz": numbers(X[:3, 3]), "rpy": numbers(angles_of(X[:3, :3]))}
            ET.SubElement(element, f"{end}_origin", values)
            ET.SubElement(element, f"{end}_axis", {"xyz": numbers(loop.axis)})
    return {}


def _robonex(writer: _Writer) -> dict[str, Any]:
    """Points, and pins whose axis is the same in both links; other pins are two points."""
    pins, balls = [], []
    for loop in _loops(writer):
        if loop.kind == "fixed":
            raise MechanismError(f"loop '{loop.name}': {ROBONEX} has pins and balls, got a {loop.kind} loop")
        axes = [X[:3, :3] @ loop.axis for X in (loop.parent_frame, loop.child_frame)]
        points = [X[:3, 3] for X in (loop.parent_frame, loop.child_frame)]
        is_pin = loop.kind == "revolute" and bool(np.abs(axes[0] - axes[1]).max() <= np.finfo(float).eps)
        if is_pin:
            pins.append({**_entry(loop, loop.name, points), "axis": axes[0].tolist()})
            continue
        balls.append(_entry(loop, loop.name, points))
        if loop.kind == "revolute":
            ends = [point + PIN * axis for point, axis in zip(points, axes, strict=True)]
            balls.append(_entry(loop, f"{loop.name}{SECOND_POINT}", ends))
    return {
        "pin_loops": pins,
        "ball_loops": balls,
        "ball_upgrades": _balls(writer),
        "actuated_joints": _motors(writer),
    }


def _entry(loop: Loop, name: str, points: Sequence[Array]) -> dict[str, Any]:
    ends = {"parent": loop.parent, "child": loop.child}
    return {"name": name, **ends, "parent_xyz": points[0].tolist(), "child_xyz": points[1].tolist()}


def _solidworks(writer: _Writer) -> dict[str, Any]:
    """Pins, with point and axis in the base link, closed with all joints at zero."""
    _want_no_balls(writer, SOLIDWORKS)
    frames = _frames_at_zero(writer)
    base = inverse(frames["base_link" if "base_link" in frames else WORLD_LINK])
    closures = []
    for loop in _loops(writer):
        if loop.kind != "revolute":
            raise MechanismError(f"loop '{loop.name}': {SOLIDWORKS} has revolute loops only, got a {loop.kind} loop")
        X = base @ _closed(loop, frames, SOLIDWORKS)
        axis = (X[:3, :3] @ loop.axis).tolist()
        closures.append({"link_a": loop.parent, "link_b": loop.child, "point": X[:3, 3].tolist(), "axis": axis})
    return {"closures": closures, "independent": _motors(writer), "dependent": []}


def _fusion(writer: _Writer) -> dict[str, Any]:
    """Frames on the parents of loops that are closed with all joints at zero."""
    _want_no_balls(writer, FUSION)
    frames, motors = _frames_at_zero(writer), _motors(writer)
    joints = {
        joint.name: {"type": TYPES.get(joint.kind, "revolute"), "passive": joint.name not in motors}
        for joint in writer.mechanism.joints
    }
    closing = []
    for loop in _loops(writer):
        _closed(loop, frames, FUSION)
        closing.append(
            {
                "name": loop.name,
                "type": loop.kind,
                "parent": loop.parent,
                "child": loop.child,
                "origin_xyz_m": loop.parent_frame[:3, 3].tolist(),
                "origin_rpy_rad": angles_of(loop.parent_frame[:3, :3]).tolist(),
                "axis": loop.axis.tolist(),
            }
        )
    return {"joints": joints, "closing_joints": closing}


DIALECTS: Mapping[str, Callable[[_Writer], dict[str, Any]]] = {
    GEPETTO: _gepetto,
    CONSTRAINT: _constraints,
    ROBONEX: _robonex,
    SOLIDWORKS: _solidworks,
    FUSION: _fusion,
}
"""Content of the loop file by dialect; empty for loops in the URDF."""


def _loops(writer: _Writer) -> list[Loop]:
    """The loops, with frames on the links."""
    mechanism = writer.mechanism
    loops: list[Loop] = []
    names = {GROUND: WORLD, **{body.name: b for b, body in enumerate(mechanism.bodies)}}
    for loop in loops_of(mechanism):
        bodies = (names[loop.parent], names[loop.child])
        frames = [
            rigid_frame(-writer.shift(b), np.eye(3)) @ X
            for b, X in zip(bodies, (loop.parent_frame, loop.child_frame), strict=True)
        ]
        parent, child = (writer.link_of(b) for b in bodies)
        loops.append(replace(loop, parent=parent, child=child, parent_frame=frames[0], child_frame=frames[1]))
    return loops


def _frames_at_zero(writer: _Writer) -> dict[str, Array]:
    """Frames of the links in the world with all joints at zero [m and -], each of shape (4, 4)."""
    mechanism = writer.mechanism
    q = np.zeros(mechanism.nq)
    for joint, at in zip(mechanism.joints, mechanism.q_slices, strict=True):
        if joint.kind == "free":
            q[at] = joint.rest_position
    shifts = {body.name: writer.shift(b) for b, body in enumerate(mechanism.bodies)}
    frames = {link.name: link.X for link in linkage_of(mechanism, q).links}
    links = {name: frames[name] @ rigid_frame(shift, np.eye(3)) for name, shift in shifts.items()}
    return {WORLD_LINK: np.eye(4), **links}


def _closed(loop: Loop, frames: Mapping[str, Array], dialect: str) -> Array:
    """Frame of a loop in the world with all joints at zero [m and -], shape (4, 4).

    Raises:
        MechanismError: If the loop is open there.
    """
    X, other = frames[loop.parent] @ loop.parent_frame, frames[loop.child] @ loop.child_frame
    turned = (X[:3, :3] - other[:3, :3]) @ (loop.axis if loop.kind == "revolute" else np.eye(3))
    gaps = np.abs(X[:3, 3] - other[:3, 3]).max(), 0.0 if loop.kind == "spherical" else np.abs(turned).max()
    if max(gaps) > ZERO_GAP:
        raise MechanismError(
            f"loop '{loop.name}': must be closed with all joints at zero for {dialect}, got a gap of {max(gaps):.1e}. "
            f"Use --loops {GEPETTO} or {CONSTRAINT}"
        )
    return np.asarray(X)


def _balls(writer: _Writer) -> list[str]:
    return [joint.name for joint in writer.mechanism.joints if joint.kind == "ball"]


def _want_no_balls(writer: _Writer, dialect: str) -> None:
    if balls := _balls(writer):
        raise MechanismError(
            f"ball joints {', '.join(balls)}: not stated by {dialect}. Use --loops {GEPETTO} or {ROBONEX}"
        )


def _motors(writer: _Writer) -> list[str]:
    return [actuator.coordinate.name for actuator in writer.mechanism.actuators]


def _write_transmission(writer: _Writer, actuator: Actuator) -> None:
    element = ET.SubElement(writer.robot, "transmission", {"name": actuator.name})
    ET.SubElement(element, "type").text = "transmission_interface/SimpleTransmission"
    ET.SubElement(element, "joint", {"name": actuator.coordinate.name})
    motor = ET.SubElement(element, "actuator", {"name": actuator.name})
    ET.SubElement(motor, "mechanicalReduction").text = numbers([actuator.gear])
