"""One case of a study: a robot with wrong parameters, a motion, and what every source makes of it."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from robots.arrays import Array
from robots.errors import HarnessError, MechanismError
from robots.motion import Motion
from robots.robot import DEFAULT, Case, load, representative_case
from validation.execution.environments import Environment, environment_of
from validation.execution.interpreter import LostCallError, call
from validation.judge import sources
from validation.judge.compare import largest_of_acting, relative_error
from validation.judge.evaluate import Outcome, attempt, evaluate
from validation.studies.sweep.motions import KINDS, Baseline, Kind, make_motion, make_scene
from validation.studies.sweep.parameters import Group, Parameter, parameters, perturbed

COMPUTED = "computed"
NO_MOTION = "no motion"
RESULTS: Mapping[str, str] = {
    COMPUTED: "there are efforts to compare",
    NO_MOTION: "the perturbed robot cannot be assembled, or no motion is found that it can follow",
    "not comparable": "the source cannot carry the case, or there is nothing to compare it with",
    "not run": "the source failed, or took its worker process down",
}
"""What can come of a source on a case."""
LONGEST = threading.TIMEOUT_MAX / 2
"""How long a source may take in an environment of its own: the time limit is that of the task [s]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """What is varied, and what is held."""

    robot: str
    seed: int = 0
    spread: float = 1.0
    """How far each parameter may be off, uniformly distributed [%]."""
    vary: Group = "all"
    """What is off."""
    motions: tuple[Kind, ...] = KINDS
    """Kinds of motion, taken in turn."""
    sources: tuple[str, ...] = ("analytic/lagrange", "mujoco/kkt")
    """Besides the reference, which always runs."""
    variant: str = DEFAULT
    mode: str = ""
    """By default the first that meets no singularity."""
    configuration: str = ""
    """By default upright, where there is gravity."""

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
        load(variation.robot), variant=variation.variant, mode=variation.mode, configuration=variation.configuration
    )
    varied = parameters(case.mechanism, variation.vary)
    if len({parameter.name for parameter in varied}) < len(varied):
        raise MechanismError(f"{case.mechanism.model.path}: want bodies and sites with names of their own")
    return Nominal(make_scene(case), varied)


def schema(robot: Nominal) -> pa.Schema:
    """Columns of the data set: a row for each case and source."""
    texts, numbers = pa.dictionary(pa.int32(), pa.string()), pa.float64()
    efforts = [pa.field(name, numbers) for name in effort_columns(robot)]  # root mean square over the motion
    changes = [pa.field(parameter.name, numbers) for parameter in robot.varied]  # [%]
    return pa.schema(
        [
            pa.field("case", pa.int64()),
            pa.field("motion", texts),
            pa.field("source", texts),
            pa.field("result", texts),
            pa.field("relative_error", numbers),  # largest over time and actuators, each over its own scale [-]
            pa.field("peak", numbers),  # largest reference effort, over time and actuators
            pa.field("wall_time", numbers),  # [s]
            pa.field("note", pa.string()),
            *efforts,
            *changes,
        ]
    )


def effort_columns(robot: Nominal) -> tuple[str, ...]:
    """Names of the columns of efforts, in the order of the actuators."""
    mechanism = robot.case.mechanism
    units = zip(mechanism.actuators, mechanism.actuator_units, strict=True)
    return tuple(f"effort of {actuator.name} [{unit}]" for actuator, unit in units)


def compute_cases(variation: Variation, cases: Sequence[int]) -> pa.Table:
    """Rows of some cases; each depends on the study's seed and its own number alone."""
    robot = nominal(variation)
    rows = [row for case in cases for row in _rows(variation, robot, case)]
    return pa.Table.from_pylist(rows, schema(robot))


def lost_cases(variation: Variation, cases: Sequence[int], reason: str) -> pa.Table:
    """Rows of cases that were never finished."""
    robot = nominal(variation)
    rows = [
        _row(variation, robot, case, _failed(robot.case, source, "not run", reason), None)
        for case in cases
        for source in variation.every_source
    ]
    return pa.Table.from_pylist(rows, schema(robot))


def kind_of(variation: Variation, case: int) -> Kind:
    """The kind of motion of a case."""
    return variation.motions[case % len(variation.motions)]


def drawn(variation: Variation, case: int) -> tuple[Array, np.random.Generator]:
    """Changes of the parameters of a case [-], shape (parameters,), and where its motion comes from."""
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
        return _failed(case, source, "not comparable", "it simulates, and a single state has no time to do so")
    if (environment := environment_of(sources.engine_of(source))) is not None:
        return _evaluated_in(environment, case, motion, source)
    needs_scale, is_redundant = source == sources.REFERENCE, case.mechanism.na > drives
    if needs_scale or is_redundant or sources.is_as_is(source):  # compared is what moves the robot, or the run's own
        return evaluate(case, motion, source)
    return attempt(case, source, lambda: sources.load(source).compute_efforts(case, motion))


def _evaluated_in(environment: Environment, case: Case, motion: Motion, source: str) -> Outcome:
    """What a source makes of a case in the environment of its engine, which ends with this worker."""
    try:
        outcome: Outcome = call(environment.interpreter, evaluate, (case, motion, source), LONGEST)
    except LostCallError as error:
        return _failed(case, source, "not run", str(error))
    return outcome


def _failed(case: Case, source: str, result: str, note: str) -> Outcome:
    return Outcome(case=case, source=source, history=None, failure=result, note=note)


def _row(
    variation: Variation, robot: Nominal, number: int, outcome: Outcome, reference: Outcome | None
) -> dict[str, Any]:
    change, _ = drawn(variation, number)
    row: dict[str, Any] = {
        "case": number,
        "motion": kind_of(variation, number),
        "source": outcome.source,
        "wall_time": outcome.wall_time,
        **_compared(outcome, reference),
        **dict(zip((parameter.name for parameter in robot.varied), 100 * change, strict=True)),
    }
    if outcome.compared is not None:
        rms = np.sqrt((outcome.compared.effort**2).mean(axis=0))
        row |= dict(zip(effort_columns(robot), rms, strict=True))
    return row


def _compared(outcome: Outcome, reference: Outcome | None) -> dict[str, Any]:
    """Result, error, peak and note; a comparison with nothing, or that is not a number, is none."""
    efforts, expected = outcome.compared, reference.compared if reference else None
    if efforts is None:
        return {"result": outcome.failure, "note": outcome.note}
    if expected is None:
        return {"result": "not comparable", "note": "the reference did not run"}
    if reference is None or reference.scale is None:
        return {"result": "not comparable", "note": "the reference did not run"}
    peak, error = float(np.abs(expected.effort).max()), relative_error(efforts.effort, expected.effort, reference.scale)
    if outcome.settled is not None:  # of a simulation as it is, the residual of its own motion
        if outcome.settled.reason:
            return {"result": "not comparable", "note": outcome.settled.reason}
        error = largest_of_acting(outcome.settled.largest, reference.scale)
    if not np.isfinite(error):
        return {"result": "not comparable", "note": "efforts that are no numbers, or nothing that acts"}
    if outcome is reference:
        return {"result": COMPUTED, "peak": peak, "note": ""}
    return {"result": COMPUTED, "relative_error": error, "peak": peak, "note": ""}
