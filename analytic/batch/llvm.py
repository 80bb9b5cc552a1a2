"""Tapes in LLVM's intermediate representation: straight-line code on vectors of lanes; columns lie side by side."""

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from loopcheck.analytic.batch.expressions import Op
from loopcheck.analytic.batch.tape import ARITHMETIC, Tape

WHOLE = 1.5 * 2.0**52
"""Added to a number of less than 2**51 and taken away again, it leaves the nearest whole number."""
HALF_PI = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
"""π/2 in three parts of 33 bits (Cody and Waite 1980), so that their multiples are exact."""
LARGEST_ANGLE = 1e5
"""Beyond it the reduction loses digits, so the sine is NaN and the sample is left to the plain version [rad]."""


@dataclass(slots=True)
class Writer:
    """Lines of a block of a function."""

    width: int
    """Lanes of a vector."""
    prefix: str
    """Counter for the names of values."""
    lines: list[str] = field(default_factory=list)
    values: int = 0
    angles: "dict[str, tuple[Value, Value]]" = field(default_factory=dict)
    """Sine and cosine of each angle, by its name."""

    @property
    def vector(self) -> str:
        """Type of a vector of numbers."""
        return f"<{self.width} x double>"

    @property
    def mask(self) -> str:
        """Type of a mask, a bit for each lane."""
        return f"<{self.width} x i1>"

    def name(self, name: str, operation: str) -> None:
        """Give the result of an operation a name of its own."""
        self.lines.append(f"%{name} = {operation}")

    def both(self, *masks: str) -> str:
        """Conjunction of masks."""
        return reduce(lambda a, b: self.new(f"and {self.mask} {a}, {b}"), masks)

    def choice(self, mask: str, first: "Value", second: "Value") -> "Value":
        """Selection of two values by a mask, for each lane."""
        return Value(
            self, self.new(f"select {self.mask} {mask}, {self.vector} {first.name}, {self.vector} {second.name}")
        )

    def new(self, operation: str) -> str:
        """The name of an operation's result."""
        self.values += 1
        self.lines.append(f"%{self.prefix}{self.values} = {operation}")
        return f"%{self.prefix}{self.values}"

    def number(self, k: float) -> "Value":
        """A constant in all lanes."""
        return Value(self, f"splat (double 0x{struct.unpack('<Q', struct.pack('<d', k))[0]:016X})")

    def intrinsic(self, name: str, *given: "Value") -> "Value":
        """An operation that has no sign of its own."""
        values = ", ".join(f"{self.vector} {value.name}" for value in given)
        return Value(self, self.new(f"call {self.vector} @llvm.{name}.v{self.width}f64({values})"))


@dataclass(frozen=True, slots=True)
class Value:
    """A vector of numbers, one for each lane.

    Products may be fused with sums, but no operation changes its place: the range reduction of an angle relies on it.
    """

    writer: Writer
    name: str

    def __add__(self, other: "Value | float") -> "Value":
        return self._with("fadd", self, other)

    def __radd__(self, other: float) -> "Value":
        return self._with("fadd", other, self)

    def __sub__(self, other: "Value | float") -> "Value":
        return self._with("fsub", self, other)

    def __rsub__(self, other: float) -> "Value":
        return self._with("fsub", other, self)

    def __mul__(self, other: "Value | float") -> "Value":
        return self._with("fmul", self, other)

    def __rmul__(self, other: float) -> "Value":
        return self._with("fmul", other, self)

    def __truediv__(self, other: "Value") -> "Value":
        return self._with("fdiv", self, other)

    def __rtruediv__(self, other: float) -> "Value":
        return self._with("fdiv", other, self)

    def __neg__(self) -> "Value":
        return Value(self.writer, self.writer.new(f"fneg {self.writer.vector} {self.name}"))

    def __abs__(self) -> "Value":
        return self.writer.intrinsic("fabs", self)

    def below(self, bound: float, smaller: "Value", other: "Value") -> "Value":
        """Selection of two values, for each lane: whether this is below a bound."""
        return self.writer.choice(self.compared("olt", bound), smaller, other)

    def compared(self, relation: str, bound: "Value | float") -> str:
        """The mask of a comparison, such as `ole`, with a bound."""
        other = bound if isinstance(bound, Value) else self.writer.number(bound)
        return self.writer.new(f"fcmp {relation} {self.writer.vector} {self.name}, {other.name}")

    def _with(self, operation: str, first: "Value | float", second: "Value | float") -> "Value":
        a, b = (x if isinstance(x, Value) else self.writer.number(x) for x in (first, second))
        return Value(self.writer, self.writer.new(f"{operation} contract {self.writer.vector} {a.name}, {b.name}"))


def sine_and_cosine(x: Value) -> tuple[Value, Value]:
    """Sine and cosine of an angle [rad] by fdlibm's polynomials on ±π/4, without a branch."""
    turns = (x * (2 / math.pi) + WHOLE) - WHOLE
    r = ((x - turns * HALF_PI[0]) - turns * HALF_PI[1]) - turns * HALF_PI[2]
    z = r * r
    s = 2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)
    s = 8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * s)
    s = r + r * z * (-1.66666666666666324348e-01 + z * s)
    c = -2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)
    c = 4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 + z * c))
    c = (1 - 0.5 * z) + z * z * c
    quarter = turns - 4 * (((turns * 0.25 - 0.375) + WHOLE) - WHOLE)
    odd = abs(abs(quarter - 2) - 1)  # 0 for the quarters 1 and 3
    s, c = odd.below(0.5, c, s), odd.below(0.5, s, c)
    s, c = quarter.below(1.5, s, -s), abs(quarter - 1.5).below(1, -c, c)
    nan = x.writer.number(math.nan)
    return abs(x).below(LARGEST_ANGLE, s, nan), abs(x).below(LARGEST_ANGLE, c, nan)


def _turned(x: Value) -> tuple[Value, Value]:
    """Sine and cosine of an angle [rad], once for both."""
    if x.name not in x.writer.angles:
        x.writer.angles[x.name] = sine_and_cosine(x)
    return x.writer.angles[x.name]


RULES: Mapping[int, Callable[[Any, Any, float], Value]] = {
    **ARITHMETIC,
    Op.SQRT: lambda x, y, k: x.writer.intrinsic("sqrt", x),
    Op.SIN: lambda x, y, k: _turned(x)[0],
    Op.COS: lambda x, y, k: _turned(x)[1],
    Op.MAX: lambda x, y, k: x.writer.intrinsic("maximum", x, y),
    Op.MIN: lambda x, y, k: x.writer.intrinsic("minimum", x, y),
}


@dataclass(frozen=True, slots=True)
class Stream:
    """An array at a sample of the lanes of a vector, at any address."""

    writer: Writer
    places: tuple[str, ...]
    """Pointers to the columns of each lane."""

    def moved(self, samples: str, step: str) -> "Stream":
        """The same some samples on, each of so many bytes."""
        offset = self.writer.new(f"mul i64 {samples}, {step}")
        new = self.writer.new
        return Stream(
            self.writer, tuple(new(f"getelementptr i8, ptr {pointer}, i64 {offset}") for pointer in self.places)
        )

    def load(self, column: int) -> Value:
        """A column."""
        new, gathered = self.writer.new, "poison"
        for k, pointer in enumerate(self.places):
            entry = new(f"load double, ptr {new(f'getelementptr double, ptr {pointer}, i64 {column}')}, align 1")
            gathered = new(f"insertelement {self.writer.vector} {gathered}, double {entry}, i64 {k}")
        return Value(self.writer, gathered)

    def store(self, column: int, value: Value) -> None:
        """Fill in a column."""
        new = self.writer.new
        for k, pointer in enumerate(self.places):
            entry = new(f"extractelement {self.writer.vector} {value.name}, i64 {k}")
            to = new(f"getelementptr double, ptr {pointer}, i64 {column}")
            self.writer.lines.append(f"store double {entry}, ptr {to}, align 1")


def straight_line(writer: Writer, tape: Tape, inputs: Sequence[Value | None]) -> list[Value]:
    """The outputs of a tape."""
    return tape.run({**RULES, Op.NUMBER: lambda x, y, k: writer.number(k)}, inputs)
