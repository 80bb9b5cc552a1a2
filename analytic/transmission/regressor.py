"""Efforts at the joints of a serial model as a linear map of the moments of mass of its links.

Newton's and Euler's equations are linear in a body's first and second moments of mass. Both are relative to the mass
centre in the file, so that a change of them is s = m d and Σ = Σ' + s sᵀ/m − Σ₀ for a displacement d of the centre.
"""

import numpy as np

from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import cross
from loopcheck.analytic.transmission.joint_space import JointSpace, joint_motions
from loopcheck.robots.arrays import AccelerationSeries, Array, PositionSeries, VelocitySeries

LINK_CONSTANTS = 9
"""First and second moments of mass of each link."""
SECOND_MOMENTS = tuple((i, j) for i in range(3) for j in range(i + 1))
"""Entries of Σ: the lower triangle, in order."""


def links(space: JointSpace) -> tuple[int, ...]:
    """Bodies that have mass and a shared joint of their own.

    Args:
        space: The stand-in and its shared joints.
    """
    mechanism = space.mechanism
    bodies = dict.fromkeys(mechanism.joints[j].body for j in space.joints)
    return tuple(b for b in bodies if mechanism.bodies[b].mass > 0)


def regressor(space: JointSpace, q: PositionSeries, qd: VelocitySeries, qdd: AccelerationSeries) -> Array:
    """Efforts at the shared joints per unit of the moments of mass of the links.

    Args:
        space: The serial model and its shared joints.
        qd: Velocities that keep the loops closed.
        qdd: Accelerations that keep them closed.

    Returns:
        Columns of each link's first and second moments about its mass centre [any unit], shape (nt, n, 9 links).
    """
    state = State(mechanism=space.mechanism, q=q, qd=qd)
    D = joint_motions(space, state)
    columns = [_of_link(state, qdd, D, b) for b in links(space)]
    return np.concatenate([np.zeros((len(q), len(space.joints), 0)), *columns], axis=2)


def _of_link(state: State, qdd: Array, D: Array, b: int) -> Array:
    """Efforts per unit of a body's first and second moments about its mass centre, body axes, shape (nt, n, 9)."""
    body, moving, R = state.mechanism.bodies[b], state.twists, state.poses.R[:, b]
    K, w = moving.K[:, b], moving.w[:, b]
    t_dot = np.einsum("tiv,tv->ti", K, qdd) + np.einsum("tiv,tv->ti", moving.K_dot[:, b], state.qd)
    turning, free = t_dot[:, :3], t_dot[:, 3:] - (1 - body.gravity_compensation) * state.mechanism.gravity
    wrenches = []
    for axis in np.eye(3):
        arm = R @ axis
        force = cross(turning, arm) + cross(w, cross(w, arm))
        wrenches.append(np.concatenate([cross(arm, free), force], axis=1))
    for i, j in SECOND_MOMENTS:
        moments = np.zeros((3, 3))
        moments[i, j] = moments[j, i] = 1
        I_W = R @ (np.trace(moments) * np.eye(3) - moments) @ R.swapaxes(1, 2)
        moment = (I_W @ turning[..., None])[..., 0] + cross(w, (I_W @ w[..., None])[..., 0])
        wrenches.append(np.concatenate([moment, np.zeros_like(moment)], axis=1))
    return np.asarray((K @ D).swapaxes(1, 2) @ np.stack(wrenches, axis=2))
