"""Seeds every fault in every judged route of every robot: does the comparison notice?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from loopcheck import engines
from loopcheck.robots.errors import NotFoundError
from loopcheck.robots.robot import Case
from loopcheck.validation.comparison import sources
from loopcheck.validation.comparison.verdicts import FILE
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec, number, table_of, text
from loopcheck.validation.execution.workers import WorkerFailure, WorkerPool
from loopcheck.validation.studies.mutants import misreadings
from loopcheck.validation.studies.mutants.detection import (
    compared_sources,
    has_tolerance,
    kill_rates,
    not_run,
    prepare,
    rows_of_faults,
)
from loopcheck.validation.studies.mutants.faults import FAULTS
from loopcheck.validation.studies.mutants.report import sections, summary
from loopcheck.validation.studies.study import Computed, Conclusion, Study, StudyResult

TABLE = "mutants"
VERDICTS: Mapping[str, str] = {
    "killed": "agree",
    "refused": "agree",
    "shared": "agree",
    "survived": "disagree",
    "broken": "not run",
    "not run": "not run",
    "below tolerance": "informational",
    "not carried": "informational",
}
"""Verdict on the result of a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutants(Study):
    """Detection of every fault in every judged route."""

    name: ClassVar[str] = "mutants"
    page: ClassVar[str] = "mutants"
    tables: ClassVar[dict[str, TableSpec]] = {
        TABLE: table_of(
            {
                **{name: text() for name in ("robot", "mode", "configuration", "source", "mutant", "fault")},
                "result": text(tuple(VERDICTS)),
                "verdict": text(),
                **{name: number() for name in ("relative_error", "effect", "tolerance", "noise")},
                "note": text(),
            }
        )
    }

    cases: Sequence[Case]
    routes: tuple[str, ...] = ()
    """Names of routes; by default all judged routes, and the unmodified routes that need no explicit name."""

    def __post_init__(self) -> None:
        known = [
            name for name in (*sources.ANALYTIC, *engines.names()) if sources.is_as_is(name) or has_tolerance(name)
        ]
        for name in self.routes:
            if name not in known:
                raise NotFoundError("source that faults are seeded in", name, known)

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`."""
        pairs = [(case, source) for case in self.cases for source in self._sources(case)]
        compared = {case.key: case for case, source in pairs if source == FILE or not sources.is_as_is(source)}
        motions = [Task(prepare, (case, FAULTS), WorkerFailure) for case in compared.values()]
        prepared = dict(zip(compared, pool.results(motions, "motions"), strict=True))
        tasks = [_task(case, source, prepared.get(case.key)) for case, source in pairs]
        seeded = iter(pool.results([task for task in tasks if isinstance(task, Task)], "mutants"))
        rows = [row for task in tasks for row in (next(seeded) if isinstance(task, Task) else task)]
        return Computed({TABLE: self.tables[TABLE].frame(rows)})

    def _sources(self, case: Case) -> list[str]:
        """Sources with seeded faults: compared routes, the robot's files, and unmodified simulations."""
        if not self.routes:
            return [*compared_sources(case), FILE, *misreadings.routes(case)]
        as_they_are = [name for name in self.routes if sources.is_as_is(name)]
        compared = [name for name in self.routes if name not in as_they_are]
        return [*compared, *([FILE] if compared else []), *as_they_are]

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        rows = result.tables[TABLE]
        return Conclusion(
            title="loopcheck: mutants",
            sections=sections(rows),
            summary=list(summary(rows)),
            verdicts=[VERDICTS[came] for came in rows["result"]],
            tables={"kill_rates": kill_rates(rows)},
        )


def _task(case: Case, source: str, ready: Any) -> Task | list[Mapping[str, Any]]:
    """The task that seeds the faults of a source, or its rows without a motion."""
    if source != FILE and sources.is_as_is(source):
        without = partial(misreadings.not_run, case, source)
        return Task(misreadings.rows_of_misreadings, (case, source), without, engine=sources.engine_of(source))
    if isinstance(ready, WorkerFailure):
        return not_run(case, source, FAULTS, ready.reason)
    without = partial(not_run, case, source, FAULTS)
    return Task(rows_of_faults, (ready, source, FAULTS), without, engine=sources.engine_of(source))


STUDY = Mutants
