"""Quantities of a mechanism for adapters of engines: loop openings, rotations, displaced positions and axes."""

from collections.abc import Callable, Iterator
from typing import assert_never

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.mechanism import WORLD, ConnectClosure, Mechanism, RigidClosure, WeldClosure

BALL_OR_FREE = ("ball", "free")
"""Kinds of joints with a quaternion."""
MASSLESS = 1e-10
"""Least mass of a motion, relative to its joints moved alone, that leaves efforts of six digits [-]."""


def rotation(position: Array) -> Rotation:
    """Rotation of a ball or free joint.

    Args:
        position: Its position, which ends with (w, x, y, z) of any length [m or -], shape (..., 4 or 7).
    """
    return Rotation.from_quat(np.roll(position[..., -4:], -1, axis=-1))


def opening(mechanism: Mechanism, poses: tuple[Array, Array]) -> Deviation:
    """Gap of the widest loop between bodies.

    Args:
        poses: Origins of the bodies [m], shape (nb, 3), and their axes [-], shape (nb, 3, 3).
    """

    def end(body: int, point: Array) -> tuple[Array, Array]:
        return (point, np.eye(3)) if body == WORLD else (poses[0][body] + poses[1][body] @ point, poses[1][body])

    return Deviation().or_worse(*(gap(closure, end) for closure in mechanism.rigid_closures))


def gap(closure: RigidClosure, end: Callable[[int, Array], tuple[Array, Array]]) -> Deviation:
    """Gap of a loop.

    Args:
        closure: Closure of the loop.
        end: Gives the position of a point of a body [m], shape (3,), and the axes of that body [-], shape (3, 3).
    """
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
    """Opening rate of the loops between bodies, per joint velocity, along the world's axes [m/rad or m/m], (nc, nv).

    Args:
        end: Gives linear and angular rows of a point of a body other than the world, shape (6, nv).
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


def moved(mechanism: Mechanism, q: JointPositions, displacement: Array) -> Array:
    """Joint positions after a displacement, with the turns of balls in body axes.

    Args:
        displacement: Along the joint velocities [m or rad], shape (nv,).
    """
    after = np.array(q)
    for joint, places, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
        if joint.kind in ("hinge", "slide"):
            after[places] += displacement[dofs]
            continue
        turn = displacement[dofs][-3:]
        after[places][:-4] += displacement[dofs][:-3]
        quaternion = rotation(q[places]) * Rotation.from_rotvec(turn)
        after[places][-4:] = np.roll(quaternion.as_quat(), 1)
    return after


def without_mass(mechanism: Mechanism, M: Array) -> Iterator[str]:
    """Joints that together move no body, as two hinges of a body about a common axis.

    Rotors make such motions possible. An engine with rotors outside of its tree divides by the inertia of the bodies
    alone, and returns anything.

    Args:
        M: Mass matrix of the bodies without rotors [kg, kg m or kg m²], shape (nv, nv).
    """
    sizes = np.sqrt(np.diag(M))
    scale = np.where(sizes > 0, sizes, 1.0)
    masses, motions = np.linalg.eigh(M / np.outer(scale, scale))
    for motion in motions.T[masses < MASSLESS]:
        places = zip(mechanism.joints, mechanism.dof_slices, strict=True)
        names = " and ".join(
            f"'{joint.name}'" for joint, dofs in places if np.abs(motion[dofs]).max() > np.sqrt(MASSLESS)
        )
        yield f"motion of {names} that turns rotors alone (rotors are outside of its tree, which has no inertia there)"


def axes_along(axis: Array, along: Array) -> Array:
    """A rotation that turns an axis of an engine's joint into the joint's axis [-], shape (3, 3).

    Args:
        axis: Axis of the joint [-], shape (3,).
        along: Axis of the engine's joint, a coordinate axis [-], shape (3,).
    """
    if np.allclose(axis, -along):
        return Rotation.from_rotvec(np.pi * np.roll(along, 1)).as_matrix()
    cross = np.cross(along, axis)
    size = float(np.linalg.norm(cross))
    angle = np.arctan2(size, along @ axis)
    return Rotation.from_rotvec(cross / size * angle if size else np.zeros(3)).as_matrix()
