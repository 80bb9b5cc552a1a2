"""PyBullet's loaded model, its loads before each step, and its terms: read from PyBullet itself.

Two quantities are measured in a step, because PyBullet does not report them: the force of weights and loads on the
tree, and damping, by the difference between joints that move in opposite directions.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.engines.inventory_fields import matrices_along
from loopcheck.engines.loads import joint_springs
from loopcheck.engines.pybullet._angles import in_angles, rates_of_angles
from loopcheck.engines.pybullet._equations import PybulletEquations, apply_loads, set_state
from loopcheck.engines.pybullet._loops import NO_BODY, NONE, close_loops, follow_curves, geared
from loopcheck.engines.pybullet._world import World, body_pose, opened, pybullet, refuse
from loopcheck.engines.pybullet.routes.forward import OWN, prepare
from loopcheck.robots.arrays import Array, JointPositions, PositionSeries, VelocitySeries
from loopcheck.robots.inventory import Inventory, Matrices, off_axis
from loopcheck.robots.mechanism import WORLD, Mechanism

STEP = 1e-2
"""Step of the force measurement [s]; the forces do not depend on it."""
TURNS, SLIDES = int(pybullet.JOINT_REVOLUTE), int(pybullet.JOINT_PRISMATIC)
EVEN = 1e-6
"""Singular values of the axes of a joint's hinges below this count as zero [-]."""

REBUILT = {
    "armature": "rotors on the base, geared to the joints",
    "stiffness": "springs as loads before each step",
    "spring_reference": "springs as loads before each step",
    "force": "loads before each step",
    "moment": "loads before each step",
    "transmission": "motors act on joints; readings are divided by the gears",
}
BALLS = "ball and free joints as hinges and slides"


def audit(mechanism: Mechanism, q: JointPositions) -> Inventory:
    """See `loopcheck.engines.audit`."""
    at_rest = np.zeros((1, mechanism.nv))
    refuse(mechanism, q[None], closed=True)
    x = in_angles(mechanism, q[None], at_rest, at_rest)[0][0]
    inverse = np.linalg.inv(rates_of_angles(mechanism, q[None], at_rest)[0][0])
    with opened(mechanism) as world:
        flat = world.mechanism
        prepare(OWN, False, world, ())
        rest_force, damping = _measured(world, x)
        loops = close_loops(world)
        follow_curves(world, geared(world, loops), x)
        set_state(world, x, np.zeros(len(x)))
        J, opening = _constraints(world, x)
        freedom, axis, anchor = _joints(world, mechanism, x)
        engine = pybullet.getPhysicsEngineParameters(physicsClientId=world.client)
        force, moment = _loads(world)
        stiffness, reference = _springs(world, mechanism)
        return Inventory(
            bodies=tuple(body.name for body in mechanism.bodies),
            joints=tuple(joint.name for joint in mechanism.joints),
            dofs=tuple(joint.name for joint in flat.joints),
            actuators=tuple(actuator.name for actuator in mechanism.actuators),
            **_bodies(world),
            freedom=freedom,
            axis=axis,
            anchor=anchor,
            armature=inverse.T @ _armature(world, x) @ inverse,
            damping=inverse.T @ damping @ inverse,
            friction=np.array([_joint_info(world, i)[7] for i in world.joints]),
            stiffness=stiffness,
            spring_reference=reference,
            gravity=np.array([engine[f"gravityAcceleration{axis}"] for axis in "XYZ"]),
            force=force,
            moment=moment,
            rest_force=inverse.T @ rest_force,
            J=J @ inverse,
            opening=opening,
            transmission=flat.selection,
            rebuilt=REBUILT if flat.nv == len(mechanism.joints) else {**REBUILT, "freedom": BALLS},
        )


def matrices(mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> Matrices:
    """See `loopcheck.engines.matrices`.

    In PyBullet ball joints are three hinges, so that its velocities x are others, qd = E x; M, J and forces are
    transformed by congruence.
    """
    x, xd, _ = in_angles(mechanism, q, qd, np.zeros_like(qd))
    E, E_dot_x = rates_of_angles(mechanism, q, qd)
    inverse = np.linalg.inv(E)
    with opened(mechanism) as world:
        terms = matrices_along(PybulletEquations(world), x, xd)

    def turned(force: Array) -> Array:
        return (inverse.swapaxes(1, 2) @ force[..., None])[..., 0]

    M, J = inverse.swapaxes(1, 2) @ terms.M @ inverse, terms.J @ inverse
    return Matrices(
        M=M,
        bias=turned(terms.bias) - (M @ E_dot_x[..., None])[..., 0],
        passive=turned(terms.passive),
        J=J,
        closure_bias=terms.closure_bias - (J @ E_dot_x[..., None])[..., 0],
    )


def _bodies(world: World) -> dict[str, Any]:
    """Masses, mass centres and inertias as fields of `Inventory`."""
    where = {"physicsClientId": world.client}
    infos = [pybullet.getDynamicsInfo(world.tree, link, **where) for link in world.links]
    states = [pybullet.getLinkState(world.tree, link, computeForwardKinematics=True, **where) for link in world.links]
    moments = np.array([info[2] for info in infos])
    R = [_matrix(state[1]) for state in states]  # of the principal axes
    every = range(pybullet.getNumJoints(world.tree, **where))
    return {
        "mass": np.array([info[0] for info in infos]),
        "total_mass": sum(pybullet.getDynamicsInfo(world.tree, link, **where)[0] for link in every),
        "center": np.array([state[0] for state in states]),
        "moments": np.sort(moments, axis=1),
        "inertia": np.array([Q @ np.diag(of_body) @ Q.T for Q, of_body in zip(R, moments, strict=True)]),
    }


def _rank(directions: Array) -> int:
    """Number of independent directions, up to round-off; numpy 1 (for older releases) has no relative limit."""
    return int(np.linalg.matrix_rank(directions, EVEN * np.linalg.norm(directions, 2)))


def _joints(world: World, mechanism: Mechanism, x: Array) -> tuple[Array, Array, Array]:
    """Freedom, axis and anchor of each joint of the model, by the motions in PyBullet's Jacobians."""
    freedom, axes, anchors = (np.zeros((len(mechanism.joints), k)) for k in (2, 3, 3))
    for j, (joint, dofs) in enumerate(zip(mechanism.joints, mechanism.dof_slices, strict=True)):
        parts = world.joints[dofs]
        kinds = [_joint_info(world, i)[2] for i in parts]
        lines = [_line(world, i, x) for i in parts]
        for column, kind in enumerate((TURNS, SLIDES)):
            directions = [line[0] for line, line_kind in zip(lines, kinds, strict=True) if line_kind == kind]
            freedom[j, column] = _rank(np.array(directions)) if directions else 0
        if joint.kind in ("hinge", "slide"):
            axes[j] = lines[0][0]
        if joint.kind == "hinge":
            anchors[j] = off_axis(lines[0][1], axes[j])
        elif joint.kind == "ball":
            anchors[j] = _meeting_point(lines)
    return freedom, axes, anchors


def _line(world: World, joint: int, x: Array) -> tuple[Array, Array]:
    """Axis of a joint of PyBullet [-], shape (3,), and a point of it [m], shape (3,)."""
    v, w = (part[:, world.moving.index(joint)] for part in _point_jacobian(world, joint, NONE, x))
    center, R, offset = _inertial_frame(world, joint)
    origin = center - R @ offset
    return (w, origin + np.cross(w, v)) if w.any() else (v, origin)


def _inertial_frame(world: World, link: int) -> tuple[Array, Array, Array]:
    """Mass centre of a link, its principal axes, and the position of the centre along them from the link's origin."""
    where = {"physicsClientId": world.client}
    state = pybullet.getLinkState(world.tree, link, computeForwardKinematics=True, **where)
    info = pybullet.getDynamicsInfo(world.tree, link, **where)
    axes = _matrix(info[4])
    return np.array(state[0]), _matrix(state[1]), axes.T @ info[3]


def _point_jacobian(world: World, link: int, point: Any, x: Array) -> tuple[Array, Array]:
    """Linear and angular Jacobian of a point of a link, counted from its origin along its principal axes."""
    rest = [0.0] * len(world.moving)
    positions, where = world.positions(x), {"physicsClientId": world.client}
    linear, angular = pybullet.calculateJacobian(world.tree, link, list(point), positions, rest, rest, **where)
    return np.array(linear), np.array(angular)


def _meeting_point(lines: list[tuple[Array, Array]]) -> Array:
    """The point nearest to some lines [m], shape (3,)."""
    across = [np.eye(3) - np.outer(axis, axis) for axis, _ in lines]
    points = [P @ point for P, (_, point) in zip(across, lines, strict=True)]
    return np.linalg.solve(np.sum(across, axis=0), np.sum(points, axis=0))


def _armature(world: World, x: Array) -> Array:
    """Inertia that the rotors add to the joints by the gears that PyBullet has [kg or kg m²], shape (nv, nv)."""
    armature, gears = np.zeros((len(world.joints), len(world.joints))), np.zeros((len(world.moving), len(world.joints)))
    hinges = [hinge for hinge, _ in world.rotors]
    for constraint in _every_constraint(world):
        hinge, joint, ratio = constraint[1], constraint[3], -constraint[11]
        if hinge in hinges:
            gears[world.moving.index(hinge), world.joints.index(joint)] = ratio
    for hinge in hinges:
        inertia = pybullet.getDynamicsInfo(world.tree, hinge, physicsClientId=world.client)[2][2]  # round, or none
        turning = _point_jacobian(world, hinge, NONE, x)[1] @ gears
        armature += inertia * turning.T @ turning
    return armature


def _measured(world: World, x: Array) -> tuple[Array, Array]:
    """Force that holds the tree at rest [N or N m], (nv,), and damping [N s/m or N m s/rad], (nv, nv)."""
    for joint in world.moving:
        pybullet.setJointMotorControl2(
            world.tree, joint, pybullet.VELOCITY_CONTROL, force=0.0, physicsClientId=world.client
        )
    pybullet.setTimeStep(STEP, physicsClientId=world.client)
    units = np.eye(len(world.joints))
    # weights and velocity terms act alike on a motion and on that backwards
    against = [(_slowing(world, x, unit) - _slowing(world, x, -unit)) / 2 for unit in units]
    return _slowing(world, x, 0 * x), np.reshape(against, units.shape).T


def _slowing(world: World, x: Array, xd: Array) -> Array:
    """Force against the velocities in a step of the tree [N or N m], shape (nv,)."""
    where = {"physicsClientId": world.client}
    M = np.array(pybullet.calculateMassMatrix(world.tree, world.positions(x), **where))
    set_state(world, x, xd)
    apply_loads(world)
    pybullet.stepSimulation(**where)
    after = np.array([state[1] for state in pybullet.getJointStates(world.tree, world.moving, **where)])
    return world.summed(M @ (world.rates(xd) - after) / STEP)


def _springs(world: World, mechanism: Mechanism) -> tuple[Array, Array]:
    """Stiffness of each joint, and the rest positions of the springs of hinges and slides: from the loads there."""
    at_zero, at_one = (joint_springs(world.mechanism, np.full(len(world.joints), x)) for x in (0.0, 1.0))
    stiffness = at_zero - at_one
    for turn in world.turns:
        stiffness[turn.dofs] = turn.joint.stiffness
    scalar = np.array([joint.kind in ("hinge", "slide") for joint in mechanism.joints], dtype=bool)
    first = [dofs.start for dofs in mechanism.dof_slices]
    stiffness, at_zero = stiffness[first], at_zero[first]
    reference = np.divide(at_zero, stiffness, out=np.zeros_like(at_zero), where=scalar & (stiffness != 0))
    return stiffness, reference


def _loads(world: World) -> tuple[Array, Array]:
    """Force on each body and moment about its mass centre, each of shape (nb, 3)."""
    force, moment = np.zeros((len(world.links), 3)), np.zeros((len(world.links), 3))
    for load in world.constant:
        p, R = body_pose(world, load.body)
        center = _inertial_frame(world, world.links[load.body])[0]
        force[load.body] += load.force
        moment[load.body] += load.moment + np.cross(p + R @ load.point - center, load.force)
    return force, moment


def _constraints(world: World, x: Array) -> tuple[Array, float]:
    """Jacobian of PyBullet's constraints except those of the rotors, shape (nc, nv), and the widest opening."""
    rotors, rows, gaps = {hinge for hinge, _ in world.rotors}, [np.zeros((0, world.mechanism.nv))], [0.0]
    for constraint in _every_constraint(world):
        if constraint[4] == pybullet.JOINT_GEAR and constraint[1] in rotors:
            continue
        J, gap = _gear(world, constraint, x) if constraint[4] == pybullet.JOINT_GEAR else _pair(world, constraint, x)
        rows.append(J)
        gaps.append(gap)
    return np.concatenate(rows), max(gaps)


def _every_constraint(world: World) -> Iterator[tuple[Any, ...]]:
    where = {"physicsClientId": world.client}
    for k in range(pybullet.getNumConstraints(**where)):
        yield pybullet.getConstraintInfo(pybullet.getConstraintUniqueId(k, **where), **where)


def _gear(world: World, constraint: tuple[Any, ...], x: Array) -> tuple[Array, float]:
    """A line that the first joint keeps to: its position and the ratio times that of the second add up to a target."""
    row = np.zeros((1, world.mechanism.nv))
    positions = x - world.reference
    gap = -float(constraint[13])
    for joint, factor in ((constraint[1], 1.0), (constraint[3], constraint[11])):
        row[0, world.joints.index(joint)] += factor
        gap += factor * positions[world.joints.index(joint)]
    return row, abs(gap)


def _pair(world: World, constraint: tuple[Any, ...], x: Array) -> tuple[Array, float]:
    """Two coincident points and, for a fixed constraint, their axes too."""
    ends = [
        _end(world, WORLD if tree == NO_BODY else link, pivot, frame, x)
        for tree, link, pivot, frame in (
            (constraint[0], constraint[1], constraint[6], constraint[8]),
            (constraint[2], constraint[3], constraint[7], constraint[9]),
        )
    ]
    (p1, R1, v1, w1), (p2, R2, v2, w2) = ends
    gap = float(np.linalg.norm(p1 - p2))
    if constraint[4] != pybullet.JOINT_FIXED:
        return v1 - v2, gap
    return np.concatenate([v1 - v2, w1 - w2]), max(gap, float(Rotation.from_matrix(R1.T @ R2).magnitude()))


def _end(world: World, link: int, pivot: Any, frame: Any, x: Array) -> tuple[Array, Array, Array, Array]:
    """Position of an end of a constraint, its axes, and its linear and angular Jacobian, world axes."""
    R_frame = _matrix(frame)
    if link == WORLD:
        return np.array(pivot), R_frame, np.zeros((3, len(x))), np.zeros((3, len(x)))
    center, R, offset = _inertial_frame(world, link)
    linear, angular = _point_jacobian(world, link, offset + pivot, x)
    return center + R @ pivot, R @ R_frame, world.summed(linear), world.summed(angular)


def _matrix(quaternion: Any) -> Array:
    return np.array(pybullet.getMatrixFromQuaternion(quaternion)).reshape(3, 3)


def _joint_info(world: World, joint: int) -> tuple[Any, ...]:
    return tuple(pybullet.getJointInfo(world.tree, joint, physicsClientId=world.client))
