"""Readings of engines against the change of momentum of a slide."""

from pathlib import Path
from typing import Any

import pytest

from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.validation.frame.study import run_study
from loopcheck.validation.studies.readings.slide import DRIVES, EFFORT, INTEGRATORS, LIMIT, OWN, Slide, measured, slides
from loopcheck.validation.studies.readings.study import Readings, largest, matrix, routes
from tests.conftest import since_mujoco

pytest.importorskip("mujoco")


def rows_of(source: str, slide: Slide, folder: Path) -> dict[str, dict[str, Any]]:
    rows = measured(source, [(slide, slide.case(folder))])
    assert {row["verdict"] for row in rows} == {"measured"}, rows[0]["note"]
    return {row["reading"]: row for row in rows}


DISCRETE = since_mujoco("3.13", "has no integrator discrete")


@pytest.mark.parametrize(
    "integrator", [pytest.param(name, marks=[DISCRETE] * (name == "discrete")) for name in INTEGRATORS]
)
@pytest.mark.parametrize("drive", DRIVES)
def test_the_effort_of_mujoco_is_the_change_of_momentum(integrator: str, drive: str, tmp_path: Path) -> None:
    rows = rows_of("mujoco/as_is", Slide(drive=drive, integrator=integrator), tmp_path)
    assert rows[EFFORT]["difference"] < 1e-12
    if integrator == "Euler" or drive == "motor":
        assert rows["reported"]["difference"] < 1e-12
    else:
        assert rows["reported"]["difference"] > 0.02


@pytest.mark.extended("test_the_effort_of_mujoco_is_the_change_of_momentum")
@pytest.mark.parametrize("drive", [drive for drive in DRIVES if "limited" in drive])
def test_less_than_the_force_limit_acts_in_mjx(drive: str, tmp_path: Path) -> None:
    pytest.importorskip("mujoco.mjx")
    rows = rows_of("mjx/as_is", Slide(drive=drive, integrator="implicitfast"), tmp_path)
    assert rows[EFFORT]["difference"] < 1e-12
    assert rows["reported"]["reported"] == pytest.approx(LIMIT)
    assert rows[EFFORT]["acted"] < 0.95 * LIMIT


def test_a_motor_of_pybullet_is_no_reading_of_torque_control(tmp_path: Path) -> None:
    """The motor torque of getJointState is that of the velocity motor, which torque control switches off."""
    pytest.importorskip("pybullet")
    assert slides("pybullet/as_is") == [Slide(drive="motor", integrator="Euler")]
    rows = rows_of("pybullet/as_is", Slide(drive="motor", integrator="Euler"), tmp_path)
    assert rows["reported"]["reported"] == 0
    assert rows["commanded"]["difference"] == pytest.approx(0.01, rel=0.2)  # default damping of links
    assert rows["commanded"]["drive"] == OWN


@pytest.mark.extended("test_the_effort_of_mujoco_is_the_change_of_momentum")
@DISCRETE
def test_the_page_has_a_row_for_each_simulation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result, conclusion = run_study(Readings(sources=["mujoco/as_is", "pybullet/as_is"]), Path("relative"))
    assert len(matrix(result.tables["readings"])) == len(INTEGRATORS) * len(DRIVES) + 1
    worst = largest(result.tables["readings"]).set_index("simulation")
    assert list(worst.loc["pybullet", ["effort", "reported"]]) == ["1 %", "100 %"]
    assert worst.loc["mujoco, implicitfast", "reported"] == "40 %"
    assert set(conclusion.verdicts) == {"measured"}
    assert (tmp_path / "relative/models/slide-Euler-motor.xml").is_file()


def test_only_unmodified_simulations_have_readings() -> None:
    assert routes(["mujoco"]) == ("mujoco/as_is",)
    assert routes(["dart", "mjx/*single"]) == ("dart/as_is", "mjx/as_is_single")
    assert "mujoco/as_is" in routes([])
    with pytest.raises(MechanismError, match="--source must name a route as_is of an engine, got analytic/noc"):
        routes(["analytic/noc"])
    with pytest.raises(NotFoundError, match="mujoko"):
        routes(["mujoko"])


@pytest.mark.extended("test_only_unmodified_simulations_have_readings")
def test_an_integrator_that_the_installed_mujoco_lacks_is_not_supported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopcheck.validation.studies.readings.slide.INTEGRATORS", ("Euler", "later"))
    result, conclusion = run_study(Readings(sources=["mujoco/as_is"]), tmp_path)
    rows = result.tables["readings"]
    assert set(rows[rows["integrator"] == "later"]["verdict"]) == {"not supported"}
    assert set(rows[rows["integrator"] == "Euler"]["verdict"]) == {"measured"}
    assert set(conclusion.verdicts) == {"measured", "not supported"}
