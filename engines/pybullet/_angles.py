"""Ball and free joints as hinges and slides, so that each joint is a single coordinate in all calls to PyBullet.

A ball joint becomes three hinges about the body's x, y and z axes, a free joint three slides along the world's axes and
then those hinges. Nothing is lost, but at 90° of the second hinge the angles are singular: motions that come near
are refused.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import assert_never

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.engines.boundary import want_representable
from loopcheck.engines.loads import ball_spring
from loopcheck.engines.mechanics import BALL_OR_FREE
from loopcheck.robots.arrays import AccelerationSeries, Array, PositionSeries, VelocitySeries
from loopcheck.robots.mechanism import (
    ConnectClosure,
    Coordinate,
    CoordinateClosure,
    Joint,
    LoopClosure,
    Mechanism,
    WeldClosure,
)

LEAST_COSINE = 0.1
"""Smallest cosine of the second hinge that is carried [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """Spring and damper of a ball or free joint's rotation, which act on its three hinges together."""

    dofs: slice
    """Places of the hinges."""
    joint: Joint
    """The ball or free joint."""

    def effort(self, angles: Array, rates: Array) -> Array:
        """Their moments on the hinges [N m], shape (3,).

        Args:
            angles: Positions of the hinges [rad], shape (3,).
            rates: Their velocities [rad/s], shape (3,).
        """
        E = _rates(angles[None])[0]
        return E.T @ (ball_spring(self.joint, Rotation.from_euler("XYZ", angles)) - self.joint.damping * E @ rates)


def turns(mechanism: Mechanism) -> tuple[Turn, ...]:
    """Springs and dampers of all ball and free joints' rotations."""
    return tuple(
        Turn(dofs=slice(dofs.stop - 3, dofs.stop), joint=joint)
        for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True)
        if joint.kind in BALL_OR_FREE and (joint.stiffness or joint.damping)
    )


def without_balls(mechanism: Mechanism) -> Mechanism:
    """The same mechanism with hinges and slides only; keyframes, rotors, and the content of `turns`, are left out."""
    parts = [list(_parts(joint)) for joint in mechanism.joints]
    starts = np.cumsum([0, *(len(part) for part in parts)])
    bodies = list(mechanism.bodies)
    for joint in mechanism.joints:
        if joint.kind == "free":  # its position is not counted from where the body is given
            bodies[joint.body] = replace(bodies[joint.body], position=np.zeros(3), rotation=np.eye(3))

    def moved(coordinate: Coordinate) -> Coordinate:
        return replace(coordinate, joints=tuple(int(starts[j]) for j in coordinate.joints))

    def moved_closure(closure: LoopClosure) -> LoopClosure:
        match closure:
            case ConnectClosure() | WeldClosure():
                return closure
            case CoordinateClosure():
                leader = None if closure.leader is None else moved(closure.leader)
                return replace(closure, follower=moved(closure.follower), leader=leader)
            case _:
                assert_never(closure)

    return replace(
        mechanism,
        bodies=tuple(bodies),
        joints=tuple(joint for part in parts for joint in part),
        closures=tuple(map(moved_closure, mechanism.loop_closures)),
        actuators=tuple(replace(a, coordinate=moved(a.coordinate)) for a in mechanism.actuators),
        tendons=tuple(replace(tendon, length=moved(tendon.length)) for tendon in mechanism.tendons),
        keyframes={},
    )


def far_turns(mechanism: Mechanism, q: PositionSeries) -> Iterator[str]:
    """Ball and free joints with angles near a singularity.

    Args:
        mechanism: Robot, with its balls.
    """
    for joint, columns in zip(mechanism.joints, mechanism.q_slices, strict=True):
        if joint.kind in BALL_OR_FREE:
            y = _angles(q[:, columns][:, -4:])[:, 1]
            if np.cos(y).min() < LEAST_COSINE:
                worst = np.degrees(np.abs(y).max())
                yield f"{joint.kind} joint '{joint.name}' turns by {worst:.1f}° about y (singular joint angles)"


def in_angles(
    mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries, qdd: AccelerationSeries
) -> tuple[Array, Array, Array]:
    """A motion of a mechanism in the coordinates of the same `without_balls`.

    Args:
        mechanism: Robot, with its balls.

    Returns:
        Positions, velocities and accelerations [m or rad, per s, per s²], each of shape (nt, nv).

    Raises:
        NotRepresentableError: If the angles of a ball or free joint come near a singularity.
    """
    want_representable("pybullet", far_turns(mechanism, q))
    position, velocity, acceleration = (np.array(x) for x in (np.zeros_like(qd), qd, qdd))
    for joint, columns, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
        if joint.kind in ("hinge", "slide"):
            position[:, dofs] = q[:, columns]
            continue
        turns = slice(dofs.stop - 3, dofs.stop)
        position[:, dofs.start : turns.start] = q[:, columns][:, :-4]
        angles = _angles(q[:, columns][:, -4:])
        E = _rates(angles)
        rates = np.asarray(np.linalg.solve(E, qd[:, turns, None])[..., 0], dtype=np.float64)
        bias = _rates_dot(angles, rates) @ rates[..., None]
        position[:, turns], velocity[:, turns] = angles, rates
        acceleration[:, turns] = np.linalg.solve(E, qdd[:, turns, None] - bias)[..., 0]
    return position, velocity, acceleration


def from_angles(mechanism: Mechanism, angles: Array, rates: VelocitySeries) -> tuple[Array, Array]:
    """States of the same `without_balls` in the coordinates of a mechanism.

    Args:
        mechanism: Robot, with its balls.
        angles: Positions of hinges and slides [m or rad], shape (nt, nv).
        rates: Their velocities [m/s or rad/s], shape (nt, nv).

    Returns:
        Joint positions [m or rad], shape (nt, nq), and velocities [m/s or rad/s], shape (nt, nv).
    """
    q, qd = np.zeros((len(angles), mechanism.nq)), np.array(rates)
    for joint, columns, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
        if joint.kind in ("hinge", "slide"):
            q[:, columns] = angles[:, dofs]
            continue
        turns = slice(dofs.stop - 3, dofs.stop)
        q[:, columns.start : columns.stop - 4] = angles[:, dofs.start : turns.start]
        quaternions = Rotation.from_euler("XYZ", angles[:, turns]).as_quat()
        q[:, columns.stop - 4 : columns.stop] = np.roll(quaternions, 1, axis=1)
        qd[:, turns] = (_rates(angles[:, turns]) @ rates[:, turns, None])[..., 0]
    return q, qd


def rates_of_angles(mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> tuple[Array, Array]:
    """Map to the velocities of a mechanism from those of the same `without_balls`, qd = E x, at some states.

    Args:
        mechanism: Robot, with its balls.

    Returns:
        E [-], shape (nt, nv, nv), and Ė x [m/s² or rad/s²], shape (nt, nv).
    """
    E, E_dot_x = np.tile(np.eye(mechanism.nv), (len(q), 1, 1)), np.zeros_like(qd)
    for joint, columns, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
        if joint.kind in BALL_OR_FREE:
            turns, angles = slice(dofs.stop - 3, dofs.stop), _angles(q[:, columns][:, -4:])
            E[:, turns, turns] = _rates(angles)
            x = np.asarray(np.linalg.solve(E[:, turns, turns], qd[:, turns, None])[..., 0], dtype=np.float64)
            E_dot_x[:, turns] = (_rates_dot(angles, x) @ x[..., None])[..., 0]
    return E, E_dot_x


def _parts(joint: Joint) -> Iterator[Joint]:
    """The hinges and slides that a joint is made of."""
    if joint.kind in ("hinge", "slide"):
        yield replace(joint, armature=0.0)
        return
    hinge = Joint(
        name=joint.name,
        kind="hinge",
        body=joint.body,
        axis=np.zeros(3),
        anchor=joint.anchor if joint.kind == "ball" else np.zeros(3),
        rest_position=np.zeros(1),
    )
    if joint.kind == "free":
        slide = replace(hinge, kind="slide", damping=joint.damping, stiffness=joint.stiffness)
        for axis, rest in zip(np.eye(3), joint.spring_reference[:3], strict=True):
            yield replace(slide, axis=axis, spring_reference=np.array([rest]))
    for axis in np.eye(3):
        yield replace(hinge, axis=axis)


def _angles(quaternions: Array) -> Array:
    """Angles with R = Rx Ry Rz of quaternions (w, x, y, z) [rad], shape (nt, 3)."""
    R = Rotation.from_quat(np.roll(quaternions, -1, axis=1)).as_matrix()
    x = np.arctan2(-R[:, 1, 2], R[:, 2, 2])
    y = np.arctan2(R[:, 0, 2], np.hypot(R[:, 0, 0], R[:, 0, 1]))
    z = np.arctan2(-R[:, 0, 1], R[:, 0, 0])
    return np.stack([x, y, z], axis=1)


def _rates(angles: Array) -> Array:
    """Angular velocity in body axes per rate of the angles [-], shape (nt, 3, 3)."""
    (_, cy, cz), (_, sy, sz) = np.cos(angles).T, np.sin(angles).T
    E = np.zeros((len(angles), 3, 3))
    E[:, :, 0] = np.stack([cy * cz, -cy * sz, sy], axis=1)
    E[:, 0, 1], E[:, 1, 1], E[:, 2, 2] = sz, cz, 1
    return E


def _rates_dot(angles: Array, rates: Array) -> Array:
    """Time derivative of `_rates` [1/s], shape (nt, 3, 3)."""
    (_, cy, cz), (_, sy, sz), (_, y, z) = np.cos(angles).T, np.sin(angles).T, rates.T
    E = np.zeros((len(angles), 3, 3))
    E[:, :, 0] = np.stack([-sy * cz * y - cy * sz * z, sy * sz * y - cy * cz * z, cy * y], axis=1)
    E[:, 0, 1], E[:, 1, 1] = cz * z, -sz * z
    return E
