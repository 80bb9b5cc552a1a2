"""Runs a tape over a block of samples in numpy, an operation at a time; `compiled` has the same in machine code."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from analytic.batch.tape import Code, Tape
from robots.arrays import AnyArray, Array

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


def follow(tape: Tape, weights: Array, takes: Sequence[Array], gives: Sequence[Array]) -> None:
    """Follow lanes through their samples: what a tape gives first, the positions, goes into it at the next sample.

    Args:
        tape: Takes and gives positions first, and then what the arrays hold.
        weights: What the positions before a sample count when it is extrapolated [-], newest first, shape (HISTORY,).
        takes: Positions before the first sample, newest first [m or rad], shape (lanes, HISTORY, nq), and what else
            the tape takes [any unit], shape (lanes, samples, columns).
        gives: To be filled in with all that it gives [any unit], shape (lanes, samples, columns).
    """
    lanes, samples, nq = gives[0].shape
    registers = np.zeros((tape.registers, lanes))
    past = list(takes[0].transpose(1, 2, 0))
    ends = np.cumsum([array.shape[2] for array in gives])
    for s in range(samples):
        guess = sum(weight * x for weight, x in zip(weights, past, strict=True))
        inputs = np.concatenate([guess, *(array[:, s].T for array in takes[1:])])
        registers[: len(inputs)] = inputs
        run(tape.code, tape.constants, registers)
        outputs = registers[tape.outputs]
        past = [outputs[:nq], *past[:-1]]
        for array, found in zip(gives, np.split(outputs, ends[:-1]), strict=True):
            array[:, s] = found.T
