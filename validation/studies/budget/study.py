"""Parts of the error of unmodified simulations: softness, step, solver, and the remainder."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import pandas as pd
from rich.console import RenderableType

from loopcheck import engines
from loopcheck.robots.errors import NotFoundError
from loopcheck.robots.robot import Case
from loopcheck.validation.execution.environments import engine_versions
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec, number, table_of, text
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.judge import sources
from loopcheck.validation.judge.verdicts import verdict_of_figure
from loopcheck.validation.report.blocks import Block, Picture, Section, table
from loopcheck.validation.report.terminal import error_table
from loopcheck.validation.studies.budget.parts import budget, missing
from loopcheck.validation.studies.budget.pictures import shares_figure
from loopcheck.validation.studies.study import Computed, Conclusion, Study, StudyResult

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

    cases: Sequence[Case]
    sources: tuple[str, ...] = ()
    """Names of routes; by default the installed routes that need no explicit name."""

    def __post_init__(self) -> None:
        for name in self.sources:
            if name not in with_causes():
                raise NotFoundError("source with a budget", name, with_causes())

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`."""
        present = [name for name in with_causes() if sources.engine_of(name) in engine_versions()]
        routes = self.sources or tuple(name for name in present if not engines.on_request(name))
        pairs = [(case, route) for case in self.cases for route in routes]
        tasks = [Task(budget, pair, partial(missing, *pair), engine=sources.engine_of(pair[1])) for pair in pairs]
        rows = [row for of_pair in pool.results(tasks, "budgets") for row in of_pair]
        return Computed({TABLE: self.tables[TABLE].frame(rows)})

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        rows = result.tables[TABLE]
        return Conclusion(
            title="loopcheck: causes of the error",
            sections=_sections(rows),
            summary=list(_summary(rows)),
            verdicts=[
                verdict_of_figure(largest) if part else "not comparable"
                for part, largest in zip(rows["part"].fillna(""), rows["rms"].fillna(rows["largest"]), strict=True)
            ],
        )


STUDY = Budget


def with_causes() -> list[str]:
    """Routes with removable causes, installed or not."""
    able = [name for name in engines.engine_names() if engines.provides(name, "tuning")]
    return [f"{name}/{engines.engine(name).taken_apart}" for name in able]


def _sections(rows: pd.DataFrame) -> Iterator[Section]:
    """Explanation, and a section with a picture for each engine."""
    yield Section(title="Method", anchor="budget", blocks=[INTRODUCTION])
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
    return shares_figure(rows)


def _summary(rows: pd.DataFrame) -> Iterator[RenderableType]:
    """Settled error of the worst actuator, as it is and with each setting, over its scale."""
    tried = rows[rows["part"].fillna("").str.match(r"all$|without |rest$|floor$|precision$|start")]
    value = tried["rms"].fillna(tried["largest"]) / tried["scale"]
    worst = tried.assign(value=value).groupby(["source", "robot", "part"], sort=False)["value"].max()
    for source, of_source in worst.groupby("source", sort=False):
        yield error_table(
            of_source.droplevel("source").unstack("part", sort=False),
            title=f"{source}: settled rms over scale, initial transient at its peak",
        )
    for row in rows[rows["part"].fillna("") == ""].to_dict("records"):
        yield f"{row['source']} {row['robot']}, {row['configuration']}: {row['note']}"


INTRODUCTION = (
    "An unmodified simulation, judged by its own motion after its initial transient. The causes are removed step "
    "by step with the listed settings and the same controller; finer steps are averaged over each original step. "
    "The part of a cause is the change of the error by its removal. The parts and the rest add up to the error at "
    "every time. A share is the projection of a part on the error: shares add up to 1 and may be negative. "
    "Softness and step are removed in both orders: half the difference is the uncertainty of their shares, and "
    "above 20 % they are shown as one part. The initial transient is not a part: its size is 1 minus the impedance "
    "of the loops (1 - dmin in MuJoCo), in separate rows. Precision is not a part either: engines compute in double "
    "precision, and its row is the effect of changes in the last digits of the motion, that is round-off. Parts of "
    "an error below the noise floor of the log have no meaning."
)
