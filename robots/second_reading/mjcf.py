"""Second reading of an MJCF: includes, defaults and classes, frames, and the settings of the compiler.

Inertias from geometry are not read, nor are composites, replicates, attached models and fused bodies.
"""

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias, TypeVar

import numpy as np

from loopcheck.robots.second_reading.tables import (
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
    symmetric,
    turn,
    unit,
)

UNREAD = ("attach", "replicate", "composite", "flexcomp", "model")
MAIN = "main"
Attributes: TypeAlias = Mapping[str, str]
Element = TypeVar("Element", Joint, Transmission)


@dataclass(slots=True)
class _Reading:
    """The tables while they are filled."""

    compiler: Attributes
    names_of_joints: frozenset[str]
    """Names that the file states."""
    classes: dict[str, dict[str, dict[str, str]]] = field(default_factory=lambda: {MAIN: {}})
    """Attributes by class and kind of element."""
    links: list[Link] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    sites: dict[str, tuple[str, Array]] = field(default_factory=dict)
    """Body and pose in the world of each site."""
    handles: set[str] = field(default_factory=set)
    """Mocap bodies: equalities to them are no closures."""
    effort_limits: dict[str, tuple[float, float]] = field(default_factory=dict)
    """Effort limits of the joints [N or N m]."""

    def attributes(self, element: ET.Element, kind: str, childclass: str = MAIN) -> Attributes:
        """Attributes of an element over those of its class."""
        name = element.get("class", childclass)
        if name not in self.classes:
            raise NotReadError(f"class '{name}' is unknown")
        return {**self.classes[name].get(kind, {}), **element.attrib}

    def angle(self, value: float) -> float:
        """An angle of the file [rad]."""
        return value if self.compiler.get("angle", "degree") == "radian" else float(np.deg2rad(value))

    def is_limited(self, attributes: Attributes, flag: str, low: float, high: float) -> bool:
        """Whether a range is a limit."""
        stated = attributes.get(flag, "auto")
        return stated == "true" or (stated == "auto" and self.compiler.get("autolimits") != "false" and low < high)

    def rotation(self, attributes: Attributes) -> Array:
        """Rotation of an element [-], shape (3, 3)."""
        if "quat" in attributes:
            return of_quaternion(numbers(attributes["quat"], (1.0, 0.0, 0.0, 0.0)))
        if "axisangle" in attributes:
            *axis, angle = numbers(attributes["axisangle"], (0.0, 0.0, 1.0, 0.0))
            return turn(axis, self.angle(angle))
        if "xyaxes" in attributes:
            xy = numbers(attributes["xyaxes"], (1.0, 0.0, 0.0, 0.0, 1.0, 0.0))
            x = unit(xy[:3])
            y = unit(xy[3:] - (xy[3:] @ x) * x)
            return np.array([x, y, np.cross(x, y)]).T
        if "zaxis" in attributes:
            z = unit(numbers(attributes["zaxis"], (0.0, 0.0, 1.0)))
            across = np.cross((0.0, 0.0, 1.0), z)
            sine = float(np.linalg.norm(across))
            return turn(across if sine > 1e-14 else (1.0, 0.0, 0.0), float(np.arctan2(sine, z[2])))
        R = np.eye(3)
        angles = numbers(attributes.get("euler"), (0.0, 0.0, 0.0))
        for name, angle in zip(self.compiler.get("eulerseq", "xyz"), angles, strict=True):
            step = turn(np.eye(3)["xyz".index(name.lower())], self.angle(angle))
            R = R @ step if name.islower() else step @ R
        return R

    def pose(self, attributes: Attributes) -> Array:
        """Pose of an element in its parent [m and -], shape (4, 4)."""
        return frame(numbers(attributes.get("pos"), (0.0, 0.0, 0.0)), self.rotation(attributes))


def read_mjcf(path: Path) -> Table:
    """The numbers of an MJCF.

    Raises:
        NotReadError: If the reader does not read the file.
    """
    root = parse(path)
    _include(root, path.parent, path.parent, 0)
    unread = next((element.tag for element in root.iter() if element.tag in UNREAD), None)
    compiler = {name: value for element in root.findall("compiler") for name, value in element.attrib.items()}
    if unread or compiler.get("fusestatic") == "true" or compiler.get("coordinate") == "global":
        raise NotReadError(f"<{unread or 'compiler'}>")
    joints = (element for element in root.iter() if element.tag in ("joint", "freejoint"))
    reading = _Reading(compiler, frozenset(str(joint.get("name")) for joint in joints))
    for element in root.findall("default"):
        name = element.get("class", MAIN)
        _classes(reading, element, MAIN if name not in reading.classes else name)
    for element in root.findall("worldbody"):
        _bodies(reading, element, WORLD, np.eye(4), element.get("childclass", MAIN))
    reading.links = _scaled(reading)
    options = {name: text for element in root.findall("option") for name, text in element.attrib.items()}
    flags = {name: text for element in root.iterfind("option/flag") for name, text in element.attrib.items()}
    has_closures = flags.get("equality") != "disable" and flags.get("constraint") != "disable"
    equalities = [element for parent in root.findall("equality") for element in parent] if has_closures else []
    g = numbers(options.get("gravity"), (0.0, 0.0, -9.81))
    actuators = [element for parent in root.findall("actuator") for element in parent]
    tendons = _without_forces_of(reading, actuators, list(_tendons(reading, root)))
    by_name = {tendon.name: tendon for tendon in tendons}
    return Table(
        links=reading.links,
        joints=_without_forces_of(reading, actuators, reading.joints),
        closures=[one for one in _closures(reading, equalities) if reading.handles.isdisjoint(one.links)],
        couplings=list(_couplings(reading, equalities, by_name)),
        actuators=list(_actuators(reading, actuators, by_name)),
        tendons=tendons,
        gravity=np.zeros(3) if flags.get("gravity") == "disable" else g,
        names_all_joints=True,
    )


def _include(element: ET.Element, home: Path, folder: Path, depth: int) -> None:
    """Put the content of included files in the place of each `<include>`."""
    if depth > 20:
        raise NotReadError("files include each other")
    for place, child in reversed(list(enumerate(element))):
        if child.tag == "include":
            name = child.get("file", "")
            path = next((where / name for where in (home, folder) if (where / name).is_file()), home / name)
            included = parse(path)
            _include(included, home, path.parent, depth + 1)
            element[place : place + 1] = list(included)
        else:
            _include(child, home, folder, depth)


def _classes(reading: _Reading, element: ET.Element, parent: str) -> None:
    name = element.get("class", parent)
    own = reading.classes.setdefault(name, {kind: dict(a) for kind, a in reading.classes[parent].items()})
    for child in element:
        if child.tag != "default":
            kind = child.tag if child.tag in ("joint", "site", "equality", "tendon", "geom") else "actuator"
            own.setdefault(kind, {}).update(child.attrib)
    for child in element.findall("default"):
        _classes(reading, child, name)


def _parts(reading: _Reading, parent: ET.Element, X: Array, childclass: str) -> Iterator[tuple[ET.Element, Array, str]]:
    """Elements of a body and of its frames, each with the frame it is in and its class."""
    for element in parent:
        if element.tag == "frame":
            inner = X @ reading.pose(element.attrib)
            yield from _parts(reading, element, inner, element.get("childclass", childclass))
        else:
            yield element, X, childclass


def _bodies(reading: _Reading, parent: ET.Element, body: str, X: Array, childclass: str) -> None:
    """Read the sites of a body, then the bodies on it."""
    parts = list(_parts(reading, parent, X, childclass))
    for element, inner, name in parts:
        if element.tag == "site" and "name" in element.attrib:
            stated = reading.attributes(element, "site", name)
            if "fromto" not in stated:
                reading.sites[element.attrib["name"]] = (body, inner @ reading.pose(stated))
    for element, inner, name in parts:
        if element.tag == "body":
            _body(reading, element, body, inner @ reading.pose(element.attrib), element.get("childclass", name))


def _body(reading: _Reading, element: ET.Element, parent: str, X: Array, childclass: str) -> None:
    name = element.get("name") or f"body{len(reading.links) + 1}"
    if element.get("mocap") == "true":
        reading.handles.add(name)
    parts = list(_parts(reading, element, X, childclass))
    joints = [part for part in parts if part[0].tag in ("joint", "freejoint")]
    for joint, inner, inherited in joints:
        _joint(reading, joint, (parent, name), inner, inherited)
    if not joints:
        reading.joints.append(Joint(name="", kind="fixed", parent=parent, child=name))
    has_geoms = any(part[0].tag == "geom" for part in parts)
    link = Link(name=name, X=X, compensation=number(element.get("gravcomp"), 0.0))
    reading.links.append(_link(reading, element.find("inertial"), link, has_geoms=has_geoms))
    _bodies(reading, element, name, X, childclass)


def _link(reading: _Reading, inertial: ET.Element | None, link: Link, *, has_geoms: bool) -> Link:
    """A body with its stated inertia and the bounds of the compiler."""
    source = reading.compiler.get("inertiafromgeom", "auto")
    if (has_geoms and source != "false" and (inertial is None or source == "true")) or source == "true":
        return replace(link, mass=None)
    mass, center, inertia = 0.0, np.zeros(3), np.zeros((3, 3))
    if inertial is not None:
        mass, center = number(inertial.get("mass"), 0.0), numbers(inertial.get("pos"), (0.0, 0.0, 0.0))
        R = reading.rotation(inertial.attrib)
        full = numbers(inertial.get("fullinertia"), (0.0,) * 6)
        diagonal = np.diag(numbers(inertial.get("diaginertia"), (0.0, 0.0, 0.0)))
        inertia = R @ (symmetric(full[:3], full[3:]) if "fullinertia" in inertial.attrib else diagonal) @ R.T
    mass = max(mass, number(reading.compiler.get("boundmass"), 0.0))
    least = number(reading.compiler.get("boundinertia"), 0.0)
    moments, axes = np.linalg.eigh(inertia)
    if moments[0] < least:
        moments = np.maximum(moments, least)
        inertia = axes @ np.diag(moments) @ axes.T
    if reading.compiler.get("balanceinertia") == "true" and moments[0] + moments[1] < moments[2]:
        inertia = np.eye(3) * moments.mean()
    return replace(link, mass=mass, center=center, inertia=inertia)


def _scaled(reading: _Reading) -> list[Link]:
    """The bodies with the total mass that the compiler sets."""
    total = number(reading.compiler.get("settotalmass"), -1.0)
    if total <= 0:
        return reading.links
    masses = [link.mass for link in reading.links]
    if None in masses:
        return [replace(link, mass=None) for link in reading.links]
    factor = total / sum(mass for mass in masses if mass is not None)
    return [replace(link, mass=factor * (link.mass or 0.0), inertia=factor * link.inertia) for link in reading.links]


def _joint(reading: _Reading, element: ET.Element, links: tuple[str, str], X: Array, childclass: str) -> None:
    name = element.get("name") or f"joint{sum(joint.kind != 'fixed' for joint in reading.joints)}"
    while not element.get("name") and name in reading.names_of_joints:
        name += "_"
    stated = reading.attributes(element, "joint", childclass) if element.tag == "joint" else element.attrib
    kind = stated.get("type", "hinge") if element.tag == "joint" else "free"
    joint = Joint(name=name, kind=kind, parent=links[0], child=links[1])
    if kind != "free":
        joint = replace(joint, anchor=at(X, numbers(stated.get("pos"), (0.0, 0.0, 0.0))))
    values = {key: number(stated.get(key), 0.0) for key in ("damping", "stiffness", "armature")}
    values["friction"] = number(stated.get("frictionloss"), 0.0)
    if numbers(stated.get("springdamper"), (0.0, 0.0)).any():
        del values["damping"], values["stiffness"]
    if kind in ("hinge", "slide"):
        joint = replace(joint, axis=X[:3, :3] @ unit(numbers(stated.get("axis"), (0.0, 0.0, 1.0))))
        angle = reading.angle if kind == "hinge" else float
        low, high = numbers(stated.get("range"), (0.0, 0.0))
        is_limited = reading.is_limited(stated, "limited", low, high)
        values["lower limit"], values["upper limit"] = (angle(low), angle(high)) if is_limited else (-np.inf, np.inf)
        values["position"] = angle(number(stated.get("ref"), 0.0))
        if values.get("stiffness"):
            values["spring reference"] = angle(number(stated.get("springref"), 0.0))
        low, high = numbers(stated.get("actuatorfrcrange"), (0.0, 0.0))
        is_limited = reading.is_limited(stated, "actuatorfrclimited", low, high)
        reading.effort_limits[name] = (low, high) if is_limited else (-np.inf, np.inf)
    reading.joints.append(replace(joint, values=values))


def _without_forces_of(reading: _Reading, actuators: list[ET.Element], elements: list[Element]) -> list[Element]:
    """Joints or tendons; armature and damping are unread if an actuator of the file has them too."""
    stated = [reading.attributes(element, "actuator") for element in actuators]
    lost = {key for key in ("armature", "damping") if any(key in attributes for attributes in stated)}
    return [
        replace(element, values={key: value for key, value in element.values.items() if key not in lost})
        for element in elements
    ]


def _closures(reading: _Reading, equalities: list[ET.Element]) -> Iterator[Closure]:
    poses = {WORLD: np.eye(4), **{link.name: link.X for link in reading.links}}
    for place, element in enumerate(equalities):
        stated = reading.attributes(element, "equality")
        if element.tag not in ("connect", "weld") or stated.get("active", "true") == "false":
            continue
        name = element.get("name") or f"equality{place}"
        is_weld = element.tag == "weld"
        turns = is_weld and number(stated.get("torquescale"), 1.0) != 0
        if "site1" in stated:
            ends = [reading.sites.get(stated.get(key, "")) for key in ("site1", "site2")]
            if ends[0] is not None and ends[1] is not None:
                (body1, X1), (body2, X2) = ends[0], ends[1]
                between = [poses[body][:3, :3].T @ X[:3, :3] for body, X in ((body1, X1), (body2, X2))]
                rotation = between[0] @ between[1].T if turns else None
                points = (X1[:3, 3], X2[:3, 3])
                yield Closure(name=name, links=(body1, body2), points=points, rotation=rotation)
            continue
        links = (stated.get("body1", ""), stated.get("body2", WORLD))
        X1, X2 = (poses[link] for link in links)
        anchor = numbers(stated.get("anchor"), (0.0, 0.0, 0.0))
        if not is_weld:
            yield Closure(name=name, links=links, points=(at(X1, anchor), at(X1, anchor)))
            continue
        relative = numbers(stated.get("relpose"), (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
        first, rotation = at(X2, anchor), X1[:3, :3].T @ X2[:3, :3]
        if relative[3:].any():
            first, rotation = at(X1, relative[:3]), of_quaternion(relative[3:])
        yield Closure(name=name, links=links, points=(first, at(X2, anchor)), rotation=rotation if turns else None)


def _couplings(
    reading: _Reading, equalities: list[ET.Element], tendons: Mapping[str, Transmission]
) -> Iterator[Coupling]:
    for element in equalities:
        stated = reading.attributes(element, "equality")
        if element.tag not in ("joint", "tendon") or stated.get("active", "true") == "false":
            continue
        follower, leader = (stated.get(f"{element.tag}{end}", "") for end in (1, 2))
        if element.tag == "tendon" and not {follower, leader} <= {*tendons, ""}:
            continue  # on a spatial tendon
        terms = numbers(stated.get("polycoef"), (0.0, 1.0, 0.0, 0.0, 0.0))
        if not leader:
            terms[1:] = 0.0
        values = tuple(map(float, terms))
        yield Coupling(kind=element.tag, follower=follower, leader=leader, coefficients=values)


def _tendons(reading: _Reading, root: ET.Element) -> Iterator[Transmission]:
    """Fixed tendons with their forces."""
    every = [element for parent in root.findall("tendon") for element in parent]
    for place, element in enumerate(every):
        if element.tag == "fixed":
            stated = reading.attributes(element, "tendon")
            weights = {str(part.get("joint")): number(part.get("coef"), 0.0) for part in element}
            values = {key: number(stated.get(key), 0.0) for key in ("damping", "stiffness", "armature")}
            yield Transmission(name=element.get("name") or f"tendon{place}", weights=weights, values=values)


def _actuators(
    reading: _Reading, actuators: list[ET.Element], tendons: Mapping[str, Transmission]
) -> Iterator[Transmission]:
    """Actuators on hinges, slides and fixed tendons."""
    for place, element in enumerate(actuators):
        stated = reading.attributes(element, "actuator")
        joint, tendon = stated.get("joint", stated.get("jointinparent", "")), stated.get("tendon", "")
        gear = number((stated.get("gear") or "1").split()[0], 1.0)
        if (joint not in reading.effort_limits and tendon not in tendons) or not gear:
            continue
        low, high = numbers(stated.get("forcerange"), (0.0, 0.0))
        is_limited = reading.is_limited(stated, "forcelimited", low, high)
        values = {"gear": gear}
        values["lower forcerange"], values["upper forcerange"] = (low, high) if is_limited else (-np.inf, np.inf)
        if joint:
            ends = sorted(end / gear for end in reading.effort_limits[joint])
            values["lower actuatorfrcrange"], values["upper actuatorfrcrange"] = ends
        weights = {joint: 1.0} if joint else tendons[tendon].weights
        yield Transmission(name=element.get("name") or f"actuator{place}", weights=weights, values=values)
