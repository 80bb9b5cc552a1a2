"""Speed of batches of inverse dynamics, compared with other implementations."""

import importlib.util
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import pandas as pd
from rich.console import RenderableType

from loopcheck.robots.robot import Case, load, representative_case
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec, integer, number, table_of, text
from loopcheck.validation.execution.workers import WorkerFailure, WorkerPool
from loopcheck.validation.judge.verdicts import verdict_of_figure
from loopcheck.validation.report.terminal import table as terminal_table
from loopcheck.validation.studies.speed.measure import (
    REPETITIONS,
    ROBOTS,
    SAMPLES,
    chain_rows,
    few_rows,
    harness_rows,
    robot_rows,
    sample_rows,
)
from loopcheck.validation.studies.speed.startup import startup_rows
from loopcheck.validation.studies.study import Computed, Conclusion, Study, StudyResult

TABLE = "bench"
STARTED = "four_bar"
"""Robot of the measurement of the response time."""
PACKAGES = {"llvmlite": "llvmlite", "pin": "pinocchio"}
"""Module of each measured package, besides the packages of every record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed(Study):
    """All figures, measured in turns, so that a busy machine slows all alike; stored figures are not measured again."""

    name: ClassVar[str] = "speed"
    page: ClassVar[str] = ""
    tables: ClassVar[dict[str, TableSpec]] = {
        TABLE: table_of(
            {
                **{name: text() for name in ("study", "subject", "quantity", "unit")},
                "size": integer(),
                **{name: number("the column unit") for name in ("lowest", "median", "highest")},
                "note": text(),
            }
        )
    }

    cases: Sequence[Case] = ()
    """Robots; by default with registered speeds."""
    samples: int = SAMPLES
    """Samples of the compared batch."""
    chain: int = 50
    """Number of four-bars in the longest chain."""

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`."""
        cases = [*self.cases] or [representative_case(load(name)) for name in ROBOTS]
        lengths = [n for n in (1, 2, 5, 10, 20, 50, 100, 200) if n <= self.chain]
        tasks = [
            *(Task(robot_rows, (case, self.samples), WorkerFailure) for case in cases),
            *(Task(few_rows, (case,), WorkerFailure) for case in cases),
            *(Task(harness_rows, (case,), WorkerFailure) for case in cases),
            *(Task(sample_rows, (case,), WorkerFailure) for case in cases[:1]),
            Task(chain_rows, (lengths,), WorkerFailure),
        ]
        results = pool.results(tasks, "bench")
        alone = [Task(startup_rows, (representative_case(load(STARTED)),), WorkerFailure)]  # as it takes all cores
        results += pool.results(alone, "start-up")
        rows = [{"note": "", **row} for rows in results if not isinstance(rows, WorkerFailure) for row in rows]
        packages = {name: version(name) for name, module in PACKAGES.items() if find_spec(module)}
        record = {
            "packages": packages,
            "clock": "CPU time of one core; of start-up, wall time",
            "repetitions": REPETITIONS,
        }
        return Computed({TABLE: self.tables[TABLE].frame(rows)}, record)

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        figures = result.tables[TABLE]
        return Conclusion(
            title="loopcheck: bench",
            sections=[],
            summary=[*_summary(figures), f"figures: {result.folder / 'speed.csv'}"],
            verdicts=[verdict_of_figure(median, "not run") for median in figures["median"]],
        )


STUDY = Speed


def _summary(figures: pd.DataFrame) -> Iterator[RenderableType]:
    """Each figure with its spread, and the missing figures."""
    columns = ["quantity", "size", "lowest", "median", "highest", "unit"]
    for (study, subject), of_subject in figures.groupby(["study", "subject"], sort=False):
        rows = (
            [
                row["quantity"],
                str(row["size"]),
                *(f"{row[part]:.3g}" for part in ("lowest", "median", "highest")),
                f"{row['unit']} {row['note']}",
            ]
            for row in of_subject.to_dict(orient="records")
        )
        yield terminal_table(columns, rows, title=f"{study}: {subject}")
    if importlib.util.find_spec("pinocchio") is None:
        yield "not measured: Pinocchio is not installed: pip install 'loopcheck[bench]'"
    if importlib.util.find_spec("llvmlite") is None:
        yield "measured in numpy: llvmlite is not installed: pip install 'loopcheck[fast]'"
