"""Paired robots as mechanisms with the same bodies, frames and joints, and the forces of their spanning trees."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from loopcheck.analytic.dynamics.powers import powers_along
from loopcheck.analytic.kinematics.continuation import close_batch
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import TURNS
from loopcheck.robots.arrays import Array, PositionSeries
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.formats.rigid_frames import rigid_frame
from loopcheck.robots.mechanism import Joint, Mechanism
from loopcheck.validation.gate.closed_poses import closed_poses, freedom
from loopcheck.validation.same.links import BASE, Tree
from loopcheck.validation.same.pairs import Pair, inverse, moved

STATES, RATE = 20, 2.0
"""Number of random states, and standard deviation of their rates [rad/s or m/s]."""
LARGEST = 5_000_000
"""Largest number of pairs of a body and a dof over all states [-]."""
LEAST = 1e-3
"""Part of the sum of all terms that the scale of a force is at least [-]."""
SHARED = ("armature", "damping", "friction")
"""Fields that the dynamics of B takes from A."""


class Dynamics(NamedTuple):
    """Forces on the joints of both spanning trees at the same states."""

    joint: tuple[str, ...]
    """Joint of each dof."""
    unit: tuple[str, ...]
    error: Array
    """Largest difference over the states [N or N m], shape (nv,)."""
    scale: Array
    """Largest force in A, at least a part of the sum of its terms [N or N m], shape (nv,)."""

    @property
    def relative(self) -> Array:
        """Difference of each force over its scale [-], shape (nv,)."""
        return self.error / np.maximum(self.scale, np.finfo(float).tiny)


def mechanism_of(tree: Tree, pairs: Sequence[Pair], *, is_a: bool, is_free: bool) -> Mechanism:
    """The spanning tree of A or B in the frames of the pairs, with A's names, directions and zeros of the joints.

    Args:
        tree: The tree of A or B.
        pairs: Pairs of all links.
        is_a: Whether the tree is that of A.
        is_free: Whether the base moves freely.
    """
    bodies, joints = [], []
    for k, pair in enumerate(pairs):
        link, T = (pair.a, np.eye(4)) if is_a else (pair.b, pair.T)
        here, G = rigid_frame(pair.origin, np.eye(3)), np.eye(4) if is_a or not k else pair.rest
        X, R = here if not k else rigid_frame(-pairs[pair.a.parent].origin, np.eye(3)) @ G @ here, T[:3, :3]
        body = replace(link.body, name=pair.a.name, parent=pair.a.parent, position=X[:3, 3], rotation=X[:3, :3])
        center, inertia = moved(T, link.body.center) - pair.origin, R @ link.body.inertia @ R.T
        bodies.append(replace(body, center=center, inertia=inertia))
        if k:
            joints.append(_joint_in_a(pair, inverse(G @ here), k, is_a=is_a))
        elif is_free:
            rest = np.array([*pair.origin, 1.0, 0.0, 0.0, 0.0])
            free = Joint(name=BASE, kind="free", body=0, axis=np.eye(3)[2], anchor=np.zeros(3), rest_position=rest)
            joints.append(free)
    turn = np.eye(3) if is_a else pairs[0].T[:3, :3]
    left_out = {"closures": (), "actuators": (), "sites": (), "tendons": (), "point_springs": (), "wrenches": ()}
    gravity = turn @ tree.mechanism.gravity
    return replace(
        tree.mechanism,
        bodies=tuple(bodies),
        joints=tuple(joints),
        keyframes={},
        gravity=gravity,
        **left_out,  # type: ignore[arg-type]
    )


def _joint_in_a(pair: Pair, to_frame: Array, k: int, *, is_a: bool) -> Joint:
    """The joint of a pair, zero at A's zero; `to_frame` is the displacement to the axes of its link, shape (4, 4)."""
    joint = pair.a.joint if is_a else pair.b.joint
    assert joint is not None
    if is_a:
        joint = replace(joint, axis=pair.a.axis, anchor=np.zeros(3), body=k)
    else:
        axis, anchor = to_frame[:3, :3] @ pair.axis, moved(to_frame, pair.anchor)
        joint = replace(joint, name=pair.a.name, axis=axis / np.linalg.norm(axis), anchor=anchor, body=k)
    if joint.kind not in ("hinge", "slide"):
        return joint
    sign, offset = (1.0, 0.0) if is_a else (pair.sign, pair.offset)
    limits = None if joint.limits is None else sorted(sign * end - offset for end in joint.limits)
    return replace(
        joint,
        rest_position=np.zeros(1),
        spring_reference=sign * joint.spring_reference - offset,
        limits=None if limits is None else (limits[0], limits[1]),
    )


def compare(a: Mechanism, b: Mechanism, q: PositionSeries) -> Dynamics:
    """Compare the forces on the joints at random rates; B gets the damping, friction and rotor inertia of A.

    Args:
        a: The spanning tree of A.
        b: That of B in the frames of A.
        q: Poses.
    """
    pairs = zip(a.joints, b.joints, strict=True)
    b = replace(b, joints=tuple(replace(y, **{name: getattr(x, name) for name in SHARED}) for x, y in pairs))
    qd, qdd = RATE * np.random.default_rng(0).normal(size=(2, len(q), a.nv))
    (left, magnitude), (right, _) = (_forces(each, q, qd, qdd) for each in (a, b))
    dofs = [(joint, turns) for joint in a.joints for turns in TURNS[joint.kind]]
    return Dynamics(
        joint=tuple(joint.name for joint, _ in dofs),
        unit=tuple("N m" if turns else "N" for _, turns in dofs),
        error=np.abs(left - right).max(0),
        scale=np.maximum(np.abs(left).max(0), LEAST * magnitude.max(0)),
    )


def random_poses(mechanism: Mechanism) -> PositionSeries:
    """Poses around the zero pose and within the ranges; fewer of large robots."""
    return closed_poses(mechanism).q[: max(1, min(STATES, LARGEST // (len(mechanism.bodies) * mechanism.nv + 1)))]


def loops_of(
    a: Tree, b: Tree, pairs: Sequence[Pair], mechanism: Mechanism
) -> tuple[PositionSeries, float, tuple[int, int]]:
    """Closed poses of A, the largest gap of B's loops there [m or rad], and the degrees of freedom of both.

    Args:
        a: The tree of A.
        b: The tree of B.
        pairs: Pairs of all links.
        mechanism: A in the frames of the pairs; the poses are positions of its joints.

    Raises:
        MechanismError: If the loops of A do not close, or joints are not paired one to one.
    """
    q = closed_poses(a.mechanism).q[:STATES]
    if not len(q):
        raise MechanismError(f"{a.mechanism.model.path}: loops must close in some pose. Run: loopcheck gate")
    places = [dict(zip((j.name for j in t.mechanism.joints), t.mechanism.q_slices, strict=True)) for t in (a, b)]
    in_b, common = (np.tile(each.rest_position, (len(q), 1)) for each in (b.mechanism, mechanism))
    columns = mechanism.q_slices[len(mechanism.joints) - len(pairs) + 1 :]
    for pair, column in zip(pairs[1:], columns, strict=True):
        if pair.a.name not in places[0] or pair.b.name not in places[1]:
            raise MechanismError("loops are not compared where a ball joint is paired with three hinges")
        values = q[:, places[0][pair.a.name]]
        common[:, column] = in_b[:, places[1][pair.b.name]] = values
        if pair.a.kind == "ball":  # a quaternion in the axes of the body
            axes = [next(iter(link.frames.values()))[:3, :3] for link in (pair.a, pair.b)]
            common[:, column.start + 1 : column.stop] = values[:, 1:] @ axes[0].T
            start = places[1][pair.b.name].start
            in_b[:, start + 1 : start + 4] = values[:, 1:] @ axes[0].T @ pair.T[:3, :3] @ axes[1]
        else:
            in_b[:, places[1][pair.b.name]] = pair.sign * (values + pair.offset)
    gap = float(State.at_rest(b.mechanism, in_b).residual.max())
    closed, _ = close_batch(b.mechanism, in_b, np.ones(b.mechanism.nv, dtype=bool))
    of = [min(each.N.shape[1] for each in freedom(*model)) for model in ((a.mechanism, q), (b.mechanism, closed))]
    return common, gap, (of[0] - 6 * a.floating, of[1] - 6 * b.floating)


def _forces(mechanism: Mechanism, q: PositionSeries, qd: Array, qdd: Array) -> tuple[Array, Array]:
    """Forces on the joints of the spanning tree, and the sum of the magnitudes of their terms; shape (nt, nv)."""
    along = np.tile(np.eye(mechanism.nv), (len(q), 1, 1))
    powers = powers_along(State(mechanism=mechanism, q=q, qd=qd), qdd, along)
    return powers.signed.sum(1), powers.magnitude.sum(1)
