"""Poses and twists of all bodies of the spanning tree, on a batch of samples at once.

Poses accept complex joint positions, so that a derivative can be taken by the complex step (Squire and Trapp 1998),
which has no cancellation. Twists stack the angular velocity and the velocity of the mass centre, world axes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from loopcheck.robots.arrays import AnyArray, Array, PositionSeries, VelocitySeries
from loopcheck.robots.mechanism import WORLD, Joint, JointKind, Mechanism, Stacked

TURNS: Mapping[JointKind, tuple[bool, ...]] = {
    "slide": (False,),
    "hinge": (True,),
    "ball": (True,) * 3,
    "free": (False,) * 3 + (True,) * 3,
}
"""Whether each dof of a joint turns its body, or displaces it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poses:
    """Poses of all bodies and joints in W."""

    R: AnyArray
    """Rotation R_WB of each body [-], shape (nt, nb, 3, 3)."""
    p: AnyArray
    """Origin of each body [m], shape (nt, nb, 3)."""
    c: AnyArray
    """Mass centre of each body [m], shape (nt, nb, 3)."""
    axes: AnyArray
    """Direction of each dof [-], shape (nt, nv, 3)."""
    anchors: AnyArray
    """Center of rotation of each rotational dof [m], shape (nt, nv, 3)."""

    def rows(self, samples: AnyArray) -> "Poses":
        """The poses at some samples.

        Args:
            samples: Their numbers, or a mask of them [-], shape (any,).
        """
        return Poses(
            R=self.R[samples],
            p=self.p[samples],
            c=self.c[samples],
            axes=self.axes[samples],
            anchors=self.anchors[samples],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Twists:
    """Twists of all bodies, in W, as linear maps of the joint velocities (Kordjazi and Akbarzadeh 2011, (7))."""

    K: Array
    """Twist of each body per joint velocity, t = K qd [-, m or 1/m], shape (nt, nb, 6, nv)."""
    K_dot: Array
    """Time derivative of `K` [1/s, m/s], shape (nt, nb, 6, nv)."""
    w: Array
    """Angular velocity of each body [rad/s], shape (nt, nb, 3)."""
    v: Array
    """Velocity of each mass centre [m/s], shape (nt, nb, 3)."""


def skew(a: AnyArray) -> AnyArray:
    """Matrix of the cross product with a vector.

    Args:
        a: Vectors [any unit], shape (..., 3).

    Returns:
        Skew-symmetric matrices, shape (..., 3, 3).
    """
    S = np.zeros((*a.shape, 3), dtype=a.dtype)
    S[..., 0, 1], S[..., 0, 2], S[..., 1, 2] = -a[..., 2], a[..., 1], -a[..., 0]
    S[..., 1, 0], S[..., 2, 0], S[..., 2, 1] = a[..., 2], -a[..., 1], a[..., 0]
    return S


def cross(a: AnyArray, b: AnyArray) -> AnyArray:
    """Cross product; numpy's own takes several times as long on a few vectors.

    Args:
        a: Vectors [any unit], shape (..., 3).
        b: Vectors [any unit], shape (..., 3).

    Returns:
        Vectors, shape (..., 3).
    """
    c = np.empty(np.broadcast(a, b).shape, np.result_type(a, b))
    c[..., 0] = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
    c[..., 1] = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    c[..., 2] = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return c


def rotation_about(axis: Array, angle: AnyArray) -> AnyArray:
    """Rotations about fixed axes (Rodrigues' formula).

    Args:
        axis: Unit axis of all angles, or of each column of them [-], shape (..., 3).
        angle: Angles [rad], shape (nt, ...).

    Returns:
        Rotation matrices [-], shape (nt, ..., 3, 3).
    """
    X = skew(axis)
    return np.eye(3) + np.sin(angle)[..., None, None] * X + (1 - np.cos(angle))[..., None, None] * (X @ X)


def rotation_of(quaternion: AnyArray) -> AnyArray:
    """Rotation matrix of a quaternion (w, x, y, z) of any length.

    Args:
        quaternion: Quaternions [-], shape (..., 4).

    Returns:
        Rotation matrices [-], shape (..., 3, 3).
    """
    unit = quaternion / np.sqrt((quaternion**2).sum(-1, keepdims=True))  # not norm(): that is not holomorphic
    w, X = unit[..., :1, None], skew(unit[..., 1:])
    return np.eye(3) + 2 * w * X + 2 * X @ X


def rotation_vector(start: Array, end: Array) -> Array:
    """The shortest rotation from an orientation to another, about an axis in the frame of both.

    Args:
        start: Quaternions (w, x, y, z) [-], shape (..., 4).
        end: Quaternions [-], shape (..., 4).

    Returns:
        Axis times angle [rad], shape (..., 3).
    """
    square = (start**2).sum(-1, keepdims=True)
    w, v = start[..., :1] / square, -start[..., 1:] / square
    scalar = w * end[..., :1] - (end[..., 1:] * v).sum(-1, keepdims=True)
    vector = w * end[..., 1:] + end[..., :1] * v + cross(v, end[..., 1:])
    sine = np.linalg.norm(vector, axis=-1, keepdims=True)
    angle = 2 * np.arctan2(sine, np.abs(scalar)) * np.sign(np.where(scalar == 0, 1, scalar))
    return np.asarray(vector * (angle / np.where(sine == 0, 1, sine)))


def joint_stretch(joint: Joint, x: Array) -> Array:
    """Displacement of a joint from the rest position of its spring, along each of its dofs.

    Args:
        x: Its positions [m or rad], shape (nt, entries of q).

    Returns:
        Displacement, and for turns in space the shortest rotation in body axes [m or rad], shape (nt, dofs).
    """
    rest = joint.spring_reference
    if joint.kind in ("hinge", "slide"):
        return x - rest
    if joint.kind == "ball":
        return rotation_vector(rest, x)
    return np.concatenate([x[:, :3] - rest[:3], rotation_vector(rest[3:], x[:, 3:])], axis=1)


def poses(mechanism: Mechanism, q: AnyArray) -> Poses:
    """Forward kinematics of the spanning tree.

    Args:
        q: Joint positions [m or rad], shape (nt, nq); may be complex.

    Returns:
        Poses of bodies and joints in W.
    """
    constants, moved = mechanism.stacked, _transforms_of_joints(mechanism, q)
    X = np.zeros((len(q), len(mechanism.bodies), 4, 4), q.dtype)
    for b, body in enumerate(mechanism.bodies):
        frame = constants.frames[b] if body.parent == WORLD else X[:, body.parent] @ constants.frames[b]
        for j in mechanism.joints_of[b]:
            frame = moved[:, j] = frame @ moved[:, j]
        X[:, b] = frame
    R, p = X[..., :3, :3].copy(), X[..., :3, 3].copy()
    axes, anchors = _axes_and_anchors(mechanism, q, moved)
    return Poses(R=R, p=p, c=p + (R @ constants.centers)[..., 0], axes=axes, anchors=anchors)


def _transforms_of_joints(mechanism: Mechanism, q: AnyArray) -> AnyArray:
    """Transform by each joint in the frame before it (nt, joints, 4, 4)."""
    constants = mechanism.stacked
    moved = np.empty((len(q), len(mechanism.joints), 4, 4), q.dtype)
    moved[:] = np.eye(4)
    R, p = moved[..., :3, :3], moved[..., :3, 3]  # parts of it
    hinges, slides, turns, shifts = constants.hinges, constants.slides, constants.turns, constants.shifts
    if hinges.joints:
        angle = q[:, hinges.entries] - constants.rest[hinges.entries]
        R[:, hinges.joints] = rotation_about(constants.axes[hinges.joints, :, 0], angle)
    if turns.joints:
        R[:, turns.joints] = rotation_of(q[:, turns.entries])
    p[:] = (constants.anchors - R @ constants.anchors)[..., 0]
    if slides.joints:
        p[:, slides.joints] = constants.axes[slides.joints, :, 0] * _slid(constants, q)
    if shifts.joints:
        p[:, shifts.joints] = q[:, shifts.entries]
    return moved


def _slid(constants: Stacked, q: AnyArray) -> AnyArray:
    """Displacement of each slide [m], shape (nt, slides, 1)."""
    entries = constants.slides.entries
    return (q[:, entries] - constants.rest[entries])[..., None]


def _axes_and_anchors(mechanism: Mechanism, q: AnyArray, moved: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Direction and anchor of each dof in W, each (nt, nv, 3), from the frames behind the joints (nt, joints, 4, 4)."""
    constants = mechanism.stacked
    axes, anchors = np.zeros((2, len(q), mechanism.nv, 3), q.dtype)
    R, p = moved[..., :3, :3], moved[..., :3, 3]
    firsts = [dofs.start for dofs in mechanism.dof_slices]
    axes[:, firsts] = (R @ constants.axes)[..., 0]
    anchors[:, firsts] = p + (R @ constants.anchors)[..., 0]
    slides, turns, shifts = constants.slides, constants.turns, constants.shifts
    if slides.joints:  # the anchor does not slide
        anchors[:, slides.dofs] -= axes[:, slides.dofs] * _slid(constants, q)
    if turns.joints:
        axes[:, turns.dofs] = R[:, turns.joints].swapaxes(2, 3)
        anchors[:, turns.dofs] = anchors[:, [firsts[j] for j in turns.joints], None]
    if shifts.joints:
        axes[:, shifts.dofs] = np.eye(3)
        anchors[:, shifts.dofs] = anchors[:, shifts.dofs[:, :1]]
    return axes, anchors


def joints_of(mechanism: Mechanism, body: int) -> Iterator[tuple[Joint, slice, slice]]:
    """The joints of a body, in their order of action, with their places in q and in qd."""
    for j in mechanism.joints_of[body]:
        yield mechanism.joints[j], mechanism.q_slices[j], mechanism.dof_slices[j]


def axes_of(body_poses: Poses, body: int) -> AnyArray:
    """Axes of a body or of the world in W [-], shape (nt, 3, 3)."""
    return np.broadcast_to(np.eye(3), (len(body_poses.p), 3, 3)) if body == WORLD else body_poses.R[:, body]


def point_of(body_poses: Poses, body: int, point: Array) -> AnyArray:
    """A point that is fixed in a body or in the world, in W.

    Args:
        body_poses: Poses of the bodies; may be complex.
        body: Index of the body, or `WORLD`.
        point: The point in the frame of the body [m], shape (3,).

    Returns:
        Positions [m], shape (nt, 3).
    """
    if body == WORLD:
        return np.broadcast_to(point, (len(body_poses.p), 3))
    return body_poses.p[:, body] + body_poses.R[:, body] @ point


def twist_matrices(mechanism: Mechanism, body_poses: Poses) -> AnyArray:
    """Twist of each body per joint velocity, K in t = K qd (Kordjazi and Akbarzadeh 2011, equation (7)).

    Args:
        body_poses: Its poses; may be complex.

    Returns:
        K, angular part first [-, m or 1/m], shape (nt, nb, 6, nv).
    """
    body, dof, *_ = _pairs(*mechanism.stacked.structure)
    axes = body_poses.axes[:, dof]
    arm = body_poses.c[:, body] - body_poses.anchors[:, dof]  # from the joint to the mass centre
    return _as_twists(mechanism, axes, cross(axes, arm), axes)


class _Pairs(NamedTuple):
    """Pairs of a body and a dof that moves it, of its own joints or of its ancestors': few of all, with legs."""

    body: AnyArray
    """Body of each pair [-], shape (pairs,)."""
    dof: AnyArray
    """Dof of each pair [-], shape (pairs,)."""
    turns: AnyArray
    """Whether the dof rotates the body (true) or displaces it (false). Shape (pairs, 1), boolean."""
    places: AnyArray
    """Places of the components of their twists among all of a sample's [-], shape (pairs, 6)."""


@lru_cache(maxsize=256)
def _pairs(parents: tuple[int, ...], joints: tuple[tuple[JointKind, int], ...]) -> _Pairs:
    """Pairs of bodies and the dofs that move them, from the parent of each body, and kind and body of each joint."""
    turns = np.array([turn for kind, _ in joints for turn in TURNS[kind]], dtype=bool)
    bodies = np.array([body for kind, body in joints for _ in TURNS[kind]], dtype=int)
    moved = np.zeros((len(parents), len(turns)), dtype=bool)
    for b, parent in enumerate(parents):
        moved[b] = bodies == b
        if parent != WORLD:
            moved[b] |= moved[parent]
    body, dof = np.nonzero(moved)
    places = (6 * body[:, None] + np.arange(6)) * len(turns) + dof[:, None]
    return _Pairs(body=body, dof=dof, turns=turns[dof][:, None], places=places)


def _as_twists(mechanism: Mechanism, angular: AnyArray, turning: AnyArray, sliding: AnyArray) -> AnyArray:
    """Columns of twists (nt, nb, 6, nv) from the parts (nt, pairs, 3) of `_pairs`: angular, linear of both kinds."""
    _, _, turns, places = _pairs(*mechanism.stacked.structure)
    nt, nb, nv = len(angular), len(mechanism.bodies), mechanism.nv
    parts = np.concatenate([np.where(turns, angular, 0), np.where(turns, turning, sliding)], axis=2)
    columns = np.zeros((nt, nb * 6 * nv), angular.dtype)
    columns[:, places] = parts
    return columns.reshape(nt, nb, 6, nv)


def twists(mechanism: Mechanism, body_poses: Poses, qd: VelocitySeries, K: Array | None = None) -> Twists:
    """Twist matrices and their time derivatives.

    The direction of a dof and its anchor are fixed in a body, or between two joints of a body, and move with it.

    Args:
        K: Its twist matrices, if they are computed already [-, m or 1/m], shape (nt, nb, 6, nv).

    Returns:
        K, its rate, and the velocities of the bodies.
    """
    K = twist_matrices(mechanism, body_poses) if K is None else K
    t = np.einsum("tbij,tj->tbi", K, qd)
    w, v = t[..., :3], t[..., 3:]
    axes_dot, anchors_dot = _rates_of_joints(mechanism, body_poses, qd, w, v)
    body, dof, *_ = _pairs(*mechanism.stacked.structure)
    arm, arm_dot = body_poses.c[:, body] - body_poses.anchors[:, dof], v[:, body] - anchors_dot[:, dof]
    axes, axes_dot = body_poses.axes[:, dof], axes_dot[:, dof]
    K_dot = _as_twists(mechanism, axes_dot, cross(axes_dot, arm) + cross(axes, arm_dot), axes_dot)
    return Twists(K=K, K_dot=K_dot, w=w, v=v)


def _rates_of_joints(mechanism: Mechanism, body_poses: Poses, qd: Array, w: Array, v: Array) -> tuple[Array, Array]:
    """Rates of the directions [1/s] and of the anchors [m/s] of all dofs, each of shape (nt, nv, 3)."""
    parent, is_moved, turning, sliding, carried, carrying = _carriers(*mechanism.stacked.structure)
    axes, anchors = body_poses.axes, body_poses.anchors
    rates = axes * qd[..., None]
    w_parent = np.where(is_moved, w[:, parent], 0)
    v_parent = np.where(is_moved, v[:, parent], 0)
    anchors_dot = v_parent + cross(w_parent, anchors - body_poses.c[:, parent]) + sliding @ rates
    if len(carried):
        arms = anchors[:, carried] - anchors[:, carrying]
        np.add.at(anchors_dot.swapaxes(0, 1), carried, cross(rates[:, carrying], arms).swapaxes(0, 1))
    return cross(w_parent + turning @ rates, axes), anchors_dot


class _Carriers(NamedTuple):
    """Motions that carry the direction and the anchor of each dof: of the parent, and of joints in the same body."""

    parent: AnyArray
    """Parent of its body [-], any body for the world, shape (nv,)."""
    is_moved: AnyArray
    """Whether the parent is a body. Shape (nv, 1), boolean."""
    turning: Array
    """1 for the dofs of its body, its own joint included, that turn its direction [-], shape (nv, nv)."""
    sliding: Array
    """1 for the dofs of its body that displace its anchor [-], shape (nv, nv)."""
    carried: AnyArray
    """Dofs with anchors that are turned by an earlier joint of the body, one of each pair [-], shape (pairs,)."""
    carrying: AnyArray
    """The dofs of these earlier joints [-], shape (pairs,)."""


@lru_cache(maxsize=256)
def _carriers(parents: tuple[int, ...], joints: tuple[tuple[JointKind, int], ...]) -> _Carriers:
    """Motions that carry each dof, from the parent of each body, and kind and body of each joint."""
    places = [(j, kind, body, turn) for j, (kind, body) in enumerate(joints) for turn in TURNS[kind]]
    parent = np.array([parents[body] for _, _, body, _ in places], dtype=int)
    turning, sliding = np.zeros((len(places), len(places))), np.zeros((len(places), len(places)))
    pairs = []
    for k, (j, kind, body, turns) in enumerate(places):
        for i, (earlier, _, other, other_turns) in enumerate(places):
            if other != body or earlier > j:
                continue
            if other_turns and (earlier < j or turns):
                turning[k, i] = 1
            if not other_turns and (earlier < j or kind == "free"):
                sliding[k, i] = 1
            if other_turns and earlier < j:
                pairs.append((k, i))
    carried, carrying = np.array(pairs, dtype=int).reshape(-1, 2).T
    is_moved = (parent != WORLD)[:, None]
    return _Carriers(np.maximum(parent, 0), is_moved, turning, sliding, carried, carrying)


def retract(mechanism: Mechanism, q: AnyArray, step: AnyArray) -> AnyArray:
    """Joint positions after a small displacement along the joint velocities.

    Args:
        q: Joint positions [m or rad], shape (nt, nq).
        step: Displacements [m or rad], shape (nt, nv); may be complex.

    Returns:
        Joint positions, shape (nt, nq); quaternions are turned about the axes of the body.
    """
    moved, constants = np.zeros((len(step), mechanism.nq), np.result_type(q, step)), mechanism.stacked
    for places in (constants.hinges, constants.slides, constants.shifts):
        moved[:, places.entries] = q[:, places.entries] + step[:, places.dofs]
    if (turns := constants.turns).joints:
        moved[:, turns.entries] = _turned(q[:, turns.entries], step[:, turns.dofs])
    return moved


def _turned(quaternion: AnyArray, angle: AnyArray) -> AnyArray:
    """Quaternion times exp(angle/2), the angle a vector in body axes [rad]; both of shape (..., 3 or 4)."""
    half_squared = (angle**2).sum(-1, keepdims=True) / 4
    half = np.sqrt(half_squared)
    small = np.abs(half) < 1e-4
    safe = np.where(small, 1, half)
    sinc = np.where(small, 1 - half_squared / 6, np.sin(safe) / safe)
    w1, x1, w2, x2 = quaternion[..., :1], quaternion[..., 1:], np.cos(half), angle / 2 * sinc
    return np.concatenate([w1 * w2 - (x1 * x2).sum(-1, keepdims=True), w1 * x2 + w2 * x1 + cross(x1, x2)], axis=-1)


def position_rate(mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> Array:
    """Rate of the joint positions: the velocities themselves, but for quaternions.

    Returns:
        Rates [m/s, rad/s or 1/s], shape (nt, nq).
    """
    rates, constants = np.zeros(q.shape), mechanism.stacked
    for places in (constants.hinges, constants.slides, constants.shifts):
        rates[:, places.entries] = qd[:, places.dofs]
    if (turns := constants.turns).joints:
        spin, quaternion = qd[:, turns.dofs] / 2, q[:, turns.entries]
        w, vector = quaternion[..., :1], quaternion[..., 1:]
        rates[:, turns.entries[:, 0]] = -(vector * spin).sum(-1)
        rates[:, turns.entries[:, 1:]] = w * spin + cross(vector, spin)
    return rates
