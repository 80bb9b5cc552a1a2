"""Constant limits of motors, seen at the joints: safe boxes, and joint limits that exceed a motor's.

Motor efforts are τ = A τ_x with A = T⁻ᵀ, motor rates ẏ = T ẋ: both are rows that joint-side vectors must keep within
limits, so the same functions serve efforts and speeds. More motors than joints give the efforts Tᵀ τ of a box, a
zonotope: each of its facets lies along n − 1 motors; its normal is a row, with the largest sum of all motors along it
as limits.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import LinearConstraint, minimize

from loopcheck.analytic.kinematics.closures import RANK_TOLERANCE
from loopcheck.analytic.transmission.joint_space import JointSpace
from loopcheck.analytic.transmission.terms import joint_terms
from loopcheck.robots.arrays import Array, svd


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """Limits of each joint, independent of each other."""

    low: Array
    """[N or N m, or per s], shape (n,)."""
    high: Array
    """[N or N m, or per s], shape (n,)."""


def effort_ranges(space: JointSpace, actuators: Sequence[int]) -> Box:
    """Effort limits of actuators; infinite without limits."""
    limits = [space.mechanism.actuators[k].limits for k in actuators]
    return Box(
        low=np.array([max((limit.low for limit in each), default=-np.inf) for each in limits]),
        high=np.array([min((limit.high for limit in each), default=np.inf) for each in limits]),
    )


def joint_ranges(space: JointSpace) -> Box:
    """Effort limits at the shared joints of a serial model; infinite without an actuator.

    Args:
        space: The serial model and its shared joints.
    """
    ranges = effort_ranges(space, range(space.mechanism.na))
    T_T = joint_terms(space, space.start[None]).transmission[0].T
    sums = most(T_T, ranges)
    driven = np.abs(T_T).max(axis=1, initial=0.0) > 0
    return Box(low=np.where(driven, sums.low, -np.inf), high=np.where(driven, sums.high, np.inf))


@dataclass(frozen=True, slots=True, kw_only=True)
class Facets:
    """Rows that joint-side vectors must keep within limits, at each pose; a row of zeros has no effect."""

    rows: Array
    """[-, or ratios of the units], shape (nt, m, n)."""
    low: Array
    """[N or N m, or per s], shape (nt, m)."""
    high: Array
    """[N or N m, or per s], shape (nt, m)."""


def effort_facets(T: Array, limits: Box) -> Facets:
    """Joint efforts available from motors within limits.

    Args:
        T: Transmission, of at least as many motors as joints [-, or ratios of the units], shape (nt, na, n).
        limits: Of the motors.
    """
    nt, na, n = T.shape
    if na == n:
        low, high = (np.broadcast_to(side, (nt, na)) for side in (limits.low, limits.high))
        return Facets(rows=np.asarray(np.linalg.inv(T).swapaxes(1, 2)), low=low, high=high)
    along = np.array(list(combinations(range(na), n - 1)), dtype=int)
    spanned = T[:, along]  # (nt, m, n - 1, n)
    values, directions = svd(spanned)[1:]
    scale = np.abs(T).max(axis=(1, 2))[:, None]
    is_facet = values[..., -1] > RANK_TOLERANCE * scale if n > 1 else np.ones((nt, 1), dtype=bool)
    rows = np.where(is_facet[..., None], directions[..., -1, :], 0.0)
    given = rows @ T.swapaxes(1, 2)  # effort along the normal per effort of each motor, (nt, m, na)
    up, down = given * limits.high, given * limits.low
    high, low = np.maximum(up, down).sum(axis=2), np.minimum(up, down).sum(axis=2)
    return Facets(rows=rows, low=np.where(is_facet, low, -1.0), high=np.where(is_facet, high, 1.0))


def largest_box(rows: Array, low: Array, high: Array) -> Box:
    """The box of largest volume that keeps within the limits of all rows.

    With A⁺ and A⁻ the parts of the rows above and below zero, a box from −l to u keeps within them if A⁺u + A⁻l ≤ high
    and A⁻u + A⁺l ≤ −low. Both are linear, and the logarithm of the volume is concave: the maximum is unique.

    Args:
        rows: Motor-side quantity per joint-side quantity, the rows of all poses [-, or ratios of the units], shape (m,
            n).
        low: Lowest value of each row, below zero [N or N m, or per s], shape (m,).
        high: Highest value of each row, above zero [N or N m, or per s], shape (m,).
    """
    n = rows.shape[1]
    bounded = np.isfinite(np.concatenate([high, -low]))
    up, down = np.maximum(rows, 0), np.maximum(-rows, 0)
    A = np.concatenate([np.hstack([up, down]), np.hstack([down, up])])[bounded]
    b = np.concatenate([high, -low])[bounded]
    A = A / b[:, None]  # of u and l, each at most 1
    alone = 1 / np.maximum(A.max(axis=0), 1e-300)
    A = A * alone  # variables are parts of what each side may be alone
    scale = (alone[:n] + alone[n:]) / 2

    def volume(z: Array) -> float:
        return -float(np.log((z[:n] * alone[:n] + z[n:] * alone[n:]) / scale).sum())

    def slope(z: Array) -> Array:
        side = z[:n] * alone[:n] + z[n:] * alone[n:]
        return np.asarray(-np.concatenate([alone[:n] / side, alone[n:] / side]))

    if n == 1:
        return Box(low=-alone[n:], high=alone[:n])
    solution = minimize(
        volume,
        np.full(2 * n, 0.9 / n),
        jac=slope,
        method="SLSQP",
        bounds=[(1e-9, 1.0)] * (2 * n),
        constraints=LinearConstraint(_corners(A), -np.inf, 1.0),
        options={"ftol": 1e-12, "maxiter": 300},
    )
    z = solution.x / max(1.0, float((A @ solution.x).max()))  # to the inside of round-off
    return Box(low=-z[n:] * alone[n:], high=z[:n] * alone[:n])


def largest_alone(rows: Array, low: Array, high: Array) -> Box:
    """Range of each joint-side quantity while the others are zero.

    Args:
        rows: Motor-side quantity per joint-side quantity [-, or ratios of the units], shape (m, n).
        low: Lowest value of each row, below zero [N or N m, or per s], shape (m,).
        high: Highest value of each row, above zero [N or N m, or per s], shape (m,).
    """
    with np.errstate(divide="ignore"):
        up = np.where(rows > 0, high[:, None] / rows, np.where(rows < 0, low[:, None] / rows, np.inf))
        down = np.where(rows > 0, low[:, None] / rows, np.where(rows < 0, high[:, None] / rows, -np.inf))
    return Box(low=down.max(axis=0), high=up.min(axis=0))


def most(rows: Array, box: Box) -> Box:
    """The extreme of each motor-side quantity in a box of joint-side quantities.

    Args:
        rows: Motor-side quantity per joint-side quantity [-, or ratios of the units], shape (m, n).
        box: Limits of the joints.
    """
    up, down = np.maximum(rows, 0), np.maximum(-rows, 0)
    return Box(low=_sum(up, box.low) - _sum(down, box.high), high=_sum(up, box.high) - _sum(down, box.low))


def _sum(weights: Array, ends: Array) -> Array:
    """Weighted sums in which values of zero weight do not count, even if infinite."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(weights > 0, weights * ends, 0.0).sum(axis=1))


def _corners(A: Array) -> Array:
    """Rows that may bind: rows that no other row exceeds in every entry."""
    order = np.argsort(-A.sum(axis=1))
    kept = A[order[:1]]
    for k in order[1:]:
        if not (kept >= A[k]).all(axis=1).any():
            kept = np.concatenate([kept, A[[k]]])
    return kept
