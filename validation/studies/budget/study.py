"""What the error of simulations as they are is made of: softness, step, solver, and what is left."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import pandas as pd
from rich.console import RenderableType

import engines
from robots.errors import NotFoundError
from robots.robot import load, names, representative_case
from validation.execution.environments import engine_versions
from validation.execution.journal import Task
from validation.execution.tables import TableSpec, number, table_of, text
from validation.execution.workers import WorkerPool
from validation.judge import sources
from validation.report.blocks import Block, Picture, Section, table
from validation.report.terminal import error_table
from validation.studies.budget.parts import budget, missing
from validation.studies.study import MEASURED, Computed, Conclusion, Study, StudyResult

TABLE = "budget"


HEADERS = {name: f"{name} [unit]" for name in ("scale", "rms", "largest")} | {
    name: f"{name} [-]" for name in ("share", "uncertainty")
}
"""Columns of the table on the page, with units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget(Study):
    """Parts of the settled residual efforts, in two orders, with the setting that removes each, tried."""

    name: ClassVar[str] = "budget"
    page: ClassVar[str] = "budget"
    tables: ClassVar[dict[str, TableSpec]] = {
        TABLE: table_of(
            {
                **{name: text() for name in ("robot", "variant", "mode", "configuration", "source")},
                **{name: text() for name in ("actuator", "unit", "part")},
                **{name: number("that of the actuator") for name in ("scale", "rms", "largest")},
                "share": number("-"),
                "uncertainty": number("-"),
                "setting": text(),
                "note": text(),
            }
        )
    }

    robots: tuple[str, ...] = ()
    """Names of robots; by default all."""
    sources: tuple[str, ...] = ()
    """Names of routes; by default those that are there and do not wait to be named."""

    def __post_init__(self) -> None:
        for name in self.sources:
            if name not in with_causes():
                raise NotFoundError("source with a budget", name, with_causes())

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`."""
        cases = [representative_case(load(name)) for name in self.robots or names()]
        present = [name for name in with_causes() if sources.engine_of(name) in engine_versions()]
        routes = self.sources or tuple(name for name in present if not engines.on_request(name))
        pairs = [(case, route) for case in cases for route in routes]
        tasks = [Task(budget, pair, partial(missing, *pair), engine=sources.engine_of(pair[1])) for pair in pairs]
        rows = [row for of_pair in pool.results(tasks, "budgets") for row in of_pair]
        return Computed({TABLE: self.tables[TABLE].frame(rows)})

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        rows = result.tables[TABLE]
        return Conclusion(
            title="loopcheck: what the error is made of",
            sections=_sections(rows),
            summary=list(_summary(rows)),
            last=[f"report: {result.folder / 'budget.html'}"],
            verdicts=["not comparable" if not part else MEASURED for part in rows["part"].fillna("")],
        )


STUDY = Budget


def with_causes() -> list[str]:
    """Routes whose error can be taken apart, there or not."""
    able = [name for name in engines.engine_names() if engines.provides(name, "causes")]
    return [f"{name}/{engines.engine(name).taken_apart}" for name in able]


def _sections(rows: pd.DataFrame) -> Iterator[Section]:
    """What is measured, and a part for each engine with its picture."""
    yield Section(title="What is measured", anchor="budget", blocks=[INTRODUCTION])
    for source, of_source in rows.groupby("source", sort=False):
        shown = of_source[of_source["share"].notna() & (of_source["part"] != "all")]
        blocks: list[Block] = []
        if svg := _picture(shown):
            blocks.append(
                Picture(svg=svg, alt=f"shares of the error of {source}", caption="Shares of the settled error.")
            )
        blocks.append(table(of_source.drop(columns=["variant", "source"]).rename(columns=HEADERS)))
        yield Section(title=str(source), anchor=f"budget-{str(source).replace('/', '-')}", blocks=blocks)


def _picture(rows: pd.DataFrame) -> str | None:
    from validation.studies.budget.pictures import shares_figure

    return shares_figure(rows)


def _summary(rows: pd.DataFrame) -> Iterator[RenderableType]:
    """Settled error of the worst actuator, as it is and with each setting, over its scale."""
    tried = rows[rows["part"].fillna("").str.match(r"all$|without |rest$|floor$|precision$|start")]
    value = tried["rms"].fillna(tried["largest"]) / tried["scale"]
    worst = tried.assign(value=value).groupby(["source", "robot", "part"], sort=False)["value"].max()
    for source, of_source in worst.groupby("source", sort=False):
        yield error_table(
            of_source.droplevel("source").unstack("part", sort=False),
            title=f"{source}: settled rms over scale, start at its peak",
        )
    for row in rows[rows["part"].fillna("") == ""].to_dict("records"):
        yield f"{row['source']} {row['robot']}, {row['configuration']}: {row['note']}"


INTRODUCTION = (
    "A simulation as it is, judged by its own motion once its start is over. One cause after the other is "
    "removed by the setting given, with the same controller; finer steps are averaged over each usual one. "
    "What a removal takes away is the part of its cause, and all parts with the rest add up to the error at "
    "every time. A share is the projection of a part on the error: shares add up to one and may be negative. "
    "Softness and step are removed in both orders: half the difference is the uncertainty of their shares, and "
    "above 20 % they are shown as one. The start is no part: its size is what the impedance of the loops "
    "lacks, 1 - dmin in MuJoCo, and it stands on lines of its own. Nor is precision: engines compute in double "
    "precision, and what the last digits of the motion change is what they make of their own round-off. Parts of "
    "an error below its floor, what its log itself explains, tell nothing."
)
