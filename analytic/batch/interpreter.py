"""Runs a tape over a block of samples in numpy, an operation at a time; `llvm` has the same in machine code."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from loopcheck.analytic.batch.tape import Code, Tape
from loopcheck.robots.arrays import AnyArray, Array

BINARY: Mapping[int, Callable[..., Any]] = {
    Code.ADD: np.add,
    Code.SUB: np.subtract,
    Code.MUL: np.multiply,
    Code.DIV: np.divide,
    Code.MAX: np.maximum,
    Code.MIN: np.minimum,
}
UNARY: Mapping[int, Callable[..., Any]] = {Code.SQRT: np.sqrt, Code.ABS: np.abs}
SUMS: Mapping[int, Callable[..., Any]] = {
    Code.MULADD: lambda a, b, c, d, k, to: np.add(np.multiply(a, b, out=to), c, out=to),
    Code.MULSUB: lambda a, b, c, d, k, to: np.subtract(np.multiply(a, b, out=to), c, out=to),
    Code.SUBMUL: lambda a, b, c, d, k, to: np.subtract(c, np.multiply(a, b, out=to), out=to),
    Code.SCALEADD: lambda a, b, c, d, k, to: np.add(np.multiply(a, k, out=to), b, out=to),
    Code.TWOADD: lambda a, b, c, d, k, to: np.add(np.multiply(a, b, out=to), c * d, out=to),
    Code.TWOSUB: lambda a, b, c, d, k, to: np.subtract(np.multiply(a, b, out=to), c * d, out=to),
    Code.SHIFT: lambda a, b, c, d, k, to: np.add(a, k, out=to),
    Code.SCALE: lambda a, b, c, d, k, to: np.multiply(a, k, out=to),
    Code.REFLECT: lambda a, b, c, d, k, to: np.subtract(k, a, out=to),
    Code.INVERSE: lambda a, b, c, d, k, to: np.divide(k, a, out=to),
    Code.FILL: lambda a, b, c, d, k, to: to.fill(k),
    Code.SINCOS: lambda a, b, c, d, k, to: (np.sin(a, out=to), np.cos(a, out=b)),
}


def run(code: AnyArray, constants: Array, registers: Array) -> None:
    """Run a tape on registers.

    Args:
        code: Instructions [-], shape (n, 6); see `tape`.
        constants: Their constants [any unit], shape (n,).
        registers: Values [any unit], shape (registers, lanes); the inputs first.
    """
    for (op, target, *places), k in zip(code.tolist(), constants.tolist(), strict=True):
        to, (a, b, c, d) = registers[target], (registers[place] for place in places)
        if op in BINARY:
            BINARY[op](a, b, out=to)
        elif op in UNARY:
            UNARY[op](a, out=to)
        else:
            SUMS[op](a, b, c, d, k, to)


def outputs(tape: Tape, inputs: Array) -> Array:
    """Outputs of a tape.

    Args:
        inputs: Inputs of the tape [any unit], shape (inputs, lanes).

    Returns:
        Its outputs [any unit], shape (outputs, lanes).
    """
    registers = np.zeros((tape.registers, inputs.shape[1]))
    registers[: len(inputs)] = inputs
    run(tape.code, tape.constants, registers)
    return registers[tape.outputs]
