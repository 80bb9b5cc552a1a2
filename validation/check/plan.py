"""What a check computes along some motions: its tasks, and the results so far."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple, TypeAlias

from loopcheck.robots.efforts import Limits
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.audit.audit import ExpectedTerms, Row, audit, blocking_reasons, doubts, failed_row
from loopcheck.validation.check.efforts.compare import verdict_rows
from loopcheck.validation.check.efforts.evaluate import (
    RANDOM,
    evaluate,
    motion_key,
    random_case,
    random_motion_or_error,
)
from loopcheck.validation.check.efforts.outcome import Failed, Outcome
from loopcheck.validation.check.efforts.rules import Evidence
from loopcheck.validation.check.record import Request, RunOutput
from loopcheck.validation.common import sources
from loopcheck.validation.common.verdicts import FILE, Key, verdict_of
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.workers import WorkerFailure, WorkerPool
from loopcheck.validation.report.blocks import two_digits

Failure: TypeAlias = HarnessError | WorkerFailure
"""Reason for a missing result."""
Motions: TypeAlias = Mapping[Key, Motion | Failure]
"""The motion of each case, or the reason for its absence."""
Entry: TypeAlias = tuple[Key, str]
"""Case and source, or case and engine of an audit; motion and `RANDOM`."""
RUNNING = "still running when this page was written"
"""Note of a source whose result is missing in the first page."""


class RandomRepeat(NamedTuple):
    """A case on its random motion."""

    case: Case
    motion: Motion | Failure
    """The motion, or the reason without a motion."""


class Plan:
    """The tasks of a check along some motions, in the order in which workers should begin them, and their results.

    First what does not simulate, and the audits; then random motions, then simulations. Unmodified simulations are
    repeated on a random motion, as a controller may follow one by chance, as soon as that motion is there.
    """

    def __init__(
        self, cases: Sequence[Case], motions: Motions, expected: Mapping[Key, ExpectedTerms | Failure], request: Request
    ) -> None:
        """For cases with their motions and the reference of their audits, or the reasons for their absence."""
        self._motions = dict(motions)
        self._pairs = [(case, source) for case in cases for source in _sources_of(case, request)]
        names = dict.fromkeys(source for _, source in self._pairs if source not in sources.ANALYTIC)
        readers = [FILE, *dict.fromkeys(source.split("/")[0] for source in names)]
        self._audits = {
            (case.key, reader): _audit(case, expected[case.key], reader) for case in cases for reader in readers
        }
        controlled = {case.key: case for case, source in self._pairs if sources.is_as_is(source)}
        self._controlled = {key: case for key, case in controlled.items() if isinstance(motions[key], Motion)}
        self._repeats: dict[Key, RandomRepeat] = {}
        self.originals = {random_case(case).key: key for key, case in self._controlled.items()}
        """Original case of each case on a random motion."""
        self._keys: list[Entry] = []
        self._tasks: list[Task] = []
        self._results: dict[Entry, Any] = {}
        self._missing: set[Entry] = set()
        efforts = {
            (case.key, source): _evaluation(
                case, motions[case.key], source, request.limits_of(source), request.reactions
            )
            for case, source in self._pairs
        }
        exact = {entry: task for entry, task in efforts.items() if not sources.simulates(entry[1])} | self._audits
        self._exact = frozenset(exact)
        self._add(_in_order(exact))
        self._add(_random_motions(self._controlled.values(), motions))
        self._add({entry: task for entry, task in efforts.items() if entry not in exact})

    @property
    def simulates(self) -> bool:
        """Whether a source is a simulation."""
        return any(sources.simulates(source) for _, source in self._pairs)

    @property
    def is_exact(self) -> bool:
        """Whether the results of all that does not simulate are there."""
        return not self._exact & self._missing

    @property
    def is_complete(self) -> bool:
        """Whether all results are there."""
        return not self._missing

    def results(self, pool: WorkerPool, meanwhile: Callable[[], None]) -> Iterator[tuple[Entry, Any]]:
        """Each result as it comes.

        Args:
            pool: Workers.
            meanwhile: Work of this process while they begin; only called if something must be computed.
        """
        repeated = sum(case.key in self._controlled for case, source in self._pairs if sources.is_as_is(source))
        expected = len(self._tasks) + len(self._controlled) + repeated
        for k, result in pool.completed(self._tasks, "sources and audits", meanwhile, expected):
            entry = self._keys[k]
            self._results[entry] = result
            self._missing.discard(entry)
            if entry[1] == RANDOM:
                self._repeat(entry[0], result)
            yield entry, result

    def first_verdict(self, request: Request) -> str:
        """An agreement on what is there so far, in words; empty without one."""
        for (case, source), outcome in self._results.items():
            reference = self._results.get((case, sources.REFERENCE))
            if not isinstance(outcome, Outcome) or reference is None or source == sources.REFERENCE:
                continue
            readers = {FILE, *({source.split("/")[0]} if source not in sources.ANALYTIC else ())}
            if any((case, reader) not in self._results for reader in readers):
                continue
            known = [row for reader in readers for row in self._results[case, reader]]
            evidence = Evidence(
                tolerances=request.tolerances, blocking_reasons=blocking_reasons(known), doubts=doubts(known)
            )
            finding = verdict_of(verdict_rows(outcome, reference, evidence))
            if finding.verdict == "agree":
                return f"{source} agrees with the reference to {two_digits(finding.error)} of the effort scale"
        return ""

    def output(self) -> RunOutput:
        """The results so far, once those of all that does not simulate are there."""
        outcomes = []
        for case, source in self._with_repeats():
            running = Failed(case=case, source=source, verdict="not run", note=RUNNING)
            outcome = self._results.get((case.key, source), running)
            outcomes.append(_noting(outcome, self._repeats.get(case.key)))
        return RunOutput(
            motions={key: motion for key, motion in self._motions.items() if isinstance(motion, Motion)},
            outcomes=outcomes,
            audited=[row for entry in self._audits for row in self._results[entry]],
            resolutions={},
            beside=self.originals,
        )

    def _add(self, entries: Mapping[Entry, Any]) -> None:
        """Add tasks, and results that need none."""
        for entry, task in entries.items():
            if isinstance(task, Task):
                self._keys.append(entry)
                self._tasks.append(task)
                self._missing.add(entry)
            else:
                self._results[entry] = task

    def _repeat(self, motion: Key, random: Motion | Failure) -> None:
        """Take the random motion beside a motion, and repeat the unmodified simulations on it."""
        for key, case in self._controlled.items():
            if motion_key(case) != motion:
                continue
            repeat = self._repeats[key] = RandomRepeat(random_case(case), random)
            self._motions[repeat.case.key] = random
            if isinstance(random, Motion):
                names = (source for one, source in self._pairs if one.key == key and _is_repeated(source))
                self._add({(repeat.case.key, name): _evaluation(repeat.case, random, name) for name in names})

    def _with_repeats(self) -> Iterator[tuple[Case, str]]:
        """Pairs of case and source; those of a case are followed by those on its random motion."""
        for key, of_case in groupby(self._pairs, key=lambda pair: pair[0].key):
            several = list(of_case)
            yield from several
            repeat = self._repeats.get(key)
            if repeat is not None and isinstance(repeat.motion, Motion):
                yield from ((repeat.case, source) for _, source in several if _is_repeated(source))


def verdict_and_note(failure: Failure) -> tuple[str, str]:
    """Verdict and note for a failed computation."""
    return ("not run", failure.reason) if isinstance(failure, WorkerFailure) else ("not comparable", str(failure))


def _sources_of(case: Case, request: Request) -> tuple[str, ...]:
    """The sources to run, the reference always and first."""
    return tuple(dict.fromkeys((sources.REFERENCE, *(request.names or sources.names(case.robot)))))


def _is_repeated(source: str) -> bool:
    """Whether a source runs on random motions too."""
    return source == sources.REFERENCE or sources.is_as_is(source)


def _random_motions(cases: Iterable[Case], motions: Motions) -> Mapping[Entry, Task]:
    """The task of each random motion, by the key of the motion that it is beside."""
    moving = {motion_key(case): case for case in cases}
    return {
        (key, RANDOM): Task(random_motion_or_error, (case, motions[case.key]), WorkerFailure)
        for key, case in moving.items()
    }


def _in_order(entries: Mapping[Entry, Any]) -> Mapping[Entry, Any]:
    """Entries of each robot in turn, the inputs of every verdict first, those of an engine together."""
    robots = list(dict.fromkeys(case[0] for case, _ in entries))

    def place(key: Entry) -> tuple[int, bool, str]:
        case, name = key
        return robots.index(case[0]), name not in (sources.REFERENCE, FILE), name.split("/")[0]

    return {key: entries[key] for key in sorted(entries, key=place)}


def _evaluation(
    case: Case, motion: Motion | Failure, source: str, limits: Limits | None = None, reactions: bool = False
) -> Task | Outcome:
    """The task of computing a source, or its outcome without a motion."""

    def without(verdict: str, note: str) -> Outcome:
        return Failed(case=case, source=source, verdict=verdict, note=note)

    if not isinstance(motion, Motion):
        return without(*verdict_and_note(motion))
    return Task(
        evaluate,
        (case, motion, source, limits, reactions and sources.simulates(source)),
        partial(without, "not run"),
        is_kept=lambda outcome: not (isinstance(outcome, Failed) and outcome.verdict == "not run"),
        engine=sources.engine_of(source),
    )


def _audit(case: Case, expected: ExpectedTerms | Failure, engine: str) -> Task | list[Row]:
    """The task of auditing an engine, or its rows without a reference."""

    def without(verdict: str, note: str) -> list[Row]:
        return [failed_row(case.key, engine, verdict, note)]

    if not isinstance(expected, ExpectedTerms):
        return without(*verdict_and_note(expected))
    return Task(
        audit,
        (case, expected, engine),
        partial(without, "not run"),
        is_kept=lambda rows: all(row["verdict"] != "not run" for row in rows),
        engine=engine,
    )


def _noting(outcome: Outcome, repeat: RandomRepeat | None) -> Outcome:
    """An unmodified simulation, with the reason for a missing random motion in its note."""
    if repeat is None or isinstance(repeat.motion, Motion) or not sources.is_as_is(outcome.source):
        return outcome
    _, reason = verdict_and_note(repeat.motion)
    return replace(outcome, note="; ".join(filter(None, (outcome.note, f"no random motion beside it: {reason}"))))
