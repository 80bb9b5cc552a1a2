"""The functions of `march` compiled by Numba, once for a machine, whatever the mechanism."""

from typing import Any

import numpy as np
from numba import config, njit
from numba.extending import overload, register_jitable

from analytic.batch import march as plain
from analytic.batch.cache import folder
from analytic.batch.interpreter import run
from analytic.batch.tape import Code

OPTIONS: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy", "boundscheck": False}
"""Products may be fused with sums, but no operation changes its place: the range reduction of an angle relies on it."""

ADD, SUB, MUL, DIV = int(Code.ADD), int(Code.SUB), int(Code.MUL), int(Code.DIV)
SHIFT, SCALE, REFLECT, INVERSE = int(Code.SHIFT), int(Code.SCALE), int(Code.REFLECT), int(Code.INVERSE)
SQRT, SINCOS, ABS, MAX, MIN, FILL = (
    int(code) for code in (Code.SQRT, Code.SINCOS, Code.ABS, Code.MAX, Code.MIN, Code.FILL)
)
MULADD, MULSUB, SUBMUL, SCALEADD = int(Code.MULADD), int(Code.MULSUB), int(Code.SUBMUL), int(Code.SCALEADD)
TWOADD, TWOSUB = int(Code.TWOADD), int(Code.TWOSUB)

WHOLE = 1.5 * 2.0**52
"""Added to a number of less than 2**51 and taken away again, it leaves the nearest whole number."""
HALF_PI = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
"""π/2 in three parts of 33 bits (Cody and Waite 1980), so that their multiples are exact."""
LARGEST_ANGLE = 1e5
"""Beyond it the reduction loses digits, so the sine is NaN and the sample is left to the plain version [rad]."""


@register_jitable(**OPTIONS)
def _sincos(registers, n, angle, sine, cosine):  # type: ignore[no-untyped-def] # Numba types it
    """Sine and cosine by fdlibm's polynomials on ±π/4, without a branch, so that it is vectorized."""
    for i in range(n):
        x = registers[angle, i]
        turns = (x * (2 / np.pi) + WHOLE) - WHOLE
        r = ((x - turns * HALF_PI[0]) - turns * HALF_PI[1]) - turns * HALF_PI[2]
        z = r * r
        s = 2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)
        s = 8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * s)
        s = r + r * z * (-1.66666666666666324348e-01 + z * s)
        c = -2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11)
        c = 4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 + z * c))
        c = (1 - 0.5 * z) + z * z * c
        quarter = turns - 4 * (((turns * 0.25 - 0.375) + WHOLE) - WHOLE)
        odd = (quarter == 1) | (quarter == 3)
        s, c = (c, s) if odd else (s, c)
        in_range = abs(x) < LARGEST_ANGLE
        s = -s if quarter >= 2 else s
        c = -c if (quarter == 1) | (quarter == 2) else c
        registers[sine, i] = s if in_range else np.nan
        registers[cosine, i] = c if in_range else np.nan


@overload(run, jit_options=OPTIONS)  # type: ignore[arg-type]
def _run(code, constants, registers):  # type: ignore[no-untyped-def] # noqa: C901 - a branch for each code
    """Loops over the lanes: one for each code."""

    def loops(code, constants, registers):  # type: ignore[no-untyped-def] # noqa: C901
        r, n = registers, registers.shape[1]
        for step in range(len(code)):
            op, k, to = code[step, 0], constants[step], code[step, 1]
            a, b, c, d = code[step, 2], code[step, 3], code[step, 4], code[step, 5]
            if op == TWOADD:
                for i in range(n):
                    r[to, i] = r[a, i] * r[b, i] + r[c, i] * r[d, i]
            elif op == TWOSUB:
                for i in range(n):
                    r[to, i] = r[a, i] * r[b, i] - r[c, i] * r[d, i]
            elif op == MULADD:
                for i in range(n):
                    r[to, i] = r[a, i] * r[b, i] + r[c, i]
            elif op == MULSUB:
                for i in range(n):
                    r[to, i] = r[a, i] * r[b, i] - r[c, i]
            elif op == SUBMUL:
                for i in range(n):
                    r[to, i] = r[c, i] - r[a, i] * r[b, i]
            elif op == SCALEADD:
                for i in range(n):
                    r[to, i] = k * r[a, i] + r[b, i]
            elif op == ADD:
                for i in range(n):
                    r[to, i] = r[a, i] + r[b, i]
            elif op == SUB:
                for i in range(n):
                    r[to, i] = r[a, i] - r[b, i]
            elif op == MUL:
                for i in range(n):
                    r[to, i] = r[a, i] * r[b, i]
            elif op == SCALE:
                for i in range(n):
                    r[to, i] = k * r[a, i]
            elif op == SHIFT:
                for i in range(n):
                    r[to, i] = k + r[a, i]
            elif op == REFLECT:
                for i in range(n):
                    r[to, i] = k - r[a, i]
            elif op == DIV:
                for i in range(n):
                    r[to, i] = r[a, i] / r[b, i]
            elif op == INVERSE:
                for i in range(n):
                    r[to, i] = k / r[a, i]
            elif op == SQRT:
                for i in range(n):
                    r[to, i] = np.sqrt(r[a, i])
            elif op == ABS:
                for i in range(n):
                    r[to, i] = abs(r[a, i])
            elif op == MAX:
                for i in range(n):
                    r[to, i] = r[a, i] if r[a, i] > r[b, i] else r[b, i]
            elif op == MIN:
                for i in range(n):
                    r[to, i] = r[a, i] if r[a, i] < r[b, i] else r[b, i]
            elif op == SINCOS:
                _sincos(r, n, a, to, b)  # type: ignore[no-untyped-call]
            elif op == FILL:
                for i in range(n):
                    r[to, i] = k

    return loops


register_jitable(**OPTIONS)(plain.close)
register_jitable(**OPTIONS)(plain.arrivals)
_settings: Any = config
_usual, _settings.CACHE_DIR = _settings.CACHE_DIR, str(folder())
walk = njit(cache=True, **OPTIONS)(plain.walk)
march = njit(cache=True, **OPTIONS)(plain.march)
_settings.CACHE_DIR = _usual
