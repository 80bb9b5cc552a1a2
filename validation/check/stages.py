"""The stages of a check: each gives tasks to the workers, and waits for the results that the next stages need.

1. motions: the motion of each case, shared by equal cases 2. models: terms of the reference, against which every engine
is audited 3. sources and audits: the efforts of every source in every case, and the model of the case in every engine;
a first page appears as soon as all that does not simulate is there 4. resolution: the resolution of each source with an
unexplained error; cases whose generated motion fails in a simulation take these steps once more with another motion
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from math import nan

from loopcheck.robots.errors import HarnessError, SingularityError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.audit.audit import ExpectedTerms, expected_terms
from loopcheck.validation.check.efforts.compare import summarize, unexplained
from loopcheck.validation.check.efforts.evaluate import prescribe_or_error
from loopcheck.validation.check.efforts.outcome import Unmodified
from loopcheck.validation.check.efforts.resolution import Resolution, measure_resolution
from loopcheck.validation.check.plan import Failure, Motions, Plan
from loopcheck.validation.check.record import Request, RunOutput
from loopcheck.validation.check.second_motions import by_motion, with_second_motions
from loopcheck.validation.common import sources
from loopcheck.validation.common.verdicts import Key
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.workers import WorkerFailure, WorkerPool
from loopcheck.validation.report.charts import plotly_script

OF_PAGE = ("pandas", "jinja2", "tabulate", "matplotlib.backends.backend_svg")
"""Modules of tables and page, which no effort needs: imported by this process alone, while the workers compute."""


def run_stages(cases: Sequence[Case], request: Request, pool: WorkerPool) -> RunOutput:
    """Results of all stages.

    Raises:
        HarnessError: If a motion cannot be assembled, and the robot's file does not expect a singularity.
    """
    if request.motions:
        return _of_motions(cases, request.motions, request, pool)
    motions = _motions(cases, request.dt, pool)
    output = _of_motions(cases, motions, request, pool)
    once = replace(request, publish=lambda output: None)  # the page is there already
    return with_second_motions(cases, output, request, pool, lambda some, second: _of_motions(some, second, once, pool))


def _of_motions(cases: Sequence[Case], motions: Motions, request: Request, pool: WorkerPool) -> RunOutput:
    """Results of all stages for some motions."""
    plan = Plan(cases, motions, _expected(cases, motions, pool), request)
    has_begun = has_verdict = is_published = False

    def begin() -> None:
        nonlocal has_begun
        has_begun = True

    for _ in plan.results(pool, begin):
        if has_begun and not has_verdict and (verdict := plan.first_verdict(request)):
            has_verdict = True
            if plan.simulates:  # otherwise all verdicts come at once
                pool.progress.say(f"First verdict: {verdict}")
            if request.draws:
                _prepare_page()
        if has_begun and plan.is_exact and not (plan.is_complete or is_published or pool.log.interrupted):
            is_published = True
            request.publish(plan.output())
    output = plan.output()
    return output._replace(resolutions=_resolutions(output, request, pool))


def _motions(cases: Sequence[Case], dt: float | None, pool: WorkerPool) -> Motions:
    """The motion of each case."""
    by_key = by_motion(cases, lambda case: Task(prescribe_or_error, (case, dt), WorkerFailure), pool, "motions")
    for case in cases:
        motion = by_key[case.key]
        expected = case.robot.expected.get(case.mode) == "not comparable" and isinstance(motion, SingularityError)
        if isinstance(motion, HarnessError) and not expected:
            raise motion
    return by_key


def _expected(cases: Sequence[Case], motions: Motions, pool: WorkerPool) -> Mapping[Key, ExpectedTerms | Failure]:
    """Reference of the audits in each case, shared by all engines, or the reason for its absence."""
    moving = {case.key: case for case in cases if isinstance(motions[case.key], Motion)}
    tasks = [Task(expected_terms, (case, motions[case.key]), WorkerFailure) for case in moving.values()]
    without = {key: motion for key, motion in motions.items() if not isinstance(motion, Motion)}
    return {**without, **dict(zip(moving, pool.results(tasks, "models"), strict=True))}


def _prepare_page() -> None:
    """Import the libraries of tables and page, and pack the library of every page."""
    for name in OF_PAGE:
        import_module(name)
    plotly_script()


def _resolutions(output: RunOutput, request: Request, pool: WorkerPool) -> Mapping[tuple[Key, str], Resolution]:
    """Measured resolution of each source with an effort that disagrees, by case and source."""
    pairs = unexplained(summarize(output.outcomes, output.evidence(request)))
    beyond = {
        (outcome.case.key, outcome.source): outcome
        for outcome in output.outcomes
        if (outcome.case.key, outcome.source) in pairs and not isinstance(outcome, Unmodified)
    }  # the noise floor of its log is the resolution of an unmodified simulation
    tasks = [
        Task(
            measure_resolution,
            (outcome.case, output.motions[outcome.case.key], outcome.source, outcome.compared),
            partial(_unmeasured, outcome.case),
            is_kept=lambda resolution: not resolution.note,
            engine=sources.engine_of(outcome.source),
        )
        for outcome in beyond.values()
    ]
    return dict(zip(beyond, pool.results(tasks, "resolution"), strict=True))


def _unmeasured(case: Case, reason: str) -> Resolution:
    return Resolution(effort={actuator.name: nan for actuator in case.mechanism.actuators}, note=reason)
