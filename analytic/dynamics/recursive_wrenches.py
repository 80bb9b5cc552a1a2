"""Wrenches of connections by Newton-Euler equations: a connection carries all bodies beyond it, with their closures.

The forces of closures follow from the equations of the tree. Both are those of `noc`.
"""

from collections.abc import Iterator
from typing import NamedTuple, assert_never

import numpy as np

from loopcheck.analytic.dynamics.noc import body_wrenches, tree_model
from loopcheck.analytic.dynamics.wrenches import Wrenches, ends, in_axes, pull
from loopcheck.analytic.kinematics.closures import closure_of_rows, pseudo_inverse, row_factors
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import Poses, axes_of, cross, point_of
from loopcheck.robots.arrays import AccelerationSeries, Array, EffortSeries
from loopcheck.robots.connections import connections
from loopcheck.robots.mechanism import (
    WORLD,
    Closure,
    ConnectClosure,
    CoordinateClosure,
    Mechanism,
    PathClosure,
    RigidClosure,
    Segment,
    WeldClosure,
)
from loopcheck.robots.size import size, unit_rates

ARMS = 1e-3
"""Least sum of the terms of a moment over the size times that of a force [-]: arms have the round-off of positions."""


class _Load(NamedTuple):
    """A wrench on a body about a point, world axes."""

    body: int
    point: Array
    """[m], shape (nt, 3)."""
    wrench: Array
    """[N m, N], shape (nt, 6)."""
    terms: Array
    """Sums of the sizes of the terms of moment and force [N m, N], shape (nt, 2)."""


def recursive_wrenches(state: State, qdd: AccelerationSeries, effort: EffortSeries) -> Wrenches:
    """Wrenches with closure forces of least norm.

    Args:
        state: Positions and velocities that keep the loops closed.
        qdd: Joint accelerations that keep them closed.
        effort: Efforts of the actuators that the motion requires.
    """
    mechanism, P = state.mechanism, state.poses
    needed, terms = body_wrenches(state, qdd)
    loads = [_Load(b, P.c[:, b], needed[:, b], terms[:, b]) for b in range(len(mechanism.bodies))]
    lam, of_rows = _multipliers(state, qdd, effort), np.array(closure_of_rows(mechanism))
    of_closures: dict[str, _Load] = {}
    for k, closure in enumerate(mechanism.closures):
        for load in _actions(closure, P, lam[:, of_rows == k]):
            of_closures.setdefault(closure.name, load)
            loads.append(load._replace(wrench=-load.wrench))
    beyond = _bodies_beyond(mechanism)
    carried = [
        _about(point_of(P, connection.body, connection.point), [x for x in loads if x.body in beyond[connection.body]])
        if connection.closure is None
        else of_closures[connection.closure.name]
        for connection in connections(mechanism)
    ]
    found = [in_axes(P, *each) for each in zip(connections(mechanism), [x.wrench for x in carried], strict=True)]
    moment, force = np.max([np.zeros((len(state.q), 2)), *(x.terms for x in carried)], axis=(0, 1))
    moment = max(moment, ARMS * size(mechanism) * force)
    wrench = np.reshape(found, (-1, *needed.shape[::2])).swapaxes(0, 1)  # also of no connection
    return Wrenches(wrench=wrench, terms=(float(moment), float(force)))


def _multipliers(state: State, qdd: AccelerationSeries, effort: EffortSeries) -> Array:
    """Multipliers of least norm of all closure equations [N or N m], shape (nt, nc)."""
    mechanism, units = state.mechanism, unit_rates(state.mechanism)
    force = tree_model(state).force(qdd, state.qd) - effort @ mechanism.selection
    scaled = state.Phi * units
    factors = row_factors(scaled)
    inverse = pseudo_inverse(factors * scaled).swapaxes(1, 2)
    lam: Array = (factors * (inverse @ (force * units)[..., None]))[..., 0]
    return lam if state.resolved is None else (state.resolved.swapaxes(1, 2) @ lam[..., None])[..., 0]


def _actions(closure: Closure, P: Poses, lam: Array) -> Iterator[_Load]:
    """Wrenches of a closure on its bodies, body 1 first.

    Args:
        lam: Multipliers of its equations, (nt, rows).
    """
    wrench = np.zeros((len(lam), 6))
    match closure:
        case ConnectClosure() | WeldClosure():
            wrench[:, 3:] = lam[:, :3]
            if isinstance(closure, WeldClosure):  # its equations have the rotation of body 2 in body 1
                wrench[:, :3] = -(axes_of(P, closure.body1) @ lam[:, 3:, None])[..., 0]
            wrenches: list[tuple[RigidClosure | Segment, Array]] = [(closure, wrench)]
        case PathClosure():
            still = np.zeros((len(lam), 3))
            wrenches = [(x, np.concatenate([still, lam * pull(P, x)], axis=1)) for x in closure.segments]
        case CoordinateClosure():
            wrenches = []
        case _:
            assert_never(closure)
    for pair, wrench in wrenches:
        terms = np.linalg.norm(wrench.reshape(-1, 2, 3), axis=2)
        yield from (_Load(body, point, sign * wrench, terms) for body, point, sign in ends(P, pair))


def _bodies_beyond(mechanism: Mechanism) -> list[set[int]]:
    """Each body with all bodies that it carries."""
    beyond = [{b} for b in range(len(mechanism.bodies))]
    for b, body in reversed([*enumerate(mechanism.bodies)]):
        if body.parent != WORLD:
            beyond[body.parent] |= beyond[b]
    return beyond


def _about(point: Array, loads: list[_Load]) -> _Load:
    """Sum of loads about a point (nt, 3)."""
    arms = np.stack([load.point for load in loads]) - point
    wrenches, terms = (np.stack([load[k] for load in loads]) for k in (2, 3))
    wrenches[..., :3] += cross(arms, wrenches[..., 3:])
    terms[..., 0] += np.linalg.norm(arms, axis=2) * terms[..., 1]
    return _Load(loads[0].body, point, wrenches.sum(axis=0), terms.sum(axis=0))
