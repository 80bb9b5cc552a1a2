"""A closed mechanism as functions of its joint positions: its transmission, and the missing terms of its serial model.

This needs NumPy alone: `loopcheck serial` writes it beside the numbers of a mechanism, so that the two together are a
module of its own. Functions are Chebyshev series in the joint positions, valid within the box of their fit.
"""

from dataclasses import dataclass

import numpy as np
from numpy.polynomial.chebyshev import chebder, chebvander
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class JointMap:
    """Functions of the n joint positions x of a closed mechanism and its serial model.

    Positions are arrays of shape (nt, n) in rad or m. Efforts at the joints are Tᵀ times those of the na motors.
    """

    joints: tuple[str, ...]
    """Names of the joints, in the order of x."""
    motors: tuple[str, ...]
    """Names of the motors."""
    low: NDArray[np.float64]
    """Lowest joint positions of the box [m or rad], shape (n,)."""
    high: NDArray[np.float64]
    """Highest joint positions of the box [m or rad], shape (n,)."""
    coefficients: NDArray[np.float64]
    """Of all functions, by the degrees in each joint [any unit], shape (degree + 1, ..., fields)."""

    def motor_positions(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Positions of the motors.

        Args:
            x: Joint positions [m or rad], shape (nt, n).

        Returns:
            Positions [m or rad], shape (nt, na).
        """
        return self._field(x, 0)

    def transmission(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rate of each motor per rate of each joint, T.

        Args:
            x: Joint positions [m or rad], shape (nt, n).

        Returns:
            T [-, or ratios of the units], shape (nt, na, n).
        """
        return self._field(x, 1).reshape(len(x), len(self.motors), len(self.joints))

    def joint_efforts(self, x: NDArray[np.float64], tau: NDArray[np.float64]) -> NDArray[np.float64]:
        """Efforts at the joints that motors give.

        Args:
            x: Joint positions [m or rad], shape (nt, n).
            tau: Efforts of the motors [N or N m], shape (nt, na).

        Returns:
            Efforts [N or N m], shape (nt, n).
        """
        return np.einsum("tan,ta->tn", self.transmission(x), tau)

    def motor_efforts(self, x: NDArray[np.float64], tau: NDArray[np.float64]) -> NDArray[np.float64]:
        """Efforts of the motors that give efforts at the joints; of least norm if there are more motors.

        Args:
            x: Joint positions [m or rad], shape (nt, n).
            tau: Efforts at the joints [N or N m], shape (nt, n).

        Returns:
            Efforts [N or N m], shape (nt, na).
        """
        return np.einsum("tna,tn->ta", np.linalg.pinv(self.transmission(x)), tau)

    def armature(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Inertia that the serial model lacks, of rotors and rods.

        Args:
            x: Joint positions [m or rad], shape (nt, n).

        Returns:
            Matrix to add to its mass matrix [kg, kg m or kg m²], shape (nt, n, n).
        """
        return self._square(self._field(x, 2))

    def damping(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Damping that the serial model lacks.

        Args:
            x: Joint positions [m or rad], shape (nt, n).

        Returns:
            Matrix to add to its damping [N s/m, N s or N m s/rad], shape (nt, n, n).
        """
        return self._square(self._field(x, 3))

    def force(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Missing effort of the serial model at rest, from weights and springs.

        Args:
            x: Joint positions [m or rad], shape (nt, n).

        Returns:
            Efforts to add to those of the serial model [N or N m], shape (nt, n).
        """
        return self._field(x, 4)

    def missing_efforts(
        self, x: NDArray[np.float64], xd: NDArray[np.float64], xdd: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Joint efforts of the closed mechanism for a motion, less those of the serial model.

        Args:
            x: Joint positions [m or rad], shape (nt, n).
            xd: Joint velocities [m/s or rad/s], shape (nt, n).
            xdd: Joint accelerations [m/s² or rad/s²], shape (nt, n).

        Returns:
            Efforts to add to those of the serial model [N or N m], shape (nt, n).
        """
        M = self.armature(x)
        slopes = [self._square(self._field(x, 2, along=k)) for k in range(len(self.joints))]
        M_dot = sum(slope * xd[:, k, None, None] for k, slope in enumerate(slopes))
        inertial = np.einsum("tij,tj->ti", M, xdd) + np.einsum("tij,tj->ti", M_dot, xd)
        inertial -= np.stack([np.einsum("ti,tij,tj->t", xd, slope, xd) for slope in slopes], axis=1) / 2
        return inertial + np.einsum("tij,tj->ti", self.damping(x), xd) + self.force(x)

    def _square(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        n = len(self.joints)
        return values.reshape(len(values), n, n)

    def _field(self, x: NDArray[np.float64], which: int, along: int | None = None) -> NDArray[np.float64]:
        """A function, or its derivative along a joint, shape (nt, entries)."""
        na, n = len(self.motors), len(self.joints)
        ends = np.cumsum([0, na, na * n, n * n, n * n, n])
        coefficients = self.coefficients[..., ends[which] : ends[which + 1]]
        x = np.asarray(x, dtype=np.float64)
        half = (self.high - self.low) / 2
        u = (x - (self.low + self.high) / 2) / half
        if u.size and np.abs(u).max() > 1 + 1e-9:
            k = int(np.abs(u).max(axis=0).argmax())
            far = x[np.abs(u[:, k]).argmax(), k]
            raise ValueError(f"{self.joints[k]}: must be within {self.low[k]:.6g} to {self.high[k]:.6g}, got {far:.6g}")
        if along is not None:
            coefficients = chebder(coefficients, axis=along) / half[along]
        values = coefficients
        for k in range(n):
            basis = chebvander(u[:, k], values.shape[0 if k == 0 else 1] - 1)
            values = np.einsum("tk,k...->t...", basis, values) if k == 0 else np.einsum("tk,tk...->t...", basis, values)
        return values
