"""The path tracking of a mechanism as a function in LLVM's intermediate representation.

See `tracking.track` for its algorithm. If the lanes of a vector differ, all of them do the work of the slowest.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add

from loopcheck.analytic.batch.llvm import Stream, Value, Writer, straight_line
from loopcheck.analytic.batch.tape import HISTORY, Tape
from loopcheck.analytic.batch.tracking import (
    CHECKS,
    CLOSE,
    CONSISTENT,
    CONTRACTION,
    MOST_REPEATS,
    MOST_STEPS,
    SMALLEST_PIVOT,
    Columns,
)
from loopcheck.robots.motion import Drive

PART = 500
"""Operations of a block of code [-]; LLVM's time per block grows faster than its length."""

MODULE = """\
declare i64 @llvm.smin.i64(i64, i64)
declare {vector} @llvm.sqrt.v{width}f64({vector})
declare {vector} @llvm.fabs.v{width}f64({vector})
declare {vector} @llvm.maximum.v{width}f64({vector}, {vector})
declare {vector} @llvm.minimum.v{width}f64({vector}, {vector})
declare {vector} @llvm.copysign.v{width}f64({vector}, {vector})
declare i1 @llvm.vector.reduce.or.v{width}i1({mask})
declare i1 @llvm.vector.reduce.and.v{width}i1({mask})

define void @track(
    double %tolerance, ptr %weights, ptr %q, ptr %qd, ptr %qdd, i64 %drive.lane, i64 %drive.sample,
    ptr %records, i64 %record.lane, i64 %record.sample, i64 %lanes, i64 %samples
) {{
entry:
{before}
%last = sub i64 %lanes, 1
%never = icmp slt i64 %lanes, 0
%shorter = call i64 @llvm.smin.i64(i64 %lanes, i64 %samples)
%is.some = icmp sgt i64 %shorter, 0
br i1 %is.some, label %group, label %done

group:
%first = phi i64 [0, %entry], [%first.next, %next]
{group}
br label %sample

sample:
%s = phi i64 [0, %group], [%s.next, %judge]
%dense = phi i1 [false, %group], [%dense.next, %judge]
%alive = phi {mask} [{all}, %group], [%sound, %judge]
{sample}
br i1 %dense, label %efforts, label %newton

newton:
%step = phi i64 [0, %sample], [%step.next, %{newton_end}], [0, %more]
%before = phi {vector} [{infinity}, %sample], [{size}, %{newton_end}], [{infinity}, %more]
%contracts = phi {mask} [%alive, %sample], [%contracts.next, %{newton_end}], [%alive, %more]
%was.near = phi {mask} [%alive, %sample], [%near, %{newton_end}], [%alive, %more]
{newton}
%step.next = add i64 %step, 1
%is.open = xor {mask} %settled, {all}
%goes.on = and {mask} %contracts.next, %is.open
%any.goes.on = call i1 @llvm.vector.reduce.or.v{width}i1({mask} %goes.on)
%may.go.on = icmp slt i64 %step.next, {most_steps}
%steps.again = and i1 %any.goes.on, %may.go.on
br i1 %steps.again, label %newton, label %efforts

efforts:
%tries = phi i64 [0, %sample], [1, %{newton_end}], [%tries.next, %repeat]
%right = phi {mask} [%alive, %sample], [%reached, %{newton_end}], [%right, %repeat]
%is.near = phi {mask} [%alive, %sample], [%near, %{newton_end}], [%is.near, %repeat]
{efforts}
%is.not.closed = xor {mask} %closed, {all}
%fails = and {mask} %right, %is.not.closed
%any.fails = call i1 @llvm.vector.reduce.or.v{width}i1({mask} %fails)
br i1 %any.fails, label %more, label %judge

more:
%tries.next = add i64 %tries, 1
%was.dense = icmp eq i64 %tries, 0
br i1 %was.dense, label %newton, label %repeat

repeat:
%may.repeat = icmp sle i64 %tries, {most_repeats}
br i1 %may.repeat, label %efforts, label %judge

judge:
%sound = and {mask} %right, %closed
{judge}
%is.lost = xor {mask} %sound, {all}
%near.or.lost = or {mask} %is.near, %is.lost
%dense.next = call i1 @llvm.vector.reduce.and.v{width}i1({mask} %near.or.lost)
%any.sound = call i1 @llvm.vector.reduce.or.v{width}i1({mask} %sound)
%s.next = add i64 %s, 1
%has.more = icmp slt i64 %s.next, %samples
%follows = and i1 %has.more, %any.sound
br i1 %follows, label %sample, label %next

next:
%first.next = add i64 %first, {width}
%are.left = icmp slt i64 %first.next, %lanes
br i1 %are.left, label %group, label %done

done:
ret void
}}
"""

MAP = """\
declare {vector} @llvm.sqrt.v{width}f64({vector})
declare {vector} @llvm.fabs.v{width}f64({vector})
declare {vector} @llvm.maximum.v{width}f64({vector}, {vector})
declare {vector} @llvm.minimum.v{width}f64({vector}, {vector})

define void @map(ptr %inputs, ptr %outputs, i64 %inputs.column, i64 %outputs.column, i64 %groups) {{
entry:
%never = icmp slt i64 %groups, 0
%is.some = icmp sgt i64 %groups, 0
br i1 %is.some, label %work, label %done

work:
%group = phi i64 [0, %entry], [%group.next, %{end}]
{work}
%group.next = add i64 %group, 1
%has.more = icmp slt i64 %group.next, %groups
br i1 %has.more, label %work, label %done

done:
ret void
}}
"""


def function(newton: Tape, efforts: Tape, columns: Columns, width: int) -> str:
    """A module with the function `track` of the tapes of a mechanism.

    Its arguments are the tolerance, the weights of the history, the motion of the drives and the records, each with the
    bytes from a lane to the next and from a sample to the next, and the numbers of lanes and samples. Without any it
    writes nothing.

    Args:
        columns: Columns of the arrays.
        width: Lanes of a vector [-].
    """
    before, group, sample, step, motion, judgement = (Writer(width, name) for name in "bgvnej")
    nq = columns.q.stop
    _splat(before, "tolerances", "%tolerance")
    lanes = _lanes(group)
    records = _stream(group, lanes, "records", "record")
    start = [records.load(c) for c in range(nq)]
    _limit(group, start)
    drive = [_stream(group, lanes, name, "drive") for name in Drive._fields]
    guess = _extrapolated(sample, sorted((_read(newton) | _read(efforts)) & {*range(nq)}))
    given = [_here(sample, stream, "drive").load(c) for stream in drive for c in range(columns.drives)]
    stepped = straight_line(step, newton, _inputs(step, "y", guess, nq, given))
    step_end = _divide(step, "newton")
    _contraction(step, *stepped[nq:])
    moved = straight_line(motion, efforts, _inputs(motion, "z", guess, nq, given))
    residual, size, guard, orientation, apart = moved[-CHECKS:]
    _divide(motion, "efforts")
    _closing(motion, residual, size, [*given, *moved[nq:-CHECKS]])
    marks = _judgement(judgement, guard, orientation, apart)
    record = _here(judgement, records, "record")
    for c, value in enumerate((*moved[:-CHECKS], *marks)):
        record.store(c, value)
    history = {
        f"x.{c}.{k}": {"group": start[c].name, "judge": f"%x.{c}.{k - 1}" if k else moved[c].name}
        for c in guess
        for k in range(HISTORY)
    }
    y = {f"y.{c}": {"sample": name, step_end: stepped[c].name, "more": name} for c, name in guess.items()}
    z = {f"z.{c}": {"sample": name, step_end: stepped[c].name, "repeat": moved[c].name} for c, name in guess.items()}
    return MODULE.format(
        vector=before.vector,
        mask=before.mask,
        all="splat (i1 true)",
        infinity=before.number(math.inf).name,
        width=width,
        most_steps=MOST_STEPS,
        most_repeats=MOST_REPEATS,
        size=stepped[nq + 1].name,
        newton_end=step_end,
        before="\n".join(before.lines),
        group="\n".join(group.lines),
        sample="\n".join([*_phis(sample.vector, history), *sample.lines]),
        newton="\n".join([*_phis(step.vector, y), *step.lines]),
        efforts="\n".join([*_phis(step.vector, z), *motion.lines]),
        judge="\n".join(judgement.lines),
    )


def map_function(tape: Tape, inputs: int, width: int) -> str:
    """A module with the function `map` that computes a tape for groups of samples.

    Its arguments are the inputs and the outputs, with the samples of a column side by side, for both the bytes from a
    column to the next, and the number of groups of `width` samples. Without a group it writes nothing.

    Args:
        inputs: Inputs of the tape that it may read [-].
        width: Samples of a vector [-].
    """
    writer = Writer(width, "m")
    start = writer.new(f"mul i64 %group, {8 * width}")

    def place(array: str, column: int) -> str:
        offset = writer.new(f"add i64 {start}, {writer.new(f'mul i64 %{array}.column, {column}')}")
        return writer.new(f"getelementptr i8, ptr %{array}, i64 {offset}")

    read = _read(tape)
    given = [
        Value(writer, writer.new(f"load {writer.vector}, ptr {place('inputs', c)}, align 1")) if c in read else None
        for c in range(inputs)
    ]
    for c, value in enumerate(straight_line(writer, tape, given)):
        writer.lines.append(f"store {writer.vector} {value.name}, ptr {place('outputs', c)}, align 1")
    end = _divide(writer, "work")
    return MAP.format(vector=writer.vector, width=width, end=end, work="\n".join(writer.lines))


def _phis(vector: str, values: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Values that depend on the preceding block."""
    return [
        f"%{name} = phi {vector} {', '.join(f'[{value}, %{block}]' for block, value in coming.items())}"
        for name, coming in values.items()
    ]


def _divide(writer: Writer, block: str) -> str:
    """Divide a block by exits that are never taken, so that its parts stay apart; returns the name of the last part."""
    parts = [writer.lines[start : start + PART] for start in range(0, len(writer.lines), PART)]
    writer.lines[:] = [line for k, part in enumerate(parts) for line in (*(_gate(block, k) if k else ()), *part)]
    return f"{block}.{len(parts) - 1}" if len(parts) > 1 else block


def _gate(block: str, part: int) -> list[str]:
    return [f"br i1 %never, label %done, label %{block}.{part}", f"{block}.{part}:"]


def _read(tape: Tape) -> set[int]:
    """Registers that a tape reads."""
    return {*tape.code[:, 2:].ravel().tolist(), *tape.outputs.tolist()}


def _splat(writer: Writer, name: str, number: str) -> None:
    """A number in all lanes of a vector."""
    first = writer.new(f"insertelement {writer.vector} poison, double {number}, i64 0")
    zeros = f"<{writer.width} x i32> zeroinitializer"
    writer.name(name, f"shufflevector {writer.vector} {first}, {writer.vector} poison, {zeros}")


def _lanes(writer: Writer) -> list[str]:
    """The lanes of a vector; the last lane replaces missing lanes."""
    lanes = [writer.new(f"add i64 %first, {k}") for k in range(writer.width)]
    return [writer.new(f"call i64 @llvm.smin.i64(i64 {lane}, i64 %last)") for lane in lanes]


def _stream(writer: Writer, lanes: Sequence[str], array: str, kind: str) -> Stream:
    """An array at the first sample of lanes."""
    offsets = [writer.new(f"mul i64 {lane}, %{kind}.lane") for lane in lanes]
    return Stream(writer, tuple(writer.new(f"getelementptr i8, ptr %{array}, i64 {offset}") for offset in offsets))


def _here(writer: Writer, stream: Stream, kind: str) -> Stream:
    """An array at the sample."""
    return replace(stream, writer=writer).moved("%s", f"%{kind}.sample")


def _limit(writer: Writer, start: Sequence[Value]) -> None:
    """The largest closure residual, relative to the largest position if that is more than 1."""
    size = reduce(lambda a, b: writer.intrinsic("maximum", a, b), (abs(x) for x in start), writer.number(1.0))
    limit = Value(writer, "%tolerances") * size
    writer.name("limit", f"fadd {writer.vector} {limit.name}, {writer.number(0.0).name}")


def _extrapolated(writer: Writer, columns: Sequence[int]) -> dict[int, str]:
    """Positions extrapolated from the preceding samples, as many as exist."""
    row = writer.new(f"mul i64 {writer.new(f'call i64 @llvm.smin.i64(i64 %s, i64 {HISTORY})')}, {HISTORY}")
    for k in range(HISTORY):
        place = writer.new(f"add i64 {row}, {k}")
        entry = writer.new(f"load double, ptr {writer.new(f'getelementptr double, ptr %weights, i64 {place}')}")
        _splat(writer, f"w.{k}", entry)
    terms = {c: [Value(writer, f"%w.{k}") * Value(writer, f"%x.{c}.{k}") for k in range(HISTORY)] for c in columns}
    return {c: reduce(add, values).name for c, values in terms.items()}


def _inputs(
    writer: Writer, positions: str, guess: Collection[int], nq: int, drive: Sequence[Value]
) -> list[Value | None]:
    """Inputs of a tape: positions in a block of code, if they are read, and the motion of the drives."""
    read = [Value(writer, f"%{positions}.{c}") if c in guess else None for c in range(nq)]
    return [*read, *(Value(writer, value.name) for value in drive)]


def _contraction(writer: Writer, residual: Value, size: Value) -> None:
    """Lanes in which Newton's method contracts, has settled, and began closed."""
    ratio = size.compared("ole", Value(writer, "%before") * CONTRACTION)
    writer.name("settled", f"fcmp ole {writer.vector} {size.name}, {writer.number(CLOSE).name}")
    either = writer.new(f"or {writer.mask} {ratio}, %settled")
    writer.name("contracts.next", f"and {writer.mask} %contracts, {either}")
    writer.name("reached", f"and {writer.mask} %contracts.next, %settled")
    is_first = writer.new("icmp eq i64 %step, 0")
    begun = writer.both("%was.near", residual.compared("ole", Value(writer, "%limit")))
    writer.name("near", f"select i1 {is_first}, {writer.mask} {begun}, {writer.mask} %was.near")


def _closing(writer: Writer, residual: Value, size: Value, finite: Sequence[Value]) -> None:
    """Lanes with closed loops and finite numbers."""
    nothing = reduce(add, (Value(writer, x.name) * 0.0 for x in finite))
    closed = (residual.compared("ole", Value(writer, "%limit")), size.compared("ole", CLOSE))
    writer.name("closed", f"and {writer.mask} {writer.both(*closed)}, {nothing.compared('oeq', 0.0)}")


def _judgement(writer: Writer, guard: Value, orientation: Value, apart: Value) -> tuple[Value, Value]:
    """The marks of a sample."""
    guard, orientation, apart = (Value(writer, x.name) for x in (guard, orientation, apart))
    one, nothing = writer.number(1.0), writer.number(0.0)
    size = writer.choice(guard.compared("oge", SMALLEST_PIVOT), writer.number(2.0), one)
    good = writer.both("%sound", apart.compared("ole", CONSISTENT), orientation.compared("one", 0.0))
    state = writer.choice(good, writer.intrinsic("copysign", size, orientation), nothing)
    is_dense = writer.new("icmp eq i64 %tries, 0")
    dense = writer.new(f"select i1 {is_dense}, {writer.vector} {one.name}, {writer.vector} {nothing.name}")
    return state, writer.choice("%sound", Value(writer, dense), nothing)
