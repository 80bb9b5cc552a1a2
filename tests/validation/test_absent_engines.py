"""An engine that is not installed is left out with a line; selected by name, it reads `not run`."""

import pytest

from loopcheck import engines
from loopcheck.robots.robot import load
from loopcheck.validation.check.study import run
from loopcheck.validation.check.terminal import summary
from loopcheck.validation.common import sources
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.execution.workers import Workers
from tests.validation.conftest import exit_status

ALONE = Workers(jobs=1)


@pytest.fixture(autouse=True)
def without_dart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "installed", lambda name: name == "mujoco")


def test_what_is_not_there_is_no_source_unless_asked_for() -> None:
    robot = load("3prr")
    assert not any(name.startswith("dart/") for name in sources.names(robot))
    assert "dart/kkt" in sources.names(robot, absent=True)
    assert "mjx/kkt" not in sources.names(robot, absent=True)  # it runs on request
    assert "dart" in sources.absent_engines()
    assert not {"mjx", "mujoco"} & {*sources.absent_engines()}


@pytest.mark.extended("test_what_is_not_there_is_no_source_unless_asked_for")
def test_one_line_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = ("analytic/noc", "analytic/lagrange", "mujoco/kkt")
    monkeypatch.setattr(sources, "absent_engines", lambda: ("dart", "pinocchio"))
    monkeypatch.setattr(sources, "names", lambda robot: exact)
    results = run(cases_of(("slider_crank",), configurations=("vertical",)), workers=ALONE)
    lines = [str(line) for line in summary(results)]
    assert [line for line in lines if "not installed" in line] == ["Not supported: dart, pinocchio (not installed)"]
    assert exit_status(results) == 0


@pytest.mark.extended("test_what_is_not_there_is_no_source_unless_asked_for")
def test_what_is_named_is_asked_for() -> None:
    results = run(
        cases_of(("slider_crank",), configurations=("vertical",)), source_names=("analytic/lagrange",), workers=ALONE
    )
    assert not any("not installed" in str(line) for line in summary(results))
    assert not results.run["absent"]
