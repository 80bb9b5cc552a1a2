"""Pairs of equal joints in a closed mechanism and its serial model."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.kinematics.tree import poses
from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.robots.mechanism import DOFS, Mechanism
from loopcheck.robots.size import size

ALONG = 0.5
"""Least cosine of the angle between the axes of a pair [-]; the files may start in poses that differ."""
SAME_LINE = 1e-3
"""Largest distance of axes on a common line, relative to the robot's size, and largest angle [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A joint of the closed mechanism and its counterpart."""

    closed: str
    """Name in the closed mechanism."""
    serial: str
    """Name in the serial stand-in."""
    sign: float
    """1, or −1 for axes of opposite direction [-]."""
    by: str
    """Criterion of the pair: `name`, `map` or `axis`."""


def pair_joints(
    closed: Mechanism,
    q_closed: JointPositions,
    serial: Mechanism,
    q_serial: JointPositions,
    given: Mapping[str, str],
    fixed: Sequence[str],
) -> tuple[Pair, ...]:
    """The common joints: given pairs, joints of the same name, and joints with axes on a common line.

    Args:
        q_closed: Its closed starting pose.
        serial: The serial model.
        q_serial: Its starting pose.
        given: Names in the serial model by names in the closed mechanism.
        fixed: Names of immobile joints, which are not paired.

    Raises:
        NotFoundError: If a given joint is missing.
        MechanismError: If the joints of a pair differ in kind or in the direction of their axes, or there is no pair.
    """
    own, others = _scalar(closed, fixed), _scalar(serial, fixed)
    for left, right in given.items():
        for name, joints, mechanism in ((left, own, closed), (right, others, serial)):
            if name not in joints:
                raise NotFoundError(f"hinge or slide of {mechanism.model.path.name}", name, joints)
    names = [(left, right, "map") for left, right in given.items()]
    taken = {*given, *given.values()}
    names += [(name, name, "name") for name in own if name in others and name not in taken]
    q = q_serial.copy()
    for left, right, _ in names:
        q[others[right]] = q_closed[own[left]]
    names += _on_one_line(closed, q_closed, serial, q, names, fixed)
    if not names:
        raise MechanismError(
            f"{serial.model.path}: must share a joint with {closed.model.path.name}, by name, by axis or with --map. "
            f"Hinges and slides: {', '.join(others) or '(empty)'}; in {closed.model.path.name}: "
            f"{', '.join(own) or '(empty)'}"
        )
    order = {joint.name: j for j, joint in enumerate(closed.joints)}
    pairs = [
        Pair(closed=left, serial=right, by=by, sign=_sign(closed, q_closed, left, serial, q, right))
        for left, right, by in sorted(names, key=lambda pair: order[pair[0]])
    ]
    return tuple(pairs)


def _scalar(mechanism: Mechanism, fixed: Sequence[str]) -> dict[str, int]:
    """Places in q of the hinges and slides that may move, by name."""
    return {
        joint.name: columns.start
        for joint, columns in zip(mechanism.joints, mechanism.q_slices, strict=True)
        if DOFS[joint.kind] == 1 and joint.name not in fixed
    }


def _line(mechanism: Mechanism, q: Array, name: str) -> tuple[str, Array, Array]:
    """Kind of a joint, direction of its axis and a point of it, in W."""
    j = [joint.name for joint in mechanism.joints].index(name)
    body_poses, dof = poses(mechanism, q[None]), mechanism.dof_slices[j].start
    return mechanism.joints[j].kind, body_poses.axes[0, dof], body_poses.anchors[0, dof]


def _sign(closed: Mechanism, q_closed: Array, left: str, serial: Mechanism, q_serial: Array, right: str) -> float:
    (kind, axis, _), (other_kind, other, _) = _line(closed, q_closed, left), _line(serial, q_serial, right)
    where = f"{serial.model.path}: joint '{right}' does not match '{left}' of {closed.model.path.name}"
    if kind != other_kind:
        raise MechanismError(f"{where}: kind must be {kind}, got {other_kind}")
    if abs(axis @ other) < ALONG:
        degrees = np.degrees(np.arccos(np.clip(abs(axis @ other), 0, 1)))
        raise MechanismError(
            f"{where}: axes must be parallel, got {degrees:.3g} degrees between them in the initial pose"
        )
    return float(np.sign(axis @ other))


def _on_one_line(
    closed: Mechanism,
    q_closed: Array,
    serial: Mechanism,
    q_serial: Array,
    names: Sequence[tuple[str, str, str]],
    fixed: Sequence[str],
) -> Iterator[tuple[str, str, str]]:
    """Unpaired joints with axes on a common line, if the pair is unique."""
    length = SAME_LINE * size(closed)
    left = [name for name in _scalar(closed, fixed) if name not in [pair[0] for pair in names]]
    for name in _scalar(serial, fixed):
        if name in [pair[1] for pair in names]:
            continue
        kind, axis, point = _line(serial, q_serial, name)
        alike = []
        for other in left:
            other_kind, other_axis, other_point = _line(closed, q_closed, other)
            apart = np.linalg.norm(np.cross(other_point - point, axis)) if kind == "hinge" else 0.0
            if kind == other_kind and np.linalg.norm(np.cross(axis, other_axis)) < SAME_LINE and apart < length:
                alike.append(other)
        if len(alike) == 1:
            yield alike[0], name, "axis"
