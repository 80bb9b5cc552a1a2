"""The validation suite: a test for each robot, variant, mode, configuration and source of the catalogue.

A new folder in `robots/` adds its tests, and so does each robot folder in DIR with `pytest --robots DIR`. The figures
of each comparison are properties of its test (`pytest --junit-xml FILE`). Simulations run in a single mode of each
robot, the long ones in a single pose, and in all of them with `--every-case`; exact routes always run in all modes.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from loopcheck.robots.catalogue import ROBOT_FILE, names
from loopcheck.robots.errors import EngineNotInstalledError, HarnessError, MechanismError, SingularityError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import DEFAULT, Case, configurations, make_case, modes
from loopcheck.validation.check.audit.audit import ExpectedTerms, audit, blocking_reasons, doubts, expected_terms
from loopcheck.validation.check.efforts.compare import summarize_resolved
from loopcheck.validation.check.efforts.evaluate import evaluate, motion_key, prescribe_or_error
from loopcheck.validation.check.efforts.outcome import Outcome, is_unsupported
from loopcheck.validation.check.efforts.rules import Evidence
from loopcheck.validation.common import sources
from loopcheck.validation.common.targets import robot_of
from loopcheck.validation.common.tolerances import registered
from loopcheck.validation.common.verdicts import FILE

Key: TypeAlias = tuple[str, str, str, str]
"""Target, variant, mode and configuration."""
CATALOGUE = names()
NOT_COMPARABLE = "not comparable"
"""Expectation of a mode with a singularity."""
SECONDS: Mapping[str, Mapping[str, float]] = {
    "2pur2rpu": {
        "dart/forward": 0.6,
        "drake/forward": 1.4,
        "exudyn/forward": 1.5,
        "mujoco/as_is": 3.5,
        "mujoco/forward": 1.5,
        "pinocchio/forward": 1.6,
        "pybullet/as_is": 2.2,
        "pybullet/forward": 1.5,
        "simbody/forward": 3.5,
    },
    "2t1r": {"drake/forward": 1.3, "exudyn/forward": 0.8, "pybullet/forward": 3.7, "simbody/forward": 0.6},
    "3prr": {"exudyn/forward": 0.6},
    "3rrr": {"drake/forward": 0.6, "exudyn/forward": 1.2, "pybullet/forward": 1.2, "simbody/forward": 0.6},
    "6spu": {
        "analytic/lagrange": 1.0,
        "dart/forward": 0.9,
        "drake/forward": 2.9,
        "exudyn/forward": 2.3,
        "mujoco/as_is": 2.1,
        "mujoco/forward": 0.8,
        "pinocchio/forward": 1.3,
        "pybullet/as_is": 1.5,
        "pybullet/forward": 0.8,
        "simbody/forward": 2.5,
    },
    "6x6r": {
        "analytic/lagrange": 1.0,
        "analytic/paper": 1.0,
        "dart/forward": 0.8,
        "drake/forward": 2.8,
        "exudyn/forward": 2.4,
        "mujoco/as_is": 2.3,
        "mujoco/forward": 0.8,
        "pinocchio/forward": 1.5,
        "pybullet/as_is": 1.4,
        "pybullet/forward": 0.7,
        "simbody/forward": 2.8,
    },
    "andrews": {"drake/forward": 0.7, "mujoco/as_is": 1.4, "pybullet/forward": 1.5},
    "bricard": {"pybullet/forward": 0.6},
    "n_four_bar_40": {"simbody/kkt": 1.0, "drake/forward": 0.7, "exudyn/forward": 1.7, "simbody/forward": 2.2},
    "puma560": {"exudyn/forward": 2.7, "simbody/forward": 1.2},
}
"""CPU time of rows above that of a test without a mark [s]."""

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
    every = metafunc.config.getoption("--every-case")
    comparisons = [
        comparison for target in targets for comparison in _comparisons(target) if every or not _repeats(*comparison)
    ]
    parameters = [pytest.param(each, marks=[*_marks(*each)], id=_id(*each)) for each in comparisons]
    metafunc.parametrize("comparison", parameters)


def _id(target: str, *rest: str) -> str:
    return "-".join((Path(target).name, *rest))


def _marks(target: str, *rest: str) -> Iterator[pytest.MarkDecorator]:
    """Mark of a row: the integrator, drive and solver of an engine do not depend on the mode of a simulation."""
    if not rest or target not in CATALOGUE:
        return
    *case, source = rest
    if _simulates(source) and case != [*_simulated(target)]:
        yield pytest.mark.extended(
            f"{test_agrees_with_the_reference.__name__}[{_id(target, *_simulated(target), source)}]"
        )
    elif seconds := SECONDS.get(target, {}).get(source):
        yield pytest.mark.evidence(
            "exact rows of all modes, and a simulation of each robot by each route", seconds=seconds
        )


def _repeats(target: str, *rest: str) -> bool:
    """Whether a row proves no more than others: a simulation in a further mode, or of a variant in a further pose.

    Of mode and masses, integrator, drive and solver know nothing: each configuration and variant is simulated once. A
    long simulation runs in one configuration: exact routes and the audit of its engine see gravity in all of them.
    Unmodified simulations are judged by no limit here, so a single one shows that a route of them runs.
    """
    if not rest or target not in CATALOGUE or not _simulates(rest[-1]):
        return False
    variant, mode, configuration, _ = rest
    _, first, last = _simulated(target)
    if _robot(target).expected.get(mode) == NOT_COMPARABLE:
        return False
    if sources.is_as_is(rest[-1]):
        return tuple(rest[:3]) != _simulated(target)
    is_long = rest[-1] in SECONDS.get(target, {})
    return mode != first or ((variant != DEFAULT or is_long) and configuration != last)


_simulates = cache(sources.simulates)
_robot = cache(robot_of)


@cache
def _simulated(target: str) -> tuple[str, str, str]:
    """Variant, mode and configuration of the simulations of a robot that are not extended."""
    cases = [(variant, mode, configuration) for _, variant, mode, configuration, _ in _comparisons_or_error(target)]
    expected = _robot(target).expected
    first = next(case for case in cases if case[0] == DEFAULT and expected.get(case[1]) != NOT_COMPARABLE)
    return [case for case in cases if case[:2] == first[:2]][-1]


@pytest.fixture
def key(comparison: tuple[str, ...]) -> Key:
    """Case of a comparison, with the shared part of all sources: motion, reference and doubts."""
    target, *rest = comparison
    if not rest:
        _comparisons_or_error(target)  # raises the error of the robot
    variant, mode, configuration, _ = rest
    key = (target, variant, mode, configuration)
    if isinstance(_motion(key), Motion):
        _outcome(key, sources.REFERENCE), _doubts(key)
    return key


def test_agrees_with_the_reference(
    comparison: tuple[str, ...], key: Key, request: pytest.FixtureRequest, record_property: Any
) -> None:
    mode, source = key[2], comparison[-1]
    if source not in sources.ANALYTIC and not request.config.getoption("--require-engines"):
        _skip_if_not_installed(source)
    motion = _motion(key)
    if _case(key).robot.expected.get(mode) == NOT_COMPARABLE:
        assert isinstance(motion, SingularityError), "the motion must meet a singularity, found none"
        record_property("singularity", str(motion))
        return
    if isinstance(motion, HarnessError):
        raise motion
    outcomes = [_outcome(key, sources.REFERENCE), _outcome(key, source)]
    if is_unsupported(outcomes[1]) and _supported(key):
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


@cache
def _comparisons_or_error(target: str) -> list[tuple[str, ...]]:
    robot = _robot(target)
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
    return any(not is_unsupported(_outcome(key, name)) for name in routes if not sources.is_as_is(name))


@cache
def _case(key: Key) -> Case:
    target, variant, mode, configuration = key
    return make_case(_robot(target), variant=variant, mode=mode, configuration=configuration)


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
    return evaluate(_case(key), motion, source, registered()[source].limits)


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
