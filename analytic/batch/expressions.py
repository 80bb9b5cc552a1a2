"""Symbolic scalars: equations evaluated on them leave a graph of their operations.

Constants are folded, zeros and ones vanish, and equal operations share a node. Every node carries its value at a pose,
so that the equations may choose by size (a pivot) while they are traced.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial, reduce
from typing import TypeAlias, Union

import numpy as np

TINY = 1e-300
"""A number that changes no other of more than 1e-284, and whose inverse is finite."""


class Op(IntEnum):
    """Operation of a node on its arguments x, y and its constant k."""

    INPUT = 0
    ADD = 1  # x + y
    SUB = 2  # x − y
    MUL = 3  # x y
    DIV = 4  # x / y
    SHIFT = 5  # x + k
    SCALE = 6  # k x
    REFLECT = 7  # k − x
    INVERSE = 8  # k / x
    SQRT = 9
    SIN = 10
    COS = 11
    ABS = 12
    MAX = 13
    MIN = 14
    NUMBER = 15  # k


@dataclass(slots=True)
class Graph:
    """The operations of a trace, each after its arguments."""

    ops: list[Op] = field(default_factory=list)
    args: list[tuple[int, ...]] = field(default_factory=list)
    constants: list[float] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    """Value of each node at the pose of the trace."""
    place_of_node: dict[tuple[Op, tuple[int, ...], float], int] = field(default_factory=dict)

    def input(self, value: float) -> "Symbol":
        """A new input with its value at the pose of the trace."""
        self.ops.append(Op.INPUT)
        self.args.append(())
        self.constants.append(0.0)
        self.values.append(value)
        return Symbol(self, len(self.ops) - 1)

    def node(self, op: Op, value: float, *args: "Symbol", constant: float = 0.0) -> "Symbol":
        """The node of an operation; equal operations share a node."""
        key = (op, tuple(arg.place for arg in args), constant)
        place = self.place_of_node.get(key)
        if place is None:
            place = self.place_of_node[key] = len(self.ops)
            self.ops.append(op)
            self.args.append(key[1])
            self.constants.append(constant)
            self.values.append(value)
        return Symbol(self, place)


class Symbol:
    """A scalar of a trace; works with floats and other symbols, alone or as an entry of an object array."""

    __slots__ = ("graph", "place")

    def __init__(self, graph: Graph, place: int) -> None:
        self.graph, self.place = graph, place

    @property
    def value(self) -> float:
        """Value at the pose of the trace."""
        return self.graph.values[self.place]

    def __add__(self, other: "Scalar") -> "Scalar":
        if not isinstance(other, Symbol):
            k = float(other)
            return self if k == 0 else self.graph.node(Op.SHIFT, self.value + k, self, constant=k)
        negated = other._negated()
        if negated is not None:
            return self - negated
        negated = self._negated()
        if negated is not None:
            return other - negated
        first, second = (self, other) if self.place <= other.place else (other, self)
        return self.graph.node(Op.ADD, self.value + other.value, first, second)

    __radd__ = __add__

    def __sub__(self, other: "Scalar") -> "Scalar":
        if not isinstance(other, Symbol):
            return self + (-float(other))
        if self.place == other.place:
            return 0.0
        negated = other._negated()
        if negated is not None:
            return self + negated
        return self.graph.node(Op.SUB, self.value - other.value, self, other)

    def __rsub__(self, other: float) -> "Scalar":
        k = float(other)
        return -self if k == 0 else self.graph.node(Op.REFLECT, k - self.value, self, constant=k)

    def __neg__(self) -> "Scalar":
        return self * -1.0

    def __mul__(self, other: "Scalar") -> "Scalar":
        if isinstance(other, np.ndarray):
            return NotImplemented  # the array multiplies its entries
        if not isinstance(other, Symbol):
            return self._scaled(float(other))
        (k, x), (l, y) = self._factored(), other._factored()
        if k * l != 1.0:
            return (x * y) * (k * l)
        first, second = (x, y) if x.place <= y.place else (y, x)
        return self.graph.node(Op.MUL, x.value * y.value, first, second)

    __rmul__ = __mul__

    def __truediv__(self, other: "Scalar") -> "Scalar":
        if not isinstance(other, Symbol):
            return self * (1.0 / float(other))
        return self.graph.node(Op.DIV, _ratio(self.value, other.value), self, other)

    def __rtruediv__(self, other: float) -> "Scalar":
        k = float(other)
        return self.graph.node(Op.INVERSE, _ratio(k, self.value), self, constant=k) if k else 0.0

    def __abs__(self) -> "Symbol":
        return self.graph.node(Op.ABS, abs(self.value), self)

    def sqrt(self) -> "Symbol":
        """Square root."""
        return self.graph.node(Op.SQRT, math.sqrt(self.value), self)

    def sin(self) -> "Symbol":
        """Sine."""
        return self.graph.node(Op.SIN, math.sin(self.value), self)

    def cos(self) -> "Symbol":
        """Cosine."""
        return self.graph.node(Op.COS, math.cos(self.value), self)

    def _scaled(self, k: float) -> "Scalar":
        if k == 0:
            return 0.0
        l, x = self._factored()
        k *= l
        return x if k == 1 else self.graph.node(Op.SCALE, k * x.value, x, constant=k)

    def _factored(self) -> "tuple[float, Symbol]":
        """The constant factor and the rest."""
        if self.graph.ops[self.place] is Op.SCALE:
            return self.graph.constants[self.place], Symbol(self.graph, self.graph.args[self.place][0])
        return 1.0, self

    def _negated(self) -> "Symbol | None":
        """The argument of a negation, or None."""
        k, x = self._factored()
        return x if k == -1 else None


def _ratio(x: float, y: float) -> float:
    """Quotient of values as numpy and machine code divide: infinite or NaN for y = 0, as a pose may be singular."""
    if y:
        return x / y
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.divide(x, y))


Scalar: TypeAlias = Union[Symbol, float]  # noqa: UP007 - `|` of a class defined here fails at run time


def value_of(x: Scalar) -> float:
    """Value at the pose of the trace."""
    return x.value if isinstance(x, Symbol) else float(x)


def sine(x: Scalar) -> Scalar:
    """Sine of a symbol or a number."""
    return x.sin() if isinstance(x, Symbol) else math.sin(x)


def cosine(x: Scalar) -> Scalar:
    """Cosine of a symbol or a number."""
    return x.cos() if isinstance(x, Symbol) else math.cos(x)


def sign(x: Scalar, at_zero: float = 0.0) -> Scalar:
    """1 or −1, and `at_zero` for 0, without a case in the graph."""
    return (x + at_zero * TINY) / (magnitude(x) + TINY)


def magnitude(x: Scalar) -> Scalar:
    """Absolute value of a scalar."""
    return abs(x) if isinstance(x, Symbol) else math.fabs(x)


def largest(values: Iterable[Symbol]) -> Symbol:
    """The largest of several symbols."""
    return reduce(partial(_extreme, Op.MAX), values)


def smallest(values: Iterable[Symbol]) -> Symbol:
    """The smallest of several symbols."""
    return reduce(partial(_extreme, Op.MIN), values)


def _extreme(op: Op, x: Symbol, y: Symbol) -> Symbol:
    choose = max if op is Op.MAX else min
    return x if x.place == y.place else x.graph.node(op, choose(x.value, y.value), x, y)
