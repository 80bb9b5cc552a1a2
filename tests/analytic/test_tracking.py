"""Tracking and trust of samples, on a mechanism with a single position: x² = d, with branches that meet at 0."""

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from loopcheck.analytic.batch.expressions import Graph
from loopcheck.analytic.batch.inverse import _trusted
from loopcheck.analytic.batch.lanes import Equations
from loopcheck.analytic.batch.tape import Tape, assemble_tape
from loopcheck.analytic.batch.tracking import Columns, Track, track
from loopcheck.robots.arrays import Array
from loopcheck.robots.motion import Drive

COLUMNS = Columns(1, slice(0, 1), slice(1, 2), slice(2, 4))
TOLERANCE = 1e-14
FAST = [
    "numpy",
    pytest.param("llvm", marks=pytest.mark.skipif(find_spec("llvmlite") is None, reason="llvmlite is not installed")),
]


def _tape(outputs: Callable[..., list[Any]], *values: float) -> Tape:
    graph = Graph()
    return assemble_tape(graph, outputs(*(graph.input(value) for value in values)))


def _newton(x: Any, d: Any) -> list[Any]:
    step = (d - x * x) / (2 * x)
    return [x + step, abs(x * x - d), abs(step)]


def _efforts(x: Any, d: Any, v: Any, a: Any) -> list[Any]:
    """The effort is the velocity of x; the acceleration stands for the gap of redundant drives."""
    moved, residual, size = _newton(x, d)
    return [moved, v / (2 * x), residual, size, abs(x), x, abs(a)]


TAPES = _tape(_newton, 2.0, 4.0), _tape(_efforts, 2.0, 4.0, 1.0, 1.0)
"""Newton steps and efforts."""


@pytest.fixture(params=FAST)
def equations(request: pytest.FixtureRequest) -> Equations:
    function: Track = partial(track, *TAPES, COLUMNS)
    if request.param == "llvm":
        from loopcheck.analytic.batch import compiled

        function = compiled.load(compiled.job(*TAPES, COLUMNS))
    nothing = np.zeros(1, np.bool_)
    return Equations(
        track=function,
        tolerance=TOLERANCE,
        columns=COLUMNS,
        lengths=np.ones(1),
        turning=nothing,
        hinges=nothing,
        quaternions=(),
    )


def _drive(d: Array, *, apart: float = 0.0) -> Drive:
    column = np.ascontiguousarray(d, dtype=np.float64)[:, None]
    return Drive(column, np.ones_like(column), np.full_like(column, apart))


def _settled(equations: Equations, d: Array, guess: Array, **given: float) -> Array:
    records = np.zeros((len(d), 4))
    records[:, 0] = guess
    equations.settle(_drive(d, **given), records)
    return records


def test_both_branches_are_found_with_their_sign(equations: Equations) -> None:
    records = _settled(equations, np.array([4.0, 4.0, 9.0]), np.array([2.1, -1.9, -3.0]))
    np.testing.assert_allclose(records[:, 0], [2, -2, -3], rtol=1e-15)
    np.testing.assert_allclose(records[:, 1], [0.25, -0.25, -1 / 6], rtol=1e-14)
    assert records[:, 2].tolist() == [2, -2, -2]


def test_newton_steps_that_do_not_contract_are_not_believed(equations: Equations) -> None:
    """From 0.2 the first step goes to 2.6, beyond the solution; steps then fall by less than a half."""
    assert _settled(equations, np.ones(2), np.array([0.2, 0.9]))[:, 2].tolist() == [0, 2]


@pytest.mark.parametrize(("apart", "state"), [(1e-10, 2), (1e-8, 0)])
def test_drives_that_do_not_fit_each_other_are_not_believed(equations: Equations, apart: float, state: int) -> None:
    assert _settled(equations, np.array([4.0]), np.array([2.0]), apart=apart)[0, 2] == state


def test_a_small_guard_is_doubtful(equations: Equations) -> None:
    assert _settled(equations, np.array([1e-8, 4e-6]), np.array([1e-4, -2e-3]))[:, 2].tolist() == [1, -2]


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_not_believed(equations: Equations, which: int, value: float) -> None:
    drive = _drive(np.full(3, 4.0))
    drive[which][1] = value
    records = np.zeros((3, 4))
    records[:, 0] = 2.0
    equations.settle(drive, records)
    assert records[:, 2].tolist() == [2, 0, 2]


def test_a_lane_that_is_lost_is_lost_to_its_end(equations: Equations) -> None:
    records = np.zeros((9, 4))
    records[0, 0] = 2.0
    equations.follow(_drive(np.array([4.0, 4.1, 4.2, 4.3, 4.4, -1.0, 4.4, 4.4, 4.4])), records, 9)
    assert records[:, 2].tolist() == [2, 2, 2, 2, 2, 0, 0, 0, 0]


def test_only_positions_that_close_the_loops_are_extrapolated(equations: Equations) -> None:
    """If the path leaves the cubic slightly, Newton's method continues, and returns."""
    d = np.full(20, 4.0)
    d[10:] += 1e-6
    records = np.zeros((20, 4))
    records[0, 0] = 2.0
    equations.follow(_drive(d), records, 20)
    np.testing.assert_allclose(records[:, 0] ** 2, d, rtol=1e-15)
    np.testing.assert_allclose(records[:, 1], 0.5 / np.sqrt(d), rtol=1e-15)
    dense = records[:, 3]
    assert (dense[5:10] == 1).all()
    assert dense[10] == 0
    assert dense[-1] == 1


def test_a_lane_must_arrive_where_the_next_one_starts(equations: Equations, monkeypatch: pytest.MonkeyPatch) -> None:
    drive, find = _drive(np.linspace(4, 5, 40)), Equations._starts

    def starts(self: Equations, driven: Array, guess: Array, span: int) -> Array:
        return find(self, driven, guess, span) * np.array([1.0, 1, 1, -1, -1])[:, None]

    monkeypatch.setattr(Equations, "_starts", starts)
    records = np.zeros((40, 4))
    records[0, 0] = 2.0
    equations.follow(drive, records, 8)
    assert records[:23, 2].tolist() == [2] * 23
    assert records[24:, 2].tolist() == [0] * 16


def test_a_change_of_branch_between_two_samples_is_refused(equations: Equations) -> None:
    """Through 0 both branches meet; after that, nothing is believed."""
    records = np.zeros((30, 4))
    records[0, 0] = 2.0
    equations.follow(_drive(np.concatenate([np.linspace(4, -1, 15), np.linspace(-1, 4, 15)])), records, 8)
    reached = int(np.argmin(records[:, 2]))
    assert 5 < reached < 15
    assert (records[reached:, 2] == 0).all()


def test_samples_beside_a_change_of_sign_are_not_trusted() -> None:
    state = np.array([2.0, 2, 2, -2, -2, -2, 1, 2, 0, 2, 2])
    assert _trusted(state).tolist() == [True, True, False, False, True, False, False, False, False, False, True]
