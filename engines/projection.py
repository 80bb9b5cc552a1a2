"""Linear algebra on the matrices of an engine, independent of any engine and model."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from loopcheck.robots.arrays import AnyArray, Array, Efforts, PositionSeries, svd

RANK_TOLERANCE = 1e-5
"""Singular values of normalized rows below this count as zero [-]: CAD models never close below 1e-7 m."""

SHORT = 0.01
"""Length relative to the longest row below which rows are no longer normalized [-]."""

LOOKED_AT = 25
"""Samples for the choice among redundant drives, so that no chosen drive passes a dead centre [-]."""

HOLDS = 0.3
"""Least determination of the motion by other redundant drives, relative to the chosen drives [-]."""

OTHERS = 3
"""Largest number of other choices of redundant drives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopMotions:
    """Possible motions of a closed loop in a pose, or in several: its drives, each by itself, and undriven motions.

    From the equations J q̇ = 0 and W q̇ = ṡ of the loops and of independent drives. D moves each drive alone, so that
    the effort on it is the power of all forces in that motion: no multiplier enters, redundant rows of J drop out, and
    the load of the other drives has no part in it.
    """

    W: Array
    """Rates of independent drives per joint velocity [-, or m per rad], shape (drives, nv)."""
    D: Array
    """Joint velocities that move a single drive at unit rate, least squares [-], shape (..., nv, drives)."""
    J_inverse: Array
    """Joint velocities that open the loops at unit rates and move no drive [rad/m or m/m], shape (..., nv, nc)."""
    Z: Array
    """Orthonormal basis of the motions that neither open a loop nor move a drive [-], shape (..., nv, undriven)."""

    def velocities(self, qd: Array) -> Array:
        """Velocities that keep the loops closed: of a motion only those of the drives and of undriven dofs are used.

        Args:
            qd: Joint velocities [m/s or rad/s], shape (..., nv).

        Returns:
            Joint velocities [m/s or rad/s], shape (..., nv).
        """
        rates = qd[..., None]
        return (self.D @ (self.W @ rates) + self.Z @ (self.Z.swapaxes(-1, -2) @ rates))[..., 0]

    def accelerations(self, qdd: Array, closure_bias: Array) -> Array:
        """Accelerations that keep the loops closed: of a motion only those of the drives are used.

        Args:
            qdd: Joint accelerations [m/s² or rad/s²], shape (..., nv).
            closure_bias: J̇ q̇ [m/s² or rad/s²], shape (..., nc).

        Returns:
            Joint accelerations, without the part of undriven dofs [m/s² or rad/s²], shape (..., nv).
        """
        return (self.D @ (self.W @ qdd[..., None]) - self.J_inverse @ closure_bias[..., None])[..., 0]

    def efforts(self, M: Array, forces: Array, S: Array, scale: Efforts) -> Array:
        """Efforts of least norm |effort / scale| that balance generalized forces on the motions of the loop.

        Along the motions Z no force can be balanced: there q̈ is such that none remains.

        Args:
            M: Mass matrix [kg, kg m or kg m²], shape (..., nv, nv).
            forces: Generalized forces M q̈ + b on the joints [N or N m], shape (..., nv, forces).
            S: Actuator velocities per joint velocity [-], shape (..., na, nv).
            scale: Reference effort of each actuator [N or N m], shape (na,).

        Returns:
            Efforts of the actuators [N or N m], shape (..., na, forces).
        """
        Z = self.Z
        forces = forces - M @ Z @ np.linalg.solve(Z.swapaxes(-1, -2) @ M @ Z, Z.swapaxes(-1, -2) @ forces)
        gear = np.linalg.norm(S, axis=-1, keepdims=True)  # taken off, lest one of 1e6 hides what the others do
        A, on_drives = (S / gear) @ self.D, self.D.swapaxes(-1, -2) @ forces
        if A.shape[-2] == A.shape[-1]:
            return np.asarray(np.linalg.solve(A.swapaxes(-1, -2), on_drives) / gear)
        Q, R = np.linalg.qr(scale[:, None] * gear * A)
        return np.asarray(scale[:, None] * (Q @ np.linalg.solve(R.swapaxes(-1, -2), on_drives)))


def loop_motions(J: Array, W: Array) -> LoopMotions:
    """Possible motions of a closed loop in a pose.

    Args:
        J: Loop-closure Jacobian [m/rad or m/m], shape (nc, nv).
        W: Rates of the drives per joint velocity [-, or m per rad], shape (drives, nv); of redundant drives those are
            taken that determine the others best in this pose.
    """
    return _Rows(J, W[independent_drives(J, W)]).motions()


def loop_motions_along(J: Array, W: Array) -> Iterator[tuple[AnyArray, LoopMotions]]:
    """Possible motions of a closed loop in several poses, at once where rank and drives are alike.

    Args:
        J: Loop-closure Jacobians [m/rad or m/m], shape (poses, nc, nv).
        W: Rates of the drives per joint velocity [-, or m per rad], shape (drives, nv); see `loop_motions`.

    Yields:
        Numbers of poses [-], shape (n,), and their motions, with arrays of shape (n, ...).
    """
    rows = _Rows(J, W)
    rank = _rank(svd(_factors(J)[..., None] * J, full_matrices=False)[1])
    alike = (rows.rank == rank + len(W)) & (rank == rank.max(initial=0))  # each drive moves by itself
    if alike.any():
        yield np.flatnonzero(alike), (rows if alike.all() else _Rows(J[alike], W)).motions()
    for k in np.flatnonzero(~alike):
        yield np.array([k]), _Rows(J[[k]], W[independent_drives(J[k], W)]).motions()


class Pose(NamedTuple):
    """A robot in a pose, and a generalized force on it."""

    J: Array
    """Loop-closure Jacobian [m/rad or m/m], shape (nc, nv)."""
    M: Array
    """Mass matrix [kg, kg m or kg m²], shape (nv, nv)."""
    force: Array
    """Generalized force on the joints [N or N m], shape (nv,)."""
    S: Array
    """Actuator velocities per joint velocity [-], shape (na, nv)."""


def balancing_efforts(poses: Sequence[Pose], W: Array, scale: Efforts) -> Array:
    """Efforts of least norm |effort / scale| that balance generalized forces, each in a pose of its own.

    Args:
        poses: The poses, with the forces, all with equal numbers of rows of the loops.
        W: Rates of drives that are independent along the motion, per joint velocity [-], shape (drives, nv).
        scale: Reference effort of each actuator [N or N m], shape (na,).

    Returns:
        Efforts of the actuators [N or N m], shape (poses, na).
    """
    J, M, force, S = (np.array(column) for column in zip(*poses, strict=True))
    efforts = np.zeros(S.shape[:2])
    for k, loop in loop_motions_along(J, W):
        efforts[k] = loop.efforts(M[k], force[k, :, None], S[k], scale)[..., 0]
    return efforts


class _Rows:
    """Rows of loops, in a pose or in several, and of drives, each scaled to one, and their singular values."""

    def __init__(self, J: Array, W: Array) -> None:
        of_drives = np.broadcast_to(1 / np.linalg.norm(W, axis=1), (*J.shape[:-2], len(W)))
        self.W, self.closures = W, J.shape[-2]
        self.factors = np.concatenate([_factors(J), of_drives], axis=-1)
        self.H = self.factors[..., None] * np.concatenate([J, np.broadcast_to(W, (*J.shape[:-2], *W.shape))], axis=-2)
        self.U, self.values, self.V_T = svd(self.H)
        self.rank = _rank(self.values)

    def motions(self) -> LoopMotions:
        """Possible motions of the loop; the rank must be the same in all poses."""
        rank, factors, nc = int(self.rank.flat[0]), self.factors[..., None, :], self.closures
        V, U_T = (x.swapaxes(-1, -2) for x in (self.V_T[..., :rank, :], self.U[..., :rank]))
        inverse = (V / self.values[..., None, :rank]) @ U_T
        # Newton's step for an inverse: motions that have nothing to do with each other are mixed by the SVD at
        # round-off of the larger, which is much for the smaller; the step leaves the square of that.
        inverse = inverse - inverse @ (self.H @ inverse - np.eye(self.H.shape[-2]))
        return LoopMotions(
            W=self.W,
            D=inverse[..., nc:] * factors[..., nc:],
            J_inverse=inverse[..., :nc] * factors[..., :nc],
            Z=self.V_T[..., rank:, :].swapaxes(-1, -2),
        )


def independent_drives(J: Array, W: Array) -> list[int]:
    """The driven coordinates to drive: as many as move independently, because more drives contradict each other.

    Pivoting chooses the drives that determine the others best. The others are left at zero effort, which is right for
    the part of the efforts that moves the robot.

    Args:
        J: Loop-closure Jacobian [m/rad or m/m], shape (nc, nv).
        W: Rates of all driven coordinates per joint velocity [-, or m per rad], shape (drives, nv).

    Returns:
        Places among the driven coordinates, ascending.
    """
    from scipy.linalg import qr

    unit_rows = W / np.linalg.norm(W, axis=1, keepdims=True)
    R, order = qr((unit_rows @ null_space(J)).T, pivoting=True, mode="r")
    return sorted(int(place) for place in order[: int(_rank(np.abs(np.diag(R))))])


def drives_along(jacobian: Callable[[Array], Array], q: PositionSeries, W: Array) -> list[int]:
    """The driven coordinates to drive all along a motion: of the best choices at its samples, the most lasting.

    Redundant drives pass their dead centres at different times; a drive cannot hold the motion at its own.

    Args:
        jacobian: Loop-closure Jacobian [m/rad or m/m], shape (nc, nv), at joint positions of shape (nq,).
        q: Joint positions at the samples [m or rad], shape (nt, nq).
        W: Rates of all driven coordinates per joint velocity [-, or m per rad], shape (drives, nv).

    Returns:
        Places among the driven coordinates, ascending.
    """
    middle = independent_drives(jacobian(q[len(q) // 2]), W)
    if len(middle) == len(W):
        return middle
    rows = _jacobians(jacobian, q)
    choices: set[tuple[int, ...]] = {tuple(middle), *(tuple(independent_drives(J, W)) for J in rows)}
    return list(max(sorted(choice for choice in choices if len(choice) == len(middle)), key=_lasting(rows, W)))


def other_drives_along(
    jacobian: Callable[[Array], Array], q: PositionSeries, W: Array, chosen: Sequence[int]
) -> tuple[tuple[int, ...], ...]:
    """Other choices of driven coordinates that hold a motion nearly as well, the most lasting first, three at most.

    Args:
        jacobian: See `drives_along`.
        q: Joint positions at the samples [m or rad], shape (nt, nq).
        W: Rates of all driven coordinates per joint velocity [-, or m per rad], shape (drives, nv).
        chosen: The chosen places among the driven coordinates.
    """
    if len(chosen) == len(W):
        return ()
    lasting = _lasting(_jacobians(jacobian, q), W)
    every = [choice for choice in combinations(range(len(W)), len(chosen)) if choice != tuple(chosen)]
    holding = [choice for choice in every if lasting(choice) > HOLDS * lasting(tuple(chosen))]
    return tuple(sorted(holding, key=lasting, reverse=True)[:OTHERS])


def _jacobians(jacobian: Callable[[Array], Array], q: PositionSeries) -> list[Array]:
    return [jacobian(q[k]) for k in np.unique(np.linspace(0, len(q) - 1, LOOKED_AT).round().astype(int))]


def _lasting(jacobians: Sequence[Array], W: Array) -> Callable[[Iterable[int]], float]:
    """Function for how well drives determine the motion where they do so least [-]."""
    unit_rows, spaces = W / np.linalg.norm(W, axis=1, keepdims=True), [null_space(J) for J in jacobians]

    def worst(choice: Iterable[int]) -> float:
        values = [np.linalg.svd(unit_rows[list(choice)] @ N, compute_uv=False) for N in spaces]
        return float(min(value.min(initial=1.0) for value in values))

    return worst


def null_space(J: Array) -> Array:
    """Orthonormal basis of the null space of a matrix [-], shape (nv, dof): of J, motions that keep the loops closed.

    Args:
        J: Loop-closure Jacobian or another matrix [m/rad or m/m], shape (nc, nv).
    """
    if not J.size:
        return np.eye(J.shape[1])
    _, values, V = svd(_factors(J)[:, None] * J)
    return V[int(_rank(values)) :].T


def _factors(J: Array) -> Array:
    """Factors that give rows length one, and zero to rows that are negligible beside the longest, (..., rows).

    The shortest get at most that of a row of `SHORT` times the longest: a short row of a loop that is modelled in space
    follows from the others, and at length one its round-off, and the gap in the loop, would enter all efforts.
    """
    length = np.linalg.norm(J, axis=-1)
    longest = length.max(axis=-1, keepdims=True, initial=0.0)
    divisor, counts = np.maximum(length, SHORT * longest), length > RANK_TOLERANCE * longest
    return np.divide(1, divisor, out=np.zeros_like(length), where=counts)


def _rank(values: Array) -> AnyArray:
    return (values > RANK_TOLERANCE).sum(axis=-1)
