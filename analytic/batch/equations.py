"""Kinematics, loop closures and Newton-Euler equations of the spanning tree, recursively, for one sample of scalars.

The equations are those of `kinematics`, `closures` and `noc`, but O(n) and free of shapes: arrays are of object type,
and their entries are symbols of a trace or numbers. World axes; a body is followed at its origin.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from analytic.batch.expressions import Scalar, cosine, sine
from analytic.kinematics import joints_of
from robots.arrays import AnyArray, Array
from robots.mechanism import WORLD, ConnectClosure, Coordinate, CoordinateClosure, Joint, Mechanism, WeldClosure

ZERO = np.zeros(3, dtype=object)
EXACT = 1e-15
"""Entries of rotations and unit axes this near 0 or ±1 are meant to be it [-]."""


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
class Spatial:
    """Angular part, and linear part at the body's origin, of a velocity or an acceleration; each of shape (3,)."""

    angular: AnyArray
    linear: AnyArray


REST = Spatial(angular=ZERO, linear=ZERO)


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
        mechanism: Robot.
        q: Joint positions [m or rad], shape (nq,).
    """
    found: list[Link] = []
    for b, body in enumerate(mechanism.bodies):
        R, p, offset = exact(body.rotation), body.position.astype(object), body.position.astype(object)
        if body.parent != WORLD:
            parent = found[body.parent]
            offset = parent.R @ offset
            R, p = parent.R @ R, parent.p + offset
        hinged = []
        for joint, columns, dofs in joints_of(mechanism, b):
            moved, R, p = _move(joint, dofs, q[columns], R, p)
            hinged.append(moved)
        found.append(Link(R=R, p=p, offset=offset, joints=tuple(hinged)))
    return found


def _move(joint: Joint, dofs: slice, x: AnyArray, R: AnyArray, p: AnyArray) -> tuple[Hinged, AnyArray, AnyArray]:
    """A joint, and the rotation and origin of its body after it has moved."""
    if joint.kind == "free":
        R, p = _rotation_of(x[3:]), x[:3]
        return Hinged(joint=joint, dofs=dofs, axes=(*np.eye(3, dtype=object), *R.T), before=ZERO, after=ZERO), R, p
    if joint.kind == "slide":
        axis = R @ exact(joint.axis)
        move = axis * (x[0] - joint.reference[0])
        return Hinged(joint=joint, dofs=dofs, axes=(axis,), before=move, after=ZERO), R, p + move
    before = R @ joint.anchor.astype(object)
    if joint.kind == "hinge":
        axis = exact(joint.axis)
        axes: tuple[AnyArray, ...] = (R @ axis,)
        R = R @ _rotation_about(axis, x[0] - joint.reference[0])
    else:
        R = R @ _rotation_of(x)
        axes = tuple(R.T)
    after = R @ joint.anchor.astype(object)
    return Hinged(joint=joint, dofs=dofs, axes=axes, before=before, after=after), R, p + before - after


def _rotation_about(axis: AnyArray, angle: Scalar) -> AnyArray:
    """Rodrigues' formula, shape (3, 3)."""
    X, s, c = _skew(axis), sine(angle), cosine(angle)
    return np.eye(3, dtype=object) * c + X * s + np.outer(axis, axis) * (1 - c)


def _rotation_of(quaternion: AnyArray) -> AnyArray:
    """Rotation matrix of a quaternion (w, x, y, z) of any length, shape (3, 3)."""
    unit = quaternion / np.sqrt(quaternion @ quaternion)
    X = _skew(unit[1:])
    return np.eye(3, dtype=object) + X * (2 * unit[0]) + 2 * (X @ X)


def _skew(a: AnyArray) -> AnyArray:
    return np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]], dtype=object)


def velocities(mechanism: Mechanism, bodies: list[Link], qd: AnyArray) -> list[Spatial]:
    """Velocities of all bodies.

    Args:
        mechanism: Robot.
        bodies: Its pose.
        qd: Joint velocities [m/s or rad/s], shape (nv,).
    """
    found: list[Spatial] = []
    for body, link in zip(mechanism.bodies, bodies, strict=True):
        at = REST if body.parent == WORLD else found[body.parent]
        w, v = at.angular, at.linear + cross(at.angular, link.offset)
        for moving in link.joints:
            rate = _along(moving, qd)
            if moving.joint.kind == "free":
                w, v = rate.angular, rate.linear
            else:
                v = v + cross(w, moving.before) + rate.linear
                w = w + rate.angular
                v = v - cross(w, moving.after)
        found.append(Spatial(angular=w, linear=v))
    return found


def accelerations(
    mechanism: Mechanism, bodies: list[Link], moving: list[Spatial], qd: AnyArray, qdd: AnyArray
) -> list[Spatial]:
    """Accelerations of all bodies, without gravity.

    Args:
        mechanism: Robot.
        bodies: Its pose.
        moving: Its velocities.
        qd: Joint velocities [m/s or rad/s], shape (nv,).
        qdd: Joint accelerations [m/s² or rad/s²], shape (nv,).
    """
    found: list[Spatial] = []
    for body, link in zip(mechanism.bodies, bodies, strict=True):
        parent = body.parent
        w, at = (ZERO, REST) if parent == WORLD else (moving[parent].angular, found[parent])
        alpha, a = at.angular, at.linear + _turning(w, at.angular, link.offset)
        for hinged in link.joints:
            rate, change = _along(hinged, qd), _along(hinged, qdd)
            if hinged.joint.kind == "free":
                w, alpha, a = rate.angular, change.angular, change.linear
                continue
            a = a + _turning(w, alpha, hinged.before) + 2 * cross(w, rate.linear) + change.linear
            alpha = alpha + change.angular + cross(w, rate.angular)
            w = w + rate.angular
            a = a - _turning(w, alpha, hinged.after)
        found.append(Spatial(angular=alpha, linear=a))
    return found


def _along(hinged: Hinged, rates: AnyArray) -> Spatial:
    """Motion of a joint relative to the frame before it."""
    axes, rates = hinged.axes, rates[hinged.dofs]
    along = [axis * rate for axis, rate in zip(axes, rates, strict=True)]
    if hinged.joint.kind == "slide":
        return Spatial(angular=ZERO, linear=along[0])
    if hinged.joint.kind == "free":
        return Spatial(angular=sum(along[3:], ZERO), linear=sum(along[:3], ZERO))
    return Spatial(angular=sum(along, ZERO), linear=ZERO)


def _turning(w: AnyArray, alpha: AnyArray, arm: AnyArray) -> AnyArray:
    """Acceleration of a point beyond that of the origin, in a body that turns [m/s²], shape (3,)."""
    return cross(alpha, arm) + cross(w, cross(w, arm))


def tree_efforts(
    mechanism: Mechanism, bodies: list[Link], moving: list[Spatial], accelerating: list[Spatial]
) -> AnyArray:
    """Efforts on the joints of the spanning tree by the recursive Newton-Euler equations, without the joints' own.

    Args:
        mechanism: Robot.
        bodies: Its pose.
        moving: Its velocities.
        accelerating: Its accelerations.

    Returns:
        Efforts [N or N m], shape (nv,).
    """
    loads = [_load(mechanism, b, *state) for b, state in enumerate(zip(bodies, moving, accelerating, strict=True))]
    tau = np.zeros(mechanism.nv, dtype=object)
    for b in reversed(range(len(bodies))):
        body, link, (moment, force) = mechanism.bodies[b], bodies[b], loads[b]
        for hinged in reversed(link.joints):
            moment = moment - cross(hinged.after, force)
            linear = hinged.joint.kind == "slide"
            wrenches = [force] * 3 + [moment] * 3 if hinged.joint.kind == "free" else [force if linear else moment] * 3
            for k, axis in enumerate(hinged.axes):
                tau[hinged.dofs.start + k] = axis @ wrenches[k]
            moment = moment + cross(hinged.before, force)
        if body.parent != WORLD:
            above = loads[body.parent]
            loads[body.parent] = above[0] + moment + cross(link.offset, force), above[1] + force
    return tau


def _load(
    mechanism: Mechanism, b: int, link: Link, moving: Spatial, accelerating: Spatial
) -> tuple[AnyArray, AnyArray]:
    """Moment about the body's origin and force that move a body as it moves, less its weight and external loads."""
    body, R_T = mechanism.bodies[b], link.R.T
    arm = link.R @ body.center.astype(object)
    a = accelerating.linear + _turning(moving.angular, accelerating.angular, arm)
    force = body.mass * (a - (1 - body.gravity_compensation) * mechanism.gravity)
    I = body.inertia.astype(object)
    w = R_T @ moving.angular
    moment = link.R @ (I @ (R_T @ accelerating.angular) + cross(w, I @ w)) + cross(arm, force)
    for load in mechanism.wrenches:
        if load.body == b:
            force = force - load.force
            moment = moment - load.moment - cross(link.R @ load.point.astype(object), load.force)
    return moment, force


def joint_efforts(mechanism: Mechanism, q: AnyArray, qd: AnyArray, qdd: AnyArray) -> AnyArray:
    """Efforts that the armature, the damping and the springs of the joints take [N or N m], shape (nv,).

    Args:
        mechanism: Robot.
        q: Joint positions [m or rad], shape (nq,).
        qd: Joint velocities [m/s or rad/s], shape (nv,).
        qdd: Joint accelerations [m/s² or rad/s²], shape (nv,).
    """
    tau = np.zeros(mechanism.nv, dtype=object)
    for joint, columns, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
        tau[dofs] = joint.armature * qdd[dofs] + joint.damping * qd[dofs]
        if joint.stiffness:
            tau[dofs] = tau[dofs] + joint.stiffness * (q[columns] - joint.spring_reference)
    return tau


def closure_rows(mechanism: Mechanism, bodies: list[Link], q: AnyArray) -> list[Row]:
    """The equations of all closures; those of a weld's rotation in world axes.

    Args:
        mechanism: Robot.
        bodies: Its pose.
        q: Joint positions [m or rad], shape (nq,).
    """
    rows: list[Row] = []
    for closure in mechanism.closures:
        if isinstance(closure, CoordinateClosure):
            rows.append(_coordinate_row(mechanism, closure, q))
            continue
        points = [_point(bodies, *end) for end in _ends(closure)]
        columns = _difference(*(dict(_columns(mechanism, bodies, *end)) for end in _ends(closure)))
        rows += _rows(points[0] - points[1], {dof: linear for dof, (_, linear) in columns.items()})
        if isinstance(closure, WeldClosure):
            R1, R2 = (_rotation(bodies, end[0]) for end in _ends(closure))
            target = R2 @ exact(closure.rotation.T)
            apart = sum((cross(R1[:, k], target[:, k]) for k in range(3)), ZERO) * 0.5
            rows += _rows(apart, {dof: -angular for dof, (angular, _) in columns.items()})
    return rows


def closure_bias(
    mechanism: Mechanism, bodies: list[Link], moving: list[Spatial], bias: list[Spatial], q: AnyArray, qd: AnyArray
) -> list[Scalar]:
    """Second derivative of each row's residual where all joint velocities are constant, Φ̇ q̇.

    Args:
        mechanism: Robot.
        bodies: Its pose.
        moving: Its velocities.
        bias: Its accelerations with constant joint velocities.
        q: Joint positions [m or rad], shape (nq,).
        qd: Joint velocities [m/s or rad/s], shape (nv,).
    """
    found: list[Scalar] = []
    for closure in mechanism.closures:
        if isinstance(closure, CoordinateClosure):
            rate = _sum((mechanism.dof_slices, qd), closure.leader)
            found.append(-1.0 * _polynomial(mechanism, q, closure, order=2) * (rate * rate))
            continue
        (alpha1, a1), (alpha2, a2) = (_point_acceleration(bodies, moving, bias, *end) for end in _ends(closure))
        found += [*(a1 - a2), *(alpha2 - alpha1 if isinstance(closure, WeldClosure) else ())]
    return found


def _ends(closure: ConnectClosure | WeldClosure) -> tuple[tuple[int, AnyArray], tuple[int, AnyArray]]:
    return (closure.body1, closure.point1.astype(object)), (closure.body2, closure.point2.astype(object))


def _point(bodies: list[Link], body: int, point: AnyArray) -> AnyArray:
    return point if body == WORLD else bodies[body].p + bodies[body].R @ point


def _rotation(bodies: list[Link], body: int) -> AnyArray:
    return np.eye(3, dtype=object) if body == WORLD else bodies[body].R


def _point_acceleration(
    bodies: list[Link], moving: list[Spatial], accelerating: list[Spatial], body: int, point: AnyArray
) -> tuple[AnyArray, AnyArray]:
    """Angular acceleration of a body and acceleration of one of its points, each of shape (3,)."""
    if body == WORLD:
        return ZERO, ZERO
    at = accelerating[body]
    return at.angular, at.linear + _turning(moving[body].angular, at.angular, bodies[body].R @ point)


def _columns(
    mechanism: Mechanism, bodies: list[Link], body: int, point: AnyArray
) -> Iterator[tuple[int, tuple[AnyArray, AnyArray]]]:
    """Each dof that moves a body, with the angular velocity and that of a point per joint velocity, each (3,)."""
    if body == WORLD:
        return
    arm = bodies[body].R @ point
    while body != WORLD:
        link = bodies[body]
        for hinged in reversed(link.joints):
            arm = arm - hinged.after
            for k, axis in enumerate(hinged.axes):
                displaces = hinged.joint.kind == "slide" or (hinged.joint.kind == "free" and k < 3)
                yield hinged.dofs.start + k, (ZERO, axis) if displaces else (axis, cross(axis, arm))
            arm = arm + hinged.before
        arm = arm + link.offset
        body = mechanism.bodies[body].parent


def _difference(
    first: dict[int, tuple[AnyArray, AnyArray]], second: dict[int, tuple[AnyArray, AnyArray]]
) -> dict[int, tuple[AnyArray, AnyArray]]:
    """Columns of the first end less those of the second; a dof that moves both does not act on a closed loop."""
    gone = first.keys() & second.keys()
    ours = {dof: column for dof, column in first.items() if dof not in gone}
    return ours | {dof: (-angular, -linear) for dof, (angular, linear) in second.items() if dof not in gone}


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


def _sum(of: tuple[tuple[slice, ...], AnyArray], coordinate: Coordinate | None) -> Scalar:
    """A weighted sum of entries of q or qd, given with the places of the joints in it."""
    slices, x = of
    if coordinate is None:
        return 0.0
    terms = zip(coordinate.joints, coordinate.weights, strict=True)
    return sum((float(weight) * x[slices[j].start] for j, weight in terms), 0.0)


def _offset(mechanism: Mechanism, q: AnyArray, coordinate: Coordinate) -> Scalar:
    return _sum((mechanism.q_slices, q - mechanism.reference), coordinate)


def _polynomial(mechanism: Mechanism, q: AnyArray, closure: CoordinateClosure, *, order: int) -> Scalar:
    """The polynomial of a closure, or its first or second derivative, by Horner's rule."""
    if closure.leader is None:
        return float(closure.coefficients[0]) if order == 0 else 0.0
    x = _offset(mechanism, q, closure.leader)
    found: Scalar = 0.0
    for coefficient in reversed(np.polynomial.Polynomial(closure.coefficients).deriv(order).coef):
        found = found * x + float(coefficient)
    return found
