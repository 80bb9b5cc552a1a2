"""Writes a mechanism as a URDF with a loop file in Gepetto's dialect, every number with 17 digits.

Gepetto's dialect carries the most: point and frame closures between links, motors, and balls. Frames of the links lie
at their joints; bodies with several joints become chains of massless links.
"""

import xml.etree.ElementTree as ET
from dataclasses import dataclass, field

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.carried import effort_of
from loopcheck.robots.mechanism import (
    WORLD,
    Actuator,
    Body,
    Joint,
    Mechanism,
    WeldClosure,
)
from loopcheck.robots.mjcf_writer import numbers
from loopcheck.robots.rigid_frames import angles_of, of_axis, rigid_frame

WORLD_LINK = "world"
"""Name of the root link, which MuJoCo's reader takes for the world."""
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


def urdf_texts(mechanism: Mechanism) -> tuple[str, str]:
    """A URDF and its loop file.

    Args:
        mechanism: The part that the format carries, see `loopcheck.robots.carried`.
    """
    import yaml

    writer = _Writer(mechanism, ET.Element("robot", {"name": mechanism.model.path.stem}))
    writer.taken |= {WORLD_LINK, *(body.name for body in mechanism.bodies), *(j.name for j in mechanism.joints)}
    writer.link(WORLD_LINK)
    for b, body in enumerate(mechanism.bodies):
        _write_body(writer, b, body)
    pairs, kinds = _write_ends(writer)
    for actuator in mechanism.actuators:
        _write_transmission(writer, actuator)
    balls = [joint.name for joint in mechanism.joints if joint.kind == "ball"]
    loops = {
        "closed_loop": pairs,
        "type": kinds,
        "name_mot": [actuator.coordinate.name for actuator in mechanism.actuators],
        "joint_name": balls,
        "joint_type": ["SPHERICAL"] * len(balls),
    }
    ET.indent(writer.robot)
    text = f'<?xml version="1.0"?>\n{ET.tostring(writer.robot, encoding="unicode")}\n'
    return text, yaml.safe_dump(loops, sort_keys=False, allow_unicode=True)


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


def _write_ends(writer: _Writer) -> tuple[list[list[str]], list[str]]:
    """Links at the ends of the loops: their names in pairs, and the kind of each loop."""
    pairs, kinds = [], []
    for closure in writer.mechanism.rigid_closures:
        is_weld = isinstance(closure, WeldClosure)
        R = closure.rotation if isinstance(closure, WeldClosure) else np.eye(3)
        places = ((closure.body1, closure.point1, R), (closure.body2, closure.point2, np.eye(3)))
        pair = []
        for k, (b, point, rotation) in enumerate(places):
            pair.append(writer.unique(f"{closure.name}, end {k + 1}"))
            writer.link(pair[-1])
            X = rigid_frame(point - writer.shift(b), rotation)
            writer.joint(writer.unique(f"{pair[-1]}, fixed"), "fixed", (writer.link_of(b), pair[-1]), X)
        pairs.append(pair)
        kinds.append("6d" if is_weld else "3d")
    return pairs, kinds


def _write_transmission(writer: _Writer, actuator: Actuator) -> None:
    element = ET.SubElement(writer.robot, "transmission", {"name": actuator.name})
    ET.SubElement(element, "type").text = "transmission_interface/SimpleTransmission"
    ET.SubElement(element, "joint", {"name": actuator.coordinate.name})
    motor = ET.SubElement(element, "actuator", {"name": actuator.name})
    ET.SubElement(motor, "mechanicalReduction").text = numbers([actuator.gear])
