"""The rows of the closures by DART's Jacobians of points and frames; how far the loops are open."""

import numpy as np

from loopcheck.engines.dart._loads import point_motion
from loopcheck.engines.dart._skeleton import Tree
from loopcheck.engines.mechanics import closure_rows, gap
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.mechanism import WORLD


def closure_jacobian(tree: Tree) -> Array:
    """Opening of the loops per joint velocity, in the state: rows along the world's axes [m/rad or m/m], (nc, nv)."""
    return _rows(tree, "Jacobian")


def closure_bias(tree: Tree) -> Array:
    """J̇ q̇ in the rows of `closure_jacobian`, by the derivatives of DART's Jacobians [m/s² or rad/s²], shape (nc,)."""
    return _rows(tree, "JacobianDeriv") @ np.array(tree.skeleton.getVelocities())


def opening(tree: Tree) -> Deviation:
    """Gap of the widest loop in the state."""

    def end(body: int, point: Array) -> tuple[Array, Array]:
        return point_motion(tree, body, point)[0], _axes(tree, body)

    return Deviation().or_worse(*(gap(closure, end) for closure in tree.mechanism.rigid_closures))


def _rows(tree: Tree, kind: str) -> Array:
    linear, angular = (getattr(tree.skeleton, f"get{part}{kind}") for part in ("Linear", "Angular"))

    def end(body: int, point: Array) -> Array:
        node = tree.bodies[body]
        return np.concatenate([linear(node, point), angular(node)])

    return closure_rows(tree.mechanism, end)


def _axes(tree: Tree, body: int) -> Array:
    """Axes of a body in DART [-], shape (3, 3)."""
    return np.eye(3) if body == WORLD else np.array(tree.bodies[body].getWorldTransform().rotation())
