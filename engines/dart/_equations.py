"""DART's equations of motion at any state: terms of the spanning tree, rows of the loops."""

from dataclasses import dataclass

import numpy as np

from loopcheck.engines.dart._loads import apply_loads, joint_dampers, joint_springs
from loopcheck.engines.dart._loops import closure_bias, closure_jacobian, opening
from loopcheck.engines.dart._skeleton import Tree, build
from loopcheck.engines.equations import LoopEquations
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.mechanism import Mechanism


@dataclass(frozen=True, slots=True)
class DartEquations(LoopEquations):
    """See `loopcheck.engines.equations.Equations`."""

    tree: Tree

    @property
    def mechanism(self) -> Mechanism:
        """See `loopcheck.engines.equations.Equations.mechanism`."""
        return self.tree.mechanism

    def jacobian(self, q: JointPositions) -> Array:
        """See `loopcheck.engines.equations.Equations.jacobian`."""
        self.tree.put(q, np.zeros(self.mechanism.nv))
        return closure_jacobian(self.tree)

    def opening(self, q: JointPositions) -> Deviation:
        """See `loopcheck.engines.equations.LoopEquations.opening`."""
        self.tree.put(q, np.zeros(self.mechanism.nv))
        return opening(self.tree)

    def closure_bias(self, q: JointPositions, qd: JointVelocities) -> Array:
        """See `loopcheck.engines.equations.Equations.closure_bias`."""
        self.tree.put(q, qd)
        return closure_bias(self.tree)

    def tree_terms(self, q: JointPositions, qd: JointVelocities) -> tuple[Array, Array, Array]:
        """See `loopcheck.engines.equations.Equations.tree_terms`; DART has no rotors."""
        self.tree.put(q, qd)
        apply_loads(self.tree)
        skeleton = self.tree.skeleton
        M = np.array(skeleton.getMassMatrix()) + np.diag(self.tree.armature)
        passive = np.array(skeleton.getExternalForces()) + joint_springs(self.tree) + joint_dampers(self.tree)
        return M, np.array(skeleton.getCoriolisAndGravityForces()), passive


def equations(mechanism: Mechanism) -> DartEquations:
    """The equations of motion of a mechanism.

    Raises:
        NotRepresentableError: If it has an element that DART cannot represent.
    """
    return DartEquations(build(mechanism))
