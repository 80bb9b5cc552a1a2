"""Terms of Simbody's own equations in a state, turned over to the joints of the mechanism."""

from collections.abc import Mapping
from typing import Any, assert_never

import numpy as np

from engines.simbody._model import Model
from engines.simbody._opensim import matrix, opensim, vector
from robots.arrays import Array
from robots.efforts import Deviation, deviation_of
from robots.mechanism import Closure, ConnectClosure, CoordinateClosure, WeldClosure

ROWS: Mapping[type[Closure], int] = {ConnectClosure: 3, WeldClosure: 6, CoordinateClosure: 1}
"""How many errors of position a closure has."""


def tree_terms(model: Model, q: Array, qd: Array) -> tuple[Array, Array, Array]:
    """Terms of the spanning tree's equations of motion; sets the state.

    Args:
        model: The mechanism in Simbody.
        q: Joint positions [m or rad], shape (nq,).
        qd: Joint velocities [m/s or rad/s], shape (nv,).

    Returns:
        Inertia matrix [kg, kg m or kg m²], shape (nv, nv); velocity terms and weights; springs, dampers, what holds
        weights and external wrenches [N or N m], shape (nv,) each.
    """
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


def closure_jacobian(model: Model, q: Array) -> Array:
    """Rows of the closures in Simbody's constraint matrix, per joint velocity [m/rad or m/m], shape (nc, nv).

    Args:
        model: The mechanism in Simbody, in the positions.
        q: The joint positions [m or rad], shape (nq,).
    """
    return constraint_matrix(model, model.state)[: model.loop_rows] @ model.rates(q)


def constraint_matrix(model: Model, state: Any) -> Array:
    """Rows of all constraints per velocity of Simbody's [-, m or 1/m], shape (rows, nu).

    Args:
        model: The mechanism in Simbody.
        state: A state of it, whose positions are realized.
    """
    G = opensim.Matrix()
    _matter(model).calcG(state, G)
    return matrix(G).reshape(-1, state.getNU())


def closure_bias(model: Model, q: Array, qd: Array) -> Array:
    """J̇ q̇ in the rows of `closure_jacobian`, as Simbody's constraints have it; sets the state.

    Args:
        model: The mechanism in Simbody.
        q: Joint positions [m or rad], shape (nq,).
        qd: Joint velocities [m/s or rad/s], shape (nv,).

    Returns:
        Accelerations [m/s² or rad/s²], shape (nc,).
    """
    model.put(q, qd)
    model.model.realizeVelocity(model.state)
    bias = opensim.Vector()
    _matter(model).calcBiasForAccelerationConstraints(model.state, bias)
    return np.array(bias.to_numpy()).reshape(-1)[: model.loop_rows]


def opening(model: Model, state: Any) -> Deviation:
    """How far the widest loop is open, by Simbody's own errors of position.

    Args:
        model: The mechanism in Simbody.
        state: A state of it, whose positions are realized.
    """
    errors, row, widest = np.array(state.getQErr().to_numpy()).reshape(-1), model.drives, Deviation()
    for closure in model.mechanism.closures:
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
