"""The catalogue: every folder is complete, and bad input is named."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from loopcheck.robots.catalogue import CATALOGUE, names
from loopcheck.robots.errors import MechanismError, NotFoundError, ShapeError
from loopcheck.robots.motion import report_grid
from loopcheck.robots.robot import configurations, load, load_folder, make_case, representative_case


@pytest.mark.parametrize("name", names())
def test_a_robot_is_documented(name: str) -> None:
    robot = load(name)
    assert robot.source
    if robot.trace:
        robot.mechanism().site(robot.trace)
    if robot.paper:
        text = (CATALOGUE / name / "README.md").read_text(encoding="utf-8")
        assert all(heading in text for heading in ("# ", "## Assumptions", "## Errata"))


@pytest.mark.parametrize("variant", load("3prr").variant_names)
def test_the_3prr_has_the_names_others_rely_on(variant: str) -> None:
    mechanism = load("3prr").mechanism(variant)
    assert [actuator.name for actuator in mechanism.actuators] == ["q1", "q2", "q3"]
    assert [actuator.coordinate.name for actuator in mechanism.actuators] == ["q1", "q2", "q3"]
    assert list(mechanism.keyframes) == ["plus", "minus"]
    assert {closure.name for closure in mechanism.closures} == {"q8", "q9"}
    np.testing.assert_array_equal(mechanism.rest_position, np.zeros(7))


def test_vertical_is_horizontal_turned_about_x() -> None:
    robot = load("3prr")
    gravity = configurations(robot, robot.mechanism())
    np.testing.assert_array_equal(gravity["horizontal"], [0, 0, -9.81])
    np.testing.assert_array_equal(gravity["vertical"], [0, -9.81, 0])


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ({"mode": "zero"}, "unknown mode of 3prr: 'zero'. Known: plus, minus"),
        ({"variant": "heavy"}, "unknown variant of 3prr: 'heavy'. Known: default, printed_inertia"),
        ({"configuration": "tilted"}, "unknown configuration of 3prr: 'tilted'. Known: horizontal, vertical"),
    ],
)
def test_unknown_names_list_the_known_ones(what: dict[str, str], message: str) -> None:
    known = {"mode": "plus", "variant": "default", "configuration": "vertical"}
    with pytest.raises(NotFoundError, match=message):
        make_case(load("3prr"), **{**known, **what})


@pytest.mark.parametrize("name", names())
def test_a_robot_has_one_case_that_stands_for_it(name: str) -> None:
    robot = load(name)
    case = representative_case(robot)
    assert case.variant == "default"
    assert case.mode not in robot.expected
    assert case.configuration == list(configurations(robot, robot.mechanism()))[-1]


def test_a_representative_case_takes_what_is_asked_for() -> None:
    chosen = {"variant": "printed_inertia", "mode": "minus", "configuration": "horizontal"}
    assert representative_case(load("3prr"), **chosen).key == ("3prr", *chosen.values())
    with pytest.raises(NotFoundError, match="unknown configuration of 3prr: 'tilted'"):
        representative_case(load("3prr"), configuration="tilted")


def test_where_every_mode_is_expected_to_be_singular_the_first_stands_for_it() -> None:
    robot = load("3prr").model_copy(update={"expected": {"plus": "not comparable"}})
    assert representative_case(robot).mode == "minus"
    robot = robot.model_copy(update={"expected": dict.fromkeys(("plus", "minus"), "not comparable")})
    assert representative_case(robot).mode == "plus"


def test_a_mode_of_which_something_is_expected_is_known() -> None:
    """A misspelt source would count as an unexpected disagreement."""
    robot = load("3prr").model_copy(update={"expected": {"pluss": "not comparable"}})
    with pytest.raises(
        NotFoundError, match=r"mode in \[expected\] of 3prr: 'pluss'. Did you mean 'plus'. Known: plus, minus"
    ):
        make_case(robot, variant="default", mode="plus", configuration="vertical")


def test_an_unknown_robot_is_refused() -> None:
    with pytest.raises(NotFoundError, match=r"unknown robot: '3ppr'. Did you mean '3prr'. Known: .*3prr"):
        load("3ppr")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("title =", "titel =", "robot.toml: title: required key is missing"),
        ("trace =", "trase =", "robot.toml: trase: unknown key. Did you mean 'trace'"),
        ("title =", "title", "robot.toml: must be a readable TOML file"),
        (
            "title =",
            'configurations = ["up", "up"]\ntitle =',
            "configurations: .*must be 2 different names, got 'up' and 'up'",
        ),
        (
            "title =",
            'configurations = ["up", ""]\ntitle =',
            "configurations: .*must be 2 different names, got 'up' and ''",
        ),
        ('mjcf = "3prr.xml"', "mjcf = 3", "robot.toml: mjcf: Input should be a valid string, got 3"),
    ],
)
def test_a_bad_robot_toml_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str
) -> None:
    shutil.copytree(CATALOGUE / "3prr", tmp_path / "mine")
    monkeypatch.setattr("loopcheck.robots.catalogue.CATALOGUE", tmp_path)
    toml = tmp_path / "mine" / "robot.toml"
    toml.write_text(toml.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
    with pytest.raises(MechanismError, match=message):
        load("mine")


def test_robot_toml_may_begin_with_a_mark_but_is_no_folder(tmp_path: Path) -> None:
    shutil.copytree(CATALOGUE / "3prr", tmp_path / "mine")
    toml = tmp_path / "mine" / "robot.toml"
    toml.write_text(toml.read_text(encoding="utf-8"), encoding="utf-8-sig", newline="\r\n")
    assert load_folder(tmp_path / "mine").title == load("3prr").title
    toml.unlink()
    toml.mkdir()
    with pytest.raises(MechanismError, match=r"robot.toml: must be a readable TOML file: .*Is a directory"):
        load_folder(tmp_path / "mine")


@pytest.mark.parametrize(("length", "dt"), [(1.0, 0.01), (2.0, 0.01), (4.0, 0.02), (10.0, 0.05)])
def test_the_report_grid(length: float, dt: float) -> None:
    t = report_grid((0.0, length))
    np.testing.assert_allclose(np.diff(t), dt, rtol=1e-9)
    assert (t[0], t[-1]) == (0.0, length)


@pytest.mark.parametrize("dt", [0.003, 0.0, -0.1, 2.0, float("nan")])
def test_a_step_that_does_not_divide_the_span_is_refused(dt: float) -> None:
    with pytest.raises(ShapeError, match="the step must divide the span of 1 s"):
        report_grid((0.0, 1.0), dt=dt)
