"""Published free motions: analytic forward dynamics and the engines' own solvers against published numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import pandas as pd

from loopcheck.validation.common.sources import engine_of
from loopcheck.validation.common.verdicts import verdict_of_figure
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec, number, table_of, text
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.frame.study import Computed, Conclusion, Study, StudyResult
from loopcheck.validation.report.blocks import Section, table
from loopcheck.validation.report.terminal import error_table
from loopcheck.validation.studies.free_motion.benchmark import benchmark_names, load_benchmark
from loopcheck.validation.studies.free_motion.measure import (
    ANALYTIC,
    free_engines,
    measure,
    settings_of,
    ways,
    without_motion,
)

TABLE = "benchmarks"


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeMotion(Study):
    """Errors of every source at the published instants, and the drift of its energy."""

    name: ClassVar[str] = "free_motion"
    page: ClassVar[str] = "free_motion"
    tables: ClassVar[dict[str, TableSpec]] = {
        TABLE: table_of(
            {
                "benchmark": text(),
                "source": text(),
                "t": number("s"),
                "quantity": text(),  # with the unit of its error
                "error": number("that of the quantity"),
                "wall_time": number("s"),
                "note": text(),
            }
        )
    }

    robots: tuple[str, ...] = ()
    """Names of robots with a benchmark; by default all robots with a benchmark."""

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`."""
        benchmarks = [load_benchmark(name) for name in self.robots or benchmark_names()]
        pairs = [(benchmark, source) for benchmark in benchmarks for source in ways()]
        tasks = [Task(measure, pair, partial(without_motion, *pair), engine=engine_of(pair[1])) for pair in pairs]
        rows = pool.results(tasks, "benchmarks")
        settings = pool.results([Task(settings_of, (name,), str, engine=name) for name in free_engines()], "settings")
        table = self.tables[TABLE].frame([row for of_pair in rows for row in of_pair])
        return Computed({TABLE: table}, {"settings": settings})

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        rows = result.tables[TABLE]
        by_name = {str(name): of_name for name, of_name in rows.groupby("benchmark", sort=False)}
        matrices = [
            error_table(matrix(of_name).set_index("source"), title=f"{name}: error")
            for name, of_name in by_name.items()
        ]
        return Conclusion(
            title="loopcheck: published free motions",
            sections=[
                _introduction(result.record["settings"]),
                *(_part(name, of_name) for name, of_name in by_name.items()),
            ],
            summary=list(matrices),
            verdicts=[verdict_of_figure(error, "not run") for error in rows["error"]],
        )


STUDY = FreeMotion


def _part(name: str, rows: pd.DataFrame) -> Section:
    """Published values of a motion, and the errors of each source."""
    benchmark = load_benchmark(name)
    return Section(
        title=name,
        anchor=f"benchmark-{name}",
        blocks=[
            benchmark.source + ".",
            *(f"At t = {instant.t:g} s: {instant.origin}." for instant in benchmark.instants),
            table(matrix(rows)),
            [f"{row['source']}: {row['note']}" for row in rows[rows["note"] != ""].to_dict("records")],
        ],
    )


def _introduction(settings: Sequence[str]) -> Section:
    return Section(
        title="Method",
        anchor="benchmarks",
        blocks=[
            "Each robot moves under constant efforts from the same initial state. The numbers are the largest errors "
            "relative to published results, and the largest error of the energy at eleven instants.",
            [
                f"{ANALYTIC}: order 8 with error control, loops closed at every evaluation",
                *settings,
            ],
        ],
    )


def matrix(rows: pd.DataFrame) -> pd.DataFrame:
    """A row for each source, a column for each quantity of one benchmark."""
    quantity = rows["quantity"] + rows["t"].map(" at {:g} s".format)
    wide = rows.assign(quantity=quantity).set_index(["source", "quantity"])["error"]
    return wide.unstack("quantity", sort=False).reset_index()
