"""Catalogue, atlas, noisy logs and known issues, all computed from one state of the code."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from rich.console import RenderableType

from loopcheck.engines import engine_names
from loopcheck.robots.robot import Case
from loopcheck.validation.common.known_issues import REPRODUCED_BY, Issue
from loopcheck.validation.common.verdicts import CASE, summary_verdicts
from loopcheck.validation.execution.code_state import code_digest
from loopcheck.validation.execution.environments import engine_versions
from loopcheck.validation.execution.folders import ROOT
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec, integer, table_of, text, write_tables
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.frame.study import Computed, Conclusion, Study, StudyResult, computed
from loopcheck.validation.report.blocks import Section, table
from loopcheck.validation.report.terminal import table as terminal_table
from loopcheck.validation.studies.evidence.noisy_logs import ENCODERS, SAMPLINGS, SENSORS, Draws, judged_draws

TABLE = "evidence"
CATALOGUE, ATLAS, LOGS, ISSUES = PARTS = ("catalogue", "atlas", "logs", "known-issues")
AT_ONCE = 20
"""Number of noisy logs in a task [-]."""
BEHIND_ROWS = tuple(
    f"loopcheck.validation.{name}"
    for name in (
        "comparison.evaluate",
        "comparison.compare",
        "comparison.audit",
        "comparison.resolution",
        "comparison.logs",
        "studies.atlas.reading",
        "studies.tune.judged_run",
    )
)
"""Modules of `validation` on which the rows depend."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence(Study):
    """All rows that the documents state. The parts `catalogue` and `atlas` have folders with tables of their own."""

    name: ClassVar[str] = "evidence"
    page: ClassVar[str] = "evidence"
    tables: ClassVar[Mapping[str, TableSpec]] = {
        TABLE: table_of(
            {
                **{name: text() for name in ("part", "subject", "verdict")},
                "count": integer(),
                "stored": integer(),
                "note": text(),
            }
        )
    }

    studies: Mapping[str, Study]
    """The studies of the parts `catalogue` and `atlas`."""
    logged: Sequence[Case] = ()
    """Cases of the noisy logs."""
    draws: int = 200
    """Number of noisy logs of a case for each of four combinations of sensors and each sampling."""
    issues: Sequence[Issue] = ()
    """Known issues to be reproduced."""
    command: Sequence[str] = ()
    """The command line, recorded with each part."""

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`."""
        rows: list[Mapping[str, Any]] = []
        code = {"code": code_digest(BEHIND_ROWS)}
        for part, study in self.studies.items():
            place = folder / part
            place.mkdir(parents=True, exist_ok=True)
            result = computed(study, place, pool, self.command)
            write_tables(place, study.tables, result.tables, {**result.record, **code})
            rows += _counts(part, result)
        rows += self._noisy_logs(pool)
        rows += self._known_issues(pool)
        return Computed({TABLE: self.tables[TABLE].frame(rows)}, code)

    def _noisy_logs(self, pool: WorkerPool) -> Iterator[Mapping[str, Any]]:
        blocks = [range(k, min(k + AT_ONCE, self.draws)) for k in range(0, self.draws, AT_ONCE)]
        draws = list(product(product(ENCODERS, SENSORS), SAMPLINGS, blocks))
        keys = [(case, *draw) for case in self.logged for draw in draws]
        results = pool.results([Task(judged_draws, key, str) for key in keys], "noisy logs")
        for case in self.logged:
            of_case = [(key[3], result) for key, result in zip(keys, results, strict=True) if key[0] is case]
            completed = [result for _, result in of_case if isinstance(result, Draws)]
            failed = [(block, result) for block, result in of_case if isinstance(result, str)]
            row = {"part": LOGS, "subject": case.robot.name, "stored": 0}
            number, false = sum(len(one.rms) for one in completed), sum(one.false for one in completed)
            caught, doubted = (sum(getattr(one, name) for one in completed) for name in ("caught", "doubted"))
            note = f"{caught} of {number} faults of three floors detected, {doubted} suspected of a defect"
            yield (
                {**row, "verdict": "disagree", "count": false, "note": "false verdicts"}
                if false
                else {
                    **row,
                    "verdict": "agree",
                    "count": number,
                    "note": note,
                }
            )
            if failed:
                yield {
                    **row,
                    "verdict": "not run",
                    "count": sum(len(block) for block, _ in failed),
                    "note": failed[0][1],
                }

    def _known_issues(self, pool: WorkerPool) -> Iterator[Mapping[str, Any]]:
        tests = ROOT / REPRODUCED_BY
        here = [issue for issue in self.issues if issue.engine in engine_versions() and tests.is_file()]
        tasks = [Task(reproduced, (issue.key, tests), partial(_lost, issue.key)) for issue in here]
        outcomes = dict(zip((issue.key for issue in here), pool.results(tasks, "known issues"), strict=True))
        for issue in self.issues:
            verdict, note = outcomes.get(issue.key) or ("not run", f"{issue.engine} or the tests are not installed")
            yield {"part": ISSUES, "subject": issue.key, "verdict": verdict, "count": 1, "stored": 0, "note": note}

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        rows = result.tables[TABLE]
        return Conclusion(
            title="loopcheck: evidence",
            sections=[Section(title="Rows by verdict", anchor="evidence", blocks=[_state(result), table(rows)])],
            summary=[*_summary(rows), _state(result)],
            verdicts=list(rows.loc[rows["count"] > 0, "verdict"]),
        )


STUDY = Evidence


def reproduced(key: str, tests: Path) -> tuple[str, str]:
    """Verdict on a known issue and the last line of its test; runs in a worker process.

    Args:
        key: Name of the issue.
    """
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tests), "-k", key]
    done = subprocess.run(command, cwd=tests.parents[2], capture_output=True, text=True, check=False)
    line = (done.stdout.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    if done.returncode == 0 and " passed" in line and "skipped" not in line:
        return "agree", line
    return ("disagree" if done.returncode == 1 else "not run"), line


def _lost(_: str, reason: str) -> tuple[str, str]:
    return "not run", reason


def _counts(part: str, result: StudyResult) -> Iterator[Mapping[str, Any]]:
    """Number of cases and routes by engine and verdict, beside the number in the documents of a checkout."""
    summary, documents = result.tables["summary"], ROOT / "docs" / part / "summary.csv"
    now, stored = _by_engine(summary, result.record), Counter[tuple[str, str]]()
    if documents.is_file():
        old = pd.read_csv(documents, dtype=dict.fromkeys((*CASE, "source"), str)).assign(note="")
        stored = _by_engine(old[old["robot"].isin(summary["robot"])], result.record)
    for engine, verdict in sorted(now | stored):
        row = {"part": part, "subject": engine, "verdict": verdict, "note": ""}
        yield {**row, "count": now[engine, verdict], "stored": stored[engine, verdict]}


def _by_engine(summary: pd.DataFrame, record: Mapping[str, Any]) -> Counter[tuple[str, str]]:
    findings = summary_verdicts(summary, record.get("robots", {})).values()
    pairs = [(source.split("/")[0], finding.verdict) for of_case in findings for source, finding in of_case.items()]
    return Counter(pair for pair in pairs if pair[0] in engine_names())


def _state(result: StudyResult) -> str:
    return f"computed from {result.record['commit']}, code {result.record['code'][:12]}"


def _summary(rows: pd.DataFrame) -> Iterator[RenderableType]:
    columns = list(rows)
    yield terminal_table(columns, [list(map(str, row)) for row in rows.to_numpy(object)], title="evidence")
