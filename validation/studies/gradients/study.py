"""Derivatives of engines through closed loops, judged by differences of their own values and by exact derivatives."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from rich.console import RenderableType

from loopcheck import engines
from loopcheck.robots.errors import NotFoundError
from loopcheck.robots.robot import Case
from loopcheck.validation.common.verdicts import NOT_SUPPORTED
from loopcheck.validation.execution.environments import is_there
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec, number, table_of, text
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.frame.study import Computed, Conclusion, Study, StudyResult
from loopcheck.validation.report import terminal
from loopcheck.validation.report.blocks import Block, Picture, Section, folded_if_long, table
from loopcheck.validation.studies.gradients.measure import LIMIT, measured, not_measured, without_part
from loopcheck.validation.studies.gradients.pictures import matrices

TABLE, ENTRIES = "gradients", "gradient_entries"
NAMES = ("robot", "engine", "function", "quantity", "input", "row")
SHOWN_FIRST = ("disagree", "not run", "not comparable", "informational", "agree")
"""Verdicts in the order in which one of them stands for several rows."""
METHOD = (
    "At a state of the prescribed motion of each robot, without external wrenches, the derivatives of an engine are "
    "compared twice: with central differences of the engine's own values, along all dofs (own error), and with the "
    "exact derivatives of loopcheck, along motions that keep the loops closed (error). Derivatives of forces on the "
    "tree become derivatives of efforts by the closures and multipliers of loopcheck. Errors are relative to the "
    f"largest entry of their row, with a limit of {LIMIT:g}. The floor is the change of the differences with twice the "
    "step."
)
READING = (
    "disagree: the derivative is not that of the engine's own values. The note names the columns and the kind of fault",
    "agree: the derivative is that of the engine's own values, and equals the exact derivative",
    "informational: the derivative is right for another function, for example for soft loops or for a whole step "
    "('shift' is the distance of that function's own differences from the exact derivative). Or it is right to the "
    "precision of the engine's own finite differences, but the error grows along motions with closed loops",
    "not comparable: differences of the engine's values are too coarse for a verdict",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GradientsStudy(Study):
    """Errors of derivatives by robot, engine, function, input and row."""

    name: ClassVar[str] = "gradients"
    page: ClassVar[str] = "gradients"
    tables: ClassVar[Mapping[str, TableSpec]] = {
        TABLE: table_of(
            {
                **{name: text() for name in NAMES},
                "size": number("unit of the derivative"),
                **{name: number("-") for name in ("own_error", "error", "shift", "floor")},
                **{name: text() for name in ("verdict", "note")},
            }
        ),
        ENTRIES: table_of(
            {
                **{name: text() for name in (*NAMES, "column")},
                **{name: number("unit of the derivative") for name in ("exact", "engine_value", "differences")},
            }
        ),
    }

    cases: Sequence[Case]
    engines: tuple[str, ...] = ()
    """Names of engines; by default all that are installed."""

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`."""
        for name in self.engines:
            if name not in engines.engine_names():
                raise NotFoundError("engine", name, engines.engine_names())
        names = self.engines or tuple(filter(is_there, engines.engine_names()))
        pairs = [(name, case) for case in self.cases for name in names]
        asked = [(name, case) for name, case in pairs if engines.provides(name, "gradients")]
        tasks = [Task(measured, pair, partial(not_measured, *pair), engine=pair[0]) for pair in asked]
        found = dict(
            zip([(name, case.robot.name) for name, case in asked], pool.results(tasks, "gradients"), strict=True)
        )
        rows, entries = [], []
        for name, case in pairs:
            of_pair = found.get((name, case.robot.name), ([without_part(name, case)], []))
            rows += of_pair[0]
            entries += of_pair[1]
        return Computed({TABLE: self._frame(TABLE, rows), ENTRIES: self._frame(ENTRIES, entries)})

    def _frame(self, name: str, rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
        spec = self.tables[name]
        blank = {column: "" if kind.kind is str else None for column, kind in spec.columns.items()}
        return spec.frame([{**blank, **row} for row in rows])

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        rows, entries = result.tables[TABLE], result.tables[ENTRIES]
        return Conclusion(
            title="loopcheck: derivatives through closed loops",
            sections=[
                Section(title="Method", anchor="method", blocks=[METHOD, list(READING)]),
                Section(title="Findings", anchor="findings", blocks=[table(summary(rows)), list(_notes(rows))]),
                *(_robot(str(robot), of_robot, entries) for robot, of_robot in rows.groupby("robot", sort=False)),
            ],
            summary=list(_shown(rows)),
            verdicts=list(rows["verdict"]),
        )


STUDY = GradientsStudy


def summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Worst verdict with its largest error over all robots: a row for each function, a column for each input."""
    known = rows[rows["input"] != ""]
    cells = [
        {"engine": engine, "function": function, "input": block, "cell": _cell(of_block)}
        for (engine, function, block), of_block in known.groupby(["engine", "function", "input"], sort=False)
    ]
    if not cells:
        return pd.DataFrame()
    wide = pd.DataFrame(cells).set_index(["engine", "function", "input"])["cell"].unstack(sort=False)
    order = [name for name in ("q", "qd", "qdd", "effort", "parameters") if name in wide]
    return wide[order].fillna("").reset_index()


def _cell(rows: pd.DataFrame) -> str:
    """The worst verdict, with the largest error that led to it."""
    verdict = min(rows["verdict"], key=SHOWN_FIRST.index)
    of_verdict = rows[rows["verdict"] == verdict]
    column = "own_error" if verdict == "disagree" else "error"
    word = "other" if verdict == "informational" else verdict
    return f"{word} {of_verdict[column].max():.1e}"


def _notes(rows: pd.DataFrame) -> Iterator[str]:
    """Each note once, with its robots."""
    noted = rows[(rows["note"] != "") & (rows["verdict"] != "agree")]
    for (engine, function, block, note), of_note in noted.groupby(["engine", "function", "input", "note"], sort=False):
        where = ", ".join(filter(None, (str(engine), str(function), str(block))))
        yield f"{where} ({', '.join(dict.fromkeys(of_note['robot']))}): {note}"


def _shown(rows: pd.DataFrame) -> Iterator[RenderableType]:
    """Terminal output: findings by function and input, then faults."""
    wide = summary(rows)
    if not wide.empty:
        wide = wide.assign(function=wide["engine"] + " " + wide["function"].str.split(",").str[0]).drop(
            columns="engine"
        )
        yield terminal.table(list(wide.columns), wide.to_numpy().tolist(), title="Derivatives, worst of all robots")
    yield from _notes(rows[rows["verdict"].isin(["disagree", "not run"])])
    for engine, of_engine in rows[(rows["verdict"] == NOT_SUPPORTED)].groupby("engine", sort=False):
        count, reason = f"{len(of_engine)} of {rows['robot'].nunique()}", of_engine["note"].iloc[0]
        yield f"{engine}: not supported for {count} robots: {reason}"


def _robot(robot: str, rows: pd.DataFrame, entries: pd.DataFrame) -> Section:
    """Matrix picture and table of a robot."""
    of_robot = entries[entries["robot"] == robot].rename(columns={"engine_value": "value"})
    svg = matrices(of_robot)
    caption = (
        "Error of each entry relative to the largest entry of its row, along motions with closed loops. Blue: "
        "round-off. Red: as large as the derivative."
    )
    pictures: list[Block] = [Picture(svg, alt=f"{robot}: errors of derivatives", caption=caption)] if svg else []
    known = rows[rows["input"] != ""].drop(columns=["robot"])
    blocks = [*pictures, *folded_if_long(f"Rows of {robot}", f"rows-{robot}", table(known))] if len(known) else []
    return Section(title=robot, anchor=f"robot-{robot}", blocks=blocks or list(_notes(rows)))
