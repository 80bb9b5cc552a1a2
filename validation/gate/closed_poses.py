"""Closed poses of a mechanism from seeded starts, and its rank, freedom and drives in them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from loopcheck.analytic.kinematics.closing import allowed
from loopcheck.analytic.kinematics.closures import closure_of_rows
from loopcheck.analytic.kinematics.continuation import close_batch
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import retract
from loopcheck.robots.arrays import AnyArray, Array, JointPositions, PositionSeries, svd
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.size import closure_units, unit_rates

STARTS = 20
"""Starts of the search for closed poses, and closed poses that are judged."""
OPEN = 1e-4
"""Residual over the size of the robot above which a loop is open [-]."""
EXACT = 1e-7
"""The same up to which ranks are judged [-]."""
ZERO, GAP = 1e-5, 1e3
"""Singular values below this count as zero [-], and least ratio of the last kept to the first dropped value [-]."""
AMPLITUDES = (0.03, 0.1, 0.3, 1.0)
"""Distances of the starts from the pose of the file [rad, or sizes of the robot]."""
LARGEST = 2**28
"""Bytes of the twist matrices of all poses above which a mechanism is too large for the checks of loops."""
LONGEST = 4e7
"""Closure rows times the square of the dofs above which it is too large."""
POLISHED = 3
"""Starts with the least residual that a minimization continues from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedPoses:
    """Result of the search."""

    q: Array
    """Closed poses [m or rad], shape (poses, nq); empty if no start closes."""
    residual: Mapping[str, float]
    """Residual of each closure over the size, in the pose with the least largest residual [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Freedom:
    """First-order motions of a mechanism in a closed pose."""

    N: Array
    """Basis of the motions, turns in rad, slides in sizes of the robot [-], shape (nv, dof)."""
    rank: int
    is_certain: bool
    """Whether a gap separates the singular values that count from those that do not."""
    S_N: Array
    """Motion of each actuator along the basis, over that of its joints alone [-], shape (na, dof)."""

    @property
    def drives(self) -> Array:
        """Largest motion of each actuator along a unit motion [-], shape (na,)."""
        return np.asarray(np.linalg.norm(self.S_N, axis=1))


def is_large(mechanism: Mechanism) -> bool:
    """Whether closed poses, rank and freedom would take more than some seconds or a gigabyte."""
    poses, nv = STARTS if mechanism.closures else 1, mechanism.nv
    twists = poses * len(mechanism.bodies) * 6 * nv * 8
    return twists > LARGEST or len(closure_of_rows(mechanism)) * nv**2 > LONGEST


def relative_gaps(mechanism: Mechanism, q: PositionSeries) -> Array:
    """Residual of each closure over the size [-], shape (nt, closures)."""
    rows = np.abs(State.at_rest(mechanism, q).gap) / closure_units(mechanism).units
    of_closure = np.array(closure_of_rows(mechanism), dtype=int)
    gaps = np.zeros((len(q), len(mechanism.closures)))
    for k in range(gaps.shape[1]):
        gaps[:, k] = rows[:, of_closure == k].max(axis=1, initial=0.0)
    return gaps


def closed_poses(mechanism: Mechanism) -> ClosedPoses:
    """Close the loops from the poses of the file and from seeded starts around them and inside the limits."""
    random = np.random.default_rng(0)
    known = np.array([mechanism.rest_position, *mechanism.keyframes.values()])[:STARTS]
    starts = np.concatenate([known, _starts(mechanism, known, random)])[: STARTS + len(known)]
    if not mechanism.closures:
        return ClosedPoses(q=starts[:STARTS], residual={})
    every = np.ones(mechanism.nv, dtype=bool)
    q, _ = close_batch(mechanism, starts, every)
    worst, exact = relative_gaps(mechanism, q).max(axis=1), allowed(EXACT, mechanism)
    if worst.min() > exact:
        polished = np.array([_polished(mechanism, q[k]) for k in np.argsort(worst)[:POLISHED]])
        q = np.concatenate([q, polished])
        worst = relative_gaps(mechanism, q).max(axis=1)
    best = q[int(worst.argmin())]
    names = [closure.name for closure in mechanism.closures]
    residual = dict(zip(names, map(float, relative_gaps(mechanism, best[None])[0]), strict=True))
    limit = max(exact, 2 * float(worst.min())) if worst.min() <= allowed(OPEN, mechanism) else 0.0
    return ClosedPoses(q=q[worst <= limit][:STARTS], residual=residual)


def closed_near(mechanism: Mechanism, q: JointPositions) -> Array | None:
    """The closed pose near a pose, shape (nq,); None if Newton's method does not close the loops from there."""
    closed, _ = close_batch(mechanism, q[None], np.ones(mechanism.nv, dtype=bool))
    return closed[0] if relative_gaps(mechanism, closed).max(initial=0.0) <= allowed(OPEN, mechanism) else None


def freedom(mechanism: Mechanism, q: PositionSeries) -> list[Freedom]:
    """First-order motions in closed poses, one entry per pose."""
    if not len(q):
        return []
    units = unit_rates(mechanism)
    S = mechanism.selection * units
    lengths = np.linalg.norm(S, axis=1)
    S = S / np.where(lengths, lengths, 1.0)[:, None]
    if not mechanism.closures:  # alike in all poses; twist matrices of a thousand dofs take gigabytes
        return [_freedom(np.zeros((0, mechanism.nv)), S)] * len(q)
    Phi = State.at_rest(mechanism, q).Phi * units
    return [_freedom(Phi_k, S) for Phi_k in row_factors_of_closures(mechanism, Phi) * Phi]


def _freedom(Phi: Array, S: Array) -> Freedom:
    nv = S.shape[1]
    if not Phi.size:
        return Freedom(N=np.eye(nv), rank=0, is_certain=True, S_N=S)
    _, values, V_T = svd(Phi)
    rank = rank_of(values)
    kept, dropped = (values[rank - 1] if rank else 1.0), (values[rank] if rank < len(values) else ZERO * values[0])
    is_certain = rank == 0 or bool(kept >= GAP * dropped)
    N = V_T[rank:].T
    return Freedom(N=N, rank=rank, is_certain=is_certain, S_N=S @ N)


def rank_of(values: Array, zero: float = ZERO) -> int:
    """Number of singular values that count, of rows with factors: the longest row of a closure has length one.

    Args:
        values: Singular values, of any order [-], shape (n,).
        zero: Relative value up to which they are zero [-].
    """
    return int((values > zero * values.max(initial=1.0)).sum())


def row_factors_of_closures(mechanism: Mechanism, Phi: Array) -> Array:
    """One factor per closure, so that its longest row has length one, shape (nt, nc, 1).

    The rows of a closure share it: a planar loop has a row near zero, which a factor of its own would turn into an
    equation made of round-off. So would a closure that opens for no motion: the longest row counts as at least `ZERO`
    of its unit.

    Args:
        Phi: Closure Jacobian, turns in rad, slides in sizes of the robot [m or rad], shape (nt, nc, nv).
    """
    lengths = np.linalg.norm(Phi, axis=2)
    of_closure = np.array(closure_of_rows(mechanism), dtype=int)
    longest = np.zeros_like(lengths)
    for k in range(len(mechanism.closures)):
        longest[:, of_closure == k] = lengths[:, of_closure == k].max(axis=1, initial=0.0, keepdims=True)
    return np.asarray(1 / np.maximum(longest, ZERO * closure_units(mechanism).units))[..., None]


def _starts(mechanism: Mechanism, known: Array, random: np.random.Generator) -> Array:
    """Poses around the known poses, and poses inside the limits, alternately, shape (STARTS, nq)."""
    amplitudes = np.resize(AMPLITUDES, STARTS)[:, None] * unit_rates(mechanism)
    for joint, dofs in zip(mechanism.joints, mechanism.dof_slices, strict=True):
        if joint.kind == "free":
            amplitudes[:, dofs] = 0.0  # a base floats: its pose matters for no loop inside
    around = retract(mechanism, np.resize(known, (STARTS, mechanism.nq)), random.uniform(-amplitudes, amplitudes))
    for joint, column in zip(mechanism.joints, mechanism.q_slices, strict=True):
        if joint.limits is not None:
            around[1::2, column.start] = random.uniform(min(joint.limits), max(joint.limits), STARTS // 2)
    return around


def _polished(mechanism: Mechanism, q: Array) -> Array:
    """A pose with a least residual near a pose, by Levenberg and Marquardt, shape (nq,)."""
    from scipy.optimize import least_squares  # takes as long as the checks of a file, and few files need it

    scales, units = closure_units(mechanism).units, unit_rates(mechanism)
    weak = 1e-9 * np.eye(mechanism.nv)  # the method demands as many rows as unknowns

    def pose(x: AnyArray) -> Array:
        return np.asarray(retract(mechanism, q[None], (x * units)[None]), dtype=float)

    def rows(x: AnyArray) -> Array:
        return np.concatenate([State.at_rest(mechanism, pose(x)).gap[0] / scales, weak @ x])

    def slopes(x: AnyArray) -> Array:
        steps = np.repeat(x[None], 2 * mechanism.nv, axis=0)
        steps[: mechanism.nv] += 1e-6 * np.eye(mechanism.nv)
        steps[mechanism.nv :] -= 1e-6 * np.eye(mechanism.nv)
        gaps = State.at_rest(mechanism, np.concatenate([pose(step) for step in steps])).gap / scales
        return np.concatenate([(gaps[: mechanism.nv] - gaps[mechanism.nv :]).T / 2e-6, weak])

    result = least_squares(rows, np.zeros(mechanism.nv), jac=slopes, method="lm", max_nfev=200)
    return pose(result.x)[0]
