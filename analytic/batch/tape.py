"""A traced graph as a tape: the operations that its outputs need, on a few registers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopcheck.analytic.batch.expressions import Graph, Op, Scalar, Symbol
from loopcheck.robots.arrays import AnyArray, Array

HISTORY = 4
"""Positions before a sample that it may be extrapolated from: a cubic."""
ARITHMETIC: Mapping[int, Callable[[Any, Any, float], Any]] = {
    Op.ADD: lambda x, y, k: x + y,
    Op.SUB: lambda x, y, k: x - y,
    Op.MUL: lambda x, y, k: x * y,
    Op.DIV: lambda x, y, k: x / y,
    Op.SHIFT: lambda x, y, k: x + k,
    Op.SCALE: lambda x, y, k: k * x,
    Op.REFLECT: lambda x, y, k: k - x,
    Op.INVERSE: lambda x, y, k: k / x,
    Op.ABS: lambda x, y, k: abs(x),
}
"""Rules of `Tape.run` for values with operators."""


NEVER = -1
"""In place of the node that uses a value last, for outputs: they keep their registers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tape:
    """Instructions in their order."""

    code: AnyArray
    """Operation, target register, and registers x and y of each instruction, shape (n, 4), int32."""
    constants: Array
    """k of each instruction, shape (n,)."""
    registers: int
    """Number of its registers; the inputs are the first, and stay there."""
    outputs: AnyArray
    """Registers of the outputs, shape (outputs,), int64."""
    operations: int
    """Additions, subtractions, multiplications, divisions and roots for each sample."""
    angles: int
    """Angles whose sine or cosine is computed for each sample."""

    def instructions(self) -> Iterator[tuple[int, int, int, int, float]]:
        """Operation, target, x, y and k of each instruction."""
        for row, k in zip(self.code.tolist(), self.constants.tolist(), strict=True):
            yield *row, k

    def run(self, rules: Mapping[int, Callable[[Any, Any, float], Any]], inputs: Sequence[Any]) -> list[Any]:
        """Outputs by a rule for each operation, from x, y and k to its value.

        Args:
            inputs: A value for each input [any unit]; anything for those that are not read.
        """
        values = [*inputs, *[None] * (self.registers - len(inputs))]
        for op, target, x, y, k in self.instructions():
            values[target] = rules[op](values[x], values[y], k)
        return [values[place] for place in self.outputs.tolist()]


def assemble_tape(graph: Graph, outputs: Sequence[Scalar]) -> Tape:
    """The tape that computes scalars from the inputs of a graph.

    Args:
        graph: Operations, the inputs first.
        outputs: Wanted scalars, numbers included.
    """
    order = _order(graph, [out.place for out in outputs if isinstance(out, Symbol)])
    last = {arg: place for place in order for arg in graph.args[place]}
    last |= {out.place: NEVER for out in outputs if isinstance(out, Symbol)}
    size = sum(op is Op.INPUT for op in graph.ops)
    registers, free, code = {place: place for place in range(size)}, [], []
    for place in order:
        args = graph.args[place]
        x, y = registers[args[0]], registers[args[-1]]
        free += [registers.pop(arg) for arg in set(args) if last[arg] == place and graph.args[arg]]
        if not free:
            free, size = [size], size + 1
        registers[place] = free.pop()
        code.append((graph.ops[place], registers[place], x, y))
    numbers = {float(out): None for out in outputs if not isinstance(out, Symbol)}
    of_numbers = {number: size + k for k, number in enumerate(numbers)}
    code += [(Op.NUMBER, register, register, register) for register in of_numbers.values()]
    places = [registers[out.place] if isinstance(out, Symbol) else of_numbers[float(out)] for out in outputs]
    angles = {graph.args[place] for place in order if graph.ops[place] in (Op.SIN, Op.COS)}
    return Tape(
        code=np.array(code, dtype=np.int32).reshape(-1, 4),
        constants=np.array([*(graph.constants[place] for place in order), *of_numbers], dtype=np.float64),
        registers=size + len(numbers),
        outputs=np.array(places, dtype=np.int64),
        operations=sum(graph.ops[place] not in (Op.SIN, Op.COS) for place in order),
        angles=len(angles),
    )


def _order(graph: Graph, outputs: Sequence[int]) -> list[int]:
    """The nodes that are needed, a product just before the sum that alone uses it: so machine code keeps few values."""
    uses = [0] * len(graph.ops)
    for place in outputs:
        uses[place] += 1
    use = list(range(len(uses)))  # the last of each node
    for place in reversed(range(len(uses))):
        for arg in graph.args[place] if uses[place] else ():
            uses[arg] += 1
            if uses[arg] == 1 and graph.ops[arg] in (Op.MUL, Op.SCALE) and graph.ops[place] in (Op.ADD, Op.SUB):
                use[arg] = place
    needed = (place for place, count in enumerate(uses) if count and graph.args[place])
    return sorted(needed, key=lambda place: (use[place] if uses[place] == 1 else place, place))
