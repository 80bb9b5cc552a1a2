"""Limits of joints: how far a pose is beyond them, and the closed pose nearby that is inside all of them."""

from collections.abc import Iterator, Sequence

import numpy as np

from loopcheck.analytic.kinematics.closures import (
    RANK_TOLERANCE,
    closure_jacobian_at,
    null_space,
    solve_dependent,
)
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import retract
from loopcheck.robots.arrays import AnyArray, Array, JointPositions, PositionSeries
from loopcheck.robots.mechanism import Coordinate, Mechanism

TOUCHED = 1e-6
"""Distance beyond a limit up to which a joint touches it [m or rad]; as large as the tolerance of loops."""
MARGIN = 0.05
"""Distance from a limit that a start keeps, relative to the joint's range [-]."""
CLOSE_ENOUGH = 1e-9
"""Closure residual below which Newton's method continues alone [m or rad]."""
MOST_STEPS = 60
"""Largest number of steps into the limits."""
LONGEST_STEP = 0.3
"""Longest of them [m or rad]."""
LEAST_MOTION = 1e-4
"""Weight of not moving, against that of closing the loops [-]."""


def excess(mechanism: Mechanism, q: PositionSeries) -> Array:
    """Distance of each joint beyond its nearer limit; zero inside, and for a joint without limits.

    Returns:
        Distances [m or rad], shape (nt, joints).
    """
    beyond = np.zeros((len(q), len(mechanism.joints)))
    for j, column, (low, high) in _limited(mechanism):
        beyond[:, j] = np.maximum(low - q[:, column], q[:, column] - high).clip(0)
    return beyond


def beyond_limits(mechanism: Mechanism, q: PositionSeries) -> list[int]:
    """The joints that leave their limits at a sample, the farthest first; touching a limit is inside."""
    farthest = excess(mechanism, q).max(axis=0, initial=0.0)
    return [int(j) for j in np.argsort(-farthest) if farthest[j] > TOUCHED]


def left_limits(mechanism: Mechanism, drives: Sequence[Coordinate], q: PositionSeries) -> tuple[int, ...]:
    """The joints that start inside their limits and leave them, as far as the drives decide it, the farthest first.

    Args:
        drives: Coordinates that move.
    """
    inside = set(range(len(mechanism.joints))) - set(beyond_limits(mechanism, q[:1]))
    moved = joints_moved(mechanism, drives, q[0])
    return tuple(j for j in beyond_limits(mechanism, q) if j in inside and moved[:, j].any())


def joints_moved(mechanism: Mechanism, drives: Sequence[Coordinate], q: JointPositions) -> AnyArray:
    """Mask of the joints that each drive moves, without joints that can also move while the drives are held.

    Args:
        drives: Coordinates that move.

    Returns:
        Mask [-], shape (drives, joints).
    """
    Phi = closure_jacobian_at(mechanism, q[None])
    constraints = np.concatenate([Phi, mechanism.rates_of(drives)[None]], axis=1)
    rates = solve_dependent(constraints, -np.eye(constraints.shape[1])[None, :, Phi.shape[1] :])[0]
    free: AnyArray = np.abs(null_space(constraints[0])).max(axis=1, initial=0.0) > RANK_TOLERANCE
    moved: AnyArray = (np.abs(rates) > RANK_TOLERANCE) & ~free[:, None]
    return np.array([moved[dofs].any(axis=0) for dofs in mechanism.dof_slices]).T


def limits_in_words(mechanism: Mechanism, j: int) -> str:
    """A joint and its limits, as `'hip' (-0.5 to 1.2 rad)`."""
    joint = mechanism.joints[j]
    low, high = joint.limits or (-np.inf, np.inf)
    return f"'{joint.name}' ({low:.4g} to {high:.4g} {joint.unit})"


def inside_limits(mechanism: Mechanism, q: Array) -> Array:
    """A pose inside all limits with closed or nearly closed loops, as near as the steps lead.

    Each step closes the loops as far as the limits let it: linear least squares within bounds.

    Args:
        q: Pose nearby [m or rad], shape (1, nq).

    Returns:
        The pose, shape (1, nq); its loops may be open.
    """
    from scipy.optimize import lsq_linear

    low, high = np.full((2, mechanism.nv), np.inf) * [[-1], [1]]
    columns = np.zeros(mechanism.nv, dtype=int)
    q = q.copy()
    for j, column, (least, most) in _limited(mechanism):
        dof, margin = mechanism.dof_slices[j].start, MARGIN * (most - least)
        columns[dof], low[dof], high[dof] = column, least + margin, most - margin + TOUCHED
        q[:, column] = np.clip(q[:, column], low[dof], high[dof])
    for _ in range(MOST_STEPS):
        state = State.at_rest(mechanism, q)
        phi = state.resolved_gap[0]
        if np.abs(phi).max(initial=0.0) <= CLOSE_ENOUGH:
            break
        here = np.where(np.isfinite(low), q[0, columns], 0.0)
        rows = np.concatenate([state.Phi[0], LEAST_MOTION * np.eye(mechanism.nv)])
        step = lsq_linear(rows, np.concatenate([-phi, np.zeros(mechanism.nv)]), bounds=(low - here, high - here)).x
        q = retract(mechanism, q, step[None] / max(1.0, float(np.abs(step).max()) / LONGEST_STEP))
    return q


def _limited(mechanism: Mechanism) -> Iterator[tuple[int, int, tuple[float, float]]]:
    """Index, column of q and limits of each joint that has some."""
    for j, (joint, columns) in enumerate(zip(mechanism.joints, mechanism.q_slices, strict=True)):
        if joint.limits is not None:
            yield j, columns.start, joint.limits
