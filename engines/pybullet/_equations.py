"""PyBullet's equations of motion at any state, in the angles of its joints."""

from dataclasses import dataclass

from loopcheck.engines.equations import Equations
from loopcheck.engines.pybullet import _jacobian
from loopcheck.engines.pybullet._bullet import pybullet
from loopcheck.engines.pybullet._loads import load_forces
from loopcheck.engines.pybullet._world import World
from loopcheck.robots.arrays import Array, JointAccelerations, JointPositions, JointVelocities
from loopcheck.robots.mechanism import Mechanism


@dataclass(frozen=True, slots=True)
class PybulletEquations(Equations):
    """See `loopcheck.engines.equations.Equations`; of the mechanism without balls."""

    world: World

    @property
    def mechanism(self) -> Mechanism:
        """See `loopcheck.engines.equations.Equations.mechanism`."""
        return self.world.mechanism

    def jacobian(self, q: JointPositions) -> Array:
        """See `loopcheck.engines.equations.Equations.jacobian`."""
        return _jacobian.closure_jacobian(self.world, q)

    def closure_bias(self, q: JointPositions, qd: JointVelocities) -> Array:
        """See `loopcheck.engines.equations.Equations.closure_bias`."""
        return _jacobian.closure_bias(self.world, q, qd)

    def tree_terms(self, q: JointPositions, qd: JointVelocities) -> tuple[Array, Array, Array]:
        """See `loopcheck.engines.equations.Equations.tree_terms`."""
        M = pybullet.calculateMassMatrix(self.world.tree, self.world.positions(q), physicsClientId=self.world.client)
        return self.world.summed(self.world.summed(M).T), self._force(q, qd, 0 * qd), load_forces(self.world, q, qd)

    def required(self, q: JointPositions, qd: JointVelocities, qdd: JointAccelerations) -> tuple[Array, Array, Array]:
        """See `loopcheck.engines.equations.Equations.required`, by PyBullet's own inverse dynamics."""
        M, _, passive = self.tree_terms(q, qd)
        return M, self._force(q, qd, qdd) - passive, self.mechanism.selection

    def _force(self, q: JointPositions, qd: JointVelocities, qdd: JointAccelerations) -> Array:
        state = (self.world.positions(q), self.world.rates(qd), self.world.rates(qdd))
        force = pybullet.calculateInverseDynamics(self.world.tree, *state, physicsClientId=self.world.client)
        return self.world.summed(force)
