"""MuJoCo's equations of motion at any state: terms of the spanning tree, rows of its equalities."""

import mujoco
import numpy as np

from loopcheck.engines.equations import LoopEquations
from loopcheck.engines.mujoco import loops, tendons
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
    """See `loopcheck.engines.equations.LoopEquations`.

    Behind MuJoCo's dofs follow the slides of tendons, and behind its equalities their lengths.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        """For a mechanism, without its own actuators."""
        self._mechanism, self._model = mechanism, build(mechanism)
        own_actuators_off(self._model)
        self._data = mujoco.MjData(self._model)
        self._slides = tendons.with_slides(mechanism, self._model)
        self._nq, self._nv = mechanism.spanning_tree

    @property
    def mechanism(self) -> Mechanism:
        """See `loopcheck.engines.equations.Equations.mechanism`."""
        return self._mechanism

    def jacobian(self, q: JointPositions) -> Array:
        """See `loopcheck.engines.equations.Equations.jacobian`."""
        J = loop_jacobian(self._model, self._data, q[: self._nq])
        return tendons.with_lengths(self._mechanism, self._model, self._data, J)

    @property
    def row_units(self) -> ClosureUnits:
        """See `loopcheck.engines.equations.Equations.row_units`: a weld has the sine of half its turn."""
        return units_of_closures(self._mechanism, self._mechanism.closures, turn=0.5)

    def opening(self, q: JointPositions) -> Deviation:
        """See `loopcheck.engines.equations.LoopEquations.opening`."""
        self.jacobian(q)
        gaps = np.abs(tendons.gaps(self._mechanism, self._model, self._data, q))
        of_slides = Deviation(length=float(gaps.max(initial=0.0)))
        return opening(self._model, self._data, equality_rows(self._data)).or_worse(of_slides)

    def closure_bias(self, q: JointPositions, qd: JointVelocities) -> Array:
        """See `loopcheck.engines.equations.Equations.closure_bias`."""
        self.tree_terms(q, qd)
        bias = loops.closure_bias(self._model, self._data)
        return np.concatenate([bias, loops.tendon_bias(self._model, self._data, self._slides)])

    def tree_terms(self, q: JointPositions, qd: JointVelocities) -> tuple[Array, Array, Array]:
        """See `loopcheck.engines.equations.Equations.tree_terms`."""
        self._data.qpos[:], self._data.qvel[:] = q[: self._nq], qd[: self._nv]
        M, bias, passive = tree_terms(self._mechanism, self._model, self._data)
        more = (0, len(self._slides))
        return np.pad(M, more), np.pad(bias, more), np.pad(passive, more)

    def required(self, q: JointPositions, qd: JointVelocities, qdd: JointAccelerations) -> tuple[Array, Array, Array]:
        """See `loopcheck.engines.equations.Equations.required`, with the gears of the engine."""
        M, force, _ = LoopEquations.required(self, q, qd, qdd)
        S = transmission(self._model, self._data)
        return M, force, np.pad(S, ((0, 0), (0, len(self._slides))))
