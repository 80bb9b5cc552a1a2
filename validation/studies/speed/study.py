"""Speed of batches of inverse dynamics, compared with other implementations."""

import importlib.util
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from rich.console import RenderableType

from loopcheck.robots.errors import HarnessError
from loopcheck.robots.robot import Case, load, representative_case
from loopcheck.validation.common import sources
from loopcheck.validation.common.verdicts import verdict_of_figure
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec, integer, number, table_of, text
from loopcheck.validation.execution.workers import WorkerFailure, WorkerPool
from loopcheck.validation.frame.study import Computed, Conclusion, Study, StudyResult
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

RUNS = 5
IMPORTS = "import mujoco, scipy.optimize, pandas, matplotlib.pyplot"
UNIT = f'python -c "{IMPORTS}"'
ANSWER = "Agreement: "
"""Marker of the line at the end of the answer."""


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


def startup_rows(case: Case) -> list[Mapping[str, Any]]:
    """Time of `loopcheck check` on a robot's file until its answer and its end, over that of the imports, in turns."""
    exact = [
        name
        for name in sources.names(case.robot)
        if not sources.simulates(name) and name.endswith(("/kkt", "/lagrange"))
    ]
    chosen: Mapping[str, Sequence[str]] = {"exact sources": [f"--source={name}" for name in exact], "all sources": []}
    unit, spent = np.zeros(RUNS), {name: np.zeros((RUNS, 2)) for name in chosen}
    for k in range(RUNS):
        unit[k] = waited([sys.executable, "-c", IMPORTS])[1]
        for name, options in chosen.items():
            with TemporaryDirectory() as folder:
                command = ["check", str(case.mechanism.model.path), *options, "--out", folder]
                spent[name][k] = waited([sys.executable, "-m", "loopcheck", *command])
    columns = {"study": "start-up", "subject": case.robot.name, "size": 1}
    rows: list[Mapping[str, Any]] = [{**columns, "quantity": UNIT, "unit": "s", **_spread(unit)}]
    for name, times in spent.items():
        for what, column in (("answer", 0), ("report", 1)):
            rows.append(
                {**columns, "quantity": f"{what}, {name} / imports", "unit": "-", **_spread(times[:, column] / unit)}
            )
    return rows


def waited(command: Sequence[str]) -> tuple[float, float]:
    """Time until the answer of a command and until its end [s]; without an answer, both until its end.

    Args:
        command: The program and its arguments.

    Raises:
        HarnessError: If it fails.
    """
    begin, answered = time.perf_counter(), None
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            if ANSWER in line and answered is None:
                answered = time.perf_counter() - begin
        errors = process.stderr.read() if process.stderr else ""
    whole = time.perf_counter() - begin
    if process.returncode not in (0, 1, 3):
        raise HarnessError(f"{' '.join(command[1:])}: {' '.join(errors.split())}")
    return answered or whole, whole


def _spread(values: Any) -> dict[str, float]:
    return {"lowest": float(values.min()), "median": float(np.median(values)), "highest": float(values.max())}
