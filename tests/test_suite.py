"""The validation suite: a test for each robot, variant, mode, configuration and source of the catalogue.

A new folder in `robots/` adds its tests, and so does each robot folder in DIR with `pytest --robots DIR`. The figures
of each comparison are properties of its test (`pytest --junit-xml FILE`).
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from loopcheck.robots.catalogue import ROBOT_FILE, names
from loopcheck.robots.errors import EngineNotInstalledError, HarnessError, MechanismError, SingularityError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, configurations, make_case, modes
from loopcheck.validation.comparison import sources
from loopcheck.validation.comparison.audit import ExpectedTerms, audit, blocking_reasons, doubts, expected_terms
from loopcheck.validation.comparison.compare import Evidence, summarize_resolved
from loopcheck.validation.comparison.evaluate import Outcome, evaluate, motion_key, prescribe_or_error
from loopcheck.validation.comparison.targets import robot_of
from loopcheck.validation.comparison.verdicts import FILE, NOT_SUPPORTED

Key: TypeAlias = tuple[str, str, str, str]
"""Target, variant, mode and configuration."""

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
    if "comparison" not in metafunc.fixturenames:
        return
    try:
        targets = _targets(metafunc.config.getoption("--robots"))
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from None
    comparisons = [comparison for target in targets for comparison in _comparisons(target)]
    ids = ["-".join((Path(target).name, *rest)) for target, *rest in comparisons]
    metafunc.parametrize("comparison", comparisons, ids=ids)


def test_agrees_with_the_reference(
    comparison: tuple[str, ...], request: pytest.FixtureRequest, record_property: Any
) -> None:
    target, *rest = comparison
    if not rest:
        _comparisons_or_error(target)  # raises the error of the robot
    variant, mode, configuration, source = rest
    key = (target, variant, mode, configuration)
    if source not in sources.ANALYTIC and not request.config.getoption("--require-engines"):
        _skip_if_not_installed(source)
    motion = _motion(key)
    if _case(key).robot.expected.get(mode) == "not comparable":
        assert isinstance(motion, SingularityError), "the motion must meet a singularity, found none"
        record_property("singularity", str(motion))
        return
    if isinstance(motion, HarnessError):
        raise motion
    outcomes = [_outcome(key, sources.REFERENCE), _outcome(key, source)]
    if outcomes[1].failure == NOT_SUPPORTED and _supported(key):
        pytest.skip(f"not supported: {outcomes[1].note}")
    evidence = Evidence(blocking_reasons=_lost(key, source.split("/")[0]), doubts=_doubts(key))
    rows = summarize_resolved(outcomes, motion, evidence)
    for row in rows[rows["source"] == source].to_dict("records"):
        for figure in FIGURES:
            record_property(f"{row['actuator']}.{figure}", row[figure])
    verdicts = rows.loc[rows["source"] == source, ["actuator", "verdict", "relative_error", "note"]]
    assert len(verdicts) > 0
    assert verdicts["verdict"].isin(["agree", "informational", "reference"]).all(), (
        f"\n{verdicts.to_string(index=False)}"
    )


def _targets(folders: Sequence[Path]) -> list[str]:
    """The catalogue, and the robots in other folders."""
    targets = [*names()]
    for folder in folders:
        robots = [path.parent for path in sorted(folder.absolute().glob(f"*/{ROBOT_FILE}"))]
        if not robots:
            raise MechanismError(f"{folder}: must contain robots, NAME/{ROBOT_FILE}, found none")
        for robot in robots:
            if robot.name in (Path(target).name for target in targets):
                raise MechanismError(f"{folder}: robot names must differ, got '{robot.name}' twice")
            targets.append(str(robot))
    return targets


def _comparisons(target: str) -> list[tuple[str, ...]]:
    """All comparisons of a robot; of a robot that cannot be loaded, its name alone."""
    try:
        return _comparisons_or_error(target)
    except HarnessError:
        return [(target,)]


def _comparisons_or_error(target: str) -> list[tuple[str, ...]]:
    robot = robot_of(target)
    return [
        (target, variant, mode, configuration, source)
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


def _supported(key: Key) -> bool:
    """Whether an installed engine supports the case by another route than its unmodified simulation."""
    routes = [name for name in sources.names(_case(key).robot) if name not in sources.ANALYTIC]
    return any(_outcome(key, name).failure != NOT_SUPPORTED for name in routes if not sources.is_as_is(name))


@cache
def _case(key: Key) -> Case:
    target, variant, mode, configuration = key
    return make_case(robot_of(target), variant=variant, mode=mode, configuration=configuration)


def _motion(key: Key) -> Motion | HarnessError:
    case = _case(key)
    _, variant, mode, configuration = motion_key(case)
    first = next(iter(configurations(case.robot, case.mechanism)))
    return _prescribed((key[0], variant, mode, configuration or first))


@cache
def _prescribed(key: Key) -> Motion | HarnessError:
    return prescribe_or_error(_case(key), None)


@cache
def _outcome(key: Key, source: str) -> Outcome:
    motion = _motion(key)
    assert isinstance(motion, Motion)
    return evaluate(_case(key), motion, source)


@cache
def _lost(key: Key, engine: str) -> Mapping[Any, str]:
    """Reason why an engine cannot be compared; empty if its audit passes."""
    return {} if engine == "analytic" else blocking_reasons(audit(_case(key), _wanted(key), engine))


@cache
def _doubts(key: Key) -> Mapping[Any, str]:
    """Doubts about the reference; empty if the model file and our model agree."""
    return doubts(audit(_case(key), _wanted(key), FILE))


@cache
def _wanted(key: Key) -> ExpectedTerms:
    motion = _motion(key)
    assert isinstance(motion, Motion)
    return expected_terms(_case(key), motion)
