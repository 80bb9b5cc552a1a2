"""A mechanism as Drake's `MultibodyPlant`.

Drake's frame of a body is at its mass centre, along our axes: a small inertia about another point would be lost. A body
with several joints gets massless bodies between them. Ball joints are roll, pitch and yaw, free joints quaternions;
their velocity is along the axes of the body before them. It differs from ours by the rotation of the joint; its rate
drops out of the accelerations, as R (ω × ω) is zero.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, assert_never

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.engines.boundary import converted, coupled, silenced, want_representable
from loopcheck.engines.mechanics import BALL_OR_FREE, rotation
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.mechanism import WORLD, ConnectClosure, CoordinateClosure, Joint, Mechanism, WeldClosure

with silenced():
    plants: Any = import_module("pydrake.multibody.plant")
    trees: Any = import_module("pydrake.multibody.tree")
    math: Any = import_module("pydrake.math")
    values: Any = import_module("pydrake.common.value")
    wrench_math: Any = import_module("pydrake.multibody.math")

STEP = 1e-3
"""Step of a plant used only for its terms [s]; only discrete plants have constraints."""
STRONGEST = 1e12
"""Effort that actuators never reach [N or N m]."""
NEXT_TO_NOTHING = 1e-9
"""Position gain of actuators that hold velocities [N/m or N m/rad]; Drake requires a positive value."""
NONE_HELD: Mapping[int, float] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A mechanism in Drake."""

    mechanism: Mechanism
    plant: Any
    """Drake's finalized plant, owner of all objects below."""
    context: Any
    """A context of it, to be set."""
    bodies: tuple[Any, ...]
    """Drake's body of each body."""
    joints: tuple[Any, ...]
    """Drake's joint of each joint."""
    actuators: dict[int, Any] = field(default_factory=dict)
    """Drake's actuator by the index of its joint, for driven joints and joints with a rotor."""

    def body(self, b: int) -> Any:
        """Drake's body of a body, or of the world."""
        return self.plant.world_body() if b == WORLD else self.bodies[b]

    def point(self, b: int, point: Array) -> Array:
        """A point of a body in Drake's frame of it [m], shape (3,).

        Args:
            b: Index of the body, or `WORLD`.
            point: The point in the body frame [m], shape (3,).
        """
        return np.array(point) if b == WORLD else point - self.mechanism.bodies[b].center

    def place(self, j: int) -> int:
        """Place of a hinge or slide among Drake's velocities."""
        return int(self.joints[j].velocity_start())

    def rates(self, q: JointPositions) -> Array:
        """Drake's velocities per joint velocity [-], shape (nv, nv)."""
        T = np.zeros((self.plant.num_velocities(), self.mechanism.nv))
        for j, joint in enumerate(self.mechanism.joints):
            first, dofs = self.joints[j].velocity_start(), self.mechanism.dof_slices[j]
            if joint.kind not in BALL_OR_FREE:
                T[first, dofs.start] = 1
                continue
            T[first : first + 3, dofs.stop - 3 : dofs.stop] = rotation(q[self.mechanism.q_slices[j]][-4:]).as_matrix()
            if joint.kind == "free":
                T[first + 3 : first + 6, dofs.start : dofs.start + 3] = np.eye(3)
        return T

    def positions(self, q: JointPositions) -> Array:
        """Joint positions as Drake has them [m, rad or -], shape (its positions,)."""
        values = np.zeros(self.plant.num_positions())
        for j, joint in enumerate(self.mechanism.joints):
            x, first = q[self.mechanism.q_slices[j]], self.joints[j].position_start()
            if joint.kind == "ball":
                values[first : first + 3] = roll_pitch_yaw(rotation(x).as_matrix())
            elif joint.kind == "free":
                values[first : first + 7] = [*(x[3:] / np.linalg.norm(x[3:])), *x[:3]]
            else:
                values[first] = x[0] - joint.rest_position[0]
        return values

    def state(self) -> tuple[Array, Array]:
        """Joint positions [m or rad], shape (nq,), and velocities [m/s or rad/s], shape (nv,), of the mechanism."""
        x, v = self.plant.GetPositions(self.context), self.plant.GetVelocities(self.context)
        q = np.zeros(self.mechanism.nq)
        for j, joint in enumerate(self.mechanism.joints):
            places, first = self.mechanism.q_slices[j], self.joints[j].position_start()
            if joint.kind == "ball":
                roll, pitch, yaw = x[first : first + 3]
                q[places] = np.roll(Rotation.from_euler("ZYX", [yaw, pitch, roll]).as_quat(), 1)
            elif joint.kind == "free":
                q[places] = [*x[first + 4 : first + 7], *x[first : first + 4]]
            else:
                q[places] = x[first] + joint.rest_position[0]
        return q, self.rates(q).T @ v

    def put(self, q: JointPositions, qd: JointVelocities) -> None:
        """Set the state."""
        self.plant.SetPositions(self.context, self.positions(q))
        self.plant.SetVelocities(self.context, self.rates(q) @ qd)


def build(
    mechanism: Mechanism,
    *,
    step: float = STEP,
    gains: Mapping[int, float] = NONE_HELD,
) -> Plant:
    """A mechanism in Drake.

    Args:
        step: Step of the plant [s].
        gains: Of the velocity of joints that are held, by their indices [N s/m or N m s/rad].

    Raises:
        NotRepresentableError: If something of the mechanism has no counterpart.
    """
    want_carried(mechanism)
    plant = plants.MultibodyPlant(time_step=step)
    plant.set_discrete_contact_approximation(plants.DiscreteContactApproximation.kSap)
    plant.mutable_gravity_field().set_gravity_vector(np.array(mechanism.gravity))
    bodies: list[Any] = []
    joints: list[Any] = [None] * len(mechanism.joints)
    for b in range(len(mechanism.bodies)):
        bodies.append(_add_body(plant, mechanism, b, bodies, joints))
    bare = Plant(mechanism=mechanism, plant=plant, context=None, bodies=tuple(bodies), joints=tuple(joints))
    _close_loops(bare)
    _add_springs(bare)
    actuators = _add_actuators(bare, gains)
    plant.SetUseSampledOutputPorts(False)  # they would tell of the step before
    plant.Finalize()
    return Plant(
        mechanism=mechanism,
        plant=plant,
        context=plant.CreateDefaultContext(),
        bodies=tuple(bodies),
        joints=tuple(joints),
        actuators=actuators,
    )


guarded = partial(converted, errors=(RuntimeError, ValueError, TypeError, SystemExit), quiet=True)
"""Converts the exceptions of the engine."""


def roll_pitch_yaw(R: Array) -> Array:
    """Angles of R = Rz Ry Rx, in the order x, y, z [rad], shape (3,), right to round-off also at y = 90°.

    Args:
        R: Rotation [-], shape (3, 3).
    """
    z = np.arctan2(R[1, 0], R[0, 0])
    c, s = np.cos(z), np.sin(z)
    x_row, y_row, _ = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) @ R
    return np.array([np.arctan2(-y_row[2], y_row[1]), np.arctan2(-R[2, 0], x_row[0]), z])


def _add_body(plant: Any, mechanism: Mechanism, b: int, bodies: list[Any], joints: list[Any]) -> Any:
    """Add a body with its joints, with massless bodies between them."""
    body = mechanism.bodies[b]
    carrier, offset = (
        (plant.world_body(), np.zeros(3))
        if body.parent == WORLD
        else (bodies[body.parent], mechanism.bodies[body.parent].center)
    )
    position, R, own = body.position - offset, body.rotation, mechanism.joints_of[b]
    for k, j in enumerate(own[:-1]):
        between = plant.AddRigidBody(f"body{b} before joint {k + 1}", trees.SpatialInertia.Zero())
        joints[j] = _add_joint(plant, mechanism.joints[j], j, (carrier, position, R), (between, np.zeros(3)))
        carrier, position, R = between, np.zeros(3), np.eye(3)
    added = plant.AddRigidBody(f"body{b}", _inertia(body.mass, body.inertia))
    if own:
        last = mechanism.joints[own[-1]]
        joints[own[-1]] = _add_joint(plant, last, own[-1], (carrier, position, R), (added, body.center))
    else:
        place = _frame(plant, f"place of body{b}", carrier, position, R)
        plant.WeldFrames(place, _frame(plant, f"origin of body{b}", added, -body.center, np.eye(3)))
    return added


def _inertia(mass: float, I: Array) -> Any:
    if not mass:
        return trees.SpatialInertia.Zero()
    G = I / mass
    unit = trees.UnitInertia(G[0, 0], G[1, 1], G[2, 2], G[0, 1], G[0, 2], G[1, 2])
    return trees.SpatialInertia(mass, np.zeros(3), unit, True)


def _frame(plant: Any, name: str, body: Any, position: Array, R: Array) -> Any:
    pose = math.RigidTransform(math.RotationMatrix.ProjectToRotationMatrix(np.array(R)), np.array(position))
    return plant.AddFrame(trees.FixedOffsetFrame(name, body.body_frame(), pose))


def _add_joint(plant: Any, joint: Joint, j: int, place: tuple[Any, Array, Array], child: tuple[Any, Array]) -> Any:
    """Add a joint between a carrier, with the pose of the child on it, and the child with its mass centre."""
    (carrier, position, R), (body, center), anchor = place, child, joint.anchor
    if joint.kind == "free":  # its position is not counted from where the body is given
        position, R, anchor = np.zeros(3), np.eye(3), np.zeros(3)
    before = _frame(plant, f"joint{j} on its carrier", carrier, position + R @ anchor, R)
    after = _frame(plant, f"joint{j} on its body", body, anchor - center, np.eye(3))
    match joint.kind:
        case "hinge":
            added = trees.RevoluteJoint(f"joint{j}", before, after, joint.axis, joint.damping)
        case "slide":
            added = trees.PrismaticJoint(f"joint{j}", before, after, joint.axis, damping=joint.damping)
        case "ball":
            added = trees.BallRpyJoint(f"joint{j}", before, after, joint.damping)
        case "free":
            added = trees.QuaternionFloatingJoint(f"joint{j}", before, after, joint.damping, joint.damping)
        case _:
            assert_never(joint.kind)
    return plant.AddJoint(added)


def _close_loops(bare: Plant) -> None:
    """Constraints of all closures. A constraint with the world ends the process, so a body welded to it is used."""
    plant, mechanism = bare.plant, bare.mechanism
    stand_in = None
    if any(WORLD in (closure.body1, closure.body2) for closure in mechanism.rigid_closures):
        stand_in = plant.AddRigidBody("anchor", trees.SpatialInertia.Zero())
        plant.WeldFrames(plant.world_frame(), stand_in.body_frame())
    for closure in mechanism.loop_closures:
        match closure:
            case ConnectClosure():
                (first, p1), (second, p2) = (
                    (stand_in if b == WORLD else bare.bodies[b], bare.point(b, point))
                    for b, point in ((closure.body1, closure.point1), (closure.body2, closure.point2))
                )
                plant.AddBallConstraint(first, p1, second, p2)
            case WeldClosure():
                (first, p1), (second, p2) = (
                    (stand_in if b == WORLD else bare.bodies[b], bare.point(b, point))
                    for b, point in ((closure.body1, closure.point1), (closure.body2, closure.point2))
                )
                turned = math.RotationMatrix.ProjectToRotationMatrix(np.array(closure.rotation))
                plant.AddWeldConstraint(first, math.RigidTransform(turned, p1), second, math.RigidTransform(p2))
            case CoordinateClosure():
                assert closure.leader is not None  # else it was refused
                follower, leader = bare.joints[closure.follower.joints[0]], bare.joints[closure.leader.joints[0]]
                offset, slope = closure.coefficients[:2]
                plant.AddCouplerConstraint(follower, leader, float(slope), float(offset))
            case _:
                assert_never(closure)


def _add_springs(bare: Plant) -> None:
    for j, joint in enumerate(bare.mechanism.joints):
        if joint.stiffness:
            spring = trees.RevoluteSpring if joint.kind == "hinge" else trees.PrismaticSpring
            rest = float(joint.spring_reference[0] - joint.rest_position[0])
            bare.plant.AddForceElement(spring(bare.joints[j], rest, joint.stiffness))
    for each in bare.mechanism.point_springs:
        ends = [part for b, point in each.ends for part in (bare.body(b), bare.point(b, point))]
        length = each.rest[0] or 1.0  # of a damper alone any will do
        bare.plant.AddForceElement(trees.LinearSpringDamper(*ends, length, each.stiffness, each.damping))


def _add_actuators(bare: Plant, gains: Mapping[int, float]) -> dict[int, Any]:
    """Actuators of drives and of rotors: only actuators have rotors."""
    driven = bare.mechanism.actuated_joints
    with_rotor = [j for j, joint in enumerate(bare.mechanism.joints) if joint.armature]
    actuators: dict[int, Any] = {}
    for j in dict.fromkeys([*driven, *with_rotor]):
        actuators[j] = bare.plant.AddJointActuator(f"actuator{j}", bare.joints[j], STRONGEST)
        actuators[j].set_default_rotor_inertia(bare.mechanism.joints[j].armature)
        actuators[j].set_default_gear_ratio(1.0)
        if j in gains:
            actuators[j].set_controller_gains(trees.PdControllerGains(p=NEXT_TO_NOTHING, d=gains[j]))
    return actuators


def want_carried(mechanism: Mechanism) -> None:
    """Refuse a mechanism that would lose something.

    Raises:
        NotRepresentableError: If it has any such thing; the message names all of them.
    """
    want_representable("drake", (*_coupled(mechanism), *_on_joints(mechanism), *_between_points(mechanism)))


def couples_joints(closure: CoordinateClosure) -> bool:
    """Whether an equality makes a joint a linear function of another."""
    linear = not closure.coefficients[2:].any()
    return linear and closure.follower.is_joint and closure.leader is not None and closure.leader.is_joint


def _coupled(mechanism: Mechanism) -> Iterator[str]:
    """Loads on the coordinates of several joints."""
    for closure in mechanism.coordinate_closures:
        if not couples_joints(closure):
            yield f"equality '{closure.name}' (couplers are linear, between 2 joints)"
    yield from coupled(mechanism, tendon="motors, springs and rotors only on single joints")


def _on_joints(mechanism: Mechanism) -> Iterator[str]:
    for joint in mechanism.joints:
        if joint.kind in ("hinge", "slide"):
            continue
        if joint.armature:
            yield f"armature of {joint.kind} joint '{joint.name}' (rotors only on hinges and slides)"
        if joint.stiffness:
            yield f"spring of {joint.kind} joint '{joint.name}' (springs only on hinges and slides)"


def _between_points(mechanism: Mechanism) -> Iterator[str]:
    for spring in mechanism.point_springs:
        if spring.rest[0] != spring.rest[1] and spring.stiffness:
            yield f"slack of spring '{spring.name}' (springs have a single rest length)"
        elif not spring.rest[0] and spring.stiffness:
            yield f"spring '{spring.name}' with zero rest length (rest lengths must be above 0)"
