"""Worlds of a batch: disagreement is named, steps are counted, and no better choice is left out."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes

from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.declarations import HARD, choices, finer_step, run_with
from loopcheck.engines.mujoco import batch as own
from loopcheck.engines.mujoco import tuning
from loopcheck.engines.simulation import Readings, State
from loopcheck.robots.arrays import Array
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.robot import Case, load, representative_case
from loopcheck.validation.studies.throughput import measure, pictures
from loopcheck.validation.studies.throughput.measure import DIFFERENT, SAME, agreement, states, steps_per_second
from loopcheck.validation.studies.throughput.pictures import envelope, pareto
from loopcheck.validation.studies.throughput.study import cost_of_a_million
from tests.validation.conftest import Command

FOUR_BAR = load("four_bar").folder / "four_bar.xml"
COUNT = 8
ARM = """<mujoco><worldbody><body><joint name="turn" axis="0 1 0"/><geom size=".1 .1 .1"/></body></worldbody>
<actuator><motor joint="turn"/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def case() -> Case:
    return representative_case(load("four_bar"))


@dataclass
class Spoilt:
    """A batch with a different result in its last world."""

    worlds: Any
    change: Callable[[Array], Array]

    def step(self, command: Array, count: int = 1) -> Readings:
        return self.worlds.step(command, count)

    def state(self) -> State:
        q, qd = self.worlds.state()
        if len(q) == COUNT:
            q[-1] = self.change(q[-1])
        return q, qd


def rows_of(case: Case, monkeypatch: pytest.MonkeyPatch, change: Callable[[Array], Array]) -> Mapping[str, Any]:
    """Verdicts on a batch, by how its worlds begin."""
    spoilt = SimpleNamespace(
        device=own.device, worlds=lambda *arguments: Spoilt(own.worlds(*arguments), change), PRECISIONS=("double",)
    )
    monkeypatch.setattr(measure, "batch_of", lambda _: spoilt)
    rows = agreement(case, "mujoco", "double", (COUNT,), 20, 0)
    return {row["start"]: row for row in rows}


def test_worlds_of_mujoco_agree(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    for row in rows_of(case, monkeypatch, lambda q: q).values():
        assert row["verdict"] == "agree"
        assert 0 < row["round_off"] < 1e-12


def test_a_world_that_is_off_is_named(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """By far less than anybody would see, and far more than round-off; alone it would be right."""
    rows = rows_of(case, monkeypatch, lambda q: q * (1 + 1e-9))
    for start in (SAME, DIFFERENT):
        assert (rows[start]["verdict"], rows[start]["world"]) == ("disagree", COUNT - 1)
        assert rows[start]["spread"] == pytest.approx(1e-9, rel=1)
        assert rows[start]["note"] == f"world {COUNT - 1} is farthest"


def test_a_world_that_is_lost_is_named(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    for row in rows_of(case, monkeypatch, lambda q: q * np.nan).values():
        assert row["verdict"] == "disagree"
        assert row["note"] == f"1 worlds are no longer finite, beginning with world {COUNT - 1}"


@pytest.mark.parametrize(
    ("apart", "round_off", "verdict"),
    [
        (0.0, np.inf, "not comparable"),
        (np.inf, np.inf, "not comparable"),
        (np.inf, np.nan, "not comparable"),
        (np.inf, 1e-9, "disagree"),
        (1e-9, 1e-9, "agree"),
    ],
)
def test_worlds_that_are_all_lost_never_agree(apart: float, round_off: float, verdict: str) -> None:
    assert measure._figures([0.0, apart, apart], round_off)["verdict"] == verdict


def test_worlds_begin_closed_and_each_in_a_state_of_its_own(case: Case) -> None:
    motion = prescribe(case)
    starts = states(case, motion, np.random.default_rng(1), 50)
    assert len({tuple(row) for row in starts.state[1].tolist()}) > 40
    for q in starts.state[0]:
        assert np.abs(motion.q - q).max(axis=1).min() == 0


@dataclass
class Clocked:
    """A batch with a known time per step, on a clock of its own."""

    seconds: float
    now: float = 0.0
    runs: list[int] = field(default_factory=list)

    def step(self, command: Array, count: int = 1) -> Readings:
        self.runs.append(count)
        self.now += self.seconds * count
        return {}

    def state(self) -> State:
        return np.zeros((1, 1)), np.zeros((1, 1))


@pytest.mark.parametrize("seconds", [1e-4, 0.02, 3.0])
def test_steps_are_counted_over_all_worlds(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = Clocked(seconds)
    monkeypatch.setattr(time, "perf_counter", lambda: worlds.now)
    assert steps_per_second(lambda: worlds, np.zeros((7, 1))) == pytest.approx(7 / seconds)
    assert seconds * sum(worlds.runs) >= measure.LEAST_TIME


def test_steps_are_as_long_as_those_of_the_file(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines with different steps are compared: a doubled step is two steps of the file."""
    worlds = Clocked(1e-3)
    monkeypatch.setattr(measure, "batch_of", lambda _: SimpleNamespace(device=own.device, worlds=lambda *_: worlds))
    monkeypatch.setattr(tuning, "SETTINGS", {"step": finer_step("", batches=["step doubled"])})
    monkeypatch.setattr(time, "perf_counter", lambda: worlds.now)
    (row,) = measure.rates(case, "mujoco", "double", (3,), 0)
    assert row["steps_per_second"] == pytest.approx(3 / 1e-3)
    assert row["rate"] == pytest.approx(2 * 3 / 1e-3)


def table(*points: tuple[float, float]) -> pd.DataFrame:
    rows = [
        {
            "engine": "mujoco",
            "precision": "double",
            "device": "CPU",
            "choice": f"choice {k}",
            "worlds": 64.0,
            "settings": "" if k else None,
        }
        | {"rate": rate, "rms": rms, "verdict": "measured"}
        for k, (rate, rms) in enumerate(points)
    ]
    return pd.DataFrame(rows)


@pytest.mark.extended("test_names_cover_neither_each_other_nor_points")
def test_the_line_joins_what_nothing_is_better_than() -> None:
    points = [tuple(row) for row in np.random.default_rng(0).uniform(1, 9, (40, 2)).round(1).tolist()]
    best = envelope(table(*points))
    expected = {
        (rate, rms)
        for rate, rms in points
        if not any(r >= rate and e <= rms and (r, e) != (rate, rms) for r, e in points)
    }
    assert {(row["rate"], row["rms"]) for row in best.to_dict("records")} == expected
    assert list(best["rate"]) == sorted(best["rate"])
    assert pareto(table(*points))


def test_names_cover_neither_each_other_nor_points(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two engines with choices close together: each name beside its own point would cover the other."""
    one = table(*((1e4 * 1.12**k, 1e-3 * 1.1**k) for k in range(6)))
    other = one.assign(engine="mjx", rate=1.05 * one["rate"], rms=0.97 * one["rms"])
    drawn: list[Axes] = []
    monkeypatch.setattr(pictures, "put_legend", lambda _, panels, **__: drawn.extend(panels))
    assert pareto(pd.concat([one, other], ignore_index=True))
    (axes,) = drawn
    names = [text for text in axes.texts if text.get_text().startswith("choice")]
    assert len(names) == 12
    boxes = [name.get_window_extent() for name in names]
    points = axes.transData.transform([name.xy for name in names])  # type: ignore[attr-defined]
    for k, box in enumerate(boxes):
        assert not any(box.overlaps(another) for another in boxes[:k])
        assert not any(box.contains(*point) for point in points)


def test_what_a_million_steps_cost_is_said() -> None:
    reached = cost_of_a_million(table((2e6, 0.03), (3e6, 0.05), (1e5, 1e-3)), "a processor")
    assert "on CPU (a processor): mujoco in double precision, choice 0, 64 worlds, 2e+06" in reached
    assert "error of 0.03. The most accurate: mujoco in double precision, choice 2" in reached
    missed = cost_of_a_million(table((2e5, 0.03), (1e5, 1e-3)), "a processor")
    assert "not reached on CPU (a processor). The fastest: mujoco in double precision, choice 0" in missed
    assert "no measurement succeeded" in cost_of_a_million(table((1.0, np.nan)), "a processor")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ("--engine", "simbody"),
            "unknown engine with batches: 'simbody'. Known: genesis, mjx, mujoco, mujoco_warp, newton",
        ),
        (("--worlds", "1,many"), "must be whole numbers, as 1,64,4096, got '1,many'"),
        (("--worlds", "0,4"), "must be at least 1, got 0"),
        (("--steps", "0"), "0 is not in the range x>=1"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, str], says: str, loopcheck: Command, tmp_path: Path) -> None:
    status, _, err = loopcheck("study", "throughput", FOUR_BAR, *arguments, "--out", tmp_path)
    assert status == 2
    assert says in " ".join(err.split())


def test_errors_of_settings_are_those_of_the_file_as_it_is(case: Case) -> None:
    """The file's own settings give the run of `mujoco/as_is`, and a step of half the length half its lateness."""
    from loopcheck import engines
    from loopcheck.validation.check.efforts.as_is import settled

    motion, given = prescribe(case), tuning.given(case.mechanism)
    tried = choices(tuning, given)
    runs = {
        name: run_with(tuning, case, motion, tried[name], "mujoco/as_is")
        for name in ("as it is", "hard loops, Runge-Kutta")
    }
    run = engines.load("mujoco/as_is").compute_efforts(case, motion).as_is
    assert run is not None
    np.testing.assert_array_equal(runs["as it is"].log.effort, run.log.effort)
    as_it_is, hard = (settled(case.mechanism, run).rms[0] for run in runs.values())
    assert hard < 0.1 * as_it_is
    h = given.step
    assert tried["hard loops, step halved"] == {"timestep": f"{h / 2:g}", "solref": f"{h:g} 1", "solimp": HARD}


def test_loops_are_no_choice_for_a_robot_without_loops(tmp_path: Path) -> None:
    (tmp_path / "arm.xml").write_text(ARM, encoding="utf-8")
    tried = choices(tuning, tuning.given(read_mechanism(ModelFile(path=tmp_path / "arm.xml"))))
    assert list(tried) == ["as it is", "step halved", "step doubled", "1 iteration", "CG, 4 iterations", "Runge-Kutta"]
