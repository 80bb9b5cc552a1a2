"""A state of a mechanism, and what follows from it by kinematics."""

from dataclasses import dataclass
from functools import cached_property

from analytic.kinematics.closures import closure_jacobian, closure_jacobian_rate
from analytic.kinematics.tree import Poses, Twists, poses, twists
from robots.arrays import Array
from robots.mechanism import Mechanism


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
    def twists(self) -> Twists:
        """How all bodies move, in W."""
        return twists(self.mechanism, self.poses, self.qd)

    @cached_property
    def Phi(self) -> Array:
        """Closure Jacobian [m/rad or m/m], shape (nt, nc, nv)."""
        return closure_jacobian(self.mechanism, self.poses, self.twists.K, self.q)

    @cached_property
    def Phi_dot(self) -> Array:
        """Its rate while the loops stay closed [m/rad/s or 1/s], shape (nt, nc, nv)."""
        return closure_jacobian_rate(self.mechanism, self.poses, self.twists, self.q, self.qd)
