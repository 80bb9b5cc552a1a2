"""Drake's equations of motion at any state, turned over to the joints of the mechanism."""

from dataclasses import dataclass
from functools import partial
from typing import Any, assert_never

import numpy as np

from loopcheck.engines.drake._plant import Plant, build, trees, wrench_math
from loopcheck.engines.equations import LoopEquations
from loopcheck.engines.loads import wrenches
from loopcheck.engines.mechanics import gap
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.efforts import Deviation, deviation_of
from loopcheck.robots.mechanism import WORLD, ConnectClosure, CoordinateClosure, Mechanism, RigidClosure, WeldClosure

V = trees.JacobianWrtVariable.kV


@dataclass(frozen=True, slots=True)
class DrakeEquations(LoopEquations):
    """See `loopcheck.engines.equations.Equations`."""

    drake: Plant

    @property
    def mechanism(self) -> Mechanism:
        """See `loopcheck.engines.equations.Equations.mechanism`."""
        return self.drake.mechanism

    def jacobian(self, q: JointPositions) -> Array:
        """See `loopcheck.engines.equations.Equations.jacobian`, along the world's axes."""
        drake = self.drake
        drake.put(q, np.zeros(drake.mechanism.nv))
        T = drake.rates(q)
        rows = [np.zeros((0, drake.mechanism.nv))]
        for closure in drake.mechanism.loop_closures:
            match closure:
                case ConnectClosure() | WeldClosure():
                    ends = [_jacobian(drake, body, point) for body, point in _ends(closure)]
                    rows.append(_of_closure(closure, *ends) @ T)
                case CoordinateClosure():
                    leader = drake.mechanism.rates_of(() if closure.leader is None else (closure.leader,))
                    slope = float(closure.coefficients[1])
                    rows.append(drake.mechanism.rates_of((closure.follower,)) - slope * leader)
                case _:
                    assert_never(closure)
        return np.concatenate(rows)

    def opening(self, q: JointPositions) -> Deviation:
        """See `loopcheck.engines.equations.LoopEquations.opening`."""
        self.drake.put(q, np.zeros(self.mechanism.nv))
        return opening(self.drake, self.drake.context)

    def closure_bias(self, q: JointPositions, qd: JointVelocities) -> Array:
        """See `loopcheck.engines.equations.Equations.closure_bias`, by Drake's bias accelerations."""
        drake = self.drake
        drake.put(q, qd)
        rows = [np.zeros(0)]
        for closure in drake.mechanism.loop_closures:
            match closure:
                case ConnectClosure() | WeldClosure():
                    ends = [_bias(drake, body, point) for body, point in _ends(closure)]
                    rows.append(_of_closure(closure, *ends))
                case CoordinateClosure():
                    rows.append(np.zeros(1))  # a straight line
                case _:
                    assert_never(closure)
        return np.concatenate(rows)

    def tree_terms(self, q: JointPositions, qd: JointVelocities) -> tuple[Array, Array, Array]:
        """See `loopcheck.engines.equations.Equations.tree_terms`."""
        drake = self.drake
        drake.put(q, qd)
        plant, context, T = drake.plant, drake.context, drake.rates(q)
        weights = plant.CalcGravityGeneralizedForces(context)
        forces = trees.MultibodyForces(plant)
        plant.CalcForceElementsContribution(context, forces)
        for load in wrenches(drake.mechanism):
            wrench = wrench_math.SpatialForce(load.moment, load.force)
            R = plant.EvalBodyPoseInWorld(context, drake.bodies[load.body]).rotation().matrix()
            lever = R @ drake.point(load.body, load.point)
            drake.bodies[load.body].AddInForce(context, lever, wrench, plant.world_frame(), forces)
        all_forces = plant.CalcGeneralizedForces(context, forces)
        M = plant.CalcMassMatrix(context)
        return T.T @ M @ T, T.T @ (plant.CalcBiasTerm(context) - weights), T.T @ (all_forces - weights)


def equations(mechanism: Mechanism) -> DrakeEquations:
    """The equations of motion of a mechanism.

    Raises:
        NotRepresentableError: If it has an element that Drake cannot represent.
    """
    return DrakeEquations(build(mechanism))


def opening(drake: Plant, context: Any) -> Deviation:
    """Gap of the widest loop.

    Args:
        context: A context of the plant.
    """
    widest = Deviation()
    for closure in drake.mechanism.loop_closures:
        match closure:
            case ConnectClosure() | WeldClosure():
                open_by = gap(closure, partial(_pose, drake, context))
            case CoordinateClosure():
                assert closure.leader is not None  # else it was refused
                follower, leader = (drake.joints[c.joints[0]] for c in (closure.follower, closure.leader))
                x, y = (joint.GetOnePosition(context) for joint in (leader, follower))
                miss = np.array([y - np.polynomial.Polynomial(closure.coefficients)(x)])
                open_by = deviation_of(drake.mechanism, (closure.follower,), miss)
            case _:
                assert_never(closure)
        widest = widest.or_worse(open_by)
    return widest


def _ends(closure: RigidClosure) -> tuple[tuple[int, Array], tuple[int, Array]]:
    return (closure.body1, closure.point1), (closure.body2, closure.point2)


def _of_closure(closure: RigidClosure, first: Array, second: Array) -> Array:
    """Angular rows come first in Drake; for a point only the other rows count."""
    match closure:
        case ConnectClosure():
            return first[3:] - second[3:]
        case WeldClosure():
            return first - second
        case _:
            assert_never(closure)


def _jacobian(drake: Plant, body: int, point: Array) -> Array:
    """Angular and linear velocity of a point of a body per velocity of Drake's, world axes, shape (6, nv)."""
    frame, world = drake.body(body).body_frame(), drake.plant.world_frame()
    return np.array(
        drake.plant.CalcJacobianSpatialVelocity(drake.context, V, frame, drake.point(body, point), world, world)
    )


def _bias(drake: Plant, body: int, point: Array) -> Array:
    """The same for the acceleration at constant velocities of Drake, shape (6,)."""
    frame, world = drake.body(body).body_frame(), drake.plant.world_frame()
    bias = drake.plant.CalcBiasSpatialAcceleration(drake.context, V, frame, drake.point(body, point), world, world)
    return np.concatenate([bias.rotational(), bias.translational()])


def _pose(drake: Plant, context: Any, body: int, point: Array) -> tuple[Array, Array]:
    """Position in Drake of a point of a body [m], shape (3,), and the axes of the body [-], shape (3, 3)."""
    if body == WORLD:
        return np.array(point), np.eye(3)
    pose = drake.plant.EvalBodyPoseInWorld(context, drake.bodies[body])
    return np.array(pose.multiply(drake.point(body, point))), np.array(pose.rotation().matrix())
