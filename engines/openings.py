"""How far loops are open, by the poses of the bodies that an engine tells."""

from typing import assert_never

import numpy as np
from scipy.spatial.transform import Rotation

from robots.arrays import Array
from robots.efforts import Deviation
from robots.mechanism import WORLD, ConnectClosure, Mechanism, WeldClosure


def opening(mechanism: Mechanism, poses: tuple[Array, Array]) -> Deviation:
    """How far the widest loop between bodies is open.

    Args:
        mechanism: Robot.
        poses: Origins of the bodies [m], shape (nb, 3), and their axes [-], shape (nb, 3, 3).
    """
    widest = Deviation()
    for closure in mechanism.rigid_closures:
        (p1, R1), (p2, R2) = (
            (point, np.eye(3)) if body == WORLD else (poses[0][body] + poses[1][body] @ point, poses[1][body])
            for body, point in ((closure.body1, closure.point1), (closure.body2, closure.point2))
        )
        widest = widest.or_worse(Deviation(float(np.linalg.norm(p1 - p2))))
        match closure:
            case ConnectClosure():
                continue
            case WeldClosure():
                turned = Rotation.from_matrix(R2.T @ R1 @ closure.rotation)
                widest = widest.or_worse(Deviation(0.0, float(turned.magnitude())))
            case _:
                assert_never(closure)
    return widest
