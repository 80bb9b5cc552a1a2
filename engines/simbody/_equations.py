"""Terms of Simbody's own equations in a state, turned over to the joints of the mechanism."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from engines.simbody._model import Model
from engines.simbody._opensim import matrix, opensim, vector
from robots.arrays import Array
from robots.mechanism import Closure, ConnectClosure, CoordinateClosure, WeldClosure

PARTS: Mapping[type[Closure], tuple[int, ...]] = {ConnectClosure: (3,), WeldClosure: (3, 3), CoordinateClosure: (1,)}
"""Sizes of the errors of position of a closure, each the components of one distance or angle."""


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


def opening(model: Model, state: Any) -> float:
    """How far the widest loop is open, by Simbody's own errors of position [m or rad].

    Args:
        model: The mechanism in Simbody.
        state: A state of it, whose positions are realized.
    """
    errors, row, widest = np.array(state.getQErr().to_numpy()).reshape(-1), model.drives, 0.0
    for closure in model.mechanism.closures:
        parts = PARTS[type(closure)]
        for size in parts:
            widest = max(widest, float(np.linalg.norm(errors[row : row + size])))
            row += size
    return widest


def _matter(model: Model) -> Any:
    return model.model.getMatterSubsystem()
