"""`from loopcheck import judge`, as a test in a robot's own repository would use it."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import loopcheck
from loopcheck import judge
from robots.errors import HarnessError
from tests import planar_four_bar

MODEL = Path(__file__).parents[2] / "robots/four_bar/four_bar.xml"


@pytest.fixture(scope="module")
def columns() -> dict[str, np.ndarray]:
    """What somebody's own simulation of the four-bar has kept in arrays."""
    log = planar_four_bar.exact_log(0.02, 51)
    return {"t": log.t, "crank.q": log.q[:, 0], "crank.effort": log.effort[:, 0]}


def test_my_simulation_gets_the_torque_right(columns: dict[str, np.ndarray]) -> None:
    """The example of the README: all that a test in another project needs."""
    judgement = judge(MODEL, columns, configuration="vertical", effort_time="instantaneous", accuracy=1e-3)
    assert judgement.agrees, str(judgement)


def test_a_data_frame_a_log_and_a_file_are_judged_alike(columns: dict[str, np.ndarray], tmp_path: Path) -> None:
    wrong = pd.DataFrame({**columns, "crank.effort": 1.1 * columns["crank.effort"]})
    path = tmp_path / "run.csv"
    wrong.to_csv(path, index=False)
    frame, file = (judge(MODEL, log, configuration="vertical", effort_time="instantaneous") for log in (wrong, path))
    assert (frame.verdict, file.verdict) == ("disagree", "disagree")
    assert not frame.agrees
    assert "crank: disagree: residual over the scale" in str(frame)
    residual = frame.efforts["crank.effort"] - frame.efforts["crank.needed"]
    np.testing.assert_allclose(residual, frame.efforts["crank.residual"], rtol=1e-9)
    assert frame.figures["largest"][0] == pytest.approx(residual.abs().max())
    np.testing.assert_allclose(residual / frame.efforts["crank.needed"], 0.1, rtol=1e-5)


def test_friction_is_fitted_in_the_same_call() -> None:
    judgement = judge(
        str(MODEL), planar_four_bar.LOGS / "friction.csv", configuration="vertical", fit=["friction"], accuracy=0.02
    )
    assert judgement.agrees
    assert [estimate.unit for estimate in judgement.estimates] == ["N m", "N m s/rad"]


def test_bad_logs_raise_one_line(columns: dict[str, np.ndarray]) -> None:
    for changes, line in (
        ({"t": columns["t"][::-1]}, "log, t: want times that increase, got one that goes back"),
        ({"crank.effort": np.full(51, np.nan)}, "column 'crank.effort': want finite numbers, got 'nan' in row 1"),
        ({"knee.q": columns["t"]}, "unknown joint of four_bar.xml in log 'log' 'knee'"),
    ):
        with pytest.raises(HarnessError, match=line) as caught:
            judge(MODEL, {**columns, **changes})
        assert "\n" not in str(caught.value)


def test_nothing_else_is_promised() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'jugde'"):
        loopcheck.jugde  # noqa: B018
