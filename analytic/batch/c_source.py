"""Tapes as functions in C: straight-line code in double precision that needs `math.h` alone."""

from collections.abc import Callable, Mapping, Sequence

from loopcheck.analytic.batch.tape import Code, Tape

RULES: Mapping[int, Callable[..., str]] = {
    Code.ADD: lambda a, b, c, d, k: f"{a} + {b}",
    Code.SUB: lambda a, b, c, d, k: f"{a} - {b}",
    Code.MUL: lambda a, b, c, d, k: f"{a} * {b}",
    Code.DIV: lambda a, b, c, d, k: f"{a} / {b}",
    Code.SHIFT: lambda a, b, c, d, k: f"{a} + {k}",
    Code.SCALE: lambda a, b, c, d, k: f"{k} * {a}",
    Code.REFLECT: lambda a, b, c, d, k: f"{k} - {a}",
    Code.INVERSE: lambda a, b, c, d, k: f"{k} / {a}",
    Code.SQRT: lambda a, b, c, d, k: f"sqrt({a})",
    Code.ABS: lambda a, b, c, d, k: f"fabs({a})",
    Code.MAX: lambda a, b, c, d, k: f"{a} >= {b} || {a} != {a} ? {a} : {b}",  # NaN if either is
    Code.MIN: lambda a, b, c, d, k: f"{a} <= {b} || {a} != {a} ? {a} : {b}",
    Code.FILL: lambda a, b, c, d, k: k,
    Code.MULADD: lambda a, b, c, d, k: f"{a} * {b} + {c}",
    Code.MULSUB: lambda a, b, c, d, k: f"{a} * {b} - {c}",
    Code.SUBMUL: lambda a, b, c, d, k: f"{c} - {a} * {b}",
    Code.SCALEADD: lambda a, b, c, d, k: f"{k} * {a} + {b}",
    Code.TWOADD: lambda a, b, c, d, k: f"{a} * {b} + {c} * {d}",
    Code.TWOSUB: lambda a, b, c, d, k: f"{a} * {b} - {c} * {d}",
}
"""C expression of each instruction, from its registers and its constant; see `tape`."""


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
            *_instructions(tape),
            *(f"    {place} = r[{register}];" for place, register in zip(places, tape.outputs.tolist(), strict=True)),
            "}",
        ]
    )


def _instructions(tape: Tape) -> Sequence[str]:
    """A line for each instruction."""
    lines = []
    for (op, target, *places), k in zip(tape.code.tolist(), tape.constants.tolist(), strict=True):
        a, b, c, d = (f"r[{place}]" for place in places)
        if op == Code.SINCOS:
            lines.append(f"    r[{target}] = sin({a}), {b} = cos({a});")
        else:
            lines.append(f"    r[{target}] = {RULES[op](a, b, c, d, f'({k!r})')};")
    return lines
