"""A state of a mechanism, and its kinematics."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from loopcheck.analytic.kinematics.closing import allowed, loop_gaps
from loopcheck.analytic.kinematics.closures import (
    DependentRates,
    closure_jacobian,
    closure_jacobian_rate,
    closure_residual,
)
from loopcheck.analytic.kinematics.tree import Poses, Twists, poses, twist_matrices, twists
from loopcheck.robots.arrays import AnyArray, Array, VelocitySeries
from loopcheck.robots.errors import LoopClosureError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.size import resolved_part, unit_rates

CLOSED = 1e-9
"""Largest gap of the loops [m or rad], and of their rates relative to the velocities [-]."""
BY_POSITION: tuple[str, ...] = ("poses", "gap", "K", "Phi", "resolved", "every_Phi", "_solvers")
"""Quantities that do not depend on velocities."""


@dataclass(frozen=True, kw_only=True, eq=False)  # without slots: what follows is kept in its dictionary
class State:
    """Positions and velocities of a mechanism; derived quantities are computed at the first access and kept."""

    mechanism: Mechanism
    q: AnyArray
    """Joint positions [m or rad], shape (nt, nq); may be complex, to differentiate quantities of positions alone."""
    qd: Array
    """Joint velocities [m/s or rad/s], shape (nt, nv)."""

    @classmethod
    def at_rest(cls, mechanism: Mechanism, q: AnyArray) -> Self:
        """A state without velocities.

        Args:
            q: Joint positions [m or rad], shape (nt, nq); may be complex.
        """
        return cls(mechanism=mechanism, q=q, qd=np.zeros((len(q), mechanism.nv)))

    @cached_property
    def poses(self) -> Poses:
        """Poses of all bodies and joints in W."""
        return poses(self.mechanism, self.q)

    @cached_property
    def gap(self) -> AnyArray:
        """Closure residual [m or rad], shape (nt, nc)."""
        return closure_residual(self.mechanism, self.poses, self.q)

    @cached_property
    def K(self) -> AnyArray:
        """Twist of each body per joint velocity [-, m or 1/m], shape (nt, nb, 6, nv)."""
        return twist_matrices(self.mechanism, self.poses)

    @cached_property
    def twists(self) -> Twists:
        """Twists of all bodies in W."""
        return twists(self.mechanism, self.poses, self.qd, self.K)

    @cached_property
    def every_Phi(self) -> AnyArray:
        """Closure Jacobian with the noise of a rounded file [m/rad or m/m], shape (nt, nc, nv)."""
        return closure_jacobian(self.mechanism, self.poses, self.K, self.q)

    @cached_property
    def resolved(self) -> Array | None:
        """Projector on the closure equations that the file resolves, shape (nt, nc, nc); None if nothing limits them.

        Constant for derivatives by the complex step.
        """
        return resolved_part(self.mechanism, self.every_Phi.real) if self.mechanism.closing.noise else None

    @cached_property
    def Phi(self) -> AnyArray:
        """Closure Jacobian, as far as the file resolves it [m/rad or m/m], shape (nt, nc, nv)."""
        return self.every_Phi if self.resolved is None else self.resolved @ self.every_Phi

    @cached_property
    def every_Phi_dot(self) -> Array:
        """Rate of `every_Phi` while the loops stay closed [m/rad/s or 1/s], shape (nt, nc, nv)."""
        return closure_jacobian_rate(self.mechanism, self.poses, self.twists, self.q, self.qd)

    @cached_property
    def Phi_dot(self) -> Array:
        """Rate of the closure Jacobian, as far as the file resolves it [m/rad/s or 1/s], shape (nt, nc, nv)."""
        return self.every_Phi_dot if self.resolved is None else self.resolved @ self.every_Phi_dot

    @property
    def resolved_gap(self) -> Array:
        """Closure residual as far as the file resolves it: least squares make it zero [m or rad], shape (nt, nc).

        Loops that close exactly make all of it zero, and no Jacobian is needed.
        """
        is_exact = not self.mechanism.closing.accuracy
        return self.gap if is_exact or self.resolved is None else (self.resolved @ self.gap[..., None])[..., 0]

    @property
    def residual(self) -> Array:
        """Largest closure residual that the digits of the file do not explain [m or rad], shape (nt,)."""
        left = np.abs(self.resolved_gap).max(axis=1, initial=0.0)
        if not self.mechanism.closing.accuracy or self.resolved is None:
            return left
        is_open = loop_gaps(self.mechanism, self.gap).max(axis=1) > allowed(0.0, self.mechanism)
        return np.where(is_open, np.abs(self.gap).max(axis=1), left)

    def want_closed(self) -> None:
        """Raise unless the loops and their rates are closed.

        Raises:
            LoopClosureError: If they are open; `time` is the number of the sample.
        """
        rates = (self.Phi @ self.qd[..., None])[..., 0] / (1 + np.abs(self.qd).max(axis=1, initial=0.0))[:, None]
        for name, gaps in (("loops", self.residual[:, None]), ("rates of the loops", rates)):
            size = np.abs(gaps).max(axis=1, initial=0.0)
            worst = int(size.argmax())
            if size[worst] > CLOSED:
                raise LoopClosureError(
                    f"{self.mechanism.model.path}: {name} must be closed to {CLOSED:g}, got {size[worst]:.3g} at "
                    f"sample {worst}",
                    residual=float(size[worst]),
                    tolerance=CLOSED,
                    time=float(worst),
                )

    def dependent_rates(self, independent: AnyArray) -> DependentRates:
        """Rates of all other dofs from the closures.

        Args:
            independent: Mask of the independent dofs [-], shape (nv,).
        """
        solvers, key = self._solvers, independent.tobytes()
        if key not in solvers:
            solvers[key] = DependentRates(self.Phi[..., ~independent], unit_rates(self.mechanism)[~independent])
        return solvers[key]

    @cached_property
    def _solvers(self) -> dict[bytes, DependentRates]:
        """Results of `dependent_rates` so far."""
        return {}

    def with_velocities(self, qd: VelocitySeries) -> "State":
        """The same positions with other velocities; quantities computed from positions alone are kept."""
        state = State(mechanism=self.mechanism, q=self.q, qd=qd)
        state.__dict__.update({name: self.__dict__[name] for name in BY_POSITION if name in self.__dict__})
        return state

    def rows(self, samples: AnyArray) -> "State":
        """The state at some samples, with its poses and closures as far as they are known.

        Args:
            samples: Their numbers, or a mask of them [-], shape (any,).
        """
        state = State(mechanism=self.mechanism, q=self.q[samples], qd=self.qd[samples])
        state.__dict__["poses"] = self.poses.rows(samples)
        known = {name: self.__dict__.get(name) for name in ("every_Phi", "resolved")}
        state.__dict__.update({name: values[samples] for name, values in known.items() if values is not None})
        return state
