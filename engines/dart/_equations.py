"""DART's equations of motion at any state: terms of the spanning tree, rows of the loops."""

import numpy as np

from loopcheck.engines.dart._loads import apply_loads, joint_forces, point_motion
from loopcheck.engines.dart._skeleton import Tree, build
from loopcheck.engines.equations import LoopEquations
from loopcheck.engines.mechanics import closure_rows, gap
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.mechanism import WORLD, Mechanism


class DartEquations(LoopEquations):
    """See `loopcheck.engines.equations.LoopEquations`."""

    def __init__(self, mechanism: Mechanism) -> None:
        """For a mechanism that DART can represent."""
        self.tree = build(mechanism)

    @property
    def mechanism(self) -> Mechanism:
        """See `loopcheck.engines.equations.Equations.mechanism`."""
        return self.tree.mechanism

    def jacobian(self, q: JointPositions) -> Array:
        """See `loopcheck.engines.equations.Equations.jacobian`."""
        self.tree.put(q, np.zeros(self.mechanism.nv))
        return self._rows("Jacobian")

    def opening(self, q: JointPositions) -> Deviation:
        """See `loopcheck.engines.equations.LoopEquations.opening`."""
        self.tree.put(q, np.zeros(self.mechanism.nv))
        return opening(self.tree)

    def closure_bias(self, q: JointPositions, qd: JointVelocities) -> Array:
        """See `loopcheck.engines.equations.Equations.closure_bias`."""
        self.tree.put(q, qd)
        return self._rows("JacobianDeriv") @ qd

    def tree_terms(self, q: JointPositions, qd: JointVelocities) -> tuple[Array, Array, Array]:
        """See `loopcheck.engines.equations.Equations.tree_terms`; DART has no rotors."""
        self.tree.put(q, qd)
        apply_loads(self.tree)
        skeleton = self.tree.skeleton
        M = np.array(skeleton.getMassMatrix()) + np.diag(self.tree.armature)
        springs, dampers = joint_forces(self.tree)
        passive = np.array(skeleton.getExternalForces()) + springs + dampers
        return M, np.array(skeleton.getCoriolisAndGravityForces()), passive

    def _rows(self, kind: str) -> Array:
        """Rows of the loops along the world's axes, by DART's Jacobians of points or their rates."""
        linear, angular = (getattr(self.tree.skeleton, f"get{part}{kind}") for part in ("Linear", "Angular"))

        def end(body: int, point: Array) -> Array:
            node = self.tree.bodies[body]
            return np.concatenate([linear(node, point), angular(node)])

        return closure_rows(self.mechanism, end)


def opening(tree: Tree) -> Deviation:
    """Gap of the widest loop in the state."""

    def end(body: int, point: Array) -> tuple[Array, Array]:
        axes = np.eye(3) if body == WORLD else np.array(tree.bodies[body].getWorldTransform().rotation())
        return point_motion(tree, body, point)[0], axes

    return Deviation().or_worse(*(gap(closure, end) for closure in tree.mechanism.rigid_closures))
