"""Machine code of tapes against numpy, and the cache that keeps it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install 'loopcheck[fast]'")

from loopcheck.analytic.batch import cache, compiled, inverse
from loopcheck.analytic.batch.expressions import Graph, Op, largest, smallest
from loopcheck.analytic.batch.llvm import LARGEST_ANGLE
from loopcheck.analytic.batch.tape import Tape, assemble_tape
from loopcheck.analytic.batch.tracking import Columns, track
from loopcheck.robots.arrays import Array
from loopcheck.robots.motion import Drive, Motion
from loopcheck.robots.robot import Case


def _tape(outputs: Callable[..., list[Any]], *values: float) -> Tape:
    graph = Graph()
    return assemble_tape(graph, outputs(*(graph.input(value) for value in values)))


def _job(outputs: Callable[..., list[Any]], *values: float) -> compiled.Job:
    """Efforts as any function of positions with loops that are always closed."""
    n, found = len(values), _tape(outputs, *values)
    newton = _tape(lambda *x: [*x, 0.0, 0.0], *values)
    efforts = _tape(lambda *x: [*x, *outputs(*x), 0.0, 0.0, 1.0, 1.0, 0.0], *values)
    end = n + len(found.outputs)
    return compiled.job(newton, efforts, Columns(0, slice(0, n), slice(n, end), slice(end, end + 2)))


def _nothing_driven(lanes: int, samples: int) -> Drive:
    return Drive(*(np.zeros((lanes, samples, 0)) for _ in range(3)))


def _every_operation(x: Any, y: Any, z: Any) -> list[Any]:
    return [
        *(x * y + x * z, y * y - z * z, x * x + z, (x + y) * z - y, z - (x - y) * y, 3 * y + x, x + y, x - y, y * z),
        *(x / y, 4 / z, 2 + x, 5 * z, 1 - y, np.sqrt(x), abs(x - 9), np.sin(x), np.cos(x), np.cos(z), 7.0),
        *(largest([x, y, z]), smallest([x, y, z])),
    ]


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of this test alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiled.load.cache_clear()
    return tmp_path / "loopcheck" / "tapes"


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("width", [2, 4, 8])
def test_every_operation_gives_what_numpy_does(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any number of lanes and samples, in arrays with gaps; the gaps are not overwritten."""
    monkeypatch.setattr(compiled, "lanes_of_a_vector", lambda: width)
    job = _job(_every_operation, 1.1, 0.7, 1.9)
    assert set(job.efforts.code[:, 0].tolist()) == {*Op} - {Op.INPUT}
    function = compiled.load(job)
    rng = np.random.default_rng(0)
    for lanes, samples in ((1, 1), (5, 3), (8, 2), (13, 1)):
        width = job.columns.marks.stop
        empty = np.full((lanes, 2 * samples, 9 * width), -1.0)
        empty[:, ::2, job.columns.marks] = 0
        empty[:, 0, :3] = rng.uniform(0.5, 2, (lanes, 3))
        found, wanted = empty.copy(), empty.copy()
        function(1e-12, _nothing_driven(lanes, samples), found[:, ::2, :width])
        track(job.newton, job.efforts, job.columns, 1e-12, _nothing_driven(lanes, samples), wanted[:, ::2, :width])
        assert (found[:, ::2, job.columns.marks.start] == 2).all()
        np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-14)


@pytest.mark.usefixtures("empty_cache")
def test_sine_and_cosine_are_good_to_an_ulp_or_not_a_number() -> None:
    size = np.logspace(-8, np.log10(2 * LARGEST_ANGLE), 4000)
    angles = np.concatenate([size, -size, np.arange(-40, 40) * (np.pi / 4)])
    found = _called(compiled.load(_job(lambda x: [x, np.sin(x), np.cos(x)], 1.0)), angles)
    inside = np.abs(angles) < LARGEST_ANGLE
    wanted = np.stack([np.sin(angles), np.cos(angles)], axis=1)
    np.testing.assert_allclose(found[inside, 1:], wanted[inside], rtol=0, atol=2.3e-16)
    assert np.isnan(found[~inside, 1:]).all()
    zeros: Array = np.arange(3.0, 6e4, 14) * (np.pi / 2)  # of the cosine, whose digits are those of the reduction
    found = _called(compiled.load(_job(lambda x: [x, np.sin(x), np.cos(x)], 1.0)), zeros)
    np.testing.assert_allclose(found[:, 2], np.cos(zeros), rtol=1e-12)


@pytest.mark.usefixtures("empty_cache")
def test_what_is_not_a_number_is_not_lost_among_others() -> None:
    job = _job(lambda x, y: [largest([x, y]), largest([y, x]), smallest([x, y]), smallest([y, x])], 1.0, 2.0)
    records = np.zeros((1, 1, job.columns.marks.stop))
    records[0, 0, :2] = np.nan, 1.0
    compiled.load(job)(1e-12, _nothing_driven(1, 1), records)
    assert np.isnan(records[..., job.columns.effort]).all()
    assert (records[..., job.columns.marks] == 0).all()


def test_a_damaged_entry_of_the_cache_is_compiled_again(empty_cache: Path) -> None:
    job = _job(lambda x: [x * x + 2], 1.0)
    assert not job.is_compiled
    assert _called(compiled.load(job), np.array([3.0])) == [[11]]
    (entry,) = empty_cache.iterdir()
    whole = entry.read_bytes()
    for damaged in (whole[:-1], b"", whole[:-9] + b"x" + whole[-8:]):
        entry.write_bytes(damaged)
        assert not job.is_compiled
        compiled.load.cache_clear()
        assert _called(compiled.load(job), np.array([3.0])) == [[11]]
        assert job.is_compiled
        assert len(list(empty_cache.iterdir())) == 1


def test_machine_code_is_taken_from_the_cache(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = _job(lambda x: [x * x - 2], 1.0)
    compiled.load(job)
    compiled.load.cache_clear()
    monkeypatch.setattr(compiled, "function", lambda *_: pytest.fail("compiled again"))
    assert _called(compiled.load(job), np.array([3.0])) == [[7]]


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    compiled.load.cache_clear()
    job = _job(lambda x: [x * x - 3], 1.0)
    assert _called(compiled.load(job), np.array([3.0])) == [[6]]
    assert cache.read(job.key) is None


def test_a_tape_of_too_many_values_stays_in_numpy(
    prr: Case, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inverse, "MOST_REGISTERS", 10)
    monkeypatch.setattr(compiled, "load", lambda _: pytest.fail("compiled"))
    drive = prr_motion.law(prr_motion.t)
    assert inverse.inverse_dynamics(prr.mechanism, drive, prr_motion.q[0], evaluator="llvm").plain == 0


def test_the_address_of_any_array_is_that_of_its_first_number() -> None:
    """Also of a part, with gaps, read-only, and empty."""
    x = np.arange(12.0).reshape(3, 4)
    frozen = x.copy()
    frozen.setflags(write=False)
    for array in (x, x[1:], x[:, 1:], x[None, ::2], frozen, np.zeros((3, 0))):
        assert compiled._address(array) == array.__array_interface__["data"][0]


def _called(function: Any, x: Array) -> Array:
    """Efforts by a function of a position for each lane, shape (lanes, efforts)."""
    columns = 3 if len(x) > 1 else 1
    records = np.zeros((len(x), 1, 1 + columns + 2))
    records[:, 0, 0] = x
    function(1e-12, _nothing_driven(len(x), 1), records)
    return records[:, 0, 1 : 1 + columns]
