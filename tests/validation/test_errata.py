"""`loopcheck study errata`: every printed form measured, the corrected model beside it."""

from pathlib import Path

import pandas as pd
import pytest

from loopcheck.analytic.papers import paper_model
from loopcheck.robots.robot import load
from loopcheck.validation.execution.journal import JOURNAL
from loopcheck.validation.execution.tables import read_tables
from loopcheck.validation.execution.workers import ALONE, worker_pool
from loopcheck.validation.frame.study import computed
from loopcheck.validation.studies.errata.costs import cases_of
from loopcheck.validation.studies.errata.study import Errata
from tests.validation.conftest import Command, in_this_process

ROBOT = "3prr"
CONFIGURATIONS = ("horizontal", "vertical")


@pytest.fixture(scope="module")
def costs() -> pd.DataFrame:
    with in_this_process(), worker_pool(ALONE) as pool:
        return computed(Errata(cases=cases_of([load(ROBOT)])), Path(), pool).tables["errata"]


@pytest.mark.extended("test_every_erratum_has_a_row_in_every_case")
def test_the_command_writes_them(loopcheck: Command, tmp_path: Path, costs: pd.DataFrame) -> None:
    with in_this_process():
        status, out, _ = loopcheck("study", "errata", ROBOT, "--jobs", "1", "--out", tmp_path)
    assert status == 0
    assert "as corrected" in out
    assert {path.name for path in tmp_path.iterdir()} == {"errata.csv", "errata.html", "errata.md", "run.json", JOURNAL}
    pd.testing.assert_frame_equal(read_tables(tmp_path, Errata.tables)["errata"], costs)


def test_the_readme_says_what_is_measured(costs: pd.DataFrame) -> None:
    """To two digits, in both modes and both configurations; the files of the other robots are made likewise."""
    text = (load(ROBOT).folder / "README.md").read_text(encoding="utf-8")
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    said = {row[0].strip("`"): dict(zip(CONFIGURATIONS, row[-2:], strict=True)) for row in rows}
    measured = costs[costs["relative_error"] > 1e-9]
    assert set(measured["erratum"]) == {"omega7", "r47", "v1", "inertia_unit"}
    for key in measured["erratum"].unique():
        for configuration in CONFIGURATIONS:
            rows_of_key = measured[(measured["erratum"] == key) & (measured["configuration"] == configuration)]
            errors = [float(f"{error:.1e}") for error in rows_of_key["relative_error"]]
            cells = said[key][configuration].split(", ")
            assert [float(cell) for cell in cells if float(cell.split()[0])] == errors


def test_every_erratum_has_a_row_in_every_case(costs: pd.DataFrame) -> None:
    keys = {erratum.key for erratum in paper_model("kordjazi2011").ERRATA}
    for _, of_case in costs.groupby(["mode", "configuration"]):
        assert set(of_case["erratum"]) == keys | {"as corrected"}
    assert costs.groupby(["mode", "configuration"]).ngroups == 4


def test_the_corrected_model_agrees_and_the_printed_ones_do_not(costs: pd.DataFrame) -> None:
    worst = costs.groupby("erratum")["relative_error"].max()
    assert worst["as corrected"] < 1e-11
    assert (worst[["omega7", "r47", "v1", "inertia_unit"]] > 0.01).all()
    assert pd.isna(worst["phi_shape"])
    assert costs.loc[costs["erratum"] == "phi_shape", "note"].str.contains("error of notation").all()
