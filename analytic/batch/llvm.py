"""A tape as a function in LLVM's intermediate representation: straight-line code on vectors of lanes.

See `interpreter.follow` for what the function does; here arrays have the axes lanes, samples and columns, and columns
lie side by side.
"""

import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add

from analytic.batch.tape import HISTORY, Code, Tape

WHOLE = 1.5 * 2.0**52
"""Added to a number of less than 2**51 and taken away again, it leaves the nearest whole number."""
HALF_PI = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
"""π/2 in three parts of 33 bits (Cody and Waite 1980), so that their multiples are exact."""
LARGEST_ANGLE = 1e5
"""Beyond it the reduction loses digits, so the sine is NaN and the sample is left to the plain version [rad]."""

PART = 500
"""Operations of a block of code [-]: the time that LLVM takes for one grows faster than its length."""


@dataclass(slots=True)
class Writer:
    """Lines of a block of a function."""

    width: int
    """Lanes of a vector."""
    prefix: str
    """Of the names of values."""
    lines: list[str] = field(default_factory=list)
    values: int = 0

    @property
    def vector(self) -> str:
        """Type of a vector of numbers."""
        return f"<{self.width} x double>"

    def new(self, operation: str) -> str:
        """The name of what an operation gives."""
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
        """One of two values: whether this is below a bound, for each lane."""
        vector, k = self.writer.vector, self.writer.number(bound)
        condition = self.writer.new(f"fcmp olt {vector} {self.name}, {k.name}")
        choice = f"select <{self.writer.width} x i1> {condition}, {vector} {smaller.name}, {vector} {other.name}"
        return Value(self.writer, self.writer.new(choice))

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


RULES: Mapping[int, Callable[..., Value]] = {
    Code.ADD: lambda a, b, c, d, k: a + b,
    Code.SUB: lambda a, b, c, d, k: a - b,
    Code.MUL: lambda a, b, c, d, k: a * b,
    Code.DIV: lambda a, b, c, d, k: a / b,
    Code.SHIFT: lambda a, b, c, d, k: k + a,
    Code.SCALE: lambda a, b, c, d, k: k * a,
    Code.REFLECT: lambda a, b, c, d, k: k - a,
    Code.INVERSE: lambda a, b, c, d, k: k / a,
    Code.SQRT: lambda a, b, c, d, k: a.writer.intrinsic("sqrt", a),
    Code.ABS: lambda a, b, c, d, k: abs(a),
    Code.MAX: lambda a, b, c, d, k: a.writer.intrinsic("maximum", a, b),
    Code.MIN: lambda a, b, c, d, k: a.writer.intrinsic("minimum", a, b),
    Code.FILL: lambda a, b, c, d, k: a.writer.number(k),
    Code.MULADD: lambda a, b, c, d, k: a * b + c,
    Code.MULSUB: lambda a, b, c, d, k: a * b - c,
    Code.SUBMUL: lambda a, b, c, d, k: c - a * b,
    Code.SCALEADD: lambda a, b, c, d, k: k * a + b,
    Code.TWOADD: lambda a, b, c, d, k: a * b + c * d,
    Code.TWOSUB: lambda a, b, c, d, k: a * b - c * d,
}
"""What an instruction gives, from its registers and its constant; see `tape`."""


@dataclass(frozen=True, slots=True)
class Stream:
    """An array at a sample of the lanes of a vector."""

    writer: Writer
    places: tuple[str, ...]
    """Where each lane has its columns."""

    def moved(self, samples: str, step: str) -> "Stream":
        """The same some samples on, each of so many bytes."""
        offset = self.writer.new(f"mul i64 {samples}, {step}")
        new = self.writer.new
        return Stream(self.writer, tuple(new(f"getelementptr i8, ptr {at}, i64 {offset}") for at in self.places))

    def load(self, column: int) -> Value:
        """A column."""
        new, gathered = self.writer.new, "poison"
        for k, at in enumerate(self.places):
            entry = new(f"load double, ptr {new(f'getelementptr double, ptr {at}, i64 {column}')}")
            gathered = new(f"insertelement {self.writer.vector} {gathered}, double {entry}, i64 {k}")
        return Value(self.writer, gathered)

    def store(self, column: int, value: Value) -> None:
        """Fill in a column."""
        new = self.writer.new
        for k, at in enumerate(self.places):
            entry = new(f"extractelement {self.writer.vector} {value.name}, i64 {k}")
            to = new(f"getelementptr double, ptr {at}, i64 {column}")
            self.writer.lines.append(f"store double {entry}, ptr {to}")


MODULE = """\
declare i64 @llvm.smin.i64(i64, i64)
declare {vector} @llvm.sqrt.v{width}f64({vector})
declare {vector} @llvm.fabs.v{width}f64({vector})
declare {vector} @llvm.maximum.v{width}f64({vector}, {vector})
declare {vector} @llvm.minimum.v{width}f64({vector}, {vector})

define void @follow(ptr %weights, i64 %samples, i64 %lanes, ptr %table) {{
entry:
{before}
%last = sub i64 %lanes, 1
%never = icmp slt i64 %lanes, 0
br label %group

group:
%first = phi i64 [0, %entry], [%first.next, %next]
{group}
br label %sample

sample:
%s = phi i64 [0, %group], [%s.next, %{end}]
{sample}
%s.next = add i64 %s, 1
%goes.on = icmp slt i64 %s.next, %samples
br i1 %goes.on, label %sample, label %next

next:
%first.next = add i64 %first, {width}
%are.left = icmp slt i64 %first.next, %lanes
br i1 %are.left, label %group, label %done

done:
ret void
}}
"""


def function(tape: Tape, takes: Sequence[int], gives: Sequence[int], width: int) -> str:
    """A module with the function `follow` of a tape.

    Its arguments are the weights of the history, how many samples and lanes, and a table with a row for each array:
    its address, and the bytes from a lane to the next and from a sample to the next.

    Args:
        tape: What to compute.
        takes: Columns of each array that it takes, the positions first [-].
        gives: Columns of each array that it gives, the positions first [-].
        width: Lanes of a vector [-].
    """
    before, group, sample = (Writer(width, name) for name in ("b", "g", "v"))
    arrays = range(len(takes) + len(gives))
    _read_arguments(before, arrays)
    streams = _streams(group, arrays)
    history = _history(group, streams[0], _needed(tape, takes[0]))
    here = [replace(stream, writer=sample).moved("%s", f"%step.{k}") for k, stream in enumerate(streams)]
    columns = [(k, column) for k, n in enumerate((*takes, *gives)) for column in range(n)]
    registers = {c: _weighted([Value(sample, f"%x.{c}.{k}") for k in range(HISTORY)]) for c in history}
    registers |= {place: here[k].load(column) for place, (k, column) in enumerate(columns[: sum(takes)]) if k > 0}
    found = _straight_line(sample, tape, registers)
    for (k, column), value in zip(columns[sum(takes) :], found, strict=True):
        here[k].store(column, value)
    after = {c: [found[c].name, *(f"%x.{c}.{k}" for k in range(HISTORY - 1))] for c in history}
    parts = [sample.lines[start : start + PART] for start in range(0, len(sample.lines), PART)]
    end = f"part.{len(parts) - 1}"
    phis = [
        f"%x.{c}.{k} = phi {sample.vector} [{past.name}, %group], [{after[c][k]}, %{end}]"
        for c, values in history.items()
        for k, past in enumerate(values)
    ]
    return MODULE.format(
        vector=sample.vector,
        width=width,
        before="\n".join(before.lines),
        group="\n".join(group.lines),
        end=end,
        sample="\n".join([*phis, *(line for k, part in enumerate(parts) for line in (*_gate(k), *part))]),
    )


def _gate(part: int) -> list[str]:
    """Between two parts, a way out that is never taken, so that they are not joined."""
    return [f"br i1 %never, label %done, label %part.{part}", f"part.{part}:"]


def _needed(tape: Tape, nq: int) -> list[int]:
    """Positions that a tape reads; those of actuated joints are given apart."""
    return sorted({*tape.code[:, 2:].ravel().tolist(), *tape.outputs.tolist()} & set(range(nq)))


def _read_arguments(writer: Writer, arrays: Iterable[int]) -> None:
    """The weights in all lanes of vectors, and the rows of the table."""
    vector = writer.vector
    for k in range(HISTORY):
        entry = writer.new(f"load double, ptr {writer.new(f'getelementptr double, ptr %weights, i64 {k}')}")
        first = writer.new(f"insertelement {vector} poison, double {entry}, i64 0")
        zeros = f"<{writer.width} x i32> zeroinitializer"
        writer.lines.append(f"%w.{k} = shufflevector {vector} {first}, {vector} poison, {zeros}")
    for array in arrays:
        for k, (name, kind) in enumerate((("base", "ptr"), ("lane", "i64"), ("step", "i64"))):
            at = writer.new(f"getelementptr i64, ptr %table, i64 {3 * array + k}")
            writer.lines.append(f"%{name}.{array} = load {kind}, ptr {at}")


def _streams(writer: Writer, arrays: Iterable[int]) -> list[Stream]:
    """The arrays at the first sample of the lanes of a vector; the last lane stands for those that are missing."""
    new = writer.new
    lanes = [new(f"add i64 %first, {k}") for k in range(writer.width)]
    lanes = [new(f"call i64 @llvm.smin.i64(i64 {lane}, i64 %last)") for lane in lanes]
    offsets = [[new(f"mul i64 {lane}, %lane.{array}") for lane in lanes] for array in arrays]
    return [
        Stream(writer, tuple(new(f"getelementptr i8, ptr %base.{array}, i64 {offset}") for offset in of))
        for array, of in enumerate(offsets)
    ]


def _history(writer: Writer, positions: Stream, columns: Sequence[int]) -> dict[int, list[Value]]:
    """Positions before the first sample, newest first, by column."""
    past = [positions.moved(str(k), "%step.0") for k in range(HISTORY)]
    return {column: [stream.load(column) for stream in past] for column in columns}


def _weighted(past: Sequence[Value]) -> Value:
    """A position, extrapolated from those before."""
    first, *rest = (Value(x.writer, f"%w.{k}") * x for k, x in enumerate(past))
    return reduce(add, rest, first)


def _straight_line(writer: Writer, tape: Tape, registers: dict[int, Value]) -> list[Value]:
    """The outputs of a tape."""
    nothing = writer.number(0.0)
    for (op, target, *places), k in zip(tape.code.tolist(), tape.constants.tolist(), strict=True):
        a, b, c, d = (registers.get(place, nothing) for place in places)
        if op == Code.SINCOS:
            registers[target], registers[places[1]] = sine_and_cosine(a)
        else:
            registers[target] = RULES[op](a, b, c, d, k)
    return [registers[place] for place in tape.outputs.tolist()]
