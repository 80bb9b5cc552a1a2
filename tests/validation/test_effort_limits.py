"""Ranges of the model exceeded by efforts are named with the required effort; the efforts stay unchanged."""

from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.mechanism import EffortLimit
from loopcheck.validation.common.results import read
from loopcheck.validation.common.targets import cases_of
from tests.conftest import MODELS
from tests.validation.conftest import Command
from tests.validation.test_stale_results import motion_file

FOUR_BAR = (MODELS / "four_bar.xml").read_text(encoding="utf-8")
MOTOR = '<motor name="motor" joint="crank" gear="-3"'


@pytest.fixture(scope="module")
def motion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A motion of the user: a generated motion would keep to the ranges."""
    return motion_file(tmp_path_factory.mktemp("motion") / "motion.csv", 3.0)


@pytest.fixture(scope="module")
def effort(motion: Path) -> float:
    """The largest effort of the motor, over both configurations."""
    cases = cases_of([MODELS / "four_bar.xml"], motion=motion)
    return max(float(np.abs(Noc().compute_efforts(case, prescribe(case)).effort).max()) for case in cases)


@pytest.mark.extended("test_what_is_needed_is_that_of_the_tighter_side")
@pytest.mark.parametrize(
    ("limit", "change"),
    [
        ("forcerange", (MOTOR, MOTOR + ' forcelimited="true" forcerange="-{room} {room}"')),
        ("ctrlrange", (MOTOR, MOTOR + ' ctrllimited="true" ctrlrange="-{room} {room}"')),
        (
            "actuatorfrcrange",
            (
                '<joint name="crank"',
                '<joint name="crank" actuatorfrclimited="true" actuatorfrcrange="-{geared} {geared}"',
            ),
        ),
    ],
)
@pytest.mark.usefixtures("no_figures")
def test_an_effort_beyond_a_range_is_named(
    limit: str, change: tuple[str, str], motion: Path, effort: float, loopcheck: Command, tmp_path: Path
) -> None:
    (old, new), room = change, effort / 1.8
    (tmp_path / "weak.xml").write_text(FOUR_BAR.replace(old, new.format(room=room, geared=3 * room)), encoding="utf-8")
    chosen = ("--source", "analytic/lagrange", "--motion", motion, "--jobs", "1", "--out", tmp_path / "out")
    status, _out, err = loopcheck("check", tmp_path / "weak.xml", *chosen)
    assert status == 0, err
    assert f"motor needs 1.8 times its {limit}" in (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    efforts = read(tmp_path / "out").efforts
    assert np.abs(efforts["effort"]).max() == pytest.approx(effort, rel=1e-12)  # nothing is cut


@pytest.mark.extended("test_what_is_needed_is_that_of_the_tighter_side")
@pytest.mark.usefixtures("tables_only")
def test_a_range_that_is_wide_enough_is_not_named(
    motion: Path, effort: float, loopcheck: Command, tmp_path: Path
) -> None:
    wide = MOTOR + f' forcelimited="true" forcerange="-{1.01 * effort} {1.01 * effort}"'
    (tmp_path / "strong.xml").write_text(FOUR_BAR.replace(MOTOR, wide), encoding="utf-8")
    chosen = ("--source", "analytic/lagrange", "--motion", motion, "--jobs", "1", "--out", tmp_path / "out")
    assert "limits" not in loopcheck("check", tmp_path / "strong.xml", *chosen)[1]


@pytest.mark.parametrize(
    ("low", "high", "need"),
    [(-2.0, 2.0, 1.5), (-1.0, 8.0, 1.0), (-0.5, 6.0, 2.0), (0.0, 3.0, np.inf), (1.0, 3.0, np.inf), (-8.0, 8.0, 0.375)],
)
def test_what_is_needed_is_that_of_the_tighter_side(low: float, high: float, need: float) -> None:
    assert EffortLimit("forcerange", low, high).needed(np.array([-1.0, 0.0, 3.0])) == need


@pytest.mark.extended("test_what_is_needed_is_that_of_the_tighter_side")
@pytest.mark.usefixtures("tables_only")
def test_without_actuators_the_joints_are_named(loopcheck: Command, tmp_path: Path) -> None:
    bare = FOUR_BAR.replace(f"{MOTOR}/>", "")
    (tmp_path / "bare.xml").write_text(bare, encoding="utf-8")
    chosen = ("--actuated", "crank", "--source", "analytic/lagrange", "--jobs", "1", "--out", tmp_path / "out")
    assert loopcheck("check", tmp_path / "bare.xml", *chosen)[0] == 0
