"""Simbody's model and terms: read back from OpenSim's components and from the terms of its equations."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from loopcheck.engines.inventory_fields import body_fields, equation_fields, joint_fields, matrices_along, names_of
from loopcheck.engines.simbody._equations import equations
from loopcheck.engines.simbody._model import Model
from loopcheck.engines.simbody._opensim import guarded, opensim, pose
from loopcheck.robots.arrays import Array, JointPositions, PositionSeries, VelocitySeries
from loopcheck.robots.inventory import Inventory, Matrices
from loopcheck.robots.mechanism import Mechanism

KINDS = {"PinJoint": "hinge", "SliderJoint": "slide", "BallJoint": "ball", "FreeJoint": "free"}
"""Kind of a joint by OpenSim's name of it."""
AXES = {"hinge": 2, "slide": 0}
"""Index of the frame axis along which a joint moves."""
REBUILT = {
    "armature": "rotors as wheels on the ground, coupled to the coordinates of the joints",
    "transmission": "drives act on coordinates; multipliers are divided by the gears",
}


def audit(mechanism: Mechanism, q: JointPositions) -> Inventory:
    """See `loopcheck.engines.audit`."""
    with guarded("simbody"):
        terms = equations(mechanism)
        model, fields = terms.simbody, equation_fields(terms, q)
        force, moment = _loads(model)
        stiffness, reference = _springs(model)
        return Inventory(
            **names_of(mechanism),
            **fields,
            **_bodies(model),
            **joint_fields(_joints(model)),
            armature=_armature(model),
            friction=np.zeros(mechanism.nv),
            stiffness=stiffness,
            spring_reference=reference,
            gravity=np.array(model.model.getGravity().to_numpy()),
            force=force,
            moment=moment,
            transmission=mechanism.selection,
            rebuilt=REBUILT,
        )


def matrices(mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> Matrices:
    """See `loopcheck.engines.matrices`."""
    with guarded("simbody"):
        return matrices_along(equations(mechanism), q, qd)


def _bodies(model: Model) -> dict[str, Any]:
    """Masses, mass centres and inertias as fields of `Inventory`; rotors turn about points that stand still."""
    inertias = np.array([_tensor(body.getInertia()) for body in model.bodies])
    poses = [pose(body, model.state) for body in model.bodies]
    R = np.array([axes for axes, _ in poses])
    rotors = sum(_wheel(coordinate).getMass() for coordinate in model.rotor_coordinates)
    mass = np.array([body.getMass() for body in model.bodies])
    center = np.array([p + A @ _center(body) for (A, p), body in zip(poses, model.bodies, strict=True)])
    total = float(model.model.getMatterSubsystem().calcSystemMass(model.state)) - rotors
    return body_fields(mass, center, R, inertias, total)


def _center(body: Any) -> Array:
    return np.array(body.getMassCenter().to_numpy())


def _tensor(inertia: Any) -> Array:
    (xx, yy, zz), (xy, xz, yz) = inertia.getMoments().to_numpy(), inertia.getProducts().to_numpy()
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _joints(model: Model) -> Iterator[tuple[str, Any, Any]]:
    """Kind of each joint, its axis and a point on the axis."""
    for joint in model.joints:
        kind = KINDS[joint.getConcreteClassName()]
        R, point = pose(joint.getChildFrame(), model.state)
        yield kind, R[:, AXES[kind]] if kind in AXES else None, point


def _wheel(coordinate: Any) -> Any:
    """The body of a rotor."""
    frame = opensim.PhysicalOffsetFrame.safeDownCast(coordinate.getJoint().getChildFrame())
    return opensim.Body.safeDownCast(frame.getParentFrame())


def _armature(model: Model) -> Array:
    """Inertia of the rotors on the dofs they turn with [kg, kg m or kg m²], shape (nv, nv)."""
    W = model.mechanism.rates_of([rotor.coordinate for rotor in model.rotors])
    inertias = [_tensor(_wheel(coordinate).getInertia())[2, 2] for coordinate in model.rotor_coordinates]
    return (W.T * inertias) @ W


def _forces(model: Model, kind: Any) -> Iterator[Any]:
    """OpenSim's forces of a class."""
    every = model.model.getForceSet()
    for k in range(every.getSize()):
        force = kind.safeDownCast(every.get(k))
        if force is not None:
            yield force


def _springs(model: Model) -> tuple[Array, Array]:
    """Stiffness of each joint, and the rest position of its spring, each of shape (nj,)."""
    stiffness, rest = np.zeros(len(model.joints)), np.zeros(len(model.joints))
    names = {joint.get_coordinates(0).getName(): j for j, joint in enumerate(model.joints)}
    for spring in _forces(model, opensim.SpringGeneralizedForce):
        j = names[spring.get_coordinate()]
        stiffness[j] = spring.getStiffness()
        if stiffness[j]:
            rest[j] = spring.getRestLength() + model.mechanism.joints[j].rest_position[0]
    return stiffness, rest


def _loads(model: Model) -> tuple[Array, Array]:
    """Force on each body and moment about its mass centre, each of shape (nb, 3)."""
    force, moment = np.zeros((len(model.bodies), 3)), np.zeros((len(model.bodies), 3))
    names = {body.getName(): b for b, body in enumerate(model.bodies)}
    for load in _forces(model, opensim.PrescribedForce):
        b = names[load.getFrame().getName()]
        R, _ = pose(model.bodies[b], model.state)
        vector, torque, point = (
            np.array(read(0.0).to_numpy()) for read in (load.getForceAtTime, load.getTorqueAtTime, load.getPointAtTime)
        )
        force[b] += vector
        moment[b] += torque + np.cross(R @ (point - _center(model.bodies[b])), vector)
    return force, moment
