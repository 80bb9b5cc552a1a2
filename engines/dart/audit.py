"""DART's model and terms: read back from its skeleton."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from loopcheck.engines.dart._equations import DartEquations, per_dof, turn_of
from loopcheck.engines.dart._skeleton import Tree, guarded
from loopcheck.engines.inventory_fields import (
    body_fields,
    equation_fields,
    joint_fields,
    load_fields,
    matrices_along,
    names_of,
)
from loopcheck.engines.loads import ball_spring
from loopcheck.engines.mechanics import rotation
from loopcheck.robots.arrays import Array, JointPositions, PositionSeries, VelocitySeries
from loopcheck.robots.inventory import Inventory, Matrices
from loopcheck.robots.mechanism import Mechanism

KINDS = {"RevoluteJoint": "hinge", "PrismaticJoint": "slide", "BallJoint": "ball", "TranslationalJoint": "free"}
"""Kind of a joint by the first of DART's that it is made of."""
REBUILT = {
    "armature": "added to the inertia of driven joints",
    "stiffness": "springs of balls as loads before each step",
    "force": "loads before each step",
    "moment": "loads before each step",
    "transmission": "motors act on joints; readings are divided by the gears",
}
FREE = "free joints as a translation and a ball"


def audit(mechanism: Mechanism, q: JointPositions) -> Inventory:
    """See `loopcheck.engines.audit`."""
    with guarded("dart"):
        terms = DartEquations(mechanism)
        tree, fields = terms.tree, equation_fields(terms, q)
        stiffness, reference = _springs(tree)

        def lever(body: int, point: Array) -> Array:
            node = tree.bodies[body]
            return node.getWorldTransform().rotation() @ (point - node.getLocalCOM())

        free = any(joint.kind == "free" for joint in mechanism.joints)
        return Inventory(
            **{**names_of(mechanism), "dofs": _dofs(tree)},
            **fields,
            **_bodies(tree),
            **joint_fields(_joints(tree)),
            **load_fields(mechanism, lever),
            armature=np.diag(tree.armature),
            friction=per_dof(tree, "CoulombFriction"),
            stiffness=stiffness,
            spring_reference=reference,
            gravity=np.array(tree.skeleton.getGravity()),
            transmission=mechanism.selection,
            rebuilt={**REBUILT, "freedom": FREE} if free else REBUILT,
        )


def matrices(mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> Matrices:
    """See `loopcheck.engines.matrices`."""
    with guarded("dart"):
        return matrices_along(DartEquations(mechanism), q, qd)


def _bodies(tree: Tree) -> dict[str, Any]:
    """Masses, mass centres and inertias as fields of `Inventory`."""
    every = [body.getInertia() for body in tree.bodies]
    inertias = np.array([np.array(inertia.getMoment()) for inertia in every])
    R = np.array([np.array(body.getWorldTransform().rotation()) for body in tree.bodies])
    mass = np.array([inertia.getMass() for inertia in every])
    center = np.array([np.array(body.getCOM()) for body in tree.bodies])
    return body_fields(mass, center, R, inertias, float(tree.skeleton.getMass()))


def _dofs(tree: Tree) -> tuple[str, ...]:
    """Name of the joint of each of DART's dofs, in its order."""
    names = {
        part.getIndexInSkeleton(k): joint.name
        for joint, parts in zip(tree.mechanism.joints, tree.joints, strict=True)
        for part in parts
        for k in range(part.getNumDofs())
    }
    return tuple(names[k] for k in sorted(names))


def _joints(tree: Tree) -> Iterator[tuple[str, Any, Any]]:
    """Kind of each joint, its axis and a point on the axis."""
    for parts in tree.joints:
        kind, last = KINDS[parts[0].getType()], parts[-1]
        pose = last.getChildBodyNode().getWorldTransform()
        on_child = last.getTransformFromChildBodyNode()
        axis = pose.rotation() @ on_child.rotation() @ last.getAxis() if kind in ("hinge", "slide") else None
        yield kind, axis, pose.rotation() @ on_child.translation() + pose.translation()


def _springs(tree: Tree) -> tuple[Array, Array]:
    """Stiffness of each joint, and the rest positions of the springs of hinges and slides, each of shape (nj,)."""
    stiffness, rest = np.zeros(len(tree.joints)), np.zeros(len(tree.joints))
    for j, (joint, parts) in enumerate(zip(tree.mechanism.joints, tree.joints, strict=True)):
        stiffness[j] = parts[0].getSpringStiffness(0)
        if joint.kind in ("hinge", "slide") and stiffness[j]:
            rest[j] = parts[0].getRestPosition(0) + joint.rest_position[0]
        if joint.kind == "ball" and joint.stiffness:
            turned, _ = turn_of(tree, j)
            away = rotation(joint.spring_reference).inv() * turned
            stiffness[j] = np.linalg.norm(ball_spring(joint, turned)) / away.magnitude()
    return stiffness, rest
