"""The validation suite: one test for each robot, variant, mode, configuration and source of the catalogue.

A new folder in `robots/` brings its own tests, and so does one in a folder elsewhere (`pytest --robots DIR`). The
figures of each comparison are kept as properties of its test (`pytest --junit-xml FILE`).
"""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from analytic.motion.configurations import load_configured
from robots.errors import EngineNotInstalledError, HarnessError, SingularityError
from robots.motion import Motion
from robots.robot import Case, configurations, make_case, modes, names
from validation.judge import sources
from validation.judge.audit import ExpectedTerms, audit, blocking_reasons, doubts, expected_terms
from validation.judge.compare import Evidence, summarize_resolved
from validation.judge.evaluate import Outcome, evaluate, motion_key, prescribe_or_error
from validation.judge.verdicts import FILE

Folders: TypeAlias = tuple[Path, ...]
"""Folders of robots besides the catalogue."""
Key: TypeAlias = tuple[str, str, str, str]
"""Robot, variant, mode and configuration."""

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
    folders = _folders(metafunc.config)
    try:
        robots = names(folders)
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from None
    comparisons = [comparison for name in robots for comparison in _comparisons(name, folders)]
    ids = ["-".join(comparison) for comparison in comparisons]
    metafunc.parametrize("comparison", comparisons, ids=ids)


@pytest.mark.slow
def test_agrees_with_the_reference(
    comparison: tuple[str, ...], request: pytest.FixtureRequest, record_property: Any
) -> None:
    name, *what = comparison
    folders = _folders(request.config)
    if not what:
        _comparisons_or_error(name, folders)  # raises what is wrong with the robot
    (variant, mode, configuration, source) = what
    case = _case(name, variant, mode, configuration, folders)
    if source not in sources.ANALYTIC and not request.config.getoption("--require-engines"):
        _skip_if_not_installed(source)
    motion = _motion(case.key, folders)
    if case.robot.expected.get(case.mode) == "not comparable":
        assert isinstance(motion, SingularityError), "a singularity is expected on this motion, none was found"
        record_property("singularity", str(motion))
        return
    if isinstance(motion, HarnessError):
        raise motion
    key = case.key
    outcomes = [_outcome(key, sources.REFERENCE, folders), _outcome(key, source, folders)]
    evidence = Evidence(blocking_reasons=_lost(key, source.split("/")[0], folders), doubts=_doubts(key, folders))
    rows = summarize_resolved(outcomes, motion, evidence)
    for row in rows[rows["source"] == source].to_dict("records"):
        for figure in FIGURES:
            record_property(f"{row['actuator']}.{figure}", row[figure])
    verdicts = rows.loc[rows["source"] == source, ["actuator", "verdict", "relative_error", "note"]]
    assert len(verdicts) > 0
    assert verdicts["verdict"].isin(["agree", "informational", "reference"]).all(), (
        f"\n{verdicts.to_string(index=False)}"
    )


def _folders(config: pytest.Config) -> Folders:
    return tuple(config.getoption("--robots"))


def _comparisons(name: str, folders: Folders) -> list[tuple[str, ...]]:
    """All comparisons of a robot; one without anything but its name if the robot cannot be loaded."""
    try:
        return _comparisons_or_error(name, folders)
    except HarnessError:
        return [(name,)]


def _comparisons_or_error(name: str, folders: Folders) -> list[tuple[str, ...]]:
    robot = load_configured(name, folders)
    return [
        (name, variant, mode, configuration, source)
        for variant in robot.variant_names
        for mechanism in [robot.mechanism(variant)]
        for mode in modes(mechanism)
        for configuration in configurations(robot, mechanism)
        for source in sources.names(robot, absent=True)
    ]


def _skip_if_not_installed(source: str) -> None:
    try:
        sources.load(source)
    except EngineNotInstalledError as error:
        pytest.skip(str(error))


@cache
def _case(name: str, variant: str, mode: str, configuration: str, folders: Folders) -> Case:
    return make_case(load_configured(name, folders), variant=variant, mode=mode, configuration=configuration)


def _motion(key: Key, folders: Folders) -> Motion | HarnessError:
    case = _case(*key, folders)
    robot, variant, mode, configuration = motion_key(case)
    first = next(iter(configurations(case.robot, case.mechanism)))
    return _prescribed((robot, variant, mode, configuration or first), folders)


@cache
def _prescribed(key: Key, folders: Folders) -> Motion | HarnessError:
    return prescribe_or_error(_case(*key, folders), None)


@cache
def _outcome(key: Key, source: str, folders: Folders) -> Outcome:
    motion = _motion(key, folders)
    assert isinstance(motion, Motion)
    return evaluate(_case(*key, folders), motion, source)


@cache
def _lost(key: Key, engine: str, folders: Folders) -> Mapping[Any, str]:
    """Why nothing of an engine can be compared: nothing, if its audit passes."""
    return {} if engine == "analytic" else blocking_reasons(audit(_case(*key, folders), _wanted(key, folders), engine))


@cache
def _doubts(key: Key, folders: Folders) -> Mapping[Any, str]:
    """Why the reference is in doubt: nothing, if the model file says what the model does."""
    return doubts(audit(_case(*key, folders), _wanted(key, folders), FILE))


@cache
def _wanted(key: Key, folders: Folders) -> ExpectedTerms:
    motion = _motion(key, folders)
    assert isinstance(motion, Motion)
    return expected_terms(_case(*key, folders), motion)
