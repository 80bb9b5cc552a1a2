"""Closures of a mechanism as constraints of Simbody."""

from collections.abc import Iterator, Sequence
from typing import Any, assert_never

import numpy as np

from loopcheck.engines.boundary import of_paths, want_representable
from loopcheck.engines.simbody._opensim import fixed_angles, opensim, vec3
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import WORLD, ConnectClosure, Coordinate, CoordinateClosure, Mechanism, WeldClosure


def add_loops(model: Any, mechanism: Mechanism, bodies: Sequence[Any], joints: Sequence[Any]) -> int:
    """Close the loops; returns how many rows that makes.

    Args:
        model: OpenSim's model.
        bodies: OpenSim's body of each body.
        joints: OpenSim's joint of each joint.
    """
    rows = 0
    for number, closure in enumerate(mechanism.loop_closures):
        match closure:
            case ConnectClosure() | WeldClosure():
                ends = (closure.body1, closure.point1), (closure.body2, closure.point2)
                on_bodies = [(model.getGround() if b == WORLD else bodies[b], vec3(point)) for b, point in ends]
                rotation = closure.rotation if isinstance(closure, WeldClosure) else None
                constraint = _rigid(f"loop{number}", on_bodies, rotation)
                rows += 3 if rotation is None else 6
            case CoordinateClosure():
                constraint = _equality(closure, mechanism, joints)
                constraint.setName(f"loop{number}")
                rows += 1
            case _:
                assert_never(closure)
        model.addConstraint(constraint)
    return rows


def add_couplers(
    model: Any, mechanism: Mechanism, joints: Sequence[Any], rotors: Sequence[tuple[Coordinate, Any]]
) -> None:
    """Tie each rotor to the coordinate it turns with.

    Args:
        model: OpenSim's model.
        joints: OpenSim's joint of each joint.
        rotors: The coordinates, each with the joint of its rotor.
    """
    for k, (coordinate, axle) in enumerate(rotors):
        weights = _weights(coordinate)
        coupler = _coupler(axle, {joints[j].getCoordinate().getName(): w for j, w in weights.items()}, 0.0)
        coupler.setName(f"coupler{k}")
        model.addConstraint(coupler)


def _rigid(name: str, ends: list[tuple[Any, Any]], rotation: Array | None) -> Any:
    (body1, point1), (body2, point2) = ends
    if rotation is None:
        constraint = opensim.PointConstraint(body1, point1, body2, point2)
        constraint.setName(name)
        return constraint
    unturned = vec3(np.zeros(3))
    return opensim.WeldConstraint(name, body1, point1, fixed_angles(rotation), body2, point2, unturned)


def _equality(closure: CoordinateClosure, mechanism: Mechanism, joints: Sequence[Any]) -> Any:
    """Simbody's coupler makes a coordinate a function of others: linear, or a polynomial of a single one."""
    follower, leader = _weights(closure.follower), {} if closure.leader is None else _weights(closure.leader)
    constant, slope = closure.coefficients[:2]
    if is_linear(closure):
        # follower - slope leader = constant, solved for the joint of the follower that counts most
        total = {j: follower.get(j, 0.0) - slope * leader.get(j, 0.0) for j in (*follower, *leader)}
        own = max(follower, key=lambda j: abs(total[j]))
        others = {j: -w / total[own] for j, w in total.items() if j != own and w}
        if not others:  # held at a constant: a function of something
            others = {next(j for j in range(len(joints)) if j != own and _is_single(mechanism, j)): 0.0}
        by_name = {joints[j].getCoordinate().getName(): w for j, w in others.items()}
        return _coupler(joints[own], by_name, constant / total[own])
    (own,), (other,) = follower, leader
    coupler = opensim.CoordinateCouplerConstraint()
    names = opensim.ArrayStr()
    names.append(joints[other].getCoordinate().getName())
    coupler.setIndependentCoordinateNames(names)
    coupler.setDependentCoordinateName(joints[own].getCoordinate().getName())
    from_highest = opensim.Vector.createFromMat(np.ascontiguousarray(closure.coefficients[::-1]))
    coupler.setFunction(opensim.PolynomialFunction(from_highest))
    return coupler


def _coupler(dependent: Any, weights: dict[str, float], constant: float) -> Any:
    """A coordinate is a weighted sum of others."""
    coupler, names, coefficients = opensim.CoordinateCouplerConstraint(), opensim.ArrayStr(), opensim.ArrayDouble()
    for name, weight in weights.items():
        names.append(name)
        coefficients.append(float(weight))
    coefficients.append(float(constant))
    coupler.setIndependentCoordinateNames(names)
    coupler.setDependentCoordinateName(dependent.getCoordinate().getName())
    coupler.setFunction(opensim.LinearFunction(coefficients))
    return coupler


def _weights(coordinate: Coordinate) -> dict[int, float]:
    """Weight of each joint in a coordinate [-, or m per rad], by its index."""
    weights: dict[int, float] = {}
    for j, weight in zip(coordinate.joints, coordinate.weights, strict=True):
        weights[j] = weights.get(j, 0.0) + float(weight)
    return weights


def _is_single(mechanism: Mechanism, j: int) -> bool:
    return mechanism.joints[j].kind in ("hinge", "slide")


def want_carried(mechanism: Mechanism) -> None:
    """Refuse a mechanism that would lose something.

    Raises:
        NotRepresentableError: If it has any such thing; the message names all of them.
    """
    want_representable("simbody", (*of_paths(mechanism), *_on_joints(mechanism), *_curved(mechanism)))


def _on_joints(mechanism: Mechanism) -> Iterator[str]:
    for joint in mechanism.joints:
        if joint.kind in ("hinge", "slide"):
            continue
        if joint.armature:
            yield f"armature of {joint.kind} joint '{joint.name}' (rotors only on single coordinates)"
        if joint.stiffness or joint.damping:
            yield (
                f"spring or damper of {joint.kind} joint '{joint.name}' (springs and dampers only on hinges and slides)"
            )


def _curved(mechanism: Mechanism) -> Iterator[str]:
    for closure in mechanism.coordinate_closures:
        if not is_linear(closure) and not (closure.follower.is_joint and closure.leader and closure.leader.is_joint):
            yield f"equality '{closure.name}' (polynomials couple 2 joints, not sums of joints)"


def is_linear(closure: CoordinateClosure) -> bool:
    """Whether the polynomial of an equality is a straight line."""
    return not closure.coefficients[2:].any()
