"""The stages of a check: each gives tasks to the workers, and waits for the results that the next stages need.

1. motions: the motion of each case, shared by equal cases 2. models: terms of the reference, against which every engine
is audited 3. exact sources and audits: the efforts of every source that does not simulate, in every case, the model of
the case in every engine, and the random motions: a second motion of unmodified simulations, as a controller may follow
one by chance 4. simulations 5. resolution: the resolution of each source with an unexplained error; cases whose
generated motion fails in a simulation take these steps once more with another motion
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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
    RANDOM,
    Outcome,
    evaluate,
    motion_key,
    prescribe_or_error,
    random_case,
    random_motion_or_error,
)
from loopcheck.validation.comparison.resolution import Resolution, measure_resolution
from loopcheck.validation.comparison.verdicts import FILE, Key
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.workers import WorkerFailure, WorkerPool, nothing
from loopcheck.validation.report.charts import plotly_script
from loopcheck.validation.studies.check.record import Request, RunOutput
from loopcheck.validation.studies.check.second_motions import by_motion, with_second_motions

REPORT = "pandas"
"""Module of tables and report, which no effort needs: imported while the workers compute."""
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
        return _of_motions(cases, request.motions, request, pool)
    motions = _motions(cases, request.dt, pool)
    output = _of_motions(cases, motions, request, pool)
    return with_second_motions(
        cases, output, request, pool, lambda some, second: _of_motions(some, second, request, pool)
    )


def _of_motions(cases: Sequence[Case], motions: Motions, request: Request, pool: WorkerPool) -> RunOutput:
    """Results of all stages for some motions."""
    pairs = [(case, source) for case in cases for source in _sources_of(case, request)]
    expected = _expected(cases, motions, pool)
    names = dict.fromkeys(source for _, source in pairs if source not in sources.ANALYTIC)
    readers = [FILE, *dict.fromkeys(source.split("/")[0] for source in names)]
    audits = {(case.key, reader): _audit(case, expected[case.key], reader) for case in cases for reader in readers}
    exact = _evaluations([(case, source) for case, source in pairs if not sources.simulates(source)], motions)
    controlled = {case.key: case for case, source in pairs if sources.is_as_is(source)}
    controlled = {key: case for key, case in controlled.items() if isinstance(motions[key], Motion)}
    originals = {random_case(case).key: key for key, case in controlled.items()}
    stage = partial(_completed, pool)
    first = {**_in_order({**exact, **audits}), **_random_motions(controlled.values(), motions)}
    prepare = partial(_prepare_page, pool) if request.draws else nothing
    simulates = any(map(sources.simulates, names))
    results = stage(first, "exact sources and audits", nothing if simulates else prepare)
    repeats = {
        key: RandomRepeat(random_case(case), results[motion_key(case), RANDOM]) for key, case in controlled.items()
    }
    motions = {**motions, **{repeat.case.key: repeat.motion for repeat in repeats.values()}}
    efforts = _evaluations(_with_repeats(pairs, repeats), motions)
    results |= stage({pair: entry for pair, entry in efforts.items() if pair not in exact}, "simulations", prepare)
    output = RunOutput(
        motions={key: motion for key, motion in motions.items() if isinstance(motion, Motion)},
        outcomes=[_noting(results[key], repeats.get(key[0])) for key in efforts],
        audited=[row for key in audits for row in results[key]],
        resolutions={},
        beside=originals,
    )
    return output._replace(resolutions=_resolutions(output, request, pool))


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


def _random_motions(cases: Iterable[Case], motions: Motions) -> Mapping[tuple[Key, str], Task]:
    """The task of each random motion, by the key of the motion that it is beside."""
    moving = {motion_key(case): case for case in cases}
    return {
        (key, RANDOM): Task(random_motion_or_error, (case, motions[case.key]), WorkerFailure)
        for key, case in moving.items()
    }


def _in_order(entries: Mapping[tuple[Key, str], Any]) -> Mapping[tuple[Key, str], Any]:
    """Entries of each robot in turn, the inputs of every verdict first, those of an engine together."""
    robots = list(dict.fromkeys(case[0] for case, _ in entries))

    def place(key: tuple[Key, str]) -> tuple[int, bool, str]:
        case, name = key
        return robots.index(case[0]), name not in (sources.REFERENCE, FILE), name.split("/")[0]

    return {key: entries[key] for key in sorted(entries, key=place)}


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


def _evaluations(pairs: Iterable[tuple[Case, str]], motions: Motions) -> dict[tuple[Key, str], Task | Outcome]:
    """The task or outcome of each pair of case and source."""
    return {(case.key, source): _evaluation(case, motions[case.key], source) for case, source in pairs}


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


def _completed(
    pool: WorkerPool, entries: Mapping[tuple[Key, str], Any], description: str, meanwhile: Callable[[], None]
) -> dict[tuple[Key, str], Any]:
    """The entries with results for tasks."""
    tasks = {key: entry for key, entry in entries.items() if isinstance(entry, Task)}
    results = pool.results(list(tasks.values()), description, meanwhile)
    return {**entries, **dict(zip(tasks, results, strict=True))}


def _prepare_page(pool: WorkerPool) -> None:
    """Import the libraries of tables and page, here and in idle workers, and pack the library of every page."""
    pool.prepare((DRAWING, REPORT))
    for name in (REPORT, "jinja2", "tabulate"):
        import_module(name)
    plotly_script()


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
