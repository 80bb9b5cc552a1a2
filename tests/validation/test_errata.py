"""`loopcheck errata`: every printed form measured, the corrected model beside it."""

from pathlib import Path

import pandas as pd
import pytest

from analytic.papers import paper_model
from tests.validation.conftest import Command
from validation.execution.journal import JOURNAL


@pytest.fixture
def costs(loopcheck: Command, tmp_path: Path) -> pd.DataFrame:
    status, out, _ = loopcheck("errata", "3prr", "--jobs", "1", "--out", tmp_path)
    assert status == 0
    assert "as corrected" in out
    assert {path.name for path in tmp_path.iterdir()} == {"errata.csv", "errata.html", "errata.md", "run.json", JOURNAL}
    return pd.read_csv(tmp_path / "errata.csv", keep_default_na=False, na_values={"relative_error": [""]})


@pytest.mark.slow
def test_every_erratum_has_a_row_in_every_case(costs: pd.DataFrame) -> None:
    keys = {erratum.key for erratum in paper_model("kordjazi2011").ERRATA}
    for _, of_case in costs.groupby(["mode", "configuration"]):
        assert set(of_case["erratum"]) == keys | {"as corrected"}
    assert costs.groupby(["mode", "configuration"]).ngroups == 4


@pytest.mark.slow
def test_the_corrected_model_agrees_and_the_printed_ones_do_not(costs: pd.DataFrame) -> None:
    worst = costs.groupby("erratum")["relative_error"].max()
    assert worst["as corrected"] < 1e-11
    assert (worst[["omega7", "r47", "v1", "inertia_unit"]] > 0.01).all()
    assert pd.isna(worst["phi_shape"])
    assert costs.loc[costs["erratum"] == "phi_shape", "note"].str.contains("slip of notation").all()


def test_an_unknown_robot_is_one_line(loopcheck: Command, tmp_path: Path) -> None:
    status, _, err = loopcheck("errata", "3ppr", "--out", tmp_path / "out")
    assert (status, err.count("\n")) == (2, 1)
    assert not (tmp_path / "out").exists()
