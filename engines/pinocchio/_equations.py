"""Pinocchio's equations of motion at any state: terms of the spanning tree, rows of its rigid constraints."""

from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from loopcheck.engines.equations import LoopEquations
from loopcheck.engines.pinocchio._loops import (
    Constraints,
    closure_bias,
    closure_jacobian,
    gathered,
    loop_constraints,
    opening,
)
from loopcheck.engines.pinocchio._tree import Tree, build, load_forces
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.size import ClosureUnits, units_of_closures


@dataclass(frozen=True, slots=True)
class PinocchioEquations(LoopEquations):
    """See `loopcheck.engines.equations.Equations`."""

    tree: Tree
    loops: Constraints

    @property
    def mechanism(self) -> Mechanism:
        """See `loopcheck.engines.equations.Equations.mechanism`."""
        return self.tree.mechanism

    def jacobian(self, q: JointPositions) -> Array:
        """See `loopcheck.engines.equations.Equations.jacobian`, along the axes of the closures' first frames."""
        return closure_jacobian(self.tree, self.loops, q)

    @property
    def row_units(self) -> ClosureUnits:
        """See `loopcheck.engines.equations.Equations.row_units`: rigid closures come first."""
        mechanism = self.tree.mechanism
        return units_of_closures(mechanism, (*mechanism.rigid_closures, *mechanism.coordinate_closures))

    def opening(self, q: JointPositions) -> Deviation:
        """See `loopcheck.engines.equations.LoopEquations.opening`."""
        closure_jacobian(self.tree, self.loops, q)  # puts the frames there
        return opening(self.tree, self.loops, q)

    def closure_bias(self, q: JointPositions, qd: JointVelocities) -> Array:
        """See `loopcheck.engines.equations.Equations.closure_bias`."""
        return closure_bias(self.tree, self.loops, q, qd)

    def tree_terms(self, q: JointPositions, qd: JointVelocities) -> tuple[Array, Array, Array]:
        """See `loopcheck.engines.equations.Equations.tree_terms`."""
        x = self.tree.positions(q)
        M = np.array(pin.crba(self.tree.model, self.tree.data, x))
        bias = np.array(pin.nonLinearEffects(self.tree.model, self.tree.data, x, qd))
        return M, bias, load_forces(self.tree, q, qd)


def equations(mechanism: Mechanism) -> PinocchioEquations:
    """The equations of motion of a mechanism.

    Raises:
        NotRepresentableError: If it has an element that Pinocchio cannot represent.
    """
    tree = build(mechanism)
    return PinocchioEquations(tree, gathered(loop_constraints(tree)))
