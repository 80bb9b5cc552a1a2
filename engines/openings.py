"""How far loops are open, and what opens them, by poses and Jacobians of bodies that an engine tells."""

from collections.abc import Callable
from typing import assert_never

import numpy as np

from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.mechanism import WORLD, ConnectClosure, Mechanism, RigidClosure, WeldClosure


def opening(mechanism: Mechanism, poses: tuple[Array, Array]) -> Deviation:
    """How far the widest loop between bodies is open.

    Args:
        poses: Origins of the bodies [m], shape (nb, 3), and their axes [-], shape (nb, 3, 3).
    """

    def end(body: int, point: Array) -> tuple[Array, Array]:
        return (point, np.eye(3)) if body == WORLD else (poses[0][body] + poses[1][body] @ point, poses[1][body])

    return Deviation().or_worse(*(gap(closure, end) for closure in mechanism.rigid_closures))


def gap(closure: RigidClosure, end: Callable[[int, Array], tuple[Array, Array]]) -> Deviation:
    """How far a loop is open.

    Args:
        closure: What closes it.
        end: Where a point of a body is [m], shape (3,), and the axes of that body [-], shape (3, 3).
    """
    from scipy.spatial.transform import Rotation

    (p1, R1), (p2, R2) = end(closure.body1, closure.point1), end(closure.body2, closure.point2)
    distance = float(np.linalg.norm(p1 - p2))
    match closure:
        case ConnectClosure():
            return Deviation(distance)
        case WeldClosure():
            return Deviation(distance, float(Rotation.from_matrix(R2.T @ R1 @ closure.rotation).magnitude()))
        case _:
            assert_never(closure)


def closure_rows(mechanism: Mechanism, end: Callable[[int, Array], Array]) -> Array:
    """What opens the loops between bodies, per joint velocity, along the world's axes [m/rad or m/m], shape (nc, nv).

    Args:
        end: Linear and angular rows of a point of a body that is not the world, shape (6, nv).
    """
    still = np.zeros((6, mechanism.nv))
    rows = [np.zeros((0, mechanism.nv))]
    for closure in mechanism.rigid_closures:
        ends = ((closure.body1, closure.point1), (closure.body2, closure.point2))
        first, second = (still if body == WORLD else end(body, point) for body, point in ends)
        match closure:
            case ConnectClosure():
                rows.append(first[:3] - second[:3])
            case WeldClosure():
                rows.append(first - second)
            case _:
                assert_never(closure)
    return np.concatenate(rows)
