"""A state of a mechanism, and what follows from it by kinematics."""

from dataclasses import dataclass
from functools import cached_property

from loopcheck.analytic.kinematics.closures import DependentRates, closure_jacobian, closure_jacobian_rate
from loopcheck.analytic.kinematics.tree import Poses, Twists, poses, twist_matrices, twists
from loopcheck.robots.arrays import AnyArray, Array, VelocitySeries
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.size import unit_rates


@dataclass(frozen=True, kw_only=True, eq=False)  # without slots: what follows is kept in its dictionary
class State:
    """Positions and velocities of a mechanism; what follows from them is computed when it is first asked for, once."""

    mechanism: Mechanism
    q: Array
    """Joint positions [m or rad], shape (nt, nq)."""
    qd: Array
    """Joint velocities [m/s or rad/s], shape (nt, nv)."""

    @cached_property
    def poses(self) -> Poses:
        """Where all bodies and joints are, in W."""
        return poses(self.mechanism, self.q)

    @cached_property
    def K(self) -> Array:
        """Twist of each body per joint velocity [-, m or 1/m], shape (nt, nb, 6, nv)."""
        return twist_matrices(self.mechanism, self.poses)

    @cached_property
    def twists(self) -> Twists:
        """How all bodies move, in W."""
        return twists(self.mechanism, self.poses, self.qd, self.K)

    @cached_property
    def Phi(self) -> Array:
        """Closure Jacobian [m/rad or m/m], shape (nt, nc, nv)."""
        return closure_jacobian(self.mechanism, self.poses, self.K, self.q)

    @cached_property
    def Phi_dot(self) -> Array:
        """Its rate while the loops stay closed [m/rad/s or 1/s], shape (nt, nc, nv)."""
        return closure_jacobian_rate(self.mechanism, self.poses, self.twists, self.q, self.qd)

    def dependent_rates(self, independent: AnyArray) -> DependentRates:
        """What gives the rates of all other dofs from the closures.

        Args:
            independent: Mask of the independent dofs [-], shape (nv,).
        """
        solvers, key = self._solvers, independent.tobytes()
        if key not in solvers:
            solvers[key] = DependentRates(self.Phi[..., ~independent], unit_rates(self.mechanism)[~independent])
        return solvers[key]

    @cached_property
    def _solvers(self) -> dict[bytes, DependentRates]:
        """Those of `dependent_rates` so far."""
        return {}

    def with_velocities(self, qd: VelocitySeries) -> "State":
        """The same positions with other velocities; what has been computed of positions alone is not again."""
        state = State(mechanism=self.mechanism, q=self.q, qd=qd)
        state.__dict__.update({name: self.__dict__[name] for name in ("poses", "K", "Phi") if name in self.__dict__})
        return state
