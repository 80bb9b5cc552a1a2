"""A traced graph as a tape: instructions on a few registers, each of which holds a block of samples."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from loopcheck.analytic.batch.expressions import Graph, Op, Scalar, Symbol
from loopcheck.robots.arrays import AnyArray, Array

HISTORY = 4
"""Positions before a sample that it may be extrapolated from: a cubic."""


class Code(IntEnum):
    """Instruction on registers a, b, c, d and its constant k: the operations of `Op`, and sums of products."""

    ADD = 1
    SUB = 2
    MUL = 3
    DIV = 4
    SHIFT = 5
    SCALE = 6
    REFLECT = 7
    INVERSE = 8
    SQRT = 9
    SINCOS = 10  # sine into the target, cosine into register b
    ABS = 12
    MAX = 13
    MIN = 14
    FILL = 15  # k
    MULADD = 17  # a b + c
    MULSUB = 18  # a b − c
    SUBMUL = 19  # c − a b
    SCALEADD = 20  # k a + b
    TWOADD = 21  # a b + c d
    TWOSUB = 22  # a b − c d


@dataclass(frozen=True, slots=True, kw_only=True)
class Tape:
    """Instructions in their order."""

    code: AnyArray
    """Code, target, a, b, c, d of each instruction, shape (n, 6), int32."""
    constants: Array
    """k of each instruction, shape (n,)."""
    registers: int
    """Number of its registers; the inputs are the first."""
    outputs: AnyArray
    """Registers of the outputs, shape (outputs,), int64."""
    operations: int
    """Additions, subtractions, multiplications, divisions and roots for each sample."""
    angles: int
    """Pairs of a sine and a cosine for each sample."""


ALONE = {op: Code[op.name] for op in Op if op.name in Code.__members__}
FUSED = {
    (Op.ADD, Op.MUL, Op.MUL): (Code.TWOADD, False),
    (Op.SUB, Op.MUL, Op.MUL): (Code.TWOSUB, False),
    (Op.ADD, Op.MUL, None): (Code.MULADD, False),
    (Op.ADD, None, Op.MUL): (Code.MULADD, True),
    (Op.SUB, Op.MUL, None): (Code.MULSUB, False),
    (Op.SUB, None, Op.MUL): (Code.SUBMUL, True),
    (Op.ADD, Op.SCALE, None): (Code.SCALEADD, False),
    (Op.ADD, None, Op.SCALE): (Code.SCALEADD, True),
    (Op.SUB, None, Op.SCALE): (Code.SCALEADD, True),
}
"""Fused instruction for a sum with a product used only there; and whether the product is the second term."""
UNUSED = -1
"""In place of a node, a value that nobody needs."""
FLOPS = {Code.FILL: 0, Code.SINCOS: 0, Code.TWOADD: 3, Code.TWOSUB: 3} | dict.fromkeys(
    (Code.MULADD, Code.MULSUB, Code.SUBMUL, Code.SCALEADD), 2
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Instruction:
    code: Code
    target: int
    """Node of the value."""
    sources: tuple[int, ...]
    """Nodes it needs."""
    constant: float = 0.0
    second: int | None = None
    """Node of the cosine."""


def assemble_tape(graph: Graph, outputs: Sequence[Scalar]) -> Tape:
    """The tape that computes scalars from the inputs of a graph.

    Args:
        graph: Operations, the inputs first.
        outputs: Wanted scalars, numbers included.
    """
    places = [out.place for out in outputs if isinstance(out, Symbol)]
    instructions = _fuse(graph, places)
    inputs = sum(op is Op.INPUT for op in graph.ops)
    return _allocate(instructions, outputs, inputs)


def _fuse(graph: Graph, outputs: list[int]) -> list[_Instruction]:
    """The instructions that are needed, with products fused into the sums that alone use them."""
    uses = [0] * len(graph.ops)
    for place in outputs:
        uses[place] += 1
    for place in reversed(range(len(uses))):
        for arg in graph.args[place] if uses[place] else ():
            uses[arg] += 1
    instructions: dict[int, _Instruction] = {}
    absorbed: set[int] = set()
    for place in reversed(range(len(uses))):
        if not uses[place] or place in absorbed or graph.ops[place] is Op.INPUT:
            continue
        instruction, gone = _instruction(graph, place, uses)
        instructions[place] = instruction
        absorbed |= gone
    return _paired(graph, [instructions[place] for place in sorted(instructions)])


def _instruction(graph: Graph, place: int, uses: list[int]) -> tuple[_Instruction, set[int]]:
    """The instruction of a node and the products that it takes in."""
    op, args = graph.ops[place], graph.args[place]
    if op in (Op.ADD, Op.SUB):
        kinds = [graph.ops[a] if uses[a] == 1 and graph.ops[a] in (Op.MUL, Op.SCALE) else None for a in args]
        for (sum_, *wanted_kinds), (code, second) in FUSED.items():
            if sum_ is op and all(want in (None, kind) for want, kind in zip(wanted_kinds, kinds, strict=True)):
                taken = [a for a, want in zip(args, wanted_kinds, strict=True) if want is not None]
                rest = [a for a, want in zip(args, wanted_kinds, strict=True) if want is None]
                k = graph.constants[taken[0]] * (-1 if op is Op.SUB and second else 1)
                sources = (*(f for a in taken for f in graph.args[a]), *rest)
                return _Instruction(code=code, target=place, sources=sources, constant=k), set(taken)
    code = Code.SINCOS if op in (Op.SIN, Op.COS) else ALONE[op]
    return _Instruction(code=code, target=place, sources=args, constant=graph.constants[place]), set()


def _paired(graph: Graph, instructions: list[_Instruction]) -> list[_Instruction]:
    """Sine and cosine of an angle in a single instruction."""
    both: dict[int, dict[Op, int]] = {}
    for it in instructions:
        if it.code is Code.SINCOS:
            both.setdefault(it.sources[0], {})[graph.ops[it.target]] = it.target
    paired = []
    for it in instructions:
        if it.code is not Code.SINCOS:
            paired.append(it)
        elif pair := both.pop(it.sources[0], None):
            paired.append(replace(it, target=pair.get(Op.SIN, UNUSED), second=pair.get(Op.COS, UNUSED)))
    return paired


def _allocate(instructions: list[_Instruction], outputs: Sequence[Scalar], inputs: int) -> Tape:
    """Give every value a register until its last use; a target never shares a register with its sources."""
    last = {source: k for k, it in enumerate(instructions) for source in it.sources}
    last |= {out.place: len(instructions) for out in outputs if isinstance(out, Symbol)}
    store = _Store(inputs)
    code = []
    for k, it in enumerate(instructions):
        targets = [it.target] if it.second is None else [it.target, it.second]
        sources = [store.places[source] for source in it.sources]
        to, *more = [store.take(place) for place in targets]
        registers = [*sources, *more]
        code.append(([it.code, to, *registers, *[0] * (4 - len(registers))], it.constant))
        store.release([place for place in targets if place not in last])
        store.release([source for source in set(it.sources) if last[source] == k])
    store.free.clear()  # outputs stay
    places = []
    for k, out in enumerate(outputs):
        if isinstance(out, Symbol):
            places.append(store.places[out.place])
        else:
            places.append(store.take(UNUSED - 1 - k))
            code.append(([Code.FILL, places[-1], 0, 0, 0, 0], float(out)))
    return Tape(
        code=np.array([row for row, _ in code], dtype=np.int32).reshape(-1, 6),
        constants=np.array([k for _, k in code], dtype=np.float64),
        registers=store.size,
        outputs=np.array(places, dtype=np.int64),
        operations=sum(FLOPS.get(it.code, 1) for it in instructions),
        angles=sum(it.code is Code.SINCOS for it in instructions),
    )


class _Store:
    """Register of each node; the inputs keep theirs."""

    def __init__(self, inputs: int) -> None:
        self.inputs = self.size = inputs
        self.places = {place: place for place in range(inputs)}
        self.free: list[int] = []

    def take(self, place: int) -> int:
        """A register for a node."""
        if not self.free:
            self.free.append(self.size)
            self.size += 1
        self.places[place] = self.free.pop()
        return self.places[place]

    def release(self, places: list[int]) -> None:
        """Give registers back."""
        self.free += [self.places.pop(place) for place in places if not 0 <= place < self.inputs]
