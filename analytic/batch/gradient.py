"""Derivatives of the generalized forces on the independent coordinates, by reverse mode on the graph of a trace.

With R the efforts on the cut tree less those of the actuators, and multipliers λ from Φᵘᵀ λ = Rᵘ, the forces are
G = Lᵀ (R − Φᵀ λ). Since Φ L = 0, their differential is Lᵀ (dR − dΦᵀ λ): neither L nor λ is differentiated. Dependent
rates and positions are leaves of the sweep. Adjoints pass through them by the factors of Φᵘ (implicit functions).
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from loopcheck.analytic.batch.equations import Moving, cross, motions
from loopcheck.analytic.batch.expressions import Graph, Op, Scalar, Symbol, sign, smallest
from loopcheck.analytic.batch.tape import Tape, assemble_tape
from loopcheck.analytic.batch.trace import Dynamics, Shape, State, across, along, conditioning_at, dynamics, state_of
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.mechanism import Mechanism

CONSTANTS = 10
"""Inertial parameters of a body: mass, first moments x, y, z, and inertia xx, xy, xz, yy, yz, zz about its origin."""
PAIRS = tuple((i, j) for i in range(3) for j in range(i, 3))
"""Places of the inertia's parameters."""
BLOCKS = ("q", "qd", "qdd", "parameters")
"""Derivatives of the efforts."""
Adjoint: TypeAlias = dict[int, Scalar]
"""Derivative of a force along each node."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Gradient:
    """The traced derivatives of a mechanism.

    Inputs of the tape are all joint positions, the velocities and accelerations of the independent dofs, and of the
    `actuators` their efforts τ and the components of S L y, see `mixed`.
    """

    shape: Shape
    is_direct: bool
    """Whether each independent coordinate has an actuator of its own: then the forces are their efforts."""
    directions: Array
    """Rates of the independent coordinates that each force belongs to, D [-], shape (n, n)."""
    actuators: tuple[int, ...]
    """Actuators on dependent dofs or tendons."""
    tape: Tape
    blocks: dict[str, slice]
    """Outputs: `guard` (1), `q`, `qd`, `qdd` (n n each), `rates` A = S L of `actuators` (n each), `mixed` d(A y)/dq of
    the same (n each); if wanted, `parameters` (10 n bodies), `accelerations` of all dofs (nv) with the `force` (n),
    `loops`, forces on the tree less those of `actuators` (nv), `loops_q`, `loops_qd`, `loops_qdd` (nv n each), and with
    `parameters` also `loops_parameters` (10 nv bodies)."""
    conditioning: float
    """Of Φᵘ at the pose of the trace, see `trace.conditioning_at` [-]."""

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        n = len(self.shape.independent)
        return self.shape.mechanism.nq + 2 * n + (len(self.actuators) + n if self.actuators else 0)


def gradient(shape: Shape, wanted: Collection[str]) -> Gradient:
    """Trace the derivatives.

    Args:
        wanted: Additional outputs, `parameters`, `accelerations` or `loops`.

    Raises:
        SingularityError: If the pose is singular.
    """
    mechanism, graph = shape.mechanism, Graph()
    q = np.array([graph.input(float(x)) for x in shape.pose], dtype=object)
    rates, changes = ([graph.input(1.0) for _ in shape.independent] for _ in range(2))
    actuators = [k for k, row in enumerate(mechanism.selection) if row[shape.dependent].any() or (row != 0).sum() > 1]
    acting = [graph.input(1.0) for _ in actuators]
    y = [graph.input(1.0) for _ in (shape.independent if actuators else ())]
    state = state_of(shape, graph, q)
    motion = dynamics(shape, state, _of_independent(shape, rates), _of_independent(shape, changes))
    tau = motion.tau.copy()
    for k, effort in zip(actuators, acting, strict=True):
        for dof in np.flatnonzero(mechanism.selection[k]):
            tau[dof] = tau[dof] - float(mechanism.selection[k, dof]) * effort
    sweep = _Sweep(shape, state, motion, [rates, changes])
    is_direct, D = not actuators and _is_direct(shape), np.eye(len(shape.independent))
    if is_direct:  # the inverse, without its round-off
        A = mechanism.selection[:, shape.independent]
        D = np.divide(1.0, A, out=np.zeros_like(A), where=A != 0)
    moved = [_closed(shape, state, row) for row in D]
    multipliers = state.factors.solve_transposed(list(tau[shape.dependent]), len(state.rows))
    along_y = _closed(shape, state, y) if actuators else q
    outputs: dict[str, list[Scalar]] = {"guard": [_guard(state)]}
    blocks = [sweep.forces(direction, multipliers) for direction in moved]
    outputs |= {name: [x for block in blocks for x in block[k]] for k, name in enumerate(BLOCKS[:3])}
    weights = [_weights(shape, state, k) for k in actuators]
    outputs["rates"] = [
        float(mechanism.selection[k, i]) - across(state.rows, i, w)
        for k, w in zip(actuators, weights, strict=True)
        for i in shape.independent
    ]
    outputs["mixed"] = [x for w in weights for x in sweep.closures(along_y, w)]
    if "accelerations" in wanted:
        outputs["force"] = [sum((t * s for t, s in zip(tau, direction, strict=True)), 0.0) for direction in moved]
        outputs["accelerations"] = list(motion.qdd)
    units: Iterable[AnyArray] = np.eye(mechanism.nv, dtype=object) if "loops" in wanted else ()
    if "parameters" in wanted:
        for name, twists in (("parameters", moved), ("loops_parameters", units)):
            outputs[name] = [x for twist in twists for x in _parameters(mechanism, state, motion.moving, twist)]
    if "loops" in wanted:
        of_dofs = [sweep.forces(unit, [0.0] * len(state.rows)) for unit in units]
        outputs["loops"] = list(tau)
        outputs |= {f"loops_{name}": [x for block in of_dofs for x in block[k]] for k, name in enumerate(BLOCKS[:3])}
    ends = np.cumsum([0, *map(len, outputs.values())]).tolist()
    return Gradient(
        shape=shape,
        is_direct=is_direct,
        directions=D,
        actuators=tuple(actuators),
        tape=assemble_tape(graph, [x for block in outputs.values() for x in block]),
        blocks={name: slice(a, b) for name, a, b in zip(outputs, ends, ends[1:], strict=False)},
        conditioning=conditioning_at(shape),
    )


def _is_direct(shape: Shape) -> bool:
    """Whether each independent coordinate has an actuator of its own, and there are no others."""
    moves = shape.mechanism.selection[:, shape.independent] != 0
    return moves.shape[0] == moves.shape[1] and bool((moves.sum(axis=0) == 1).all() and (moves.sum(axis=1) == 1).all())


def _of_independent(shape: Shape, values: Iterable[Scalar]) -> AnyArray:
    """Joint rates with the rates of the dependent dofs zero, shape (nv,)."""
    rates = np.zeros(shape.mechanism.nv, dtype=object)
    rates[shape.independent] = list(values)
    return rates


def _closed(shape: Shape, state: State, values: Iterable[Scalar]) -> AnyArray:
    """Joint rates that keep the loops closed, L u, shape (nv,)."""
    rates = _of_independent(shape, values)
    rates[shape.dependent] = state.factors.solve([-along(row, rates) for row in state.rows])
    return rates


def _weights(shape: Shape, state: State, actuator: int) -> list[Scalar]:
    """Multipliers of a unit effort of an actuator on dependent dofs."""
    row = shape.mechanism.selection[actuator]
    return state.factors.solve_transposed(row[shape.dependent].tolist(), len(state.rows))


def _guard(state: State) -> Scalar:
    """Smallest pivot relative to that at the pose of the trace."""
    pivots = state.factors.relative_pivots
    return smallest(map(abs, pivots)) if pivots else 1.0


class _Sweep:
    """Reverse sweeps over the graph of a motion."""

    def __init__(self, shape: Shape, state: State, motion: Dynamics, inputs: list[list[Symbol]]) -> None:
        self.shape, self.state, self.motion = shape, state, motion
        self.inputs = [[x.place for x in row] for row in inputs]
        self.rates = [motion.qd, motion.qdd]
        leaves = [_places(self.rates[k][shape.dependent]) | set(self.inputs[k]) for k in range(2)]
        self.leaves = leaves[0] | leaves[1] | _places(state.q)
        self.orders = _orders(state.graph, leaves)

    def forces(self, direction: AnyArray, multipliers: list[Scalar]) -> list[list[Scalar]]:
        """Derivatives of a force along the independent positions, velocities and accelerations.

        Args:
            direction: Joint velocities that the force belongs to, closed [-], shape (nv,).
        """
        adjoint: Adjoint = {}
        for effort, weight in zip(self.motion.tau, direction, strict=True):
            _add(adjoint, effort, weight)
        self._add_closures(adjoint, direction, [-x for x in multipliers])
        accelerations = self._through(adjoint, 1)
        velocities = self._through(adjoint, 0)
        return [self._positions(adjoint), velocities, accelerations]

    def closures(self, rates: AnyArray, weights: list[Scalar]) -> list[Scalar]:
        """Derivatives of −wᵀ Φ v along the independent positions.

        Args:
            rates: Joint velocities v [m/s or rad/s], held, shape (nv,).
            weights: Weights w of the rows, held.
        """
        adjoint: Adjoint = {}
        self._add_closures(adjoint, rates, [-x for x in weights])
        return self._positions(adjoint)

    def _through(self, adjoint: Adjoint, order: int) -> list[Scalar]:
        """Pass adjoints on from velocities (0) or accelerations (1) of dependent dofs; those of the independent."""
        rates, places = self.rates[order], self.inputs[order]
        self._backward(adjoint, order + 1)
        dependent = [_taken(adjoint, x, places) for x in rates[self.shape.dependent]]
        multipliers = self._multipliers(dependent)
        self._add_closures(adjoint, rates, multipliers)
        for change, x in zip(self.motion.changes if order else (), multipliers, strict=bool(order)):
            _add(adjoint, change, x)
        return [
            adjoint.pop(place, 0.0) + across(self.state.rows, dof, multipliers)
            for place, dof in zip(places, self.shape.independent, strict=True)
        ]

    def _positions(self, adjoint: Adjoint) -> list[Scalar]:
        """Derivatives along the independent positions."""
        self._backward(adjoint, 0)
        q = self.state.q
        of_dofs = _along_dofs(self.shape.mechanism, q, np.array([adjoint.pop(x.place, 0.0) for x in q], object))
        multipliers = self._multipliers(list(of_dofs[self.shape.dependent]))
        return [of_dofs[dof] + across(self.state.rows, dof, multipliers) for dof in self.shape.independent]

    def _multipliers(self, dependent: list[Scalar]) -> list[Scalar]:
        return self.state.factors.solve_transposed([-x for x in dependent], len(self.state.rows))

    def _add_closures(self, adjoint: Adjoint, rates: AnyArray, multipliers: list[Scalar]) -> None:
        """Add the adjoints of multipliersᵀ Φ rates along the entries of Φ."""
        for row, x in zip(self.state.rows, multipliers, strict=True):
            for dof, entry in row.columns.items():
                _add(adjoint, entry, x * rates[dof])

    def _backward(self, adjoint: Adjoint, level: int) -> None:
        for place in self.orders[level]:
            if place in adjoint and place not in self.leaves:
                x = adjoint.pop(place)
                for arg, slope in _slopes(self.state.graph, place):
                    _add(adjoint, arg, slope * x)


def _orders(graph: Graph, leaves: list[set[int]]) -> list[list[int]]:
    """Nodes that depend on positions alone, also on velocities, and also on accelerations, each from the last on."""
    levels: list[int] = []
    for place, args in enumerate(graph.args):
        own = 2 if place in leaves[1] else 1 if place in leaves[0] else 0
        levels.append(max([own, *(levels[arg] for arg in args)]))
    return [[place for place in reversed(range(len(levels))) if levels[place] == level] for level in range(3)]


def _places(symbols: Iterable[Scalar]) -> set[int]:
    return {x.place for x in symbols if isinstance(x, Symbol)}


def _taken(adjoint: Adjoint, x: Scalar, inputs: list[int]) -> Scalar:
    """Adjoint of a dependent rate, removed; that of a node that is an independent rate stays there."""
    return adjoint.pop(x.place, 0.0) if isinstance(x, Symbol) and x.place not in inputs else 0.0


def _add(adjoint: Adjoint, x: Scalar, weight: Scalar) -> None:
    """Add to the adjoint of a scalar; numbers have none."""
    if isinstance(x, Symbol) and (isinstance(weight, Symbol) or weight != 0):
        adjoint[x.place] = adjoint.get(x.place, 0.0) + weight


SLOPES: Mapping[Op, Callable[[Symbol, Symbol, Symbol, float], tuple[Scalar, ...]]] = {
    Op.ADD: lambda z, x, y, k: (1.0, 1.0),
    Op.SUB: lambda z, x, y, k: (1.0, -1.0),
    Op.MUL: lambda z, x, y, k: (y, x),
    Op.DIV: lambda z, x, y, k: (1.0 / y, -z * (1.0 / y)),
    Op.SHIFT: lambda z, x, y, k: (1.0,),
    Op.SCALE: lambda z, x, y, k: (k,),
    Op.REFLECT: lambda z, x, y, k: (-1.0,),
    Op.INVERSE: lambda z, x, y, k: (z * z * (-1 / k) if k else 0.0,),
    Op.SQRT: lambda z, x, y, k: (0.5 / z,),
    Op.SIN: lambda z, x, y, k: (x.cos(),),
    Op.COS: lambda z, x, y, k: (-x.sin(),),
    Op.ABS: lambda z, x, y, k: (sign(x),),
}
"""Derivatives of a node z along its arguments x, y; see `expressions.Op`. No equation of motion has the others."""


def _slopes(graph: Graph, place: int) -> Iterator[tuple[Symbol, Scalar]]:
    """The arguments of a node with its derivative along each."""
    args = [Symbol(graph, arg) for arg in graph.args[place]]
    rule = SLOPES[graph.ops[place]]
    return zip(args, rule(Symbol(graph, place), args[0], args[-1], graph.constants[place]), strict=True)


def _along_dofs(mechanism: Mechanism, q: AnyArray, slope: AnyArray) -> AnyArray:
    """Derivatives along the dofs from those along the positions; see `trace._retract`, shape (nv,)."""
    of_dofs = np.zeros(mechanism.nv, dtype=object)
    for joint, columns, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
        if joint.kind in ("hinge", "slide"):
            of_dofs[dofs] = slope[columns]
            continue
        turn = slice(columns.stop - 4, columns.stop)
        of_dofs[dofs.start : dofs.stop - 3] = slope[columns.start : turn.start]
        (w, x, y, z), (a, b, c, d) = q[turn], slope[turn]
        turned = [
            w * b - x * a + z * c - y * d,
            w * c - y * a - z * b + x * d,
            w * d - z * a + y * b - x * c,
        ]
        of_dofs[dofs.stop - 3 : dofs.stop] = [0.5 * entry for entry in turned]
    return of_dofs


def _parameters(mechanism: Mechanism, state: State, moving: list[Moving], direction: AnyArray) -> list[Scalar]:
    """Derivatives of a force along the inertial parameters of all bodies: the power of their wrenches in a motion.

    Args:
        direction: Joint velocities that the force belongs to, closed [-], shape (nv,).
    """
    still = replace(mechanism, gravity=np.zeros(3))
    rest = np.zeros(mechanism.nv, dtype=object)
    twists = motions(still, state.bodies, rest, direction)  # of bodies at rest, accelerations are twists
    entries: list[Scalar] = []
    for body, link, twist, frame in zip(mechanism.bodies, state.bodies, twists, moving, strict=True):
        w, alpha, turning = frame.w, frame.alpha, twist.alpha
        a = frame.a + body.gravity_compensation * (link.R.T @ mechanism.gravity.astype(object))
        first = cross(twist.a, alpha) + cross(w, cross(w, twist.a)) + cross(a, turning)
        across_w = cross(turning, w)
        entries += [twist.a @ a, *first]
        for i, j in PAIRS:
            both = turning[i] * alpha[j] + across_w[i] * w[j]
            entries.append(both if i == j else both + turning[j] * alpha[i] + across_w[j] * w[i])
    return entries
