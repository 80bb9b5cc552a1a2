"""Machine code of tapes against numpy, and the cache that keeps it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite", reason="llvmlite is not installed: pip install 'loopcheck[fast]'")

from analytic.batch import cache, compiled, inverse
from analytic.batch.expressions import Graph, largest, smallest
from analytic.batch.interpreter import follow
from analytic.batch.llvm import LARGEST_ANGLE
from analytic.batch.tape import HISTORY, Code, Tape, assemble_tape
from robots.arrays import Array
from robots.motion import Motion
from robots.robot import Case


def _tape(outputs: Callable[..., list[Any]], *values: float) -> Tape:
    graph = Graph()
    return assemble_tape(graph, outputs(*(graph.input(value) for value in values)))


def _every_code(x: Any, y: Any, z: Any) -> list[Any]:
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
def test_every_code_gives_what_numpy_does(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any number of lanes and samples, in arrays with gaps, and nothing is written into the gaps."""
    monkeypatch.setattr(compiled, "lanes_of_a_vector", lambda: width)
    tape = _tape(_every_code, 1.1, 0.7, 1.9)
    assert set(tape.code[:, 0].tolist()) == {int(code) for code in Code}
    function = compiled.load(compiled.job(tape, (3,), (3, len(tape.outputs) - 3)))
    rng = np.random.default_rng(0)
    for lanes, samples in ((1, 1), (5, 3), (8, 2), (13, 1)):
        past = rng.uniform(0.5, 2, (lanes, 2 * HISTORY, 5))[:, ::2, :3]
        found, wanted = ([np.full((lanes, 2 * samples, 9 * n), -1.0) for n in (1, 3)] for _ in range(2))
        for run, results in ((function, found), (lambda *given: follow(tape, *given), wanted)):
            run(
                np.array([0.5, 0.25, 0.25, 0.0]),
                [past],
                [results[0][:, ::2, :3], results[1][:, ::2, : len(tape.outputs) - 3]],
            )
        for ours, numpy in zip(found, wanted, strict=True):
            np.testing.assert_allclose(ours, numpy, rtol=1e-14, atol=1e-14)


@pytest.mark.usefixtures("empty_cache")
def test_sine_and_cosine_are_good_to_an_ulp_or_not_a_number() -> None:
    tape = _tape(lambda x: [x, np.sin(x), np.cos(x)], 1.0)
    size = np.logspace(-8, np.log10(2 * LARGEST_ANGLE), 4000)
    angles = np.concatenate([size, -size, np.arange(-40, 40) * (np.pi / 4)])
    found = _called(compiled.load(compiled.job(tape, (1,), (3,))), angles)
    inside = np.abs(angles) < LARGEST_ANGLE
    wanted = np.stack([np.sin(angles), np.cos(angles)], axis=1)
    np.testing.assert_allclose(found[inside, 1:], wanted[inside], rtol=0, atol=2.3e-16)
    assert np.isnan(found[~inside, 1:]).all()


@pytest.mark.usefixtures("empty_cache")
def test_what_is_not_a_number_is_not_lost_among_others() -> None:
    tape = _tape(lambda x, y: [largest([x, y]), largest([y, x]), smallest([x, y]), smallest([y, x])], 1.0, 2.0)
    function = compiled.load(compiled.job(tape, (2,), (4,)))
    past = np.broadcast_to(np.array([np.nan, 1.0]), (1, HISTORY, 2))
    found = np.zeros((1, 1, 4))
    function(np.array([1.0, 0, 0, 0]), [past], [found])
    assert np.isnan(found).all()


def test_a_damaged_entry_of_the_cache_is_compiled_again(empty_cache: Path) -> None:
    job = compiled.job(_tape(lambda x: [x * x + 2], 1.0), (1,), (1,))
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
    job = compiled.job(_tape(lambda x: [x * x - 2], 1.0), (1,), (1,))
    compiled.load(job)
    compiled.load.cache_clear()
    monkeypatch.setattr(compiled, "function", lambda *_: pytest.fail("compiled again"))
    assert _called(compiled.load(job), np.array([3.0])) == [[7]]


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    compiled.load.cache_clear()
    job = compiled.job(_tape(lambda x: [x * x - 3], 1.0), (1,), (1,))
    assert _called(compiled.load(job), np.array([3.0])) == [[6]]
    assert cache.read(job.key) is None


def test_a_tape_of_too_many_values_stays_in_numpy(
    prr: Case, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inverse, "MOST_REGISTERS", 10)
    monkeypatch.setattr(compiled, "load", lambda _: pytest.fail("compiled"))
    drive = prr_motion.law(prr_motion.t)
    assert inverse.inverse_dynamics(prr.mechanism, drive, prr_motion.q[0], evaluator="llvm").plain == 0


def _called(function: Any, x: Array) -> Array:
    """What a function of one column gives for each lane, shape (lanes, columns)."""
    columns = 3 if len(x) > 1 else 1
    found = np.zeros((len(x), 1, columns))
    past = np.broadcast_to(x[:, None, None], (len(x), HISTORY, 1))
    function(np.array([1.0, 0, 0, 0]), [past], [found])
    return found[:, 0]
