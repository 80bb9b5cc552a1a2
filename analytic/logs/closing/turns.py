"""Rotations of a log without velocities: quaternions that are differenced, and rods that spin about themselves."""

import numpy as np

from loopcheck.analytic.dynamics.powers import tree_inertia
from loopcheck.analytic.kinematics.redundancy import undriven_dofs, unit_rates_of_drives
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import cross, retract, rotation_vector, skew
from loopcheck.analytic.logs.signals.filters import Filter
from loopcheck.robots.arrays import Array, JointPositions
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.size import unit_rates

SPINS = 1e-6
"""Largest velocity of a mass centre, and largest change of an inertia tensor, of a body that spins about itself [-]."""


def differenced(mechanism: Mechanism, q: Array, kernels: Filter, bases: Array) -> tuple[Array, Array, Array]:
    """Positions, velocities and accelerations by a filter of positions; quaternions along their geodesics.

    Args:
        mechanism: The robot.
        q: Joint positions [m or rad], shape (nt, nq).
        kernels: Filter that does not use velocities.
        bases: Numbers of the base samples [-], shape (n,).

    Returns:
        Positions of shape (n, nq); velocities and accelerations of shape (n, nv), of turns in body axes.
    """
    x, *rates = kernels.motion(q, None, bases)
    v, a = (np.zeros((len(bases), mechanism.nv)) for _ in rates)
    constants = mechanism.stacked
    for places in (constants.hinges, constants.slides, constants.shifts):
        v[:, places.dofs], a[:, places.dofs] = (rate[:, places.entries] for rate in rates)
    motion = (kernels.position, kernels.velocity, kernels.acceleration)
    begin, end = min(one.begin for one in motion), max(one.end for one in motion)
    weights = np.zeros((3, end - begin + 1))
    for row, kernel in zip(weights, motion, strict=True):
        row[kernel.begin - begin : kernel.end - begin + 1] = kernel.weights
    window = bases.astype(int)[:, None] + np.arange(begin, end + 1)
    step = np.zeros((len(bases), mechanism.nv))
    for entries, dofs in zip(constants.turns.entries, constants.turns.dofs, strict=True):
        turns = rotation_vector(q[bases.astype(int)][:, None, entries], q[window][..., entries])  # from the base sample
        angle, rate, second = np.einsum("kw,nwi->kni", weights, turns)
        step[:, dofs] = angle
        v[:, dofs] = _turned_back(angle, rate)
        a[:, dofs] = _turned_back(angle, second) + cross(rate, cross(angle, rate)) / 6
    moved = retract(mechanism, q[bases.astype(int)], step)
    for entries in constants.turns.entries:
        x[:, entries] = moved[:, entries]
    return x, v, a


def _turned_back(angle: Array, rate: Array) -> Array:
    """Angular velocity in body axes by the rate of a rotation vector, both (n, 3), to second order in its angle."""
    bracket = cross(angle, rate)
    return np.asarray(rate - bracket / 2 + cross(angle, bracket) / 6)


def spins_about_itself(mechanism: Mechanism, q: JointPositions) -> bool:
    """Return whether no drive moves in a pose only bodies that spin about axes of symmetry through their mass centres.

    Such a body, as a rod between two balls, needs no effort and changes none: its angle and its tensor stay the same.
    """
    state = State.at_rest(mechanism, q[None])
    N = _undriven(state)[0]
    twists = state.twists.K[0] @ N  # (nb, 6, motions)
    turns, slides = twists[:, :3].swapaxes(1, 2), twists[:, 3:]
    R = state.poses.R[0]
    I_W = R @ np.stack([body.inertia for body in mechanism.bodies]) @ R.swapaxes(1, 2)
    change = skew(turns) @ I_W[:, None] - I_W[:, None] @ skew(turns)
    size = np.abs(I_W).max(axis=(1, 2))[:, None, None, None]
    fast = np.abs(turns).max(initial=np.finfo(float).tiny)
    loaded = [any((joint.stiffness, joint.damping, joint.armature)) for joint in mechanism.joints]
    held = np.repeat(loaded, [dofs.stop - dofs.start for dofs in mechanism.dof_slices])
    return bool(
        (np.abs(slides) <= SPINS * fast).all()
        and (np.abs(change) <= SPINS * fast * size).all()
        and (np.abs(N[held]) <= SPINS * fast).all()
    )


def without_spin(state: State) -> Array:
    """Joint velocities of least kinetic energy with the same motion of the drives [m/s or rad/s], shape (n, nv).

    A symmetric body keeps its spin about itself: nothing turns it, so a robot that starts at rest has none.
    """
    N = _undriven(state)
    N_T = N.swapaxes(1, 2)
    M = tree_inertia(state)
    return np.asarray(state.qd - (N @ np.linalg.solve(N_T @ M @ N, N_T @ M @ state.qd[..., None]))[..., 0])


def _undriven(state: State) -> Array:
    """Bases of the motions that neither closures nor drives determine [-], shape (n, nv, motions)."""
    mechanism, rates = state.mechanism, unit_rates(state.mechanism)
    count = undriven_dofs(mechanism, state.q[len(state.q) // 2])
    W = np.broadcast_to(unit_rates_of_drives(mechanism), (len(state.q), len(mechanism.drives), mechanism.nv))
    _, _, V_T = np.linalg.svd(np.concatenate([state.Phi * rates, W], axis=1))
    return np.asarray(rates[:, None] * V_T[:, mechanism.nv - count :].swapaxes(1, 2))
