"""Accuracy to which the loops of a file close, and the limits that depend on it.

A file with 6 digits cannot close its loops better than to about 1e-6 of its size. Redundant equations, as those of a
pin made of two connects, then contradict each other, and small singular values of the closures are noise. The rules:

- c, the accuracy, is the largest gap of a closure in closed poses: lengths over the size, angles in rad. A pose is
  closed by least squares over the equations that the file resolves.
- Singular values below max(1e-5, 30 c) of the largest are noise. c and this limit are found together. All routes have
  the null space of the truncated Jacobian (`loopcheck.robots.size.resolved_part`), and never choose among its rows.
- Gaps of up to 3 c are closed: c is found in few poses and varies along a motion. Every limit that depends on the
  closure of the loops allows for as much (`allowed`).
- Efforts are resolved to r (`loopcheck.analytic.dynamics.resolution`). It counts between the tolerance of a route and
  3 r only.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from loopcheck.analytic.kinematics.closures import (
    RANK_TOLERANCE,
    closure_jacobian,
    closure_residual,
    null_space,
)
from loopcheck.analytic.kinematics.tree import poses, retract, twist_matrices
from loopcheck.robots.arrays import AnyArray, Array, JointPositions, PositionSeries
from loopcheck.robots.mechanism import Closing, Mechanism
from loopcheck.robots.size import closure_units, resolved_part, unit_rates

EXACT = 1e-12
"""Largest accuracy of loops that close exactly [-]: files with 15 digits reach 1e-15."""
NOISE = 30.0
"""Smallest singular value that counts, over the accuracy and the largest singular value [-]."""
ALLOWED = 3.0
"""Largest gap of a closed loop over the accuracy [-]."""
LARGEST = 1e-3
"""Largest accuracy that the digits of a file explain [-]; beyond it loops are open."""
SAMPLES, REACH = 8, 0.2
"""Closed poses in which the accuracy is found, and their distance from the start [-; rad, or sizes of the robot]."""
LARGE = 10_000
"""Largest number of entries of the closure Jacobians in all these poses [-], of large mechanisms in one."""
SMALL, LONGEST = 1000, 2e7
"""Entries of the closure Jacobian up to which round-off is removed from exact loops, and entries times dofs beyond
which loops count as exact [-]."""
ALIKE = 0.01
"""Relative change of the accuracy at which the search for it ends [-]."""
ROUND_OFF = Closing(noise=1e-10)
"""Loops that close exactly: the shortest rows of their equations are round-off."""
SETTLED = 1e-12
"""Largest residual over the size of a pose that is closed by least squares [-]."""
MOST_ITERATIONS = 20
"""Largest number of iterations of the least squares, and of the search for the accuracy."""


def allowed(limit: float, mechanism: Mechanism) -> float:
    """A limit relative to the size of the robot, or in rad, with an allowance for loops that the file does not close.

    Args:
        limit: Limit of a robot with exact loops [-].
    """
    return limit + ALLOWED * mechanism.closing.accuracy


def loop_gaps(mechanism: Mechanism, gap: Array) -> Array:
    """Gaps of the closures: Euclidean norms of their translations over the size, and of their rotations [-].

    Args:
        mechanism: Robot with closures.
        gap: Closure residual [m or rad], shape (nt, nc).

    Returns:
        Shape (nt, blocks), see `closure_units`.
    """
    units, blocks = closure_units(mechanism)
    return np.sqrt(np.add.reduceat((gap / units) ** 2, blocks, axis=1))


def with_closing(mechanism: Mechanism, starts: Sequence[JointPositions] = ()) -> Mechanism:
    """The mechanism, with the accuracy of its closures.

    Args:
        starts: Poses of the file [m or rad], each of shape (nq,); by default the rest position and the keyframes.
    """
    every = np.array(starts) if len(starts) else starts_of(mechanism)
    return replace(mechanism, closing=_closing(replace(mechanism, closing=Closing()), every))


def closed_start(mechanism: Mechanism) -> tuple[Array, float]:
    """The pose of least gaps from the poses of the file [m or rad], shape (1, nq), and its largest gap [-]."""
    q, found = _start(mechanism, starts_of(mechanism))
    return q, found.accuracy


def starts_of(mechanism: Mechanism) -> PositionSeries:
    """Poses of the file: the rest position, and keyframes [m or rad], shape (starts, nq)."""
    return np.array([mechanism.rest_position, *mechanism.keyframes.values()][:SAMPLES])


def _closing(mechanism: Mechanism, starts: PositionSeries) -> Closing:
    """The accuracy of the closures; loops that stay open, or do not settle, count as exact: other checks find them."""
    entries = len(closure_units(mechanism).units) * mechanism.nv
    if not entries or entries * mechanism.nv > LONGEST:
        return Closing()
    start, found = _start(mechanism, starts)
    nearby = _closed(mechanism, _nearby(mechanism, start, found), found)[0]
    if np.median(_closed(mechanism, nearby, _rounded(0.0))[1]) <= EXACT:
        return ROUND_OFF if entries <= SMALL else Closing()
    for _ in range(MOST_ITERATIONS):
        _, gaps, settled = _closed(mechanism, nearby, found)
        if not settled.any():
            return ROUND_OFF
        before, found = found, _rounded(float(gaps[settled].max()))
        if _are_alike(before, found):
            break
    return found if EXACT < found.accuracy <= LARGEST else ROUND_OFF


def _start(mechanism: Mechanism, starts: PositionSeries) -> tuple[Array, Closing]:
    """The pose of least gaps from some poses (1, nq), with its gap: gap and limit are found together."""
    q, gaps, _ = _closed(mechanism, starts, Closing(noise=1.0), most=1)
    found = _rounded(float(gaps.min()))
    for _ in range(MOST_ITERATIONS):
        q, gaps, _ = _closed(mechanism, starts, found)
        before, found = found, _rounded(float(gaps.min()))
        if found.accuracy <= EXACT or _are_alike(before, found):
            break
    return q[[gaps.argmin()]], found


def _are_alike(before: Closing, found: Closing) -> bool:
    return abs(found.accuracy - before.accuracy) <= ALIKE * before.accuracy


def _rounded(accuracy: float) -> Closing:
    limit = max(RANK_TOLERANCE, NOISE * min(accuracy, LARGEST))
    return Closing(accuracy=accuracy, noise=limit, rank_limit=limit)


def _nearby(mechanism: Mechanism, q: Array, closing: Closing) -> PositionSeries:
    """A pose (1, nq), and poses beside it along the motions that its closures leave."""
    units, random = unit_rates(mechanism), np.random.default_rng(0)
    Phi = _jacobian(mechanism, q)
    P = resolved_part(replace(mechanism, closing=closing), Phi)
    N = null_space((Phi if P is None else P @ Phi)[0] * units).T
    count = max(1, min(SAMPLES, LARGE // (mechanism.nv * len(Phi[0]) + 1)))
    moves = random.uniform(-REACH, REACH, (count, len(N))) @ N * units
    return np.concatenate([q, retract(mechanism, np.repeat(q, count, axis=0), moves)])


def _closed(
    mechanism: Mechanism, q: PositionSeries, closing: Closing, *, most: int = MOST_ITERATIONS
) -> tuple[Array, Array, AnyArray]:
    """Poses with the least gaps seen on the way of Newton's method, these gaps [-], and whether the method settled."""
    mechanism, units = replace(mechanism, closing=closing), unit_rates(mechanism)
    best, least, left = q, *np.full((2, len(q)), np.inf)
    for _ in range(most):
        gap = closure_residual(mechanism, poses(mechanism, q), q)
        widest = loop_gaps(mechanism, gap).max(axis=1)
        falls = (widest < least / 2).any()
        best, least = np.where((widest < least)[:, None], q, best), np.minimum(widest, least)
        Phi = _jacobian(mechanism, q)
        P = resolved_part(mechanism, Phi)
        D = (np.eye(Phi.shape[1]) if P is None else P) / closure_units(mechanism).units[:, None]
        gap, Phi = D @ gap[..., None], (D @ Phi) * units
        settled = np.abs(gap).max(axis=(1, 2)) <= SETTLED
        if settled.all() or not (falls or (np.abs(gap).max(axis=(1, 2)) < left / 2).any()):
            break
        left = np.minimum(left, np.abs(gap).max(axis=(1, 2)))
        step = -(np.linalg.pinv(Phi, rcond=RANK_TOLERANCE**2) @ gap)[..., 0] * units
        q = retract(mechanism, q, step / np.maximum(1.0, np.abs(step).max(axis=1, keepdims=True)))
    return best, least, settled


def _jacobian(mechanism: Mechanism, q: PositionSeries) -> Array:
    body_poses = poses(mechanism, q)
    return closure_jacobian(mechanism, body_poses, twist_matrices(mechanism, body_poses), q)
