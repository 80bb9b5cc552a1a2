"""Tapes as C, compiled and run, against the same in numpy."""

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.batch.c_source import function
from loopcheck.analytic.batch.expressions import Graph, Op, Scalar, Symbol, cosine, largest, sine, smallest
from loopcheck.analytic.batch.interpreter import outputs
from loopcheck.analytic.batch.tape import assemble_tape
from tests.guarded import Zones

COMPILER = shutil.which("cc")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C compiler (cc)")


def test_every_operation_in_c_gives_what_numpy_does(tmp_path: Path) -> None:
    graph = Graph()
    a, b, c, d, e = (graph.input(value) for value in (0.3, 0.7, 1.1, 2.3, -1.0))
    both = largest([a, c]), smallest([b, d])
    results: list[Scalar] = [
        a + b,
        a - b,
        a * b,
        a / b,
        a + 2.5,
        3.5 * a,
        4.5 - a,
        1.5 / b,
        c.sqrt(),
        abs(e),
        *both,
        7.25,
    ]
    results += [a * c + d, a * c - d, d - a * c, 2.5 * b + c, a * c + b * d, a * c - b * d, sine(a), cosine(a), sine(c)]
    tape = assemble_tape(graph, [*results, *(x * y for x in results for y in results if isinstance(x * y, Symbol))])
    assert set(tape.code[:, 0].tolist()) == {*Op} - {Op.INPUT}
    count = len(tape.outputs)
    source, library = tmp_path / "tape.c", tmp_path / "tape.so"
    text = function("f", tape, {"x": 3, "y": 2}, {"z": count})
    source.write_text(f"#include <math.h>\n{text}\nvoid g(double *x, double *y, double *z) {{ f(x, y, z); }}")
    subprocess.run([str(COMPILER), "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, source, "-lm"], check=True)
    compiled = ctypes.CDLL(str(library)).g
    compiled.argtypes = [ctypes.c_void_p] * 3
    inputs = np.random.default_rng(0).uniform(0.1, 2, (5, 20)) * np.array([[1.0]] * 4 + [[-1.0]])
    inputs[2, 0] = np.nan  # the largest and the smallest of what is not a number is none
    expected = outputs(tape, inputs)
    for lane, column in enumerate(inputs.T):
        zones = Zones()
        x, y, z = zones((3,)), zones((2,)), zones((count,))
        x[:], y[:] = column[:3], column[3:]
        compiled(x.ctypes.data, y.ctypes.data, z.ctypes.data)
        assert z == pytest.approx(expected[:, lane], rel=1e-14, nan_ok=True)
        assert zones.touched() == []
