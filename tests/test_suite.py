"""The validation suite: one test for each robot, variant, mode, configuration and source of the catalogue.

A new folder in `robots/` brings its own tests. The figures of each comparison are kept as properties of its test
(`pytest --junit-xml FILE`).
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from robots.errors import EngineNotInstalledError, HarnessError, SingularityError
from robots.motion import Motion
from robots.robot import Case, configurations, load, make_case, modes, names
from validation import sources
from validation.audit import audit, lost
from validation.compare import summarize
from validation.evaluate import Outcome, evaluate, prescribe_or_error

FIGURES = (
    "peak",
    "max_error",
    "rms_error",
    "relative_error",
    "tolerance",
    "closure_drift",
    "tracking_error",
    "wall_time",
    "note",
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    comparisons = [comparison for name in names() for comparison in _comparisons(name)]
    ids = ["-".join(comparison) for comparison in comparisons]
    metafunc.parametrize("comparison", comparisons, ids=ids)


def test_agrees_with_the_reference(
    comparison: tuple[str, ...], request: pytest.FixtureRequest, record_property: Any
) -> None:
    name, *what = comparison
    if not what:
        _comparisons_or_error(name)  # raises what is wrong with the robot
    case, source = _case(*comparison[:4]), comparison[4]
    if source not in sources.ANALYTIC and not request.config.getoption("--require-engines"):
        _skip_if_not_installed(source)
    motion = _motion(case.key[:3])
    if case.robot.expected.get(case.mode) == "not comparable":
        assert isinstance(motion, SingularityError), "a singularity is expected on this motion, none was found"
        record_property("singularity", str(motion))
        return
    if isinstance(motion, HarnessError):
        raise motion
    outcomes = [_outcome(comparison[:4], sources.REFERENCE), _outcome(comparison[:4], source)]
    rows = summarize(outcomes, lost=_lost(comparison[:4], source.split("/")[0]))
    for row in rows[rows["source"] == source].to_dict("records"):
        for figure in FIGURES:
            record_property(f"{row['actuator']}.{figure}", row[figure])
    verdicts = rows.loc[rows["source"] == source, ["actuator", "verdict", "relative_error", "note"]]
    assert len(verdicts) > 0
    assert verdicts["verdict"].isin(["agree", "informational"]).all(), f"\n{verdicts.to_string(index=False)}"


def _comparisons(name: str) -> list[tuple[str, ...]]:
    """All comparisons of a robot; one without anything but its name if the robot cannot be loaded."""
    try:
        return _comparisons_or_error(name)
    except HarnessError:
        return [(name,)]


def _comparisons_or_error(name: str) -> list[tuple[str, ...]]:
    robot = load(name)
    return [
        (name, variant, mode, configuration, source)
        for variant in robot.variant_names
        for mechanism in [robot.mechanism(variant)]
        for mode in modes(mechanism)
        for configuration in configurations(mechanism)
        for source in sources.names(robot)
    ]


def _skip_if_not_installed(source: str) -> None:
    try:
        sources.load(source)
    except EngineNotInstalledError as error:
        pytest.skip(str(error))


@cache
def _case(name: str, variant: str, mode: str, configuration: str) -> Case:
    return make_case(load(name), variant=variant, mode=mode, configuration=configuration)


@cache
def _motion(key: tuple[str, str, str]) -> Motion | HarnessError:
    name, variant, mode = key
    robot = load(name)
    return prescribe_or_error(_case(name, variant, mode, next(iter(configurations(robot.mechanism(variant))))), None)


@cache
def _outcome(key: tuple[str, str, str, str], source: str) -> Outcome:
    motion = _motion(key[:3])
    assert isinstance(motion, Motion)
    return evaluate(_case(*key), motion, source)


@cache
def _lost(key: tuple[str, str, str, str], engine: str) -> Mapping[Any, str]:
    """Why nothing of an engine can be compared: nothing, if its audit passes."""
    return {} if engine == "analytic" else lost(audit(_case(*key), _motion(key[:3]), [engine]))
