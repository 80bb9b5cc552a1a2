"""Path tracking: closes the loops of consecutive samples, many lanes at once, and computes their efforts.

A lane is a stretch of consecutive samples. In dense paths, positions extrapolated from the preceding samples close the
loops to round-off; otherwise Newton's method starts from them. Here in numpy; `kernel` has the same in machine code.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from loopcheck.analytic.batch.interpreter import outputs
from loopcheck.analytic.batch.tape import HISTORY, Tape
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Drive

CLOSE = 1e-8
"""A Newton step this small is the last [m or rad]: the next would be of the order of its square."""
CONTRACTION = 0.25
"""Largest ratio of two Newton steps (Deuflhard 2011, section 2.1): above it they may lead to another working mode."""
MOST_STEPS = 12
"""Newton steps at most."""
MOST_REPEATS = 2
"""Number of repetitions, each with a further Newton step, of a sample with open loops."""
SMALLEST_PIVOT = 1e-3
"""Smallest pivot relative to that at the pose of the trace, times the conditioning there [-]: that is the conditioning
of a sample to a factor of ten, and above it a sample is sound for certain; see `continuation.SOUND`."""
CONSISTENT = 1e-9
"""Largest relative difference between prescribed and dependent values of an actuated joint [-]."""
CHECKS = 5
"""Outputs of the efforts' tape after the efforts: residual, size of the step, guard, orientation, apart."""
TRUSTED = 2
"""State of a sample with trusted efforts, without a second computation."""
WEIGHTS = np.array([[1.0, 0, 0, 0], [1, 0, 0, 0], [2, -1, 0, 0], [3, -3, 1, 0], [4, -6, 4, -1]])
"""Extrapolation weights of preceding positions, newest first, for 0, 1, 2, 3 or more preceding samples [-]."""

Track: TypeAlias = Callable[[float, Drive, Array], None]
"""Function that tracks the lanes of a mechanism; arguments as of `track` after the tapes."""


class Columns(NamedTuple):
    """Columns of the motion of the drives, and of the records of samples."""

    drives: int
    """Number of drives."""
    q: slice
    """In a record, joint positions; at the first sample of a lane a guess, to begin with [m or rad]."""
    effort: slice
    """Efforts of the actuators [N or N m]."""
    marks: slice
    """State, see `track`, and 1 if extrapolation from preceding samples closes the loops, otherwise 0 [-]."""


def columns_of(mechanism: Mechanism) -> Columns:
    """The columns of a mechanism."""
    ends = np.cumsum([mechanism.nq, mechanism.na, 2]).tolist()
    return Columns(len(mechanism.drives), *(slice(a, b) for a, b in zip([0, *ends], ends, strict=False)))


@np.errstate(all="ignore")  # a lane that is lost may hold anything
def track(newton: Tape, efforts: Tape, columns: Columns, tolerance: float, drive: Drive, records: Array) -> None:
    """Follow lanes through their samples, each from a guess of its first.

    The state of a sample is 0 if its loops are open, and then 0 to the end of the lane; 1 if they are closed but the
    guard is small; 2 otherwise; each with the sign of det Φᵘ.

    Args:
        newton: The Newton tape; see `trace.Trace`.
        columns: Columns of the records.
        tolerance: Largest closure residual, relative to the largest position if that is more than 1 [-].
        drive: Motion of the drives [m or rad, per s, per s²], each of shape (lanes, samples, drives).
        records: To be filled in; marks must be 0 before [m or rad, N or N m, -], shape (lanes, samples, columns).
    """
    lanes, samples, _ = records.shape
    if not lanes * samples:
        return
    guess = records[:, 0, columns.q].copy()
    past, nq = [guess.T] * HISTORY, guess.shape[1]
    limit = tolerance * np.maximum(1.0, np.abs(guess).max(axis=1, initial=0.0))
    alive, near = np.ones(lanes, np.bool_), np.zeros(lanes, np.bool_)
    for s in range(samples):
        given = np.concatenate([x[:, s].T for x in drive])
        begun = sum(weight * x for weight, x in zip(WEIGHTS[min(s, HISTORY)], past, strict=True))
        values, closed = np.empty((len(efforts.outputs), lanes)), np.zeros(lanes, np.bool_)
        if 2 * near.sum() > alive.sum():
            values, closed = _moved(efforts, begun, given, limit)
        dense = alive & closed
        near, left = dense.copy(), np.flatnonzero(alive & ~closed)
        if left.size:
            values[:, left], closed[left], near[left] = _solved(
                newton, efforts, begun[:, left], given[:, left], limit[left]
            )
        alive = alive & closed
        past = [values[:nq], *past[:-1]]
        state = np.where(alive, _state(*values[2 - CHECKS :]), 0.0)
        records[:, s] = np.concatenate([values[:-CHECKS], [state, dense]]).T
        if not alive.any():
            break


def _solved(newton: Tape, efforts: Tape, q: Array, drive: Array, limit: Array) -> tuple[Array, AnyArray, AnyArray]:
    """Close the loops of a sample in each lane by Newton's method, and compute its efforts.

    Args:
        q: Guess of the joint positions [m or rad], shape (nq, lanes).
        drive: Motion of the actuated joints [m or rad, per s, per s²], shape (3 drives, lanes).
        limit: Largest closure residual [m or rad], shape (lanes,).

    Returns:
        Outputs of the tape of the efforts [any unit], shape (outputs, lanes); masks of the lanes with convergence to
        closed
        loops, and of the lanes closed by the guess already [-], each of shape (lanes,).
    """
    nq, before, contracts = len(q), np.inf, np.ones(q.shape[1], np.bool_)
    for step in range(MOST_STEPS):
        moved = outputs(newton, np.concatenate([q, drive[: len(drive) // 3]]))
        q, residual, size = moved[:nq], moved[nq], moved[nq + 1]
        if step == 0:
            near = residual <= limit
        settled = size <= CLOSE
        contracts &= (size <= CONTRACTION * before) | settled
        before = size
        if not (contracts & ~settled).any():
            break
    contracts &= settled
    for _ in range(1 + MOST_REPEATS):
        values, closed = _moved(efforts, q, drive, limit)
        q = values[:nq]
        if closed[contracts].all():
            break
    return values, contracts & closed, near


def _moved(efforts: Tape, q: Array, drive: Array, limit: Array) -> tuple[Array, AnyArray]:
    """Outputs of the tape of the efforts (outputs, lanes), and the mask of lanes closed and finite (lanes,)."""
    values = outputs(efforts, np.concatenate([q, drive]))
    residual, size = values[-CHECKS], values[1 - CHECKS]
    finite = np.isfinite(drive).all(axis=0) & np.isfinite(values[len(q) : -CHECKS]).all(axis=0)
    return values, (residual <= limit) & (size <= CLOSE) & finite


def _state(guard: Array, orientation: Array, apart: Array) -> Array:
    """State of samples with closed loops, shape (lanes,)."""
    state = np.where(guard >= SMALLEST_PIVOT, 2.0, 1.0) * np.sign(orientation)
    return np.where((apart <= CONSISTENT) & (np.abs(orientation) > 0), state, 0.0)
