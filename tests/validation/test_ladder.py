"""`loopcheck study refinement`: expected and observed orders, uncertainty, and continuation after an interruption."""

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import wraps
from math import nan
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from docs.orders import TERMS, prepared_term, shortened
from loopcheck import engines
from loopcheck.engines import declarations as declared
from loopcheck.engines.declarations import STEP, Ladder, ladders
from loopcheck.engines.extrapolation import value_at_zero
from loopcheck.robots.arrays import Array
from loopcheck.robots.catalogue import names
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.execution.tables import read_tables
from loopcheck.validation.execution.workers import Workers
from loopcheck.validation.frame.study import run_study
from loopcheck.validation.studies.refinement import study
from loopcheck.validation.studies.refinement.analysis import (
    CONVERGES,
    DIVERGES,
    EXPECTED,
    HIGHER,
    LOWER,
    NO_CLAIM,
    NOT_RUN,
    RICHARDSON,
    STALLED,
    UNRESOLVED,
    claims,
    end_of,
    floor_of,
    longest_run,
    order_verdict,
    refinements,
)
from loopcheck.validation.studies.refinement.levels import LEVELS, PreparedCase, prepared_case, simulate_levels
from loopcheck.validation.studies.refinement.report import study_verdicts, targets
from loopcheck.validation.studies.refinement.study import TABLE, Refinement
from tests.cpu_time import extended_but
from tests.validation.conftest import Command, in_this_process

TARGET = 1e-6
SMALL = Refinement(cases=cases_of(["3prr"], variants=["default"], configurations=["vertical"], modes=["plus"]))
FEW = ("mj_step Euler", "mj_step Euler, default softness")


@pytest.mark.parametrize(("order", "ratio"), [(1, 2), (2, 2), (4, 2), (1, 10)])
def test_a_power_law_has_its_order_and_its_index(order: int, ratio: float) -> None:
    """The index of a pure power law is 1.25 times the true error."""
    values = [ratio**-k for k in range(4)]
    exact, shape = np.array([[1.0, -2.0]]), np.array([[0.3, 1.0]])
    found = refinements(values, [exact + 1e-3 * h**order * shape for h in values], np.full(2, 2.0), order)
    np.testing.assert_allclose(found["order"][2:], order, atol=1e-6)
    np.testing.assert_allclose(found["uncertainty"][2:], [1.25e-3 * h**order / 2 for h in values[2:]], rtol=1e-6)
    assert found["change"].isna().tolist() == [True, False, False, False]


@pytest.mark.parametrize(("power", "expected", "used"), [(1, 4, 1), (0.2, 4, 0.5), (6, 4, 4)])
def test_an_order_off_the_expected_one_has_a_factor_of_three(power: float, expected: float, used: float) -> None:
    """And the lower of both orders, not below a half."""
    efforts = [np.array([[1 + h**power]]) for h in (0.4, 0.2, 0.1)]
    found = refinements([0.4, 0.2, 0.1], efforts, np.ones(1), expected)
    assert found["order"].iloc[-1] == pytest.approx(power)
    assert found["uncertainty"].iloc[-1] == pytest.approx(3 * (0.2**power - 0.1**power) / (2**used - 1))


def test_a_value_of_zero_has_no_order() -> None:
    """As no steps before the span."""
    found = refinements([0.0, 1.0, 2.0], [np.full((1, 1), x) for x in (1.0, 2.0, 4.0)], np.ones(1), nan)
    assert found["change"].tolist()[1:] == [1.0, 2.0]
    assert found[["order", "uncertainty"]].isna().all(axis=None)
    assert floor_of(np.array([1.0, 0.0]), np.array([0.2, 0.1])) == 0.1


def test_a_level_that_failed_leaves_a_gap() -> None:
    found = refinements(
        [1.0, 0.5, 0.25, 0.125], [np.ones((1, 1)), None, np.ones((1, 1)), np.zeros((1, 1))], np.ones(1), 1
    )
    assert found["change"].isna().tolist() == [True, True, True, False]
    assert found["order"].isna().all()


@pytest.mark.parametrize(
    ("off", "count", "end", "floor", "wanted"),
    [
        ([0.1, 0.05], 2, CONVERGES, nan, EXPECTED),
        ([0.1, 0.05], 2, STALLED, 1e-3, EXPECTED),  # at the right order to another limit
        ([0.4, 0.3], 0, CONVERGES, nan, HIGHER),
        ([-0.4, -0.3], 0, CONVERGES, nan, LOWER),
        ([-0.4, -0.3], 0, CONVERGES, 1e-9, UNRESOLVED),
        ([-0.4, -0.3], 0, STALLED, 1e-3, LOWER),
        ([0.1, -0.4, -0.3], 1, CONVERGES, nan, UNRESOLVED),
        ([-0.4, 0.3], 0, CONVERGES, nan, UNRESOLVED),
        ([-0.4], 0, CONVERGES, nan, UNRESOLVED),
        ([], 0, NOT_RUN, nan, NOT_RUN),
    ],
)
def test_verdicts_on_an_order(off: list[float], count: int, end: str, floor: float, wanted: str) -> None:
    assert order_verdict(4.0, np.array(off), count, end, floor) == wanted


def test_a_ladder_without_a_claim_has_no_verdict_on_its_order() -> None:
    assert order_verdict(nan, np.array([]), 0, CONVERGES, nan) == NO_CLAIM


@pytest.mark.parametrize(
    ("holds", "wanted"),
    [
        ([False, True, True, False, True], [1, 2]),
        ([True, False, True], [2]),
        ([True, True, False, True, True], [3, 4]),
        ([False, False], []),
    ],
)
def test_the_asymptotic_range_is_the_longest_and_finest(holds: list[bool], wanted: list[int]) -> None:
    assert longest_run(np.array(holds)) == wanted


@pytest.mark.parametrize(
    ("error", "floor", "wanted"),
    [
        ([1e-2, 5e-3, 2.5e-3], nan, CONVERGES),
        ([1e-4, 1e-6, 1e-8, 1e-8], 1e-8, CONVERGES),
        ([1e-7, 1e-8, 3e-8], 1e-8, CONVERGES),
        ([1e-2, 3e-4, 3e-4], 3e-4, STALLED),
        ([0.26, 0.26, 0.259], 0.259, STALLED),
        ([1e-3, 1e-2, 4.0], 1e-3, DIVERGES),
        ([1e-9, 1e-8, 3e-8], 1e-9, CONVERGES),
        ([0.032, 0.034, 0.038], 0.032, STALLED),
        ([0.032, 0.05, 0.065], 0.032, DIVERGES),
        ([1e-3, 5e-4, nan], nan, DIVERGES),
        ([nan, 1e-3, 5e-4], nan, CONVERGES),
        ([nan, nan, nan], nan, NOT_RUN),
    ],
)
def test_ends(error: list[float], floor: float, wanted: str) -> None:
    values, errors = np.array([0.5**k for k in range(len(error))]), np.array(error)
    assert floor_of(values, errors) == pytest.approx(floor, nan_ok=True)
    assert end_of(errors, floor, TARGET) == wanted


def test_a_claim_names_its_range_and_the_error_at_the_default() -> None:
    """First order from the second level on; round-off at the last one."""
    first, last = _rows(np.array([0.9, 0.25, 0.125, 0.0625, 0.03125]) + 1e-15), _rows(np.array([4e-13, 2e-13, 1e-13]))
    (row,) = claims(first, {"mujoco/forward": TARGET}).to_dict("records")
    assert (row["from"], row["to"], row["orders"], row["verdict"]) == (0.5, 0.0625, 2, EXPECTED)
    assert row["observed"] == pytest.approx(1)
    assert (row["at"], row["error"]) == (0.25, pytest.approx(0.125))  # 0.3 is the default
    assert row["uncertainty"] > row["error"]
    (row,) = claims(last, {}).to_dict("records")
    assert (row["verdict"], row["orders"]) == (UNRESOLVED, 0)
    assert np.isnan([row["observed"], row["from"], row["to"]]).all()


def test_a_failed_claim_disagrees_unless_its_limit_is_stated() -> None:
    lower = _rows(np.array([0.8, 0.6, 0.45, 0.34]))
    found = pd.concat(
        [
            claims(rows, {"mujoco/forward": TARGET})
            for rows in (lower, lower.assign(limit="soft loops"), _rows(np.ones(4) * nan))
        ]
    )
    assert study_verdicts(found) == ["disagree", "measured", "not run"]


@pytest.fixture(scope="module")
def prepared(prr: Case) -> PreparedCase:
    """The first fifth of the motion."""
    return shortened(prepared_case(prr), 5)


@pytest.fixture(scope="module")
def linkage() -> PreparedCase:
    (case,) = cases_of(["four_bar"], variants=["default"], configurations=["vertical"])
    return shortened(prepared_case(case), 5)


METHODS = {
    "dart/forward": ["servos"],
    "drake/forward": ["SAP"],
    "exudyn/forward": ["trapezoidal rule"],
    "mujoco/forward": ["Runge-Kutta, two compliances", "mj_step Euler", "mj_step implicitfast", "mj_step RK4"],
    "pinocchio/forward": ["Runge-Kutta", "semi-implicit Euler"],
    "pybullet/forward": ["velocity motors"],
}
"""Methods whose order four or more levels resolve on every robot."""
FIRST = 2
"""Methods of each route that are tried on every robot and every term."""
FEW_LEVELS = 5
"""Levels there: three observed orders."""


@pytest.mark.parametrize(
    "route",
    extended_but(["dart/forward", "mujoco/forward", "pinocchio/forward"], METHODS, "test_methods_have_their_orders"),
)
def test_methods_have_their_orders(route: str, prepared: PreparedCase, linkage: PreparedCase) -> None:
    """On a parallel robot and on a linkage, whose first-order error is small in the beginning."""
    if not engines.installed(route.split("/")[0]):
        pytest.skip(f"{route} is not installed")
    assert set(_claims(prepared, route)["verdict"]) == {EXPECTED}
    assert set(_claims(linkage, route)["verdict"]) <= {EXPECTED, UNRESOLVED}


@pytest.mark.extended("test_methods_have_their_orders")
@pytest.mark.parametrize("robot", [name for name in names() if name not in ("3prr", "four_bar")])
def test_methods_have_their_orders_on_every_robot(robot: str) -> None:
    """Servos of velocities have a higher order where velocity terms are small: on `andrews`, `n_four_bar_2`."""
    (case, *_) = cases_of([robot], variants=["default"])
    _hold(shortened(prepared_case(case), 20), without=case.robot.without)


@pytest.mark.extended("test_methods_have_their_orders")
@pytest.mark.parametrize("term", TERMS)
def test_a_term_keeps_the_order(term: str, tmp_path: Path) -> None:
    _hold(shortened(prepared_term(term, tmp_path), 20))


def _hold(prepared: PreparedCase, without: Collection[str] = ()) -> None:
    """No order is lower than expected, and most of those that are simulated are shown."""
    installed = [route for route in METHODS if engines.installed(route.split("/")[0]) and route not in without]
    found = pd.concat([_claims(prepared, route, FIRST, FEW_LEVELS) for route in installed])
    assert LOWER not in set(found["verdict"]), found.to_string()
    assert found["verdict"].isin([EXPECTED, HIGHER]).sum() > (found["verdict"] != NOT_RUN).sum() / 2


@pytest.mark.parametrize("name", ["mj_step Euler, default softness", "mj_step Euler, own inverse weights"])
def test_soft_constraints_stall_though_the_changes_fall(prepared: PreparedCase, name: str) -> None:
    ladder = _first_levels(prepared.motion, "mujoco/forward", name, 7)
    levels = simulate_levels(prepared, ladder)
    assert levels["change"].iloc[-1] < levels["change"].iloc[1] / 10
    (found,) = claims(levels, targets()).to_dict("records")
    assert (found["end"], found["verdict"]) == (STALLED, EXPECTED)
    assert levels["relative_error"].iloc[-1] > 3 * levels["uncertainty"].iloc[-1]


def test_a_solver_that_gives_up_stalls(prepared: PreparedCase) -> None:
    """A single iteration of PGS at every step."""
    forward = pytest.importorskip("loopcheck.engines.mujoco.routes.forward")
    lame = forward.Settings(compliances=(1e-3,), integrator="Euler", solver="PGS", iterations=1)
    ladder = _first_levels(prepared.motion, "mujoco/forward", "mj_step Euler", 3)
    by_lame = tuple(
        replace(level, source=forward.MujocoForward(replace(lame, steps=(level.dt,)))) for level in ladder.levels
    )
    levels = simulate_levels(prepared, replace(ladder, levels=by_lame))
    assert claims(levels, targets())["end"].iloc[0] in (STALLED, DIVERGES)
    assert levels["relative_error"].min() > 0.01


@pytest.mark.parametrize("dt", [0.01, 0.02, 0.05])
def test_ladders_are_told_apart_and_ever_finer(prr_motion: Motion, dt: float) -> None:
    found = ladders(prr_motion.assemble(np.array([0.0, dt, 2 * dt])))
    names = [(ladder.route, ladder.name) for ladder in found]
    assert len(set(names)) == len(names)
    for ladder in found:
        steps = np.diff([level.value for level in ladder.levels])
        assert (steps > 0).all() or (steps < 0).all(), ladder.name
        counts = [dt / level.dt for level in ladder.levels]
        np.testing.assert_allclose(counts, np.round(counts), rtol=1e-12, err_msg=ladder.name)


@pytest.mark.parametrize(
    "route",
    extended_but(
        ["mujoco/forward", "pinocchio/forward"],
        ["exudyn/forward", "mujoco/forward", "pinocchio/forward", "pybullet/forward"],
        "test_the_own_setting_is_that_of_the_route",
    ),
)
def test_the_own_setting_is_that_of_the_route(route: str, prr: Case, prr_motion: Motion) -> None:
    if not engines.installed(route.split("/")[0]):
        pytest.skip(f"{route} is not installed")
    (ladder,) = [found for found in ladders(prr_motion) if found.route == route and found.own[0]]
    count, finest = ladder.own
    (last,) = [k for k, level in enumerate(ladder.levels) if np.isclose(level.value, finest)]
    levels = ladder.levels[last + 1 - count : last + 1]
    efforts = [level.source.compute_efforts(prr, prr_motion).effort for level in levels if level.source]
    wanted = engines.load(route).compute_efforts(prr, prr_motion).effort
    found = value_at_zero([level.value for level in levels], efforts)
    np.testing.assert_allclose(found, wanted, atol=1e-6 * np.abs(wanted).max())


@pytest.fixture
def few(prepared: PreparedCase) -> Iterator[None]:
    """Two ladders of three levels on a short motion, instead of all."""
    short = [_first_levels(prepared.motion, "mujoco/forward", name, 3) for name in FEW]
    with in_this_process() as patch:
        patch.setattr(declared, "ladders", lambda motion: short)
        patch.setattr(study, "prepared_case", wraps(prepared_case)(lambda case: prepared))
        yield


@pytest.mark.extended("test_the_command_writes_a_page_and_tables")
@pytest.mark.usefixtures("few")
@pytest.mark.usefixtures("tables_only")
def test_a_study_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted, it writes its results so far; the same study computes the rest, and then finds all done."""
    done: list[str] = []

    @wraps(simulate_levels)  # the name is part of what a result is known by
    def interrupted(prepared: PreparedCase, ladder: Ladder) -> pd.DataFrame:
        if done:
            raise KeyboardInterrupt
        done.append(ladder.name)
        return simulate_levels(prepared, ladder)

    with monkeypatch.context() as patch:
        patch.setattr(study, "simulate_levels", interrupted)
        first, _ = run_study(SMALL, tmp_path, workers=Workers(jobs=1))
    finished = first.tables[TABLE].query("note != 'interrupted'")["ladder"]
    assert {name.split(RICHARDSON)[0] for name in finished} == {FEW[0]}
    assert first.record["not_run"] == ["interrupted"]
    result, _ = run_study(SMALL, tmp_path, workers=Workers(jobs=1))
    assert result.record["tasks"] == {"computed": 1, "known": 2}
    assert set(FEW) <= set(result.tables[TABLE]["ladder"])
    again, _ = run_study(SMALL, tmp_path, workers=Workers(jobs=1))
    assert again.record["tasks"] == {"computed": 0, "known": 3}
    pd.testing.assert_frame_equal(again.tables[TABLE], result.tables[TABLE])


@pytest.mark.usefixtures("few")
def test_the_command_writes_a_page_and_tables(loopcheck: Command, tmp_path: Path) -> None:
    status, out, err = loopcheck(
        "study", "refinement", "3prr", "--configuration", "vertical", "--jobs", "1", "--out", tmp_path
    )
    assert (status, err) == (0, "")
    assert "refinement.html" in out
    names = {path.name for path in tmp_path.iterdir()}
    assert names >= {
        "refinement.html",
        "refinement.md",
        "refinement_levels.csv",
        "refinement_orders.csv",
    }
    text = (tmp_path / "refinement.md").read_text(encoding="utf-8")
    assert "Claims that fail: none." in text
    assert "efforts of the model's soft loops" in text
    assert (tmp_path / "refinement.html").read_text(encoding="utf-8").count("data:image/svg+xml") == 1
    levels = read_tables(tmp_path, Refinement.tables)[TABLE]
    pytest.importorskip("pyarrow")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "refinement_levels.parquet"), levels)


def _first_levels(motion: Motion, route: str, name: str, count: int) -> Ladder:
    """The coarsest levels of a ladder."""
    (ladder,) = [found for found in ladders(motion) if (found.route, found.name) == (route, name)]
    extrapolated = tuple(number for number in ladder.extrapolated if number < count - 1)
    return replace(ladder, levels=ladder.levels[:count], extrapolated=extrapolated)


def _claims(prepared: PreparedCase, route: str, methods: int | None = None, levels: int = 7) -> pd.DataFrame:
    """Claims on the first methods of an engine, by their coarsest levels."""
    ladders = [_first_levels(prepared.motion, route, name, levels) for name in METHODS[route][:methods]]
    tables = pd.concat([simulate_levels(prepared, replace(ladder, extrapolated=())) for ladder in ladders])
    return claims(tables, targets())


def _rows(error: Array) -> pd.DataFrame:
    """A ladder of halved steps from 1 s whose efforts have an error [-], shape (n,)."""
    values = [0.5**k for k in range(len(error))]
    efforts = [None if np.isnan(each) else np.array([[1 + each]]) for each in error]
    row = {
        **dict(zip(("robot", "mode", "configuration"), ("r", "home", "vertical"), strict=True)),
        **{
            "route": "mujoco/forward",
            "ladder": "one",
            "refined": STEP,
            "expected": 1.0,
            "source": "Euler",
            "limit": "",
        },
        **{"default": 0.3, "runs": 1, "settings": "", "wall_time": 1.0, "own": False, "note": ""},
    }
    levels = pd.DataFrame([{**row, "value": value, "dt": value} for value in values]).assign(relative_error=error)
    estimates = refinements(values, efforts, np.ones(1), 1.0)
    return LEVELS.frame(pd.concat([levels, estimates], axis=1)[list(LEVELS.columns)])
