"""Runs the tapes of a mechanism over the samples of a path, many lanes at once.

A lane is a stretch of consecutive samples. Every lane follows the path from a state that `walk` finds, so that it keeps
the working mode, and must arrive where the next one starts. Where samples are dense, positions extrapolated from those
before close the loops to round-off; elsewhere Newton's method starts from them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from analytic.batch.tape import HISTORY
from robots.arrays import AnyArray, Array
from robots.motion import Drive

CLOSE = 1e-8
"""A Newton step this small is the last [m or rad]: the next would be of the order of its square."""
CONTRACTION = 0.25
"""Largest ratio of two Newton steps (Deuflhard 2011, section 2.1): above it they may lead to another working mode."""
MOST_STEPS = 12
"""Newton steps at most."""
SMALLEST_PIVOT = 1e-3
"""Smallest pivot relative to that at the pose of the trace, times the conditioning there [-]: that is the conditioning
of a sample to a factor of ten, and above it a sample is sound for certain; see `continuation.SOUND`."""
CONSISTENT = 1e-9
"""Largest relative difference between what is given for an actuated joint and what follows from the others [-]."""
MEETING = 1e-6
"""Largest distance of a lane from where the next one starts [m or rad]."""
TILE = 64
"""Samples of a lane that are followed before they are judged."""
AHEAD = 8
"""Samples that the walk tries at once: as many as a vector of the largest processors has numbers."""
STRIDES = 64
"""Strides that the walk wants to take at first."""
MOST = 2048
"""Samples that are settled at once: what they need should stay in the cache."""
WEIGHTS = np.array([[1.0, 0, 0, 0], [2, -1, 0, 0], [3, -3, 1, 0], [4, -6, 4, -1]])
"""Of the positions before, newest first, in the polynomial through 1, 2, 3 or 4 of them [-]."""
CHECKS = 5
"""What the tape of the efforts gives after them: residual, size of the step, pivot, orientation, apart."""

Follow: TypeAlias = Callable[[Array, Sequence[Array], Sequence[Array]], None]
"""A tape on arrays; see `interpreter.follow`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tapes:
    """The equations of a mechanism, ready to run."""

    newton: Follow
    efforts: Follow
    tolerance: float
    """Largest closure residual [m or rad]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Results, filled in as they are found."""

    effort: Array
    """Efforts of the actuators [N or N m], shape (nt, na)."""
    q: Array
    """Joint positions [m or rad], shape (nt, nq)."""
    state: Array
    """0 if the loops of a sample are not closed, 1 if they are but a pivot is small, 2 if all is well; with the sign
    of det Φᵘ [-], shape (nt,)."""


def close(newton: Follow, drive: Array, q: Array) -> tuple[AnyArray, Array]:
    """Close the loops of samples.

    Args:
        newton: Newton tape.
        drive: Positions of the actuated joints [m or rad], shape (n, joints).
        q: Guess of the joint positions, replaced by closed ones [m or rad], shape (n, nq).

    Returns:
        Where Newton's method contracts [-], shape (n,), and the residual of the guess [m or rad], shape (n,).
    """
    n, nq = q.shape
    sound, before, checks = np.ones(n, np.bool_), np.full(n, np.inf), np.zeros((MOST_STEPS, n, 1, 2))
    past = np.broadcast_to(q[:, None], (n, HISTORY, nq))
    for found in checks:
        newton(WEIGHTS[0], [past, drive[:, None]], [q[:, None], found])
        size = found[:, 0, 1]
        sound &= (size <= CONTRACTION * before) | (size <= CLOSE)
        before = size
        if not (sound & (size > CLOSE)).any():
            break
    return sound & (before <= CLOSE), checks[0, :, 0, 0]


def settle(tapes: Tapes, drive: Drive, samples: AnyArray, guess: Array, found: Found) -> tuple[AnyArray, AnyArray]:
    """Close the loops of samples and find their efforts.

    Args:
        tapes: Equations.
        drive: The path, or samples that have nothing to do with each other.
        samples: Which of them [-], shape (n,).
        guess: Joint positions near them [m or rad], shape (n, nq).
        found: Results.

    Returns:
        Where Newton's method contracts [-], and where the guess was as good as its result [-], each of shape (n,).
    """
    given, q, n = [x[samples][:, None] for x in drive], guess.copy(), len(samples)
    sound, residual = close(tapes.newton, given[0][:, 0], q)
    moved, effort, checks = np.empty_like(q), np.empty((n, found.effort.shape[1])), np.empty((n, CHECKS))
    gives = [moved[:, None], effort[:, None], checks[:, None]]
    past = np.broadcast_to(q[:, None], (n, HISTORY, q.shape[1]))
    tapes.efforts(WEIGHTS[0], [past, *given], gives)
    if (sound & ~(checks[:, 0] <= tapes.tolerance)).any():  # a step more than its size asked for
        again, _ = close(tapes.newton, given[0][:, 0], q)
        sound &= again
        tapes.efforts(WEIGHTS[0], [past, *given], gives)
    found.q[samples], found.effort[samples] = moved, effort
    found.state[samples] = np.where(sound, judge(checks, tapes.tolerance), 0.0)
    return sound, residual <= tapes.tolerance


def judge(checks: Array, tolerance: float) -> Array:
    """State of samples, see `Found`.

    Args:
        checks: What the tape of the efforts gives after them [any unit], shape (..., CHECKS).
        tolerance: Largest closure residual [m or rad].
    """
    residual, size, pivot, orientation, apart = (checks[..., k] for k in range(CHECKS))
    closed = (residual <= tolerance) & (size <= CLOSE) & (apart <= CONSISTENT) & (np.abs(orientation) > 0)
    return np.where(closed, np.where(pivot >= SMALLEST_PIVOT, 2.0, 1.0) * np.sign(orientation), 0.0)


def walk(newton: Follow, q: Array, first: Array, span: int) -> Array:
    """Follow the path in strides as long as Newton's method contracts, to where each lane starts.

    Args:
        newton: Newton tape.
        q: Positions of the actuated joints [m or rad], shape (nt, joints).
        first: Joint positions of the first sample [m or rad], shape (nq,).
        span: Samples of a lane.

    Returns:
        Joint positions where lanes start [m or rad], shape (lanes, nq): of fewer lanes than the path has where two
        samples are too far apart.
    """
    at, poses = [0], [first]
    stride = max(len(q) // STRIDES, 1)
    while at[-1] < len(q) - 1:
        ahead = np.minimum(at[-1] + stride * np.arange(1, AHEAD + 1), len(q) - 1)
        slope = (poses[-1] - poses[-2]) / (at[-1] - at[-2]) if len(at) > 1 else np.zeros_like(first)
        closed = poses[-1] + np.outer(ahead - at[-1], slope)
        sound, _ = close(newton, q[ahead], closed)
        reached = AHEAD if sound.all() else int(sound.argmin())
        new = range(min(reached, len(np.unique(ahead))))
        at += [int(ahead[k]) for k in new]
        poses += [closed[k] for k in new]
        if not reached and stride == 1:
            break
        stride = stride if reached else max(stride // 4, 1)
    starts = np.arange(0, at[-1] + 1, span)
    between = np.stack([np.interp(starts, at, column) for column in np.array(poses).T], axis=1)
    sound, _ = close(newton, q[starts], between)
    return between if sound.all() else between[: sound.argmin()]


def march(tapes: Tapes, drive: Drive, starts: Array, span: int, found: Found) -> tuple[AnyArray, int]:
    """Efforts along a path.

    Args:
        tapes: Equations.
        drive: The path.
        starts: Joint positions where each lane starts [m or rad], shape (lanes, nq).
        span: Samples of a lane; the last may be shorter.
        found: Results.

    Returns:
        Which lanes arrive where the next one starts [-], shape (lanes,), and how many samples were so dense that
        positions extrapolated from those before close the loops.
    """
    lanes, extrapolated = len(starts), 0
    shorter = len(drive.q) - (lanes - 1) * span
    sound, near = np.ones(lanes, np.bool_), np.zeros(lanes, np.bool_)
    s = 0
    while s < span:
        n, end = (lanes, shorter) if s < shorter else (lanes - 1, span)
        followed, to = np.zeros(n, np.bool_), s + 1
        if s >= HISTORY and 2 * (near & sound)[:n].sum() > sound[:n].sum():
            to = min(s + TILE, end)
            followed = _extrapolate(tapes, drive, _Tile(span, n, s, to), found, sound[:n])
        near[:n], extrapolated = followed, extrapolated + int(followed.sum()) * (to - s)
        left = np.flatnonzero(sound[:n] & ~followed)
        for k in range(s, to):
            if left.size:
                guess = _extrapolated(found.q, left * span + k, k) if k else starts[left]
                sound[left], near[left] = settle(tapes, drive, left * span + k, guess, found)
                left = left[sound[left]]
        s = to
    return _arrivals(tapes.newton, drive.q, starts, span, found.q), extrapolated


@dataclass(frozen=True, slots=True)
class _Tile:
    span: int
    lanes: int
    start: int
    """First sample of each lane in it."""
    stop: int
    """First sample after it."""

    def of(self, x: Array) -> Array:
        """Its part of an array of samples (nt, columns), shape (lanes, samples, columns)."""
        step, side = x.strides
        return as_strided(
            x[self.start :], (self.lanes, self.stop - self.start, x.shape[1]), (self.span * step, step, side)
        )

    def before(self, x: Array) -> Array:
        """What comes before it, newest first, shape (lanes, HISTORY, columns)."""
        step, side = x.strides
        return as_strided(x[self.start - 1 :], (self.lanes, HISTORY, x.shape[1]), (self.span * step, -step, side))


def _extrapolate(tapes: Tapes, drive: Drive, tile: _Tile, found: Found, sound: AnyArray) -> AnyArray:
    """Follow lanes from their last positions without closing their loops.

    Args:
        tapes: Equations.
        drive: The path.
        tile: Samples.
        found: Results.
        sound: Which lanes are still right [-], shape (lanes,).

    Returns:
        Which of them are, with closed loops at all samples [-], shape (lanes,); the state of all others is 0.
    """
    checks = np.empty((tile.lanes, tile.stop - tile.start, CHECKS))
    takes = [tile.before(found.q), *(tile.of(x) for x in drive)]
    tapes.efforts(WEIGHTS[-1], takes, [tile.of(found.q), tile.of(found.effort), checks])
    closed = (checks[..., 0] <= tapes.tolerance) & (checks[..., 1] <= CLOSE)
    right = np.asarray(sound & closed.all(axis=1))
    tile.of(found.state[:, None])[..., 0] = np.where(right[:, None], judge(checks, tapes.tolerance), 0.0)
    return right


def _extrapolated(q: Array, samples: AnyArray, known: int) -> Array:
    """Positions from those of the samples before, of which so many are known [m or rad], shape (n, nq)."""
    weights = WEIGHTS[min(known, HISTORY) - 1, : min(known, HISTORY)]
    return np.tensordot(weights, q[samples - 1 - np.arange(len(weights))[:, None]], 1)


def _arrivals(newton: Follow, q: Array, starts: Array, span: int, found: Array) -> AnyArray:
    """Which lanes arrive where the next one starts, shape (lanes,)."""
    met = np.ones(len(starts), np.bool_)
    ends = span * np.arange(1, len(starts))
    if ends.size:
        arrived = _extrapolated(found, ends, span)
        sound, _ = close(newton, q[ends], arrived)
        met[:-1] = sound & (np.abs(arrived - starts[1:]) <= MEETING).all(axis=1)
    return met
