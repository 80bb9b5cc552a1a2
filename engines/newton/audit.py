"""Newton's model and terms, in single precision: read back from its model."""

from functools import partial
from typing import Any

import numpy as np

from loopcheck.engines.boundary import silenced
from loopcheck.engines.inventory_fields import body_fields, equation_fields, load_fields, matrices_along, names_of
from loopcheck.engines.mechanics import BALL_OR_FREE
from loopcheck.engines.newton._equations import equations
from loopcheck.engines.newton._model import Tree, guarded, numbers
from loopcheck.engines.newton._newton import newton, warp
from loopcheck.robots.arrays import Array, JointPositions, PositionSeries, VelocitySeries
from loopcheck.robots.inventory import Inventory, Matrices, off_axis
from loopcheck.robots.mechanism import Mechanism

REBUILT = {
    "force": "loads before each step",
    "moment": "loads before each step",
    "transmission": "drives act on joints; readings are divided by the gears",
}


def audit(mechanism: Mechanism, q: JointPositions) -> Inventory:
    """See `loopcheck.engines.audit`."""
    with guarded("newton"), silenced():
        terms = equations(mechanism)
        tree, fields = terms.tree, equation_fields(terms, q)
        freedom, axis, anchor = _joints(tree)
        nv, model = mechanism.nv, tree.model
        stiffness, reference = _springs(tree)
        return Inventory(
            **names_of(mechanism),
            **fields,
            **_bodies(tree),
            freedom=freedom,
            axis=axis,
            anchor=anchor,
            armature=np.diag(numbers(model.joint_armature)[:nv]),
            friction=numbers(model.joint_friction)[:nv],
            stiffness=stiffness,
            spring_reference=reference,
            gravity=numbers(model.gravity).reshape(-1, 3)[0],
            **load_fields(mechanism, partial(_lever, tree)),
            transmission=mechanism.selection,
            rebuilt=REBUILT,
        )


def matrices(mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> Matrices:
    """See `loopcheck.engines.matrices`."""
    with guarded("newton"), silenced():
        return matrices_along(equations(mechanism), q, qd)


def _bodies(tree: Tree) -> dict[str, Any]:
    """Masses, mass centres and inertias as fields of `Inventory`."""
    p, R = tree.body_poses()
    mass, center, inertia = (
        numbers(values) for values in (tree.model.body_mass, tree.model.body_com, tree.model.body_inertia)
    )
    return body_fields(mass, p + (R @ center[..., None])[..., 0], R, inertia)


def _joints(tree: Tree) -> tuple[Array, Array, Array]:
    """Freedom, axis and anchor of each joint as `Inventory` has them, by the motion that Newton gives each dof.

    That is a velocity of the point of the body at the origin of the world, and an angular velocity.
    """
    model, dofs = tree.model, tree.mechanism.dof_slices
    motion = warp.zeros(model.joint_dof_count, dtype=warp.spatial_vector)
    newton.eval_jacobian(model, tree.state, joint_S_s=motion)
    freedom, axes, anchors = (np.zeros((len(dofs), k)) for k in (2, 3, 3))
    for j, own in enumerate(dofs):
        linear, angular = np.split(numbers(motion)[own], 2, axis=1)
        turns = np.linalg.norm(angular, axis=1) > 0.5
        freedom[j] = turns.sum(), (~turns).sum()
        if len(turns) == 1:
            axes[j] = (angular if turns[0] else linear)[0]
        if turns.all():  # each axis leaves of a point what lies across it: three that are perpendicular leave it twice
            across = [off_axis(np.cross(*pair), pair[0]) for pair in zip(angular, linear, strict=True)]
            anchors[j] = np.sum(across, axis=0) / max(len(turns) - 1, 1)
    return freedom, axes, anchors


def _springs(tree: Tree) -> tuple[Array, Array]:
    """Stiffness of each joint, and the rest positions of the springs of hinges and slides, each of shape (nj,)."""
    mechanism, model = tree.mechanism, tree.model
    stiffness = numbers(model.joint_stiffness)[[dofs.start for dofs in mechanism.dof_slices]]
    rest = numbers(model.joint_rest_q)[: mechanism.nq] + mechanism.rest_position
    first = rest[[places.start for places in mechanism.q_slices]]
    single = np.array([joint.kind not in BALL_OR_FREE for joint in mechanism.joints], dtype=bool)
    return stiffness, np.where(single & (stiffness != 0), first, 0.0)


def _lever(tree: Tree, b: int, point: Array) -> Array:
    """Vector from the mass centre of a body to a point of it, world axes [m], shape (3,)."""
    lever: Array = tree.body_poses()[1][b] @ (point - numbers(tree.model.body_com)[b])
    return lever
