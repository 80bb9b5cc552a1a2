"""Differences between the model of the reference and a second reading of its file.

Compared are values that the second reader reads: the inertia of each part that moves as one, with fixed links merged,
and joints, closures, couplings and actuators by their names. Tensors are compared, never principal moments: the axes of
equal moments are arbitrary.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.loop_files import loop_file_of
from loopcheck.robots.formats.sdf import is_sdf
from loopcheck.robots.formats.urdf import is_urdf
from loopcheck.robots.formats.usd import is_usd
from loopcheck.robots.mechanism import WORLD as WORLD_INDEX
from loopcheck.robots.mechanism import Coordinate, CoordinateClosure, Mechanism, WeldClosure
from loopcheck.robots.second_reading.mjcf import read_mjcf
from loopcheck.robots.second_reading.sdf import read_sdf
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
)
from loopcheck.robots.second_reading.urdf import read_urdf

ROUND_OFF = 1e-9
"""Largest difference over the largest entry of both readings [-]."""
LEAST_MOMENT = 1e-14
"""Difference of a moment that is round-off of any tensor; readers give thin rods a little more [kg m²]."""
LEAST = 1e-12
"""Difference of any other number that is round-off of sums [SI]."""
FREEDOMS = ("hinge", "slide", "ball", "free")
UNLIMITED = 1e15
"""Positions from here on are no limits; readers have a number of this size for a side without a limit [m or rad]."""
POSITIONS = ("lower limit", "upper limit", "position", "spring reference")
UNREADABLE = (NotReadError, MechanismError, OSError, KeyError, ValueError)
"""Errors of a second reader on a file that it does not read."""
HALF = ", half at "
"""Part of the name of a body that carries half of a link at a loop."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A value that two readings of a file read differently."""

    element: str
    """Kind and name, as `joint 'knee'`."""
    quantity: str
    unit: str
    first: float | str
    """Value of the reference."""
    second: float | str
    """Value of the second reading."""

    @property
    def values(self) -> tuple[float, float]:
        """Both values as numbers, NaN for words."""
        first, second = (np.nan if isinstance(value, str) else value for value in (self.first, self.second))
        return first, second

    def __str__(self) -> str:
        first, second = (
            value if isinstance(value, str) else f"{value:.17g} {self.unit}".strip()
            for value in (self.first, self.second)
        )
        return (
            f"{self.quantity} of {self.element} is {first} in the reference, {second} in a second reading of the file"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Result of a second reading."""

    differences: tuple[Difference, ...] = ()
    compared: int = 0
    """Number of compared values."""
    parts_unread: int = 0
    """Number of moving parts with an inertia that is not read, as of geometry."""
    unread: str = ""
    """Reason why the file is not read a second time; empty if it is."""
    conventions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Elements by registered convention."""


def second_reading(path: Path) -> Table:
    """The numbers of a model file by plain XML.

    Raises:
        NotReadError: If the reader does not read the file.
    """
    if is_usd(path):
        raise NotReadError("USD has no second reader")
    if is_urdf(path):
        return read_urdf(path, has_loop_file=loop_file_of(path) is not None)
    return read_sdf(path) if is_sdf(path) else read_mjcf(path)


def compare_with_file(mechanism: Mechanism, *, has_own_gravity: bool = True) -> Comparison:
    """Compare a mechanism with a second reading of its file.

    Args:
        mechanism: As its file states it: without the overrides of a variant.
        has_own_gravity: Whether it has the gravity of its file.
    """
    try:
        second = second_reading(mechanism.model.path)
        return compare(mechanism, second if has_own_gravity else replace(second, gravity=None))
    except UNREADABLE as error:
        return Comparison(unread=f"{type(error).__name__}: {error}")


def compare(mechanism: Mechanism, second: Table) -> Comparison:
    """Compare a mechanism with another reading of its file."""
    comparing = _Comparing(mechanism, second)
    differences = tuple(comparing.all())
    return Comparison(
        differences=differences,
        compared=comparing.compared,
        parts_unread=comparing.parts_unread,
        conventions=second.conventions,
    )


def compare_inertia(mechanism: Mechanism, links: Iterable[Link]) -> Comparison:
    """Compare the inertia of the moving parts with that of the links of an engine's own reader.

    Parts are compared if the reader has each of their massive links, and if plain XML states their inertia.

    Args:
        links: Links in their own frames; a link may have the inertia of all links fixed to it. Poses are not used.
    """
    try:
        stated = {link.name for link in second_reading(mechanism.model.path).links if link.mass is not None}
    except UNREADABLE as error:
        return Comparison(unread=f"{type(error).__name__}: {error}")
    reference = reference_table(mechanism)
    poses = {link.name: link.X for link in reference.links if link.name in stated}
    found = {link.name: replace(link, X=poses[link.name]) for link in links if link.name in poses}
    comparing = _Comparing(mechanism, Table(links=list(found.values()), joints=()))
    parts = comparing.parts_of_reference
    unread = {parts[link.name] for link in reference.links if link.mass and link.name not in found}
    comparing.second = Table(links=[link for link in found.values() if parts[link.name] not in unread], joints=())
    return Comparison(differences=tuple(comparing.inertias(parts)), compared=comparing.compared)


def reference_table(mechanism: Mechanism) -> Table:
    """The numbers of a mechanism in the pose of its file."""
    poses = [*_poses(mechanism), np.eye(4)]  # the last is that of `WORLD_INDEX`
    names = [*(body.name for body in mechanism.bodies), WORLD]
    joints = []
    for b, body in enumerate(mechanism.bodies):
        parent = names[body.parent]
        if not mechanism.joints_of[b]:
            joints.append(Joint(name="", kind="fixed", parent=parent, child=body.name))
        for j in mechanism.joints_of[b]:
            joint, R = mechanism.joints[j], poses[b][:3, :3]
            low, high = joint.limits or (-np.inf, np.inf)
            low, high = (low if low > -UNLIMITED else -np.inf), (high if high < UNLIMITED else np.inf)
            values = {
                "lower limit": low,
                "upper limit": high,
                "damping": joint.damping,
                "friction": joint.friction,
                "stiffness": joint.stiffness,
                "armature": joint.armature,
            }
            if joint.kind in ("hinge", "slide"):
                values |= {
                    "position": float(joint.rest_position[0]),
                    "spring reference": float(joint.spring_reference[0]),
                }
            joints.append(
                Joint(
                    name=joint.name,
                    kind=joint.kind,
                    parent=parent,
                    child=body.name,
                    anchor=at(poses[b], joint.anchor),
                    axis=R @ joint.axis,
                    values=values,
                )
            )
    closures = [
        Closure(
            name=closure.name,
            links=(names[closure.body1], names[closure.body2]),
            points=(at(poses[closure.body1], closure.point1), at(poses[closure.body2], closure.point2)),
            rotation=closure.rotation if isinstance(closure, WeldClosure) else None,
        )
        for closure in mechanism.rigid_closures
    ]
    ideal = list(poses)
    for closure in mechanism.rigid_closures:
        if isinstance(closure, WeldClosure) and HALF in names[closure.body1]:
            back = frame(-closure.rotation.T @ closure.point1 + closure.point2, closure.rotation.T)
            ideal[closure.body1] = poses[closure.body2] @ back
    return Table(
        links=[
            Link(
                name=body.name,
                X=X,
                mass=body.mass,
                center=body.center,
                inertia=body.inertia,
                compensation=body.gravity_compensation,
            )
            for body, X in zip(mechanism.bodies, ideal[:-1], strict=True)
        ],
        joints=joints,
        closures=closures,
        couplings=[_coupling(closure) for closure in mechanism.coordinate_closures],
        actuators=[
            Transmission(
                name=actuator.name,
                weights=_weights(mechanism, actuator.coordinate),
                values={
                    "gear": actuator.gear,
                    **{f"lower {limit.name}": limit.low for limit in actuator.limits},
                    **{f"upper {limit.name}": limit.high for limit in actuator.limits},
                },
            )
            for actuator in mechanism.actuators
        ],
        tendons=[
            Transmission(
                name=tendon.name,
                weights=_weights(mechanism, tendon.length),
                values={"damping": tendon.damping, "stiffness": tendon.stiffness, "armature": tendon.armature},
            )
            for tendon in mechanism.tendons
        ],
        gravity=mechanism.gravity,
    )


def _poses(mechanism: Mechanism) -> list[Array]:
    """Poses of the bodies in the pose of the file, in which no joint moves them [m and -], each of shape (4, 4)."""
    poses: list[Array] = []
    for b, body in enumerate(mechanism.bodies):
        is_free = any(mechanism.joints[j].kind == "free" for j in mechanism.joints_of[b])
        parent = np.eye(4) if body.parent == WORLD_INDEX or is_free else poses[body.parent]
        poses.append(parent @ frame(body.position, body.rotation))
    return poses


def _weights(mechanism: Mechanism, coordinate: Coordinate) -> dict[str, float]:
    pairs = zip(coordinate.joints, coordinate.weights, strict=True)
    return {mechanism.joints[j].name: float(weight) for j, weight in pairs}


def _coupling(closure: CoordinateClosure) -> Coupling:
    leader = "" if closure.leader is None else closure.leader.name
    terms = tuple(float(term) for term in closure.coefficients)
    return Coupling(follower=closure.follower.name, leader=leader, coefficients=terms)


class _Comparing:
    """The comparison of two tables."""

    def __init__(self, mechanism: Mechanism, second: Table) -> None:
        self.first, self.second = reference_table(mechanism), second
        self.has_own_motors = bool(mechanism.model.actuated)
        self.compared = 0
        """Number of compared values."""
        self.parts_unread = 0
        fixed = {joint.name for joint in second.joints if joint.kind == "fixed"}
        rigid = zip(mechanism.rigid_closures, self.first.closures, strict=True)
        welds = [one.links for closure, one in rigid if isinstance(closure, WeldClosure) and _is_rigid(one, fixed)]
        self.parts_of_reference = _parts(self.first, welds)
        self.parts = _parts(second, ())
        self.size = max((float(np.abs(link.X[:3, 3]).max()) for link in self.first.links), default=0.0) or 1.0
        """Largest coordinate of the robot [m]."""

    def all(self) -> Iterator[Difference]:
        """All differences."""
        yield from self.inertias(self.parts)
        yield from self._joints()
        yield from self._closures()
        yield from self._couplings()
        if not self.has_own_motors:
            yield from self._transmissions("actuator", self.first.actuators, self.second.actuators)
        yield from self._transmissions("tendon", self.first.tendons, self.second.tendons)
        if self.second.gravity is not None and self.first.gravity is not None:
            g = self.second.gravity
            yield from self._arrays(
                "option 'gravity'", "gravity", "m/s²", self.first.gravity, g, float(np.abs(g).max())
            )

    def inertias(self, parts: Mapping[str, str]) -> Iterator[Difference]:
        """Differences of the inertias of parts that move as one.

        Args:
            parts: Part of each link by the second reading.
        """
        first = {link.name: link for link in self.first.links}
        members: dict[str, list[Link]] = {}
        for link in self.second.links:
            members.setdefault(parts.get(link.name, link.name), []).append(link)
        for part, links in members.items():
            if part == parts.get(WORLD, WORLD):
                continue
            if any(link.mass is None for link in links):
                self.parts_unread += 1
                continue
            named = next((link.name for link in links if link.mass or link.inertia.any()), "")
            if named and named not in first:
                yield Difference(f"body '{named}'", "mass", "kg", "no such body", _sum(links)[0])
                continue
            element, own = f"body '{named or links[0].name}'", self.parts_of_reference.get(named)
            others = [k for k in first.values() if self.parts_of_reference[k.name] == own]
            massless = [first[link.name] for link in links if link.name in first]
            one, other = _sum(others if named else massless), _sum(links)
            yield from self._scalar(element, "mass", "kg", one[0], other[0])
            if one[0] and other[0]:
                yield from self._arrays(element, "mass centre", "m", one[1], other[1], self.size)
            if named and all(link.compensation is not None for link in links):
                held = [sum((k.mass or 0.0) * (k.compensation or 0.0) for k in some) for some in (others, links)]
                yield from self._scalar(element, "mass without weight", "kg", held[0], held[1])
            scale = max(float(np.abs(I).max()) for I in (one[2], other[2])) + LEAST_MOMENT / ROUND_OFF
            yield from self._arrays(element, "inertia", "kg m²", one[2], other[2], scale)

    def _joints(self) -> Iterator[Difference]:
        known = {joint.name: joint for joint in self.first.joints if joint.kind != "fixed"}
        several = Counter(joint.child for joint in known.values())
        for joint in self.second.joints:
            found, element = known.get(joint.name), f"joint '{joint.name}'"
            if found is None:
                yield from self._loop_joint(joint, element)
            elif found.kind != joint.kind:
                if joint.kind in FREEDOMS and self.second.is_complete:
                    yield Difference(element, "kind", "", found.kind, joint.kind)
            else:
                yield from self._same_joint(element, found, joint, is_single=several[found.child] == 1)
        if self.second.names_all_joints:
            for name in known.keys() - {joint.name for joint in self.second.joints}:
                yield Difference(f"joint '{name}'", "kind", "", known[name].kind, "no such joint")

    def _same_joint(self, element: str, found: Joint, joint: Joint, *, is_single: bool) -> Iterator[Difference]:
        """Differences of a joint of the same kind.

        Args:
            is_single: Whether no other joint moves the body.
        """
        yield from self._lines(element, found, joint)
        if is_single or self.second.names_all_joints:
            yield from self._ends(element, (found.parent, found.child), joint)
        for quantity, value in joint.values.items():
            if quantity in found.values:
                least, unit = LEAST if quantity in POSITIONS else 0.0, _unit(quantity, joint.kind)
                yield from self._scalar(element, quantity, unit, found.values[quantity], value, least)

    def _lines(self, element: str, found: Joint, joint: Joint) -> Iterator[Difference]:
        """Differences of the axis and its place."""
        child = self.parts.get(found.child)
        is_turned = found.child == joint.parent or (
            found.child != joint.child and child == self.parts.get(joint.parent) != self.parts.get(joint.child)
        )
        if is_turned and joint.name in self.second.universal:
            return  # its first axis is then minus the second
        if joint.kind in ("hinge", "slide") and joint.axis is not None and found.axis is not None:
            yield from self._arrays(element, "axis", "", found.axis, -joint.axis if is_turned else joint.axis, 1.0)
        if joint.kind in ("hinge", "ball") and joint.anchor is not None and found.anchor is not None:
            axis = np.zeros(3) if joint.axis is None else joint.axis
            places = [point - (point @ axis) * axis for point in (found.anchor, joint.anchor)]
            yield from self._arrays(element, "place of the axis", "m", places[0], places[1], self.size)

    def _ends(self, element: str, links: tuple[str, str], joint: Joint | Closure) -> Iterator[Difference]:
        """A difference of the two parts that a joint or closure connects."""
        stated = (joint.parent, joint.child) if isinstance(joint, Joint) else joint.links
        self.compared += 1
        if all(name in self.parts for name in links):
            parts = [{self.parts[name] for name in ends if name in self.parts} for ends in (links, stated)]
            if parts[0] != parts[1]:
                yield Difference(element, "links", "", " and ".join(links), " and ".join(stated))

    def _loop_joint(self, joint: Joint, element: str) -> Iterator[Difference]:
        """Differences of a joint that closes a loop in the reference: its points are on the axis."""
        closures = [c for c in self.first.closures if c.name == joint.name or c.name.startswith(f"{joint.name}, ")]
        for closure in closures if joint.kind == "fixed" and joint.anchor is not None else ():
            yield from self._arrays(element, "gap of the weld", "m", *closure.points, self.size)
        if joint.kind not in FREEDOMS or (not closures and not self.second.is_complete):
            return
        if not closures:
            yield Difference(element, "kind", "", "no such joint", joint.kind)
        if joint.anchor is None:
            return
        axis = np.zeros(3) if joint.axis is None else joint.axis
        for closure in closures:
            yield from self._ends(element, closure.links, joint)
            for point in closure.points:
                on_axis = joint.anchor + ((point - joint.anchor) @ axis) * axis
                yield from self._arrays(element, "point of the loop", "m", point, on_axis, self.size)

    def _closures(self) -> Iterator[Difference]:
        """Differences of closures; each is compared with the nearest between the same parts."""
        for closure in self.second.closures:
            element, ends = f"equality '{closure.name}'", tuple(self.parts.get(name, name) for name in closure.links)
            candidates = [
                one
                for other in self.first.closures
                for one in (other, _swapped(other))
                if tuple(self.parts.get(name, name) for name in one.links) == ends
            ]
            if not candidates:
                yield Difference(element, "links", "", "no such closure", " and ".join(closure.links))
                continue
            nearest = min(candidates, key=lambda one: _distance(one, closure))
            for k, name in enumerate(closure.links):
                points = nearest.points[k], closure.points[k]
                yield from self._arrays(element, f"point on '{name}'", "m", *points, self.size)
            if closure.rotation is not None and nearest.rotation is not None:
                yield from self._arrays(element, "rotation", "", nearest.rotation, closure.rotation, 1.0)

    def _couplings(self) -> Iterator[Difference]:
        for coupling in self.second.couplings:
            element = f"{coupling.kind} '{coupling.follower}'"
            known = [one for one in self.first.couplings if one.follower == coupling.follower]
            found = [one for one in known if one.leader == coupling.leader]
            if not found:
                leaders = " and ".join(one.leader for one in known) or "no such coupling"
                yield Difference(element, "leader", "", leaders, coupling.leader)
                continue
            want = np.array(coupling.coefficients)
            terms = min((np.array(one.coefficients) for one in found), key=lambda one: float(np.abs(one - want).max()))
            yield from self._arrays(element, "coefficient", "", terms, want, float(np.abs(want).max()) + LEAST)

    def _transmissions(
        self, kind: str, first: Sequence[Transmission], second: Sequence[Transmission]
    ) -> Iterator[Difference]:
        """Differences of actuators or tendons, by their names or their joints."""
        for one in second:
            joints = " and ".join(one.weights)
            element = f"{kind} '{one.name or joints}'"
            known = [other for other in first if other.name == one.name] if one.name else []
            if not one.name:
                known = [other for other in first if other.weights.keys() == one.weights.keys()]
            if not known or known[0].weights.keys() != one.weights.keys():
                found = " and ".join(known[0].weights) if known else f"no such {kind}"
                yield Difference(element, "joints", "", found, joints)
                continue
            for joint, weight in one.weights.items():
                yield from self._scalar(element, f"weight of '{joint}'", "", known[0].weights[joint], weight)
            for quantity, value in one.values.items():
                none = -np.inf if quantity.startswith("lower") else np.inf
                yield from self._scalar(element, quantity, "", known[0].values.get(quantity, none), value)

    def _scalar(
        self, element: str, quantity: str, unit: str, first: float, second: float, least: float = 0.0
    ) -> Iterator[Difference]:
        """A difference of two numbers beyond round-off, or beyond an absolute value."""
        self.compared += 1
        if first != second:
            limit = ROUND_OFF * max(abs(first), abs(second)) + least
            if not np.isfinite(limit) or not abs(first - second) <= limit:
                yield Difference(element, quantity, unit, first, second)

    def _arrays(
        self, element: str, quantity: str, unit: str, first: Array, second: Array, scale: float
    ) -> Iterator[Difference]:
        """The largest difference of two arrays beyond round-off.

        Args:
            first: Array of the reference [any unit], of any shape.
            second: Array of the second reading [any unit], of the same shape.
            scale: Size of the quantity.
        """
        self.compared += first.size
        error = np.abs(first - second)
        place = np.unravel_index(int(error.argmax()), error.shape)
        if not error[place] <= ROUND_OFF * scale:
            entry = "".join(str(k) if quantity == "coefficient" else "xyz"[k] for k in place)
            yield Difference(element, f"{quantity} {entry}", unit, float(first[place]), float(second[place]))


def _swapped(closure: Closure) -> Closure:
    """The same closure, from its second link."""
    rotation = None if closure.rotation is None else closure.rotation.T
    return replace(closure, links=closure.links[::-1], points=closure.points[::-1], rotation=rotation)


def _distance(closure: Closure, other: Closure) -> float:
    """Largest distance of the points of two closures, of one kind if possible [m]."""
    points = float(np.abs(np.array(closure.points) - np.array(other.points)).max())
    return points if (closure.rotation is None) == (other.rotation is None) else np.inf


def _is_rigid(weld: Closure, fixed: Iterable[str]) -> bool:
    """Whether a weld joins the halves of a link, or is a fixed joint of the file."""
    return HALF in weld.links[0] or weld.name in fixed


def _parts(table: Table, welds: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Part that moves as one of each link, by the name of a link."""
    part = {name: name for name in (WORLD, *(link.name for link in table.links))}

    def root(name: str) -> str:
        while part[name] != name:
            name = part[name]
        return name

    fixed = [(joint.parent, joint.child) for joint in table.joints if joint.kind == "fixed"]
    for a, b in (*fixed, *welds):
        if a in part and b in part:
            part[root(b)] = root(a)
    return {name: root(name) for name in part}


def _sum(links: Sequence[Link]) -> tuple[float, Array, Array]:
    """Mass [kg], mass centre [m] and inertia about it, world axes [kg m²], of links that move as one."""
    masses = np.array([link.mass or 0.0 for link in links])
    centers = np.array([at(link.X, link.center) for link in links]).reshape(-1, 3)
    mass = float(masses.sum())
    center = masses @ centers / mass if mass else np.zeros(3)
    inertia = np.zeros((3, 3))
    for link, m, c in zip(links, masses, centers - center, strict=True):
        R = link.X[:3, :3]
        inertia += R @ link.inertia @ R.T + m * (c @ c * np.eye(3) - np.outer(c, c))
    return mass, center, inertia


def _unit(quantity: str, kind: str) -> str:
    """Unit of a value of a joint; balls have the units of hinges."""
    length, force = ("m", "N") if kind == "slide" else ("rad", "N m")
    units = {"damping": f"{force} s/{length}", "friction": force, "stiffness": f"{force}/{length}"}
    return units.get(quantity, length if quantity in POSITIONS else "kg" if kind == "slide" else "kg m²")
