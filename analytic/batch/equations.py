"""Kinematics, loop closures and Newton-Euler equations of the spanning tree, recursively, for a sample of scalars.

The equations are those of `kinematics`, `closures` and `noc`, but O(n) and free of shapes: arrays are of object type,
and their entries are symbols of a trace or numbers. Poses and loop closures are in world axes. Accelerations and loads
are in the axes of each body, in which its inertia and most arms and joint axes are constant (Featherstone 2008, section
5.3); a body is followed at its origin.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, assert_never

import numpy as np

from loopcheck.analytic.batch.expressions import Scalar, cosine, magnitude, sign, sine
from loopcheck.analytic.kinematics.tree import joints_of
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.mechanism import (
    WORLD,
    ConnectClosure,
    Coordinate,
    CoordinateClosure,
    Joint,
    Mechanism,
    PointSpring,
    RigidClosure,
    WeldClosure,
)

ZERO = np.zeros(3, dtype=object)
EXACT = 1e-15
"""Entries of rotations and unit axes this near 0 or ±1 are meant to be it [-]."""
HALVINGS = 3
"""Halvings of half an angle of at most π [-]: sin² of the result is at most 0.038."""
ARCSINE = [math.comb(2 * k, k) / 4**k / (2 * k + 1) for k in range(10)]
"""Coefficients of arcsin(s)/s as a series in s² [-]; the next adds less than 1e-16."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hinged:
    """A joint in a pose: arms go to its anchor from the body's origin before and after it has moved."""

    joint: Joint
    dofs: slice
    axes: tuple[AnyArray, ...]
    """Direction of each dof [-]."""
    before: AnyArray
    """From the origin before to the anchor; for a slide, minus its displacement [m], shape (3,)."""
    after: AnyArray
    """From the origin after to the anchor [m], shape (3,)."""
    turn: AnyArray
    """Rotation from the axes after to the axes before [-], shape (3, 3)."""
    arm: AnyArray
    """The arm to the anchor, in either axes; for a slide, minus its displacement [m], shape (3,)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A body in a pose."""

    R: AnyArray
    """Rotation R_WB [-], shape (3, 3)."""
    p: AnyArray
    """Origin [m], shape (3,)."""
    offset: AnyArray
    """From the parent's origin to its own before its joints move [m], shape (3,)."""
    joints: tuple[Hinged, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moving:
    """Motion of a frame, in its own axes."""

    w: AnyArray
    """Angular velocity [rad/s], shape (3,)."""
    alpha: AnyArray
    """Angular acceleration [rad/s²], shape (3,)."""
    a: AnyArray
    """Acceleration of the origin, less gravity [m/s²], shape (3,)."""

    def in_axes(self, turn: AnyArray) -> "Moving":
        """The same in other axes.

        Args:
            turn: These axes in the present axes [-], shape (3, 3).
        """
        return Moving(w=turn.T @ self.w, alpha=turn.T @ self.alpha, a=turn.T @ self.a)

    def acceleration_at(self, arm: AnyArray) -> AnyArray:
        """Acceleration of a point, less gravity [m/s²], shape (3,).

        Args:
            arm: From the origin to it [m], shape (3,).
        """
        return self.a + self.gradient @ arm

    @property
    def gradient(self) -> AnyArray:
        """Change of the acceleration along arms, [α]× + [ω]×² [1/s²], shape (3, 3)."""
        W = _skew(self.w)
        return _skew(self.alpha) + W @ W


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """An equation of a loop closure."""

    residual: Scalar
    """[m or rad]."""
    columns: dict[int, Scalar]
    """Derivative along each dof that acts on it [m/rad or m/m]."""


def cross(a: AnyArray, b: AnyArray) -> AnyArray:
    """Cross product.

    Args:
        a: Vector [any unit], shape (3,).
        b: Vector [any unit], shape (3,).
    """
    return np.array(
        [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]],
        dtype=object,
    )


def exact(a: Array) -> AnyArray:
    """Entries that are meant to be 0 or ±1 made so, for operations with them to vanish.

    Args:
        a: Rotation or unit axis [-], shape (3,) or (3, 3).
    """
    near = np.round(a)
    return np.where(np.abs(a - near) < EXACT, near, a).astype(object)


def links(mechanism: Mechanism, q: AnyArray) -> list[Link]:
    """Poses of all bodies.

    Args:
        q: Joint positions [m or rad], shape (nq,).
    """
    bodies: list[Link] = []
    for b, body in enumerate(mechanism.bodies):
        R, p, offset = exact(body.rotation), body.position.astype(object), body.position.astype(object)
        if body.parent != WORLD:
            parent = bodies[body.parent]
            offset = parent.R @ offset
            R, p = parent.R @ R, parent.p + offset
        hinged = []
        for joint, columns, dofs in joints_of(mechanism, b):
            moved, R, p = _move(joint, dofs, q[columns], R, p)
            hinged.append(moved)
        bodies.append(Link(R=R, p=p, offset=offset, joints=tuple(hinged)))
    return bodies


def _move(joint: Joint, dofs: slice, x: AnyArray, R: AnyArray, p: AnyArray) -> tuple[Hinged, AnyArray, AnyArray]:
    """A joint, and the rotation and origin of its body after it has moved."""
    turn, arm, axes = np.eye(3, dtype=object), joint.anchor.astype(object), (R @ exact(joint.axis),)
    before, after = R @ arm, ZERO
    if joint.kind == "free":
        turn, arm, before = _rotation_of(x[3:]), ZERO, ZERO
        R, p, axes = turn, x[:3], (*np.eye(3, dtype=object), *turn.T)
    elif joint.kind == "slide":
        arm = exact(joint.axis) * (x[0] - joint.rest_position[0])
        before = R @ arm
        p = p + before
    else:
        ball = joint.kind == "ball"
        turn = _rotation_of(x) if ball else _rotation_about(exact(joint.axis), x[0] - joint.rest_position[0])
        R = R @ turn
        axes, after = tuple(R.T) if ball else axes, R @ arm
        p = p + before - after
    return Hinged(joint=joint, dofs=dofs, axes=axes, before=before, after=after, turn=turn, arm=arm), R, p


def _rotation_about(axis: AnyArray, angle: Scalar) -> AnyArray:
    """Rodrigues' formula, shape (3, 3)."""
    along = np.outer(axis, axis)
    return along + (np.eye(3, dtype=object) - along) * cosine(angle) + _skew(axis) * sine(angle)


def _rotation_of(quaternion: AnyArray) -> AnyArray:
    """Rotation matrix of a quaternion (w, x, y, z) of any length, shape (3, 3)."""
    unit = quaternion / np.sqrt(quaternion @ quaternion)
    X = _skew(unit[1:])
    return np.eye(3, dtype=object) + X * (2 * unit[0]) + 2 * (X @ X)


def _skew(a: AnyArray) -> AnyArray:
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]], dtype=object)


def motions(mechanism: Mechanism, bodies: list[Link], qd: AnyArray, qdd: AnyArray) -> list[Moving]:
    """Motions of all bodies.

    Args:
        qd: Joint velocities [m/s or rad/s], shape (nv,).
        qdd: Joint accelerations [m/s² or rad/s²], shape (nv,).
    """
    motions_of_bodies: list[Moving] = []
    for body, link in zip(mechanism.bodies, bodies, strict=True):
        moving = world(mechanism) if body.parent == WORLD else motions_of_bodies[body.parent]
        moving = replace(moving, a=moving.acceleration_at(body.position.astype(object))).in_axes(exact(body.rotation))
        for hinged in link.joints:
            moving = _after(mechanism, hinged, moving, qd[hinged.dofs], qdd[hinged.dofs])
        motions_of_bodies.append(moving)
    return motions_of_bodies


def world(mechanism: Mechanism) -> Moving:
    """The world: at rest while all falling bodies accelerate."""
    return Moving(w=ZERO, alpha=ZERO, a=-mechanism.gravity.astype(object))


def _after(mechanism: Mechanism, hinged: Hinged, moving: Moving, rate: AnyArray, change: AnyArray) -> Moving:
    """Motion of the frame after a joint."""
    joint, arm = hinged.joint, hinged.arm
    if joint.kind == "free":
        return Moving(w=rate[3:], alpha=change[3:], a=hinged.turn.T @ (change[:3] - mechanism.gravity))
    moving = replace(moving, a=moving.acceleration_at(arm))
    if joint.kind == "slide":
        axis = exact(joint.axis)
        return replace(moving, a=moving.a + 2 * cross(moving.w, axis * rate[0]) + axis * change[0])
    moving = moving.in_axes(hinged.turn)
    if joint.kind == "hinge":
        rate, change = (exact(joint.axis) * x[0] for x in (rate, change))
    moving = replace(moving, w=moving.w + rate, alpha=moving.alpha + change + cross(moving.w, rate))
    return replace(moving, a=moving.acceleration_at(-arm))


def tree_efforts(mechanism: Mechanism, bodies: list[Link], moving: list[Moving]) -> AnyArray:
    """Efforts on the joints of the spanning tree by the recursive Newton-Euler equations, without the joints' own.

    Args:
        moving: How they move.

    Returns:
        Efforts [N or N m], shape (nv,).
    """
    loads = [_load(mechanism, b, *state) for b, state in enumerate(zip(bodies, moving, strict=True))]
    tau = np.zeros(mechanism.nv, dtype=object)
    for b in reversed(range(len(bodies))):
        body, (moment, force) = mechanism.bodies[b], loads[b]
        for hinged in reversed(bodies[b].joints):
            if hinged.joint.kind != "slide":
                moment = moment - cross(hinged.arm, force)
            tau[hinged.dofs] = _on_joint(hinged, moment, force)
            moment, force = hinged.turn @ moment, hinged.turn @ force
            moment = moment + cross(hinged.arm, force)
        if body.parent != WORLD:
            above, R = loads[body.parent], exact(body.rotation)
            moment, force = R @ moment, R @ force
            loads[body.parent] = above[0] + moment + cross(body.position.astype(object), force), above[1] + force
    return tau


def _on_joint(hinged: Hinged, moment: AnyArray, force: AnyArray) -> AnyArray:
    """Efforts on the dofs of a joint that carries a load [N or N m], shape (dofs,)."""
    kind = hinged.joint.kind
    if kind == "free":
        return np.concatenate([hinged.turn @ force, moment])
    if kind == "ball":
        return moment
    return np.array([exact(hinged.joint.axis) @ (force if kind == "slide" else moment)], dtype=object)


def _load(mechanism: Mechanism, b: int, link: Link, moving: Moving) -> tuple[AnyArray, AnyArray]:
    """Moment about the body's origin and force that move a body as it moves, less its weight and external loads."""
    body, R_T, arm = mechanism.bodies[b], link.R.T, mechanism.bodies[b].center.astype(object)
    force = body.mass * (
        moving.acceleration_at(arm) + body.gravity_compensation * (R_T @ mechanism.gravity.astype(object))
    )
    I = body.inertia.astype(object)
    moment = I @ moving.alpha + cross(moving.w, I @ moving.w) + cross(arm, force)
    for load in mechanism.wrenches:
        if load.body == b:
            acting = R_T @ load.force.astype(object)
            force = force - acting
            moment = moment - R_T @ load.moment.astype(object) - cross(load.point.astype(object), acting)
    return moment, force


def joint_efforts(mechanism: Mechanism, q: AnyArray, qd: AnyArray, qdd: AnyArray) -> AnyArray:
    """Efforts that the armature, the damping and the springs of the joints take [N or N m], shape (nv,).

    Args:
        q: Joint positions [m or rad], shape (nq,).
        qd: Joint velocities [m/s or rad/s], shape (nv,).
        qdd: Joint accelerations [m/s² or rad/s²], shape (nv,).
    """
    tau = np.zeros(mechanism.nv, dtype=object)
    for joint, columns, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
        tau[dofs] = joint.armature * qdd[dofs] + joint.damping * qd[dofs]
        if joint.stiffness:
            tau[dofs] = tau[dofs] + joint.stiffness * _displacement(joint, q[columns])
    return tau


def _displacement(joint: Joint, x: AnyArray) -> AnyArray:
    """Displacement of a joint from the rest position of its spring; see `kinematics.tree.joint_stretch`, (dofs,)."""
    rest = joint.spring_reference
    if joint.kind in ("hinge", "slide"):
        return x - rest
    return np.concatenate([x[:-4] - rest[:-4], _rotation_vector(rest[-4:], x[-4:])])


def _rotation_vector(start: AnyArray, end: AnyArray) -> AnyArray:
    """The shortest rotation from an orientation to another, axis times angle [rad], shape (3,).

    With φ half the angle and s = sin φ/8, it is φ/sin φ = (arcsin s)/s / (cos φ/2 cos φ/4 cos φ/8) with a series in s²:
    smooth at the rest position, where an arctangent over a sine is 0/0.
    """
    start, end = start / np.linalg.norm(start), end / np.sqrt(end @ end)
    axis = start[0] * end[1:] - end[0] * start[1:] - cross(start[1:], end[1:])
    cosine: Any = start @ end
    cosines = [abs(cosine)]
    for _ in range(HALVINGS):
        cosines.append(np.sqrt(0.5 * cosines[-1] + 0.5))
    return axis * (2.0 * sign(cosine, at_zero=1.0) / math.prod(cosines[1:]) * _horner(ARCSINE, 0.5 - 0.5 * cosines[-2]))


def spring_efforts(mechanism: Mechanism, bodies: list[Link], q: AnyArray, qd: AnyArray, qdd: AnyArray) -> AnyArray:
    """Efforts that fixed tendons, and springs and dampers between points, take [N or N m], shape (nv,).

    Args:
        q: Joint positions [m or rad], shape (nq,).
        qd: Joint velocities [m/s or rad/s], shape (nv,).
        qdd: Joint accelerations [m/s² or rad/s²], shape (nv,).
    """
    tau = np.zeros(mechanism.nv, dtype=object)
    for tendon in mechanism.tendons:
        rate, change = (_sum((mechanism.dof_slices, x), tendon.length) for x in (qd, qdd))
        pull = tendon.armature * change + tendon.damping * rate
        if tendon.stiffness:
            pull = pull + tendon.stiffness * _stretch(_sum((mechanism.q_slices, q), tendon.length), *tendon.rest)
        for dof, weight in _weights(mechanism, tendon.length):
            tau[dof] = tau[dof] + weight * pull
    for spring in mechanism.point_springs:
        square, along = _distance(mechanism, bodies, spring)
        if has_direction(spring):
            length = np.sqrt(square)
            along = {dof: column / length for dof, column in along.items()}
            pull = spring.stiffness * _stretch(length, *spring.rest)
            pull = pull + spring.damping * sum((column * qd[dof] for dof, column in along.items()), 0.0)
        else:
            pull = spring.stiffness
        for dof, column in along.items():
            tau[dof] = tau[dof] + column * pull
    return tau


def has_direction(spring: PointSpring) -> bool:
    """Whether the force depends on the direction between the points, which has no value where they meet."""
    return bool(spring.damping) or tuple(spring.rest) != (0, 0)


def _stretch(length: Scalar, least: float, most: float) -> Scalar:
    """Distance from a range of lengths without force [m or rad], negative below it."""
    above, below = length - float(most), length - float(least)
    return above if least == most else 0.5 * (above + magnitude(above) + below - magnitude(below))


def _distance(mechanism: Mechanism, bodies: list[Link], spring: PointSpring) -> tuple[Any, dict[int, Scalar]]:
    """Square of the length of a spring between points [m²], and half its rate per velocity of each dof on it."""
    points = [_point(bodies, *end) for end in _ends(spring)]
    line: Any = points[1] - points[0]
    first, second = (dict(_columns(mechanism, bodies, *end)) for end in _ends_of_chains(mechanism, spring))
    along: dict[int, Scalar] = {dof: -(line @ linear) for dof, (_, linear) in first.items()}
    return line @ line, along | {dof: line @ linear for dof, (_, linear) in second.items()}


def closure_rows(mechanism: Mechanism, bodies: list[Link], q: AnyArray) -> list[Row]:
    """The equations of all closures; the rotation rows of a weld in world axes.

    Args:
        q: Joint positions [m or rad], shape (nq,).
    """
    rows: list[Row] = []
    for closure in mechanism.loop_closures:
        match closure:
            case CoordinateClosure():
                rows.append(_coordinate_row(mechanism, closure, q))
            case ConnectClosure() | WeldClosure():
                rows += _rigid_rows(mechanism, bodies, closure)
            case _:
                assert_never(closure)
    return rows


def _rigid_rows(mechanism: Mechanism, bodies: list[Link], closure: RigidClosure) -> list[Row]:
    points = [_point(bodies, *end) for end in _ends(closure)]
    first, second = (dict(_columns(mechanism, bodies, *end)) for end in _ends_of_chains(mechanism, closure))
    columns = first | {dof: (-angular, -linear) for dof, (angular, linear) in second.items()}
    rows = _rows(points[0] - points[1], {dof: linear for dof, (_, linear) in columns.items()})
    match closure:
        case ConnectClosure():
            return rows
        case WeldClosure():
            R1, R2 = (_rotation(bodies, end[0]) for end in _ends(closure))
            target = R2 @ exact(closure.rotation.T)
            apart = sum((cross(R1[:, k], target[:, k]) for k in range(3)), ZERO) * 0.5
            return rows + _rows(apart, {dof: -angular for dof, (angular, _) in columns.items()})
        case _:
            assert_never(closure)


def closure_bias(
    mechanism: Mechanism, bodies: list[Link], bias: list[Moving], q: AnyArray, qd: AnyArray
) -> list[Scalar]:
    """Second derivative of each row's residual at constant joint velocities, Φ̇ q̇.

    Args:
        bias: Motions of the bodies at constant joint velocities.
        q: Joint positions [m or rad], shape (nq,).
        qd: Joint velocities [m/s or rad/s], shape (nv,).
    """
    entries: list[Scalar] = []
    for closure in mechanism.loop_closures:
        match closure:
            case CoordinateClosure():
                rate = _sum((mechanism.dof_slices, qd), closure.leader)
                entries.append(-1.0 * _polynomial(mechanism, q, closure, order=2) * (rate * rate))
            case ConnectClosure():
                (_, a1), (_, a2) = (_accelerating(mechanism, bodies, bias, *end) for end in _ends(closure))
                entries += [*(a1 - a2)]
            case WeldClosure():
                (alpha1, a1), (alpha2, a2) = (_accelerating(mechanism, bodies, bias, *end) for end in _ends(closure))
                entries += [*(a1 - a2), *(alpha2 - alpha1)]
            case _:
                assert_never(closure)
    return entries


def _ends(closure: RigidClosure | PointSpring) -> tuple[tuple[int, AnyArray], tuple[int, AnyArray]]:
    return (closure.body1, closure.point1.astype(object)), (closure.body2, closure.point2.astype(object))


def _point(bodies: list[Link], body: int, point: AnyArray) -> AnyArray:
    return point if body == WORLD else bodies[body].p + bodies[body].R @ point


def _rotation(bodies: list[Link], body: int) -> AnyArray:
    return np.eye(3, dtype=object) if body == WORLD else bodies[body].R


def _accelerating(
    mechanism: Mechanism, bodies: list[Link], moving: list[Moving], body: int, point: AnyArray
) -> tuple[AnyArray, AnyArray]:
    """Angular acceleration of a body and acceleration of a point of it, less gravity, in world axes, each (3,)."""
    frame, R = (world(mechanism) if body == WORLD else moving[body]), _rotation(bodies, body)
    return R @ frame.alpha, R @ frame.acceleration_at(point)


def _ends_of_chains(mechanism: Mechanism, closure: RigidClosure | PointSpring) -> list[tuple[int, AnyArray, int]]:
    """Body and point of both ends, and the last body that carries both: its motion has no effect."""
    above = [_above(mechanism, body) for body, _ in _ends(closure)]
    common = next(body for body in above[0] if body in set(above[1]))
    return [(body, point, common) for body, point in _ends(closure)]


def _above(mechanism: Mechanism, body: int) -> list[int]:
    """A body and its carriers, the world last."""
    chain = [body]
    while chain[-1] != WORLD:
        chain.append(mechanism.bodies[chain[-1]].parent)
    return chain


def _columns(
    mechanism: Mechanism, bodies: list[Link], body: int, point: AnyArray, base: int
) -> Iterator[tuple[int, tuple[AnyArray, AnyArray]]]:
    """Each dof that moves a body against a base, with the angular velocity and that of a point per joint velocity.

    Args:
        body: The moved body.
        point: A point of it, in its axes [m], shape (3,).
        base: The body, or the world, that carries it.
    """
    arm = point if body == WORLD else bodies[body].R @ point
    while body != base:
        link = bodies[body]
        for hinged in reversed(link.joints):
            arm = arm - hinged.after
            for k, axis in enumerate(hinged.axes):
                displaces = hinged.joint.kind == "slide" or (hinged.joint.kind == "free" and k < 3)
                yield hinged.dofs.start + k, (ZERO, axis) if displaces else (axis, cross(axis, arm))
            arm = arm + hinged.before
        arm = arm + link.offset
        body = mechanism.bodies[body].parent


def _rows(residual: AnyArray, columns: dict[int, AnyArray]) -> list[Row]:
    return [Row(residual=residual[k], columns={dof: c[k] for dof, c in columns.items()}) for k in range(3)]


def _coordinate_row(mechanism: Mechanism, closure: CoordinateClosure, q: AnyArray) -> Row:
    residual = _offset(mechanism, q, closure.follower) - _polynomial(mechanism, q, closure, order=0)
    columns = dict(_weights(mechanism, closure.follower))
    if closure.leader is not None:
        slope = _polynomial(mechanism, q, closure, order=1)
        for dof, weight in _weights(mechanism, closure.leader):
            columns[dof] = columns.get(dof, 0.0) - weight * slope
    return Row(residual=residual, columns=columns)


def _weights(mechanism: Mechanism, coordinate: Coordinate) -> Iterator[tuple[int, Scalar]]:
    """The dofs of a coordinate, with their weights."""
    for j, weight in zip(coordinate.joints, coordinate.weights, strict=True):
        yield mechanism.dof_slices[j].start, float(weight)


def _sum(coordinates: tuple[tuple[slice, ...], AnyArray], coordinate: Coordinate | None) -> Scalar:
    """A weighted sum of entries of q or qd, given with the places of the joints in it."""
    slices, x = coordinates
    if coordinate is None:
        return 0.0
    terms = zip(coordinate.joints, coordinate.weights, strict=True)
    return sum((float(weight) * x[slices[j].start] for j, weight in terms), 0.0)


def _offset(mechanism: Mechanism, q: AnyArray, coordinate: Coordinate) -> Scalar:
    return _sum((mechanism.q_slices, q - mechanism.rest_position), coordinate)


def _polynomial(mechanism: Mechanism, q: AnyArray, closure: CoordinateClosure, *, order: int) -> Scalar:
    """The polynomial of a closure, or its first or second derivative."""
    if closure.leader is None:
        return float(closure.coefficients[0]) if order == 0 else 0.0
    x = _offset(mechanism, q, closure.leader)
    return _horner(np.polynomial.Polynomial(closure.coefficients).deriv(order).coef, x)


def _horner(coefficients: Iterable[float], x: Scalar) -> Scalar:
    """A polynomial, its coefficients in ascending order."""
    value: Scalar = 0.0
    for coefficient in reversed([*coefficients]):
        value = value * x + float(coefficient)
    return value
