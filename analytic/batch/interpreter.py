"""Runs a tape over a block of samples in numpy, an operation at a time; `llvm` has the same in machine code."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from loopcheck.analytic.batch.expressions import Op
from loopcheck.analytic.batch.tape import ARITHMETIC, Tape
from loopcheck.robots.arrays import Array

RULES: Mapping[int, Callable[[Any, Any, float], Any]] = {
    **ARITHMETIC,
    Op.SQRT: lambda x, y, k: np.sqrt(x),
    Op.SIN: lambda x, y, k: np.sin(x),
    Op.COS: lambda x, y, k: np.cos(x),
    Op.MAX: lambda x, y, k: np.maximum(x, y),
    Op.MIN: lambda x, y, k: np.minimum(x, y),
}


def outputs(tape: Tape, inputs: Array) -> Array:
    """Outputs of a tape.

    Args:
        inputs: Inputs of the tape [any unit], shape (inputs, lanes).

    Returns:
        Its outputs [any unit], shape (outputs, lanes).
    """
    rules = {**RULES, Op.NUMBER: lambda x, y, k: np.full(inputs.shape[1], k)}
    return np.array(tape.run(rules, [*inputs])).reshape(len(tape.outputs), inputs.shape[1])
