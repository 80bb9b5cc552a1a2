"""DART as its user steps it: its default step, constraints as they come, and forces on the joints."""

from typing import Any, NamedTuple, Self

import numpy as np

from loopcheck.engines.dart._loads import apply_loads
from loopcheck.engines.dart._loops import opening
from loopcheck.engines.dart._skeleton import Tree, build
from loopcheck.engines.dart._stepping import close_loops, world_with
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.mechanism import Mechanism

STEP, ERROR_REDUCTION = 1e-3, 0.01
"""DART's default step [s] and error reduction of constraints [-]."""


class DartStepped(NamedTuple):
    """See `loopcheck.engines.as_is.Stepped`."""

    tree: Tree
    world: Any
    step: float = STEP

    @classmethod
    def from_state(cls, mechanism: Mechanism, q: JointPositions, qd: JointVelocities) -> Self:
        """The robot in a state.

        Raises:
            NotRepresentableError: If the mechanism has something that DART cannot carry.
        """
        tree = build(mechanism)
        tree.put(q, qd)
        world = world_with(tree, STEP)
        close_loops(world, tree, ERROR_REDUCTION)
        return cls(tree, world)

    @property
    def mechanism(self) -> Mechanism:
        """See `loopcheck.engines.as_is.Stepped.mechanism`."""
        return self.tree.mechanism

    def state(self) -> tuple[Array, Array]:
        """See `loopcheck.engines.as_is.Stepped.state`."""
        x, qd = (np.array(values) for values in (self.tree.skeleton.getPositions(), self.tree.skeleton.getVelocities()))
        return (self.tree.ours(x) if np.isfinite(x).all() else x), qd

    def opening(self) -> Deviation:
        """See `loopcheck.engines.as_is.Stepped.opening`."""
        return opening(self.tree)

    def hold(self, force: Array, t: float) -> None:
        """See `loopcheck.engines.as_is.Stepped.hold`."""
        self.tree.skeleton.setForces(force)
        apply_loads(self.tree)
        self.world.step(False)
