"""Fields of two paired robots that differ, with the differences that the digits of files explain."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import Joint, Mechanism
from loopcheck.validation.same.links import Link, Tree
from loopcheck.validation.same.mechanisms import Dynamics
from loopcheck.validation.same.pairs import ANGLE, LENGTH, TENSOR, Pair, angle_of, kind_of

Value: TypeAlias = tuple[float, ...] | str
RATIO, RANGE, GRAVITY = 1e-3, 2e-3, 0.01
"""Further differences that digits explain: of masses and drives [-], of ranges [rad or m], of gravity [m/s²]."""
EMPTY = 1e-6
"""Mass of a link that is only a frame [kg]."""
TENSOR_ENTRIES = ("xx", "yy", "zz", "xy", "xz", "yz")
DRIVES = ("effort limit", "driven")
"""Fields of actuators."""


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
    """Relative to the larger value for masses, tensors and drives [-], otherwise in the unit; infinite without a value."""
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
    efforts, driven = (
        all(any(getattr(link, name) for link in tree.links) for tree in trees) for name in ("effort", "driven")
    )
    first = len(mechanisms[0].joints) - len(pairs) + 1 if mechanisms else 0
    for k, pair in enumerate(pairs):
        if k and mechanisms:
            a, b = (mechanism.joints[k - 1 + first] for mechanism in mechanisms)
            yield from _geometry(pair)
            yield from _joint(a, b)
        if k and efforts:
            yield _ends("effort limit", (pair.a.name, _unit(pair.a)), pair.a.effort, _flipped(pair), relative=True)
        if k and driven:
            yield Difference(
                "joint", pair.a.name, "driven", "", *_words(pair), float(pair.a.driven != pair.b.driven), 0
            )
        if not pair.regular:
            parents = [tree.links[link.parent].name for tree, link in zip(trees, (pair.a, pair.b), strict=True)]
            yield Difference("joint", pair.a.name, "parent", "", parents[0], parents[1], np.inf, 0)
        elif kind_of(pair.a) != kind_of(pair.b):
            yield Difference("joint", pair.a.name, "kind", "", kind_of(pair.a), kind_of(pair.b), np.inf, 0)
        if k or trees[0].floating or trees[1].floating or (pair.a.inertial.mass and pair.b.inertial.mass):
            yield from _body(pair)
    if mechanisms:
        yield from _robot(*mechanisms)


def of_loops(dynamics: Dynamics) -> Iterator[Difference]:
    """Fields of the loops, if both robots have loops."""
    yield Difference("robot", "", "loops in closed poses of A", "m, rad", (0.0,), (dynamics.gap,), dynamics.gap, LENGTH)
    a, b = (float(n) for n in dynamics.freedoms)
    yield Difference("robot", "", "degrees of freedom", "", (a,), (b,), abs(a - b), 0)


def _geometry(pair: Pair) -> Iterator[Difference]:
    name, kind = pair.a.name, kind_of(pair.a)
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
    yield _ends("range", (a.name, unit), a.limits, b.limits)
    for field, of in (("armature", "kg m²"), ("damping", "N m s/rad"), ("friction", "N m"), ("stiffness", "N m/rad")):
        name = of if unit == "rad" else {"kg m²": "kg", "N m s/rad": "N s/m", "N m": "N", "N m/rad": "N/m"}[of]
        yield _ratio("joint", a.name, field, name, getattr(a, field), getattr(b, field))
    if a.stiffness and b.stiffness:
        apart = float(np.abs(a.spring_reference - b.spring_reference).max())
        values = tuple(a.spring_reference), tuple(b.spring_reference)
        yield Difference("joint", a.name, "spring reference", unit, *values, apart, RANGE)


def _body(pair: Pair) -> Iterator[Difference]:
    name = next((name for name in pair.a.bodies if name in pair.b.bodies), next(iter(pair.a.bodies), pair.a.name))
    a, b, R = pair.a.inertial, pair.b.inertial, pair.T[:3, :3]
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
    yield _ratio("body", name, "gravity compensation", "", a.held, b.held)


def _robot(a: Mechanism, b: Mechanism) -> Iterator[Difference]:
    apart = float(np.linalg.norm(a.gravity - b.gravity))
    yield Difference("robot", "", "gravity", "m/s²", tuple(a.gravity), tuple(b.gravity), apart, GRAVITY)
    loops = [len(each.closures) for each in (a, b)]
    if not all(loops):
        yield Difference("robot", "", "loops", "", (float(loops[0]),), (float(loops[1]),), float(max(loops)), 0)
    for element, of in (("tendon", "tendons"), ("spring", "point_springs")):
        left, right = ({each.name: each for each in getattr(model, of)} for model in (a, b))
        for name in dict.fromkeys((*left, *right)):
            if name not in left or name not in right:
                words = ["yes" if name in side else "no" for side in (left, right)]
                yield Difference(element, name, "present", "", words[0], words[1], np.inf, 0)
                continue
            for field in ("armature", "damping", "stiffness"):
                values = [getattr(side[name], field, 0.0) for side in (left, right)]
                yield _ratio(element, name, field, "", values[0], values[1])
            rest = [tuple(map(float, side[name].rest)) for side in (left, right)]
            yield _ends("rest length", (name, "m, rad"), rest[0], rest[1], element=element)


def _ratio(element: str, name: str, field: str, unit: str, a: float, b: float) -> Difference:
    ratio = abs(a - b) / max(abs(a), abs(b), EMPTY)
    return Difference(element, name, field, unit, (a,), (b,), ratio, RATIO)


def _ends(
    field: str,
    of: tuple[str, str],
    a: tuple[float, float] | None,
    b: tuple[float, float] | None,
    *,
    relative: bool = False,
    element: str = "joint",
) -> Difference:
    """Both ends of a range, of an element and in a unit `of`."""
    apart = 0.0 if a is None and b is None else np.inf
    if a is not None and b is not None:
        with np.errstate(invalid="ignore"):
            ends = np.where(np.equal(a, b), 0.0, np.abs(np.subtract(a, b)))
        apart = float(ends.max() / (max(np.abs([a, b]).max(), EMPTY) if relative and np.isfinite(ends).all() else 1.0))
    values = ["none" if each is None else tuple(map(float, each)) for each in (a, b)]
    return Difference(element, of[0], field, of[1], values[0], values[1], apart, RATIO if relative else RANGE)


def _flipped(pair: Pair) -> tuple[float, float] | None:
    effort = pair.b.effort
    return (-effort[1], -effort[0]) if effort and pair.sign < 0 else effort


def _words(pair: Pair) -> tuple[str, str]:
    return "yes" if pair.a.driven else "no", "yes" if pair.b.driven else "no"


def _unit(link: Link) -> str:
    return link.joint.effort_unit if link.joint else ""


def _entries(inertia: Array) -> Array:
    return inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
