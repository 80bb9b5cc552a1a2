"""Wrenches in the connections of a mechanism, in two ways without common dynamics, and their uniqueness.

A connection is a body with its parent, or a closure of two bodies. Its wrench acts on the body from its parent, or on
body 1 from body 2, about a point of that body, in the axes of that body. Couplings of joints act along dofs alone.

`recursive_wrenches` goes from the leaves to the root, with closure forces from the equations of the tree (as `noc`).
`maximal_wrenches` takes the wrench that each body needs from energies of free bodies, and solves the equations of all
bodies and all dofs at once (as `lagrange`). Both share poses and directions of dofs, and no equation of motion.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple, assert_never

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.analytic.dynamics.lagrange import STEP, Lagrange, lagrange_model
from loopcheck.analytic.dynamics.noc import body_wrenches, needed_efforts, tree_model
from loopcheck.analytic.kinematics.closures import (
    RANK_TOLERANCE,
    closure_of_rows,
    pseudo_inverse,
    row_factors,
)
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
from loopcheck.robots.connections import Connection, anchor, connections
from loopcheck.robots.mechanism import (
    WORLD,
    Closure,
    ConnectClosure,
    CoordinateClosure,
    Joint,
    Mechanism,
    PathClosure,
    RigidClosure,
    Segment,
    WeldClosure,
)
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.robots.size import size, unit_rates

ROUND_OFF = 1e-12
"""Largest difference of exact wrenches over the largest sum of terms of all connections [-]; smaller wrenches are 0."""


ARMS = 1e-3
"""Least sum of the terms of a moment over the size times that of a force [-]: arms have the round-off of positions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrenches:
    """Wrenches of all connections, in their axes and about their points, moment first."""

    wrench: Array
    """[N m, N], shape (nt, connections, 6)."""
    terms: tuple[float, float] = (0.0, 0.0)
    """Largest sums of the sizes of the terms of a moment and of a force [N m, N]."""


def _bound_by_springs(mechanism: Mechanism) -> list[list[int]]:
    """Bodies in groups that springs between points hold together; most are alone."""
    groups = [[b] for b in range(len(mechanism.bodies))]
    for spring in mechanism.point_springs:
        bound = [group for group in groups if {spring.body1, spring.body2} & {*group}]
        groups = [group for group in groups if group not in bound] + [sorted(chain.from_iterable(bound))] * bool(bound)
    return groups


def _exploded(mechanism: Mechanism, group: Sequence[int]) -> Mechanism:
    """Some bodies without joints and closures, their frames at their mass centres, under all their loads."""
    to = {WORLD: WORLD, **{b: k for k, b in enumerate(group)}}
    centers = {WORLD: np.zeros(3), **{b: mechanism.bodies[b].center for b in group}}
    still, identity = np.zeros(3), np.eye(3)
    joint = Joint(name="", kind="free", body=0, axis=still, anchor=still, rest_position=np.eye(7)[3])
    return Mechanism(
        model=mechanism.model,
        bodies=tuple(
            replace(mechanism.bodies[b], parent=WORLD, position=still, rotation=identity, center=still) for b in group
        ),
        joints=tuple(replace(joint, name=str(b), body=k) for k, b in enumerate(group)),
        closures=(),
        actuators=(),
        sites=(),
        keyframes={},
        gravity=mechanism.gravity,
        point_springs=tuple(
            replace(
                spring,
                body1=to[spring.body1],
                point1=spring.point1 - centers[spring.body1],
                body2=to[spring.body2],
                point2=spring.point2 - centers[spring.body2],
            )
            for spring in mechanism.point_springs
            if {spring.body1, spring.body2} & {*group}
        ),
        wrenches=tuple(
            replace(load, body=to[load.body], point=load.point - centers[load.body])
            for load in mechanism.wrenches
            if load.body in group
        ),
    )


def recursive_wrenches(state: State, qdd: AccelerationSeries, effort: EffortSeries) -> Wrenches:
    """Wrenches by Newton-Euler equations from the leaves to the root, with closure forces of least norm.

    Args:
        state: Positions and velocities that keep the loops closed.
        qdd: Joint accelerations that keep them closed.
        effort: Efforts of the actuators that the motion requires.
    """
    mechanism, P = state.mechanism, state.poses
    needed, sizes = body_wrenches(state, qdd)
    lam, of_rows = _multipliers(state, qdd, effort), np.array(closure_of_rows(mechanism))
    found: dict[str, tuple[Array, Array]] = {}
    for k, closure in enumerate(mechanism.closures):
        for body, point, force, moment in _actions(closure, P, lam[:, of_rows == k]):
            wrench = np.concatenate([moment, force], axis=1)
            found.setdefault(closure.name, (wrench, _sizes(wrench)))
            if body != WORLD:
                arm = point - P.c[:, body]
                needed[:, body] -= _moved(wrench, arm)
                sizes[:, body] += _moved_sizes(_sizes(wrench), arm)
    for b in reversed(range(len(mechanism.bodies))):
        parent = mechanism.bodies[b].parent
        if parent != WORLD:
            arm = P.c[:, b] - P.c[:, parent]
            needed[:, parent] += _moved(needed[:, b], arm)
            sizes[:, parent] += _moved_sizes(sizes[:, b], arm)
    wrenches, terms = [], [np.zeros((len(state.q), 2))]
    for connection in connections(mechanism):
        arm = P.c[:, connection.body] - point_of(P, connection.body, connection.point)
        of_tree = (_moved(needed[:, connection.body], arm), _moved_sizes(sizes[:, connection.body], arm))
        wrench, sums = of_tree if connection.closure is None else found[connection.closure.name]
        wrenches.append(wrench)
        terms.append(sums)
    moment, force = np.max(terms, axis=(0, 1))
    moment = max(moment, ARMS * size(mechanism) * force)
    return Wrenches(wrench=_in_axes(mechanism, P, wrenches), terms=(float(moment), float(force)))


def _multipliers(state: State, qdd: AccelerationSeries, effort: EffortSeries) -> Array:
    """Multipliers of least norm of all closure equations [N or N m], shape (nt, nc)."""
    mechanism, units = state.mechanism, unit_rates(state.mechanism)
    force = tree_model(state).force(qdd, state.qd) - effort @ mechanism.selection
    scaled = state.Phi * units
    factors = row_factors(scaled)
    inverse = pseudo_inverse(factors * scaled).swapaxes(1, 2)
    lam: Array = (factors * (inverse @ (force * units)[..., None]))[..., 0]
    return lam if state.resolved is None else (state.resolved.swapaxes(1, 2) @ lam[..., None])[..., 0]


def _actions(closure: Closure, P: Poses, lam: Array) -> Iterator[tuple[int, Array, Array, Array]]:
    """Force and moment of a closure on each of its bodies at a point, world axes; body 1 first.

    Args:
        lam: Multipliers of its equations, (nt, rows).
    """
    none = np.zeros((len(P.p), 3))
    match closure:
        case ConnectClosure() | WeldClosure():
            R1 = np.eye(3) if closure.body1 == WORLD else P.R[:, closure.body1]
            moment = -(R1 @ lam[:, 3:, None])[..., 0] if isinstance(closure, WeldClosure) else none
            for body, point, sign in _ends(P, closure):
                yield body, point, sign * lam[:, :3], sign * moment
        case PathClosure():
            for segment in closure.segments:
                for body, point, sign in _ends(P, segment):
                    yield body, point, sign * lam * _along(P, segment) / segment.divisor, none
        case CoordinateClosure():
            return
        case _:
            assert_never(closure)


def _moved(wrench: Array, arm: Array) -> Array:
    """Wrenches (nt, 6) about another point, their own less an arm (nt, 3)."""
    return np.concatenate([wrench[:, :3] + cross(arm, wrench[:, 3:]), wrench[:, 3:]], axis=1)


def _moved_sizes(sizes: Array, arm: Array) -> Array:
    """Sums of terms of moment and force (nt, 2) about another point."""
    return np.stack([sizes[:, 0] + np.linalg.norm(arm, axis=1) * sizes[:, 1], sizes[:, 1]], axis=1)


def _sizes(wrench: Array) -> Array:
    return np.linalg.norm(wrench.reshape(-1, 2, 3), axis=2)


def _in_axes(mechanism: Mechanism, P: Poses, wrenches: Sequence[Array]) -> Array:
    """Wrenches in world axes (connections, nt, 6), in the axes of their connections, shape (nt, connections, 6)."""
    turned = np.zeros((len(P.p), len(wrenches), 6))
    for k, (connection, wrench) in enumerate(zip(connections(mechanism), wrenches, strict=True)):
        turned[:, k] = (_axes(P, connection).swapaxes(1, 2) @ wrench[..., None])[..., 0]
    return turned


def _axes(P: Poses, connection: Connection) -> Array:
    """Map of wrenches from the axes of a connection to world axes, (nt, 6, 6)."""
    T = np.zeros((len(P.p), 6, 6))
    T[:, :3, :3] = T[:, 3:, 3:] = np.eye(3) if connection.body == WORLD else P.R[:, connection.body]
    return T


@dataclass(frozen=True, slots=True, kw_only=True)
class Uniqueness:
    """Parts of the wrenches that the equations of motion determine, moments over the size of the robot."""

    null: AnyArray
    """Dimension of the null space of the equations [-], shape (nt,)."""
    components: AnyArray
    """Whether a component is unique. Shape (nt, connections, 6), boolean."""
    projectors: Array
    """Projectors on the unique functionals of each wrench [-], shape (nt, connections, 6, 6)."""

    @property
    def functionals(self) -> AnyArray:
        """Number of unique functionals of each wrench [-], shape (nt, connections)."""
        return np.rint(np.trace(self.projectors, axis1=2, axis2=3)).astype(int)

    def among(self, given: AnyArray) -> "Uniqueness":
        """The unique parts that given components alone determine.

        Args:
            given: Whether a component has a value. Shape (nt, connections, 6), boolean.
        """
        lost = np.concatenate([np.eye(6) - self.projectors, ~given[..., None] * np.eye(6)], axis=3)
        U, sizes, _ = np.linalg.svd(lost)
        U = U * (sizes > RANK_TOLERANCE)[..., None, :]
        return replace(self, components=self.components & given, projectors=np.eye(6) - U @ U.swapaxes(2, 3))


class MaximalWrenches:
    """Wrenches from the equations of all bodies and all dofs at once, and their uniqueness."""

    def __init__(self, mechanism: Mechanism, q: PositionSeries) -> None:
        """Equations of a mechanism at positions with closed loops."""
        self._mechanism, self._q, self._L = mechanism, q, size(mechanism)
        self._state = State.at_rest(mechanism, q)
        self._connections, self._P = connections(mechanism), self._state.poses
        self._turns = np.array([turn for joint in mechanism.joints for turn in TURNS[joint.kind]], dtype=bool)
        self._rank_limit = max(RANK_TOLERANCE, mechanism.closing.noise)
        self._system = self._equations()
        self._decomposed = [svd(A) for A in self._system.A]

    def __call__(self, qd: VelocitySeries, qdd: AccelerationSeries, effort: EffortSeries) -> Wrenches:
        """Wrenches of least norm.

        Args:
            qd: Joint velocities that keep the loops closed.
            qdd: Joint accelerations that keep them closed.
            effort: Efforts of the actuators that the motion requires.
        """
        mechanism, units = self._mechanism, np.where(self._turns, self._L, 1.0)
        massless = [replace(b, mass=0.0, inertia=np.zeros((3, 3))) for b in mechanism.bodies]
        along = lagrange_model(replace(mechanism, bodies=tuple(massless), point_springs=(), wrenches=()), self._q, qd)
        right = np.concatenate(
            [self._needed(qd, qdd) / np.tile([self._L] * 3 + [1.0] * 3, len(massless)),
             (effort @ mechanism.selection - along.force(qdd)) / units], axis=1)  # fmt: skip
        A, of_unknowns, columns = self._system
        x = np.zeros((len(qd), A.shape[2]))
        for k, (U, values, V_T) in enumerate(self._decomposed):
            n = self._rank(values)
            x[k] = V_T[:n].T @ ((right[k] @ U[:, :n]) / values[:n])
            x[k] += V_T[:n].T @ (((right[k] - A[k] @ x[k]) @ U[:, :n]) / values[:n])
        x *= of_unknowns
        return Wrenches(wrench=_in_axes(mechanism, self._P, [x[:, place] @ E.T for place, E in columns]))

    def uniqueness(self, pin: Array | None = None, *, free_efforts: bool = False) -> "Uniqueness":
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
        nt, n = len(self._q), len(self._connections)
        null, components = np.zeros(nt, dtype=int), np.zeros((nt, n, 6), dtype=bool)
        projectors, axes = np.zeros((nt, n, 6, 6)), [_axes(self._P, connection) for connection in self._connections]
        for k, (_, values, V_T) in enumerate(self._decomposed if is_file else map(svd, system.A)):
            N = V_T[self._rank(values) :].T
            null[k] = N.shape[1]
            for j, (columns, E) in enumerate(system.columns):
                N_j = axes[j][k].T @ E @ N[columns]
                U, sizes, _ = svd(np.concatenate([N_j, np.zeros((6, 1))], axis=1))
                U = U[:, : int((sizes > RANK_TOLERANCE).sum())]
                components[k, j] = np.linalg.norm(N_j, axis=1) < RANK_TOLERANCE
                projectors[k, j] = np.eye(6) - U @ U.T
        return Uniqueness(null=null, components=components, projectors=projectors)

    def _rank(self, values: Array) -> int:
        return int((values > self._rank_limit * values[0]).sum()) if len(values) else 0

    def _needed(self, qd: VelocitySeries, qdd: AccelerationSeries) -> Array:
        """Wrench that each body needs about its mass centre, from energies of free bodies, (nt, 6 nb)."""
        mechanism, P, q = self._mechanism, self._P, self._q
        K_dot = State.at_rest(mechanism, retract(mechanism, q, 1j * STEP * qd)).K.imag / STEP
        K = self._state.K
        twist, rate = (
            (K @ qd[:, None, :, None])[..., 0],
            (K @ qdd[:, None, :, None] + K_dot @ qd[:, None, :, None])[..., 0],
        )
        needed, R = np.zeros((len(q), len(mechanism.bodies), 2, 3)), P.R
        in_body = R.swapaxes(-1, -2)

        def of_free(values: Array) -> Array:
            """Rates of a free joint: of the mass centre in world axes, angular in body axes."""
            return np.concatenate([values[..., 3:], (in_body @ values[..., :3, None])[..., 0]], axis=2)

        quaternions = Rotation.from_matrix(R.reshape(-1, 3, 3)).as_quat(scalar_first=True).reshape(*R.shape[:2], 4)
        position, v, a = np.concatenate([P.c, quaternions], axis=2), of_free(twist), of_free(rate)
        for group in _bound_by_springs(mechanism):
            free = _exploded(mechanism, group)
            at, rates, changes = (x[:, group].reshape(len(q), -1) for x in (position, v, a))
            force = lagrange_model(free, at, rates).force(changes).reshape(len(q), len(group), 2, 3)
            needed[:, group, 0], needed[:, group, 1] = (R[:, group] @ force[:, :, 1, :, None])[..., 0], force[:, :, 0]
        return needed.reshape(len(q), -1)

    def _equations(self, pin: Array | None = None, *, free_efforts: bool = False) -> "_System":
        """Equations of all bodies and dofs.

        Rows: moment and force about the mass centre of each body, then dofs. Unknowns: wrenches on all bodies from
        their parents about the points of connections, those of closures, and efforts if these are free.

        Args:
            pin: Direction of pins that closures of two points stand for [-], shape (3,); None: they are balls.
        """
        mechanism, L, nb = self._mechanism, self._L, len(self._mechanism.bodies)
        parts = {b: _Part(self._from_parent(b), [L] * 3 + [1.0] * 3, np.eye(6)) for b in range(nb)}
        parts |= {nb + k: self._of_closure(k, pin) for k in range(len(mechanism.closures))}
        if free_efforts:
            block = self._on_bodies([], np.zeros((6, mechanism.na)))
            block[:, 6 * nb :] = -mechanism.selection.T
            units = [L if unit == "N m" else 1.0 for unit in mechanism.actuator_units]
            parts[len(parts)] = _Part(block, units, np.zeros((6, mechanism.na)))
        ends = np.cumsum([0, *(len(part.units) for part in parts.values())])
        columns = []
        for connection in self._connections:
            k = connection.body if connection.closure is None else nb + mechanism.closures.index(connection.closure)
            columns.append((slice(ends[k], ends[k + 1]), parts[k].E))
        of_rows = np.concatenate([np.tile([L] * 3 + [1.0] * 3, nb), np.where(self._turns, L, 1.0)])
        of_unknowns = np.concatenate([np.zeros(0), *(part.units for part in parts.values())])
        blocks = [np.zeros((len(self._q), len(of_rows), 0)), *(part.block for part in parts.values())]
        return _System(np.concatenate(blocks, axis=2) / of_rows[:, None] * of_unknowns, of_unknowns, columns)

    def _on_bodies(self, ends: Sequence[tuple[int, Array, int]], E: Array) -> Array:
        """Columns of the wrench E x, E (6, n) or (nt, 6, n), on some bodies at points with signs, (nt, rows, n)."""
        block = np.zeros((len(self._q), 6 * len(self._mechanism.bodies) + self._mechanism.nv, E.shape[-1]))
        for body, point, sign in ends:
            if body != WORLD:
                lever = np.tile(np.eye(6), (len(block), 1, 1))
                lever[:, :3, 3:] = skew(point - self._P.c[:, body])
                block[:, 6 * body : 6 * body + 6] += sign * lever @ E
        return block

    def _from_parent(self, b: int) -> Array:
        """Columns of the wrench on a body from its parent: on both, and along the dofs between them."""
        mechanism, P = self._mechanism, self._P
        at = point_of(P, b, anchor(mechanism, b))
        block = self._on_bodies([(b, at, 1), (mechanism.bodies[b].parent, at, -1)], np.eye(6))
        dofs = [d for j in mechanism.joints_of[b] for d in range(*mechanism.dof_slices[j].indices(mechanism.nv))]
        axes, turns = P.axes[:, dofs], self._turns[dofs, None]
        along = np.where(turns, cross(axes, at[:, None] - P.anchors[:, dofs]), axes)
        block[:, [6 * len(mechanism.bodies) + d for d in dofs]] = np.concatenate([axes * turns, along], axis=2)
        return block

    def _of_closure(self, k: int, pin: Array | None) -> "_Part":
        """Columns of a closure: on its bodies, and along dofs."""
        mechanism, closure, first = self._mechanism, self._mechanism.closures[k], 6 * len(self._mechanism.bodies)
        Phi = self._state.every_Phi[:, closure_of_rows(mechanism).index(k)]
        match closure:
            case ConnectClosure() | WeldClosure():
                E = np.eye(6)[:, 3 * isinstance(closure, ConnectClosure) :]
                if pin is not None and isinstance(closure, ConnectClosure):
                    E = np.concatenate([np.eye(6)[:, :3] @ svd(pin[None])[2][1:].T, E], axis=1)
                units = [self._L] * (E.shape[1] - 3) + [1.0] * 3
                return _Part(self._on_bodies(_ends(self._P, closure), E), units, E)
            case PathClosure():
                block = self._on_bodies([], np.zeros((6, 1)))
                for segment in closure.segments:
                    along = _along(self._P, segment) / segment.divisor
                    pull = np.concatenate([np.zeros_like(along), along], axis=1)[..., None]
                    block += self._on_bodies(_ends(self._P, segment), pull)
                slides = [
                    d.start for d, x in zip(mechanism.dof_slices, mechanism.joints, strict=True) if x.body == WORLD
                ]
                block[:, [first + d for d in slides], 0] = -Phi[:, slides]
                return _Part(block, [1.0], np.zeros((6, 1)))
            case CoordinateClosure():
                block = self._on_bodies([], np.zeros((6, 1)))
                block[:, first:, 0] = -Phi
                unit = self._L if mechanism.effort_unit(closure.follower) == "N m" else 1.0
                return _Part(block, [unit], np.zeros((6, 1)))
            case _:
                assert_never(closure)


class _System(NamedTuple):
    """Linear equations of the wrenches."""

    A: Array
    """Coefficients, moments divided by the size of the robot [-], shape (nt, rows, n)."""
    units: Array
    """Size of the robot for a moment, 1 for a force [m or 1], shape (n,)."""
    columns: list[tuple[slice, Array]]
    """Unknowns of each connection, and its wrench per unknown in world axes [-], shape (6, any)."""


class _Part(NamedTuple):
    """Columns of the equations of all bodies and dofs."""

    block: Array
    """The columns [-, m or 1/m], shape (nt, rows, n)."""
    units: list[float]
    """Size of the robot for a moment, 1 for a force [m or 1], shape (n,)."""
    E: Array
    """Wrench per unknown, world axes [-], shape (6, n)."""


def _ends(P: Poses, closure: RigidClosure | Segment) -> list[tuple[int, Array, int]]:
    """Both bodies of a closure with their points in W (nt, 3) and the signs of its wrench."""
    ends = ((closure.body1, closure.point1, 1), (closure.body2, closure.point2, -1))
    return [(body, point_of(P, body, point), sign) for body, point, sign in ends]


def _along(P: Poses, segment: Segment) -> Array:
    """Direction from the second point of a segment to the first, (nt, 3)."""
    (_, p1, _), (_, p2, _) = _ends(P, segment)
    return (p1 - p2) / np.linalg.norm(p1 - p2, axis=1, keepdims=True)


class Reactions(NamedTuple):
    """Wrenches of a case in both ways, their uniqueness, and their agreement."""

    connections: list[Connection]
    motion: Motion
    """The samples."""
    recursive: Wrenches
    maximal: Wrenches
    of_file: Uniqueness
    """Uniqueness with the closures of the file."""
    of_robot: Uniqueness
    """Uniqueness that does not depend on the place of the cuts."""
    error: Array
    """Largest difference of the unique functionals over the largest sum of terms, by connection [-], shape (n,)."""


def reactions(case: Case, motion: Motion, pin: Array | None, samples: int = 9) -> Reactions:
    """Wrenches of the connections at some samples of a motion.

    Args:
        pin: Normal of a planar robot (`loopcheck.analytic.motion.configurations.normal`) [-], shape (3,); None: the
            robot moves in space.
        samples: Number of samples, equally spaced, the first and the last included [-].
    """
    mechanism = case.mechanism
    at = np.unique(np.linspace(0, len(motion.t) - 1, samples).round().astype(int))
    motion = replace(motion, t=motion.t[at], q=motion.q[at], qd=motion.qd[at], qdd=motion.qdd[at])
    state = State(mechanism=mechanism, q=motion.q, qd=motion.qd)
    recursive = recursive_wrenches(state, motion.qdd, needed_efforts(state, motion.qdd).effort)
    equations = MaximalWrenches(mechanism, motion.q)
    maximal = equations(motion.qd, motion.qdd, Lagrange().compute_efforts(case, motion).effort)
    of_file = equations.uniqueness()
    of_robot = of_file if pin is None else equations.uniqueness(pin)
    return Reactions(
        connections=connections(mechanism),
        motion=motion,
        recursive=recursive,
        maximal=maximal,
        of_file=of_file,
        of_robot=of_robot,
        error=disagreement(recursive, maximal, of_robot, size(mechanism)),
    )


def disagreement(first: Wrenches, second: Wrenches, unique: Uniqueness, length: float) -> Array:
    """Largest difference of unique functionals over the largest sum of terms, by connection [-], shape (n,).

    Args:
        first: Wrenches with the sums of their terms.
        length: Size of the robot [m].
    """
    units, terms = np.repeat([length, 1.0], 3), np.repeat(first.terms, 3)
    difference = (unique.projectors @ ((first.wrench - second.wrench) / units)[..., None])[..., 0] * units
    relative = np.divide(np.abs(difference), terms, out=np.where(difference == 0, 0.0, np.inf), where=terms > 0)
    return np.asarray(relative.max(axis=(0, 2), initial=0.0))
