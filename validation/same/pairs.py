"""Pairs of links of two models, and the motion that lays each link of the second on its partner."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.rigid_frames import of_axis, rigid_frame
from loopcheck.validation.same.links import Link, Tree

LENGTH, ANGLE, TENSOR = 1e-4, 1e-3, 5e-3
"""Differences that the digits of files explain: of a length [m], of an axis [rad], of an inertia tensor [-]."""
CLOSER = 3.0
"""Least factor by which another displacement must fit better than that of the parent link [-]."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """A link of A, its partner of B, and the displacement of B's links onto those of A at the zero pose."""

    a: Link
    b: Link
    origin: Array
    """Origin of the common frame of both links, in the world of A [m], shape (3,)."""
    T: Array
    """Displacement from the world of B to that of A of all that the joint moves [m and -], shape (4, 4)."""
    T_parent: Array
    """The same of the link before the joint [m and -], shape (4, 4)."""
    parent: int
    """Index of the pair of the parent link in A."""
    regular: bool = True
    """Whether B's link hangs on the partner of A's parent link."""

    @cached_property
    def sign(self) -> float:
        """-1 if B's axis points the other way, else 1 [-]."""
        return -1.0 if self.a.axis @ (self.T_parent[:3, :3] @ self.b.axis) < -0.5 else 1.0

    @cached_property
    def axis(self) -> Array:
        """B's axis in the world of A, along A's [-], shape (3,)."""
        return np.asarray(self.sign * self.T_parent[:3, :3] @ self.b.axis)

    @cached_property
    def anchor(self) -> Array:
        """B's anchor in the world of A [m], shape (3,)."""
        return moved(self.T_parent, self.b.anchor)

    @cached_property
    def offset(self) -> float:
        """Position of B's joint, along A's axis, at A's zero [m or rad]."""
        E = self.T @ inverse(self.T_parent)
        if not self.a.joint or self.a.joint.kind not in ("hinge", "slide"):
            return 0.0
        if self.a.joint.kind == "slide":
            return float(E[:3, 3] @ self.axis)
        turn = _turn(E[:3, :3])
        along = float(turn @ self.axis)
        return along if np.linalg.norm(turn - along * self.axis) <= ANGLE else 0.0

    @cached_property
    def rest(self) -> Array:
        """Displacement of the common frame in B at A's zero that the joint's zero does not explain, shape (4, 4)."""
        return self.motion(self.offset) @ self.T_parent @ inverse(self.T)

    def motion(self, angle: float) -> Array:
        """Displacement by B's joint in the world of A [m and -], shape (4, 4)."""
        if self.a.joint and self.a.joint.kind == "slide":
            return rigid_frame(angle * self.axis, np.eye(3))
        R = of_axis(self.axis, angle)
        return rigid_frame(self.anchor - R @ self.anchor, R)


def inverse(X: Array) -> Array:
    """Inverse of a displacement [m and -], shape (4, 4)."""
    return rigid_frame(-X[:3, :3].T @ X[:3, 3], X[:3, :3].T)


def moved(X: Array, point: Array) -> Array:
    """A displaced point [m], shape (3,)."""
    return np.asarray(X[:3, :3] @ point + X[:3, 3])


def partners(a: Tree, b: Tree, mapping: Mapping[str, str]) -> dict[str, str]:
    """Joints of A with their partners in B: by name, by `mapping`, by the body that moves, by a common affix."""
    names = [[link.name for link in tree.links[1:]] for tree in (a, b)]
    pairs = {**{name: name for name in names[0] if name in names[1]}, **mapping}
    rest = [
        [link for link in tree.links[1:] if link.name not in known]
        for tree, known in ((a, pairs), (b, {*pairs.values()}))
    ]
    for link in rest[0]:
        same = [other for other in rest[1] if {*link.bodies} & {*other.bodies} and kind_of(link) == kind_of(other)]
        if len(same) == 1:
            pairs[link.name] = same[0].name
    left, right = (
        [link.name for link in of if link.name not in known]
        for of, known in zip(rest, (pairs, {*pairs.values()}), strict=True)
    )
    return {**pairs, **_by_affix(left, right)}


def align(a: Tree, b: Tree, names: Mapping[str, str]) -> list[Pair]:
    """Pairs of all links, in the order of A."""
    others = {link.name: k for k, link in enumerate(b.links)}
    found = [0, *(others[names[link.name]] for link in a.links[1:])]
    pairs: list[Pair] = []
    for k, link in enumerate(a.links):
        other, ahead = b.links[found[k]], pairs[link.parent].T if k else np.eye(4)
        children = [(a.links[i], b.links[found[i]]) for i in range(k + 1, len(found)) if a.links[i].parent == k]
        is_fixed = k > 0 or not (a.floating or b.floating)
        tried = list(_candidates(link, other, ahead, is_fixed=is_fixed, has_children=bool(children)))
        best = tried[0]
        for T in tried[1:]:
            if _misfit(link, other, best, children) > max(1.0, CLOSER * _misfit(link, other, T, children)):
                best = T
        origin = link.anchor if k else next((X[:3, 3] for X in link.bodies.values()), np.zeros(3))
        regular = not k or other.parent == found[link.parent]
        pairs.append(Pair(a=link, b=other, origin=origin, T=best, T_parent=ahead, parent=link.parent, regular=regular))
    return pairs


def _candidates(link: Link, other: Link, ahead: Array, *, is_fixed: bool, has_children: bool) -> Iterator[Array]:
    """Displacements of a link of B onto that of A, the simplest first.

    Without joints on the link, another zero of its joint and another mass centre are told apart by the frames of the
    bodies alone.
    """
    if is_fixed:
        yield ahead
    if link.joint:
        apart = link.anchor - moved(ahead, other.anchor)
        shifts = (apart - (apart @ link.axis) * link.axis, apart) if link.joint.kind != "slide" else ()
        for shift in shifts:
            yield rigid_frame(shift, np.eye(3)) @ ahead
        if link.joint.kind == "hinge" and has_children:
            yield _turned(link, other, rigid_frame(apart, np.eye(3)) @ ahead)
        if link.joint.kind == "slide" and has_children:
            centers = link.inertial.center - moved(ahead, other.inertial.center)
            yield rigid_frame((centers @ link.axis) * link.axis, np.eye(3)) @ ahead
    common = [name for name in link.bodies if name in other.bodies]
    of = zip(link.bodies.values(), other.bodies.values(), strict=False)
    frames = [(link.bodies[name], other.bodies[name]) for name in common] or list(of)
    for mine, theirs in frames:
        yield mine @ inverse(theirs)
    if not is_fixed:
        yield ahead


def _turned(link: Link, other: Link, T: Array) -> Array:
    """A displacement with the turn about the joint's axis that lays B's mass centre on A's."""
    mine, theirs = link.inertial.center - link.anchor, moved(T, other.inertial.center) - link.anchor
    sine, cosine = link.axis @ np.cross(theirs, mine), theirs @ mine - (theirs @ link.axis) * (mine @ link.axis)
    R = of_axis(link.axis, float(np.arctan2(sine, cosine)))
    return rigid_frame(link.anchor - R @ link.anchor, R) @ T


def _misfit(link: Link, other: Link, T: Array, children: list[tuple[Link, Link]]) -> float:
    """Largest difference of a link and of the joints on it, relative to what the digits of files explain [-]."""
    R, misfits = T[:3, :3], [0.0]
    if link.inertial.mass and other.inertial.mass:
        misfits.append(float(np.linalg.norm(link.inertial.center - moved(T, other.inertial.center))) / LENGTH)
        apart = link.inertial.inertia - R @ other.inertial.inertia @ R.T
        misfits.append(float(np.abs(apart).max() / max(np.abs(link.inertial.inertia).max(), 1e-12)) / TENSOR)
    for mine, theirs in children:
        axis = R @ theirs.axis
        misfits.append(float(np.linalg.norm(np.cross(mine.axis, axis))) / ANGLE)
        apart = mine.anchor - moved(T, theirs.anchor)
        if mine.joint and mine.joint.kind != "slide":
            misfits.append(float(np.linalg.norm(apart - (apart @ mine.axis) * mine.axis)) / LENGTH)
    return max(misfits)


def _turn(R: Array) -> Array:
    """Axis times angle of a rotation [rad], shape (3,)."""
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_matrix(R).as_rotvec())


def angle_of(X: Array) -> float:
    """Angle of a displacement [rad]."""
    return float(np.linalg.norm(_turn(X[:3, :3])))


def kind_of(link: Link) -> str:
    """Kind of a link's joint, empty for the base."""
    return link.joint.kind if link.joint else ""


def _by_affix(left: list[str], right: list[str]) -> dict[str, str]:
    """Pairs of names if all of the one side are those of the other with a common beginning and end."""
    swap = bool(left) and bool(right) and len(left[0]) < len(right[0])
    longer, shorter = (right, left) if swap else (left, right)
    for name in shorter if longer else []:
        begin, found, end = longer[0].partition(name)
        pairs = {f"{begin}{each}{end}": each for each in shorter}
        if found and len(longer) > 1 and {*pairs} == {*longer}:
            return {v: k for k, v in pairs.items()} if swap else pairs
    return {}
