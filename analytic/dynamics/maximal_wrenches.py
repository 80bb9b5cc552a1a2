"""Wrenches of connections from the equations of all bodies and all dofs at once, and their uniqueness.

Each body needs the rate of its momentum less the virtual work of its loads, both by the complex step, as in `lagrange`.
"""

from dataclasses import replace
from functools import cached_property
from typing import NamedTuple, assert_never

import numpy as np

from loopcheck.analytic.dynamics.lagrange import STEP, beyond, lagrange_model, lengths, work_of_wrenches
from loopcheck.analytic.dynamics.wrenches import Uniqueness, Wrenches, ends, in_axes, projectors_beside, pull
from loopcheck.analytic.kinematics.closures import RANK_TOLERANCE, closure_of_rows
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import TURNS, Poses, cross, point_of, retract, skew
from loopcheck.robots.arrays import (
    AccelerationSeries,
    AnyArray,
    Array,
    EffortSeries,
    PositionSeries,
    VelocitySeries,
    svd,
)
from loopcheck.robots.connections import anchor, connections
from loopcheck.robots.mechanism import (
    WORLD,
    ConnectClosure,
    CoordinateClosure,
    Mechanism,
    PathClosure,
    WeldClosure,
)
from loopcheck.robots.size import size


class _System(NamedTuple):
    """Linear equations A x = b of all wrenches, moments over the size of the robot."""

    A: Array
    """Coefficients [-], shape (nt, rows, n)."""
    places: list[slice]
    """Unknowns of each connection."""
    bases: list[Array]
    """Wrench of each connection per unknown, world axes [-], shape (6, any)."""


class MaximalWrenches:
    """Wrenches from the equations of all bodies and all dofs at once, and their uniqueness."""

    def __init__(self, mechanism: Mechanism, q: PositionSeries) -> None:
        """Equations of a mechanism at positions with closed loops."""
        self._mechanism, self._q, self._L = mechanism, q, size(mechanism)
        self._state = State.at_rest(mechanism, q)
        self._connections, self._P = connections(mechanism), self._state.poses
        self._turns = np.array([turn for joint in mechanism.joints for turn in TURNS[joint.kind]], dtype=bool)
        self._units = np.where(self._turns, self._L, 1.0)
        self._rank_limit = max(RANK_TOLERANCE, mechanism.closing.noise)
        self._system = self._equations()

    @cached_property
    def _decomposed(self) -> list[tuple[Array, Array, Array]]:
        return [svd(A) for A in self._system.A]

    def __call__(self, qd: VelocitySeries, qdd: AccelerationSeries, effort: EffortSeries) -> Wrenches:
        """Wrenches of least norm.

        Args:
            qd: Joint velocities that keep the loops closed.
            qdd: Joint accelerations that keep them closed.
            effort: Efforts of the actuators that the motion requires.
        """
        mechanism, L = self._mechanism, np.repeat([self._L, 1.0], 3)
        massless = tuple(replace(body, mass=0.0, inertia=np.zeros((3, 3))) for body in mechanism.bodies)
        along = lagrange_model(replace(mechanism, bodies=massless, point_springs=(), wrenches=()), self._q, qd)
        on_dofs = (effort @ mechanism.selection - along.force(qdd)) / self._units
        right = np.concatenate([(self._needed(qd, qdd) / L).reshape(len(qd), -1), on_dofs], axis=1)
        A = self._system.A
        x = np.zeros((len(qd), A.shape[2]))
        for k, (U, values, V_T) in enumerate(self._decomposed):
            n = self._rank(values)
            for _ in range(2):  # the second removes the round-off of the first
                x[k] += V_T[:n].T @ (((right[k] - A[k] @ x[k]) @ U[:, :n]) / values[:n])
        return Wrenches(wrench=L * self._of_connections(self._system, x[..., None])[..., 0])

    def uniqueness(self, pin: Array | None = None, *, free_efforts: bool = False) -> Uniqueness:
        """Unique parts of all wrenches.

        Uniqueness belongs to the robot, not to the place of the cut: in a planar robot, a closure of two points may
        stand for a pin, which carries moments across itself.

        Args:
            pin: Normal of a planar robot, whose closures of two points count as pins [-], shape (3,); None: they are
                balls, as in the file.
            free_efforts: Whether any efforts that move the robot alike count, for robots with redundant drives.
        """
        is_file = pin is None and not free_efforts
        system = self._system if is_file else self._equations(pin, free_efforts=free_efforts)
        decomposed = self._decomposed if is_file else [svd(A) for A in system.A]
        nt, _, n = system.A.shape
        null = n - np.array([self._rank(values) for _, values, _ in decomposed])
        N = np.zeros((nt, n, max(null.max(), 6)))
        for k, (*_, V_T) in enumerate(decomposed):
            N[k, :, : null[k]] = V_T[n - null[k] :].T
        rows = self._of_connections(system, N)
        components = np.linalg.norm(rows, axis=3) < RANK_TOLERANCE
        return Uniqueness(null=null, components=components, projectors=projectors_beside(rows))

    def _of_connections(self, system: _System, x: Array) -> Array:
        """Wrenches, moments over the size, per unknowns (nt, n, any), in the axes of connections: (nt, n, 6, any)."""
        found = [
            in_axes(self._P, connection, E @ x[:, place])
            for connection, place, E in zip(self._connections, system.places, system.bases, strict=True)
        ]
        return np.reshape(found, (-1, len(x), 6, x.shape[2])).swapaxes(0, 1)

    def _rank(self, values: Array) -> int:
        return int((values > self._rank_limit * values[0]).sum()) if len(values) else 0

    def _needed(self, qd: VelocitySeries, qdd: AccelerationSeries) -> Array:
        """Wrench that each body needs about its mass centre [N m, N], shape (nt, nb, 6)."""
        mechanism, P = self._mechanism, self._P
        later = State.at_rest(mechanism, retract(mechanism, self._q, 1j * STEP * qd))
        twist = later.K @ (qd + 1j * STEP * qdd)[:, None, :, None]
        R, inertia = later.poses.R, np.array([body.inertia for body in mechanism.bodies]).reshape(-1, 3, 3)
        masses = np.array([[[body.mass]] for body in mechanism.bodies]).reshape(-1, 1, 1)
        spin = R @ inertia @ R.swapaxes(-1, -2) @ twist[..., :3, :]
        needed: Array = np.concatenate([spin, masses * twist[..., 3:, :]], axis=2)[..., 0].imag / STEP
        tension, rates = lengths(mechanism, P), lengths(mechanism, later.poses).imag / STEP
        for k, spring in enumerate(mechanism.point_springs):
            tension[:, k] = spring.stiffness * beyond(tension[:, k], spring.rest) + spring.damping * rates[:, k]
        heavy = np.array([body.mass * (1 - body.gravity_compensation) for body in mechanism.bodies])
        for b in range(len(mechanism.bodies)):
            for i, step in enumerate(1j * STEP * np.eye(6)):
                near = _displaced(P, b, step)
                work = work_of_wrenches(mechanism, P, near) + (near.c @ mechanism.gravity) @ heavy
                needed[:, b, i] -= (work - (lengths(mechanism, near) * tension).sum(axis=1)).imag / STEP
        return needed

    def _equations(self, pin: Array | None = None, *, free_efforts: bool = False) -> _System:
        """Equations of all bodies and dofs.

        Rows: moment and force about the mass centre of each body, then dofs. Unknowns: wrenches on all bodies from
        their parents about the points of connections, those of closures, and efforts if these are free.

        Args:
            pin: Direction of pins that closures of two points stand for [-], shape (3,); None: they are balls.
        """
        mechanism, nb = self._mechanism, len(self._mechanism.bodies)
        parts = [(self._from_parent(b), np.eye(6)) for b in range(nb)]
        parts += [self._of_closure(k, pin) for k in range(len(mechanism.closures))]
        if free_efforts:
            block = self._on_bodies([], np.zeros((6, mechanism.na)))
            block[:, 6 * nb :] = (-mechanism.selection / self._units).T
            parts.append((_normalized(block), np.zeros((6, mechanism.na))))
        stops = np.cumsum([0, *(E.shape[1] for _, E in parts)])
        numbers = [x.body if x.closure is None else nb + mechanism.closures.index(x.closure) for x in self._connections]
        blocks = [np.zeros((len(self._q), 6 * nb + mechanism.nv, 0)), *(block for block, _ in parts)]
        places = [slice(stops[k], stops[k + 1]) for k in numbers]
        return _System(np.concatenate(blocks, axis=2), places, [parts[k][1] for k in numbers])

    def _on_bodies(self, at: list[tuple[int, Array, int]], E: Array) -> Array:
        """Columns of the wrench E x, E (6, n) or (nt, 6, n), on some bodies at points with signs, (nt, rows, n)."""
        block = np.zeros((len(self._q), 6 * len(self._mechanism.bodies) + self._mechanism.nv, E.shape[-1]))
        for body, point, sign in at:
            if body != WORLD:
                lever = np.tile(np.eye(6), (len(block), 1, 1))
                lever[:, :3, 3:] = skew((point - self._P.c[:, body]) / self._L)
                block[:, 6 * body : 6 * body + 6] += sign * lever @ E
        return block

    def _from_parent(self, b: int) -> Array:
        """Columns of the wrench on a body from its parent: on both, and along the dofs between them."""
        mechanism, P = self._mechanism, self._P
        at = point_of(P, b, anchor(mechanism, b))
        block = self._on_bodies([(b, at, 1), (mechanism.bodies[b].parent, at, -1)], np.eye(6))
        dofs = [d for j in mechanism.joints_of[b] for d in range(*mechanism.dof_slices[j].indices(mechanism.nv))]
        axes, turns = P.axes[:, dofs], self._turns[dofs, None]
        along = np.where(turns, cross(axes, at[:, None] - P.anchors[:, dofs]) / self._L, axes)
        block[:, [6 * len(mechanism.bodies) + d for d in dofs]] = np.concatenate([axes * turns, along], axis=2)
        return block

    def _of_closure(self, k: int, pin: Array | None) -> tuple[Array, Array]:
        """Columns of a closure, and the wrench on its first body per unknown, (6, n)."""
        mechanism, closure, first = self._mechanism, self._mechanism.closures[k], 6 * len(self._mechanism.bodies)
        match closure:
            case ConnectClosure() | WeldClosure():
                E = np.eye(6)[:, 3 * isinstance(closure, ConnectClosure) :]
                if pin is not None and isinstance(closure, ConnectClosure):
                    E = np.concatenate([np.eye(6)[:, :3] @ svd(pin[None])[2][1:].T, E], axis=1)
                return self._on_bodies(ends(self._P, closure), E), E
            case PathClosure() | CoordinateClosure():
                block = self._on_bodies([], np.zeros((6, 1)))
                for segment in closure.segments if isinstance(closure, PathClosure) else ():
                    force = np.eye(6)[:, 3:] @ pull(self._P, segment)[..., None]
                    block += self._on_bodies(ends(self._P, segment), force)
                row = self._state.every_Phi[:, closure_of_rows(mechanism).index(k)] / self._units
                if isinstance(closure, PathClosure):  # its parts pull on bodies: left is a slide that moves no body
                    row = row * [joint.body == WORLD for joint in mechanism.joints for _ in TURNS[joint.kind]]
                block[:, first:, 0] = -row
                return _normalized(block), np.zeros((6, 1))
            case _:
                assert_never(closure)


def _normalized(block: Array) -> Array:
    """Columns of length one: only their direction counts."""
    return block / np.linalg.norm(block, axis=1, keepdims=True)


def _displaced(P: Poses, body: int, step: AnyArray) -> Poses:
    """Poses after a small turn and shift of a body (6,) at its mass centre."""
    R, p, c = (x.astype(complex) for x in (P.R, P.p, P.c))
    R[:, body] += skew(step[:3]) @ P.R[:, body]
    p[:, body] += step[3:] + cross(step[:3], P.p[:, body] - P.c[:, body])
    c[:, body] += step[3:]
    return replace(P, R=R, p=p, c=c)
