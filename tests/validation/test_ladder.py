"""`loopcheck study refinement`: orders and verdicts, its advice, and its continuation after an interruption."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import wraps
from math import nan
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from loopcheck import engines
from loopcheck.engines import declarations as declared
from loopcheck.engines.declarations import STEP, Ladder, ladders
from loopcheck.engines.extrapolation import value_at_zero
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, representative_case
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.common.tolerances import registered
from loopcheck.validation.execution.tables import read_tables
from loopcheck.validation.execution.workers import Workers, worker_pool
from loopcheck.validation.frame.study import run_study
from loopcheck.validation.studies.refinement import study, tuned
from loopcheck.validation.studies.refinement.advice import ANY, PLAIN, advice, answer, own_settings
from loopcheck.validation.studies.refinement.analysis import (
    CONVERGES,
    DIVERGES,
    NOT_RUN,
    STALLED,
    floor_of,
    refinements,
    summary,
    verdict,
)
from loopcheck.validation.studies.refinement.levels import LEVELS, PreparedCase, prepared_case, simulate_levels
from loopcheck.validation.studies.refinement.study import TABLE, Refinement
from loopcheck.validation.tune.engine import tuning_of
from loopcheck.validation.tune.runs.judged_run import Extent, judge_settings
from loopcheck.validation.tune.runs.purposes import given_purposes
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
    np.testing.assert_allclose(found["index"][2:], [1.25e-3 * h**order / 2 for h in values[2:]], rtol=1e-6)
    assert found["change"].isna().tolist() == [True, False, False, False]


def test_an_order_that_is_not_plausible_is_replaced_by_theory() -> None:
    """First order instead of fourth: the factor is 3."""
    efforts = [np.array([[1 + h]]) for h in (0.4, 0.2, 0.1)]
    found = refinements([0.4, 0.2, 0.1], efforts, np.ones(1), 4)
    assert found["order"].iloc[-1] == pytest.approx(1)
    assert found["index"].iloc[-1] == pytest.approx(3 * 0.1 / (2**4 - 1))


def test_a_level_that_failed_leaves_a_gap() -> None:
    found = refinements(
        [1.0, 0.5, 0.25, 0.125], [np.ones((1, 1)), None, np.ones((1, 1)), np.zeros((1, 1))], np.ones(1), 1
    )
    assert found["change"].isna().tolist() == [True, True, True, False]
    assert found["order"].isna().all()


CHANGES = [nan, 1e-2, 2e-3, 5e-4, 1e-7, 4e-8]
ORDERS = [nan, nan, 2.3, 2.1, 12.0, 1.3]
"""Changes and orders of a ladder that reaches its noise after four levels."""


@pytest.mark.parametrize(
    ("noise", "order"),
    [
        (1e-9, 1.3),  # all are above it
        (9.9e-9, 12.0),
        (1e-8, 2.1),  # one that is just ten times the noise is not above that
        (4.99e-5, 2.1),
        (5e-5, 2.3),
        (1.99e-4, 2.3),
        (2e-4, nan),
        (nan, nan),
    ],
)
def test_the_order_is_taken_above_the_noise(noise: float, order: float) -> None:
    """Ten times: below, round-off makes any order there is."""
    levels = _rows()[:6].assign(ladder="one", configuration="vertical", change=CHANGES, order=ORDERS)
    (row,) = summary(levels, {"mujoco/forward": TARGET}, {"mujoco/forward": noise}).to_dict("records")
    assert row["order"] == pytest.approx(order, nan_ok=True)
    unknown = summary(levels, {}, {}).to_dict("records")[0]
    assert np.isnan([unknown["order"], unknown["target"]]).all()


@pytest.mark.parametrize(
    ("error", "floor", "wanted"),
    [
        ([1e-2, 5e-3, 2.5e-3], nan, CONVERGES),
        ([1e-4, 1e-6, 1e-8, 1e-8], 1e-8, CONVERGES),
        ([1e-7, 1e-8, 3e-8], 1e-8, CONVERGES),
        ([1e-2, 3e-4, 3e-4], 3e-4, STALLED),
        ([0.26, 0.26, 0.259], 0.259, STALLED),
        ([1e-3, 1e-2, 4.0], 1e-3, DIVERGES),
        ([1e-3, 5e-4, nan], nan, DIVERGES),
        ([nan, 1e-3, 5e-4], nan, CONVERGES),
        ([nan, nan, nan], nan, NOT_RUN),
    ],
)
def test_verdicts(error: list[float], floor: float, wanted: str) -> None:
    values, errors = np.array([0.5**k for k in range(len(error))]), np.array(error)
    assert floor_of(values, errors, 1.0) == pytest.approx(floor, nan_ok=True)
    assert verdict(errors, floor, TARGET) == wanted


@pytest.fixture(scope="module")
def prepared(prr: Case, prr_motion: Motion) -> PreparedCase:
    """The first fifth of the motion."""
    short = prr_motion.assemble(prr_motion.t[: len(prr_motion.t) // 5 + 1])
    prepared = prepared_case(prr)
    return replace(prepared, motion=short, reference=prepared.reference[: len(short.t)])


@pytest.mark.parametrize(("order", "name"), [(4, "Runge-Kutta, two compliances"), (1, "mj_step Euler")])
def test_mujoco_has_the_order_of_its_integrator(prepared: PreparedCase, order: int, name: str) -> None:
    of_name = _summary(simulate_levels(prepared, _first_levels(prepared.motion, "mujoco/forward", name, 4)))
    assert of_name.loc[name, "order"] == pytest.approx(order, abs=0.1)
    assert of_name.loc[name, "verdict"] == CONVERGES
    if order == 1:
        assert of_name.loc[f"{name}, Richardson 2", "order"] == pytest.approx(2, abs=0.15)


def test_pybullet_is_of_first_order(prepared: PreparedCase) -> None:
    pytest.importorskip("pybullet")
    found = _summary(
        simulate_levels(prepared, _first_levels(prepared.motion, "pybullet/forward", "velocity motors", 5))
    )
    assert found.loc["velocity motors", "order"] == pytest.approx(1, abs=0.1)
    assert found.loc["velocity motors, Richardson 2", "order"] == pytest.approx(2, abs=0.15)
    errors = found["error"]
    assert errors["velocity motors"] > 30 * errors["velocity motors, Richardson 2"]


@pytest.mark.parametrize(("order", "name"), [(4, "Runge-Kutta"), (1, "semi-implicit Euler")])
def test_pinocchio_has_the_order_of_its_integrator(prepared: PreparedCase, order: int, name: str) -> None:
    pytest.importorskip("pinocchio")
    levels = simulate_levels(prepared, _first_levels(prepared.motion, "pinocchio/forward", name, 4))
    orders = levels.groupby("ladder")["order"].last()  # that of fourth order is soon below the registered noise
    assert orders[name] == pytest.approx(order, abs=0.1)
    assert _summary(levels).loc[name, "verdict"] == CONVERGES
    if order == 1:
        assert orders[f"{name}, Richardson 2"] == pytest.approx(2, abs=0.15)


def test_exudyn_is_of_second_order(prepared: PreparedCase) -> None:
    pytest.importorskip("exudyn")
    found = _summary(simulate_levels(prepared, _first_levels(prepared.motion, "exudyn/forward", "trapezoidal rule", 5)))
    assert found.loc["trapezoidal rule", "order"] == pytest.approx(2, abs=0.1)
    assert found.loc["trapezoidal rule", "verdict"] == CONVERGES


@pytest.mark.parametrize("name", ["mj_step Euler, default softness", "mj_step Euler, own inverse weights"])
def test_soft_constraints_stall_though_the_changes_fall(prepared: PreparedCase, name: str) -> None:
    ladder = _first_levels(prepared.motion, "mujoco/forward", name, 7)
    levels = simulate_levels(prepared, ladder)
    assert levels["change"].iloc[-1] < levels["change"].iloc[1] / 10
    assert _summary(levels).loc[name, "verdict"] == STALLED
    assert levels["relative_error"].iloc[-1] > 3 * levels["index"].iloc[-1]


def test_a_solver_that_gives_up_stalls(prepared: PreparedCase) -> None:
    """A single iteration of PGS at every step."""
    forward = pytest.importorskip("loopcheck.engines.mujoco.routes.forward")
    lame = forward.Settings(compliances=(1e-3,), integrator="Euler", solver="PGS", iterations=1)
    ladder = _first_levels(prepared.motion, "mujoco/forward", "mj_step Euler", 3)
    by_lame = tuple(
        replace(level, source=forward.MujocoForward(replace(lame, steps=(level.dt,)))) for level in ladder.levels
    )
    levels = simulate_levels(prepared, replace(ladder, levels=by_lame))
    assert _summary(levels).loc[ladder.name, "verdict"] in (STALLED, DIVERGES)
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


def test_advice_is_the_cheapest_that_meets_the_target_in_every_case() -> None:
    columns = ["target", "allowed", "ladder", "value", "relative_error", "reached"]
    found = advice(_rows(), targets=(1e-2, 1e-6))[columns].to_numpy().tolist()
    assert found == [
        [1e-2, PLAIN, "plain", 0.25, 8e-3, True],
        [1e-2, ANY, "own", 1.0, 1e-9 * 8**4, True],
        [1e-6, PLAIN, "plain", 0.125, 4e-3, False],
        [1e-6, ANY, "own", 0.5, 1e-9 * 4**4, True],
    ]


def test_advice_counts_neither_luck_nor_a_failed_case() -> None:
    """The expensive ladder meets the target at its first level by chance; the cheapest failed in a case."""
    rows = _rows()
    lucky = rows[rows["ladder"] == "plain"].assign(ladder="lucky", wall_time=1e-3)
    lucky["relative_error"] = lucky["value"].map({1.0: 1e-9, 0.5: 0.5, 0.25: 0.5, 0.125: 0.5})
    failing = rows[rows["ladder"] == "plain"].assign(ladder="failing", wall_time=1e-4, relative_error=1e-9)
    failing.loc[failing["configuration"] == "vertical", "relative_error"] = nan
    found = advice(pd.concat([rows, lucky, failing], ignore_index=True), targets=(1e-2, 1e-6))
    assert not found["ladder"].isin(["lucky", "failing"]).any()


def test_advice_says_where_nothing_ran() -> None:
    found = advice(_rows().assign(relative_error=nan), targets=(1e-2,))
    assert {answer(row) for row in found.to_dict("records")} == {
        "no level ran in every case; see the notes of the levels"
    }


def test_where_the_own_setting_stands() -> None:
    rows = _rows()
    rows.loc[(rows["ladder"] == "own") & (rows["value"] == 0.125), "own"] = True
    (row,) = own_settings(rows, {"mujoco/forward": 1e-4}).to_dict("records")
    assert row["own error"] == 1e-9
    assert row["cheapest"] == "own, step 1000 ms"
    assert row["its cost"] < row["own cost"]


@pytest.fixture
def few(prepared: PreparedCase) -> Iterator[None]:
    """Two ladders of three levels on a short motion, instead of all."""
    short = [_first_levels(prepared.motion, "mujoco/forward", name, 3) for name in FEW]
    with in_this_process() as patch:
        patch.setattr(declared, "ladders", lambda motion: short)
        patch.setattr(study, "prepared_case", wraps(prepared_case)(lambda case: prepared))
        patch.setattr(tuned, "tunable", list)
        yield


@pytest.mark.extended("test_advice_is_the_cheapest_that_meets_the_target_in_every_case")
def test_what_is_advised_is_what_a_user_types_and_reaches_its_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings that the table names, tried again by themselves."""
    monkeypatch.setattr(tuned, "TARGETS", (1e-2,))
    monkeypatch.setattr(tuned, "tunable", lambda: ["mujoco"])
    case = representative_case(load("four_bar"))
    with worker_pool(Workers(jobs=1)) as pool:
        (row,) = tuned.tuned_rows([case], pool).to_dict("records")
        purposes = given_purposes(case, "mujoco", pool)[0][:1]
    settings = dict(pair.split("=") for pair in row["settings"].replace('"', "").split(", "))
    given = tuning_of("mujoco").given(case.mechanism)
    (run,) = judge_settings(case, "mujoco", given, purposes, settings, Extent(400))
    assert row["reached"]
    assert run.error <= 1.1e-2
    assert run.cost == pytest.approx(row["cost"])
    assert set(settings) <= {"timestep", "integrator", "solver", "iterations", "tolerance", "solref", "solimp"}


@pytest.mark.extended("test_the_command_writes_a_page_and_tables")
@pytest.mark.usefixtures("few")
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
    assert set(first.tables[TABLE].query("note != 'interrupted'")["base"]) == {FEW[0]}
    assert first.record["not_run"] == ["interrupted"]
    result, _ = run_study(SMALL, tmp_path, workers=Workers(jobs=1))
    assert result.record["tasks"] == {"computed": 1, "known": 2}
    assert list(result.tables[TABLE]["base"].unique()) == list(FEW)
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
        "refinement_summary.csv",
        "refinement_settings.csv",
    }
    text = (tmp_path / "refinement.md").read_text(encoding="utf-8")
    assert "no setting reaches the target; the most accurate" in text
    assert "Stalled: mujoco: mj_step Euler, default softness at 0.22" in text
    assert (tmp_path / "refinement.html").read_text(encoding="utf-8").count("data:image/svg+xml") == 1
    levels = read_tables(tmp_path, Refinement.tables)[TABLE]
    pytest.importorskip("pyarrow")
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "refinement_levels.parquet"), levels)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["3ppr"], "'3ppr'"),
        (["3prr", "--mode", "home"], "unknown mode of 3prr: 'home'. Known: plus, minus"),
        (
            ["3prr", "--source", "mujoco/kkt"],
            "unknown route with refinement levels: 'mujoco/kkt'. Known: dart/forward, drake/forward, exudyn/forward",
        ),
    ],
)
def test_bad_input_is_one_line(loopcheck: Command, tmp_path: Path, arguments: list[str], said: str) -> None:
    status, _, err = loopcheck("study", "refinement", *arguments, "--out", tmp_path / "out")
    assert (status, err.count("\n")) == (2, 1)
    assert said in err
    assert not (tmp_path / "out").exists()


def _first_levels(motion: Motion, route: str, name: str, count: int) -> Ladder:
    """The coarsest levels of a ladder."""
    (ladder,) = [found for found in ladders(motion) if (found.route, found.name) == (route, name)]
    extrapolated = tuple(number for number in ladder.extrapolated if number < count - 1)
    return replace(ladder, levels=ladder.levels[:count], extrapolated=extrapolated)


def _summary(levels: pd.DataFrame) -> pd.DataFrame:
    """By ladder, against the registered tolerance; any change determines an order."""
    targets = {route: registered()[route].relative_error or nan for route in levels["route"].unique()}
    return summary(levels, targets, dict.fromkeys(targets, 1e-9)).set_index("ladder")


def _rows() -> pd.DataFrame:
    """Two cases; a first-order ladder of plain steps and a fourth-order ladder of a custom integrator."""
    values: Sequence[float] = (1.0, 0.5, 0.25, 0.125)
    rows = [
        {
            "robot": "r",
            "mode": "home",
            "configuration": configuration,
            "route": "mujoco/forward",
            "base": ladder,
            "ladder": ladder,
            "refined": STEP,
            "theory": order,
            "value": value,
            "dt": value,
            "runs": 1,
            "plain": ladder == "plain",
            "settings": ladder,
            "relative_error": worse * error * (value / 0.125) ** order,
            "wall_time": cost / value,
            "span": 1.0,
            "own": False,
            "note": "",
        }
        for configuration, worse in (("horizontal", 1.0), ("vertical", 0.5))
        for ladder, order, error, cost in (("plain", 1.0, 4e-3, 1.0), ("own", 4.0, 1e-9, 2.0))
        for value in values
    ]
    return LEVELS.frame(pd.DataFrame(rows).reindex(columns=list(LEVELS.columns)))
