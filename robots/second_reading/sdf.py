"""Second reading of an SDF: frames of versions 1.4 to 1.12, links, joints of a tree or a loop, and mimics."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from loopcheck.robots.second_reading.tables import (
    DRAKE,
    WORLD,
    Array,
    Closure,
    Coupling,
    Joint,
    Link,
    NotReadError,
    Table,
    Transmission,
    at,
    frame,
    number,
    numbers,
    of_quaternion,
    parse,
    roll_pitch_yaw,
    symmetric,
    unit,
)

GRAVITY = (0.0, 0.0, -9.8)
SCOPE = "::"
KINDS = {"revolute": "hinge", "continuous": "hinge", "screw": "hinge", "prismatic": "slide", "ball": "ball"}
TWO_AXES = ("universal", "revolute2")
LARGE = 1e16
"""Limits and efforts from here on are none, by the format."""
TRUE = ("true", "1")
NO_LIMIT = "limits with lower ≥ upper as no limits (taken literally, the joint is locked)"
NO_EFFORT = "an effort limit of 0 as no limit (taken literally, the joint has no effort)"
NO_INERTIA = (
    "links without <inertial> as 1 kg and 1 kg m², the default of the format (taken literally, they have no mass)"
)


@dataclass(slots=True)
class _Frames:
    """Frames by full name, each with the frame it is in, its pose there, and the frame it is fixed to."""

    version: tuple[int, ...]
    frames: dict[str, tuple[str, Array, str]] = field(default_factory=dict)

    def X(self, name: str, depth: int = 0) -> Array:
        """Pose in the world [m and -], shape (4, 4)."""
        if name in ("", WORLD):
            return np.eye(4)
        if name not in self.frames or depth > len(self.frames):
            raise NotReadError(f"frame '{name}' is unknown or depends on itself")
        parent, X, _ = self.frames[name]
        return np.asarray(self.X(parent, depth + 1) @ X)

    def link(self, name: str, depth: int = 0) -> str:
        """The link that a frame is fixed to."""
        if name in ("", WORLD):
            return WORLD
        if name not in self.frames or depth > len(self.frames):
            raise NotReadError(f"frame '{name}' is unknown or fixed to itself")
        fixed_to = self.frames[name][2]
        return name if fixed_to == name else self.link(fixed_to, depth + 1)


@dataclass(slots=True)
class _Reading:
    """The frames, the joints by full name, and what the tables share."""

    frames: _Frames
    joints: dict[str, ET.Element] = field(default_factory=dict)
    models: list[tuple[str, ET.Element, bool]] = field(default_factory=list)
    """Full name, element, and whether the model is static."""
    prefix: str = ""
    """Name of the only model, which names of the reference lack."""
    conventions: dict[str, list[str]] = field(default_factory=dict)

    def short(self, name: str) -> str:
        """A name as the reference has it."""
        return name.removeprefix(self.prefix)

    def link(self, scope: str, name: str | None) -> str:
        """The link of a frame, by its name in a model."""
        return self.frames.link(_full(scope, (name or "").strip()))


def read_sdf(path: Path) -> Table:
    """The numbers of an SDF.

    Raises:
        NotReadError: If the reader does not read the file.
    """
    root = parse(path)
    if any(element.tag == "include" or element.get("placement_frame") for element in root.iter()):
        raise NotReadError("<include> or placement_frame")
    world = root.find("world")
    top = root if world is None else world
    version = tuple(map(int, numbers(root.get("version", "1.7").replace(".", " "), (1, 7))))
    reading = _Reading(_Frames(version))
    for element in top.findall("frame"):
        _add(reading.frames, "", element, fixed_to=element.get("attached_to", WORLD))
    for model in top.findall("model"):
        _declare(reading, "", model, is_static=False)
    outer = [name for name, _, _ in reading.models if SCOPE not in name]
    reading.prefix = f"{outer[0]}{SCOPE}" if len(outer) == 1 else ""
    for joint in top.findall("joint"):
        _add_joint(reading, "", joint)
    scopes = [(scope, element) for scope, element, is_static in reading.models if not is_static] + [("", top)]
    moving = [(scope, joint) for scope, element in scopes for joint in element.findall("joint")]
    links = [(scope, link, is_static) for scope, model, is_static in reading.models for link in model.findall("link")]
    static = [_full(scope, str(link.get("name"))) for scope, link, is_static in links if is_static]
    two = [_full(scope, _name(joint)) for scope, joint in moving if joint.get("type") in TWO_AXES]
    return Table(
        links=[_link(reading, scope, link) for scope, link, _ in links],
        joints=[
            *(Joint(name="", kind="fixed", parent=WORLD, child=reading.short(name)) for name in static),
            *(joint for scope, element in moving for joint in _joints(reading, scope, element)),
        ],
        closures=[closure for scope, element in scopes for closure in _balls(reading, scope, element)],
        couplings=[coupling for scope, element in moving for coupling in _couplings(reading, scope, element)],
        actuators=list(_actuators(reading)),
        gravity=numbers(top.findtext("gravity"), GRAVITY),
        universal=frozenset(f"{reading.short(name)} {place}" for name in two for place in (1, 2)),
        conventions=reading.conventions,
    )


def _full(scope: str, name: str) -> str:
    if name in ("__model__", WORLD, ""):
        return scope if name == "__model__" else WORLD
    return f"{scope}{SCOPE}{name}" if scope else name


def _declare(reading: _Reading, scope: str, model: ET.Element, *, is_static: bool) -> None:
    name = _full(scope, str(model.get("name")))
    is_static = is_static or (model.findtext("static") or "").strip() in TRUE
    reading.models.append((name, model, is_static))
    inner = [str(link.get("name")) for link in (*model.findall("link"), *model.findall("model"))]
    canonical = _full(name, model.get("canonical_link") or (inner or [WORLD])[0])
    _add(reading.frames, scope, model, fixed_to=canonical, within=scope)
    for link in model.findall("link"):
        _add(reading.frames, name, link, fixed_to=_full(name, str(link.get("name"))), within=name)
    for element in model.findall("frame"):
        _add(reading.frames, name, element, fixed_to=_full(name, element.get("attached_to", "__model__")))
    for joint in model.findall("joint"):
        _add_joint(reading, name, joint)
    for child in model.findall("model"):
        _declare(reading, name, child, is_static=is_static)


def _add_joint(reading: _Reading, scope: str, joint: ET.Element) -> None:
    reading.joints[_full(scope, str(joint.get("name")))] = joint
    _add(reading.frames, scope, joint, fixed_to=_full(scope, (joint.findtext("child") or "").strip()))


def _add(frames: _Frames, scope: str, element: ET.Element, *, fixed_to: str, within: str | None = None) -> None:
    """Add a frame; its pose is in the frame that it is fixed to, unless it states another."""
    name, pose = _full(scope, str(element.get("name"))), element.find("pose")
    if element.tag == "joint" and name in frames.frames and frames.version < (1, 7):
        name = f"{name} (joint)"
    stated = "" if pose is None else pose.get("relative_to", "")
    parent = _full(scope, stated) if stated else fixed_to if within is None else within
    frames.frames[name] = (parent, _pose(pose), fixed_to)


def _pose(pose: ET.Element | None) -> Array:
    if pose is None:
        return np.eye(4)
    if pose.get("rotation_format") == "quat_xyzw":
        values = numbers(pose.text, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
        return frame(values[:3], of_quaternion(values[[6, 3, 4, 5]]))
    values = numbers(pose.text, (0.0,) * 6)
    return frame(values[:3], roll_pitch_yaw(np.deg2rad(values[3:]) if pose.get("degrees") in TRUE else values[3:]))


def _link(reading: _Reading, scope: str, element: ET.Element) -> Link:
    full = _full(scope, str(element.get("name")))
    held = 0.0 if (element.findtext("gravity") or "true").strip() in TRUE else 1.0
    link = Link(name=reading.short(full), X=reading.frames.X(full), compensation=held)
    inertial = element.find("inertial")
    if inertial is None:
        reading.conventions.setdefault(NO_INERTIA, []).append(link.name)
        return replace(link, mass=1.0, inertia=np.eye(3))
    if inertial.get("auto") in TRUE:
        return replace(link, mass=None)
    X = _pose(inertial.find("pose"))
    diagonal = [number(inertial.findtext(f"inertia/i{part}"), 1.0) for part in ("xx", "yy", "zz")]
    products = [number(inertial.findtext(f"inertia/i{part}"), 0.0) for part in ("xy", "xz", "yz")]
    inertia = X[:3, :3] @ symmetric(diagonal, products) @ X[:3, :3].T
    return replace(link, mass=number(inertial.findtext("mass"), 1.0), center=X[:3, 3], inertia=inertia)


def _joints(reading: _Reading, scope: str, element: ET.Element) -> Iterator[Joint]:
    """The joints of the reference for a joint of the file: two for two axes and for a screw."""
    kind, full = str(element.get("type")), _full(scope, str(element.get("name")))
    name = reading.short(_full(scope, _name(element)))
    parent, child = (reading.link(scope, element.findtext(end)) for end in ("parent", "child"))
    if kind not in (*KINDS, *TWO_AXES, "fixed"):
        return
    alias = f"{full} (joint)"
    X = reading.frames.X(alias if alias in reading.frames.frames else full)
    is_plain = element.find(f"{DRAKE}parent_frame") is None and element.find(f"{DRAKE}child_frame") is None
    joint = Joint(
        name=name,
        kind=KINDS.get(kind, kind),
        parent=reading.short(parent),
        child=reading.short(child),
        anchor=X[:3, 3] if is_plain else None,
    )
    if kind in ("fixed", "ball"):
        yield joint
        return
    tags = ("axis", "axis2") if kind in TWO_AXES else ("axis",)
    for place, tag in enumerate(tags, start=1):
        axis = _axis(reading, scope, element, tag, X) if is_plain else None
        values = _values(reading, name, element, tag)
        if kind in TWO_AXES:
            yield replace(joint, name=f"{name} {place}", kind="hinge", axis=axis, values=values)
        else:
            yield replace(joint, axis=axis, values=values)
    if kind == "screw":
        yield replace(joint, name=f"{name}, slide", kind="slide", axis=axis)


def _name(element: ET.Element) -> str:
    return element.get("loopcheck:name") or str(element.get("name"))


def _axis(reading: _Reading, scope: str, element: ET.Element, tag: str, X: Array) -> Array:
    xyz = element.find(f"{tag}/xyz")
    version = reading.frames.version
    in_model = (element.findtext(f"{tag}/use_parent_model_frame") or "").strip() in TRUE
    stated = "" if xyz is None else xyz.get("expressed_in", "")
    if version < (1, 5) or (version < (1, 7) and in_model):
        stated = "__model__"
    R = reading.frames.X(_full(scope, stated)) if stated else X
    return np.asarray(R[:3, :3] @ unit(numbers(None if xyz is None else xyz.text, (0.0, 0.0, 1.0))))


def _values(reading: _Reading, name: str, element: ET.Element, tag: str) -> dict[str, float]:
    def stated(path: str, default: float) -> float:
        return number(element.findtext(f"{tag}/{path}"), default)

    low, high, position = stated("limit/lower", -LARGE), stated("limit/upper", LARGE), _position(element)
    is_limited = element.get("type") != "continuous" and low < high and (low > -LARGE or high < LARGE)
    if element.get("type") != "continuous" and low >= high:
        reading.conventions.setdefault(NO_LIMIT, []).append(name)
    if element.findtext(f"{tag}/limit/effort") and stated("limit/effort", 1.0) == 0:
        reading.conventions.setdefault(NO_EFFORT, []).append(name)
    values = {
        "lower limit": low + position if is_limited and low > -LARGE else -np.inf,
        "upper limit": high + position if is_limited and high < LARGE else np.inf,
        "damping": stated("dynamics/damping", 0.0),
        "friction": stated("dynamics/friction", 0.0),
        "stiffness": stated("dynamics/spring_stiffness", 0.0),
    }
    if values["stiffness"]:
        values["spring reference"] = stated("dynamics/spring_reference", 0.0) + position
    if tag == "axis":
        rotor, gear = (element.findtext(f"{DRAKE}{part}") for part in ("rotor_inertia", "gear_ratio"))
        values["armature"] = number(rotor, 0.0) * number(gear, 1.0) ** 2
    return values


def _position(element: ET.Element) -> float:
    """Position of a joint in the pose of the file: 0, unless loopcheck wrote the file [m or rad]."""
    return float(numbers(element.get("loopcheck:position"), (0.0, 0.0, 0.0, 0.0))[0])


def _couplings(reading: _Reading, scope: str, element: ET.Element) -> Iterator[Coupling]:
    mimic, of_drake = element.find("axis/mimic"), element.find(f"{DRAKE}mimic")
    if mimic is not None:
        stated = {part: mimic.findtext(part) for part in ("multiplier", "offset", "reference")}
    elif of_drake is not None:
        mimic, stated = of_drake, dict(of_drake.attrib)
    else:
        return
    leader = reading.joints.get(_full(scope, mimic.get("joint", "")))
    if leader is None or any(end.find(f"{DRAKE}parent_frame") is not None for end in (leader, element)):
        return
    slope = number(stated.get("multiplier"), 1.0)
    constant = number(stated.get("offset"), 0.0) - slope * number(stated.get("reference"), 0.0)
    names = [reading.short(_full(scope, _name(joint))) for joint in (element, leader)]
    yield Coupling(follower=names[0], leader=names[1], coefficients=(constant, slope, 0.0, 0.0, 0.0))


def _balls(reading: _Reading, scope: str, element: ET.Element) -> Iterator[Closure]:
    """Closures of Drake's ball constraints."""
    tag = f"{DRAKE}ball_constraint"
    for constraint in element.findall(tag):
        bodies = [_full(scope, (constraint.findtext(f"{tag}_body_{end}") or "").strip()) for end in "AB"]
        points = [numbers(constraint.findtext(f"{tag}_{end}"), (0.0, 0.0, 0.0)) for end in ("p_AP", "p_BQ")]
        ends = [at(reading.frames.X(body), point) for body, point in zip(bodies, points, strict=True)]
        links = [reading.short(reading.frames.link(body)) for body in bodies]
        yield Closure(name="ball constraint", links=(links[0], links[1]), points=(ends[0], ends[1]))


def _actuators(reading: _Reading) -> Iterator[Transmission]:
    """Gears of the joints that a system of Gazebo drives, where the file states them."""
    for scope, model, _ in reading.models:
        for plugin in model.findall("plugin"):
            for element in plugin.findall("joint_name") if plugin.find("gear") is not None else ():
                joint = reading.joints.get(_full(scope, (element.text or "").strip()))
                if joint is not None:
                    name = reading.short(_full(scope, _name(joint)))
                    yield Transmission(
                        name="", weights={name: 1.0}, values={"gear": number(plugin.findtext("gear"), 1.0)}
                    )
