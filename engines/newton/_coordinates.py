"""Positions and velocities of joints in Newton, and in a mechanism.

Newton counts hinges and slides from their rest positions and writes quaternions as (x, y, z, w). It gives the angular
velocity of ball and free joints along the axes of their carrier, ours is along those of the body; and of a free
joint the velocity of the mass centre, ours is that of the body's origin.
"""

import numpy as np

from loopcheck.engines.mechanics import BALL_OR_FREE, rotation
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.mechanism import Mechanism


def newton_positions(mechanism: Mechanism, q: Array) -> Array:
    """Joint positions as Newton has them [m, rad or -], shape (..., nq).

    Args:
        q: Joint positions [m or rad], shape (..., nq).
    """
    values = q - mechanism.rest_position
    for joint, places in zip(mechanism.joints, mechanism.q_slices, strict=True):
        if joint.kind in BALL_OR_FREE:
            values[..., places] = q[..., places]
            values[..., places.stop - 4 : places.stop] = rotation(q[..., places]).as_quat()
    return values


def own_positions(mechanism: Mechanism, values: Array) -> Array:
    """Joint positions [m or rad], shape (..., nq).

    Args:
        values: Joint positions as Newton has them [m, rad or -], shape (..., nq).
    """
    q = values + mechanism.rest_position
    for joint, places in zip(mechanism.joints, mechanism.q_slices, strict=True):
        if joint.kind in BALL_OR_FREE:
            q[..., places] = values[..., places]
            turned = slice(places.stop - 4, places.stop)
            q[..., turned] = np.roll(values[..., turned], 1, axis=-1)
    return q


def rates(mechanism: Mechanism, q: Array) -> Array:
    """Newton's joint velocities per joint velocity [-, or m], shape (..., nv, nv).

    Args:
        q: Joint positions [m or rad], shape (..., nq).
    """
    T = np.broadcast_to(np.eye(mechanism.nv), (*q.shape[:-1], mechanism.nv, mechanism.nv)).copy()
    for j, joint in enumerate(mechanism.joints):
        if joint.kind not in BALL_OR_FREE:
            continue
        R, turn = rotation(q[..., mechanism.q_slices[j]]).as_matrix(), _turn(mechanism, j)
        T[..., turn, turn] = R
        if joint.kind == "free":
            lever = np.cross(np.eye(3), mechanism.bodies[joint.body].center).T
            T[..., mechanism.dof_slices[j].start : turn.start, turn] = R @ lever
    return T


def own_velocities(mechanism: Mechanism, q: Array, values: Array) -> Array:
    """Joint velocities [m/s or rad/s], shape (..., nv).

    Args:
        q: Joint positions [m or rad], shape (..., nq).
        values: Joint velocities as Newton has them [m/s or rad/s], shape (..., nv).
    """
    return np.asarray(np.linalg.solve(rates(mechanism, q), values[..., None])[..., 0], float)


def velocity_terms(mechanism: Mechanism, q: JointPositions, qd: JointVelocities) -> Array:
    """Rate of change of Newton's joint velocities at constant velocities of ours [m/s² or rad/s²], shape (nv,).

    A mass centre accelerates towards the origin of a body that turns; angular velocities stay constant.
    """
    gain = np.zeros(mechanism.nv)
    for j, joint in enumerate(mechanism.joints):
        if joint.kind == "free":
            turn, center = _turn(mechanism, j), mechanism.bodies[joint.body].center
            drawn = np.cross(qd[turn], np.cross(qd[turn], center))
            gain[mechanism.dof_slices[j].start : turn.start] = rotation(q[mechanism.q_slices[j]]).apply(drawn)
    return gain


def _turn(mechanism: Mechanism, j: int) -> slice:
    """Place of the angular velocity of a ball or free joint."""
    stop = mechanism.dof_slices[j].stop
    return slice(stop - 3, stop)
