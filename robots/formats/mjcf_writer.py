"""Writes a mechanism as MJCF, every number with 17 digits (`MjSpec.to_xml` writes 6)."""

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import assert_never

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.formats.rigid_frames import quaternion
from loopcheck.robots.mechanism import (
    WORLD,
    Actuator,
    Body,
    ConnectClosure,
    Coordinate,
    CoordinateClosure,
    Joint,
    Mechanism,
    WeldClosure,
)

LEAST_MOMENT = 1e-12
"""Smallest principal moment [kg m²] above which MuJoCo takes an inertia that is not diagonal."""
ON_JOINT = "actuatorfrcrange"
"""Effort limit that MJCF has on the joint, not on the actuator."""


def numbers(values: Iterable[float]) -> str:
    """Numbers as text that is read back to the last bit.

    Args:
        values: Any numbers [any unit].
    """
    return " ".join(repr(float(value)) for value in values)


def mjcf_text(mechanism: Mechanism) -> str:
    """The mechanism as MJCF: everything but constant external wrenches and reference efforts.

    Loops join sites, so that they do not depend on the pose of the file.
    """
    root = ET.Element("mujoco", {"model": mechanism.model.path.stem})
    ET.SubElement(root, "compiler", {"angle": "radian", "autolimits": "true", "inertiafromgeom": "false"})
    ET.SubElement(root, "option", {"gravity": numbers(mechanism.gravity)})
    elements = {WORLD: ET.SubElement(root, "worldbody")}
    for b, body in enumerate(mechanism.bodies):
        elements[b] = _add_body(elements[body.parent], mechanism, b, body)
    ends = _add_sites(elements, mechanism)
    tendons = ET.SubElement(root, "tendon")
    _add_tendons(tendons, elements, mechanism)
    _add_equalities(ET.SubElement(root, "equality"), mechanism, ends)
    actuators = ET.SubElement(root, "actuator")
    for actuator in mechanism.actuators:
        _add_actuator(actuators, mechanism, actuator)
    keys = ET.SubElement(root, "keyframe")
    for name, q in mechanism.keyframes.items():
        ET.SubElement(keys, "key", {"name": name, "qpos": numbers(q)})
    for group in list(root):
        if not len(group) and not group.attrib:
            root.remove(group)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode") + "\n"


def _add_body(parent: ET.Element, mechanism: Mechanism, b: int, body: Body) -> ET.Element:
    element = ET.SubElement(parent, "body", {"name": body.name, **_pose(body.position, body.rotation)})
    if body.gravity_compensation:
        element.set("gravcomp", numbers([body.gravity_compensation]))
    values = {"pos": numbers(body.center), "mass": numbers([body.mass]), **_inertia(body.inertia)}
    ET.SubElement(element, "inertial", values)
    for j in mechanism.joints_of[b]:
        _add_joint(element, mechanism, j, mechanism.joints[j])
    return element


def _inertia(I: Array) -> dict[str, str]:
    moments, axes = np.linalg.eigh(I)
    if moments[0] > LEAST_MOMENT:
        return {"fullinertia": numbers((I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]))}
    axes[:, 2] *= np.linalg.det(axes)  # a rotation, not a reflection
    return {"quat": numbers(quaternion(axes)), "diaginertia": numbers(np.maximum(moments, 0.0))}


def _add_joint(element: ET.Element, mechanism: Mechanism, j: int, joint: Joint) -> None:
    attributes = {"name": joint.name, "type": joint.kind}
    scalars = {
        "armature": joint.armature,
        "damping": joint.damping,
        "stiffness": joint.stiffness,
        "frictionloss": joint.friction,
    }
    if joint.kind in ("hinge", "slide"):
        scalars |= {"ref": joint.rest_position[0], "springref": joint.spring_reference[0]}
        attributes["axis"] = numbers(joint.axis)
    if joint.kind != "free":
        attributes["pos"] = numbers(joint.anchor)
    if joint.limits:
        attributes["range"] = numbers(joint.limits)
    for actuator in mechanism.actuators:
        for limit in actuator.limits:
            if limit.name == ON_JOINT and actuator.coordinate.is_joint and actuator.coordinate.joints == (j,):
                attributes[ON_JOINT] = numbers(sorted((limit.low * actuator.gear, limit.high * actuator.gear)))
    attributes |= {name: numbers([value]) for name, value in scalars.items() if value}
    ET.SubElement(element, "joint", attributes)


def _add_sites(elements: dict[int, ET.Element], mechanism: Mechanism) -> dict[str, tuple[str, str]]:
    """Add the sites of the mechanism and of its loops, and return the names of the latter by closure."""
    ends = {closure.name: (f"{closure.name}, end 1", f"{closure.name}, end 2") for closure in mechanism.rigid_closures}
    taken = {name for pair in ends.values() for name in pair}
    for site in mechanism.sites:
        if site.name not in taken:
            ET.SubElement(elements[site.body], "site", {"name": site.name, "pos": numbers(site.position)})
    for closure in mechanism.rigid_closures:
        R = closure.rotation if isinstance(closure, WeldClosure) else np.eye(3)
        places = ((closure.body1, closure.point1, R), (closure.body2, closure.point2, np.eye(3)))
        for name, (body, point, rotation) in zip(ends[closure.name], places, strict=True):
            ET.SubElement(elements[body], "site", {"name": name, **_pose(point, rotation)})
    return ends


def _add_tendons(tendons: ET.Element, elements: dict[int, ET.Element], mechanism: Mechanism) -> None:
    for tendon in mechanism.tendons:
        scalars = {"armature": tendon.armature, "damping": tendon.damping, "stiffness": tendon.stiffness}
        attributes = {"name": tendon.name, **{key: numbers([value]) for key, value in scalars.items() if value}}
        if tendon.stiffness:
            attributes["springlength"] = numbers(tendon.rest)
        element = ET.SubElement(tendons, "fixed", attributes)
        for j, weight in zip(tendon.length.joints, tendon.length.weights, strict=True):
            ET.SubElement(element, "joint", {"joint": mechanism.joints[j].name, "coef": numbers([weight])})
    for spring in mechanism.point_springs:
        scalars = {"damping": spring.damping, "stiffness": spring.stiffness}
        attributes = {key: numbers([value]) for key, value in scalars.items() if value}
        element = ET.SubElement(
            tendons, "spatial", {"name": spring.name, "springlength": numbers(spring.rest), **attributes}
        )
        for k, (body, point) in enumerate(spring.ends):
            name = f"{spring.name}, end {k + 1}"
            ET.SubElement(elements[body], "site", {"name": name, "pos": numbers(point)})
            ET.SubElement(element, "site", {"site": name})


def _add_equalities(equalities: ET.Element, mechanism: Mechanism, ends: dict[str, tuple[str, str]]) -> None:
    for closure in mechanism.loop_closures:
        match closure:
            case ConnectClosure() | WeldClosure():
                site1, site2 = ends[closure.name]
                tag = "connect" if isinstance(closure, ConnectClosure) else "weld"
                ET.SubElement(equalities, tag, {"name": closure.name, "site1": site1, "site2": site2})
            case CoordinateClosure():
                tag = _kind(mechanism, closure.follower)
                names = {f"{tag}1": closure.follower.name}
                if closure.leader is not None:
                    names[f"{tag}2"] = closure.leader.name
                ET.SubElement(
                    equalities, tag, {"name": closure.name, **names, "polycoef": numbers(closure.coefficients)}
                )
            case _:
                assert_never(closure)


def _add_actuator(actuators: ET.Element, mechanism: Mechanism, actuator: Actuator) -> None:
    attributes = {"name": actuator.name, _kind(mechanism, actuator.coordinate): actuator.coordinate.name}
    limits = {limit.name: numbers((limit.low, limit.high)) for limit in actuator.limits if limit.name != ON_JOINT}
    ET.SubElement(actuators, "motor", {**attributes, "gear": numbers([actuator.gear]), **limits})


def _kind(mechanism: Mechanism, coordinate: Coordinate) -> str:
    """Element that the coordinate is: a tendon may have a single joint of weight 1."""
    is_joint = coordinate.is_joint and mechanism.joints[coordinate.joints[0]].name == coordinate.name
    return "joint" if is_joint else "tendon"


def _pose(position: Array, rotation: Array) -> dict[str, str]:
    attributes = {"pos": numbers(position)}
    if not np.array_equal(rotation, np.eye(3)):
        attributes["quat"] = numbers(quaternion(rotation))
    return attributes
