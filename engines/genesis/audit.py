"""The file as loaded by Genesis: read back from its links, dofs and Jacobians."""

from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.engines.boundary import silenced
from loopcheck.engines.genesis._scene import Built, build, guarded, numbers
from loopcheck.engines.inventory_fields import body_fields, load_fields, names_of
from loopcheck.robots.arrays import Array, JointPositions, PositionSeries, VelocitySeries
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.inventory import Inventory, Matrices, off_axis
from loopcheck.robots.mechanism import WORLD, Mechanism, WeldClosure

REBUILT = {
    "armature": "set back to the value of the file: the loader replaces zero by 0.1",
    "force": "applied before each step",
    "moment": "applied before each step",
    "transmission": "drives act on joints; readings are divided by the gears",
}


def audit(mechanism: Mechanism, q: JointPositions) -> Inventory:
    """See `loopcheck.engines.audit`."""
    with guarded("genesis"), silenced():
        return inventory(build(mechanism), q)


def matrices(mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> Matrices:
    """See `loopcheck.engines.matrices`."""
    raise NotRepresentableError(
        "genesis: reports no velocity terms and no Jacobian rates, so its equations cannot be read"
    )


def inventory(built: Built, q: JointPositions) -> Inventory:
    """Properties of a robot in Genesis."""
    mechanism, entity = built.mechanism, built.entity
    built.put(q, np.zeros(mechanism.nv))
    freedom, axis, anchor = _joints(built)
    R = built.poses()[1]
    loads = load_fields(mechanism, lambda b, point: R[b] @ (point - mechanism.bodies[b].center))
    stiffness = numbers(entity.get_dofs_stiffness())
    bodies = _bodies(built)
    gravity = numbers(built.scene.rigid_solver.get_gravity()).reshape(3)
    J = [_jacobian(built, b, numbers(entity.get_links_COM())[link.idx_local]) for b, link in enumerate(built.links)]
    acting, moment = loads["force"] + bodies["mass"][:, None] * gravity, loads["moment"]
    springs = stiffness * (q - mechanism.rest_position)
    return Inventory(
        **names_of(mechanism),
        **bodies,
        freedom=freedom,
        axis=axis,
        anchor=anchor,
        armature=np.diag(numbers(entity.get_dofs_armature())),
        damping=np.diag(numbers(entity.get_dofs_damping())),
        friction=numbers(entity.get_dofs_frictionloss()),
        stiffness=stiffness,
        spring_reference=np.where(stiffness > 0, mechanism.rest_position, 0.0),
        gravity=gravity,
        **loads,
        rest_force=springs - sum(rows.T @ np.concatenate(w) for rows, *w in zip(J, acting, moment, strict=True)),
        J=_loop_rows(built),
        opening=built.opening().largest,
        transmission=mechanism.selection,
        rebuilt=REBUILT,
    )


def _bodies(built: Built) -> dict[str, Any]:
    """Masses, mass centres and inertias as fields of `Inventory`."""
    p, R = built.poses()
    places = [link.idx_local for link in built.links]
    mass, center, inertia = (
        numbers(values)[places]
        for values in (built.entity.get_links_mass(), built.entity.get_links_COM(), built.entity.get_links_inertia())
    )
    turns = np.array([Rotation.from_quat(np.roll(link.desc.inertial_quat, -1)).as_matrix() for link in built.links])
    R_inertial = R @ turns
    return body_fields(mass, p + (R @ center[..., None])[..., 0], R_inertial, inertia)


def _jacobian(built: Built, body: int, point: Array) -> Array:
    """Linear and angular rows of a point of a body, world axes, shape (6, nv)."""
    if body == WORLD:
        return np.zeros((6, built.mechanism.nv))
    return numbers(built.entity.get_jacobian(built.links[body], point.copy()))


def _joints(built: Built) -> tuple[Array, Array, Array]:
    """Freedom, axis and anchor of each joint as `Inventory` has them, by how it moves its body."""
    mechanism, p = built.mechanism, built.poses()[0]
    freedom, axes, anchors = (np.zeros((len(mechanism.joints), k)) for k in (2, 3, 3))
    for j, joint in enumerate(mechanism.joints):
        linear, angular = np.split(_jacobian(built, joint.body, np.zeros(3))[:, j], 2)
        turns = bool(angular.any())
        freedom[j] = (1, 0) if turns else (0, 1)
        axes[j] = angular if turns else linear
        if turns:
            anchors[j] = off_axis(p[joint.body] + np.cross(angular, linear), angular)
    return freedom, axes, anchors


def _loop_rows(built: Built) -> Array:
    """Rows of the closures by Genesis' Jacobians of their ends [m/rad or m/m], shape (nc, nv)."""
    rows = [np.zeros((0, built.mechanism.nv))]
    for closure in built.mechanism.rigid_closures:
        first = _jacobian(built, closure.body1, closure.point1)
        between = first - _jacobian(built, closure.body2, closure.point2)
        rows.append(between if isinstance(closure, WeldClosure) else between[:3])
    return np.concatenate(rows)[: _rows_there(built)]


def _rows_there(built: Built) -> int:
    """Number of rows of the equalities loaded by Genesis."""
    sizes = {"CONNECT": 3, "WELD": 6, "JOINT": 1}
    return sum(sizes[equality.type.name] for equality in built.entity.equalities)
