"""Every source and every audit of some cases, computed in worker processes and collected in tables."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

from loopcheck.robots.logs.log_files import write_log
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.collect import collect
from loopcheck.validation.check.efforts.outcome import Outcome, Unmodified
from loopcheck.validation.check.reactions import reaction_tables
from loopcheck.validation.check.record import Request, RunOutput
from loopcheck.validation.check.report import SECTIONS
from loopcheck.validation.check.sections.reactions import reactions_section
from loopcheck.validation.check.sections.verdicts import verdicts
from loopcheck.validation.check.stages import run_stages
from loopcheck.validation.check.terminal import summary, title
from loopcheck.validation.common import sources
from loopcheck.validation.common.results import TABLES, Results
from loopcheck.validation.common.tolerances import with_own_limits
from loopcheck.validation.common.verdicts import Key, exit_verdicts
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec
from loopcheck.validation.execution.workers import ALL_CORES, WorkerPool, Workers, worker_pool
from loopcheck.validation.frame.preload import PRELOAD
from loopcheck.validation.frame.study import Computed, Conclusion, Study, StudyResult, computed, ignore
from loopcheck.validation.report.blocks import Section

LOGS = "logs"
"""Folder of the logs behind simulations as they are."""
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
    reactions: bool = False
    """Whether to compute the forces in the joints."""
    draws: bool = True
    """Whether a report is written: imports the drawing modules."""
    publish: Callable[[Computed], None] = ignore
    """Takes the tables without those simulations that are still running."""

    def publishing(self, publish: Callable[[Computed], None]) -> "Check":
        """See `Study.publishing`."""
        return replace(self, publish=publish)

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`; a motion that cannot be assembled is bad input, unless it is expected."""
        groups = sources.groups(self.sources)
        request = Request(
            dt=self.dt,
            tolerances=with_own_limits(self.limits),
            requested=tuple(map(frozenset, groups)),
            names=tuple(chain.from_iterable(groups)),
            absent=() if self.sources else sources.absent_engines(),
            motions=self.motions,
            reactions=self.reactions,
            draws=self.draws,
            publish=lambda output: self.publish(self._tables(output, request)),
        )
        output = run_stages(self.cases, request, pool)
        if self.writes_logs:
            _write_logs(output.outcomes, folder / LOGS)
        tables = self._tables(output, request)
        if self.reactions:
            loads = reaction_tables(self.cases, output, output.evidence(request), pool, tables.tables["summary"])
            tables = tables._replace(tables={**tables.tables, **loads})
        for robot, twin in _closed_twins(self, pool).items():
            tables.record["robots"][robot]["closed_twin"] = twin
        return tables

    def _tables(self, output: RunOutput, request: Request) -> Computed:
        results = collect(self.cases, output, request)
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


def _sections(results: Results) -> Iterator[Section]:
    """The page; its modules are imported here, after the output of the summary."""
    for section in SECTIONS:
        yield section(results)
        if section is verdicts:
            yield from reactions_section(results)


def results_of(result: StudyResult) -> Results:
    """The tables of a run by their names."""
    return Results(**result.tables, run=result.record)


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


def _write_logs(outcomes: Iterable[Outcome], folder: Path) -> None:
    """Write the log behind each simulation as it is, for `judge` to take it again."""
    for outcome in outcomes:
        if isinstance(outcome, Unmodified) and outcome.history.as_is is not None:
            folder.mkdir(parents=True, exist_ok=True)
            log = outcome.history.as_is.log
            write_log(log, folder / f"{re.sub(NO_NAME, '_', log.name)}.csv")
