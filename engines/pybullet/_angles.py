"""Ball and free joints as hinges and slides, so that one joint is one coordinate in all calls to PyBullet.

A ball joint becomes three hinges about the body's x, y and z axes, a free joint three slides along the world's axes and
then those hinges. Nothing is lost, but where the second hinge is at 90° the angles are singular: motions that come near
are refused.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.spatial.transform import Rotation

from robots.arrays import Array
from robots.errors import NotRepresentableError
from robots.mechanism import Actuator, Closure, Joint, JointClosure, JointKind, Mechanism

LEAST_COSINE = 0.1
"""Smallest cosine of the second hinge that is carried [-]."""


def without_balls(mechanism: Mechanism) -> Mechanism:
    """The same mechanism with hinges and slides only; keyframes are left out."""
    parts = [list(_parts(joint)) for joint in mechanism.joints]
    starts = np.cumsum([0, *(len(part) for part in parts)])
    bodies = list(mechanism.bodies)
    for joint in mechanism.joints:
        if joint.kind == "free":  # its position is not counted from where the body is given
            bodies[joint.body] = replace(bodies[joint.body], position=np.zeros(3), rotation=np.eye(3))

    def moved(actuator: Actuator) -> Actuator:
        return replace(actuator, joint=int(starts[actuator.joint]))

    def moved_closure(closure: Closure) -> Closure:
        if not isinstance(closure, JointClosure):
            return closure
        leader = None if closure.joint2 is None else int(starts[closure.joint2])
        return replace(closure, joint1=int(starts[closure.joint1]), joint2=leader)

    return replace(
        mechanism,
        bodies=tuple(bodies),
        joints=tuple(joint for part in parts for joint in part),
        closures=tuple(map(moved_closure, mechanism.closures)),
        actuators=tuple(map(moved, mechanism.actuators)),
        keyframes={},
    )


def in_angles(mechanism: Mechanism, q: Array, qd: Array, qdd: Array) -> tuple[Array, Array, Array]:
    """A motion of a mechanism in the coordinates of the same `without_balls`.

    Args:
        mechanism: Robot, with its balls.
        q: Joint positions [m or rad], shape (nt, nq).
        qd: Joint velocities [m/s or rad/s], shape (nt, nv).
        qdd: Joint accelerations [m/s² or rad/s²], shape (nt, nv).

    Returns:
        Positions, velocities and accelerations [m or rad, per s, per s²], each of shape (nt, nv).

    Raises:
        NotRepresentableError: If the angles of a ball or free joint come near a singularity.
    """
    position, velocity, acceleration = (np.array(x) for x in (np.zeros_like(qd), qd, qdd))
    for joint, columns, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
        if joint.kind in ("hinge", "slide"):
            position[:, dofs] = q[:, columns]
            continue
        turns = slice(dofs.stop - 3, dofs.stop)
        position[:, dofs.start : turns.start] = q[:, columns][:, :-4]
        angles = _angles(q[:, columns][:, -4:])
        if np.cos(angles[:, 1]).min() < LEAST_COSINE:
            worst = np.degrees(np.abs(angles[:, 1]).max())
            raise NotRepresentableError(
                f"pybullet: {joint.kind} joint '{joint.name}' turns by {worst:.1f}° about y: its angles are singular"
            )
        E = _rates(angles)
        rates = np.asarray(np.linalg.solve(E, qd[:, turns, None])[..., 0], dtype=np.float64)
        bias = _rates_dot(angles, rates) @ rates[..., None]
        position[:, turns], velocity[:, turns] = angles, rates
        acceleration[:, turns] = np.linalg.solve(E, qdd[:, turns, None] - bias)[..., 0]
    return position, velocity, acceleration


def rates_of_angles(mechanism: Mechanism, q: Array, qd: Array) -> tuple[Array, Array]:
    """How the velocities of a mechanism follow from those of the same `without_balls`, qd = E x, at some states.

    Args:
        mechanism: Robot, with its balls.
        q: Joint positions [m or rad], shape (nt, nq).
        qd: Joint velocities [m/s or rad/s], shape (nt, nv).

    Returns:
        E [-], shape (nt, nv, nv), and Ė x [m/s² or rad/s²], shape (nt, nv).
    """
    E, E_dot_x = np.tile(np.eye(mechanism.nv), (len(q), 1, 1)), np.zeros_like(qd)
    for joint, columns, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
        if joint.kind in ("ball", "free"):
            turns, angles = slice(dofs.stop - 3, dofs.stop), _angles(q[:, columns][:, -4:])
            E[:, turns, turns] = _rates(angles)
            x = np.asarray(np.linalg.solve(E[:, turns, turns], qd[:, turns, None])[..., 0], dtype=np.float64)
            E_dot_x[:, turns] = (_rates_dot(angles, x) @ x[..., None])[..., 0]
    return E, E_dot_x


def _parts(joint: Joint) -> Iterator[Joint]:
    """The hinges and slides that a joint is made of."""
    if joint.kind in ("hinge", "slide"):
        yield joint
        return
    anchor = joint.anchor if joint.kind == "ball" else np.zeros(3)
    kinds: tuple[JointKind, ...] = ("hinge",) if joint.kind == "ball" else ("slide", "hinge")
    for kind in kinds:
        for axis in np.eye(3):
            yield Joint(name=joint.name, kind=kind, body=joint.body, axis=axis, anchor=anchor, reference=np.zeros(1))


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
