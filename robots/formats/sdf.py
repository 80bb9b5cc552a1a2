"""Reads an SDF with its loops into an `MjSpec`: any joint that gives a link a second parent closes a loop.

Frames follow the specification of SDFormat 1.7 to 1.12 (`relative_to`, `attached_to`, `expressed_in`), axes of versions
up to 1.6 their model frame. Geometry is left out. `python-sdformat` is not used: it requires numpy 1, and leaves frames
to its caller.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.robots.formats.linkage import (
    GROUND,
    UNLIMITED,
    Connection,
    Link,
    Linkage,
    Mimic,
    Motor,
    inverse,
    spec_of,
)
from loopcheck.robots.formats.loop_files import LoopKind
from loopcheck.robots.formats.losses import Loss, lost_names, table_of
from loopcheck.robots.formats.rigid_frames import of_angles, of_axis, of_quaternion, rigid_frame
from loopcheck.robots.formats.spec_elements import Shape, inertia_of, want_moments
from loopcheck.robots.formats.xml_document import XmlDocument, has_root, read_xml

ROOT = "sdf"
SUFFIXES = (".sdf", ".world")
BALL_CONSTRAINT = "drake:ball_constraint"
PREFIX = "loopcheck:"
"""Of attributes that other readers of SDF ignore."""
SCOPE = "::"
GRAVITY = (0.0, 0.0, -9.8)
"""Gravity of a file without a world, the default of the format [m/s²]."""
KINDS: dict[str, LoopKind] = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "ball": "spherical",
    "universal": "universal",
    "revolute2": "universal",
    "fixed": "fixed",
    "screw": "cylindrical",
}
GEARBOX = "gearbox"
SOLIDS: Mapping[str, Sequence[tuple[str, Sequence[float], float]]] = {
    "box": (("size", (1.0, 1.0, 1.0), 0.5),),
    "sphere": (("radius", (1.0,), 1.0),),
    "cylinder": (("radius", (1.0,), 1.0), ("length", (1.0,), 0.5)),
    "capsule": (("radius", (0.5,), 1.0), ("length", (1.0,), 0.5)),
    "ellipsoid": (("radii", (1.0, 1.0, 1.0), 1.0),),
}
"""Elements with the size of each solid, their defaults [m], and the factors of `Shape.size` [-]."""
WATER = 1000.0
"""Density of shapes without one, the default of the format [kg/m³]."""
DRIVES = ("ApplyJointForce", "JointController", "JointPositionController", "JointTrajectoryController")
"""Systems of Gazebo that put an effort on a joint."""
FULL_MODEL_FRAME, AXIS_IN_MODEL = (1, 7), (1, 5)
"""First versions with `expressed_in`, and with axes in the frame of the joint."""


def is_sdf(path: Path) -> bool:
    """Whether a file is an SDF, by its name or its root element."""
    return path.suffix.lower() in SUFFIXES or (path.suffix.lower() == ".xml" and has_root(path, ROOT))


def sdf_spec(path: Path) -> Any:
    """The SDF with its loops as an editable `MjSpec`.

    Raises:
        MechanismError: If it is not an SDF, is not expanded, or has an element that no source carries.
        NotFoundError: If a joint, pose or axis names something that the file does not have.
    """
    return spec_of(read_sdf(path))


def left_out_of_sdf(path: Path) -> tuple[str, ...]:
    """Features of an SDF that no source takes into account, a sentence each."""
    document = read_xml(path, ROOT, "an SDF")
    count = sum(1 for link in document.root.iter("link") if link.find("visual") is not None or link.find("collision"))
    notes = [f"visual and collision geometry of {count} links"] if count else []
    for joint in document.root.iter("joint"):
        low, high = (joint.findtext(f"axis/limit/{end}") for end in ("lower", "upper"))
        if low and high and float(low) >= float(high):
            notes.append(f"limits of joint '{joint.get('name')}', which lock it: lower {low}, upper {high}")
    if document.root.find("world") is None:
        notes.append(f"a world: gravity is the default of the format, {GRAVITY[2]} m/s² along Z")
    return tuple(notes)


def losses_of_sdf(path: Path) -> Iterator[Loss]:
    """Names of an SDF that are not read, one loss for each occurrence."""
    return lost_names(read_xml(path, ROOT, "an SDF"), table_of("sdf"))


@dataclass(frozen=True, slots=True)
class _Frame:
    """A named frame."""

    element: ET.Element
    relative_to: str
    X: Array
    """In the frame that it is relative to [m and -], shape (4, 4)."""
    attached_to: str
    """A link, or a frame that is attached to one; the name itself for a link."""


@dataclass(slots=True)
class _Reading:
    """The models of a file, with full names: `model::link`."""

    document: XmlDocument
    version: tuple[int, ...]
    frames: dict[str, _Frame] = field(default_factory=dict)
    models: list[tuple[str, ET.Element, bool]] = field(default_factory=list)
    """Full name, element, and whether the model does not move."""

    def full(self, scope: str, name: str, element: ET.Element) -> str:
        """Full name of a frame.

        Args:
            scope: Full name of the model that the name is in.
            element: Place of the name, for the message.
        """
        if name == GROUND or not name:
            return GROUND
        full = scope if name == "__model__" else f"{scope}{SCOPE}{name}" if scope else name
        if full not in self.frames:
            known = [frame.removeprefix(f"{scope}{SCOPE}") for frame in self.frames if frame.startswith(scope)]
            raise NotFoundError(f"frame at {self.document.where(element)}", name, known)
        return full

    def X(self, name: str, seen: tuple[str, ...] = ()) -> Array:
        """Pose of a frame in the world [m and -], shape (4, 4)."""
        if name == GROUND:
            return np.eye(4)
        frame = self._frame(name, seen)
        return np.asarray(self.X(frame.relative_to, (*seen, name)) @ frame.X)

    def link(self, name: str, seen: tuple[str, ...] = ()) -> str:
        """The link that a frame is attached to."""
        if name == GROUND:
            return GROUND
        frame = self._frame(name, seen)
        return name if frame.attached_to == name else self.link(frame.attached_to, (*seen, name))

    def _frame(self, name: str, seen: tuple[str, ...]) -> _Frame:
        where = self.document.where(self.frames[seen[-1]].element) if seen else str(self.document.path)
        if name not in self.frames:
            raise NotFoundError(f"frame at {where}", name, self.frames)
        if name in seen:
            raise MechanismError(f"{where}: frames must not depend on each other in a circle")
        return self.frames[name]


def read_sdf(path: Path) -> Linkage:
    """The links and joints of an SDF.

    Raises:
        MechanismError: See `sdf_spec`.
        NotFoundError: See `sdf_spec`.
    """
    document = read_xml(path, ROOT, "an SDF")
    included = next(document.root.iter("include"), None)
    if included is not None:
        raise MechanismError(
            f"{document.where(included)}: included models must be expanded. Run: gz sdf -p {path.name} > expanded.sdf"
        )
    try:
        version = tuple(int(part) for part in document.root.get("version", "1.7").split("."))
    except ValueError as error:
        raise MechanismError(f"{path}: version must be numbers, got '{document.root.get('version')}'") from error
    reading = _Reading(document, version)
    worlds = document.root.findall("world")
    if len(worlds) > 1:
        raise MechanismError(f"{document.where(worlds[1])}: an SDF must have a single world, got {len(worlds)}")
    scope = worlds[0] if worlds else document.root
    _declare_frames(reading, "", scope)
    for model in scope.findall("model"):
        _declare(reading, "", model, is_static=False)
    if not reading.models:
        raise MechanismError(f"{path}: must have a <model>, got none")
    top = [name for name, _, _ in reading.models if SCOPE not in name]
    gravity = document.numbers(scope, "gravity", scope.findtext("gravity"), np.array(GRAVITY))
    connections = [
        *_static(reading),
        *_connections(reading),
        *_world_connections(reading, scope),
        *_ball_constraints(reading),
    ]
    linkage = Linkage(
        path=path,
        links=tuple(_links(reading)),
        connections=tuple(connections),
        motors=tuple(_motors(reading, connections)),
        gravity=gravity,
    )
    return _renamed(linkage, f"{top[0]}{SCOPE}") if len(top) == 1 else linkage


def _declare(reading: _Reading, scope: str, model: ET.Element, *, is_static: bool) -> None:
    """The frames of a model, and of the models in it."""
    document = reading.document
    name = _joined(scope, _name(document, model))
    if model.get("placement_frame"):
        raise MechanismError(f"{document.where(model)}: placement_frame is not supported. Place the model by its pose")
    links = [_name(document, link) for link in model.findall("link")]
    nested = [_name(document, child) for child in model.findall("model")]
    canonical = model.get("canonical_link") or next(iter(links), "") or (f"{nested[0]}{SCOPE}" if nested else "")
    attached = _joined(name, canonical.removesuffix(SCOPE)) if canonical else GROUND
    _add_frame(reading, scope, model, default=scope, attached=attached)
    is_static = is_static or (model.findtext("static") or "").strip() in ("true", "1")
    reading.models.append((name, model, is_static))
    for link in model.findall("link"):
        _add_frame(reading, name, link, default=name, attached="")
    _declare_frames(reading, name, model)
    for joint in model.findall("joint"):
        child = _joined(name, _text(document, joint, "child"))
        _add_frame(reading, name, joint, default=child, attached=child)
    for child_model in model.findall("model"):
        _declare(reading, name, child_model, is_static=is_static)


def _declare_frames(reading: _Reading, scope: str, parent: ET.Element) -> None:
    for element in parent.findall("frame"):
        attached = element.get("attached_to", "")
        default = _joined(scope, attached) if attached else scope
        _add_frame(reading, scope, element, default=default, attached=default)


def _joined(scope: str, name: str) -> str:
    if name in (GROUND, "__model__"):
        return GROUND if name == GROUND else scope
    return f"{scope}{SCOPE}{name}" if scope else name


def _name(document: XmlDocument, element: ET.Element) -> str:
    if not element.get("name"):
        raise MechanismError(f"{document.where(element)}: must have a name")
    return str(element.get("name"))


def _text(document: XmlDocument, element: ET.Element, child: str) -> str:
    text = (element.findtext(child) or "").strip()
    if not text:
        raise MechanismError(f"{document.where(element)}: must have <{child}>")
    return text


def _key(reading: _Reading, scope: str, joint: ET.Element) -> str:
    """Full name of the frame of a joint; before SDF 1.7, a link may have the same name."""
    name = _joined(scope, _name(reading.document, joint))
    taken = reading.frames.get(name)
    has_link = taken is not None and taken.element.tag == "link"
    return f"{name} (joint)" if has_link and reading.version < FULL_MODEL_FRAME else name


def _add_frame(reading: _Reading, scope: str, element: ET.Element, *, default: str, attached: str) -> None:
    is_joint = element.tag == "joint"
    name = _key(reading, scope, element) if is_joint else _joined(scope, _name(reading.document, element))
    if name in reading.frames:
        raise MechanismError(f"{reading.document.where(element)}: names of links, joints and frames must be unique")
    pose = element.find("pose")
    relative = pose.get("relative_to", "") if pose is not None else ""
    reading.frames[name] = _Frame(
        element=element,
        relative_to=(_joined(scope, relative) if relative else default) or GROUND,
        X=_pose(reading.document, element, pose),
        attached_to=attached or name,
    )


def _pose(document: XmlDocument, element: ET.Element, pose: ET.Element | None) -> Array:
    """A pose of SDF [m and -], shape (4, 4)."""
    if pose is None:
        return np.eye(4)
    if pose.get("rotation_format") == "quat_xyzw":
        values = document.numbers(element, "pose", pose.text, np.array([0.0] * 6 + [1.0]))
        return rigid_frame(values[:3], of_quaternion(values[[6, 3, 4, 5]]))
    values = document.numbers(element, "pose", pose.text, np.zeros(6))
    in_degrees = pose.get("degrees") in ("true", "1")
    return rigid_frame(values[:3], of_angles(np.deg2rad(values[3:]) if in_degrees else values[3:]))


def _links(reading: _Reading) -> Iterator[Link]:
    document = reading.document
    for scope, model, _ in reading.models:
        for element in model.findall("link"):
            name = _joined(scope, str(element.get("name")))
            link = Link(name=name, X=reading.X(name), free_joint=element.get(f"{PREFIX}free_joint", ""))
            has_gravity = (element.findtext("gravity") or "true").strip() in ("true", "1")
            yield _with_inertia(document, element, replace(link, compensation=0.0 if has_gravity else 1.0))


def _with_inertia(document: XmlDocument, element: ET.Element, link: Link) -> Link:
    inertial = element.find("inertial")
    if inertial is None:
        return replace(link, mass=1.0, inertia=np.eye(3))
    if inertial.get("auto") in ("true", "1"):
        return _of_shapes(document, element, link)

    def number(path: str, default: float) -> float:
        return float(document.numbers(element, path, inertial.findtext(path), np.array([default]))[0])

    I = np.diag([number(f"inertia/i{axis}{axis}", 1.0) for axis in "xyz"])
    for i, k in ((0, 1), (0, 2), (1, 2)):
        I[i, k] = I[k, i] = number(f"inertia/i{'xyz'[i]}{'xyz'[k]}", 0.0)
    want_moments(I, f"{document.where(element)}: <inertial/inertia>")
    X = _pose(document, element, inertial.find("pose"))
    R = X[:3, :3]
    return replace(link, mass=number("mass", 1.0), center=X[:3, 3], inertia=R @ I @ R.T)


def _of_shapes(document: XmlDocument, element: ET.Element, link: Link) -> Link:
    """The link with the inertia of its collision shapes (`auto`, 1.11); a stated mass scales it from 1.12 on."""
    shapes = [_shape(document, element, collision) for collision in element.findall("collision")]
    try:
        mass, center, inertia = inertia_of(shapes)
    except ValueError as error:
        raise MechanismError(
            f"{document.where(element)}: sizes and densities of collision shapes must be above 0 for auto='true'"
        ) from error
    if not mass > 0:
        raise MechanismError(f"{document.where(element)}: auto='true' must have collision shapes, got none")
    stated = element.findtext("inertial/mass")
    if stated and document.root.get("version", "") not in ("1.11",):
        factor = float(document.numbers(element, "mass", stated, np.ones(1))[0]) / mass
        mass, inertia = factor * mass, factor * inertia
    return replace(link, mass=mass, center=center, inertia=inertia)


def _shape(document: XmlDocument, element: ET.Element, collision: ET.Element) -> Shape:
    """A collision shape of a link with its density."""
    density = collision.findtext("density") or element.findtext("inertial/density")
    solid = next((shape for kind in SOLIDS if (shape := collision.find(f"geometry/{kind}")) is not None), None)
    if solid is None:
        kinds = [shape.tag for shape in collision.iterfind("geometry/*")]
        raise MechanismError(
            f"{document.where(collision)}: auto='true' is supported for {', '.join(SOLIDS)}, got "
            f"{', '.join(kinds) or 'none'}. State mass, pose and inertia of the link"
        )
    size = [
        factor * float(value)
        for name, default, factor in SOLIDS[solid.tag]
        for value in document.numbers(collision, f"{solid.tag}/{name}", solid.findtext(name), np.array(default))
    ]
    return Shape(
        kind=solid.tag,
        size=tuple(size),
        X=_pose(document, collision, collision.find("pose")),
        density=float(document.numbers(collision, "density", density, np.array([WATER]))[0]),
    )


def _static(reading: _Reading) -> Iterator[Connection]:
    """Links of models that do not move."""
    for scope, model, is_static in reading.models:
        for element in model.findall("link") if is_static else ():
            name = _joined(scope, str(element.get("name")))
            yield Connection(
                name=f"{name}, static",
                kind="fixed",
                parent=GROUND,
                child=name,
                parent_frame=reading.X(name),
                child_frame=np.eye(4),
                where=reading.document.where(element),
            )


def _connections(reading: _Reading) -> Iterator[Connection]:
    of_models = [
        (scope, joint)
        for scope, model, is_static in reading.models
        for joint in (model.findall("joint") if not is_static else ())
    ]
    followers: dict[str, Mimic] = {}
    connections = [_connection(reading, scope, joint) for scope, joint in of_models if joint.get("type") != GEARBOX]
    for scope, joint in of_models:
        if joint.get("type") == GEARBOX:
            followers |= _gearbox(reading, scope, joint, connections)
    for connection in connections:
        yield replace(connection, mimic=followers.get(connection.name, connection.mimic))


def _gearbox(reading: _Reading, scope: str, joint: ET.Element, connections: Sequence[Connection]) -> dict[str, Mimic]:
    """The joint of the child of a gearbox, which follows the joint of its parent by minus the ratio.

    Both joints are revolute, between the reference body and parent or child; at zero in the pose of the file.
    """
    document, where = reading.document, reading.document.where(joint)
    reference = reading.link(reading.full(scope, _text(document, joint, "gearbox_reference_body"), joint))
    ratio = float(document.numbers(joint, "gearbox_ratio", joint.findtext("gearbox_ratio"), np.ones(1))[0])
    X = reading.X(_key(reading, scope, joint))
    turns = []
    for end, tag in (("parent", "axis"), ("child", "axis2")):
        body = reading.link(reading.full(scope, _text(document, joint, end), joint))
        turning = next(
            (c for c in connections if {c.parent, c.child} == {reference, body} and c.kind == "revolute"), None
        )
        if turning is None:
            raise MechanismError(f"{where}: a revolute joint must connect {body} and {reference}, got none")
        axis = X[:3, :3] @ _axis(reading, scope, joint, tag, X)
        own = reading.X(turning.child)[:3, :3] @ turning.child_frame[:3, :3] @ turning.axis
        turns.append((turning, np.sign(axis @ own) * (1.0 if turning.parent == reference else -1.0)))
    (leader, of_leader), (follower, of_follower) = turns
    multiplier = -ratio * float(of_leader * of_follower)
    return {follower.name: Mimic(leader=leader.name, multiplier=multiplier, offset=0.0)}


def _ball_constraints(reading: _Reading) -> Iterator[Connection]:
    """Loops that Drake's `ball_constraint` closes between points of two links."""
    document, tag = reading.document, f"{BALL_CONSTRAINT}_"
    for scope, model, is_static in reading.models:
        for k, element in enumerate(model.findall(BALL_CONSTRAINT) if not is_static else ()):
            links = [reading.full(scope, _text(document, element, f"{tag}body_{end}"), element) for end in "AB"]
            points = [
                document.numbers(element, end, _text(document, element, f"{tag}{end}"), np.zeros(3))
                for end in ("p_AP", "p_BQ")
            ]
            yield Connection(
                name=_joined(scope, f"ball {k + 1}"),
                kind="spherical",
                parent=reading.link(links[0]),
                child=reading.link(links[1]),
                parent_frame=_on_link(reading, links[0]) @ rigid_frame(points[0], np.eye(3)),
                child_frame=_on_link(reading, links[1]) @ rigid_frame(points[1], np.eye(3)),
                where=document.where(element),
                closes_loop=True,
            )


def _on_link(reading: _Reading, frame: str) -> Array:
    """A frame on the link that it is attached to [m and -], shape (4, 4)."""
    return np.asarray(inverse(reading.X(reading.link(frame))) @ reading.X(frame))


def _world_connections(reading: _Reading, scope: ET.Element) -> Iterator[Connection]:
    for joint in scope.findall("joint"):
        child = reading.full("", _text(reading.document, joint, "child"), joint)
        _add_frame(reading, "", joint, default=child, attached=child)
        yield _connection(reading, "", joint)


def _connection(reading: _Reading, scope: str, joint: ET.Element) -> Connection:
    document, where = reading.document, reading.document.where(joint)
    kind = joint.get("type", "")
    if kind not in KINDS:
        raise NotFoundError(f"type of joint at {where}", kind, KINDS)
    parent, child = (
        reading.link(reading.full(scope, _text(document, joint, end), joint)) for end in ("parent", "child")
    )
    frames = _two_frames(reading, scope, joint) or (_key(reading, scope, joint),) * 2
    X = reading.X(frames[1])  # an axis has the same components in both frames
    connection = Connection(
        name=_joined(scope, joint.get(f"{PREFIX}name") or str(joint.get("name"))),
        kind=KINDS[kind],
        parent=parent,
        child=child,
        parent_frame=inverse(reading.X(parent)) @ reading.X(frames[0]),
        child_frame=inverse(reading.X(child)) @ X,
        where=where,
        closes_loop=joint.get(f"{PREFIX}closes_loop") == "true",
        pitch=_pitch(document, joint) if kind == "screw" else None,
    )
    if KINDS[kind] in ("fixed", "spherical"):
        return _at_position(document, joint, connection)
    forces = [
        _forces(reading, scope, joint, tag) for tag in ("axis", "axis2") if joint.find(tag) is not None or tag == "axis"
    ]
    if KINDS[kind] == "universal":
        if any(value != forces[0][name] for other in forces[1:] for name, value in other.items()):
            raise MechanismError(f"{where}: both axes must have the same limits, damping, spring and friction")
        connection = replace(connection, child_axis=_axis(reading, scope, joint, "axis2", X))
    connection = replace(connection, axis=_axis(reading, scope, joint, "axis", X), **forces[0])
    return _at_position(document, joint, connection)


def _two_frames(reading: _Reading, scope: str, joint: ET.Element) -> tuple[str, str] | None:
    """Names of the frames on parent and child, where the file states both (Drake's extension)."""
    names = [(joint.findtext(f"drake:{end}_frame") or "").strip() for end in ("parent", "child")]
    if not any(names):
        return None
    if not all(names):
        raise MechanismError(
            f"{reading.document.where(joint)}: must have both drake:parent_frame and drake:child_frame, got one"
        )
    first, second = (reading.full(scope, name, joint) for name in names)
    for frame, end in ((first, "parent"), (second, "child")):
        link = reading.link(reading.full(scope, _text(reading.document, joint, end), joint))
        if reading.link(frame) != link:
            raise MechanismError(
                f"{reading.document.where(joint)}: drake:{end}_frame must be on link '{link}', got a frame on "
                f"'{reading.link(frame)}'"
            )
    return first, second


def _pitch(document: XmlDocument, joint: ET.Element) -> float:
    """Travel of a screw per turn [m]; `thread_pitch` of versions before 1.10 is −2π over it."""
    old = joint.findtext("thread_pitch") if joint.find("screw_thread_pitch") is None else None
    if old is not None:
        turns = float(document.numbers(joint, "thread_pitch", old, np.ones(1))[0])
        if not turns:
            raise MechanismError(f"{document.where(joint)}: thread_pitch must not be 0")
        return -2 * np.pi / turns
    return float(document.numbers(joint, "screw_thread_pitch", joint.findtext("screw_thread_pitch"), np.ones(1))[0])


def _axis(reading: _Reading, scope: str, joint: ET.Element, tag: str, X: Array) -> Array:
    """Unit axis in the frame of the joint [-], shape (3,).

    Args:
        X: Frame of the joint in the world [m and -], shape (4, 4).
    """
    axis = joint.find(tag)
    xyz = axis.find("xyz") if axis is not None else None
    text = xyz.text if xyz is not None else None
    values = reading.document.numbers(joint, f"{tag}/xyz", text, np.array([0.0, 0.0, 1.0]))
    length = float(np.linalg.norm(values))
    if not length:
        raise MechanismError(f"{reading.document.where(joint)}: {tag}/xyz must not be zero")
    expressed = xyz.get("expressed_in", "") if xyz is not None else ""
    in_model = reading.version < AXIS_IN_MODEL or (
        axis is not None and (axis.findtext("use_parent_model_frame") or "").strip() in ("true", "1")
    )
    if reading.version < FULL_MODEL_FRAME and in_model:
        expressed = "__model__"
    R = reading.X(reading.full(scope, expressed, joint))[:3, :3] if expressed else X[:3, :3]
    return np.asarray(X[:3, :3].T @ R @ values / length)


def _forces(reading: _Reading, scope: str, joint: ET.Element, tag: str) -> dict[str, Any]:
    """Limits, damping, spring and friction of an axis, as fields of a `Connection`."""
    document = reading.document

    def number(path: str, default: float) -> float:
        text = joint.findtext(f"{tag}/{path}")
        try:
            value = float(text) if text else default
        except ValueError:
            value = np.nan
        if np.isnan(value):
            raise MechanismError(f"{document.where(joint)}: {tag}/{path} must be a number, got '{text}'")
        return value

    low, high = number("limit/lower", -np.inf), number("limit/upper", np.inf)
    effort = number("limit/effort", np.inf)
    is_limited = joint.get("type") != "continuous" and low < high and (low > -UNLIMITED or high < UNLIMITED)
    offset = float(_position(document, joint)[0])
    return {
        "limits": (max(low, -UNLIMITED) + offset, min(high, UNLIMITED) + offset) if is_limited else None,
        "effort": effort if 0 < effort < UNLIMITED else None,  # 0: no actuator; negative: no limit
        "armature": _reflected(document, joint) if KINDS[joint.get("type", "")] != "universal" else 0.0,
        "damping": number("dynamics/damping", 0.0),
        "stiffness": number("dynamics/spring_stiffness", 0.0),
        "spring_reference": number("dynamics/spring_reference", 0.0) + offset,
        "friction": number("dynamics/friction", 0.0),
        "mimic": _mimic(reading, scope, joint, tag, offset),
    }


def _reflected(document: XmlDocument, joint: ET.Element) -> float:
    """Reflected inertia of the rotor, Drake's rotor inertia times the square of its gear ratio [kg or kg m²]."""
    rotor, gear = (
        float(document.numbers(joint, name, joint.findtext(name), np.array([default]))[0])
        for name, default in (("drake:rotor_inertia", 0.0), ("drake:gear_ratio", 1.0))
    )
    return rotor * gear**2


def _position(document: XmlDocument, joint: ET.Element) -> Array:
    """Position in the pose of the file [m, rad or a quaternion]: zero, unless loopcheck wrote the file."""
    is_ball = joint.get("type") == "ball"
    zero = np.array([1.0, 0.0, 0.0, 0.0]) if is_ball else np.zeros(1)
    return document.numbers(joint, f"{PREFIX}position", joint.get(f"{PREFIX}position"), zero)


def _at_position(document: XmlDocument, joint: ET.Element, connection: Connection) -> Connection:
    """The connection with its zero where the file has it."""
    position = _position(document, joint)
    match connection.kind:
        case "revolute":
            M = rigid_frame(np.zeros(3), of_axis(connection.axis, -float(position[0])))
        case "prismatic":
            M = rigid_frame(-position[0] * connection.axis, np.eye(3))
        case "spherical":
            R = connection.child_frame[:3, :3]
            M = rigid_frame(np.zeros(3), R.T @ of_quaternion(position).T @ R)
        case _:
            M = np.eye(4)
    return replace(connection, parent_frame=connection.parent_frame @ M)


def _mimic(reading: _Reading, scope: str, joint: ET.Element, tag: str, offset: float) -> Mimic | None:
    element = joint.find(f"{tag}/mimic")
    if element is None and tag == "axis":
        element = joint.find("drake:mimic")
    if element is None:
        return None
    document, of_drake = reading.document, element.tag != "mimic"
    leader = reading.frames[reading.full(scope, element.get("joint", ""), joint)].element

    def number(name: str, default: float) -> float:
        text = element.get(name) if of_drake else element.findtext(name)
        return float(document.numbers(joint, f"mimic/{name}", text, np.array([default]))[0])

    multiplier = number("multiplier", 1.0)
    moved = number("reference", 0.0) + float(_position(document, leader)[0])
    name = leader.get(f"{PREFIX}name") or str(leader.get("name"))
    return Mimic(
        leader=_joined(scope, name), multiplier=multiplier, offset=offset + number("offset", 0.0) - multiplier * moved
    )


def _motors(reading: _Reading, connections: list[Connection]) -> Iterator[Motor]:
    """Joints that a system of Gazebo drives."""
    names = {
        _joined(scope, str(joint.get("name"))): _joined(scope, joint.get(f"{PREFIX}name") or str(joint.get("name")))
        for scope, model, _ in reading.models
        for joint in model.findall("joint")
    }
    driven: dict[str, Motor] = {}
    for scope, model, _ in reading.models:
        for plugin in model.findall("plugin"):
            if plugin.get("name", "").split(SCOPE)[-1] not in DRIVES:
                continue
            for element in plugin.findall("joint_name"):
                joint = _joined(scope, (element.text or "").strip())
                if joint not in names:
                    raise NotFoundError(f"joint at {reading.document.where(plugin)}", joint, names)
                gear = reading.document.numbers(plugin, "gear", plugin.findtext("gear"), np.ones(1))
                name = (plugin.findtext("actuator") or "").strip() or names[joint]
                driven.setdefault(joint, Motor(name=name, joint=names[joint], gear=float(gear[0])))
    yield from driven.values()


def _renamed(linkage: Linkage, prefix: str) -> Linkage:
    """The linkage without the name of its only model in front of all names."""

    def short(name: str) -> str:
        return name.removeprefix(prefix)

    connections = tuple(
        replace(
            c,
            name=short(c.name),
            parent=short(c.parent),
            child=short(c.child),
            mimic=None if c.mimic is None else replace(c.mimic, leader=short(c.mimic.leader)),
        )
        for c in linkage.connections
    )
    return replace(
        linkage,
        links=tuple(replace(link, name=short(link.name)) for link in linkage.links),
        connections=connections,
        motors=tuple(replace(m, name=short(m.name), joint=short(m.joint)) for m in linkage.motors),
    )
