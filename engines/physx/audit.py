"""PhysX's model: read back from its links, joints and drives, in single precision.

It exposes no mass matrix and no Jacobian of loops. The motions forbidden by its loops follow from its axes, anchors and
ends of loops; its weights from the force by which it would hold them.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from loopcheck.engines.inventory_fields import joint_fields, load_fields, names_of
from loopcheck.engines.physx._articulation import Built, Stepping, build, guarded, position_and_axes
from loopcheck.engines.physx._stepping import opening_of
from loopcheck.engines.physx._support import branches, is_floating
from loopcheck.robots.arrays import Array, JointPositions, PositionSeries, VelocitySeries
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.inventory import Inventory, Matrices
from loopcheck.robots.mechanism import WORLD, Mechanism, RigidClosure, WeldClosure

KINDS = {"revolute_unwrapped": "hinge", "prismatic": "slide"}
"""Kind of a joint by SAPIEN's name of it."""
ROUND_OFF = 1e-6
"""Entries of rows below this part of the largest are its last digits [-]."""
REBUILT = {
    "J": "from axes, anchors and loop ends as read back from PhysX; welds as three points; no joint has play",
    "force": "loads before each step",
    "moment": "loads before each step",
    "transmission": "drives act on joints; readings are divided by the gears",
}
FLOATING = {"rest_force": "from masses, mass centres and axes as read back from PhysX, because the root floats"}


def audit(mechanism: Mechanism, q: JointPositions) -> Inventory:
    """See `loopcheck.engines.audit`."""
    with guarded("physx"):
        built = build(mechanism, Stepping())
        built.put(q, np.zeros(mechanism.nv))
        joints, loads = joint_fields(_joints(built)), load_fields(mechanism, partial(_lever, built))
        axis, anchor = joints["axis"], joints["anchor"]
        stiffness, reference = _springs(built)
        Jt, Jr = _body_jacobians(built, axis, anchor)
        bodies, gravity = _bodies(built), np.asarray(built.scene.physx_system.config.gravity, float)
        springs = np.zeros(mechanism.nv)
        first = [places.start for places in mechanism.q_slices]
        springs[built.dofs] = (stiffness * (q[first] - reference))[list(built.joints)]
        acting = np.einsum("bkv,bk->v", Jt, loads["force"]) + np.einsum("bkv,bk->v", Jr, loads["moment"])
        return Inventory(
            **names_of(mechanism),
            **bodies,
            **joints,
            armature=np.diag(_of_joints(built, lambda joint: joint.armature[0])),
            damping=np.diag(_of_joints(built, lambda joint: joint.damping)),
            friction=_of_joints(built, lambda joint: joint.friction),
            stiffness=stiffness,
            spring_reference=np.where(stiffness > 0, reference, 0.0),
            gravity=gravity,
            **loads,
            rest_force=_weights(built, Jt, bodies["mass"], gravity) + springs - acting,
            J=_loop_rows(built, axis, anchor),
            opening=opening_of(built).largest,
            transmission=mechanism.selection,
            rebuilt={**REBUILT, **(FLOATING if built.roots else {})},
        )


def matrices(mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> Matrices:
    """See `loopcheck.engines.matrices`."""
    raise NotRepresentableError("physx: reports no mass matrix (the matrix of SAPIEN is computed by Pinocchio)")


def _bodies(built: Built) -> dict[str, Any]:
    """Masses, mass centres and inertias as fields of `Inventory`."""
    centers, inertias = [], []
    for b, link in enumerate(built.links):
        (p, R), (center, axes) = built.pose_of(b), position_and_axes(link.cmass_local_pose)
        centers.append(p + R @ center)
        inertias.append(R @ axes @ np.diag(np.asarray(link.inertia, float)) @ axes.T @ R.T)
    moving = [link for part in built.articulations for link in part.links if link.name != "world"]
    return {
        "mass": np.array([link.mass for link in built.links]),
        "total_mass": float(sum(link.mass for link in moving)),
        "center": np.reshape(centers, (-1, 3)),
        "moments": np.array([np.linalg.eigvalsh(inertia) for inertia in inertias]).reshape(-1, 3),
        "inertia": np.reshape(inertias, (-1, 3, 3)),
    }


def _joints(built: Built) -> Iterator[tuple[str, Any, Any]]:
    """Kind of each joint, its axis and a point on the axis."""
    for j in range(len(built.mechanism.joints)):
        if j in built.roots:
            yield "free", None, None
        else:
            joint = built.joints[j]
            p, R = position_and_axes(joint.child_link.entity_pose * joint.pose_in_child)
            yield KINDS[joint.type], R[:, 0], p


def _springs(built: Built) -> tuple[Array, Array]:
    """Stiffness of each joint, and the rest position of its spring, each of shape (nj,); zero of a free joint."""
    stiffness, rest = np.zeros(len(built.mechanism.joints)), np.zeros(len(built.mechanism.joints))
    for j, joint in built.joints.items():
        stiffness[j] = joint.stiffness
        rest[j] = np.reshape(joint.drive_target, -1)[0] + built.mechanism.joints[j].rest_position[0]
    return stiffness, rest


def _of_joints(built: Built, quantity: Callable[[Any], float]) -> Array:
    """A quantity of PhysX's joints along joint velocities, shape (nv,); zero along free joints."""
    values = np.zeros(built.mechanism.nv)
    values[built.dofs] = [float(quantity(joint)) for joint in built.joints.values()]
    return values


def _weights(built: Built, Jt: Array, mass: Array, gravity: Array) -> Array:
    """Forces that hold the weights, by PhysX; for a floating root, by its masses, mass centres and axes, (nv,)."""
    every = [np.asarray(part.compute_passive_force(True, True), float) for part in built.articulations]
    weights = built.of_dofs(every)
    for branch in branches(built.mechanism):
        if is_floating(built.mechanism, branch[0]):
            joints = [j for b in branch for j in built.mechanism.joints_of[b]]
            moved = [dof for j in joints for dof in range(built.mechanism.nv)[built.mechanism.dof_slices[j]]]
            weights[moved] = -np.einsum("bkv,b,k->v", Jt, mass, gravity)[moved]
    return weights


def _lever(built: Built, b: int, point: Array) -> Array:
    """Vector from the mass centre of a body to a point of it, world axes [m], shape (3,)."""
    (_, R), (center, _) = built.pose_of(b), position_and_axes(built.links[b].cmass_local_pose)
    return R @ (point - center)


def _body_jacobians(built: Built, axis: Array, anchor: Array) -> tuple[Array, Array]:
    """Velocity of each mass centre [m/rad or m/m] and turning of each body, per joint velocity, each (nb, 3, nv)."""
    posed = [(link, built.pose_of(b)) for b, link in enumerate(built.links)]
    points = [p + R @ position_and_axes(link.cmass_local_pose)[0] for link, (p, R) in posed]
    pairs = [_point_rows(built, b, point, axis, anchor) for b, point in enumerate(points)]
    shape = (len(pairs), 3, built.mechanism.nv)
    return np.reshape([pair[0] for pair in pairs], shape), np.reshape([pair[1] for pair in pairs], shape)


def _point_rows(built: Built, body: int, point: Array, axis: Array, anchor: Array) -> tuple[Array, Array]:
    """Velocity of a point of a body and turning of it per joint velocity, world axes, each of shape (3, nv)."""
    mechanism = built.mechanism
    linear, angular = np.zeros((3, mechanism.nv)), np.zeros((3, mechanism.nv))
    while body != WORLD:
        for j in mechanism.joints_of[body]:
            dofs = mechanism.dof_slices[j]
            match mechanism.joints[j].kind:
                case "hinge":
                    linear[:, dofs.start], angular[:, dofs.start] = np.cross(axis[j], point - anchor[j]), axis[j]
                case "slide":
                    linear[:, dofs.start] = axis[j]
                case _:  # free: it moves its origin along the world's axes, and turns about its own
                    p, R = built.pose_of(body)
                    turning = slice(dofs.start + 3, dofs.stop)
                    linear[:, dofs.start : dofs.start + 3], angular[:, turning] = np.eye(3), R
                    linear[:, turning] = np.cross(R.T, point - p).T
        body = mechanism.bodies[body].parent
    return linear, angular


def _loop_rows(built: Built, axis: Array, anchor: Array) -> Array:
    """Opening rate of the loops per joint velocity, shape (nc, nv), by the points that PhysX holds together.

    SAPIEN does not report the directions without play. Three points of a weld are reported as a point and its turn.
    """
    rows = [np.zeros((0, built.mechanism.nv))]
    for points, closure in zip(built.loops, built.mechanism.rigid_closures, strict=True):
        gaps = [_gap_rows(built, closure, point, axis, anchor) for point in points]
        rows += [np.mean([linear for linear, _ in gaps], axis=0)]
        if isinstance(closure, WeldClosure):
            rows += [gaps[0][1]]
    every = np.concatenate(rows)
    return np.where(np.abs(every) < ROUND_OFF * np.abs(every).max(initial=0.0), 0.0, every)


def _gap_rows(built: Built, closure: RigidClosure, point: Any, axis: Array, anchor: Array) -> tuple[Array, Array]:
    """Relative motion of two points, and relative rotation of their bodies, per joint velocity, each (3, nv)."""
    ends = []
    for body, pose in ((closure.body1, point.pose_in_parent), (closure.body2, point.pose_in_child)):
        (p, R), (place, _) = built.pose_of(body), position_and_axes(pose)
        ends.append(_point_rows(built, body, p + R @ place, axis, anchor))
    return ends[0][0] - ends[1][0], ends[0][1] - ends[1][1]
