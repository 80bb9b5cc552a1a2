"""The loop-closure Jacobian, put together from PyBullet's Jacobians of points."""

from typing import assert_never

import numpy as np

from loopcheck.engines.pybullet._world import World, pybullet
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.mechanism import (
    WORLD,
    ConnectClosure,
    Coordinate,
    CoordinateClosure,
    Mechanism,
    RigidClosure,
    WeldClosure,
)


def closure_jacobian(world: World, q: JointPositions) -> Array:
    """Opening rate of the loops per joint velocity.

    Returns:
        Rows along the world's axes: velocity of the first closure point relative to the second, and for welds the
        angular velocity of the bodies [m/rad or m/m], shape (nc, nv).
    """
    rows = [np.zeros((0, world.mechanism.nv))]
    for closure in world.mechanism.loop_closures:
        match closure:
            case CoordinateClosure():
                rows.append(_coordinate_row(world.mechanism, closure, q))
            case ConnectClosure():
                rows.append(_relative(world, closure, q)[0])
            case WeldClosure():
                rows += _relative(world, closure, q)
            case _:
                assert_never(closure)
    return np.concatenate(rows)


def _relative(world: World, closure: RigidClosure, q: Array) -> tuple[Array, Array]:
    """Velocity and angular velocity of the first end relative to the second, per joint velocity, each (3, nv)."""
    v1, w1 = point_jacobian(world, closure.body1, closure.point1, q)
    v2, w2 = point_jacobian(world, closure.body2, closure.point2, q)
    return v1 - v2, w1 - w2


def closure_bias(world: World, q: JointPositions, qd: JointVelocities) -> Array:
    """J̇ q̇ in the rows of `closure_jacobian`.

    PyBullet has no rate of a Jacobian. It follows from the Jacobian itself: see `_point_bias`.

    Returns:
        Accelerations [m/s² or rad/s²], shape (nc,).
    """
    rows = [np.zeros(0)]
    for closure in world.mechanism.loop_closures:
        match closure:
            case CoordinateClosure():
                rows.append(_coordinate_bias(world.mechanism, closure, q, qd))
            case ConnectClosure():
                rows.append(_relative_bias(world, closure, q, qd)[0])
            case WeldClosure():
                rows += _relative_bias(world, closure, q, qd)
            case _:
                assert_never(closure)
    return np.concatenate(rows)


def _relative_bias(world: World, closure: RigidClosure, q: Array, qd: Array) -> tuple[Array, Array]:
    """Acceleration and angular acceleration of the first end relative to the second without q̈, each of shape (3,)."""
    a1, e1 = _point_bias(world, closure.body1, closure.point1, q, qd)
    a2, e2 = _point_bias(world, closure.body2, closure.point2, q, qd)
    return a1 - a2, e1 - e2


def _point_bias(world: World, body: int, point: Array, q: Array, qd: Array) -> tuple[Array, Array]:
    """Acceleration of a point of a body, and angular acceleration of the body, without q̈, each of shape (3,).

    A joint turns the columns of all joints behind it, and moves the point with the columns of all joints before it:
    ∂Jᵢ/∂q_k = w_k × Jᵢ for k ≤ i, and wᵢ × J_k for k > i, with w the angular part. Joints count from the base on.
    """
    linear, angular = (part * qd for part in point_jacobian(world, body, point, q))
    behind = np.cumsum(angular, axis=1)  # angular velocity of the link behind each joint
    return (np.cross(2 * behind - angular, linear, axis=0).sum(1), np.cross(behind, angular, axis=0).sum(1))


def point_jacobian(world: World, body: int, point: Array, q: JointPositions) -> tuple[Array, Array]:
    """Velocity of a point of a body, and angular velocity of the body, per joint velocity, world axes.

    Args:
        body: Index of the body, or `WORLD`.
        point: The point in the body frame [m], shape (3,).

    Returns:
        Linear [m/rad or m/m] and angular part [- or 1/m], each of shape (3, nv).
    """
    if body == WORLD:
        return np.zeros((3, world.mechanism.nv)), np.zeros((3, world.mechanism.nv))
    # PyBullet counts the point from the origin of the link, but along the principal axes of inertia.
    local = world.inertial_frames[body][1].T @ world.from_link(body, point)
    at_rest = [0.0] * len(world.moving)
    linear, angular = pybullet.calculateJacobian(
        world.tree, world.link(body), local.tolist(), world.positions(q), at_rest, at_rest, physicsClientId=world.client
    )
    return world.summed(linear), world.summed(angular)


def tangent(mechanism: Mechanism, closure: CoordinateClosure, q: JointPositions) -> tuple[float, float]:
    """Slope and intercept of the line that the follower of a coordinate closure keeps to near some positions.

    Returns:
        Both for positions counted from the references [-, m/rad or rad/m; m or rad].
    """
    if closure.leader is None:
        return 0.0, float(closure.coefficients[0])
    leader = offset(mechanism, closure.leader, q)
    polynomial = np.polynomial.Polynomial(closure.coefficients)
    slope = float(polynomial.deriv()(leader))
    return slope, float(polynomial(leader) - slope * leader)


def offset(mechanism: Mechanism, coordinate: Coordinate, q: JointPositions) -> float:
    """A coordinate relative to the references of all joints [m or rad].

    Args:
        coordinate: A joint or a tendon's length.
    """
    return float(mechanism.values_of((coordinate,), (q - mechanism.rest_position)[None])[0, 0])


def _coordinate_bias(mechanism: Mechanism, closure: CoordinateClosure, q: Array, qd: Array) -> Array:
    """Minus the curvature of the polynomial times the square of the leader's rate, shape (1,)."""
    if closure.leader is None:
        return np.zeros(1)
    curvature = np.polynomial.Polynomial(closure.coefficients).deriv(2)(offset(mechanism, closure.leader, q))
    return np.asarray(-curvature * (mechanism.rates_of((closure.leader,)) @ qd) ** 2)


def _coordinate_row(mechanism: Mechanism, closure: CoordinateClosure, q: Array) -> Array:
    row = mechanism.rates_of((closure.follower,))
    if closure.leader is not None:
        row = row - tangent(mechanism, closure, q)[0] * mechanism.rates_of((closure.leader,))
    return row
