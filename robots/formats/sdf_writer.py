"""Writes links and joints as SDF 1.11, every number with 17 digits.

All loops are closed in the pose of the file, so that joints in loops need no second frame. Attributes `loopcheck:*`
have what the format has no element for and other readers ignore: names of joints, the position of each joint in the
pose of the file, and the joints that close loops. Limits, springs and mimics of the format are relative to that pose.
"""

import xml.etree.ElementTree as ET
from collections.abc import Mapping

from loopcheck.robots.arrays import Array
from loopcheck.robots.formats.linkage import UNLIMITED, Connection, Link, Linkage, positions_of, with_ground
from loopcheck.robots.formats.mjcf_writer import numbers
from loopcheck.robots.formats.rigid_frames import angles_of
from loopcheck.robots.formats.sdf import PREFIX

VERSION = "1.11"
"""The first with mimic joints."""
TYPES = {"spherical": "ball", "universal": "universal", "fixed": "fixed", "prismatic": "prismatic"}
DRIVE = {"filename": "gz-sim-apply-joint-force-system", "name": "gz::sim::systems::ApplyJointForce"}


def sdf_text(linkage: Linkage) -> str:
    """A linkage as SDF with a world.

    Args:
        linkage: Its loops are closed in its pose.
    """
    root = ET.Element("sdf", {"version": VERSION, f"xmlns:{PREFIX[:-1]}": "urn:loopcheck"})
    world = ET.SubElement(root, "world", {"name": "default"})
    ET.SubElement(world, "gravity").text = numbers(linkage.gravity)
    model = ET.SubElement(world, "model", {"name": linkage.path.stem})
    for link in linkage.links:
        _add_link(model, link)
    links = with_ground(linkage)
    taken = {link.name for link in linkage.links}
    names = {}
    for connection in linkage.connections:
        names[connection.name] = _unique(connection.name, taken)
    positions = {c.name: q[0] for c in linkage.connections if (q := positions_of(c, links))}
    for connection in linkage.connections:
        _add_joint(model, connection, names, positions)
    for motor in linkage.motors:
        plugin = ET.SubElement(model, "plugin", DRIVE)
        ET.SubElement(plugin, "joint_name").text = names[motor.joint]
        ET.SubElement(plugin, "actuator").text = motor.name
        ET.SubElement(plugin, "gear").text = numbers([motor.gear])
    ET.indent(root)
    return f'<?xml version="1.0"?>\n{ET.tostring(root, encoding="unicode")}\n'


def _unique(name: str, taken: set[str]) -> str:
    """A name that no link and no other joint has: the format has one set of names for both."""
    while name in taken:
        name += "_joint"
    taken.add(name)
    return name


def _pose(parent: ET.Element, X: Array) -> None:
    ET.SubElement(parent, "pose").text = numbers([*X[:3, 3], *angles_of(X[:3, :3])])


def _add_link(model: ET.Element, link: Link) -> None:
    element = ET.SubElement(model, "link", {"name": link.name})
    if link.free_joint:
        element.set(f"{PREFIX}free_joint", link.free_joint)
    _pose(element, link.X)
    inertial = ET.SubElement(element, "inertial")
    ET.SubElement(inertial, "pose").text = numbers([*link.center, 0.0, 0.0, 0.0])
    ET.SubElement(inertial, "mass").text = numbers([link.mass])
    inertia = ET.SubElement(inertial, "inertia")
    for i in range(3):
        for k in range(i, 3):
            ET.SubElement(inertia, f"i{'xyz'[i]}{'xyz'[k]}").text = numbers([link.inertia[i, k]])


def _add_joint(
    model: ET.Element, connection: Connection, names: Mapping[str, str], positions: Mapping[str, Array]
) -> None:
    kind = TYPES.get(connection.kind, "revolute" if connection.limits else "continuous")
    element = ET.SubElement(model, "joint", {"name": names[connection.name], "type": kind})
    if names[connection.name] != connection.name:
        element.set(f"{PREFIX}name", connection.name)
    ET.SubElement(element, "parent").text = connection.parent
    ET.SubElement(element, "child").text = connection.child
    _pose(element, connection.child_frame)
    if connection.closes_loop:
        element.set(f"{PREFIX}closes_loop", "true")
    position = positions.get(connection.name)
    if position is not None and not connection.closes_loop:
        element.set(f"{PREFIX}position", numbers(position))
    if connection.kind in ("fixed", "spherical"):
        return
    at = 0.0 if position is None or connection.closes_loop else float(position[0])
    axis = ET.SubElement(element, "axis")
    ET.SubElement(axis, "xyz").text = numbers(connection.axis)
    _add_forces(axis, connection, at)
    mimic = connection.mimic
    if mimic is not None:
        leader = float(positions[mimic.leader][0])
        follows = ET.SubElement(axis, "mimic", {"joint": names[mimic.leader]})
        ET.SubElement(follows, "multiplier").text = numbers([mimic.multiplier])
        ET.SubElement(follows, "offset").text = numbers([mimic.offset + mimic.multiplier * leader - at])
        ET.SubElement(follows, "reference").text = "0"


def _add_forces(axis: ET.Element, connection: Connection, at: float) -> None:
    """Limits and forces of an axis.

    Args:
        at: Position of the joint in the pose of the file [m or rad].
    """
    limit = ET.SubElement(axis, "limit")
    for tag, value in zip(("lower", "upper"), connection.limits or (), strict=False):
        ET.SubElement(limit, tag).text = numbers([value - at if abs(value) < UNLIMITED else value])
    if connection.effort is not None:
        ET.SubElement(limit, "effort").text = numbers([connection.effort])
    dynamics = ET.SubElement(axis, "dynamics")
    forces = {
        "damping": connection.damping,
        "friction": connection.friction,
        "spring_reference": connection.spring_reference - at if connection.stiffness else 0.0,
        "spring_stiffness": connection.stiffness,
    }
    for tag, value in forces.items():
        if value:
            ET.SubElement(dynamics, tag).text = numbers([value])
