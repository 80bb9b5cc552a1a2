"""The rows of the closures by DART's Jacobians of points and frames; how far the loops are open."""

from typing import assert_never

import numpy as np
from scipy.spatial.transform import Rotation

from engines.dart._loads import point_motion
from engines.dart._skeleton import Tree
from robots.arrays import Array
from robots.efforts import Deviation
from robots.mechanism import WORLD, ConnectClosure, RigidClosure, WeldClosure


def closure_jacobian(tree: Tree) -> Array:
    """What opens the loops, per joint velocity, in the state: rows along the world's axes [m/rad or m/m], (nc, nv)."""
    return _rows(tree, "Jacobian")


def closure_bias(tree: Tree) -> Array:
    """J̇ q̇ in the rows of `closure_jacobian`, by the derivatives of DART's Jacobians [m/s² or rad/s²], shape (nc,)."""
    return _rows(tree, "JacobianDeriv") @ np.array(tree.skeleton.getVelocities())


def opening(tree: Tree) -> Deviation:
    """How far the widest loop is open in the state."""
    widest = Deviation()
    for closure in tree.mechanism.rigid_closures:
        ends = (closure.body1, closure.point1), (closure.body2, closure.point2)
        p1, p2 = (point_motion(tree, *end)[0] for end in ends)
        widest = widest.or_worse(Deviation(float(np.linalg.norm(p1 - p2))))
        match closure:
            case ConnectClosure():
                continue
            case WeldClosure():
                R1, R2 = (_axes(tree, body) for body, _ in ends)
                turned = Rotation.from_matrix(R2.T @ R1 @ closure.rotation)
                widest = widest.or_worse(Deviation(0.0, float(turned.magnitude())))
            case _:
                assert_never(closure)
    return widest


def _rows(tree: Tree, kind: str) -> Array:
    return np.concatenate(
        [np.zeros((0, tree.mechanism.nv)), *(_of_closure(tree, c, kind) for c in tree.mechanism.rigid_closures)]
    )


def _of_closure(tree: Tree, closure: RigidClosure, kind: str) -> Array:
    first = _of_end(tree, closure.body1, closure.point1, kind)
    second = _of_end(tree, closure.body2, closure.point2, kind)
    match closure:
        case ConnectClosure():
            return first[:3] - second[:3]
        case WeldClosure():
            return first - second
        case _:
            assert_never(closure)


def _of_end(tree: Tree, body: int, point: Array, kind: str) -> Array:
    """Linear and angular rows of a point of a body, world axes, shape (6, nv)."""
    if body == WORLD:
        return np.zeros((6, tree.mechanism.nv))
    node, skeleton = tree.bodies[body], tree.skeleton
    linear = getattr(skeleton, f"getLinear{kind}")(node, point)
    return np.concatenate([linear, getattr(skeleton, f"getAngular{kind}")(node)])


def _axes(tree: Tree, body: int) -> Array:
    """Axes of a body where DART has it [-], shape (3, 3)."""
    return np.eye(3) if body == WORLD else np.array(tree.bodies[body].getWorldTransform().rotation())
