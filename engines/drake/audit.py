"""Drake's model and terms: read back from its plant."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from loopcheck.engines.drake._equations import equations
from loopcheck.engines.drake._plant import Plant, guarded, trees
from loopcheck.engines.inventory_fields import (
    body_fields,
    equation_fields,
    joint_fields,
    load_fields,
    matrices_along,
    names_of,
)
from loopcheck.robots.arrays import Array, JointPositions, PositionSeries, VelocitySeries
from loopcheck.robots.inventory import Inventory, Matrices
from loopcheck.robots.mechanism import Mechanism

KINDS = {
    trees.RevoluteJoint: "hinge",
    trees.PrismaticJoint: "slide",
    trees.BallRpyJoint: "ball",
    trees.QuaternionFloatingJoint: "free",
}
"""Kind of a joint by Drake's class of it."""
REBUILT = {
    "armature": "rotors of actuators; passive joints also get an actuator",
    "force": "applied spatial forces",
    "moment": "applied spatial forces",
    "transmission": "actuators act on joints; readings are divided by the gears",
}


def audit(mechanism: Mechanism, q: JointPositions) -> Inventory:
    """See `loopcheck.engines.audit`."""
    with guarded("drake"):
        terms = equations(mechanism)
        drake, fields = terms.drake, equation_fields(terms, q)
        stiffness, reference = _springs(drake)
        return Inventory(
            **names_of(mechanism),
            **fields,
            **_bodies(drake),
            **joint_fields(_joints(drake)),
            **load_fields(mechanism, partial(_lever, drake)),
            armature=_armature(drake),
            friction=np.zeros(mechanism.nv),
            stiffness=stiffness,
            spring_reference=reference,
            gravity=np.array(drake.plant.gravity_field().gravity_vector()),
            transmission=mechanism.selection,
            rebuilt=REBUILT,
        )


def matrices(mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> Matrices:
    """See `loopcheck.engines.matrices`."""
    with guarded("drake"):
        return matrices_along(equations(mechanism), q, qd)


def _bodies(drake: Plant) -> dict[str, Any]:
    """Masses, mass centres and inertias as fields of `Inventory`."""
    every = [body.CalcSpatialInertiaInBodyFrame(drake.context) for body in drake.bodies]
    poses = [drake.plant.EvalBodyPoseInWorld(drake.context, body) for body in drake.bodies]
    inertias = np.array([_about_center(inertia) for inertia in every])
    R = np.array([pose.rotation().matrix() for pose in poses])
    mass = np.array([inertia.get_mass() for inertia in every])
    center = np.array([pose.multiply(_center(inertia)) for pose, inertia in zip(poses, every, strict=True)])
    return body_fields(mass, center, R, inertias, float(drake.plant.CalcTotalMass(drake.context)))


def _center(inertia: Any) -> Array:
    """Mass centre in Drake's frame of a body [m], shape (3,); a massless body has none."""
    return np.array(inertia.get_com()) if inertia.get_mass() else np.zeros(3)


def _about_center(inertia: Any) -> Array:
    mass, c = inertia.get_mass(), _center(inertia)
    if not mass:
        return np.zeros((3, 3))
    steiner = mass * (c @ c * np.eye(3) - np.outer(c, c))
    return np.array(inertia.CalcRotationalInertia().CopyToFullMatrix3()) - steiner


def _joints(drake: Plant) -> Iterator[tuple[str, Any, Any]]:
    """Kind of each joint, its axis and a point on the axis."""
    for joint in drake.joints:
        kind, axis = KINDS[type(joint)], None
        pose = joint.frame_on_child().CalcPoseInWorld(drake.context)
        if kind in ("hinge", "slide"):
            along = joint.revolute_axis() if kind == "hinge" else joint.translation_axis()
            axis = pose.rotation().multiply(along)
        yield kind, axis, pose.translation()


def _armature(drake: Plant) -> Array:
    """Reflected inertia of the actuators' rotors on the dofs of their joints [kg or kg m²], shape (nv, nv)."""
    armature = np.zeros(drake.mechanism.nv)
    for j, actuator in drake.actuators.items():
        armature[drake.mechanism.dof_slices[j]] = actuator.calc_reflected_inertia(drake.context)
    return np.diag(armature)


def _springs(drake: Plant) -> tuple[Array, Array]:
    """Stiffness of each joint, and the rest position of its spring, each of shape (nj,)."""
    stiffness, rest = np.zeros(len(drake.joints)), np.zeros(len(drake.joints))
    places = {joint.index(): j for j, joint in enumerate(drake.joints)}
    for k in range(drake.plant.num_force_elements()):
        spring = drake.plant.get_force_element(trees.ForceElementIndex(k))
        if isinstance(spring, (trees.RevoluteSpring, trees.PrismaticSpring)):
            j = places[spring.joint().index()]
            turns = isinstance(spring, trees.RevoluteSpring)
            at_rest = spring.default_nominal_angle() if turns else spring.nominal_position()
            stiffness[j] = spring.default_stiffness() if turns else spring.stiffness()
            rest[j] = at_rest + drake.mechanism.joints[j].rest_position[0]
    return stiffness, rest


def _lever(drake: Plant, b: int, point: Array) -> Array:
    """Vector from the mass centre of a body to a point of it, world axes [m], shape (3,)."""
    body = drake.bodies[b]
    R: Array = drake.plant.EvalBodyPoseInWorld(drake.context, body).rotation().matrix()
    return R @ (drake.point(b, point) - _center(body.CalcSpatialInertiaInBodyFrame(drake.context)))
