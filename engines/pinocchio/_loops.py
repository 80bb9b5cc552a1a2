"""Closes the loops with Pinocchio's rigid constraints, and reads their Jacobian, drift and opening from it.

A constraint compares a frame on a joint with a frame on another, or on the world, along the axes of the first.
Equalities of coordinates are no such constraints: their rows are written here, and a simulation cannot have them.
"""

from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np
import pinocchio as pin

from loopcheck.engines.pinocchio._tree import Tree
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.efforts import Deviation, deviation_of
from loopcheck.robots.mechanism import (
    WORLD,
    ConnectClosure,
    Coordinate,
    CoordinateClosure,
    Mechanism,
    RigidClosure,
    WeldClosure,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """Rigid constraints of a tree, with Pinocchio's results."""

    models: Any
    datas: Any


def loop_constraints(tree: Tree) -> list[Any]:
    """Pinocchio's models of the closures that hold points or frames together."""
    return [_constraint(tree, closure) for closure in tree.mechanism.rigid_closures]


def gathered(models: list[Any]) -> Constraints:
    """Constraints with room for Pinocchio's results."""
    every, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for model in models:
        every.append(model)
        datas.append(model.createData())
    return Constraints(models=every, datas=datas)


def closure_jacobian(tree: Tree, loops: Constraints, q: JointPositions) -> Array:
    """Opening rate of the loops per joint velocity.

    Args:
        loops: Its rigid closures.

    Returns:
        Rows of the rigid closures, along the axes of their first frames, then those of equalities of coordinates
        [m/rad or m/m], shape (nc, nv).
    """
    pin.computeJointJacobians(tree.model, tree.data, tree.positions(q))
    rows = [np.zeros((0, tree.model.nv))]
    for model, data in zip(loops.models, loops.datas, strict=True):
        model.calc(tree.model, tree.data, data)  # else the frames are those of an earlier pose
        jacobian = pin.getConstraintJacobian(tree.model, tree.data, model, data)
        rows.append(jacobian.reshape(-1, tree.model.nv))  # a single column comes as a vector
    equalities = tree.mechanism.coordinate_closures
    return np.concatenate([*rows, *(_coordinate_row(tree.mechanism, closure, q) for closure in equalities)])


def opening(tree: Tree, loops: Constraints, q: JointPositions) -> Deviation:
    """Gap of the loops: the widest of all closures, at Pinocchio's last positions of their frames.

    Args:
        loops: Its rigid closures.
        q: Joint positions there [m or rad], shape (nq,).
    """
    rigid = [_gap(model, data) for model, data in zip(loops.models, loops.datas, strict=True)]
    equalities = tree.mechanism.coordinate_closures
    return Deviation().or_worse(*rigid, *(_miss(tree.mechanism, closure, q) for closure in equalities))


def closure_bias(tree: Tree, loops: Constraints, q: JointPositions, qd: JointVelocities) -> Array:
    """J̇ q̇ in the rows of `closure_jacobian`: accelerations of the loops' ends at zero joint accelerations.

    Pinocchio lacks equalities of coordinates; their rows are written here.

    Args:
        loops: Its rigid closures.
        qd: Joint velocities that keep the loops closed [m/s or rad/s], shape (nv,).

    Returns:
        Accelerations [m/s² or rad/s²], shape (nc,).
    """
    pin.forwardKinematics(tree.model, tree.data, tree.positions(q), qd, np.zeros(tree.model.nv))
    rows = [np.zeros(0)]
    for model in loops.models:
        ends = ((model.joint1_id, model.joint1_placement), (model.joint2_id, model.joint2_placement))
        first, second = (pin.getFrameClassicalAcceleration(tree.model, tree.data, *end) for end in ends)
        R1, R2 = (tree.data.oMi[joint].rotation @ placement.rotation for joint, placement in ends)
        rows.append(first.linear - R1.T @ R2 @ second.linear)
        if model.type == pin.ContactType.CONTACT_6D:
            rows.append(first.angular - R1.T @ R2 @ second.angular)
    return np.concatenate([*rows, bends(tree.mechanism, q, qd)])


def bends(mechanism: Mechanism, q: JointPositions, qd: JointVelocities) -> Array:
    """J̇ q̇ of the equalities of coordinates, from the curvature of their polynomials.

    Returns:
        One for each [m/s² or rad/s²], shape (equalities,).
    """
    offsets = []
    for closure in mechanism.coordinate_closures:
        rate = 0.0 if closure.leader is None else float(mechanism.rates_of((closure.leader,))[0] @ qd)
        offsets.append(-float(_curve(closure).deriv(2)(_offset(mechanism, closure.leader, q))) * rate**2)
    return np.array(offsets)


def _constraint(tree: Tree, closure: RigidClosure) -> Any:
    """The world comes second."""
    match closure:
        case ConnectClosure():
            kind, rotation = pin.ContactType.CONTACT_3D, None
        case WeldClosure():
            kind, rotation = pin.ContactType.CONTACT_6D, closure.rotation
        case _:
            assert_never(closure)
    ends = [(closure.body1, closure.point1, rotation), (closure.body2, closure.point2, None)]
    first, second = (tree.place(*end) for end in sorted(ends, key=lambda end: end[0] == WORLD))
    constraint = pin.RigidConstraintModel(kind, tree.model, *first, *second, pin.ReferenceFrame.LOCAL)
    constraint.name = closure.name
    return constraint


def _gap(model: Any, data: Any) -> Deviation:
    length, turn = float(np.linalg.norm(data.c1Mc2.translation)), 0.0
    if model.type != pin.ContactType.CONTACT_3D:
        turn = float(np.linalg.norm(pin.log3(data.c1Mc2.rotation)))
    return Deviation(length, turn)


def _curve(closure: CoordinateClosure) -> Any:
    return np.polynomial.Polynomial(closure.coefficients)


def _offset(mechanism: Mechanism, coordinate: Coordinate | None, q: Array) -> float:
    """A coordinate relative to the references of all joints [m or rad]; 0 for a missing coordinate."""
    if coordinate is None:
        return 0.0
    return float(mechanism.values_of((coordinate,), (q - mechanism.rest_position)[None])[0, 0])


def _miss(mechanism: Mechanism, closure: CoordinateClosure, q: Array) -> Deviation:
    follower = float(_curve(closure)(_offset(mechanism, closure.leader, q)))
    return deviation_of(mechanism, (closure.follower,), np.array([_offset(mechanism, closure.follower, q) - follower]))


def _coordinate_row(mechanism: Mechanism, closure: CoordinateClosure, q: Array) -> Array:
    row = mechanism.rates_of((closure.follower,))
    if closure.leader is not None:
        slope = float(_curve(closure).deriv()(_offset(mechanism, closure.leader, q)))
        row = row - slope * mechanism.rates_of((closure.leader,))
    return row
