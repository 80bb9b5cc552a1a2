"""Wrenches of connections, the parts that the equations of motion determine, and their comparison.

Both ways to compute them share this file, poses, and directions of dofs. None of these contains an equation of motion.
"""

from dataclasses import dataclass, replace

import numpy as np

from loopcheck.analytic.kinematics.closures import RANK_TOLERANCE
from loopcheck.analytic.kinematics.tree import Poses, axes_of, point_of
from loopcheck.robots.arrays import AnyArray, Array, svd
from loopcheck.robots.connections import Connection
from loopcheck.robots.mechanism import RigidClosure, Segment

ROUND_OFF = 1e-12
"""Largest difference of exact wrenches over the largest sum of terms of all connections [-]; smaller wrenches are 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrenches:
    """Wrenches of all connections, in their axes and about their points, moment first."""

    wrench: Array
    """[N m, N], shape (nt, connections, 6)."""
    terms: tuple[float, float] = (0.0, 0.0)
    """Largest sums of the sizes of the terms of a moment and of a force [N m, N]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniqueness:
    """Parts of the wrenches that the equations of motion determine, moments over the size of the robot."""

    null: AnyArray
    """Dimension of the null space of the equations [-], shape (nt,)."""
    components: AnyArray
    """Whether a component is unique. Shape (nt, connections, 6), boolean."""
    projectors: Array
    """Projectors on the unique functionals of each wrench [-], shape (nt, connections, 6, 6)."""

    @property
    def functionals(self) -> AnyArray:
        """Number of unique functionals of each wrench [-], shape (nt, connections)."""
        return np.rint(np.trace(self.projectors, axis1=2, axis2=3)).astype(int)

    def among(self, given: AnyArray, maps: Array | None = None) -> "Uniqueness":
        """The unique parts that given components alone determine.

        Args:
            given: Mask of the components with a value [-], shape (nt, connections, 6).
            maps: Maps of wrenches with these components to those of the connections, moments over the size of the
                robot [-], shape (nt, connections, 6, 6); by default they have the same components.
        """
        missing = ~given[..., None, :] * (np.eye(6) if maps is None else maps)
        missing = missing / np.maximum(np.linalg.norm(missing, axis=2, keepdims=True), RANK_TOLERANCE)
        lost = np.concatenate([np.eye(6) - self.projectors, missing], axis=3)
        return replace(self, components=self.components & given, projectors=projectors_beside(lost))


def projectors_beside(columns: Array) -> Array:
    """Projectors on the complement of the range of matrices [-], shape (..., 6, 6).

    Args:
        columns: Matrices with at least six columns [-], shape (..., 6, n).
    """
    U, sizes, _ = svd(columns, full_matrices=False)
    U = U * (sizes <= RANK_TOLERANCE)[..., None, :]
    return np.asarray(U @ U.swapaxes(-1, -2))


def differences(first: Wrenches, second: Wrenches, unique: Uniqueness, length: float) -> Array:
    """Differences of unique functionals [N m, N], shape (nt, connections, 6).

    Args:
        length: Size of the robot [m].
    """
    units = np.repeat([length, 1.0], 3)
    return np.asarray((unique.projectors @ ((first.wrench - second.wrench) / units)[..., None])[..., 0] * units)


def disagreement(first: Wrenches, second: Wrenches, unique: Uniqueness, length: float) -> Array:
    """Largest difference of unique functionals over the largest sum of terms, by connection [-], shape (n,).

    Args:
        first: Wrenches with the sums of their terms.
        length: Size of the robot [m].
    """
    terms, found = np.repeat(first.terms, 3), np.abs(differences(first, second, unique, length))
    relative = np.divide(found, terms, out=np.where(found == 0, 0.0, np.inf), where=terms > 0)
    return np.asarray(relative.max(axis=(0, 2), initial=0.0))


def in_axes(P: Poses, connection: Connection, wrenches: Array) -> Array:
    """Wrenches in the axes of a connection, of the shape of those in world axes.

    Args:
        wrenches: In world axes [N m, N], shape (nt, 6, any).
    """
    R_T = axes_of(P, connection.body).swapaxes(1, 2)[:, None]
    return np.asarray(R_T @ wrenches.reshape(len(wrenches), 2, 3, -1)).reshape(wrenches.shape)


def ends(P: Poses, pair: RigidClosure | Segment) -> list[tuple[int, Array, int]]:
    """Both bodies of a pair of points, with these points in W (nt, 3) and the signs of the wrench of the pair."""
    both = ((pair.body1, pair.point1, 1), (pair.body2, pair.point2, -1))
    return [(body, point_of(P, body, point), sign) for body, point, sign in both]


def pull(P: Poses, segment: Segment) -> Array:
    """Force on the first point of a segment per multiplier of its path, (nt, 3)."""
    (_, p1, _), (_, p2, _) = ends(P, segment)
    return (p1 - p2) / np.linalg.norm(p1 - p2, axis=1, keepdims=True) / segment.divisor
