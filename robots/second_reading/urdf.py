"""Second reading of a URDF: a tree of links, its `<constraint>` elements, transmissions and mimics."""

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

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
    parse,
    roll_pitch_yaw,
    symmetric,
    unit,
)

KINDS = {"revolute": "hinge", "continuous": "hinge", "prismatic": "slide", "fixed": "fixed"}
PARTS = ("xx", "yy", "zz", "xy", "xz", "yz")
NO_LIMIT = "limits with lower ≥ upper as no limits (taken literally, the joint is locked)"
CONTINUOUS = "the limits of a continuous joint as no limits (taken literally, the joint has limits)"
NO_EFFORT = "an effort limit of 0 as no limit (taken literally, the joint has no effort)"
NO_INERTIA = "links without <inertial> as massless (the format leaves their mass open)"
NO_PRODUCTS = "missing products of inertia as 0 (the parser of ROS refuses the link)"
NO_TENSOR = "links without <inertia> as points with a mass (the parser of ROS refuses the link)"
NO_LINK = "'world' as a link, which the file does not declare"


def read_urdf(path: Path, *, has_loop_file: bool = False) -> Table:
    """The numbers of a URDF.

    Args:
        has_loop_file: Whether a file beside it adds loops, motors and joints of another kind.

    Raises:
        NotReadError: If the reader does not read the file.
    """
    root = parse(path)
    conventions: dict[str, list[str]] = {}
    joints = root.findall("joint")
    ends = {joint: (_of(joint, "parent", "link"), _of(joint, "child", "link")) for joint in joints}
    elements = {str(link.get("name")): link for link in root.findall("link")}
    if WORLD not in elements and any(WORLD in pair for pair in ends.values()):
        elements[WORLD] = ET.Element("link")
        conventions[NO_LINK] = [WORLD]
    inbound = {ends[joint][1]: joint for joint in joints}
    poses: dict[str, Array] = {}
    for name in elements:
        way = [name]
        while way[-1] in inbound and way[-1] not in poses:
            way.append(ends[inbound[way[-1]]][0])
            if len(way) > len(elements):
                raise NotReadError("the joints are no tree")
        for link in reversed(way):
            joint = inbound.get(link)
            if link not in poses:
                poses[link] = poses[ends[joint][0]] @ _origin(joint) if joint is not None else np.eye(4)
    moving = [link for link, joint in inbound.items() if joint.get("type") != "fixed"]
    conventions[NO_INERTIA] = [link for link in moving if link in elements and elements[link].find("inertial") is None]
    inertials = {name: link.find("inertial") for name, link in elements.items()}
    tensors = {name: inertial.find("inertia") for name, inertial in inertials.items() if inertial is not None}
    conventions[NO_TENSOR] = [name for name, tensor in tensors.items() if tensor is None]
    conventions[NO_PRODUCTS] = [
        name
        for name, tensor in tensors.items()
        if tensor is not None and not all(tensor.get(f"i{part}") for part in PARTS[3:])
    ]
    # a root that no joint moves is fixed to the world
    roots = [
        Joint(name=f"{name} on the world", kind="fixed", parent=WORLD, child=name)
        for name in elements
        if name not in inbound and name != WORLD
    ]
    return Table(
        links=[_link(name, element, poses[name]) for name, element in elements.items()],
        joints=[*roots, *(_joint(joint, *ends[joint], poses, conventions) for joint in joints)],
        closures=list(_closures(root, poses)),
        couplings=[] if has_loop_file else list(_couplings(joints)),
        actuators=[] if has_loop_file else list(_actuators(root, joints)),
        is_complete=not has_loop_file,
        conventions={words: names for words, names in conventions.items() if names},
    )


def _of(element: ET.Element, child: str, attribute: str) -> str:
    found = element.find(child)
    return "" if found is None else found.get(attribute, "")


def _origin(element: ET.Element, child: str = "origin") -> Array:
    xyz, rpy = (numbers(_of(element, child, part), (0.0, 0.0, 0.0)) for part in ("xyz", "rpy"))
    return frame(xyz, roll_pitch_yaw(rpy))


def _link(name: str, element: ET.Element, X: Array) -> Link:
    inertial = element.find("inertial")
    if inertial is None:
        return Link(name=name, X=X)
    X_inertial, values = _origin(inertial), [number(_of(inertial, "inertia", f"i{part}"), 0.0) for part in PARTS]
    R = X_inertial[:3, :3]
    return Link(
        name=name,
        X=X,
        mass=number(_of(inertial, "mass", "value"), 0.0),
        center=X_inertial[:3, 3],
        inertia=R @ symmetric(values[:3], values[3:]) @ R.T,
    )


def _joint(
    joint: ET.Element, parent: str, child: str, poses: dict[str, Array], conventions: dict[str, list[str]]
) -> Joint:
    name, kind = str(joint.get("name")), str(joint.get("type"))
    if kind not in ("revolute", "continuous", "prismatic"):
        return Joint(name=name, kind=KINDS.get(kind, kind), parent=parent, child=child)
    low, high = (number(_of(joint, "limit", end), 0.0) for end in ("lower", "upper"))
    is_limited = kind != "continuous" and low < high
    if joint.find("limit") is not None and not is_limited and (low or high):
        conventions.setdefault(NO_LIMIT if kind != "continuous" else CONTINUOUS, []).append(name)
    if _of(joint, "limit", "effort") and number(_of(joint, "limit", "effort"), 0.0) == 0:
        conventions.setdefault(NO_EFFORT, []).append(name)
    X = poses[child]
    return Joint(
        name=name,
        kind=KINDS[kind],
        parent=parent,
        child=child,
        anchor=X[:3, 3],
        axis=X[:3, :3] @ unit(numbers(_of(joint, "axis", "xyz"), (1.0, 0.0, 0.0))),
        values={
            "lower limit": low if is_limited else -np.inf,
            "upper limit": high if is_limited else np.inf,
            "damping": number(_of(joint, "dynamics", "damping"), 0.0),
            "friction": number(_of(joint, "dynamics", "friction"), 0.0),
        },
    )


def _closures(root: ET.Element, poses: dict[str, Array]) -> Iterator[Closure]:
    for element in root.findall("constraint"):
        links = (_of(element, "parent", "link"), _of(element, "child", "link"))
        if element.get("type") in ("spherical", "revolute") and set(links) <= set(poses):
            ends = [
                at(poses[link], _origin(element, f"{end}_origin")[:3, 3])
                for link, end in zip(links, ("parent", "child"), strict=True)
            ]
            yield Closure(name=element.get("name", " = ".join(links)), links=links, points=(ends[0], ends[1]))


def _couplings(joints: list[ET.Element]) -> Iterator[Coupling]:
    for joint in joints:
        mimic = joint.find("mimic")
        if mimic is not None and joint.get("type") in ("revolute", "continuous", "prismatic"):
            terms = (number(mimic.get("offset"), 0.0), number(mimic.get("multiplier"), 1.0), 0.0, 0.0, 0.0)
            yield Coupling(follower=str(joint.get("name")), leader=mimic.get("joint", ""), coefficients=terms)


def _actuators(root: ET.Element, joints: list[ET.Element]) -> Iterator[Transmission]:
    """Motors of the transmissions, with the effort limits of their joints."""
    by_name = {str(joint.get("name")): joint for joint in joints if joint.get("type") != "fixed"}
    named = Counter(str(element.get("name")) for element in root.iterfind("transmission/joint"))
    for transmission in root.findall("transmission"):
        if any(named[str(element.get("name"))] > 1 for element in transmission.findall("joint")):
            continue  # readers take the first or the last
        gear = number(transmission.findtext("actuator/mechanicalReduction"), 1.0)
        for element in transmission.findall("joint"):
            joint = by_name.get(str(element.get("name")))
            if joint is None or not gear:
                continue
            effort = number(_of(joint, "limit", "effort"), 0.0)
            most = abs(effort / gear) if effort > 0 else np.inf
            values = {"gear": gear, "lower actuatorfrcrange": -most, "upper actuatorfrcrange": most}
            yield Transmission(name="", weights={str(joint.get("name")): 1.0}, values=values)
