"""Fields of two paired robots that differ, with the differences that the digits of files explain."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import Joint, Mechanism
from loopcheck.validation.same.links import BASE, Tree
from loopcheck.validation.same.mechanisms import Dynamics
from loopcheck.validation.same.pairs import ANGLE, LENGTH, TENSOR, Pair, angle_of

Value: TypeAlias = tuple[float, ...] | str
RATIO, RANGE, GRAVITY, FORCES = 1e-3, 2e-3, 0.01, 5e-3
"""Further differences that digits explain: of masses and drives [-], ranges [rad, m], gravity [m/s²], forces [-]."""
EMPTY = 1e-6
"""Mass of a link that is only a frame [kg]."""
TENSOR_ENTRIES = ("xx", "yy", "zz", "xy", "xz", "yz")
SMALLEST = 1e-9
"""Smallest reference of a ratio [as the field]."""
TERMS = {
    "armature": ("kg m²", "kg"),
    "damping": ("N m s/rad", "N s/m"),
    "friction": ("N m", "N"),
    "stiffness": ("N m/rad", "N/m"),
}
"""Fields of joints, with their units for hinges and slides."""
DRIVES = ("effort limit", "driven")
"""Fields of actuators."""
FIELDS = (
    *("mass", "centre", "inertia", "gravity compensation", "axis", "direction", "zero", "orientation", "position"),
    *("range", *TERMS, "spring reference", *DRIVES, "parent", "kind", "gravity", "loops", "couplings"),
    *("loops closed in A", "degrees of freedom", "present", "rest length", "forces on joints"),
)


class Difference(NamedTuple):
    """A field with its values in both files."""

    element: str
    """Kind of the element, as `joint`."""
    name: str
    """Name of the element in A."""
    field: str
    unit: str
    a: Value
    b: Value
    """Value in B, along the axes of A."""
    difference: float
    """Of masses, tensors and drives relative to the larger [-], otherwise in the unit; infinite if a value is none."""
    tolerance: float
    """Largest difference that the digits of files explain."""


def differences(
    trees: tuple[Tree, Tree], pairs: Sequence[Pair], mechanisms: tuple[Mechanism, Mechanism] | None
) -> Iterator[Difference]:
    """All compared fields.

    Args:
        trees: A and B.
        pairs: Their links.
        mechanisms: Both in the same frames, if their joints have the same order and kinds.
    """
    stated = [name for name in ("effort", "driven") if all(any(getattr(link, name) for link in t.links) for t in trees)]
    for pair in pairs[1:]:
        yield from _drives(pair, stated)
        if not pair.is_regular:
            parents = [tree.links[link.parent].name for tree, link in zip(trees, (pair.a, pair.b), strict=True)]
            yield Difference("joint", pair.a.name, "parent", "", parents[0], parents[1], np.inf, 0)
        yield Difference("joint", pair.a.name, "kind", "", pair.a.kind, pair.b.kind, pair.a.kind != pair.b.kind, 0)
    if mechanisms:
        joints = [mechanism.joints[len(mechanism.joints) - len(pairs) + 1 :] for mechanism in mechanisms]
        for pair, left, right in zip(pairs[1:], *joints, strict=True):
            yield from (*_geometry(pair), *_joint(left, right))
        yield from _robot(trees, *(mechanism.gravity for mechanism in mechanisms))
    never_acts = not (trees[0].floating or trees[1].floating) and not (pairs[0].a.body.mass and pairs[0].b.body.mass)
    for pair in pairs[never_acts:]:
        yield from _body(pair)


def of_loops(gap: float, freedoms: tuple[int, int]) -> Iterator[Difference]:
    """Fields of the loops, if both robots have loops.

    Args:
        gap: Largest gap of B's loops in closed poses of A [m or rad].
        freedoms: Degrees of freedom of both.
    """
    yield Difference("robot", "", "loops closed in A", "m", (0.0,), (gap,), gap, LENGTH)
    a, b = (float(n) for n in freedoms)
    yield Difference("robot", "", "degrees of freedom", "", (a,), (b,), abs(a - b), 0)


def of_forces(forces: Dynamics) -> Iterator[Difference]:
    """Difference of the forces on joints, if no field differs."""
    largest = float(forces.relative.max(initial=0.0))
    yield Difference("robot", "", "forces on joints", "", (0.0,), (largest,), largest, FORCES)


def _drives(pair: Pair, stated: Sequence[str]) -> Iterator[Difference]:
    if "effort" in stated:
        effort, unit = pair.b.effort, pair.a.joint.effort_unit if pair.a.joint else ""
        effort = (-effort[1], -effort[0]) if effort and pair.sign < 0 else effort
        yield _ends("joint", pair.a.name, "effort limit", unit, pair.a.effort, effort)
    if "driven" in stated:
        words = ["yes" if link.driven else "no" for link in (pair.a, pair.b)]
        yield Difference("joint", pair.a.name, "driven", "", words[0], words[1], words[0] != words[1], 0)


def _geometry(pair: Pair) -> Iterator[Difference]:
    name, kind = pair.a.name, pair.a.kind
    unit = "m" if kind == "slide" else "rad"
    if kind in ("hinge", "slide"):
        angle = float(np.arcsin(min(1.0, float(np.linalg.norm(np.cross(pair.a.axis, pair.axis))))))
        yield Difference("joint", name, "axis", "rad", tuple(pair.a.axis), tuple(pair.axis), angle, ANGLE)
        yield Difference("joint", name, "direction", "", "+", "+" if pair.sign > 0 else "-", float(pair.sign < 0), 0)
        tolerance = RANGE if kind == "hinge" else LENGTH
        yield Difference("joint", name, "zero", unit, (0.0,), (pair.offset,), abs(pair.offset), tolerance)
    turn = angle_of(pair.rest)
    yield Difference("joint", name, "orientation", "rad", (0.0,), (turn,), turn, ANGLE)
    if kind != "slide":
        apart = pair.anchor - pair.a.anchor
        off_axis = apart - (apart @ pair.a.axis) * pair.a.axis if kind == "hinge" else apart
        content = pair.rest[:3, :3] @ pair.a.anchor + pair.rest[:3, 3] - pair.a.anchor
        distance = max(float(np.linalg.norm(off_axis)), float(np.linalg.norm(content)))
        yield Difference("joint", name, "position", "m", tuple(pair.a.anchor), tuple(pair.anchor), distance, LENGTH)


def _joint(a: Joint, b: Joint) -> Iterator[Difference]:
    unit = a.unit
    yield _ends("joint", a.name, "range", unit, a.limits, b.limits)
    for field, units in TERMS.items():
        yield _ratio("joint", a.name, field, units[unit == "m"], getattr(a, field), getattr(b, field))
    if a.stiffness and b.stiffness:
        apart = float(np.abs(a.spring_reference - b.spring_reference).max())
        values = tuple(a.spring_reference), tuple(b.spring_reference)
        yield Difference("joint", a.name, "spring reference", unit, *values, apart, RANGE)


def _body(pair: Pair) -> Iterator[Difference]:
    firsts = [next(iter(link.frames), link.name) for link in (pair.a, pair.b)]
    name = next((name for name in pair.a.frames if name in pair.b.frames), firsts[0])
    name = pair.a.name if pair.a.name == BASE and firsts[0] != firsts[1] else name
    a, b, R = pair.a.body, pair.b.body, pair.T[:3, :3]
    if max(a.mass, b.mass) > EMPTY:
        yield _ratio("body", name, "mass", "kg", a.mass, b.mass)
    if min(a.mass, b.mass) <= EMPTY:
        return
    center = R @ b.center + pair.T[:3, 3]
    values = tuple(a.center - pair.origin), tuple(center - pair.origin)
    yield Difference("body", name, "centre", "m", *values, float(np.linalg.norm(a.center - center)), LENGTH)
    tensors = [_entries(a.inertia), _entries(R @ b.inertia @ R.T)]
    largest = max(float(np.abs(entries).max()) for entries in tensors)
    apart = float(np.abs(tensors[0] - tensors[1]).max()) / largest if largest else 0.0
    yield Difference("body", name, "inertia", "kg m²", tuple(tensors[0]), tuple(tensors[1]), apart, TENSOR)
    yield _ratio("body", name, "gravity compensation", "", a.gravity_compensation, b.gravity_compensation)


def _robot(trees: tuple[Tree, Tree], left: Array, right: Array) -> Iterator[Difference]:
    """Fields of both robots, with the gravity of both in the axes of A [m/s²], shape (3,)."""
    if not any(tree.floating for tree in trees):
        apart = float(np.linalg.norm(left - right))
        yield Difference("robot", "", "gravity", "m/s²", tuple(left), tuple(right), apart, GRAVITY)
    a, b = (tree.mechanism for tree in trees)
    for field, of in (("loops", "rigid_closures"), ("couplings", "coordinate_closures")):
        counts = [float(len(getattr(each, of))) for each in (a, b)]
        if not all(counts):
            yield Difference("robot", "", field, "", (counts[0],), (counts[1],), max(counts), 0)
    for element, of in (("tendon", "tendons"), ("spring", "point_springs")):
        springs = [{each.name: each for each in getattr(model, of)} for model in (a, b)]
        for name in dict.fromkeys((*springs[0], *springs[1])):
            here = ["yes" if name in each else "no" for each in springs]
            yield Difference(element, name, "present", "", here[0], here[1], here[0] != here[1], 0)
            if here == ["yes", "yes"]:
                one, other = (each[name] for each in springs)
                for field in ("armature", "damping", "stiffness"):
                    yield _ratio(element, name, field, "", getattr(one, field, 0.0), getattr(other, field, 0.0))
                rest = [(float(each.rest[0]), float(each.rest[1])) for each in (one, other)]
                yield _ends(element, name, "rest length", "m", *rest)


def _ratio(element: str, name: str, field: str, unit: str, a: float, b: float) -> Difference:
    ratio = abs(a - b) / max(abs(a), abs(b), SMALLEST)
    return Difference(element, name, field, unit, (a,), (b,), ratio, RATIO)


def _ends(
    element: str, name: str, field: str, unit: str, a: tuple[float, float] | None, b: tuple[float, float] | None
) -> Difference:
    """Both ends of a range; of an effort limit relative to the larger."""
    relative = field == "effort limit"
    apart = 0.0 if a is None and b is None else np.inf
    if a is not None and b is not None:
        apart = max(0.0 if x == y else abs(x - y) for x, y in zip(a, b, strict=True))
        apart /= max(map(abs, (*a, *b))) if relative and np.isfinite(apart) and apart else 1.0
    values = ["none" if each is None else each for each in (a, b)]
    return Difference(element, name, field, unit, values[0], values[1], apart, RATIO if relative else RANGE)


def _entries(inertia: Array) -> Array:
    return inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
