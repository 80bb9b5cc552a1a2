"""Pinocchio's model, its added loads, and its terms: read from Pinocchio itself."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pinocchio as pin

from loopcheck.engines.inventory_fields import body_fields, equation_fields, load_fields, matrices_along
from loopcheck.engines.loads import joint_springs
from loopcheck.engines.pinocchio._equations import PinocchioEquations, equations
from loopcheck.engines.pinocchio._loops import bends
from loopcheck.engines.pinocchio._simulation import Solver
from loopcheck.engines.pinocchio._tree import Tree, guarded
from loopcheck.robots.arrays import Array, JointPositions, PositionSeries, VelocitySeries
from loopcheck.robots.inventory import Inventory, Matrices, off_axis
from loopcheck.robots.mechanism import Mechanism

EVEN = 1e-6
"""Singular values of the motions of a joint below this count as zero [-]."""
REBUILT = {
    "damping": "dampers as efforts on the joints",
    "stiffness": "springs as efforts on the joints",
    "spring_reference": "springs as efforts on the joints",
    "force": "loads as efforts on the joints",
    "moment": "loads as efforts on the joints",
    "transmission": "motors act on joints; readings are divided by the gears",
}
FREE = "free joints as a translation and a ball"


def audit(mechanism: Mechanism, q: JointPositions) -> Inventory:
    """See `loopcheck.engines.audit`."""
    with guarded("pinocchio"):
        terms = equations(mechanism)
        tree, fields = terms.tree, equation_fields(terms, q)
        pin.updateFramePlacements(tree.model, tree.data)
        freedom, axis, anchor = _joints(tree)
        stiffness, reference = _springs(tree)
        return Inventory(
            bodies=tuple(body.name for body in mechanism.bodies),
            joints=tuple(tree.model.names[joints[-1]] for joints in tree.joints),
            dofs=_dofs(tree),
            actuators=tuple(actuator.name for actuator in mechanism.actuators),
            **fields,
            **_bodies(tree),
            freedom=freedom,
            axis=axis,
            anchor=anchor,
            armature=np.diag(tree.model.armature),
            friction=np.array(tree.model.upperDryFrictionLimit),
            stiffness=stiffness,
            spring_reference=reference,
            gravity=np.array(tree.model.gravity.linear),
            **load_fields(mechanism, partial(_lever, tree)),
            transmission=mechanism.selection,
            rebuilt=REBUILT if len(tree.model.names) == len(mechanism.joints) + 1 else {**REBUILT, "freedom": FREE},
        )


def matrices(mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> Matrices:
    """See `loopcheck.engines.matrices`."""
    with guarded("pinocchio"):
        terms = equations(mechanism)
        solver_bias = [_solver_bias(terms, *state) for state in zip(q, qd, strict=True)]
        return replace(matrices_along(terms, q, qd), solver_bias=np.array(solver_bias))


def _solver_bias(terms: PinocchioEquations, q: Array, qd: Array) -> Array:
    """J̇ q̇ as the constraint solver takes it [m/s² or rad/s²], shape (nc,)."""
    tree, loops, solver = terms.tree, terms.loops, Solver()
    model, data = tree.model, tree.data
    pin.initConstraintDynamics(model, data, loops.models, loops.datas)
    proximal = pin.ProximalSettings(0.0, 0.0, solver.mu, solver.iterations)
    pin.constraintDynamics(model, data, tree.positions(q), qd, np.zeros(model.nv), loops.models, loops.datas, proximal)
    drifts = [
        (data.contact1_acceleration_drift - data.contact2_acceleration_drift).vector[: constraint.residualSize()]
        for constraint, data in zip(loops.models, loops.datas, strict=True)
    ]
    return np.concatenate([np.zeros(0), *drifts, bends(tree.mechanism, q, qd)])


def _bodies(tree: Tree) -> dict[str, Any]:
    """Masses, mass centres and inertias as fields of `Inventory`."""
    inertias_of_bodies = [_inertia(tree, i) for i in tree.bodies]
    poses = [tree.data.oMf[i] for i in tree.bodies]
    inertias = np.array([inertia.inertia for inertia in inertias_of_bodies])
    R = np.array([pose.rotation for pose in poses])
    mass = np.array([inertia.mass for inertia in inertias_of_bodies])
    center = np.array([pose.act(inertia.lever) for pose, inertia in zip(poses, inertias_of_bodies, strict=True)])
    return body_fields(mass, center, R, inertias, sum(inertia.mass for inertia in tree.model.inertias))


def _inertia(tree: Tree, number: int) -> Any:
    """Inertia of a body: the inertia carried by its joint or, for several bodies on a joint, that of its frame."""
    frame = tree.model.frames[number]
    alone = [tree.model.frames[i].parentJoint for i in tree.bodies].count(frame.parentJoint) == 1
    return frame.placement.actInv(tree.model.inertias[frame.parentJoint]) if alone else frame.inertia


def _dofs(tree: Tree) -> tuple[str, ...]:
    """Name of the joint of each of Pinocchio's dofs, in its order."""
    whose = {i: joints[-1] for joints in tree.joints for i in joints}
    every = sorted(whose, key=lambda i: tree.model.joints[i].idx_v)
    return tuple(tree.model.names[whose[i]] for i in every for _ in range(tree.model.joints[i].nv))


def _columns(tree: Tree, i: int) -> Array:
    """Columns of a joint of Pinocchio's in its own Jacobian [- or m], shape (6, its dofs)."""
    jacobian = pin.getJointJacobian(tree.model, tree.data, i, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
    first = tree.model.joints[i].idx_v
    columns: Array = jacobian.reshape(6, tree.model.nv)  # a single column comes as a vector
    return columns[:, first : first + tree.model.joints[i].nv]


def _joints(tree: Tree) -> tuple[Array, Array, Array]:
    """Freedom, axis and anchor of each joint of the model, by the motions in Pinocchio's Jacobians."""
    mechanism = tree.mechanism
    freedom, axes, anchors = (np.zeros((len(mechanism.joints), k)) for k in (2, 3, 3))
    for j, (joint, parts) in enumerate(zip(mechanism.joints, tree.joints, strict=True)):
        S = np.concatenate([_columns(tree, i) for i in parts], axis=1)
        freedom[j] = [_rank(S[3:]), _rank(S[:3, ~S[3:].any(axis=0)])]
        if joint.kind in ("hinge", "slide"):
            axes[j] = S[3:, 0] if joint.kind == "hinge" else S[:3, 0]
        if joint.kind in ("hinge", "ball"):
            anchors[j] = off_axis(tree.data.oMi[parts[-1]].translation, axes[j])
    return freedom, axes, anchors


def _rank(directions: Array) -> int:
    return int(np.linalg.matrix_rank(directions, rtol=EVEN)) if directions.size else 0


def _springs(tree: Tree) -> tuple[Array, Array]:
    """Stiffness of each joint, and the rest positions of the springs of hinges and slides: from their forces."""
    mechanism = tree.mechanism
    first = [dofs.start for dofs in mechanism.dof_slices]
    one = np.zeros(mechanism.nv)
    one[first] = 1.0
    rest = tree.positions(np.concatenate([np.zeros(0), *(joint.spring_reference for joint in mechanism.joints)]))
    stiffness = -joint_springs(mechanism, tree.ours(pin.integrate(tree.model, rest, one)))[first]
    force, zero = joint_springs(mechanism, tree.ours(pin.neutral(tree.model)))[first], tree.zero
    has_rest = np.array([joint.kind in ("hinge", "slide") for joint in mechanism.joints], dtype=bool) & (stiffness != 0)
    reference = np.divide(force, stiffness, out=np.zeros_like(force), where=has_rest)
    return stiffness, reference + np.where(has_rest, zero[[places.start for places in mechanism.q_slices]], 0.0)


def _lever(tree: Tree, b: int, point: Array) -> Array:
    """Vector from the mass centre of a body to a point of it, world axes [m], shape (3,)."""
    pose, inertia = tree.data.oMf[tree.bodies[b]], tree.model.frames[tree.bodies[b]].inertia
    lever: Array = pose.rotation @ (point - inertia.lever)
    return lever
