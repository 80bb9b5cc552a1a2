"""Reads a URDF with its loops into an `MjSpec`, through MuJoCo's own reader of URDF.

MuJoCo's reader makes the tree. It drops `<constraint>` and everything in loop files; both are added here. Inertias are
read here too: before 3.14, MuJoCo's reader does not turn a tensor with its `<origin>` (its issue 3559). Geometry is
left out: inertias of a URDF are stated, so meshes need not be there. The root link is fixed to the world.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.robots.formats.loop_files import (
    Links,
    Loop,
    Loops,
    frame,
    loop_file_of,
    loop_kind,
    read_loops,
    with_constraints,
)
from loopcheck.robots.formats.losses import Loss, lost_names, table_of
from loopcheck.robots.formats.rigid_frames import of_quaternion, rigid_frame
from loopcheck.robots.formats.spec_elements import add_joint, add_motor, add_polynomial, set_inertia, want_moments
from loopcheck.robots.formats.spec_loops import close, sink_joints, want_turned_inertia
from loopcheck.robots.formats.xml_document import XmlDocument, has_root, read_xml

ROOT = "robot"
"""Root element of a URDF."""
COMPILER = {"fusestatic": "false", "inertiafromgeom": "false"}
"""Settings of MuJoCo's reader: keep every link, and leave the inertias to us."""
TENSOR = np.array([["ixx", "ixy", "ixz"], ["ixy", "iyy", "iyz"], ["ixz", "iyz", "izz"]])
"""Attributes of the entries of a tensor."""
PRODUCTS = ("ixy", "ixz", "iyz")
SMALLEST = 1e-15
"""Smallest mass and principal moment of a moving link in MuJoCo, mjMINVAL [kg and kg m²]."""
WORLD = "world"
"""Link that a file need not declare."""
BALL_CONSTRAINT, DRAKE_JOINT = "drake:ball_constraint", "drake:joint"
NUMBERS = {
    "origin": {"xyz": 3, "rpy": 3},
    "axis": {"xyz": 3},
    "limit": {"lower": 1, "upper": 1, "effort": 1, "velocity": 1},
    "dynamics": {"damping": 1, "friction": 1},
}
"""Number of the numbers in each attribute of a joint."""
OF_DRAKE = {"ball": ("ball",), "universal": ("hinge X", "hinge Y"), "planar": ("slide X", "slide Y", "hinge Z")}
"""Joints of each type of a `drake:joint`, along the axes of its frame."""
ENDS = ("parent", "child")
LOOPS = ("constraint", BALL_CONSTRAINT, "gazebo/joint")
"""Elements that close loops."""
AXES = {"X": np.array([1.0, 0.0, 0.0]), "Y": np.array([0.0, 1.0, 0.0]), "Z": np.array([0.0, 0.0, 1.0])}


def is_urdf(path: Path) -> bool:
    """Whether a file is a URDF, by its name or its root element."""
    if path.suffix.lower() == ".urdf":
        return True
    return path.suffix.lower() == ".xml" and has_root(path, ROOT)


def files_of_urdf(path: Path) -> tuple[Path, ...]:
    """A URDF and its loop file."""
    loops = loop_file_of(path) if path.is_file() else None
    return (path, loops) if loops else (path,)


def left_out_of(path: Path) -> tuple[str, ...]:
    """Features of a URDF that no source takes into account, and what a tree lacks, a sentence each."""
    document = _read(path)
    loops = loop_file_of(path)
    notes = [f"visual and collision geometry of {len(document.root.findall('link'))} links"]
    if loops is None and not any(document.root.find(tag) is not None for tag in LOOPS):
        notes.append(
            "loops: the URDF is a tree, without <constraint> and without a loop file beside it (robot.yaml, "
            "loop_closures.yaml or robot_data.yaml)"
        )
    return tuple(notes)


def losses_of_urdf(path: Path) -> Iterator[Loss]:
    """Names of a URDF that are not read, and transmissions of several joints, one loss for each occurrence."""
    document = _read(path)
    yield from lost_names(document, table_of("urdf"))
    for element in document.root.findall("transmission"):
        joints = [str(joint.get("name")) for joint in element.findall("joint")]
        if len(joints) > 1:
            yield Loss(
                kind="mechanism",
                tag="transmission",
                words=f"its actuators drive {', '.join(joints)} together",
                elements=(str(element.get("name")),),
                path="/robot/transmission",
                file=str(path),
                line=document.lines[element],
            )


def urdf_spec(path: Path) -> Any:
    """The URDF with its loops as an editable `MjSpec`.

    Raises:
        MechanismError: If it is not a URDF, is not expanded from xacro, or is not a tree of its links.
        NotFoundError: If a loop or a motor names a link or a joint that the URDF does not have.
    """
    document = _read(path)
    root = _root_link(document)
    _want_numbers(document)
    try:
        spec = mujoco.MjSpec.from_string(_tree_text(document))
    except ValueError as error:
        reason = re.sub(r", line \d+", "", " ".join(str(error).split()))  # of the text without geometry
        raise MechanismError(f"{path}: MuJoCo's reader of URDF rejected the file: {reason}") from error
    _set_inertias(document, spec)
    joints = _joints(document)
    links = Links(
        frames={name: _pose_of(spec.body(name)) for name in _links(document)},
        joints={str(joint.get("name")): document.text_of(joint, "child", "link") for joint in joints},
        root=root,
    )
    file = loop_file_of(path)
    stated = (*_constraints(document, links), *_ball_constraints(document, links), *_of_gazebo(document, links))
    loops = with_constraints(read_loops(file, links) if file else Loops(), iter(stated))
    _replace_joints(spec, loops, file)
    _put_joints_of_drake(document, spec)
    _add_mimics(document, spec, loops)
    for loop in loops.loops:
        close(spec, loop)
    sink_joints(spec, {link for loop in loops.loops for link in (loop.parent, loop.child)})
    _add_motors(document, spec, loops)
    _add_rotors(document, spec)
    _want_moving_inertias(document, spec)
    want_turned_inertia(spec, path)
    return spec


def _read(path: Path) -> XmlDocument:
    return read_xml(path, ROOT, "a URDF")


def _joints(document: XmlDocument) -> list[ET.Element]:
    """Joints of the tree, those of Drake's types too."""
    return [element for element in document.root if element.tag in ("joint", DRAKE_JOINT)]


def _links(document: XmlDocument) -> list[str]:
    """Names of the links; the world is one if a joint names it."""
    for element in (*document.root.findall("link"), *_joints(document)):
        if not element.get("name"):
            raise MechanismError(f"{document.where(element)}: must have a name")
    names = [str(link.get("name")) for link in document.root.findall("link")]
    parents = [parent.get("link") for joint in _joints(document) for parent in joint.findall("parent")]
    return names if WORLD in names or WORLD not in parents else [WORLD, *names]


def _root_link(document: XmlDocument) -> str:
    """Name of the root link of a tree, with a message for everything that is none."""
    links = _links(document)
    parents: dict[str, ET.Element] = {}
    for joint in _joints(document):
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
    for kind, names in (("link", links), ("joint", [str(joint.get("name")) for joint in _joints(document)])):
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


def _want_numbers(document: XmlDocument) -> None:
    """Refuse numbers of joints that cannot be read, by their line."""
    for joint in _joints(document):
        for tag, names in NUMBERS.items():
            found = joint.find(tag)
            if len(joint.findall(tag)) > 1:
                raise MechanismError(
                    f"{document.where(joint)}: must have a single <{tag}>, got {len(joint.findall(tag))}"
                )
            for name, count in names.items() if found is not None else ():
                document.numbers(joint, f"<{tag} {name}>", found.get(name), np.zeros(count))  # type: ignore[union-attr]


def _floating(document: XmlDocument) -> list[ET.Element]:
    """Joints with which a part of the robot floats.

    Raises:
        MechanismError: If one begins at another link than the root.
    """
    root = _root_link(document)
    floating = [joint for joint in document.root.findall("joint") if joint.get("type") == "floating"]
    for joint in floating:
        parent = document.text_of(joint, "parent", "link")
        if parent != root:
            raise MechanismError(
                f"{document.where(joint)}: a floating joint must begin at the root link '{root}', got '{parent}'"
            )
    return floating


def _tree_text(document: XmlDocument) -> str:
    """The links and joints alone, without inertias, geometry and mimics, with the settings of MuJoCo's reader."""
    robot = ET.Element(ROOT, {"name": document.root.get("name") or document.path.stem})
    ET.SubElement(ET.SubElement(robot, "mujoco"), "compiler", COMPILER)
    kept: dict[str, set[str]] = {"link": set(), "joint": {"parent", "child", "origin", "axis", "limit", "dynamics"}}
    floating, root = _floating(document), _root_link(document)
    if WORLD not in [link.get("name") for link in document.root.findall("link")] and (floating or root == WORLD):
        ET.SubElement(robot, "link", {"name": WORLD})
    if floating and root != WORLD:  # MuJoCo has free joints of bodies in the world alone
        held = ET.SubElement(robot, "joint", {"name": f"{root}, fixed", "type": "fixed"})
        ET.SubElement(held, "parent", {"link": WORLD})
        ET.SubElement(held, "child", {"link": root})
    for element in document.root:
        tag, attributes = element.tag, element.attrib
        if tag == DRAKE_JOINT:
            tag, attributes = "joint", {**attributes, "type": "continuous"}
        if tag in kept:
            copy = ET.SubElement(robot, tag, attributes)
            copy.extend(
                child
                for child in element
                if child.tag in kept[tag] and not (child.tag == "parent" and element in floating)
            )
            if element in floating:
                ET.SubElement(copy, "parent", {"link": WORLD})
    return ET.tostring(robot, encoding="unicode")


def _set_inertias(document: XmlDocument, spec: Any) -> None:
    """State mass, centre and tensor of every link."""
    for link in document.root.findall("link"):
        inertials, body = link.findall("inertial"), spec.body(link.get("name"))
        if len(inertials) > 1:
            raise MechanismError(f"{document.where(link)}: must have a single <inertial>, got {len(inertials)}")
        if inertials:
            X = frame(*(_numbers(document, inertials[0], "origin", part, (0.0, 0.0, 0.0)) for part in ("xyz", "rpy")))
            R = X[:3, :3]
            set_inertia(body, _mass(document, link), X[:3, 3], R @ _tensor(document, link) @ R.T)


def _mass(document: XmlDocument, link: ET.Element) -> float:
    mass = float(_required(document, link, "inertial/mass", "value"))
    if mass < 0:
        raise MechanismError(f"{_where(document, link, 'inertial/mass')} must not be negative, got {mass:g}")
    return mass


def _tensor(document: XmlDocument, link: ET.Element) -> Array:
    """Tensor about the mass centre in the axes of the `<origin>` [kg m²], shape (3, 3)."""
    path = "inertial/inertia"
    if link.find(path) is None:
        return np.zeros((3, 3))
    I = np.vectorize(lambda name: _required(document, link, path, name))(TENSOR)
    want_moments(I, _where(document, link, path))
    return np.asarray(I, dtype=np.float64)


def _required(document: XmlDocument, link: ET.Element, path: str, attribute: str) -> float:
    """A number in an element of a link; zero for a product of inertia that the file does not state."""
    element = link.find(path)
    is_product = attribute in PRODUCTS and element is not None and not element.get(attribute)
    text = "0" if is_product else document.text_of(link, path, attribute)
    return float(document.numbers(link, f"<{path} {attribute}>", text, np.zeros(1))[0])


def _where(document: XmlDocument, link: ET.Element, path: str) -> str:
    """File, line, link and name of an element of a link."""
    element = link.find(path)
    line = document.lines[link if element is None else element]
    return f"{document.path}:{line}: link '{link.get('name')}': <{path}>"


def _want_moving_inertias(document: XmlDocument, spec: Any) -> None:
    """Refuse links that move and whose inertia MuJoCo does not accept, by the tags of the file."""
    for link in document.root.findall("link"):
        body = spec.body(link.get("name"))
        if list(body.joints) and not any(min(part.mass, *part.inertia) >= SMALLEST for part in _rigid(body)):
            raise MechanismError(
                f"{_where(document, link, 'inertial')} of a moving link must have a mass and principal moments of at "
                f"least {SMALLEST:g}, got {body.mass:g} kg and {', '.join(f'{x:g}' for x in body.inertia)} kg m²"
            )


def _rigid(body: Any) -> Iterator[Any]:
    """A body and the bodies that are fixed to it."""
    yield body
    for child in body.bodies:
        if not list(child.joints):
            yield from _rigid(child)


def _pose_of(body: Any) -> Array:
    """Pose of a body in the world with all joints at zero [m and -], shape (4, 4)."""
    X = np.eye(4)
    while body.name != "world":
        X = rigid_frame(body.pos, of_quaternion(body.quat)) @ X
        body = body.parent
    return X


def _constraints(document: XmlDocument, links: Links) -> Iterator[Loop]:
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


def _ball_constraints(document: XmlDocument, links: Links) -> Iterator[Loop]:
    """Loops that Drake's `ball_constraint` closes between points of two links."""
    for k, element in enumerate(document.root.findall(BALL_CONSTRAINT)):
        where, tag = document.where(element), f"{BALL_CONSTRAINT}_"
        ends = [links.frame(document.text_of(element, f"{tag}body_{end}", "name"), where)[0] for end in "AB"]
        points = [
            document.numbers(element, end, document.text_of(element, f"{tag}{end}", "value"), np.zeros(3))
            for end in ("p_AP", "p_BQ")
        ]
        yield Loop(
            name=f"ball {k + 1}",
            kind="spherical",
            parent=ends[0],
            child=ends[1],
            parent_frame=frame(points[0]),
            child_frame=frame(points[1]),
        )


def _of_gazebo(document: XmlDocument, links: Links) -> Iterator[Loop]:
    """Loops that a joint of SDF inside `<gazebo>` closes: at its child, with all joints at zero."""
    for element in document.root.findall("gazebo/joint"):
        where = document.where(element)
        parent, child = (links.frame((element.findtext(end) or "").strip(), where)[0] for end in ENDS)
        pose = document.numbers(element, "pose", element.findtext("pose"), np.zeros(6))
        on_child = frame(pose[:3], pose[3:])
        X = links.frames[child] @ on_child
        xyz = element.find("axis/xyz")
        axis = document.numbers(element, "axis/xyz", None if xyz is None else xyz.text, AXES["Z"])
        stated = "" if xyz is None else xyz.get("expressed_in", "")
        if (element.findtext("axis/use_parent_model_frame") or "").strip() in ("1", "true"):
            stated = "__model__"
        if stated:
            of = links.frames[links.root if stated == "__model__" else links.frame(stated, where)[0]]
            axis = X[:3, :3].T @ of[:3, :3] @ axis
        yield Loop(
            name=element.get("name", f"{parent} = {child}"),
            kind=loop_kind(element.get("type", ""), where),
            parent=parent,
            child=child,
            parent_frame=links.on(parent, X),
            child_frame=on_child,
            axis=axis,
        )


def _numbers(document: XmlDocument, element: ET.Element, child: str, attribute: str, default: Sequence[float]) -> Array:
    found = element.find(child)
    text = found.get(attribute) if found is not None else None
    return document.numbers(element, f"{child} {attribute}", text, np.array(default))


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


def _put_joints_of_drake(document: XmlDocument, spec: Any) -> None:
    """Replace the joints that stand for types of Drake."""
    for element in document.root.findall(DRAKE_JOINT):
        name, kind = str(element.get("name")), element.get("type", "")
        if kind not in OF_DRAKE:
            raise NotFoundError(f"type of {document.where(element)}", kind, OF_DRAKE)
        joint = spec.joint(name)
        body = joint.parent
        spec.delete(joint)
        for part in OF_DRAKE[kind]:
            of_kind, _, axis = part.partition(" ")
            suffix = f"_{axis.lower()}" if axis else ""
            add_joint(body, f"{name}{suffix}", of_kind, AXES[axis or "X"])


def _add_rotors(document: XmlDocument, spec: Any) -> None:
    """Reflected inertia of rotors: Drake's rotor inertia times the square of its gear ratio."""
    known = {joint.name: joint for joint in spec.joints}
    rotors = [
        (part.find("joint"), actuator)
        for part in document.root.findall("transmission")
        for actuator in part.findall("actuator")
    ]
    rotors += [(joint, actuator) for joint in document.root.findall("joint") for actuator in joint.findall("actuator")]
    for joint, actuator in rotors:
        inertia = float(_numbers(document, actuator, "drake:rotor_inertia", "value", (0.0,))[0])
        ratio = float(_numbers(document, actuator, "drake:gear_ratio", "value", (1.0,))[0])
        name = "" if joint is None else joint.get("name", "")
        if inertia and name in known:
            known[name].armature = inertia * ratio**2


def _add_mimics(document: XmlDocument, spec: Any, loops: Loops) -> None:
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


def _add_motors(document: XmlDocument, spec: Any, loops: Loops) -> None:
    """Motors of the joints that the loop file, the transmissions or ros2_control name, in this order."""
    known = [joint.name for joint in spec.joints]
    fixed = {joint.get("name") for joint in document.root.findall("joint[@type='fixed']")}  # of a reduced model
    driven = {joint: motor for joint, motor in _driven(document) if joint not in fixed}
    for joint in loops.actuated or driven:
        if joint not in known:
            raise NotFoundError(f"actuated joint of {document.path}", joint, known)
        name, gear = driven.get(joint, (joint, 1.0))
        taken = {actuator.name for actuator in spec.actuators}
        motor = add_motor(spec, joint)
        motor.name, motor.gear[0] = joint if name in taken else name, gear


def _driven(document: XmlDocument) -> Iterator[tuple[str, tuple[str, float]]]:
    """Joints with an actuator in the URDF, each with the name of the actuator and its gear."""
    for transmission in document.root.findall("transmission"):
        actuator = transmission.find("actuator")
        places = ("actuator/mechanicalReduction", "mechanicalReduction")
        reduction = next(filter(None, map(transmission.findtext, places)), None)
        try:
            gear = float(reduction or 1)
        except ValueError as error:
            raise MechanismError(f"{document.where(transmission)}: mechanicalReduction must be a number") from error
        for joint in map(str, (element.get("name") for element in transmission.findall("joint"))):
            yield joint, (joint if actuator is None else actuator.get("name", joint), gear)
    for element in document.root.findall("ros2_control/joint"):
        if element.find("command_interface") is not None:
            yield str(element.get("name")), (str(element.get("name")), 1.0)


def refusal_by_mujoco(path: Path) -> str:
    """Reason for which MuJoCo's own reader refuses the tree of a URDF without geometry; empty if it does not."""
    document = _read(path)
    try:
        spec = mujoco.MjSpec.from_string(_tree_text(document))
        _set_inertias(document, spec)
        spec.compile()
    except ValueError as error:
        return re.sub(r", line \d+", "", " ".join(str(error).split()))
    return ""
