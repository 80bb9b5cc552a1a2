"""Wrenches in the connections of a log, held against those that its motion needs by the Newton-Euler equations.

Both are compared in the convention of `connections`, only in combinations of components that are logged and that the
equations of motion determine. Filters, noise floors and readings are those of the efforts.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from itertools import product
from typing import Any, ClassVar, NamedTuple, get_args

import numpy as np

from loopcheck.analytic.dynamics.maximal_wrenches import MaximalWrenches
from loopcheck.analytic.dynamics.noc import NeededEfforts
from loopcheck.analytic.dynamics.recursive_wrenches import recursive_wrenches
from loopcheck.analytic.dynamics.wrenches import Uniqueness
from loopcheck.analytic.kinematics.closures import RANK_TOLERANCE
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import TURNS, axes_of, point_of, skew
from loopcheck.analytic.logs.closing.closed_log import ClosedLog
from loopcheck.analytic.logs.closing.closed_motion import States
from loopcheck.analytic.logs.evaluation import evaluate
from loopcheck.analytic.logs.residual import Residual, residual_efforts
from loopcheck.robots.arrays import AccelerationSeries, AnyArray, Array, Efforts, EffortSeries
from loopcheck.robots.connections import Connection, connections
from loopcheck.robots.log import Convention, EffortTime
from loopcheck.robots.mechanism import WORLD, Mechanism
from loopcheck.robots.size import size

CONVENTIONS = [Convention(*parts) for parts in product(*(get_args(field.type) for field in fields(Convention)))]
"""All conventions; those of a body, of a joint and of the world first."""


@dataclass(frozen=True, kw_only=True, eq=False)
class WrenchLog(ClosedLog):
    """A log whose columns `effort` are six components of each connection, moment first, as they are logged.

    Its residual has as many columns, in the convention of `connections`: the determined and logged part.
    """

    is_of_efforts: ClassVar[bool] = False

    convention: Convention
    pin: Array | None
    """Normal of a planar robot [-], shape (3,); see `MaximalWrenches.uniqueness`."""
    missing: AnyArray
    """Components that are not logged, shape (connections, 6), boolean."""
    _known: dict[bytes, Uniqueness] = field(default_factory=dict)
    """What the equations determine at positions already met."""

    def needed(self, state: State, qdd: AccelerationSeries, internal: EffortSeries | float = 0.0) -> NeededEfforts:
        """See `ClosedLog.needed`.

        Args:
            internal: Internal load of redundant drives, beside efforts of least norm [N or N m], shape (n, na).
        """
        own = super().needed(state, qdd)
        wrench = recursive_wrenches(state, qdd, own.effort + internal).wrench
        return replace(own, effort=(self._judged(state)[1] @ wrench[..., None]).reshape(len(wrench), -1))

    def moving(self, states: States) -> Array:
        """Maps of the logged wrenches to the judged part, shape (n, 6 connections, 6 connections)."""
        to, judged = self._judged(State.at_rest(self.mechanism, states.q))
        maps = judged @ to
        n, count = maps.shape[:2]
        blocks = np.zeros((n, count, 6, count, 6))
        blocks[:, range(count), :, range(count)] = maps.swapaxes(0, 1)
        return blocks.reshape(n, 6 * count, 6 * count)

    def scale(self, state: State, qdd: AccelerationSeries) -> Efforts:
        """Largest sums of terms of all connections [N m, N], shape (6 connections,)."""
        terms = recursive_wrenches(state, qdd, super().needed(state, qdd).effort).terms
        return np.tile(np.repeat(terms, 3), len(self.missing))

    def size(self, needed: EffortSeries) -> Efforts:
        """Root mean squares of all moments and of all forces [N m, N], shape (6 connections,)."""
        lengths = np.sqrt((needed.reshape(len(needed), -1, 2, 3) ** 2).sum(axis=3).mean(axis=0).max(axis=0))
        return np.tile(np.repeat(lengths, 3), len(self.missing))

    def unique(self, state: State) -> Uniqueness:
        """What the equations determine."""
        is_shared = self.mechanism.na > len(self.drives) and not self.log.has_efforts
        known, key = self._known, state.q.tobytes()
        if key not in known:
            known[key] = MaximalWrenches(self.mechanism, state.q).uniqueness(self.pin, free_efforts=is_shared)
        return known[key]

    def _judged(self, state: State) -> tuple[Array, Array]:
        """`to_common` of the logged wrenches, and `_judged`."""
        maps = to_common(state, self.convention)
        return maps, _judged(self.unique(state), maps, self.missing, size(self.mechanism))


def _judged(unique: Uniqueness, maps: Array, missing: AnyArray, length: float) -> Array:
    """Projectors on the determined and logged part of wrenches in the common convention, (n, connections, 6, 6).

    Args:
        maps: Maps of the logged wrenches to the common convention, (n, connections, 6, 6).
        missing: See `WrenchLog`.
        length: Size of the robot [m].
    """
    units = np.repeat([length, 1.0], 3)
    if missing.any():
        unique = unique.among(np.broadcast_to(~missing, maps.shape[:3]), maps / units[:, None])
    return unique.projectors * units[:, None] / units


def wrench_log(closed: ClosedLog, convention: Convention, pin: Array | None) -> WrenchLog:
    """The wrenches of a log in a convention.

    Args:
        pin: See `WrenchLog`.
    """
    log = closed.log
    nothing = np.full((len(log.t), 6), np.nan)
    columns = np.stack([log.wrenches.get(one.name, nothing) for one in connections(closed.mechanism)], axis=1)
    wrench = np.nan_to_num(columns).reshape(len(log.t), -1)
    unseen = np.sqrt((np.diff(wrench, 2, axis=0) ** 2).mean(axis=0)) / 8  # of linear interpolation
    common: dict[str, Any] = {field.name: getattr(closed, field.name) for field in fields(ClosedLog)}
    common |= {"effort": wrench, "effort_error": unseen if log.errors else np.zeros(wrench.shape[1])}
    return WrenchLog(**common, convention=convention, pin=pin, missing=np.isnan(columns).any(axis=0))


def residual_wrenches(
    closed: ClosedLog,
    wrenches: WrenchLog,
    acted: EffortTime,
    *,
    start: float = -np.inf,
    noiseless: bool = False,
    most: int | None = None,
) -> tuple[Residual, EffortSeries]:
    """Residual wrenches, see `residual_efforts`, and the internal load of redundant drives [N or N m], shape (n, na).

    Args:
        closed: The log of efforts at the same times; its internal load counts.
        acted: Time of the wrenches.
    """
    residual = residual_efforts(wrenches, acted, start=start, noiseless=noiseless, most=most)
    motion, mechanism = residual.motion, closed.mechanism
    if not closed.log.has_efforts or mechanism.na <= len(closed.drives):
        return residual, np.zeros((len(residual.bases), mechanism.na))
    internal = evaluate(closed, residual.filter, residual.bases).internal
    state = States(q=motion.q, qd=motion.qd, qdd=motion.qdd).kinematics_of(mechanism)
    return replace(residual, needed=wrenches.needed(state, motion.qdd, internal).effort), internal


def to_common(state: State, convention: Convention) -> Array:
    """Maps of wrenches in a convention to that of `connections`, (n, connections, 6, 6)."""
    mechanism, P = state.mechanism, state.poses
    every = connections(mechanism)
    maps = np.zeros((len(state.q), len(every), 6, 6))
    for k, connection in enumerate(every):
        closure, body = connection.closure, connection.body
        other = mechanism.bodies[body].parent if closure is None else closure.body2
        bodies = {"child": body, "parent": other, "world": WORLD}
        own, axes = (axes_of(P, b) for b in (body, bodies[convention.axes]))
        turn = own.swapaxes(1, 2) @ axes * (1 if convention.on == "child" else -1)
        arm = _point(state, connection, convention) - point_of(P, body, connection.point)
        maps[:, k, :3, :3] = maps[:, k, 3:, 3:] = turn
        maps[:, k, :3, 3:] = turn @ axes.swapaxes(1, 2) @ skew(arm) @ axes
    return maps


def _point(state: State, connection: Connection, convention: Convention) -> Array:
    """Point of a convention [m], world axes, (n, 3); points of the world's mass are its origin."""
    mechanism, P, body = state.mechanism, state.poses, connection.body
    if convention.point == "joint" or body == WORLD:
        return point_of(P, body, connection.point if convention.point == "joint" else np.zeros(3))
    if convention.point == "tree_com":
        mass = np.array(
            [one.mass * (_root(mechanism, b) == _root(mechanism, body)) for b, one in enumerate(mechanism.bodies)]
        )
        return mass @ P.c / (mass.sum() or 1.0)
    return P.c[:, body] if convention.point == "com" else P.p[:, body]


def _root(mechanism: Mechanism, body: int) -> int:
    parent = mechanism.bodies[body].parent
    return body if parent == WORLD else _root(mechanism, parent)


class Alternative(NamedTuple):
    """Another meaning of logged wrenches."""

    convention: Convention
    change: str
    """What differs beside the convention; empty if nothing does."""
    residual: Array
    """Judged residual in the common convention [N m, N], shape (n, 6 connections); NaN in moments or forces that
    are not judged."""


def alternatives(wrenches: WrenchLog, states: States, logged: Array, internal: EffortSeries) -> Iterator[Alternative]:
    """Residuals of wrenches by every convention, with force and moment swapped, and with the drives counted otherwise.

    Args:
        logged: Filtered wrenches as they are logged [N m, N], shape (n, 6 connections).
        internal: See `WrenchLog.needed`.
    """
    mechanism, length = wrenches.mechanism, size(wrenches.mechanism)
    state, unique = states.kinematics_of(mechanism), wrenches.unique(State.at_rest(mechanism, states.q))
    effort = ClosedLog.needed(wrenches, state, states.qdd).effort + internal
    reference = recursive_wrenches(state, states.qdd, effort).wrench
    given = logged.reshape(reference.shape)
    swap = [3, 4, 5, 0, 1, 2]
    for convention in CONVENTIONS:
        maps = to_common(state, convention)
        changes: dict[str, tuple[Array, AnyArray, Array | float]] = {
            "": (given, wrenches.missing, 0.0),
            "force and moment swapped": (given[..., swap], wrenches.missing[:, swap], 0.0),
        }
        if convention == wrenches.convention:
            driven = _of_drives(state, effort)
            changes["the effort of the drive, which they lack"] = (given, wrenches.missing, -driven)
            changes["the effort of the drive once instead of twice"] = (given, wrenches.missing, driven)
        for change, (values, missing, more) in changes.items():
            judged = _judged(unique, maps, missing, length)
            left = (judged @ ((maps @ values[..., None])[..., 0] - reference - more)[..., None])[..., 0]
            used = np.abs(judged).max(axis=(0, 3)).reshape(-1, 2, 3).max(axis=2) > RANK_TOLERANCE
            left[:, ~used.repeat(3, axis=1)] = np.nan
            yield Alternative(convention, change, left.reshape(len(left), -1))


def _of_drives(state: State, effort: EffortSeries) -> Array:
    """Part of the wrenches that drives of joints make, in the common convention [N m, N], (n, connections, 6)."""
    mechanism, P = state.mechanism, state.poses
    along, wrench = effort @ mechanism.selection, np.zeros((len(effort), len(connections(mechanism)), 6))
    for k, connection in enumerate(connections(mechanism)):
        joints = mechanism.joints_of[connection.body] if connection.closure is None else ()
        for j in joints:
            turns = TURNS[mechanism.joints[j].kind]
            for turn, d in zip(turns, range(mechanism.nv)[mechanism.dof_slices[j]], strict=True):
                part = slice(0, 3) if turn else slice(3, 6)
                wrench[:, k, part] += np.einsum("nji,nj->ni", P.R[:, connection.body], P.axes[:, d]) * along[:, [d]]
    return wrench
