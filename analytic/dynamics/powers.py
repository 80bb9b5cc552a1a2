"""The equations of motion term by term, each as its signed power along a motion that keeps the loops closed.

A term is the whole inertia wrench of a body, its weight less its gravity compensation, an external wrench, or the
spring, the damper or the rotor of a joint, a tendon or a pair of points. Inertia and velocity terms are never
separated: their division depends on the coordinates. By the principle of virtual power the terms along the motion that
moves a single actuator at unit rate sum to its effort. The sum of their magnitudes is the scale of an error of this
effort, however much cancels in it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from loopcheck.analytic.kinematics.redundancy import actuator_motions
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import Poses, Twists, cross, joint_stretch, point_of
from loopcheck.robots.arrays import AccelerationSeries, Array
from loopcheck.robots.mechanism import WORLD, Mechanism
from loopcheck.robots.motion import Motion

LEAST = 1e-3
"""Part of the magnitudes |force| |velocity| + |moment| |angular velocity| that a scale is at least [-].

So a robot at rest in its balance, and weights that move across gravity, have a scale too.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TermPowers:
    """Powers of all terms along some motions, a column each; power of an actuator is positive."""

    signed: Array
    """Power of each term [W, or W per unit rate], shape (nt, terms, motions)."""
    magnitude: Array
    """|force| |velocity| + |moment| |angular velocity| of each term [as `signed`], shape (nt, terms, motions)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EffortScale:
    """Divisor of each actuator's effort error, and the effort as the sum of the terms."""

    scale: Array
    """Largest sum of the terms' magnitudes over time [N or N m], shape (na,); 0 without any term."""
    effort: Array
    """Signed sum of the terms: the effort once more [N or N m], shape (nt, na)."""


def effort_scale(mechanism: Mechanism, motion: Motion) -> EffortScale:
    """The scale of each actuator's effort.

    Args:
        motion: Its motion; accelerations along undriven motions do not matter.
    """
    return scale_of(State(mechanism=mechanism, q=motion.q, qd=motion.qd), motion.qdd)


def scale_of(state: State, qdd: AccelerationSeries) -> EffortScale:
    """The scale of each actuator's effort.

    Args:
        qdd: Its accelerations.
    """
    mechanism = state.mechanism
    powers = powers_along(state, qdd, actuator_motions(mechanism, state.Phi, partial(tree_inertia, state)))
    largest = np.abs(powers.signed).sum(1).max(0, initial=0.0)
    return EffortScale(
        scale=np.maximum(largest, LEAST * powers.magnitude.sum(1).max(0, initial=0.0)), effort=powers.signed.sum(1)
    )


def tree_inertia(state: State) -> Array:
    """Inertia matrix of the spanning tree, summed body by body and rotor by rotor.

    Args:
        state: Positions; velocities do not matter.

    Returns:
        M [kg, kg m or kg m²], shape (nt, nv, nv).
    """
    mechanism, body_poses, K = state.mechanism, state.poses, state.twists.K
    M = np.zeros((len(K), mechanism.nv, mechanism.nv))
    for b, body in enumerate(mechanism.bodies):
        w, v = K[:, b, :3], K[:, b, 3:]
        I_W = body_poses.R[:, b] @ body.inertia @ body_poses.R[:, b].swapaxes(1, 2)
        M += w.swapaxes(1, 2) @ I_W @ w + body.mass * v.swapaxes(1, 2) @ v
    for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True):
        M[:, dofs, dofs] += joint.armature * np.eye(dofs.stop - dofs.start)
    for tendon in mechanism.tendons:
        rates = mechanism.rates_of((tendon.length,))[0]
        M += tendon.armature * np.outer(rates, rates)
    return M


def own_powers(mechanism: Mechanism, motion: Motion) -> TermPowers:
    """Powers of all terms along the motion itself, its only column."""
    return powers_along(State(mechanism=mechanism, q=motion.q, qd=motion.qd), motion.qdd, motion.qd[..., None])


def powers_along(state: State, qdd: AccelerationSeries, D: Array) -> TermPowers:
    """Powers of all terms along some motions.

    Args:
        D: Joint velocities of each motion [m/s or rad/s], shape (nt, nv, motions).
    """
    along = state.twists.K @ D[:, None]
    terms = [
        *_powers_of_bodies(state, qdd, along),
        *_powers_of_wrenches(state, along),
        *_powers_of_joints(state, qdd, D),
        *_powers_of_tendons(state, qdd, D),
        *_powers_of_point_springs(state, D),
    ]
    signed, magnitude = (np.stack(powers, axis=1) for powers in zip(*terms, strict=True))
    return TermPowers(signed=signed, magnitude=magnitude)


def _powers_of_bodies(state: State, qdd: Array, along: Array) -> Iterator[tuple[Array, Array]]:
    """Inertia wrench and weight of every body, about its mass centre; its twists `along` of (nt, nb, 6, motions)."""
    mechanism, body_poses, moving = state.mechanism, state.poses, state.twists
    rate = np.einsum("tbij,tj->tbi", moving.K, qdd) + np.einsum("tbij,tj->tbi", moving.K_dot, state.qd)
    for b, body in enumerate(mechanism.bodies):
        I_W = body_poses.R[:, b] @ body.inertia @ body_poses.R[:, b].swapaxes(1, 2)
        w = moving.w[:, b]
        spin, spin_rate = ((I_W @ x[..., None])[..., 0] for x in (w, rate[:, b, :3]))
        yield _power_of_wrench(spin_rate + cross(w, spin), body.mass * rate[:, b, 3:], along[:, b])
        weight = body.mass * (1 - body.gravity_compensation) * mechanism.gravity
        yield _power_of_wrench(np.zeros_like(w), np.broadcast_to(-weight, w.shape), along[:, b])


def _powers_of_wrenches(state: State, along: Array) -> Iterator[tuple[Array, Array]]:
    """Every external wrench, at the point of application of its force."""
    mechanism, body_poses = state.mechanism, state.poses
    for load in mechanism.wrenches:
        arm = point_of(body_poses, load.body, load.point) - body_poses.c[:, load.body]
        angular, linear = along[:, load.body, :3], along[:, load.body, 3:]
        directions = np.concatenate([angular, linear + np.cross(angular, arm[..., None], axis=1)], axis=1)
        moment, force = (np.broadcast_to(-part, arm.shape) for part in (load.moment, load.force))
        yield _power_of_wrench(moment, force, directions)


def _power_of_wrench(moment: Array, force: Array, along: Array) -> tuple[Array, Array]:
    """Power and magnitude of a wrench, its parts of shape (nt, 3), along twists of (nt, 6, motions) at its point."""
    signed, magnitude = np.zeros((2, len(along), along.shape[2]))
    for part, velocity in ((moment, along[:, :3]), (force, along[:, 3:])):
        signed += np.einsum("ti,tik->tk", part, velocity)
        magnitude += np.linalg.norm(part, axis=1)[:, None] * np.linalg.norm(velocity, axis=1)
    return signed, magnitude


def _powers_of_joints(state: State, qdd: Array, D: Array) -> Iterator[tuple[Array, Array]]:
    """Spring, damper and rotor of every joint, its dofs together."""
    mechanism = state.mechanism
    for joint, columns, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
        for factor, rates in (
            (joint.stiffness, joint_stretch(joint, state.q[:, columns])),
            (joint.damping, state.qd[:, dofs]),
            (joint.armature, qdd[:, dofs]),
        ):
            force = factor * rates
            magnitude = np.linalg.norm(force, axis=1)[:, None] * np.linalg.norm(D[:, dofs], axis=1)
            yield np.einsum("ti,tik->tk", force, D[:, dofs]), magnitude


def _powers_of_tendons(state: State, qdd: Array, D: Array) -> Iterator[tuple[Array, Array]]:
    """Spring, damper and rotor of every tendon."""
    mechanism = state.mechanism
    for tendon in mechanism.tendons:
        w = mechanism.rates_of((tendon.length,))[0]
        length = mechanism.values_of((tendon.length,), state.q)[:, 0]
        stretch = length - np.clip(length, *tendon.rest)
        for force in (
            tendon.stiffness * stretch,
            tendon.damping * (state.qd @ w),
            tendon.armature * (qdd @ w),
        ):
            power = force[:, None] * np.einsum("i,tik->tk", w, D)
            yield power, np.abs(power)


def _powers_of_point_springs(state: State, D: Array) -> Iterator[tuple[Array, Array]]:
    """Spring and damper of every pair of points."""
    mechanism, body_poses, moving = state.mechanism, state.poses, state.twists
    for spring in mechanism.point_springs:
        (p1, V1), (p2, V2) = (_point_and_rates(body_poses, moving, body, point) for body, point in spring.ends)
        length = np.linalg.norm(p2 - p1, axis=1)
        direction = (p2 - p1) / length[:, None]
        apart = V2 - V1
        speed = np.einsum("ti,tij,tj->t", direction, apart, state.qd)
        stretch = length - np.clip(length, *spring.rest)
        for force in (spring.stiffness * stretch, spring.damping * speed):
            along = np.einsum("tij,tjk->tik", apart, D)
            signed = force[:, None] * np.einsum("ti,tik->tk", direction, along)
            yield signed, np.abs(force)[:, None] * np.linalg.norm(along, axis=1)


def _point_and_rates(body_poses: Poses, moving: Twists, body: int, point: Array) -> tuple[Array, Array]:
    """A point in W [m], shape (nt, 3), and its velocity per joint velocity [- or m], shape (nt, 3, nv)."""
    p = point_of(body_poses, body, point)
    if body == WORLD:
        return p, np.zeros_like(moving.K[:, 0, :3])
    arm = p - body_poses.c[:, body]
    K = moving.K[:, body]
    return p, K[:, 3:] + np.cross(K[:, :3], arm[..., None], axis=1)
