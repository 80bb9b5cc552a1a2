"""Forces in the joints as OpenSim reports them: reactions on children, and forces of constraints on bodies."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from loopcheck.engines.declarations import WrenchReading
from loopcheck.engines.simbody._model import Model
from loopcheck.engines.simbody._opensim import opensim, pose
from loopcheck.robots.arrays import Array
from loopcheck.robots.connections import connections
from loopcheck.robots.mechanism import WORLD, CoordinateClosure, Mechanism

READINGS = (
    WrenchReading(
        name="calcReactionOnChildExpressedInGround",
        carriers="bodies",
        point="origin of the joint's frame on the child",
        axes="ground; moment first",
        sign="on the child",
        code="""
model.realizeAcceleration(state)
reaction = joint.calcReactionOnChildExpressedInGround(state)
moment, force = (R.T @ reaction.get(i).to_numpy() for i in range(2))  # R: axes of the child in ground
moment += np.cross(origin_of_frame - anchor, force)  # both in the child
""",
    ),
    WrenchReading(
        name="calcConstraintForces",
        carriers="closures",
        point="origin of the body",
        axes="closest body that carries both bodies, or ground; moment first",
        sign="minus on body 1",
        code="""
of_bodies, of_coordinates = opensim.VectorOfSpatialVec(), opensim.Vector()
constraint.calcConstraintForces(state, of_bodies, of_coordinates)  # with realized accelerations
moment, force = (-R.T @ of_bodies.get(0).get(i).to_numpy() for i in range(2))  # R: of body 1 in that body
moment -= np.cross(point_in_body_1, force)
""",
    ),
)
"""See `loopcheck.engines.contract.Wrenches`."""


def wrenches(model: Model, state: Any) -> Mapping[str, Array]:
    """Wrenches of the connections by reading [N m, N], shape (connections, 6), at realized accelerations."""
    carriers = connections(model.mechanism)
    of_joints, of_constraints = np.full((2, len(carriers), 6), np.nan)
    constraints = iter(k for k, c in enumerate(model.mechanism.loop_closures) if not isinstance(c, CoordinateClosure))
    axes = {WORLD: np.eye(3), **{b: pose(body, state)[0] for b, body in enumerate(model.bodies)}}
    for k, (_, body, point, closure) in enumerate(carriers):
        if closure is None:  # the frame on the child is at our point
            joints = model.mechanism.joints_of[body]
            joint = model.joints[joints[-1]] if joints else model.model.getJointSet().get(f"weld{body}")
            reaction = joint.calcReactionOnChildExpressedInGround(state)
            of_joints[k] = np.concatenate([reaction.get(i).to_numpy() @ axes[body] for i in range(2)])
            continue
        R = axes[_carrier(model.mechanism, closure.body1, closure.body2)].T @ axes[body]
        of_bodies = opensim.VectorOfSpatialVec()
        constraint = model.model.getConstraintSet().get(f"loop{next(constraints)}")
        constraint.calcConstraintForces(state, of_bodies, opensim.Vector())
        moment, force = (-of_bodies.get(0).get(i).to_numpy() @ R for i in range(2))
        of_constraints[k] = np.concatenate([moment - np.cross(point, force), force])
    return {"calcReactionOnChildExpressedInGround": of_joints, "calcConstraintForces": of_constraints}


def _carrier(mechanism: Mechanism, first: int, second: int) -> int:
    """The closest body that carries both bodies, or is one of them, or the world."""
    while first != second:  # bodies come after those that carry them
        first, second = (
            (first, mechanism.bodies[second].parent) if second > first else (mechanism.bodies[first].parent, second)
        )
    return first
