"""Seeds every fault in every judged route of every robot: does the comparison notice?"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

from validation.execution.journal import Task
from validation.execution.tables import TableSpec, number, table_of, text
from validation.execution.workers import WorkerFailure, WorkerPool
from validation.judge import sources
from validation.judge.verdicts import FILE
from validation.studies.mutants.judge import FAULTS, cases_of, judge_named, judged, kill_rates, not_run, prepare_named
from validation.studies.mutants.report import sections, summary
from validation.studies.study import Computed, Conclusion, Study, StudyResult

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
"""Verdict on what came of a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutants(Study):
    """What came of every fault in every judged route."""

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

    robots: tuple[str, ...] = ()
    """Names of robots; by default all."""

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`."""
        faults, cases = tuple(fault.key for fault in FAULTS), cases_of(self.robots)
        prepared = pool.results([Task(prepare_named, (case, faults), WorkerFailure) for case in cases], "motions")
        pairs = [
            (case, ready, source)
            for case, ready in zip(cases, prepared, strict=True)
            for source in (*judged(case), FILE)
        ]
        seeded = iter(
            pool.results(
                [
                    Task(
                        judge_named,
                        (ready, source, faults),
                        partial(not_run, case, source, faults),
                        engine=sources.engine_of(source),
                    )
                    for case, ready, source in pairs
                    if not isinstance(ready, WorkerFailure)
                ],
                "mutants",
            )
        )
        rows = [
            row
            for case, ready, source in pairs
            for row in (
                not_run(case, source, faults, ready.reason) if isinstance(ready, WorkerFailure) else next(seeded)
            )
        ]
        return Computed({TABLE: self.tables[TABLE].frame(rows)})

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        rows = result.tables[TABLE]
        return Conclusion(
            title="loopcheck: mutants",
            sections=sections(rows),
            summary=list(summary(rows)),
            last=[f"report: {result.folder / 'mutants.html'}"],
            verdicts=[VERDICTS[came] for came in rows["result"]],
            tables={"kill_rates": kill_rates(rows)},
        )


STUDY = Mutants
