"""The stages of a check: each gives tasks to the workers, and waits for the results that the next stages need.

1. motions: the motion of each case, shared by equal cases 2. random motions: a second motion of unmodified simulations,
as a controller may follow one by chance 3. models: terms of the reference, against which every engine is audited 4.
sources and audits: the efforts of every source in every case, and the model of the case in every engine 5. resolution:
the resolution of each source with an unexplained error; cases whose generated motion fails in a simulation take these
steps once more with another motion 6. movies: pictures of spatial robots, for the page alone
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import groupby
from math import nan
from typing import Any, NamedTuple, TypeAlias

from loopcheck.robots.errors import HarnessError, SingularityError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.comparison import sources
from loopcheck.validation.comparison.audit import ExpectedTerms, Row, audit, expected_terms, failed_row
from loopcheck.validation.comparison.compare import summarize, unexplained
from loopcheck.validation.comparison.evaluate import (
    Outcome,
    evaluate,
    prescribe_or_error,
    random_case,
    random_motion_or_error,
)
from loopcheck.validation.comparison.resolution import Resolution, measure_resolution
from loopcheck.validation.comparison.verdicts import FILE, Key
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.workers import WorkerFailure, WorkerPool, nothing
from loopcheck.validation.studies.check.interim import Interim
from loopcheck.validation.studies.check.movies import movies
from loopcheck.validation.studies.check.record import Request, RunOutput
from loopcheck.validation.studies.check.second_motions import by_motion, with_second_motions

REPORT = "loopcheck.validation.studies.check.report"
"""Module of the report."""
DRAWING = "matplotlib.backends.backend_svg"
"""Module that workers import to draw figures."""

Failure: TypeAlias = HarnessError | WorkerFailure
"""Reason for a missing result."""
Motions: TypeAlias = Mapping[Key, Motion | Failure]
"""The motion of each case, or the reason for its absence."""


class RandomRepeat(NamedTuple):
    """A case on its random motion."""

    case: Case
    motion: Motion | Failure
    """The motion, or the reason without a motion."""


def run_stages(cases: Sequence[Case], request: Request, pool: WorkerPool) -> RunOutput:
    """Results of all stages.

    Raises:
        HarnessError: If a motion cannot be assembled, and the robot's file does not expect a singularity.
    """
    if request.motions:
        return _with_movies(cases, _of_motions(cases, request.motions, request, pool), request, pool)
    motions = _motions(cases, request.dt, pool)
    output = _of_motions(cases, motions, request, pool)
    output = with_second_motions(
        cases, output, request, pool, lambda some, second: _of_motions(some, second, request, pool)
    )
    return _with_movies(cases, output, request, pool)


def _of_motions(cases: Sequence[Case], motions: Motions, request: Request, pool: WorkerPool) -> RunOutput:
    """Results of all stages for some motions, without movies."""
    pairs = [(case, source) for case in cases for source in _sources_of(case, request)]
    repeats = _random_motions(pairs, motions, pool)
    expected = _expected(cases, motions, pool)
    motions = {**motions, **{repeat.case.key: repeat.motion for repeat in repeats.values()}}
    originals = {repeat.case.key: key for key, repeat in repeats.items()}
    on_both = _with_repeats(pairs, repeats)
    efforts = {(case.key, source): _evaluation(case, motions[case.key], source) for case, source in on_both}
    names = dict.fromkeys(source for _, source in pairs if source not in sources.ANALYTIC)
    readers = [FILE, *dict.fromkeys(source.split("/")[0] for source in names)]
    audits = {(case.key, reader): _audit(case, expected[case.key], reader) for case in cases for reader in readers}
    interim = Interim(tolerances=request.tolerances, beside=originals)
    results = _sources_and_audits({**efforts, **audits}, interim, request, pool)
    output = RunOutput(
        motions={key: motion for key, motion in motions.items() if isinstance(motion, Motion)},
        outcomes=[_noting(results[key], repeats.get(key[0])) for key in efforts],
        audited=[row for key in audits for row in results[key]],
        resolutions={},
        beside=originals,
    )
    return output._replace(resolutions=_resolutions(output, request, pool))


def _with_movies(cases: Sequence[Case], output: RunOutput, request: Request, pool: WorkerPool) -> RunOutput:
    if pool.log.interrupted or not request.draws:
        return output
    shown = [case for case in cases if case.key in output.motions]
    return output._replace(movies=movies(shown, output.motions, pool))


def _sources_of(case: Case, request: Request) -> tuple[str, ...]:
    """The sources to run, the reference always and first."""
    return tuple(dict.fromkeys((sources.REFERENCE, *(request.names or sources.names(case.robot)))))


def _motions(cases: Sequence[Case], dt: float | None, pool: WorkerPool) -> Motions:
    """The motion of each case."""
    by_key = by_motion(cases, lambda case: Task(prescribe_or_error, (case, dt), WorkerFailure), pool, "motions")
    for case in cases:
        motion = by_key[case.key]
        expected = case.robot.expected.get(case.mode) == "not comparable" and isinstance(motion, SingularityError)
        if isinstance(motion, HarnessError) and not expected:
            raise motion
    return by_key


def _random_motions(
    pairs: Sequence[tuple[Case, str]], motions: Motions, pool: WorkerPool
) -> Mapping[Key, RandomRepeat]:
    """The random motions of unmodified simulations, by the keys of their cases."""
    cases = {
        case.key: case for case, source in pairs if sources.is_as_is(source) and isinstance(motions[case.key], Motion)
    }

    def task(case: Case) -> Task:
        return Task(random_motion_or_error, (case, motions[case.key]), WorkerFailure)

    by_key = by_motion(list(cases.values()), task, pool, "random motions")
    return {key: RandomRepeat(random_case(case), by_key[key]) for key, case in cases.items()}


def _expected(cases: Sequence[Case], motions: Motions, pool: WorkerPool) -> Mapping[Key, ExpectedTerms | Failure]:
    """Reference of the audits in each case, shared by all engines, or the reason for its absence."""
    moving = {case.key: case for case in cases if isinstance(motions[case.key], Motion)}
    tasks = [Task(expected_terms, (case, motions[case.key]), WorkerFailure) for case in moving.values()]
    without = {key: motion for key, motion in motions.items() if not isinstance(motion, Motion)}
    return {**without, **dict(zip(moving, pool.results(tasks, "models"), strict=True))}


def _with_repeats(pairs: Sequence[tuple[Case, str]], repeats: Mapping[Key, RandomRepeat]) -> Iterator[tuple[Case, str]]:
    """Pairs of case and source, followed by the reference and unmodified simulations on the case's random motion."""
    for _, of_case in groupby(pairs, key=lambda pair: pair[0].key):
        several = list(of_case)
        yield from several
        repeat = repeats.get(several[0][0].key)
        if repeat is not None and isinstance(repeat.motion, Motion):
            on_both = (source for _, source in several if source == sources.REFERENCE or sources.is_as_is(source))
            yield from ((repeat.case, source) for source in on_both)


def _evaluation(case: Case, motion: Motion | Failure, source: str) -> Task | Outcome:
    """The task of computing a source, or its outcome without a motion."""

    def without(verdict: str, note: str) -> Outcome:
        return Outcome(case=case, source=source, history=None, failure=verdict, note=note)

    if not isinstance(motion, Motion):
        return without(*_verdict_and_note(motion))
    return Task(
        evaluate,
        (case, motion, source),
        partial(without, "not run"),
        is_kept=lambda outcome: outcome.failure != "not run",
        engine=sources.engine_of(source),
    )


def _audit(case: Case, expected: ExpectedTerms | Failure, engine: str) -> Task | list[Row]:
    """The task of auditing an engine, or its rows without a reference."""

    def without(verdict: str, note: str) -> list[Row]:
        return [failed_row(case.key, engine, verdict, note)]

    if not isinstance(expected, ExpectedTerms):
        return without(*_verdict_and_note(expected))
    return Task(
        audit,
        (case, expected, engine),
        partial(without, "not run"),
        is_kept=lambda rows: all(row["verdict"] != "not run" for row in rows),
        engine=engine,
    )


def _verdict_and_note(failure: Failure) -> tuple[str, str]:
    """Verdict and note for a failed computation."""
    return ("not run", failure.reason) if isinstance(failure, WorkerFailure) else ("not comparable", str(failure))


def _sources_and_audits(
    entries: Mapping[tuple[Key, str], Any], interim: Interim, request: Request, pool: WorkerPool
) -> Mapping[tuple[Key, str], Any]:
    """The entries with results for tasks; a terminal shows the table of the latest robot."""
    open_entries = [key for key, entry in entries.items() if isinstance(entry, Task)]
    tasks = {key: entries[key] for key in sorted(open_entries, key=_simulates)}  # the first verdicts soon
    keys, results, meanwhile = list(tasks), dict(entries), partial(_prepare_page, pool) if request.draws else nothing
    for k, result in pool.completed(list(tasks.values()), "sources and audits", meanwhile):
        results[keys[k]] = result
        if pool.progress.is_live:
            interim.take(keys[k], result)
            pool.progress.show(interim.table(keys[k][0][0]))
    pool.progress.show(None)
    return results


def _simulates(key: tuple[Key, str]) -> bool:
    """Whether a task is a simulation, which takes longer than exact routes and audits."""
    _, name = key
    return "/" in name and sources.simulates(name)


def _prepare_page(pool: WorkerPool) -> None:
    """Import the modules of the page, here and in idle workers, and pack the library of every page."""
    pool.prepare((REPORT, DRAWING))
    import_module(REPORT)
    import_module("loopcheck.validation.report.pages").plotly_script()


def _noting(outcome: Outcome, repeat: RandomRepeat | None) -> Outcome:
    """An unmodified simulation, with the reason for a missing random motion in its note."""
    if repeat is None or isinstance(repeat.motion, Motion) or not sources.is_as_is(outcome.source):
        return outcome
    _, reason = _verdict_and_note(repeat.motion)
    return replace(outcome, note="; ".join(filter(None, (outcome.note, f"no random motion beside it: {reason}"))))


def _resolutions(output: RunOutput, request: Request, pool: WorkerPool) -> Mapping[tuple[Key, str], Resolution]:
    """Measured resolution of each source with an effort that disagrees, by case and source."""
    pairs = unexplained(summarize(output.outcomes, output.evidence(request)))
    beyond = {
        (outcome.case.key, outcome.source): outcome
        for outcome in output.outcomes
        if (outcome.case.key, outcome.source) in pairs and outcome.settled is None
    }  # the noise floor of its log is the resolution of an unmodified simulation
    tasks = [
        Task(
            measure_resolution,
            (outcome.case, output.motions[outcome.case.key], outcome.source, outcome.compared),
            partial(_unresolved, outcome.case),
            is_kept=lambda resolution: not resolution.note,
            engine=sources.engine_of(outcome.source),
        )
        for outcome in beyond.values()
    ]
    return dict(zip(beyond, pool.results(tasks, "resolution"), strict=True))


def _unresolved(case: Case, reason: str) -> Resolution:
    return Resolution(effort={actuator.name: nan for actuator in case.mechanism.actuators}, note=reason)
