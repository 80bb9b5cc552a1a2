"""Loop closures: the closure residual, its Jacobian Φ and the rate of Φ.

Rows follow `mechanism.closures`: three world directions [m] for a connect; the same and three rotations in the axes of
body 1 [rad] for a weld; one row in the unit of the dependent coordinate for a coordinate closure; one row [m] for the
length of a path.
"""

from itertools import pairwise
from typing import assert_never

import numpy as np

from loopcheck.analytic.kinematics.tree import Poses, Twists, axes_of, cross, poses, skew, twist_matrices
from loopcheck.robots.arrays import AnyArray, Array, PositionSeries, VelocitySeries, svd
from loopcheck.robots.mechanism import (
    WORLD,
    Closure,
    ConnectClosure,
    Coordinate,
    CoordinateClosure,
    Mechanism,
    PathClosure,
    WeldClosure,
    pairs_of_points,
)
from loopcheck.robots.size import resolved_part

RANK_TOLERANCE = 1e-5
"""Singular values of normalized rows below this count as zero [-]: CAD models never close below 1e-7 m.

So do rows that are shorter than this fraction of the longest row.
"""
SHORT = 0.01
"""Length relative to the longest row below which rows are no longer normalized [-]."""


WELL_CONDITIONED = 1e4
"""Largest condition number of normalized rows for normal equations [-]: no singular value is near the tolerance.

The condition number of the normal equations is its square; with a refinement step they lose no more digits than an
orthogonal method.
"""


def closure_residual(mechanism: Mechanism, body_poses: Poses, q: AnyArray) -> AnyArray:
    """Opening of the loops, φ(q) (Kordjazi and Akbarzadeh 2011, equation (2)).

    Args:
        body_poses: Poses at q; may be complex.
        q: Joint positions [m or rad], shape (nt, nq).

    Returns:
        Residual [m or rad], shape (nt, nc).
    """
    rows = [np.zeros((len(q), 0), q.dtype)]
    gaps = _gaps(mechanism, body_poses)
    for closure, pairs in zip(mechanism.closures, _places_of_pairs(mechanism), strict=True):
        match closure:
            case CoordinateClosure():
                follower = _offset(mechanism, q, closure.follower)
                rows.append((follower - _polynomial(mechanism, q, closure, order=0))[:, None])
            case ConnectClosure():
                rows.append(gaps[pairs.start])
            case WeldClosure():
                R1, R2 = axes_of(body_poses, closure.body1), axes_of(body_poses, closure.body2)
                rows += [gaps[pairs.start], _turn(R1.swapaxes(1, 2) @ R2 @ closure.rotation.T)]
            case PathClosure():
                length = closure.length if closure.slide is None else q[:, mechanism.q_slices[closure.slide]]
                rows.append((_shares(closure) @ _distances(gaps[pairs]))[:, None] - length)
            case _:
                assert_never(closure)
    return np.concatenate(rows, axis=1)


def _turn(E: AnyArray) -> AnyArray:
    """Vector of a rotation θ about its axis: sin θ [-], and 2 − sin θ beyond a quarter turn, shape (nt, 3).

    The sine alone vanishes at half a turn too, where a weld is open.

    Args:
        E: Rotations [-], shape (nt, 3, 3).
    """
    turn = np.stack([E[:, 2, 1] - E[:, 1, 2], E[:, 0, 2] - E[:, 2, 0], E[:, 1, 0] - E[:, 0, 1]], axis=1) / 2
    cosine = (np.trace(E.real, axis1=1, axis2=2) - 1) / 2
    for t in np.flatnonzero(cosine < 0):
        symmetric = (E[t].real + E[t].real.T) / 2 - cosine[t] * np.eye(3)  # (1 − cos θ) times the dyad of the axis
        axis = symmetric[:, int(np.argmax(np.diag(symmetric)))]
        sine = turn[t].real @ axis / np.linalg.norm(axis)
        turn[t] = np.copysign(2 - abs(sine), sine) * axis / np.linalg.norm(axis)
    return turn


def closure_jacobian(mechanism: Mechanism, body_poses: Poses, K: AnyArray, q: AnyArray) -> AnyArray:
    """Derivative of the closure residual with respect to the joint velocities' directions, Φ (equation (3)).

    The rows of a weld's rotation hold for a closed weld.

    Args:
        body_poses: Poses at q; may be complex.
        K: Twist of each body per joint velocity [-, m or 1/m], shape (nt, nb, 6, nv).
        q: Joint positions [m or rad], shape (nt, nq).

    Returns:
        Φ [m/rad or m/m], shape (nt, nc, nv).
    """
    nt, nv = len(q), mechanism.nv
    rows = [np.zeros((nt, 0, nv))]
    apart, gaps = _apart(mechanism, body_poses, K), _gaps(mechanism, body_poses)
    for closure, pairs in zip(mechanism.closures, _places_of_pairs(mechanism), strict=True):
        match closure:
            case CoordinateClosure():
                slope = _polynomial(mechanism, q, closure, order=1)
                follower, leader = _rates_of_ends(mechanism, closure)
                rows.append((follower - slope[:, None] * leader)[:, None])
            case ConnectClosure():
                rows.append(apart[pairs.start])
            case WeldClosure():
                R1 = axes_of(body_poses, closure.body1)
                turning = _angular(K, closure.body2) - _angular(K, closure.body1)
                rows += [apart[pairs.start], R1.swapaxes(1, 2) @ turning]
            case PathClosure():
                row = np.einsum("s,stk,stkv->tv", _shares(closure), _directions(gaps[pairs]), apart[pairs])
                if closure.slide is not None:
                    row[:, mechanism.dof_slices[closure.slide]] -= 1
                rows.append(row[:, None])
            case _:
                assert_never(closure)
    return np.concatenate(rows, axis=1)


def closure_jacobian_rate(
    mechanism: Mechanism, body_poses: Poses, moving: Twists, q: PositionSeries, qd: VelocitySeries
) -> Array:
    """Time derivative of Φ while the loops stay closed.

    Returns:
        Rate of Φ [m/rad/s or 1/s], shape (nt, nc, nv).
    """
    nt, nv = len(q), mechanism.nv
    rows = [np.zeros((nt, 0, nv))]
    apart, gaps = _apart(mechanism, body_poses, moving.K), _gaps(mechanism, body_poses)
    apart_rate = _apart_rate(mechanism, body_poses, moving)
    for closure, pairs in zip(mechanism.closures, _places_of_pairs(mechanism), strict=True):
        match closure:
            case CoordinateClosure():
                _, leader = _rates_of_ends(mechanism, closure)
                slope_rate = _polynomial(mechanism, q, closure, order=2) * (qd @ leader)
                rows.append((-slope_rate[:, None] * leader)[:, None])
            case ConnectClosure():
                rows.append(apart_rate[pairs.start])
            case WeldClosure():
                # the turning of R1 multiplies a relative velocity, which is zero for all motions that keep the weld
                R1 = axes_of(body_poses, closure.body1)
                turning = _angular(moving.K_dot, closure.body2) - _angular(moving.K_dot, closure.body1)
                rows += [apart_rate[pairs.start], R1.swapaxes(1, 2) @ turning]
            case PathClosure():
                u, rates = _directions(gaps[pairs]), apart[pairs] @ qd[..., None]
                across = rates[..., 0] - u * (u[..., None, :] @ rates)[..., 0]
                terms = ((u, apart_rate), (across / _distances(gaps[pairs])[..., None], apart))
                parts = [np.einsum("s,stk,stkv->tv", _shares(closure), along, of[pairs]) for along, of in terms]
                rows.append((parts[0] + parts[1])[:, None])
            case _:
                assert_never(closure)
    return np.concatenate(rows, axis=1)


def _places_of_pairs(mechanism: Mechanism) -> list[slice]:
    """Places of the pairs of points of each closure among those of all."""
    ends = np.cumsum([0, *(len(pairs_of_points(closure)) for closure in mechanism.closures)])
    return [slice(begin, end) for begin, end in pairwise(ends.tolist())]


def _shares(path: PathClosure) -> Array:
    """Shares of the straight parts of a path in its length [-], shape (segments,)."""
    return np.array([1 / segment.divisor for segment in path.segments])


def _gaps(mechanism: Mechanism, body_poses: Poses) -> AnyArray:
    """Vector from the second to the first point of each pair in W, (n, nt, 3)."""
    points = _points(mechanism, body_poses)
    return (points[:, 0] - points[:, 1]).swapaxes(0, 1)


def _distances(gaps: AnyArray) -> AnyArray:
    """Lengths of vectors, shape (...,): not norm(), which is not holomorphic."""
    return np.sqrt((gaps**2).sum(axis=-1))


def _directions(gaps: AnyArray) -> AnyArray:
    return gaps / _distances(gaps)[..., None]


def _apart(mechanism: Mechanism, body_poses: Poses, K: AnyArray) -> AnyArray:
    """Velocity of the first point of each pair relative to the second per joint velocity, (n, nt, 3, nv)."""
    body, _, is_moved = mechanism.stacked.ends
    arm = _points(mechanism, body_poses) - body_poses.c[:, body]
    rows = is_moved[..., None] * (K[:, body, 3:] - skew(arm) @ K[:, body, :3])
    return (rows[:, 0] - rows[:, 1]).swapaxes(0, 1)


def _apart_rate(mechanism: Mechanism, body_poses: Poses, moving: Twists) -> AnyArray:
    """Rate of `_apart`, (n, nt, 3, nv)."""
    body, _, is_moved = mechanism.stacked.ends
    arm = _points(mechanism, body_poses) - body_poses.c[:, body]
    arm_dot = cross(moving.w[:, body], arm)
    K, K_dot = moving.K[:, body], moving.K_dot[:, body]
    rows = is_moved[..., None] * (K_dot[..., 3:, :] - skew(arm) @ K_dot[..., :3, :] - skew(arm_dot) @ K[..., :3, :])
    return (rows[:, 0] - rows[:, 1]).swapaxes(0, 1)


def _points(mechanism: Mechanism, body_poses: Poses) -> AnyArray:
    """Both points of each pair in W, (nt, 2, n, 3)."""
    body, points, is_moved = mechanism.stacked.ends
    in_world = body_poses.p[:, body] + (body_poses.R[:, body] @ points[..., None])[..., 0]
    return np.where(is_moved, in_world, points)


def _angular(K: AnyArray, body: int) -> AnyArray:
    return np.zeros_like(K[:, 0, :3]) if body == WORLD else K[:, body, :3]


def _offset(mechanism: Mechanism, q: AnyArray, coordinate: Coordinate) -> AnyArray:
    """A coordinate relative to the rest positions of all joints, (nt,)."""
    return (mechanism.values_of((coordinate,), q) - mechanism.values_of((coordinate,), mechanism.rest_position[None]))[
        :, 0
    ]


def _polynomial(mechanism: Mechanism, q: AnyArray, closure: CoordinateClosure, *, order: int) -> AnyArray:
    """The polynomial of a coordinate closure, or its first or second derivative, (nt,)."""
    if closure.leader is None:
        return np.full(len(q), closure.coefficients[0] if order == 0 else 0.0)
    polynomial = np.polynomial.Polynomial(closure.coefficients).deriv(order)
    return polynomial(_offset(mechanism, q, closure.leader))


def _rates_of_ends(mechanism: Mechanism, closure: CoordinateClosure) -> tuple[Array, Array]:
    """Rates of the follower and of the leader per joint velocity, each (nv,)."""
    leader = np.zeros(mechanism.nv) if closure.leader is None else mechanism.rates_of((closure.leader,))[0]
    return mechanism.rates_of((closure.follower,))[0], leader


def closure_names(mechanism: Mechanism) -> tuple[str, ...]:
    """The closure that each row of Φ belongs to."""
    return tuple(mechanism.closures[k].name for k in closure_of_rows(mechanism))


def closure_of_rows(mechanism: Mechanism) -> list[int]:
    """Index of the closure that each row of Φ belongs to, shape (nc,)."""
    return [k for k, closure in enumerate(mechanism.closures) for _ in range(number_of_rows(closure))]


def number_of_rows(closure: Closure) -> int:
    """Number of rows of Φ of a closure."""
    match closure:
        case CoordinateClosure() | PathClosure():
            return 1
        case ConnectClosure():
            return 3
        case WeldClosure():
            return 6
        case _:
            assert_never(closure)


def solve_dependent(Phi_u: Array, right: Array) -> Array:
    """Dependent rates from the closure equations Φᵘ x + right = 0, with redundant rows (equation (5)).

    Args:
        Phi_u: Columns of Φ of the dependent dofs [m/rad or m/m], shape (nt, nc, nu).
        right: Right-hand side [unit of Φ times that of the rates], shape (nt, nc, any).

    Returns:
        The rates, least squares and of least norm for redundant rows or columns, shape (nt, nu, any).
    """
    return DependentRates(Phi_u)(right)


class DependentRates:
    """Solves the closure equations Φᵘ x + right = 0 for any number of right-hand sides, as `solve_dependent` does.

    By normal equations and a step of iterative refinement. If the condition is far below the inverse root of the
    round-off, this is as accurate as a singular value decomposition and several times faster; otherwise by such a
    decomposition.
    """

    def __init__(self, Phi_u: Array, units: Array | None = None) -> None:
        """Scale the equations, and invert the well conditioned matrices.

        Args:
            Phi_u: Columns of Φ of the dependent dofs [m/rad or m/m], shape (nt, nc, nu).
            units: Reference rate of each dof [m or rad], shape (nu,); by default 1.
        """
        self._units = np.ones(Phi_u.shape[2]) if units is None else units
        Phi_u = Phi_u * self._units
        self._factors = row_factors(Phi_u)
        self._rows = self._factors * Phi_u
        self._is_wide = Phi_u.shape[1] < Phi_u.shape[2]
        self._inverse, self.is_regular = self._normal_inverse()
        self._pseudoinverse = (
            self._rows.swapaxes(1, 2)[:0] if self.is_regular.all() else pseudo_inverse(self._rows[~self.is_regular])
        )

    def __call__(self, right: Array) -> Array:
        """The rates, least squares and of least norm for redundant rows or columns.

        Args:
            right: Right-hand side [unit of Φ times that of the rates], shape (nt, nc, any).

        Returns:
            Rates, shape (nt, nu, any).
        """
        scaled = self._factors * right
        if self.is_regular.all():
            return -self._units[:, None] * self._refined(self._rows, scaled)
        rates = np.zeros((len(self._rows), self._rows.shape[2], scaled.shape[2]))
        rates[self.is_regular] = -self._refined(self._rows[self.is_regular], scaled[self.is_regular])
        rates[~self.is_regular] = -self._pseudoinverse @ scaled[~self.is_regular]
        return self._units[:, None] * rates

    def _normal_inverse(self) -> tuple[Array, AnyArray]:
        """Inverses of the normal equations' matrices in well conditioned samples, and their mask (nt,)."""
        rows, columns = self._rows, self._rows.swapaxes(1, 2)
        normal: Array = rows @ columns if self._is_wide else columns @ rows
        try:
            inverse = np.linalg.inv(normal).astype(np.float64, copy=False)
        except np.linalg.LinAlgError:  # one of them is singular to the last digit
            return normal[:0], np.zeros(len(normal), dtype=bool)
        condition = np.linalg.norm(normal, axis=(1, 2)) * np.linalg.norm(inverse, axis=(1, 2))
        is_regular = condition < WELL_CONDITIONED**2  # of the normal equations, so the square; false of NaN
        return inverse if is_regular.all() else inverse[is_regular], is_regular

    def _refined(self, rows: Array, right: Array) -> Array:
        """Least squares or least norm in well conditioned samples."""
        first = self._solved(rows, right)
        return first + self._solved(rows, right - rows @ first)

    def _solved(self, rows: Array, right: Array) -> Array:
        columns = rows.swapaxes(1, 2)
        return columns @ (self._inverse @ right) if self._is_wide else self._inverse @ (columns @ right)


def pseudo_inverse(rows: Array) -> Array:
    """Pseudo-inverse of matrices with rows of length one, by their rank.

    Newton's step for an inverse follows: the SVD leaves round-off of the largest entry in the smallest, which is large
    if slides and turns differ by a thousand, and the step leaves the square of that.

    Args:
        rows: Matrices [any unit], shape (..., rows, columns).

    Returns:
        Their pseudo-inverses [1/unit], shape (..., columns, rows).
    """
    U, values, V_T = svd(rows, full_matrices=False)
    largest = values.max(axis=-1, keepdims=True, initial=0.0)
    inverted = np.divide(1, values, out=np.zeros_like(values), where=values > RANK_TOLERANCE * largest)
    inverse = V_T.swapaxes(-1, -2) @ (inverted[..., None] * U.swapaxes(-1, -2))
    return inverse - inverse @ (rows @ inverse - np.eye(rows.shape[-2]))


def closure_jacobian_at(mechanism: Mechanism, q: AnyArray) -> AnyArray:
    """Φ at joint positions alone (equation (3)), the part that the file resolves (`loopcheck.robots.size`).

    Args:
        q: Joint positions [m or rad], shape (nt, nq); may be complex.

    Returns:
        Φ [m/rad or m/m], shape (nt, nc, nv).
    """
    body_poses = poses(mechanism, q)
    Phi = closure_jacobian(mechanism, body_poses, twist_matrices(mechanism, body_poses), q)
    P = resolved_part(mechanism, Phi.real)
    return Phi if P is None else P @ Phi


def null_space(Phi: Array) -> Array:
    """Orthonormal basis of the joint velocities that keep the loops closed in a pose; redundant rows drop out by rank.

    Args:
        Phi: Closure Jacobian [m/rad or m/m], shape (nc, nv).

    Returns:
        Basis [-], shape (nv, dof): its number of columns is that of the degrees of freedom.
    """
    if not Phi.size:
        return np.eye(Phi.shape[1])
    _, values, V_T = svd(row_factors(Phi) * Phi)
    return V_T[int((values > RANK_TOLERANCE).sum()) :].T


def row_factors(rows: Array) -> Array:
    """Factors that give rows length one before a rank is judged, so that large rows do not hide small rows.

    The shortest get at most the factor of a row of `SHORT` times the longest. If the plane of a loop stands nearly
    square to an axis of the world, the row along that axis is short and follows from the other rows: at length one its
    round-off, and the gap that a model leaves in its loops, would enter every solution.

    Args:
        rows: Matrices [any unit], shape (..., rows, columns).

    Returns:
        Factor of each row, zero for a row that is negligible beside the longest [1/unit], shape (..., rows, 1).
    """
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    longest = length.max(axis=-2, keepdims=True, initial=0.0)
    divisor, counts = np.maximum(length, SHORT * longest), length > RANK_TOLERANCE * longest
    return np.divide(1, divisor, out=np.zeros_like(length), where=counts)
