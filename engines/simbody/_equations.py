"""Simbody's own equations at any state, turned over to the joints of the mechanism."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np

from loopcheck.engines.equations import LoopEquations
from loopcheck.engines.simbody._model import Model, build
from loopcheck.engines.simbody._opensim import matrix, opensim, vector
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.efforts import Deviation, deviation_of
from loopcheck.robots.mechanism import Closure, ConnectClosure, CoordinateClosure, Mechanism, WeldClosure
from loopcheck.robots.size import ClosureUnits, units_of_closures

ROWS: Mapping[type[Closure], int] = {ConnectClosure: 3, WeldClosure: 6, CoordinateClosure: 1}
"""Number of position errors of a closure."""


@dataclass(frozen=True, slots=True)
class SimbodyEquations(LoopEquations):
    """See `loopcheck.engines.equations.Equations`."""

    simbody: Model

    @property
    def mechanism(self) -> Mechanism:
        """See `loopcheck.engines.equations.Equations.mechanism`."""
        return self.simbody.mechanism

    def jacobian(self, q: JointPositions) -> Array:
        """See `loopcheck.engines.equations.Equations.jacobian`, the closures' rows of its own constraints."""
        model = self.simbody
        model.put(q, np.zeros(self.mechanism.nv))
        model.model.realizePosition(model.state)
        return constraint_matrix(model, model.state)[: model.loop_rows] @ model.rates(q)

    @property
    def row_units(self) -> ClosureUnits:
        """See `loopcheck.engines.equations.Equations.row_units`."""
        return units_of_closures(self.mechanism, self.mechanism.closures, turn_first=True)

    def opening(self, q: JointPositions) -> Deviation:
        """See `loopcheck.engines.equations.LoopEquations.opening`."""
        model = self.simbody
        model.put(q, np.zeros(self.mechanism.nv))
        model.model.realizePosition(model.state)
        return opening(model, model.state)

    def closure_bias(self, q: JointPositions, qd: JointVelocities) -> Array:
        """See `loopcheck.engines.equations.Equations.closure_bias`, as its own constraints have it."""
        model = self.simbody
        model.put(q, qd)
        model.model.realizeVelocity(model.state)
        bias = opensim.Vector()
        _matter(model).calcBiasForAccelerationConstraints(model.state, bias)
        return np.array(bias.to_numpy()).reshape(-1)[: model.loop_rows]

    def tree_terms(self, q: JointPositions, qd: JointVelocities) -> tuple[Array, Array, Array]:
        """See `loopcheck.engines.equations.Equations.tree_terms`."""
        model = self.simbody
        model.put(q, qd)
        T, state, matter = model.rates(q), model.state, model.model.getMatterSubsystem()
        model.model.realizeDynamics(state)
        M, none, bias = opensim.Matrix(), vector(np.zeros(len(T))), opensim.Vector()
        matter.calcM(state, M)
        weights = model.model.getGravityBodyForces(state)
        matter.calcResidualForceIgnoringConstraints(state, none, weights, none, bias)
        all_forces = np.array(opensim.InverseDynamicsSolver(model.model).solve(state, none).to_numpy())
        bias = np.array(bias.to_numpy())
        return T.T @ matrix(M) @ T, T.T @ bias, T.T @ (bias - all_forces)


def equations(mechanism: Mechanism) -> SimbodyEquations:
    """The equations of motion of a mechanism.

    Raises:
        NotRepresentableError: If it has an element that Simbody cannot represent.
    """
    return SimbodyEquations(build(mechanism))


def constraint_matrix(model: Model, state: Any) -> Array:
    """Rows of all constraints per velocity of Simbody's [-, m or 1/m], shape (rows, nu).

    Args:
        state: A state of it with realized positions.
    """
    G = opensim.Matrix()
    _matter(model).calcG(state, G)
    return matrix(G).reshape(-1, state.getNU())


def opening(model: Model, state: Any) -> Deviation:
    """Gap of the widest loop, by Simbody's own errors of position.

    Args:
        state: A state of it with realized positions.
    """
    errors, row, widest = np.array(state.getQErr().to_numpy()).reshape(-1), model.drives, Deviation()
    for closure in model.mechanism.loop_closures:
        count = ROWS[type(closure)]
        error, row = errors[row : row + count], row + count
        match closure:
            case ConnectClosure():
                gap = Deviation(float(np.linalg.norm(error)))
            case WeldClosure():  # the turn comes first
                gap = Deviation(float(np.linalg.norm(error[3:])), float(np.linalg.norm(error[:3])))
            case CoordinateClosure():
                gap = deviation_of(model.mechanism, (closure.follower,), error)
            case _:
                assert_never(closure)
        widest = widest.or_worse(gap)
    return widest


def _matter(model: Model) -> Any:
    return model.model.getMatterSubsystem()
