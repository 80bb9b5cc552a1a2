"""MuJoCo's equations of motion at any state: terms of the spanning tree, rows of its equalities."""

import mujoco

from loopcheck.engines.equations import LoopEquations
from loopcheck.engines.mujoco import loops
from loopcheck.engines.mujoco.model import (
    build,
    equality_rows,
    loop_jacobian,
    opening,
    own_actuators_off,
    transmission,
    tree_terms,
)
from loopcheck.robots.arrays import Array, JointAccelerations, JointPositions, JointVelocities
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.size import ClosureUnits, units_of_closures


class MujocoEquations(LoopEquations):
    """See `loopcheck.engines.equations.LoopEquations`."""

    def __init__(self, mechanism: Mechanism) -> None:
        """For a mechanism, without its own actuators."""
        self._mechanism, self._model = mechanism, build(mechanism)
        own_actuators_off(self._model)
        self._data = mujoco.MjData(self._model)

    @property
    def mechanism(self) -> Mechanism:
        """See `loopcheck.engines.equations.Equations.mechanism`."""
        return self._mechanism

    def jacobian(self, q: JointPositions) -> Array:
        """See `loopcheck.engines.equations.Equations.jacobian`."""
        return loop_jacobian(self._model, self._data, q)

    @property
    def row_units(self) -> ClosureUnits:
        """See `loopcheck.engines.equations.Equations.row_units`: a weld has the sine of half its turn."""
        return units_of_closures(self._mechanism, self._mechanism.closures, turn=0.5)

    def opening(self, q: JointPositions) -> Deviation:
        """See `loopcheck.engines.equations.LoopEquations.opening`."""
        self.jacobian(q)
        return opening(self._model, self._data, equality_rows(self._data))

    def closure_bias(self, q: JointPositions, qd: JointVelocities) -> Array:
        """See `loopcheck.engines.equations.Equations.closure_bias`."""
        self.tree_terms(q, qd)
        return loops.closure_bias(self._model, self._data)

    def tree_terms(self, q: JointPositions, qd: JointVelocities) -> tuple[Array, Array, Array]:
        """See `loopcheck.engines.equations.Equations.tree_terms`."""
        self._data.qpos[:], self._data.qvel[:] = q, qd
        return tree_terms(self._mechanism, self._model, self._data)

    def required(self, q: JointPositions, qd: JointVelocities, qdd: JointAccelerations) -> tuple[Array, Array, Array]:
        """See `loopcheck.engines.equations.Equations.required`, with the gears of the engine."""
        M, force, _ = LoopEquations.required(self, q, qd, qdd)
        return M, force, transmission(self._model, self._data)
