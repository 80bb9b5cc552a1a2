"""One case of a sweep: a robot with wrong parameters, a motion, and the results of all sources."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import HarnessError, MechanismError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import DEFAULT, Case, representative_case
from loopcheck.validation.check.efforts.compare import largest_of_acting, relative_error
from loopcheck.validation.check.efforts.evaluate import attempt, evaluate
from loopcheck.validation.check.efforts.outcome import Failed, Outcome, Ran, Reference, Unmodified
from loopcheck.validation.common import sources
from loopcheck.validation.common.targets import robot_of
from loopcheck.validation.common.verdicts import NOT_SUPPORTED
from loopcheck.validation.execution.environments import Environment, environment_of
from loopcheck.validation.execution.remote_calls import LostCallError, call
from loopcheck.validation.execution.tables import TableSpec, integer, number, table_of, text
from loopcheck.validation.studies.sweep.motions import KINDS, Baseline, Kind, make_motion, make_scene
from loopcheck.validation.studies.sweep.parameters import Group, Parameter, parameters, perturbed

COMPUTED = "computed"
NO_MOTION = "no motion"
RESULTS: Mapping[str, str] = {
    COMPUTED: "the efforts are compared",
    NO_MOTION: "the perturbed robot cannot be assembled, or has no feasible motion",
    "not comparable": "the source does not support the case, or the reference has no efforts",
    "not run": "the source failed, or its worker process died",
}
"""Meaning of the results of a source on a case."""
LONGEST = threading.TIMEOUT_MAX / 2
"""Time limit of a source in a separate environment; the task has the same limit [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """Varied and fixed settings of a sweep."""

    target: str
    """See `loopcheck.validation.common.targets.robot_of`; paths are absolute."""
    seed: int = 0
    spread: float = 1.0
    """Largest error of each parameter, uniformly distributed [%]."""
    vary: Group = "all"
    """Kind of varied parameters."""
    motions: tuple[Kind, ...] = KINDS
    """Kinds of motion, used in turn."""
    sources: tuple[str, ...] = ("analytic/lagrange", "mujoco/kkt")
    """Sources besides the reference, which always runs."""
    variant: str = DEFAULT
    mode: str = ""
    """Mode; by default the first mode without a singularity."""
    configuration: str = ""
    """Configuration; by default upright, if the robot has gravity."""

    @property
    def name(self) -> str:
        """Name of the robot."""
        return Path(self.target).stem

    @property
    def every_source(self) -> tuple[str, ...]:
        """The sources that run, the reference first."""
        return tuple(dict.fromkeys((sources.REFERENCE, *self.sources)))


class Nominal(NamedTuple):
    """The robot of a study, before it is perturbed."""

    baseline: Baseline
    varied: tuple[Parameter, ...]

    @property
    def case(self) -> Case:
        """Robot, variant, mode and configuration."""
        return self.baseline.case


@lru_cache(maxsize=2)
def nominal(variation: Variation) -> Nominal:
    """The robot of a study.

    Raises:
        HarnessError: If a name is unknown, or the robot has no motion.
    """
    case = representative_case(
        robot_of(variation.target),
        variant=variation.variant,
        mode=variation.mode,
        configuration=variation.configuration,
    )
    varied = parameters(case.mechanism, variation.vary)
    if len({parameter.name for parameter in varied}) < len(varied):
        raise MechanismError(f"{case.mechanism.model.path}: bodies and sites must have different names")
    return Nominal(make_scene(case), varied)


def table_of_cases(robot: Nominal) -> TableSpec:
    """Columns of the data set: a row for each case and source."""
    units = zip(effort_columns(robot), robot.case.mechanism.actuator_units, strict=True)
    return table_of(
        {
            "case": integer(),
            "motion": text(),
            "source": text(),
            "result": text(tuple(RESULTS)),
            "relative_error": number(),  # largest over time and actuators, each over its own scale
            "peak": number("unit of the actuator's effort"),  # largest reference effort, over time and actuators
            "wall_time": number("s"),
            "note": text(),
            **{name: number(unit) for name, unit in units},  # root mean square over the motion
            **{parameter.name: number("%") for parameter in robot.varied},  # changes
        }
    )


def effort_columns(robot: Nominal) -> tuple[str, ...]:
    """Names of the columns of efforts, in the order of the actuators."""
    mechanism = robot.case.mechanism
    units = zip(mechanism.actuators, mechanism.actuator_units, strict=True)
    return tuple(f"effort of {actuator.name} [{unit}]" for actuator, unit in units)


def compute_cases(variation: Variation, cases: Sequence[int]) -> pd.DataFrame:
    """Rows of some cases; each depends on the study's seed and its own number alone."""
    robot = nominal(variation)
    rows = [row for case in cases for row in _rows(variation, robot, case)]
    return table_of_cases(robot).frame(rows)


def lost_cases(variation: Variation, cases: Sequence[int], reason: str) -> pd.DataFrame:
    """Rows of cases that were never finished."""
    robot = nominal(variation)
    rows = [
        _row(variation, robot, case, _failed(robot.case, source, "not run", reason), None)
        for case in cases
        for source in variation.every_source
    ]
    return table_of_cases(robot).frame(rows)


def kind_of(variation: Variation, case: int) -> Kind:
    """The kind of motion of a case."""
    return variation.motions[case % len(variation.motions)]


def drawn(variation: Variation, case: int) -> tuple[Array, np.random.Generator]:
    """Changes of the parameters of a case [-], shape (parameters,), and the generator of its motion."""
    rng = np.random.default_rng(np.random.SeedSequence(variation.seed, spawn_key=(case,)))
    return rng.uniform(-variation.spread / 100, variation.spread / 100, len(nominal(variation).varied)), rng


def prepare(variation: Variation, number: int) -> tuple[Case, Motion]:
    """The robot and the motion of a case.

    Raises:
        HarnessError: If the robot cannot be assembled, or has no motion.
    """
    robot = nominal(variation)
    change, rng = drawn(variation, number)
    case = replace(robot.case, mechanism=perturbed(robot.case.mechanism, robot.varied, change))
    return case, make_motion(robot.baseline, case, kind_of(variation, number), rng)


def _rows(variation: Variation, robot: Nominal, number: int) -> list[Mapping[str, Any]]:
    try:
        case, motion = prepare(variation, number)
    except HarnessError as error:
        failures = [_failed(robot.case, source, NO_MOTION, str(error)) for source in variation.every_source]
        return [_row(variation, robot, number, outcome, None) for outcome in failures]
    outcomes = [_evaluated(case, motion, len(robot.baseline.drives), source) for source in variation.every_source]
    return [_row(variation, robot, number, outcome, outcomes[0]) for outcome in outcomes]


def _evaluated(case: Case, motion: Motion, drives: int, source: str) -> Outcome:
    if len(motion.t) < 2 and sources.simulates(source):
        return _failed(
            case, source, "not comparable", "a simulation needs a motion in time, the case is a single state"
        )
    if (environment := environment_of(sources.engine_of(source))) is not None:
        return _evaluated_in(environment, case, motion, source)
    needs_scale, is_redundant = source == sources.REFERENCE, case.mechanism.na > drives
    if needs_scale or is_redundant or sources.is_as_is(source):  # compared is what moves the robot, or the run's own
        return evaluate(case, motion, source)
    return attempt(case, source, lambda: sources.load(source).compute_efforts(case, motion))


def _evaluated_in(environment: Environment, case: Case, motion: Motion, source: str) -> Outcome:
    """Outcome of a source in the environment of its engine, whose process ends with this worker."""
    try:
        outcome: Outcome = call(environment.interpreter, evaluate, (case, motion, source), LONGEST)
    except LostCallError as error:
        return _failed(case, source, "not run", str(error))
    return outcome


def _failed(case: Case, source: str, result: str, note: str) -> Outcome:
    return Failed(case=case, source=source, verdict=result, note=note)


def _row(
    variation: Variation, robot: Nominal, number: int, outcome: Outcome, reference: Outcome | None
) -> dict[str, Any]:
    change, _ = drawn(variation, number)
    row: dict[str, Any] = {
        "case": number,
        "motion": kind_of(variation, number),
        "source": outcome.source,
        "wall_time": outcome.wall_time if isinstance(outcome, Ran) else None,
        **_compared(outcome, reference),
        **dict(zip((parameter.name for parameter in robot.varied), 100 * change, strict=True)),
    }
    if outcome.compared is not None:
        rms = np.sqrt((outcome.compared.effort**2).mean(axis=0))
        row |= dict(zip(effort_columns(robot), rms, strict=True))
    return row


def _compared(outcome: Outcome, reference: Outcome | None) -> dict[str, Any]:
    """Result, error, peak and note; an empty comparison, or an error that is not finite, is a failure."""
    if not isinstance(outcome, Ran):
        assert isinstance(outcome, Failed)
        failure = "not comparable" if outcome.verdict == NOT_SUPPORTED else outcome.verdict
        return {"result": failure, "note": outcome.note}
    if not isinstance(reference, Reference):
        return {"result": "not comparable", "note": "the reference did not run"}
    expected = reference.history.effort
    peak, error = float(np.abs(expected).max()), relative_error(outcome.compared.effort, expected, reference.scale)
    if isinstance(outcome, Unmodified):  # of a simulation as it is, the residual of its own motion
        if outcome.settled.reason:
            return {"result": "not comparable", "note": outcome.settled.reason}
        error = largest_of_acting(outcome.settled.largest, reference.required.divisor)
    if not np.isfinite(error):
        return {"result": "not comparable", "note": "efforts are not finite, or the load is zero"}
    if outcome is reference:
        return {"result": COMPUTED, "peak": peak, "note": ""}
    return {"result": COMPUTED, "relative_error": error, "peak": peak, "note": ""}
