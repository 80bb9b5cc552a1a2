"""Operations of the papers' equations on their scalar graph: one count for all models.

The equations run on symbols (`loopcheck.analytic.batch.expressions`): constants are folded, zeros, ones and signs
vanish, and equal operations count once. Sums, products and quotients count one each, a root 6 and a sine or cosine 18,
as in equation (41) of Wang et al. 2019.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from loopcheck.analytic.batch.elimination import factorize
from loopcheck.analytic.batch.expressions import Graph, Op, Scalar, Symbol, value_of
from loopcheck.analytic.batch.trace import Trace, trace
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.papers import wang2019
from loopcheck.robots.arrays import Array
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

COST = {Op.INPUT: 0, Op.NUMBER: 0, Op.ABS: 0, Op.MAX: 0, Op.MIN: 0, Op.SQRT: 6, Op.SIN: 18, Op.COS: 18}
"""Cost of an operation; of all others 1."""
SAMPLE = 3.7
"""Time of the sample [s]; its numbers do not change the counts."""
PRINTED = {"T": 19 * 4 + 33 + 74 + 90, "Ṫ": 7 * 18, "I, C, γ": 7 * 72 + 7 * 145 + 7 * 18, "τ": 18, "τ_a": 63}
"""Table 2 of the paper, by its rows; T with the angles, g and k that it is made of."""


class Number:
    """A scalar of the graph with its rate: an entry of the arrays on which the equations of a paper run."""

    def __init__(self, value: Scalar, rate: Scalar = 0.0) -> None:
        self.value, self.rate = value, rate

    def __add__(self, other: "Number | float") -> "Number":
        y = _number(other)
        return Number(self.value + y.value, self.rate + y.rate)

    __radd__ = __add__

    def __neg__(self) -> "Number":
        return Number(-self.value, -self.rate)

    def __sub__(self, other: "Number | float") -> "Number":
        y = _number(other)
        return Number(self.value - y.value, self.rate - y.rate)

    def __rsub__(self, other: float) -> "Number":
        return _number(other) - self

    def __mul__(self, other: "Number | float") -> "Number":
        if isinstance(other, np.ndarray):
            return NotImplemented
        y = _number(other)
        return Number(self.value * y.value, self.rate * y.value + self.value * y.rate)

    __rmul__ = __mul__

    def __truediv__(self, other: "Number | float") -> "Number":
        y = _number(other)
        ratio = self.value / y.value
        return Number(ratio, (self.rate - ratio * y.rate) / y.value)

    def __rtruediv__(self, other: float) -> "Number":
        return _number(other) / self

    def __pow__(self, power: int) -> "Number":
        if power != 2:
            raise NotImplementedError(f"power must be 2, got {power}")
        return self * self

    def sin(self) -> "Number":
        """Sine."""
        x = _symbol(self.value)
        return Number(x.sin(), x.cos() * self.rate)

    def cos(self) -> "Number":
        """Cosine."""
        x = _symbol(self.value)
        return Number(x.cos(), -(x.sin() * self.rate))

    def sqrt(self) -> "Number":
        """Square root."""
        root = _symbol(self.value).sqrt()
        return Number(root, self.rate / (2.0 * root))


def _number(x: "Number | float") -> Number:
    return x if isinstance(x, Number) else Number(float(x))


def _symbol(x: Scalar) -> Symbol:
    if not isinstance(x, Symbol):
        raise TypeError(f"must be a symbol, got {x}")
    return x


def cost(graph: Graph, outputs: Iterable[Scalar]) -> int:
    """Operations that outputs need, equal ones once."""
    left = [out.place for out in outputs if isinstance(out, Symbol)]
    needed = set[int]()
    while left:
        place = left.pop()
        if place not in needed:
            needed.add(place)
            left += graph.args[place]
    return sum(_cost(graph, place) for place in needed)


def _cost(graph: Graph, place: int) -> int:
    is_sign = graph.ops[place] is Op.SCALE and graph.constants[place] == -1
    return 0 if is_sign else COST.get(graph.ops[place], 1)


def of_wang(case: Case, *, turns_tensors: bool = False) -> dict[str, int]:
    """Operations of a sample of `wang2019` for each row of the paper's table 2, and of all together, as `total`.

    Args:
        turns_tensors: Whether the rotation of the inertia tensors with their bodies counts, which the paper leaves out.
    """
    graph, stages = graph_of_wang(case, turns_tensors=turns_tensors)
    counts, total, outputs = dict[str, int](), 0, list[Scalar]()
    for name, array in stages.items():
        outputs += array.ravel().tolist()
        before, total = total, cost(graph, outputs)
        counts[name] = total - before
    return {**counts, "total": total}


def graph_of_wang(case: Case, *, turns_tensors: bool = False) -> tuple[Graph, dict[str, Any]]:
    """The graph of `wang2019` at `SAMPLE`, and the scalars of each row of the paper's table 2, the efforts last.

    Args:
        turns_tensors: See `of_wang`.
    """
    graph, p, motion = Graph(), wang2019.parameters(case.mechanism), prescribe(case, dt=5.0)
    drive = motion.law(np.array([SAMPLE]))
    pose, rates, second = (each[0] for each in wang2019.generalized_motion(p, drive.q, drive.qd, drive.qdd))
    x, xd, xdd = ([graph.input(float(value)) for value in values] for values in (pose, rates, second))
    moving = array_of([Number(value, rate) for value, rate in zip(x, xd, strict=True)])
    with on_objects(wang2019):
        T = wang2019.twist_shaping(p, moving)
        A = wang2019.actuation(p, array_of([Number(value) for value in x]))
        axes = wang2019._axes(p, array_of([Number(value) for value in x]))
    values, rates_of_T = parts_of(T)
    R = parts_of(axes)[0]
    tensors = [R[:, b] @ tensor.astype(object) @ R[:, b].swapaxes(1, 2) for b, tensor in enumerate(p.I)]
    if not turns_tensors:
        tensors = [_inputs(graph, tensor) for tensor in tensors]
    I, C, gamma = _model(p, values, rates_of_T, tensors, array_of(xd), case.mechanism.gravity)
    tau = (I @ array_of(xdd)[..., None] + C @ array_of(xd)[..., None])[..., 0] - gamma
    return graph, {
        "T": values,
        "Ṫ": rates_of_T,
        "I, C, γ": np.concatenate([I.ravel(), C.ravel(), gamma.ravel()]),
        "τ": tau,
        "τ_a": np.array(minimum_norm(parts_of(A)[0][0].tolist(), tau[0].tolist()), dtype=object),
    }


def _inputs(graph: Graph, tensor: Any) -> Any:
    """A symmetric tensor (1, 3, 3) whose entries are inputs, where they are no numbers."""
    entries = tensor.copy()
    for i, j in zip(*np.triu_indices(3), strict=True):
        if isinstance(tensor[0, i, j], Symbol):
            entries[0, i, j] = entries[0, j, i] = graph.input(tensor[0, i, j].value)
    return entries


def _model(p: Any, T: Any, T_dot: Any, tensors: Any, xd: Any, gravity: Array) -> tuple[Any, Any, Any]:
    """Generalized inertia, its companion and weight (22) to (24) of the bodies of Wang et al."""
    I: Any = np.zeros((1, 3, 3), dtype=object)
    C, gamma = I.copy(), np.zeros((1, 3), dtype=object)
    for body, mass in enumerate(p.m):
        spin, shift = T[:, body, :3], T[:, body, 3:]
        w = (spin @ xd[..., None])[..., 0]
        inertia = tensors[body]
        turning = _skew(w[0])[None] @ inertia
        I = I + spin.swapaxes(1, 2) @ inertia @ spin + mass * (shift.swapaxes(1, 2) @ shift)
        C = C + spin.swapaxes(1, 2) @ (inertia @ T_dot[:, body, :3] + turning @ spin)
        C = C + mass * (shift.swapaxes(1, 2) @ T_dot[:, body, 3:])
        gamma = gamma + mass * (shift.swapaxes(1, 2) @ gravity.astype(object)[:, None])[..., 0]
    return I, C, gamma


def minimum_norm(A: list[list[Scalar]], tau: list[Scalar]) -> list[Scalar]:
    """Efforts Q U⁻ᵀ τ of least norm by the orthogonalization of the columns of A, (33) to (36) of Wang et al.

    Args:
        A: Actuated rates per generalized rate [-, m], 4 rows of 3.
        tau: Generalized forces [N m, N m, N].
    """
    columns = [list(column) for column in zip(*A, strict=True)]
    Q = list[list[Scalar]]()
    y = list[Scalar]()
    for column, force in zip(columns, tau, strict=True):
        left, right = column, force
        for q, known in zip(Q, y, strict=True):
            along = _dot(q, left)
            left = [c - along * e for c, e in zip(left, q, strict=True)]
            right = right - along * known
        size = _symbol(_dot(left, left)).sqrt()
        Q.append([c / size for c in left])
        y.append(right / size)
    return [sum((q[row] * known for q, known in zip(Q, y, strict=True)), 0.0) for row in range(len(A))]


def _dot(x: list[Scalar], y: list[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for a, b in zip(x, y, strict=True):
        total = total + a * b
    return total


def _skew(w: Any) -> Any:
    return np.array([[0.0, -w[2], w[1]], [w[2], 0.0, -w[0]], [-w[1], w[0], 0.0]], dtype=object)


def of_trace(case: Case, motion: Motion) -> tuple[int, int]:
    """Operations and angles of a sample of the generic traced equations, without a formula of the robot."""
    traced: Trace = trace(case.mechanism, motion.q[10])
    return traced.efforts.operations, traced.efforts.angles


def array_of(entries: list[Any]) -> Any:
    """Entries of a sample, shape (1, n)."""
    return np.array([entries], dtype=object)


def parts_of(numbers: Any) -> tuple[Any, Any]:
    """Values and rates of an array of numbers."""
    parts = [np.empty(numbers.shape, dtype=object) for _ in range(2)]
    for place, x in np.ndenumerate(numbers):
        parts[0][place], parts[1][place] = _number(x).value, _number(x).rate
    return parts[0], parts[1]


class _Numpy:
    """numpy on arrays of numbers of a graph; angles by inverse functions are inputs of the graph."""

    def __init__(self, angles: list[Symbol]) -> None:
        changed = {"solve": _solved, "inv": lambda A: _solved(A, np.eye(len(A[0])))}
        self.angles, self.linalg = angles, SimpleNamespace(**{**vars(np.linalg), **changed})
        self.arguments = list[list[Scalar]]()
        """Arguments of the inverse function of each angle."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    @staticmethod
    def zeros(shape: Any, dtype: Any = None) -> Any:
        return np.zeros(shape, dtype=object)

    @staticmethod
    def asarray(entries: Any, dtype: Any = None) -> Any:
        return entries

    def arcsin(self, x: Any) -> Any:
        return self._angle(math.asin, x)

    def arctan2(self, y: Any, x: Any) -> Any:
        return self._angle(math.atan2, y, x)

    @staticmethod
    def remainder(x: Any, y: float) -> Any:
        """Full turns are removed at the pose, without an operation."""
        return x - y * np.vectorize(lambda z: value_of(_number(z).value) // y, otypes=[float])(x)

    def _angle(self, function: Callable[..., float], *arguments: Any) -> Any:
        found = np.empty(np.shape(arguments[0]), dtype=object)
        for place, *entries in zip(np.ndindex(found.shape), *map(np.ravel, arguments), strict=True):
            parts = [_number(entry).value for entry in entries]
            found[place] = function(*map(value_of, parts))
            if any(isinstance(x, Symbol) for x in parts):
                angle = self.angles[len(self.arguments)]
                angle.graph.values[angle.place] = found[place]
                self.arguments.append(parts)
                found[place] = Number(angle)
        return found


def _solved(A: Any, b: Any) -> Any:
    """Solution of A x = b by elimination; the numbers must have no rates."""
    x = np.empty(np.broadcast_shapes(b.shape, (len(A), 1, 1)), dtype=object)
    for k, (left, right) in enumerate(zip(parts_of(A)[0], parts_of(np.broadcast_to(b, x.shape))[0], strict=True)):
        factors = factorize([dict(enumerate(row)) for row in left], len(left))
        x[k] = np.array([[Number(y) for y in factors.solve(list(column))] for column in right.T], dtype=object).T
    return x


@contextmanager
def on_objects(module: ModuleType, angles: Sequence[Symbol] = ()) -> Iterator[_Numpy]:
    """Let a module make arrays of objects.

    Args:
        angles: Inputs for the angles by inverse functions, in their order.
    """
    numpy = _Numpy([*angles])
    try:
        vars(module)["np"] = numpy
        yield numpy
    finally:
        vars(module)["np"] = np
