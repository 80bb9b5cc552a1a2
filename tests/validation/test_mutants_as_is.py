"""Other numbers for the effort, seeded in routes that run a robot as it is, are seen, or hidden in their own error."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from loopcheck import engines
from loopcheck.engines.misreadings import Misread
from loopcheck.engines.mujoco.routes.as_is import MujocoAsIs
from loopcheck.robots.efforts import Fault
from loopcheck.robots.log import Log
from loopcheck.robots.robot import Case, load, representative_case
from loopcheck.validation.studies.mutants.misreadings import rows_of_misreadings
from tests.validation.conftest import Command, in_this_process

ROUTE = "mujoco/as_is"


@pytest.fixture(scope="module")
def case() -> Case:
    return representative_case(load("four_bar"))


def misread(wrong: Callable[[Log], Log]) -> Fault:
    return lambda peak: Misread(MujocoAsIs(), wrong)


def scaled(factor: float) -> Callable[[Log], Log]:
    return lambda log: replace(log, effort=factor * log.effort)


def rows_of(case: Case, monkeypatch: pytest.MonkeyPatch, **faults: Fault) -> Mapping[str, Mapping[str, Any]]:
    monkeypatch.setattr(engines, "faults", lambda _: faults)
    return {str(row["mutant"]): row for row in rows_of_misreadings(case, ROUTE)}


def test_what_is_larger_than_the_error_of_the_route_is_caught(case: Case) -> None:
    rows = {row["mutant"]: row for row in rows_of_misreadings(case, ROUTE)}
    assert {key: row["result"] for key, row in rows.items()} == {
        "drive twice": "killed",
        "one step late": "killed",
        "reaction as effort": "not carried",  # of a joint without rotor, damper and spring it is the effort
    }
    assert "resembles half of the applied effort" in rows["drive twice"]["note"]
    assert "resembles the effort one hold late" in rows["one step late"]["note"]


def test_the_effect_is_what_the_efforts_change_by(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reduction by a tenth changes them by a fifth of that by a half, and the error is the change if it is far
    larger."""
    rows = rows_of(case, monkeypatch, half=misread(scaled(0.5)), tenth=misread(scaled(0.9)))
    assert rows["half"]["effect"] == pytest.approx(5 * rows["tenth"]["effect"], rel=1e-9)
    assert rows["half"]["relative_error"] == pytest.approx(rows["half"]["effect"], rel=0.05)
    assert rows["half"]["tolerance"] == rows["tenth"]["tolerance"] < 0.1 * rows["tenth"]["effect"]


def test_what_is_smaller_is_told_as_hidden(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    row = rows_of(case, monkeypatch, small=misread(scaled(1.001)))["small"]
    assert (row["result"], row["verdict"]) == ("below tolerance", "informational")
    assert row["effect"] < row["tolerance"]
    assert "times the error of the route without it" in row["note"]


def test_a_log_that_is_none_any_more_is_refused(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_loops(log: Log) -> Log:
        return replace(log, q=log.q + np.array([0.3, 0.0, 0.0]))

    assert rows_of(case, monkeypatch, open=misread(open_loops))["open"]["result"] == "refused"


def test_a_route_is_named_and_alone_is_run(loopcheck: Command, tmp_path: Path) -> None:
    with in_this_process():
        status, out, _ = loopcheck("study", "mutants", "four_bar", "--source", ROUTE, "--jobs", "1", "--out", tmp_path)
    assert status == 0, out
    assert set(pd.read_csv(tmp_path / "mutants.csv")["source"]) == {ROUTE}
    status, _, err = loopcheck("study", "mutants", "four_bar", "--source", "analytic/noc", "--out", tmp_path / "other")
    assert (status, err.count("\n")) == (2, 1)
    assert "unknown source that faults are seeded in: 'analytic/noc'" in err
