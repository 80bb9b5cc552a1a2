"""Every source and every audit of some cases, computed in worker processes and collected in tables."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from itertools import chain, groupby
from math import nan
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from loopcheck.robots.errors import HarnessError, SingularityError
from loopcheck.robots.log_files import write_log
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, Robot
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec
from loopcheck.validation.execution.workers import ALL_CORES, WorkerFailure, WorkerPool, Workers, nothing, worker_pool
from loopcheck.validation.judge import sources
from loopcheck.validation.judge.audit import (
    ExpectedTerms,
    Row,
    audit,
    blocking_reasons,
    doubts,
    expected_terms,
    failed_row,
)
from loopcheck.validation.judge.compare import Evidence, summarize, unexplained
from loopcheck.validation.judge.evaluate import (
    Outcome,
    evaluate,
    motion_key,
    prescribe_or_error,
    random_case,
    random_motion_or_error,
)
from loopcheck.validation.judge.resolution import Resolution, measure_resolution
from loopcheck.validation.judge.results import TABLES, Results
from loopcheck.validation.judge.tolerances import with_own_limits
from loopcheck.validation.judge.verdicts import FILE, Key, exit_verdicts
from loopcheck.validation.report.blocks import Section
from loopcheck.validation.studies.check.collect import collect
from loopcheck.validation.studies.check.interim import Interim
from loopcheck.validation.studies.check.movies import NO_MOVIES, movies
from loopcheck.validation.studies.check.record import Request, RunOutput
from loopcheck.validation.studies.check.report import SECTIONS
from loopcheck.validation.studies.check.terminal import summary, title
from loopcheck.validation.studies.preload import PRELOAD
from loopcheck.validation.studies.study import Computed, Conclusion, Study, StudyResult, computed

LOGS = "logs"
"""Folder of the logs behind simulations as they are."""
REPORT = "loopcheck.validation.studies.check.report"
"""Module of the report."""
DRAWING = "matplotlib.backends.backend_svg"
"""Module that workers import to draw figures."""
NO_NAME = r"[^\w.+-]"
"""Characters that file names must not have, but names of keyframes and variants may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check(Study):
    """All sources on all cases, held against the reference."""

    name: ClassVar[str] = "check"
    page: ClassVar[str] = "report"
    tables: ClassVar[Mapping[str, TableSpec]] = TABLES

    cases: Sequence[Case]
    sources: tuple[str, ...] = ()
    """Names, engines or patterns; by default all installed sources. The reference always runs."""
    dt: float | None = None
    """Step of the report grid [s]; by default that of `loopcheck.robots.motion.report_grid`."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """Limits of the user for the relative error, by source [-]; default: the registered tolerances."""
    writes_logs: bool = True
    """Whether the logs behind simulations as they are go into the folder."""
    motions: Mapping[Key, Motion] = field(default_factory=dict)
    """Motions of all cases, if already computed."""
    twins: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    """Files that may be the closed-loop versions of serial models, by the robot's name."""
    compare_twin: Callable[[Case, Sequence[Path]], Mapping[str, Any]] | None = None
    """Compares a serial model with its closed-loop version among some files."""
    draws: bool = True
    """Whether a report is written: imports the drawing modules and renders spatial robots."""

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`; a motion that cannot be assembled is bad input, unless it is expected."""
        absent = () if self.sources else sources.absent_engines()
        requested = tuple(map(frozenset, sources.groups(self.sources)))
        request = Request(dt=self.dt, tolerances=with_own_limits(self.limits), absent=absent, requested=requested)
        output = _computed(self, request, pool)
        if self.writes_logs:
            _write_logs(output.outcomes, folder / LOGS)
        results = collect(self.cases, output, request)
        for robot, twin in _closed_twins(self, pool).items():
            results.run["robots"][robot]["closed_twin"] = twin
        return Computed({name: getattr(results, name) for name in TABLES}, results.run)

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        results = results_of(result)
        return Conclusion(
            title=title(results),
            sections=_sections(results),
            summary=list(summary(results)),
            verdicts=exit_verdicts(results),
        )


STUDY = Check


def run(
    cases: Sequence[Case],
    *,
    source_names: tuple[str, ...] = (),
    dt: float | None = None,
    workers: Workers = ALL_CORES,
    own_limits: Mapping[str, float] | None = None,
) -> Results:
    """Run all sources on all cases in worker processes, without output files.

    Interrupted and lost tasks read `not run`.

    Args:
        cases: Cases to check.
        source_names: Names of the sources; by default all installed sources. The reference always runs.
        dt: Step of the report grid [s]; by default that of `loopcheck.robots.motion.report_grid`.
        workers: Worker processes, by default one for each core.
        own_limits: The user's own limits of the relative error by source [-], instead of the registered limits.

    Raises:
        HarnessError: If a source is unknown, a limit is invalid, or a motion cannot be assembled unexpectedly.
    """
    study = Check(cases=cases, sources=source_names, dt=dt, limits=own_limits or {}, writes_logs=False)
    with worker_pool(workers, preload=PRELOAD) as pool:
        return results_of(computed(study, Path(), pool))


def _prepare_page(pool: WorkerPool) -> None:
    """Import the modules of the page, here and in idle workers, and pack the library of every page."""
    pool.prepare((REPORT, DRAWING))
    import_module(REPORT)
    import_module("loopcheck.validation.report.pages").plotly_script()


def _sections(results: Results) -> Iterator[Section]:
    """The page; its modules are imported here, after the output of the summary."""
    for section in SECTIONS:
        yield section(results)


def results_of(result: StudyResult) -> Results:
    """The tables of a run by their names."""
    return Results(**result.tables, run=result.record)


def _computed(study: Check, request: Request, pool: WorkerPool) -> RunOutput:
    """Results of the workers of a check."""
    cases, names = study.cases, tuple(chain.from_iterable(sources.groups(study.sources)))
    pairs = [(case, source) for case in cases for source in _sources_of(case.robot, names)]
    audits = [(case, engine) for case in cases for engine in (FILE, *_engines(pairs))]
    motions = study.motions or _motions(cases, study.dt, pool)
    beside = _beside(pairs, motions, pool)
    expected = _expected({case.key: case for case, _ in audits}.values(), motions, pool)
    motions = {**motions, **{random.case.key: random.motion for random in beside.values()}}
    evaluated = {
        (case.key, source): _evaluation(case, motions[case.key], source) for case, source in _with_beside(pairs, beside)
    }
    audited = {(case.key, engine): _audit(case, expected[case.key], engine) for case, engine in audits}
    every = {**evaluated, **audited}
    tasks = {key: task for key, task in every.items() if isinstance(task, Task)}  # short ones last
    originals = {random.case.key: key for key, random in beside.items()}
    interim = Interim(tolerances=request.tolerances, beside=originals)
    results = {**every, **_as_they_come(tasks, pool, interim, draws=study.draws)}
    outcomes = [_noting(results[key], beside.get(key[0])) for key in evaluated]
    rows = [row for key in audited for row in results[key]]
    evidence = Evidence(
        tolerances=request.tolerances,
        blocking_reasons=blocking_reasons(rows),
        doubts=doubts(rows),
        requested=request.requested,
    ).with_cases_beside(originals)
    return RunOutput(
        motions={key: motion for key, motion in motions.items() if isinstance(motion, Motion)},
        outcomes=outcomes,
        audited=rows,
        resolutions=_resolutions(outcomes, evidence, motions, pool),
        beside=originals,
        movies=NO_MOVIES if pool.log.interrupted or not study.draws else movies(cases, motions, pool),
    )


def _closed_twins(study: Check, pool: WorkerPool) -> Mapping[str, Any]:
    """Errors of serial robots against their closed twins, by robot."""
    if study.compare_twin is None:
        return {}
    cases = {case.robot.name: case for case in reversed(study.cases) if case.robot.name in study.twins}
    tasks = [
        Task(study.compare_twin, (case, study.twins[name]), partial(_no_twin, study.twins[name]))
        for name, case in cases.items()
    ]
    results = zip(cases, pool.results(tasks, "closed twins"), strict=True)
    return {robot: twin for robot, twin in results if twin}


def _no_twin(paths: Sequence[Path], reason: str) -> Mapping[str, Any]:
    return {"file": ", ".join(path.name for path in paths), "motors": [], "reason": reason}


def _as_they_come(
    tasks: Mapping[tuple[Key, str], Task], pool: WorkerPool, interim: Interim, *, draws: bool
) -> Mapping[tuple[Key, str], Any]:
    """Results of sources and audits by case and name; a terminal shows the table of the latest robot."""
    keys, results_by_key, meanwhile = list(tasks), {}, partial(_prepare_page, pool) if draws else nothing
    for k, result in pool.completed(list(tasks.values()), "sources and audits", meanwhile):
        results_by_key[keys[k]] = result
        if pool.progress.is_live:
            interim.take(keys[k], result)
            pool.progress.show(interim.table(keys[k][0][0]))
    pool.progress.show(None)
    return results_by_key


def _write_logs(outcomes: Iterable[Outcome], folder: Path) -> None:
    """Write the log behind each simulation as it is, for `judge` to take it again."""
    for outcome in outcomes:
        if outcome.history is not None and outcome.history.as_is is not None:
            folder.mkdir(parents=True, exist_ok=True)
            log = outcome.history.as_is.log
            write_log(log, folder / f"{re.sub(NO_NAME, '_', log.name)}.csv")


def _sources_of(robot: Robot, source_names: tuple[str, ...]) -> tuple[str, ...]:
    """The sources to run, the reference always and first."""
    return tuple(dict.fromkeys((sources.REFERENCE, *(source_names or sources.names(robot)))))


def _motions(
    cases: Sequence[Case], dt: float | None, pool: WorkerPool
) -> Mapping[Key, Motion | HarnessError | WorkerFailure]:
    """The motion of each case, shared by equal cases, or the reason for its absence.

    Raises:
        HarnessError: If a motion cannot be assembled, and the robot's file does not expect a singularity.
    """
    keys = {case.key: motion_key(case) for case in cases}
    one_per_motion = {keys[case.key]: case for case in reversed(cases)}
    tasks = [Task(prescribe_or_error, (case, dt), WorkerFailure) for case in one_per_motion.values()]
    by_key = dict(zip(one_per_motion, pool.results(tasks, "motions"), strict=True))
    for case in cases:
        motion = by_key[keys[case.key]]
        expected = case.robot.expected.get(case.mode) == "not comparable" and isinstance(motion, SingularityError)
        if isinstance(motion, HarnessError) and not expected:
            raise motion
    return {case.key: by_key[keys[case.key]] for case in cases}


class _Beside(NamedTuple):
    """A case on its random motion."""

    case: Case
    motion: Motion | HarnessError | WorkerFailure
    """The motion, or the reason without a motion."""


def _beside(
    pairs: Sequence[tuple[Case, str]], motions: Mapping[Key, Motion | HarnessError | WorkerFailure], pool: WorkerPool
) -> Mapping[Key, _Beside]:
    """The random motions of unmodified simulations, by the keys of their cases."""
    cases = {
        case.key: case for case, source in pairs if sources.is_as_is(source) and isinstance(motions[case.key], Motion)
    }
    keys = {case.key: motion_key(case) for case in cases.values()}
    one_per_motion = {keys[case.key]: case for case in reversed(cases.values())}
    tasks = [Task(random_motion_or_error, (case, motions[case.key]), WorkerFailure) for case in one_per_motion.values()]
    by_key = dict(zip(one_per_motion, pool.results(tasks, "random motions"), strict=True))
    return {key: _Beside(random_case(case), by_key[keys[key]]) for key, case in cases.items()}


def _with_beside(pairs: Sequence[tuple[Case, str]], beside: Mapping[Key, _Beside]) -> Iterator[tuple[Case, str]]:
    """Pairs of case and source, followed by the reference and unmodified simulations on the case's random motion."""
    for _, of_case in groupby(pairs, key=lambda pair: pair[0].key):
        several = list(of_case)
        yield from several
        random = beside.get(several[0][0].key)
        if random is not None and isinstance(random.motion, Motion):
            on_both = (source for _, source in several if source == sources.REFERENCE or sources.is_as_is(source))
            yield from ((random.case, source) for source in on_both)


def _noting(outcome: Outcome, random: _Beside | None) -> Outcome:
    """An unmodified simulation, with the reason for a missing random motion in its note."""
    if random is None or isinstance(random.motion, Motion) or not sources.is_as_is(outcome.source):
        return outcome
    reason = random.motion.reason if isinstance(random.motion, WorkerFailure) else str(random.motion)
    return replace(outcome, note="; ".join(filter(None, (outcome.note, f"no random motion beside it: {reason}"))))


def _expected(
    cases: Iterable[Case], motions: Mapping[Key, Motion | HarnessError | WorkerFailure], pool: WorkerPool
) -> Mapping[Key, ExpectedTerms | HarnessError | WorkerFailure]:
    """Reference of the audits in each case, shared by all engines, or the reason for its absence."""
    moving = [case for case in cases if isinstance(motions[case.key], Motion)]
    tasks = [Task(expected_terms, (case, motions[case.key]), WorkerFailure) for case in moving]
    inventories = pool.results(tasks, "models")
    without = {key: motion for key, motion in motions.items() if not isinstance(motion, Motion)}
    return {**without, **{case.key: inventory for case, inventory in zip(moving, inventories, strict=True)}}


def _evaluation(case: Case, motion: Motion | HarnessError | WorkerFailure, source: str) -> Task | Outcome:
    """The task of computing a source, or its outcome without a motion."""
    if isinstance(motion, Motion):
        on_failure = partial(_no_efforts, case, source, "not run")
        return Task(evaluate, (case, motion, source), on_failure, is_kept=_has_run, engine=sources.engine_of(source))
    return _no_efforts(case, source, *_reason(motion))


def _audit(case: Case, expected: ExpectedTerms | HarnessError | WorkerFailure, engine: str) -> Task | list[Row]:
    """The task of auditing an engine, or its rows without a reference."""
    if isinstance(expected, ExpectedTerms):
        on_failure = partial(_no_audit, case, engine, "not run")
        return Task(audit, (case, expected, engine), on_failure, is_kept=_is_audited, engine=engine)
    return _no_audit(case, engine, *_reason(expected))


def _resolutions(
    outcomes: Sequence[Outcome],
    evidence: Evidence,
    motions: Mapping[Key, Motion | HarnessError | WorkerFailure],
    pool: WorkerPool,
) -> Mapping[tuple[Key, str], Resolution]:
    """Measured resolution of each source with an effort that disagrees, by case and source."""
    pairs = unexplained(summarize(outcomes, evidence))
    beyond = [
        outcome for outcome in outcomes if (outcome.case.key, outcome.source) in pairs and outcome.settled is None
    ]  # of a simulation as it is, the floor of its log says what it resolves
    tasks = [
        Task(
            measure_resolution,
            (outcome.case, motions[outcome.case.key], outcome.source, outcome.compared),
            partial(_unresolved, outcome.case),
            is_kept=_is_whole,
            engine=sources.engine_of(outcome.source),
        )
        for outcome in beyond
    ]
    keys = [(outcome.case.key, outcome.source) for outcome in beyond]
    return dict(zip(keys, pool.results(tasks, "resolution"), strict=True))


def _unresolved(case: Case, reason: str) -> Resolution:
    return Resolution(effort={actuator.name: nan for actuator in case.mechanism.actuators}, note=reason)


def _has_run(outcome: Outcome) -> bool:
    return outcome.failure != "not run"


def _is_audited(rows: Sequence[Row]) -> bool:
    return all(row["verdict"] != "not run" for row in rows)


def _is_whole(resolution: Resolution) -> bool:
    return not resolution.note


def _no_efforts(case: Case, source: str, verdict: str, note: str) -> Outcome:
    return Outcome(case=case, source=source, history=None, failure=verdict, note=note)


def _no_audit(case: Case, engine: str, verdict: str, note: str) -> list[Row]:
    return [failed_row(case.key, engine, verdict, note)]


def _reason(failure: HarnessError | WorkerFailure) -> tuple[str, str]:
    """Verdict and note for a failed computation."""
    return ("not run", failure.reason) if isinstance(failure, WorkerFailure) else ("not comparable", str(failure))


def _engines(tasks: Iterable[tuple[Case, str]]) -> list[str]:
    """Names of the engines of some tasks."""
    return list(dict.fromkeys(source.split("/")[0] for _, source in tasks if source not in sources.ANALYTIC))
