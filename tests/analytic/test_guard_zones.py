"""Memory around the arrays of compiled functions, for every number of lanes and samples near that of a vector."""

import itertools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install 'loopcheck[fast]'")

from loopcheck.analytic.batch import compiled
from loopcheck.analytic.batch.expressions import Graph
from loopcheck.analytic.batch.interpreter import outputs
from loopcheck.analytic.batch.tape import assemble_tape
from loopcheck.analytic.batch.tracking import track
from loopcheck.robots.arrays import Array
from loopcheck.robots.motion import Drive
from tests.analytic.test_tracking import COLUMNS, TAPES, TOLERANCE
from tests.guarded import Allocate, Zones, compiled_functions_in

NUMBERS = (0, 1, 7, 8, 9)
"""Lanes or samples: none, and around the vector of the largest processors."""


@pytest.fixture(params=[2, 4, 8])
def width(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """Lanes of a vector."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(compiled, "lanes_of_a_vector", lambda: request.param)
    return int(request.param)


def paths(lanes: int, samples: int, allocate: Allocate) -> tuple[Drive, Array]:
    """Paths of the mechanism x² = d in two lanes of every three; a number is missing in the third."""
    drive = Drive(*(allocate((lanes, samples, 1)) for _ in range(3)))
    records = allocate((lanes, samples, COLUMNS.marks.stop))
    drive.q[..., 0] = np.linspace(4, 5, lanes * samples).reshape(lanes, samples)
    drive.qd[...] = 1
    drive.q[2::3, samples // 2 :] = np.nan
    records[:, :1, 0] = 2
    return drive, records


def test_path_tracking_writes_its_records_alone(width: int) -> None:
    """Also into arrays at odd addresses, and into a part of an array, without its gaps."""
    function = compiled.load(compiled.job(*TAPES, COLUMNS))
    for lanes, samples, off in itertools.product(NUMBERS, NUMBERS, (0, 1)):
        zones = Zones(off=off)
        drive, records = paths(lanes, samples, zones)
        function(TOLERANCE, drive, records)
        assert zones.touched() == [], f"{lanes} lanes, {samples} samples, vectors of {width}"
        expected = paths(lanes, samples, np.zeros)[1]
        track(*TAPES, COLUMNS, TOLERANCE, drive, expected)
        found = expected[..., COLUMNS.marks.start] != 0
        np.testing.assert_array_equal(records[..., COLUMNS.marks.start] != 0, found)
        np.testing.assert_allclose(records[found], expected[found], rtol=1e-14)


@pytest.mark.usefixtures("width")
def test_a_compiled_tape_writes_its_outputs_alone() -> None:
    """Also for as many samples as fill blocks, a page and parts of them."""
    graph = Graph()
    x, y = (graph.input(value) for value in (1.0, 2.0))
    tape = assemble_tape(graph, [x * y, x + y, x - y])
    function = compiled.load_map(compiled.map_job(tape, 2))
    blocks = (compiled.PAGE, compiled.BLOCK, 2 * compiled.BLOCK)
    for samples, off in itertools.product([*NUMBERS, *(n + k for n in blocks for k in (-1, 0, 1))], (0, 1)):
        zones = Zones(off=off)
        inputs = np.random.default_rng(0).uniform(size=(2, samples))
        inputs[1, ::3] = np.nan
        with compiled_functions_in(zones):
            found = function([x[:, None] for x in inputs])
        assert zones.touched() == [], f"{samples} samples"
        np.testing.assert_array_equal(found, outputs(tape, inputs))


@pytest.mark.parametrize("groups", [0, -1])
def test_no_group_of_samples_is_nothing_to_do(width: int, groups: int) -> None:
    graph = Graph()
    tape = assemble_tape(graph, [graph.input(1.0) + 1])
    zones = Zones()
    inputs, found = zones((1, width)), zones((1, width))
    compiled.load_map(compiled.map_job(tape, 1)).call(inputs.ctypes.data, found.ctypes.data, 8, 8, groups)
    assert zones.touched() == []
    assert not found.any()


@pytest.mark.usefixtures("width")
def test_threads_share_no_array() -> None:
    function, zones = compiled.load(compiled.job(*TAPES, COLUMNS)), Zones()
    routes = [paths(9, 200, zones) for _ in range(16)]
    for k, (drive, _) in enumerate(routes):
        drive.qd[...] = k
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(partial(function, TOLERANCE), *zip(*routes, strict=True)))
    assert zones.touched() == []
    effort = np.stack([records[:2, :, COLUMNS.effort] for _, records in routes])
    np.testing.assert_allclose(effort, np.arange(16.0)[:, None, None, None] * effort[1], rtol=1e-14)


@pytest.mark.evidence("a process of its own, for memory that must not be touched", seconds=2)
@pytest.mark.skipif(sys.platform == "win32", reason="no mprotect")
def test_robots_stay_within_an_electric_fence() -> None:
    """Inverse and forward dynamics with every array at a page that must be neither written nor read."""
    run = subprocess.run([sys.executable, "-m", "tests.guarded"], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr[-1000:]
