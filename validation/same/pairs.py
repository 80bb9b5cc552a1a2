"""Pairs of links of two models, and the motion that lays each link of the second on its partner."""

import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import NotFoundError, listed
from loopcheck.robots.formats.mjcf import Description
from loopcheck.robots.formats.rigid_frames import of_axis, rigid_frame
from loopcheck.validation.same.links import Link, Tree, tree_of, with_hinges

LENGTH, ANGLE, TENSOR = 1e-4, 1e-3, 5e-3
"""Differences that the digits of files explain: of a length [m], of an axis [rad], of an inertia tensor [-]."""
NAMED = 5
"""Largest number of joints that a sentence lists."""
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
    is_regular: bool
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
        if self.a.kind not in ("hinge", "slide"):
            return 0.0
        if self.a.kind == "slide":
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
        if self.a.kind == "slide":
            return rigid_frame(angle * self.axis, np.eye(3))
        R = of_axis(self.axis, angle)
        return rigid_frame(self.anchor - R @ self.anchor, R)


def inverse(X: Array) -> Array:
    """Inverse of a displacement.

    Args:
        X: The displacement [m and -], shape (4, 4).
    """
    return rigid_frame(-X[:3, :3].T @ X[:3, 3], X[:3, :3].T)


def moved(X: Array, point: Array) -> Array:
    """A displaced point [m], shape (3,).

    Args:
        X: The displacement [m and -], shape (4, 4).
        point: The point [m], shape (3,).
    """
    return np.asarray(X[:3, :3] @ point + X[:3, 3])


class Pairing(NamedTuple):
    """Two trees with the same joints."""

    trees: tuple[Tree, Tree]
    names: Mapping[str, str]
    """Joints of A with their partners in B."""
    only: tuple[tuple[str, ...], tuple[str, ...]]
    """Joints without a partner, of A and of B; fixed at zero in the trees."""
    notes: tuple[str, ...]


def paired(descriptions: Sequence[Description], mapping: Mapping[str, str]) -> Pairing:
    """Both trees with the joints that they share; a ball joint becomes three hinges where the other model has them.

    Args:
        descriptions: A and B.
        mapping: Joints of A with their partners in B.

    Raises:
        NotFoundError: If `mapping` names an unknown joint.
    """
    trees = [tree_of(each) for each in descriptions]
    for pair in mapping.items():
        for tree, name in zip(trees, pair, strict=True):
            if name not in (known := [link.name for link in tree.links[1:]]):
                raise NotFoundError(f"joint in {tree.mechanism.model.path.name}", name, known)
    names = _partners(trees[0], trees[1], mapping)
    renamed = [f"'{name}' is '{other}' in B" for name, other in names.items() if name != other]
    notes = [f"Names of joints differ: {listed(renamed, NAMED)}"] if renamed else []
    rest = [_without(trees[0], names), _without(trees[1], names.values())]
    balls = [
        (k, ball, found) for k in (0, 1) for ball in rest[k] if (found := _as_hinges(ball, trees[1 - k], rest[1 - k]))
    ]
    adapted = {link.name for _, ball, hinges in balls for link in (ball, *hinges)}
    only = [tuple(link.name for link in of if link.name not in adapted) for of in rest]
    trees = [tree_of(each, locked) for each, locked in zip(descriptions, only, strict=True)]
    for k, ball, hinges in balls:
        trees[k] = with_hinges(trees[k], ball.name, hinges)
        names |= {hinge.name: hinge.name for hinge in hinges}
    if balls:
        notes.append(f"Ball joints compared as three hinges: {listed([ball.name for _, ball, _ in balls], NAMED)}")
    for side, of, tree in zip("AB", only, trees, strict=True):
        if of:
            notes.append(f"Joints in {side} only, held at zero: {listed(of, NAMED)}. Pair other names with --map A=B")
        notes += [f"Not compared in {side}: {each}" for each in tree.left_out]
    return Pairing((trees[0], trees[1]), names, (only[0], only[1]), tuple(notes))


def _partners(a: Tree, b: Tree, mapping: Mapping[str, str]) -> dict[str, str]:
    """Joints of A with their partners in B: by name, by `mapping`, by the body that moves, by a common affix."""
    known = [link.name for link in b.links]
    pairs = {**{link.name: link.name for link in a.links[1:] if link.name in known}, **mapping}
    for link in _without(a, pairs):
        others = _without(b, pairs.values())
        found = [each for each in others if {*link.frames} & {*each.frames} and link.kind == each.kind]
        pairs |= {link.name: found[0].name} if len(found) == 1 else {}
    names = [[link.name for link in _without(*each)] for each in ((a, pairs), (b, pairs.values()))]
    return {**pairs, **_by_affix(*names)}


def _without(tree: Tree, names: Collection[str]) -> list[Link]:
    return [link for link in tree.links[1:] if link.name not in names]


def _as_hinges(ball: Link, tree: Tree, rest: Sequence[Link]) -> list[Link]:
    """Three hinges at a point of another tree in place of a ball joint, in the axes of the ball's tree."""
    for last in rest if ball.kind == "ball" else ():
        hinges = [last]
        while len(hinges) < 3 and hinges[0].parent > 0:
            hinges.insert(0, tree.links[hinges[0].parent])
        common = [name for name in ball.frames if name in last.frames]
        is_named = all(ball.name in each.name for each in hinges)
        at_a_point = all(np.linalg.norm(each.anchor - last.anchor) <= LENGTH for each in hinges)
        are_missing = all(each.kind == "hinge" and any(each is link for link in rest) for each in hinges)
        if len(hinges) == 3 and at_a_point and are_missing and (common or is_named):
            R = ball.frames[common[0]][:3, :3] @ last.frames[common[0]][:3, :3].T if common else np.eye(3)
            return [replace(each, axis=R @ each.axis) for each in hinges]
    return []


def align(a: Tree, b: Tree, names: Mapping[str, str]) -> list[Pair]:
    """Pairs of all links, in the order of A."""
    others = {link.name: k for k, link in enumerate(b.links)}
    found = [0, *(others[names[link.name]] for link in a.links[1:])]
    pairs: list[Pair] = []
    for k, link in enumerate(a.links):
        other, ahead = b.links[found[k]], pairs[link.parent].T if k else np.eye(4)
        children = [(a.links[i], b.links[found[i]]) for i in range(k + 1, len(found)) if a.links[i].parent == k]
        is_fixed = k > 0 or not (a.floating or b.floating)
        tried = list(_candidates(link, other, ahead, children, is_fixed=is_fixed))
        best = tried[0]
        for T in tried[1:]:
            if _misfit(link, other, best, children) > max(1.0, CLOSER * _misfit(link, other, T, children)):
                best = T
        origin = link.anchor if k else next((X[:3, 3] for X in link.frames.values()), np.zeros(3))
        regular = not k or other.parent == found[link.parent]
        pairs.append(Pair(a=link, b=other, origin=origin, T=best, T_parent=ahead, is_regular=regular))
    return pairs


def _candidates(
    link: Link, other: Link, ahead: Array, children: Sequence[tuple[Link, Link]], *, is_fixed: bool
) -> Iterator[Array]:
    """Displacements of a link of B onto that of A, the simplest first.

    Without joints on the link, another zero of its joint and another mass centre are told apart by the frames of the
    bodies alone.
    """
    if is_fixed:
        yield ahead
    if link.joint:
        apart = link.anchor - moved(ahead, other.anchor)
        shifts = (apart - (apart @ link.axis) * link.axis, apart) if link.kind != "slide" else ()
        for shift in shifts:
            yield rigid_frame(shift, np.eye(3)) @ ahead
        if link.kind != "slide" and children:
            yield _turned(link, other, rigid_frame(apart, np.eye(3)) @ ahead, children)
        if link.kind == "slide" and children:
            centers = link.body.center - moved(ahead, other.body.center)
            yield rigid_frame((centers @ link.axis) * link.axis, np.eye(3)) @ ahead
    common = [name for name in link.frames if name in other.frames]
    of = zip(link.frames.values(), other.frames.values(), strict=False)
    frames = [(link.frames[name], other.frames[name]) for name in common] or list(of)
    for mine, theirs in frames:
        yield mine @ inverse(theirs)
    if not is_fixed:
        yield ahead


def _turned(link: Link, other: Link, T: Array, children: Sequence[tuple[Link, Link]]) -> Array:
    """A displacement with the turn about A's anchor that lays the joints and the mass centre on a link on A's."""
    from scipy.spatial.transform import Rotation

    signs = [1.0 if mine.axis @ T[:3, :3] @ theirs.axis > 0 else -1.0 for mine, theirs in children]
    mine = [*(each.anchor - link.anchor for each, _ in children), *(each.axis for each, _ in children)]
    theirs = [moved(T, each.anchor) - link.anchor for _, each in children]
    theirs += [sign * T[:3, :3] @ each.axis for sign, (_, each) in zip(signs, children, strict=True)]
    if np.linalg.matrix_rank(np.array(mine), tol=LENGTH) < 2:
        mine.append(link.body.center - link.anchor)
        theirs.append(moved(T, other.body.center) - link.anchor)
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # of vectors along one line
        R = Rotation.align_vectors(np.array(mine), np.array(theirs))[0].as_matrix()
    return rigid_frame(link.anchor - R @ link.anchor, R) @ T


def _misfit(link: Link, other: Link, T: Array, children: list[tuple[Link, Link]]) -> float:
    """Largest difference of a link and of the joints on it, relative to what the digits of files explain [-]."""
    R, misfits = T[:3, :3], [0.0]
    if link.body.mass and other.body.mass:
        misfits.append(float(np.linalg.norm(link.body.center - moved(T, other.body.center))) / LENGTH)
        apart = link.body.inertia - R @ other.body.inertia @ R.T
        misfits.append(float(np.abs(apart).max() / max(np.abs(link.body.inertia).max(), 1e-12)) / TENSOR)
    for mine, theirs in children:
        axis = R @ theirs.axis
        misfits.append(float(np.linalg.norm(np.cross(mine.axis, axis))) / ANGLE)
        apart = mine.anchor - moved(T, theirs.anchor)
        if mine.kind != "slide":
            misfits.append(float(np.linalg.norm(apart - (apart @ mine.axis) * mine.axis)) / LENGTH)
    return max(misfits)


def _turn(R: Array) -> Array:
    """Axis times angle of a rotation [rad], shape (3,)."""
    from scipy.spatial.transform import Rotation

    return np.asarray(Rotation.from_matrix(R).as_rotvec())


def angle_of(X: Array) -> float:
    """Angle of a displacement [rad].

    Args:
        X: The displacement [m and -], shape (4, 4).
    """
    return float(np.linalg.norm(_turn(X[:3, :3])))


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
