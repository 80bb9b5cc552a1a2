"""Checks of closures one by one: twice, to the parent, a weld in place of a pin; redundant rows."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from loopcheck.analytic.kinematics.closures import closure_of_rows
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import Array, JointPositions, svd
from loopcheck.robots.errors import listed
from loopcheck.robots.formats.registry import format_of
from loopcheck.robots.formats.spec_loops import HALVES, SCREWED, SECOND_POINT
from loopcheck.robots.mechanism import (
    WORLD,
    Closure,
    ConnectClosure,
    CoordinateClosure,
    Mechanism,
    PathClosure,
    WeldClosure,
    pairs_of_points,
)
from loopcheck.robots.size import closure_units, size, unit_rates
from loopcheck.validation.gate.checks.trusses import independent_loops
from loopcheck.validation.gate.closed_poses import ZERO, freedom, rank_of, row_factors_of_closures
from loopcheck.validation.gate.findings import Finding, number_of

SAME = 1e-6
"""Distance of two points over the size of the robot below which they are one [-]."""
PLACE = (0.31, 0.23, 0.17)
"""Place of a pin in the frame of a weld over the size of the robot: any; a weld states none [-]."""
NAMED = 3
"""Names in a message."""


def closure_findings(mechanism: Mechanism, q: JointPositions, stuck: set[int]) -> Iterator[Finding]:
    """Findings on single closures in a closed pose.

    Args:
        q: Closed pose.
        stuck: Closures of trusses, whose redundant rows have their own finding.
    """
    yield from _repeated(mechanism)
    Phi = State.at_rest(mechanism, q[None]).Phi * unit_rates(mechanism)
    of_rows, relative = (
        np.array(closure_of_rows(mechanism), dtype=int),
        Phi[0] / closure_units(mechanism).units[:, None],
    )
    doubtful = set(stuck)
    for k, closure in enumerate(mechanism.closures):
        found = list(_to_parent(mechanism, closure, relative[of_rows == k]))
        if isinstance(closure, WeldClosure) and not is_part_of_joint(mechanism, closure.name):
            found += _in_place_of_pin(mechanism, k, q)
        yield from found
        doubtful |= {k} if found else set()
    yield from _redundant(mechanism, (row_factors_of_closures(mechanism, Phi) * Phi)[0], of_rows, doubtful)


def _repeated(mechanism: Mechanism) -> Iterator[Finding]:
    """Closures that state another closure again."""
    seen: dict[tuple[object, ...], str] = {}
    for closure in mechanism.closures:
        key = _key(mechanism, closure)
        if key in seen:
            yield Finding(
                code="LC221",
                element=f"equality '{closure.name}'",
                message=f"the equality '{closure.name}' states '{seen[key]}' again",
                advice=f"Remove '{closure.name}', or name the body that it was meant for.",
            )
        seen.setdefault(key, closure.name)


def _key(mechanism: Mechanism, closure: Closure) -> tuple[object, ...]:
    """Kind, ends and numbers of a closure, equal for equal closures."""
    if isinstance(closure, CoordinateClosure):
        leader = (closure.leader.name, closure.leader.joints) if closure.leader else ()
        return ("coordinate", closure.follower.name, closure.follower.joints, leader)
    step = SAME * size(mechanism)
    ends = sorted(
        (body, *np.round(point / step).astype(int).tolist())
        for pair in pairs_of_points(closure)
        for body, point in ((pair.body1, pair.point1), (pair.body2, pair.point2))
    )
    return (type(closure).__name__, *map(tuple, ends), *([closure.slide] if isinstance(closure, PathClosure) else []))


def _to_parent(mechanism: Mechanism, closure: Closure, rows: Array) -> Iterator[Finding]:
    """A closure between a body and its parent that locks the joint between them, or does nothing.

    A free joint is no joint of the robot: a closure to the world holds such a body.

    Args:
        rows: Its rows of the closure Jacobian, lengths in sizes of the robot, turns in rad [-], shape (rows, nv).
    """
    if isinstance(closure, CoordinateClosure | PathClosure):
        return
    for child, parent in ((closure.body1, closure.body2), (closure.body2, closure.body1)):
        joints = mechanism.joints_of[child] if child != WORLD and mechanism.bodies[child].parent == parent else ()
        if not joints or any(mechanism.joints[j].kind == "free" for j in joints):
            continue
        dofs = [d for j in joints for d in range(*mechanism.dof_slices[j].indices(mechanism.nv))]
        values = svd(rows[:, dofs])[1]
        rank = int((values > ZERO).sum())
        if 0 < rank < len(dofs):
            continue
        names = listed([f"'{mechanism.joints[j].name}'" for j in joints], NAMED)
        of = "the world" if parent == WORLD else f"its own parent '{mechanism.bodies[parent].name}'"
        effect = f"locks {names} between them" if rank else f"does nothing beside {names}"
        yield Finding(
            code="LC222",
            element=f"equality '{closure.name}'",
            message=f"the equality '{closure.name}' joins body '{mechanism.bodies[child].name}' to {of} and {effect}",
            advice=f"Name the other body of the loop in '{closure.name}', or remove it.",
        )


def _in_place_of_pin(mechanism: Mechanism, k: int, q: JointPositions) -> Iterator[Finding]:
    """A weld without which the drives would move more: drives share a dof that a connect gives each of them."""
    weld = mechanism.closures[k]
    anywhere = size(mechanism) * np.array(PLACE)
    pinned = replace(
        mechanism,
        closures=tuple(as_connect(each, anywhere) if each is weld else each for each in mechanism.closures),
    )
    (now,), (then,) = freedom(mechanism, q[None]), freedom(pinned, q[None])
    if not now.is_certain or not then.is_certain:
        return
    driven = [int(np.linalg.matrix_rank(each.S_N, tol=ZERO)) if each.S_N.size else 0 for each in (now, then)]
    left = [each.N.shape[1] - count for each, count in zip((now, then), driven, strict=True)]
    drives = len(mechanism.drives)
    if driven[1] > driven[0] and left[1] <= left[0]:
        yield Finding(
            code="LC223",
            element=f"equality '{weld.name}'",
            message=f"{number_of(drives, 'drive')} on {number_of(driven[0], 'dof')}: the weld '{weld.name}' holds the "
            f"directions of its bodies too; a connect gives {number_of(driven[1], 'dof')}",
            advice=f"Replace the weld '{weld.name}' by a connect at the pin: <connect> with the same sites, or with "
            "body1, body2 and the anchor.",
        )


def as_connect(closure: Closure, anchor: Array | None = None) -> Closure:
    """A weld as a connect at a point of its common frame; other closures as they are.

    Args:
        anchor: The point in axes of the second body, from the point of the weld [m], shape (3,); by default that point.
    """
    if not isinstance(closure, WeldClosure):
        return closure
    d = np.zeros(3) if anchor is None else anchor
    return ConnectClosure(
        name=closure.name,
        body1=closure.body1,
        point1=closure.point1 + closure.rotation @ d,
        body2=closure.body2,
        point2=closure.point2 + d,
    )


def _redundant(mechanism: Mechanism, Phi: Array, of_rows: Array, doubtful: set[int]) -> Iterator[Finding]:
    """Closure rows that follow from the others, and what to do about them."""
    redundant, total, implied, advice = 0, 0, [], []
    for loops in independent_loops(mechanism):
        kept = list(loops.closures)

        def rank(closures: list[int], dofs: list[int] = loops.dofs) -> int:
            values = (
                svd(Phi[np.ix_(np.flatnonzero(np.isin(of_rows, closures)), np.array(dofs))])[1]
                if closures and dofs
                else np.zeros(0)
            )
            return rank_of(values)

        full = rank(kept)
        rows = int(np.isin(of_rows, kept).sum())
        total, redundant = total + rows, redundant + rows - full
        if rows == full or doubtful & {*kept}:
            continue
        for k in reversed(kept):
            if len(kept) > 1 and rank([other for other in kept if other != k]) == full:
                kept.remove(k)
                implied.append(mechanism.closures[k].name)
        left = int(np.isin(of_rows, kept).sum()) - full
        closures = [mechanism.closures[k] for k in kept]
        advice += list(_remaining(mechanism, closures, left))
    if not redundant:
        return
    named = [f"'{name}'" for name in implied if not is_part_of_joint(mechanism, name)]
    if named:
        advice = [each.replace("the loops as they are: they", "the others as they are: the loops") for each in advice]
        advice.insert(0, f"Remove {listed(named, NAMED)}, whose rows follow from the other closures")
    others = f"; without {listed(named, NAMED)} the rank is the same" if named else ""
    element = implied[0] if implied else mechanism.closures[0].name
    yield Finding(
        code="LC301",
        element=f"equality '{element}'",
        extent=float(redundant),
        message=f"{redundant} of {total} closure rows are redundant (rank {total - redundant}){others}",
        advice=". ".join(dict.fromkeys(advice)) + "." if advice else "Mend the other findings on these closures first.",
    )


def is_part_of_joint(mechanism: Mechanism, closure: str) -> bool:
    """Whether a closure is a part of a joint of a URDF, SDF or USD, and no element of the file."""
    is_part = closure.endswith((SECOND_POINT, HALVES)) or SCREWED in closure
    return is_part and format_of(mechanism.model.path) is not None


def _remaining(mechanism: Mechanism, closures: list[Closure], left: int) -> Iterator[str]:
    """What to do about the redundant rows that no closure can go for, a sentence without its period."""
    planar = sum({ConnectClosure: 1, WeldClosure: 3}.get(type(closure), 0) for closure in closures)
    if not left:
        return
    if left == planar:
        yield (
            "Leave the loops as they are: they move in a plane, or their axes lie in special places, so that a connect "
            "has one row more and a weld three"
        )
    elif welds := [
        f"'{closure.name}'"
        for closure in closures
        if isinstance(closure, WeldClosure) and not is_part_of_joint(mechanism, closure.name)
    ]:
        yield (
            f"Replace {listed(welds, NAMED)} by a connect where the robot has a ball or a pin; a weld there holds more "
            "than the joints of the loop need"
        )
    else:
        yield (
            "Leave the loops as they are: they move because their dimensions fit, so keep all digits of the anchors "
            "and axes"
        )
