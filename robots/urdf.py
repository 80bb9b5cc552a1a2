"""Reads a URDF with its loops into an `MjSpec`, through MuJoCo's own reader of URDF.

MuJoCo's reader makes the tree. It drops `<constraint>` and everything in loop files; both are added here. Geometry is
left out: inertias of a URDF are stated, so meshes need not be there. The root link is fixed to the world.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError, ParserCreate

import mujoco
import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.robots.loop_files import (
    Links,
    Loop,
    Loops,
    frame,
    loop_file_of,
    loop_kind,
    read_loops,
    with_constraints,
)
from loopcheck.robots.rigid_frames import of_quaternion, quaternion, rigid_frame
from loopcheck.robots.spec_elements import add_closure, add_joint, add_motor, add_polynomial

ROOT = "robot"
"""Root element of a URDF."""
COMPILER = {"fusestatic": "false", "inertiafromgeom": "false", "balanceinertia": "false"}
"""Settings of MuJoCo's reader: keep every link, and every inertia as it is written."""
PIN = 0.1
"""Distance of the two points that make a revolute loop [m]."""
HEAD = 4096
"""Length of the beginning of a file in which its root element is looked for [byte]."""
OF_JOINTS = ("axis", "pos", "range", "limited", "damping", "frictionloss", "actfrcrange", "actfrclimited")
"""Attributes of a joint that MuJoCo's reader sets."""
ENDS = ("parent", "child")
AXES = {"X": np.array([1.0, 0.0, 0.0]), "Y": np.array([0.0, 1.0, 0.0]), "Z": np.array([0.0, 0.0, 1.0])}


@dataclass(frozen=True, slots=True)
class _Document:
    """A URDF with the line of each element."""

    path: Path
    root: ET.Element
    lines: Mapping[ET.Element, int]

    def where(self, element: ET.Element) -> str:
        return f"{self.path}:{self.lines[element]}: {element.tag} '{element.get('name', '')}'"

    def text_of(self, element: ET.Element, child: str, attribute: str) -> str:
        """An attribute of a child element.

        Raises:
            MechanismError: If it is missing.
        """
        found = element.find(child)
        if found is None or not found.get(attribute):
            raise MechanismError(f"{self.where(element)}: must have <{child} {attribute}=...>")
        return str(found.get(attribute))


def is_urdf(path: Path) -> bool:
    """Whether a file is a URDF, by its name or its root element."""
    if path.suffix.lower() == ".urdf":
        return True
    if path.suffix.lower() != ".xml" or not path.is_file():
        return False
    with path.open("rb") as file:
        return f"<{ROOT}".encode() in file.read(HEAD)


def want_mjcf(path: Path) -> None:
    """Refuse a URDF where settings of MuJoCo are to be written.

    Raises:
        MechanismError: If the file is a URDF; the message names the conversion.
    """
    if is_urdf(path):
        raise MechanismError(
            f"{path}: settings of a simulation must be written into an MJCF, got a URDF. Run: loopcheck convert "
            f"{path.name} {path.stem}.xml"
        )


def files_of_urdf(path: Path) -> tuple[Path, ...]:
    """A URDF and its loop file."""
    loops = loop_file_of(path) if path.is_file() else None
    return (path, loops) if loops else (path,)


def left_out_of(path: Path) -> tuple[str, ...]:
    """Features of a URDF that no source takes into account, and what a tree lacks, a sentence each."""
    document = _read(path)
    loops = loop_file_of(path)
    notes = [f"visual and collision geometry of {len(document.root.findall('link'))} links"]
    if loops is None and document.root.find("constraint") is None:
        notes.append(
            "loops: the URDF is a tree, without <constraint> and without a loop file beside it (robot.yaml, "
            "loop_closures.yaml or robot_data.yaml)"
        )
    return tuple(notes)


def urdf_spec(path: Path) -> Any:
    """The URDF with its loops as an editable `MjSpec`.

    Raises:
        MechanismError: If it is not a URDF, is not expanded from xacro, or is not a tree of its links.
        NotFoundError: If a loop or a motor names a link or a joint that the URDF does not have.
    """
    document = _read(path)
    root = _root_link(document)
    try:
        spec = mujoco.MjSpec.from_string(_tree_text(document))
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise MechanismError(f"{path}: MuJoCo's reader of URDF rejected the file: {reason}") from error
    links = Links(
        frames={str(link.get("name")): _pose_of(spec.body(link.get("name"))) for link in document.root.iter("link")},
        joints={
            str(joint.get("name")): document.text_of(joint, "child", "link") for joint in document.root.findall("joint")
        },
        root=root,
    )
    file = loop_file_of(path)
    loops = with_constraints(read_loops(file, links) if file else Loops(), _constraints(document, links))
    _replace_joints(spec, loops, file)
    _add_mimics(document, spec, loops)
    for loop in loops.loops:
        _close(spec, loop)
    _sink_joints(spec, {link for loop in loops.loops for link in (loop.parent, loop.child)})
    _add_motors(document, spec, loops)
    return spec


def _read(path: Path) -> _Document:
    builder, parser = ET.TreeBuilder(), ParserCreate()
    lines: dict[ET.Element, int] = {}

    def start(tag: str, attributes: dict[str, str]) -> None:
        lines[builder.start(tag, attributes)] = parser.CurrentLineNumber

    parser.StartElementHandler, parser.EndElementHandler = start, builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(path.read_bytes(), True)
    except (OSError, ExpatError) as error:
        raise MechanismError(f"{path}: must be a readable XML file: {error}") from error
    root = builder.close()
    if root.tag != ROOT:
        raise MechanismError(f"{path}: the root element of a URDF must be <{ROOT}>, got <{root.tag}>")
    xacro = next((element for element in root.iter() if element.tag.startswith("xacro:")), None)
    if xacro is not None:
        raise MechanismError(
            f"{path}:{lines[xacro]}: xacro must be expanded, got <{xacro.tag}>. Run: xacro {path.name} > expanded.urdf"
        )
    return _Document(path, root, lines)


def _root_link(document: _Document) -> str:
    """Name of the root link of a tree, with a message for everything that is none."""
    links = [link.get("name") for link in document.root.findall("link")]
    parents: dict[str, ET.Element] = {}
    for joint in document.root.findall("joint"):
        for end in ("parent", "child"):
            name = document.text_of(joint, end, "link")
            if name not in links:
                raise NotFoundError(f"{end} link at {document.where(joint)}", name, map(str, links))
        child = document.text_of(joint, "child", "link")
        if child in parents:
            raise MechanismError(
                f"{document.where(joint)}: link '{child}' must have a single parent joint, got another in line "
                f"{document.lines[parents[child]]}. A URDF is a tree: write the joint that closes the loop as "
                "<constraint> or in a loop file"
            )
        parents[child] = joint
    for kind in ("link", "joint"):
        names = [element.get("name") for element in document.root.findall(kind)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise MechanismError(f"{document.path}: names of {kind}s must be unique, got '{twice}' twice")
    roots = [str(link) for link in links if link not in parents]
    if len(roots) != 1:
        raise MechanismError(
            f"{document.path}: must have a single root link, got {', '.join(roots) or 'none'}. Connect the others with "
            "fixed joints"
        )
    return roots[0]


def _tree_text(document: _Document) -> str:
    """The links and joints alone, without geometry and mimics, with the settings of MuJoCo's reader."""
    robot = ET.Element(ROOT, {"name": document.root.get("name") or document.path.stem})
    ET.SubElement(ET.SubElement(robot, "mujoco"), "compiler", COMPILER)
    kept = {"link": {"inertial"}, "joint": {"parent", "child", "origin", "axis", "limit", "dynamics"}}
    for element in document.root:
        if element.tag in kept:
            copy = ET.SubElement(robot, element.tag, element.attrib)
            copy.extend(child for child in element if child.tag in kept[element.tag])
    return ET.tostring(robot, encoding="unicode")


def _pose_of(body: Any) -> Array:
    """Pose of a body in the world with all joints at zero [m and -], shape (4, 4)."""
    X = np.eye(4)
    while body.name != "world":
        X = rigid_frame(body.pos, of_quaternion(body.quat)) @ X
        body = body.parent
    return X


def _constraints(document: _Document, links: Links) -> Iterator[Loop]:
    for element in document.root.findall("constraint"):
        where = document.where(element)
        (parent, _), (child, _) = (links.frame(document.text_of(element, end, "link"), where) for end in ENDS)
        axes = [_numbers(document, element, f"{end}_axis", "xyz", (1.0, 0.0, 0.0)) for end in ENDS]
        frames = [
            frame(*(_numbers(document, element, f"{end}_origin", part, (0.0, 0.0, 0.0)) for part in ("xyz", "rpy")))
            for end in ENDS
        ]
        yield Loop(
            name=element.get("name", f"{parent} = {child}"),
            kind=loop_kind(element.get("type", ""), where),
            parent=parent,
            child=child,
            parent_frame=frames[0],
            child_frame=frames[1],
            axis=axes[0],
            child_axis=axes[1],
        )


def _numbers(
    document: _Document, element: ET.Element, child: str, attribute: str, default: tuple[float, float, float]
) -> Array:
    found = element.find(child)
    text = found.get(attribute) if found is not None else None
    try:
        values = np.array([float(part) for part in text.split()]) if text else np.array(default)
    except ValueError:
        values = np.zeros(0)
    if values.shape != (3,) or not np.isfinite(values).all():
        raise MechanismError(f"{document.where(element)}: {child} {attribute} must have 3 finite numbers, got '{text}'")
    return values


def _replace_joints(spec: Any, loops: Loops, file: Path | None) -> None:
    """Make some joints balls, universal joints or fixed joints."""
    known = {joint.name: joint for joint in spec.joints}
    for name, kind in loops.replaced.items():
        if name not in known:
            raise NotFoundError(f"joint in {file}", name, known)
        body = known[name].parent
        spec.delete(known[name])
        if kind == "ball":
            add_joint(body, name, "ball", AXES["X"])
        elif kind != "fixed":
            for axis in kind:
                add_joint(body, f"{name}_{axis}", "hinge", AXES[axis])


def _add_mimics(document: _Document, spec: Any, loops: Loops) -> None:
    """Joints that follow others, apart from joints that the loops move."""
    known = {joint.name for joint in spec.joints}
    for joint in document.root.findall("joint"):
        mimic, name = joint.find("mimic"), str(joint.get("name"))
        if mimic is None or name in loops.dependent or name not in known:
            continue
        leader = mimic.get("joint", "")
        if leader not in known:
            raise NotFoundError(f"leader of the mimic at {document.where(joint)}", leader, known)
        try:
            terms = [float(mimic.get("offset", 0)), float(mimic.get("multiplier", 1)), 0, 0, 0]
        except ValueError as error:
            raise MechanismError(f"{document.where(joint)}: numbers of mimic must be finite: {error}") from error
        add_polynomial(spec, name, leader, np.array(terms))


def _close(spec: Any, loop: Loop) -> None:
    """Add the closures of a loop; joints that MuJoCo cannot close a loop with are put on a half of the child."""
    parent, child = spec.body(loop.parent), spec.body(loop.child)
    ends = ((parent, loop.parent_frame), (child, loop.child_frame))
    if loop.kind in ("fixed", "spherical"):
        add_closure(spec, loop.name, ends, is_weld=loop.kind == "fixed")
    elif loop.kind == "revolute":
        along = np.eye(4)
        along[:3, 3] = PIN * loop.axis / np.linalg.norm(loop.axis)
        add_closure(spec, loop.name, ends, is_weld=False)
        add_closure(spec, f"{loop.name}, axis", [(body, X @ along) for body, X in ends], is_weld=False)
    else:
        half = _halved(parent, child, loop)
        second = loop.axis if loop.child_axis is None else loop.child_axis
        joints = {
            "prismatic": (("slide", loop.axis),),
            "cylindrical": (("slide", loop.axis), ("hinge", loop.axis)),
            "universal": (("hinge", loop.axis), ("hinge", second)),
        }[loop.kind]
        for k, (kind, axis) in enumerate(joints):
            joint_name = loop.name if len(joints) == 1 else f"{loop.name} {k + 1}"
            add_joint(half, joint_name, kind, axis)
        add_closure(spec, f"{loop.name}, halves", ((half, np.eye(4)), (child, loop.child_frame)), is_weld=True)


def _halved(parent: Any, child: Any, loop: Loop) -> Any:
    """Half of the child's mass on a body of the parent, with the frame of the loop as its frame.

    Both halves are welded, so that they move as the link does.
    """
    while not child.mass and not list(child.joints) and child.parent.name != "world":
        child = child.parent
    if not child.mass:
        raise MechanismError(
            f"loop '{loop.name}': the child of a {loop.kind} loop must have a mass, got none on link '{loop.child}'"
        )
    from_child: Array = np.asarray(
        np.linalg.inv(loop.child_frame) @ rigid_frame(child.ipos, of_quaternion(child.iquat)), dtype=np.float64
    )
    half = parent.add_body()
    half.name = f"{loop.child}, half at {loop.name}"
    half.pos, half.quat = loop.parent_frame[:3, 3], quaternion(loop.parent_frame[:3, :3])
    half.explicitinertial = True
    half.ipos, half.iquat = from_child[:3, 3], quaternion(from_child[:3, :3])
    for name in ("mass", "inertia", "fullinertia"):
        value = np.asarray(getattr(child, name)) / 2
        setattr(child, name, value if value.ndim else float(value))
        setattr(half, name, value if value.ndim else float(value))
    return half


def _sink_joints(spec: Any, closed: Set[str]) -> None:
    """Move the joints of massless links to the next link of their chain: a body of MuJoCo may have several joints.

    Args:
        closed: Names of links with a loop.
    """
    for body in spec.bodies[1:]:
        if list(body.joints) and not _rigid_mass(body):
            children = list(body.bodies)
            if len(children) != 1 or body.name in closed:
                raise MechanismError(
                    f"link '{body.name}' must have a mass and an inertia, because it moves with the joint "
                    f"'{body.joints[0].name}'; only a massless link with a single child joint and no loop is supported"
                )
            _sink(spec, body, children[0])


def _sink(spec: Any, body: Any, child: Any) -> None:
    """Put the joints of a body before the joints of its child."""
    X = rigid_frame(child.pos, of_quaternion(child.quat))
    joints = [(joint, {name: np.copy(getattr(joint, name)) for name in OF_JOINTS}) for joint in body.joints]
    for _, values in joints:
        values["axis"] = X[:3, :3].T @ values["axis"]
        values["pos"] = X[:3, :3].T @ (values["pos"] - X[:3, 3])
    joints += [(joint, {name: np.copy(getattr(joint, name)) for name in OF_JOINTS}) for joint in child.joints]
    names = [(joint.name, joint.type) for joint, _ in joints]
    for joint, _ in joints:
        spec.delete(joint)
    for (name, kind), (_, values) in zip(names, joints, strict=True):
        joint = child.add_joint()
        joint.name, joint.type = name, kind
        for attribute, value in values.items():
            setattr(joint, attribute, value if value.ndim else value.item())


def _rigid_mass(body: Any) -> float:
    """Mass of a body and of the bodies that are fixed to it [kg]."""
    return float(body.mass) + sum(_rigid_mass(child) for child in body.bodies if not list(child.joints))


def _add_motors(document: _Document, spec: Any, loops: Loops) -> None:
    """Motors of the joints that the loop file, the transmissions or ros2_control name, in this order."""
    known = [joint.name for joint in spec.joints]
    driven = dict(_driven(document))
    for joint in loops.actuated or driven:
        if joint not in known:
            raise NotFoundError(f"actuated joint of {document.path}", joint, known)
        motor = add_motor(spec, joint)
        motor.name, motor.gear[0] = driven.get(joint, (joint, 1.0))


def _driven(document: _Document) -> Iterator[tuple[str, tuple[str, float]]]:
    """Joints with an actuator in the URDF, each with the name of the actuator and its gear."""
    for transmission in document.root.findall("transmission"):
        actuator = transmission.find("actuator")
        reduction = transmission.findtext("actuator/mechanicalReduction")
        try:
            gear = float(reduction or 1)
        except ValueError as error:
            raise MechanismError(f"{document.where(transmission)}: mechanicalReduction must be a number") from error
        for joint in map(str, (element.get("name") for element in transmission.findall("joint"))):
            yield joint, (joint if actuator is None else actuator.get("name", joint), gear)
    for element in document.root.findall("ros2_control/joint"):
        if element.find("command_interface") is not None:
            yield str(element.get("name")), (str(element.get("name")), 1.0)
