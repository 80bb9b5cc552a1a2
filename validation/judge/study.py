"""Logs of a robot held against the equations of the closed loop, in the tables and the report of a run."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import pandas as pd

from loopcheck.analytic.motion.laws import RECORDED
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import EffortHistory
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.logs.log_description import in_words
from loopcheck.robots.logs.log_files import read_log
from loopcheck.robots.logs.log_tables import files_of_log
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, MotionSpec
from loopcheck.robots.size import size_in_motion
from loopcheck.validation.check.collect import collect
from loopcheck.validation.check.efforts.outcome import Failed, Outcome, Ran, Reference
from loopcheck.validation.check.record import Request, RunOutput
from loopcheck.validation.check.study import results_of
from loopcheck.validation.check.terminal import title
from loopcheck.validation.common import sources
from loopcheck.validation.common.results import TABLES, Results, table
from loopcheck.validation.common.tolerances import Tolerance, registered
from loopcheck.validation.common.verdicts import CASE, exit_verdicts
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec, number, table_of, text
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.frame.study import Computed, Conclusion, Study, StudyResult, ignore
from loopcheck.validation.judge.causes import has_causes, with_causes
from loopcheck.validation.judge.logs import JudgedLog, LogOptions, fit_rows, judge_log, log_rows, summary_rows
from loopcheck.validation.judge.report import sections
from loopcheck.validation.judge.terminal import hints, summary
from loopcheck.validation.report.blocks import Section

LOGS, FITS = "logs", "fits"
MOST_ROWS = 2000
"""Samples of a log in the tables, evenly spread; all samples are judged [-]."""
MOST_NUMBERS = 20_000
"""Positions of a log in the tables [-]."""
FEWEST_ROWS = 8
"""Samples of a log in the tables of the first verdict [-]."""
LOG_TABLE = table_of(
    {
        **{name: text() for name in ("robot", "variant", "mode", "configuration", "source", "actuator", "unit")},
        **{name: text() for name in ("effort_time", "assumed", "filter")},
        "dt": number("s"),
        "from": number("s"),
        "samples": number(),
        **{name: number() for name in ("rms", "largest", "rms_floor", "largest_floor", "noise", "truncation")},
        **{name: number() for name in ("scale", "divisor", "start_peak", "half_step_lag", "internal")},
        "shift": number("s"),
        **{name: number("m or rad") for name in ("gap", "moved")},
    }
)
FIT_TABLE = table_of(
    {
        **{name: text() for name in ("robot", "variant", "mode", "configuration", "source", "parameter", "unit")},
        "value": number(),
        "half_width": number(),
        "unbounded": number(),
        "alike": text(),
        "before": number(),
        "after": number(),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOutcome:
    """A log with the outcomes to compare."""

    case: Case
    """Case with the name of the log as its mode."""
    judged: JudgedLog | None
    """The judged log; None if its worker died."""
    reference: Outcome
    candidate: Outcome
    motion: Motion | None
    """Motion of the log; None if it cannot be judged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge(Study):
    """Comparison of every log with the efforts required by its own motion."""

    name: ClassVar[str] = "judge"
    page: ClassVar[str] = "report"
    has_first_verdict: ClassVar[bool] = True
    tables: ClassVar[Mapping[str, TableSpec]] = {**TABLES, LOGS: LOG_TABLE, FITS: FIT_TABLE}

    case: Case
    logs: Mapping[str, Path]
    """Files by names of the logs."""
    asked: LogOptions = field(default_factory=LogOptions)
    publish: Callable[[Computed], None] = ignore
    """Takes the tables before the search for causes."""

    def publishing(self, publish: Callable[[Computed], None]) -> "Judge":
        """See `Study.publishing`."""
        return replace(self, publish=publish)

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`; a log that does not fit the robot is bad input."""
        tasks = [
            Task(
                judge_file,
                (self.case, name, path, self.asked),
                partial(_lost, self.case, name),
                files_of_log(path),
            )
            for name, path in self.logs.items()
        ]
        outcomes: list[LogOutcome] = pool.results(tasks, "logs")
        disagreeing = [one for one in outcomes if one.judged and has_causes(one.judged, self.asked)]
        if disagreeing:
            self.publish(self.tables_of(outcomes, FEWEST_ROWS))
            search = [Task(searched, (self.case, one, self.asked), partial(_unsearched, one)) for one in disagreeing]
            found: list[LogOutcome] = pool.results(search, "causes")
            by_source = {one.candidate.source: one for one in found}
            outcomes = [by_source.get(one.candidate.source, one) for one in outcomes]
        return self.tables_of(outcomes)

    def tables_of(self, outcomes: Sequence[LogOutcome], most: int | None = None) -> Computed:
        """Tables and record of judged logs.

        Args:
            most: Samples of each log in the tables; by default `MOST_ROWS`.
        """
        results = results_of_logs(outcomes, self.asked, most)
        judged = [one.judged for one in outcomes if one.judged]
        tables = {
            **{name: getattr(results, name) for name in TABLES},
            LOGS: LOG_TABLE.frame([row for one in judged for row in log_rows(one)]),
            FITS: FIT_TABLE.frame([row for one in judged for row in fit_rows(one)]),
        }
        columns = {one.source: dict(one.log.columns) for one in judged}
        return Computed(tables, {**results.run, "accuracy": self.asked.accuracy, "columns": columns})

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        results = results_of(replace(result, tables={name: result.tables[name] for name in TABLES}))
        logs = result.tables[LOGS]
        return Conclusion(
            title=title(results),
            sections=_sections(results, logs, result.tables[FITS]),
            summary=list(summary(results, logs)),
            hints=list(hints(results)),
            verdicts=exit_verdicts(results),
        )


STUDY = Judge


def _sections(results: Results, logs: pd.DataFrame, fits: pd.DataFrame) -> Iterator[Section]:
    """The page; its modules are imported here, after the output of the summary."""
    yield from sections(results, logs, fits)


def judge_of_files(case: Case, logs: Sequence[Path], *, asked: LogOptions, names: Sequence[str] = ()) -> Judge:
    """The study of some log files.

    Args:
        case: Robot, mode and configuration of the logs.
        logs: Files of the logs.
        asked: Options of the judgement.
        names: Names of the logs, in their order; by default the names of the files.

    Raises:
        MechanismError: If two logs have the same name.
    """
    called = [*names, *(path.stem for path in logs[len(names) :])]
    for name in called:
        if called.count(name) > 1 or len(called) > len(logs):
            raise MechanismError(f"--name: the {len(logs)} logs must have different names, got {', '.join(called)}")
    return Judge(case=case, logs=dict(zip(called, (path.absolute() for path in logs), strict=True)), asked=asked)


def judge_file(case: Case, name: str, path: Path, asked: LogOptions) -> LogOutcome:
    """Read a log and judge it; runs in a worker process.

    Raises:
        HarnessError: If the file is bad or does not fit the robot; the message names the file.
    """
    log = read_log(path, case.mechanism, name=name, effort_time=asked.effort_time, side=asked.side)
    judged = judge_log(case, log, start=asked.start, fitted=asked.fitted, accuracy=asked.accuracy)
    return compared(judged)


def searched(case: Case, outcome: LogOutcome, asked: LogOptions) -> LogOutcome:
    """A judged log with the causes of its disagreement; runs in a worker process.

    Args:
        asked: Options of the judgement.
    """
    return replace(outcome, judged=with_causes(outcome.judged, case, asked) if outcome.judged else None)


def _unsearched(outcome: LogOutcome, _: str) -> LogOutcome:
    """A log whose search for causes was lost: its verdict stands."""
    return outcome


def compared(judged: JudgedLog) -> LogOutcome:
    """A judged log with its efforts and the reference's efforts as outcomes of a check."""
    case, name = judged.case, judged.source
    if not judged.residuals:
        return _without_efforts(case, name, "not comparable", judged.failure, judged)
    residual = judged.residuals[0]
    history = EffortHistory(
        source=name,
        actuators=tuple(actuator.name for actuator in case.mechanism.actuators),
        t=residual.motion.t,
        effort=residual.effort,
        settings={
            "filter": residual.filter.name,
            "efforts": in_words(residual.effort_time),
            "step of the log [s]": f"{judged.log.dt:g}",
            "written by": judged.log.source,
        },
    )
    return LogOutcome(
        case=case,
        judged=judged,
        reference=_reference(judged),
        candidate=Ran(case=case, source=name, history=history),
        motion=residual.motion,
    )


def _reference(judged: JudgedLog) -> Reference:
    """The required efforts of a log; audits of the reference judge its own motions, not the motion of a user."""
    residual = judged.residuals[0]
    history = EffortHistory(
        source=sources.REFERENCE,
        actuators=tuple(actuator.name for actuator in judged.case.mechanism.actuators),
        t=residual.motion.t,
        effort=residual.needed,
    )
    size = size_in_motion(judged.case.mechanism, residual.motion)
    return Reference(
        case=judged.case, source=sources.REFERENCE, history=history, required=judged.required[0], size=size
    )


def _lost(case: Case, name: str, reason: str) -> LogOutcome:
    """A log whose worker was lost."""
    moved = case.robot.model_copy(update={"motion": MotionSpec(law=RECORDED)})  # no mode of the robot has this name
    return _without_efforts(replace(case, mode=name, robot=moved), f"{sources.LOG}/{name}", "not run", reason, None)


def _without_efforts(case: Case, name: str, verdict: str, note: str, judged: JudgedLog | None) -> LogOutcome:
    reference, candidate = (
        Failed(case=case, source=source, verdict=verdict, note=note) for source in (sources.REFERENCE, name)
    )
    return LogOutcome(case=case, judged=judged, reference=reference, candidate=candidate, motion=None)


def results_of_logs(logs: Sequence[LogOutcome], asked: LogOptions, most: int | None = None) -> Results:
    """The tables of judged logs: the tables of a check, with a case for each log.

    Args:
        asked: Options of the judgement.
        most: Largest number of samples of a log in the tables; by default `MOST_ROWS`.
    """
    limits = {
        one.candidate.source: Tolerance(relative_error=asked.accuracy, reason="Accuracy requested by the user.")
        for one in logs
    }
    own = registered()
    without_audits = {"power_imbalance": None, "term_sum": None}
    own = {**own, sources.REFERENCE: own[sources.REFERENCE].model_copy(update=without_audits)}
    thin = [_thinned(one, most or MOST_ROWS) for one in logs]
    results = collect(
        [one.case for one in logs],
        RunOutput(
            motions={one.case.key: one.motion for one in thin if one.motion is not None},
            outcomes=[outcome for one in thin for outcome in (one.reference, one.candidate)],
            audited=[],
            resolutions={},
        ),
        Request(dt=None, tolerances={**own, **limits}),
    )
    silent = [one.candidate.source for one in logs if one.judged and not one.judged.log.has_efforts]
    efforts = results.efforts[~results.efforts["source"].isin(silent)]
    return replace(results, summary=_with_residuals(results.summary, logs, asked), efforts=efforts)


def _with_residuals(rows: pd.DataFrame, logs: Sequence[LogOutcome], asked: LogOptions) -> pd.DataFrame:
    """The summary with the verdicts on the residuals of all samples, and a row for each logged connection."""
    by_source = {
        one.candidate.source: {row["actuator"]: row for row in summary_rows(one.judged, asked)}
        for one in logs
        if one.judged
    }
    records = [{str(name): value for name, value in row.items()} for row in rows.to_dict("records")]
    judged, shared = [], {}
    for row in records:
        own = by_source.get(row["source"])
        shared[row["source"]] = {name: row[name] for name in (*CASE, "source", "reference")}
        if own is None or row["actuator"] in own:
            judged.append({**row, **(own or {}).pop(row["actuator"], {})})
    of_connections = [{**shared[source], **row} for source, own in by_source.items() for row in own.values()]
    return table("summary", [*judged, *of_connections])


def _thinned(one: LogOutcome, most: int) -> LogOutcome:
    """The same with no more samples, and no more numbers of the motion, than tables show."""
    motion = one.motion
    if motion is None:
        return one
    most = max(min(most, MOST_NUMBERS // motion.q.shape[1]), 1)
    if len(motion.t) <= most:
        return one
    stride = -(-len(motion.t) // most)

    def thin(values: Array) -> Array:
        return values[::stride]

    def thinned(outcome: Outcome) -> Outcome:
        if not isinstance(outcome, Ran):
            return outcome
        history = outcome.history
        return replace(outcome, history=replace(history, t=thin(history.t), effort=thin(history.effort)))

    fewer = replace(motion, t=thin(motion.t), q=thin(motion.q), qd=thin(motion.qd), qdd=thin(motion.qdd))
    return replace(one, motion=fewer, reference=thinned(one.reference), candidate=thinned(one.candidate))
