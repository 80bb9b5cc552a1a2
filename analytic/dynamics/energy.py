"""Power balance: the actuators' power must raise the energy of the robot or be damped, for any source of efforts.

The energy is evaluated along a curve that has the position, velocity and acceleration of the motion, and differentiated
along it by the complex step: no equation of motion is used.
"""

import numpy as np

from loopcheck.analytic.dynamics.lagrange import lengths, potential_energy
from loopcheck.analytic.dynamics.powers import own_powers
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import retract
from loopcheck.robots.arrays import AnyArray, Array, EffortSeries
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion

STEP = 1e-40
"""Imaginary step in time [s]."""


def total_energy(mechanism: Mechanism, q: AnyArray, qd: AnyArray) -> AnyArray:
    """Kinetic energy of all bodies and rotors, and potential energy of weights and springs.

    Args:
        q: Joint positions [m or rad], shape (nt, nq); may be complex.
        qd: Joint velocities [m/s or rad/s], shape (nt, nv); may be complex.

    Returns:
        Energy [J], shape (nt,).
    """
    state = State.at_rest(mechanism, q)
    t = np.einsum("tbij,tj->tbi", state.K, qd)
    w = np.einsum("tbji,tbj->tbi", state.poses.R, t[..., :3])
    inertia = np.array([body.inertia for body in mechanism.bodies])
    T = (w * np.einsum("bij,tbj->tbi", inertia, w)).sum((1, 2)) / 2
    T = T + (t[..., 3:] ** 2).sum(2) @ np.array([body.mass for body in mechanism.bodies]) / 2
    for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True):
        T = T + joint.armature * (qd[:, dofs] ** 2).sum(1) / 2
    for tendon in mechanism.tendons:
        T = T + tendon.armature * (qd @ mechanism.rates_of((tendon.length,))[0]) ** 2 / 2
    return T + potential_energy(state)


def power_imbalance(mechanism: Mechanism, motion: Motion, effort: EffortSeries) -> float | None:
    """Largest difference between power in, power damped and rate of change of energy, relative to the acting powers.

    Returns:
        Relative imbalance [-]; None for a robot at rest, without a power to balance.
    """
    return float(np.abs(power_balance(mechanism, motion, effort)).max()) if motion.qd.any() else None


def power_balance(mechanism: Mechanism, motion: Motion, effort: EffortSeries) -> Array:
    """Difference between power in, power damped and rate of change of energy, relative to the acting powers.

    The power in is that of the actuators and of the external wrenches. The difference is divided by the largest sum,
    over time, of the magnitudes of the powers of every body's inertia wrench, every weight, spring, damper, external
    wrench, rotor and actuator: a balance cannot be finer than the round-off of its summands.

    Returns:
        Relative difference [-], shape (nt,); infinite if there is a difference without any acting power.
    """
    s = 1j * STEP
    q = retract(mechanism, motion.q, motion.qd * s)  # the quadratic term is below round-off
    rate = total_energy(mechanism, q, motion.qd + motion.qdd * s).imag / STEP
    power = effort * (motion.qd @ mechanism.selection.T)
    loads = _power_of_wrenches(mechanism, motion)
    damped = _damped_power(mechanism, motion.qd, lengths(mechanism, State.at_rest(mechanism, q).poses).imag / STEP)
    difference = power.sum(1) + loads - damped - rate
    at_work = (np.abs(own_powers(mechanism, motion).signed).sum((1, 2)) + np.abs(power).sum(1)).max()
    return difference / at_work if at_work > 0 else np.where(difference == 0, 0.0, np.inf)


def _damped_power(mechanism: Mechanism, qd: Array, rates: Array) -> Array:
    """Power that all dampers take out [W], shape (nt,); rates of the lengths between two points (nt, springs)."""
    power = np.zeros(len(qd))
    for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True):
        power += joint.damping * (qd[:, dofs] ** 2).sum(1)
    for tendon in mechanism.tendons:
        power += tendon.damping * (qd @ mechanism.rates_of((tendon.length,))[0]) ** 2
    return power + (rates**2) @ np.array([spring.damping for spring in mechanism.point_springs])


def _power_of_wrenches(mechanism: Mechanism, motion: Motion) -> Array:
    """Power of the constant external wrenches [W], shape (nt,)."""
    state = State.at_rest(mechanism, motion.q)
    body_poses, t = state.poses, np.einsum("tbij,tj->tbi", state.K, motion.qd)
    power = np.zeros(len(motion.t))
    for load in mechanism.wrenches:
        w, v = t[:, load.body, :3], t[:, load.body, 3:]
        point = body_poses.p[:, load.body] + body_poses.R[:, load.body] @ load.point
        power += w @ load.moment + (v + np.cross(w, point - body_poses.c[:, load.body])) @ load.force
    return power
