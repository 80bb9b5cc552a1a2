"""Tapes as functions in C: straight-line code in double precision that needs `math.h` alone."""

from collections.abc import Callable, Mapping

from loopcheck.analytic.batch.expressions import Op
from loopcheck.analytic.batch.tape import Tape

RULES: Mapping[int, Callable[[str, str, str], str]] = {
    Op.ADD: lambda x, y, k: f"{x} + {y}",
    Op.SUB: lambda x, y, k: f"{x} - {y}",
    Op.MUL: lambda x, y, k: f"{x} * {y}",
    Op.DIV: lambda x, y, k: f"{x} / {y}",
    Op.SHIFT: lambda x, y, k: f"{x} + {k}",
    Op.SCALE: lambda x, y, k: f"{k} * {x}",
    Op.REFLECT: lambda x, y, k: f"{k} - {x}",
    Op.INVERSE: lambda x, y, k: f"{k} / {x}",
    Op.SQRT: lambda x, y, k: f"sqrt({x})",
    Op.SIN: lambda x, y, k: f"sin({x})",
    Op.COS: lambda x, y, k: f"cos({x})",
    Op.ABS: lambda x, y, k: f"fabs({x})",
    Op.MAX: lambda x, y, k: f"{x} >= {y} || {x} != {x} ? {x} : {y}",  # NaN if either is
    Op.MIN: lambda x, y, k: f"{x} <= {y} || {x} != {x} ? {x} : {y}",
    Op.NUMBER: lambda x, y, k: k,
}
"""C expression of each operation."""


def function(name: str, tape: Tape, inputs: Mapping[str, int], outputs: Mapping[str, int]) -> str:
    """The definition of a function that computes a tape.

    Args:
        name: Name of the function.
        inputs: Names of its input arrays, in the order of the tape's inputs, and their lengths.
        outputs: Names of its output arrays, in the order of the tape's outputs, and their lengths.

    Returns:
        C without includes.
    """
    registers = (f"{array}[{k}]" for array, length in inputs.items() for k in range(length))
    places = (f"{array}[{k}]" for array, length in outputs.items() for k in range(length))
    parameters = [f"const double *{array}" for array in inputs] + [f"double *{array}" for array in outputs]
    return "\n".join(
        [
            f"static void {name}({', '.join(parameters)})",
            "{",
            f"    double r[{max(tape.registers, 1)}];",
            *(f"    r[{k}] = {value};" for k, value in enumerate(registers)),
            *(
                f"    r[{target}] = {RULES[op](f'r[{x}]', f'r[{y}]', f'({k!r})')};"
                for op, target, x, y, k in tape.instructions()
            ),
            *(f"    {place} = r[{register}];" for place, register in zip(places, tape.outputs.tolist(), strict=True)),
            "}",
        ]
    )
