"""The equations along a log: the efforts that its filtered motion needs, and how they hang on the log's columns."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.dynamics.noc import needed_efforts
from loopcheck.analytic.kinematics.tree import retract
from loopcheck.analytic.logs.closing.closed_log import ClosedLog
from loopcheck.analytic.logs.closing.closed_motion import NearestRates, States, closed_states, closing_bias, drive_of
from loopcheck.analytic.logs.signals.filters import Filter
from loopcheck.robots.arrays import Array, Efforts, EffortSeries
from loopcheck.robots.errors import LoopClosureError, MechanismError, SingularityError
from loopcheck.robots.mechanism import Mechanism

ORDERS = ("q", "qd", "qdd")
NUDGE = 1e-5
"""By how much joints are moved to differentiate the equations [m or rad, per s]."""
LARGEST = 2**17
"""States at once, times bodies and dofs: their arrays fit the cache of a core [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Efforts that acted and efforts that the equations need, at some samples of a log."""

    t: Array
    """Times [s], shape (n,)."""
    states: States
    """The closed motion."""
    effort: Array
    """Applied efforts, filtered; of redundant actuators the part that moves the robot [N or N m], shape (n, na)."""
    internal: Array
    """Internal load of redundant actuators [N or N m], shape (n, na)."""
    needed: Array
    """Efforts required by the equations [N or N m], shape (n, na)."""
    unactuated: Array
    """Unexplained force along unactuated motions [N or N m], shape (n, nv)."""
    moved: float
    """Largest correction of a joint onto the closures [m or rad]; NaN for a log of the drives only."""

    @property
    def residual(self) -> Array:
        """Residual efforts [N or N m], shape (n, na)."""
        return self.effort - self.needed


@dataclass(frozen=True, slots=True, kw_only=True)
class Slopes:
    """Derivatives of residual efforts at some samples."""

    motion: Array
    """Derivative of the required efforts by position, velocity and acceleration of each log column, (m, na, 3,
    columns)."""
    effort: Array
    """Derivative of the moving part of the efforts by the logged efforts [-], shape (m, na, na)."""


def evaluate(closed: ClosedLog, kernels: Filter, bases: Array) -> Evaluation:
    """Efforts that acted and that are needed.

    Args:
        bases: Numbers of the base samples [-], shape (n,).
    """
    return evaluate_together(closed, [(kernels, bases)])[0]


def evaluate_together(closed: ClosedLog, parts: Sequence[tuple[Filter, Array]]) -> list[Evaluation]:
    """`evaluate` for several filters at once: few samples take as long as many.

    Args:
        parts: Filters, with the numbers of their base samples [-], shape (any,).
    """
    states, moved = closed.filtered(parts)
    needed = closed.needed(states.kinematics_of(closed.mechanism), states.qdd)
    acted = np.concatenate([kernels.effort.applied(closed.effort, bases) for kernels, bases in parts])
    effort = (closed.moving(states) @ acted[..., None])[..., 0]
    evaluations, end = [], 0
    for kernels, bases in parts:
        rows = np.arange(end, end := end + len(bases))
        evaluations.append(
            Evaluation(
                t=closed.log.t[0] + closed.log.dt * (bases + kernels.late),
                states=states if len(parts) == 1 else states.rows(rows),
                effort=effort[rows],
                internal=(acted - effort)[rows],
                needed=needed.effort[rows],
                unactuated=needed.unactuated[rows],
                moved=float(moved[rows].max(initial=0.0)),
            )
        )
    return evaluations


def efforts_of_states(mechanism: Mechanism, states: States) -> EffortSeries:
    """Required efforts in closed states, of the log's mechanism or another."""
    return needed_efforts(states.kinematics_of(mechanism), states.qdd).effort


def slopes(closed: ClosedLog, states: States) -> Slopes:
    """Derivatives of the residual efforts: exact, or by differences of few states or where they are not traced."""
    from loopcheck.analytic.batch.inverse import FEWEST  # whose imports take longer than those of all other equations

    motion = None
    if closed.is_of_efforts and len(states.q) >= FEWEST:
        with suppress(MechanismError, SingularityError, LoopClosureError):
            motion = _by_equations(closed, states)
    if motion is None:
        motion = _by_differences(closed, states)
    return Slopes(motion=motion, effort=closed.moving(states))


def _by_equations(closed: ClosedLog, states: States) -> Array:
    """`Slopes.motion` by the chain rule: columns of a log move the drives, and the drives the robot.

    Raises:
        MechanismError: If the log keeps other coordinates than the drives, or an element is not traced.
        SingularityError: If a state is near a singularity.
        LoopClosureError: If the loops of a state cannot be closed.
    """
    from loopcheck.analytic.batch import inverse_dynamics
    from loopcheck.analytic.batch.trace import trace

    mechanism, drives = closed.mechanism, closed.mechanism.drives
    if {drive.name for drive in closed.drives} != {drive.name for drive in drives}:
        raise MechanismError("the derivatives are along all drives of a robot")
    traced = trace(mechanism, states.q[0])
    motion = drive_of(mechanism, drives, states)
    batch = inverse_dynamics(mechanism, motion, states.q, traced=traced, derivatives=ORDERS)
    moved = mechanism.rates_of(drives) @ closed.directions.T
    return np.stack([batch.derivatives[name] @ moved for name in ORDERS], axis=2)


def _by_differences(closed: ClosedLog, states: States) -> Array:
    """`Slopes.motion` by differences."""
    return np.concatenate([_by_position(closed, states), _in_parts(_by_rates, closed, states)], axis=2)


def _in_parts(function: Callable[[ClosedLog, States], Array], closed: ClosedLog, states: States) -> Array:
    """The values of a function at states, computed for as many states at once as fit the cache of a core."""
    at_once = max(1, LARGEST // (len(closed.mechanism.bodies) * closed.mechanism.nv))
    parts = np.array_split(np.arange(len(states.q)), -(-len(states.q) // at_once))
    return np.concatenate([function(closed, states.rows(part)) for part in parts])


def _by_position(closed: ClosedLog, states: States) -> Array:
    """Derivatives of the required efforts by positions, by central differences, shape (m, na, 1, columns)."""
    mechanism, (m, nv), directions = closed.mechanism, states.qd.shape, closed.directions
    steps = [np.broadcast_to(sign * NUDGE * direction, (m, nv)) for direction in directions for sign in (1, -1)]
    every = States(
        q=np.concatenate([retract(mechanism, states.q, step) for step in steps]),
        qd=np.tile(states.qd, (len(steps), 1)),
        qdd=np.tile(states.qdd, (len(steps), 1)),
    )
    by_nudge = _in_parts(_needed_when_closed, closed, every).reshape(len(directions), 2, m, -1)
    return np.asarray(((by_nudge[:, 0] - by_nudge[:, 1]) / (2 * NUDGE)).transpose(1, 2, 0)[:, :, None])


def _needed_when_closed(closed: ClosedLog, near: States) -> EffortSeries:
    """Required efforts in the closed states nearest to given states."""
    drive = drive_of(closed.mechanism, closed.drives, near)
    states = closed_states(closed.mechanism, closed.drives, drive, near)
    return closed.needed(states.kinematics_of(closed.mechanism), states.qdd).effort


def _by_rates(closed: ClosedLog, states: States) -> Array:
    """Derivatives of the required efforts by velocities and accelerations, shape (m, na, 2, columns).

    The poses stay, so that their closures are solved once. Efforts are linear in the accelerations.
    """
    state, qdd = states.kinematics_of(closed.mechanism), states.qdd
    nearest, usual = NearestRates(state, closed.drives), closed.needed(state, qdd).effort
    derivatives = []
    for direction in closed.directions:
        step = nearest(np.broadcast_to(direction, qdd.shape))
        moved = [state.with_velocities(state.qd + sign * NUDGE * step) for sign in (1, -1)]
        faster, slower = (closed.needed(one, nearest(qdd, closing_bias(one))).effort for one in moved)
        by_acceleration = closed.needed(state, qdd + step).effort - usual
        derivatives.append(np.stack([(faster - slower) / (2 * NUDGE), by_acceleration], axis=2))
    return np.stack(derivatives, axis=3)


def noise_rms(closed: ClosedLog, derivatives: Slopes, kernels: Array, *, uses_velocities: bool) -> Efforts:
    """Root mean square of the residual efforts caused by the noise of the log's columns.

    Args:
        derivatives: Of the residual efforts at some samples.
        kernels: Of positions, velocities, accelerations and efforts over the same samples [-, per s], shape (4, any).
        uses_velocities: Whether the second and the third are of velocities.

    Returns:
        Root mean square over samples [N or N m], shape (na,).
    """
    motion, effort = kernels[:3], kernels[3]
    positions, velocities = closed.deviations
    products = motion @ motion.T
    of_positions, of_velocities = products, np.zeros((3, 3))
    if uses_velocities:
        of_positions, of_velocities = products.copy(), products.copy()
        of_positions[1:], of_positions[:, 1:], of_velocities[0], of_velocities[:, 0] = 0, 0, 0, 0
    covariance = (
        of_positions[None] * positions[:, None, None] ** 2 + of_velocities[None] * velocities[:, None, None] ** 2
    )
    by_motion = np.einsum("maic,cij,majc->ma", derivatives.motion, covariance, derivatives.motion)
    by_effort = (derivatives.effort**2) @ closed.effort_deviations**2 * (effort @ effort)
    return np.sqrt((by_motion + by_effort).mean(axis=0))
