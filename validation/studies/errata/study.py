"""Cost of each erratum of a paper: the paper's model with one printed equation, against the reference."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar

import pandas as pd
from rich.console import RenderableType

from loopcheck.robots.robot import Case
from loopcheck.validation.common.verdicts import verdict_of_figure
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec, number, table_of, text
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.frame.study import Computed, Conclusion, Study, StudyResult
from loopcheck.validation.report.blocks import Section, table
from loopcheck.validation.report.terminal import error_table
from loopcheck.validation.studies.errata.costs import CORRECTED, costs, not_run

TABLE = "errata"


@dataclass(frozen=True, slots=True, kw_only=True)
class Errata(Study):
    """Largest effort error over its scale that each printed form causes, and that of the corrected model."""

    name: ClassVar[str] = "errata"
    page: ClassVar[str] = "errata"
    tables: ClassVar[dict[str, TableSpec]] = {
        TABLE: table_of(
            {
                **{name: text() for name in ("robot", "mode", "configuration", "erratum")},
                **{name: text() for name in ("equation", "printed", "corrected")},
                "relative_error": number(),
                "note": text(),
            }
        )
    }

    cases: Sequence[Case]

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`."""
        by_case = pool.results([Task(costs, (case,), partial(not_run, case)) for case in self.cases], "errata")
        rows = [row for rows_of_case in by_case for row in rows_of_case]
        return Computed({TABLE: self.tables[TABLE].frame(rows)})

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        rows = result.tables[TABLE]
        corrected = rows[rows["erratum"] == CORRECTED]
        parts = [
            Section(title=str(robot), anchor=f"errata-{robot}", blocks=[_sentence(of_robot), table(_matrix(of_robot))])
            for robot, of_robot in rows.groupby("robot", sort=False)
        ]
        return Conclusion(
            title="loopcheck: errata of the papers",
            sections=[_introduction(), *parts],
            summary=list(_summary(rows)),
            verdicts=[verdict_of_figure(error, "not run") for error in corrected["relative_error"]],
        )


STUDY = Errata


def _summary(rows: pd.DataFrame) -> list[RenderableType]:
    """The largest effort error of each erratum over modes, in each configuration."""
    worst = rows.groupby(["robot", "configuration", "erratum"], sort=False)["relative_error"].max()
    wide = {
        str(robot): of_robot.droplevel("robot").unstack("configuration", sort=False)
        for robot, of_robot in worst.groupby("robot", sort=False)
    }
    return [error_table(errors, title=f"{robot}: effort error over its scale") for robot, errors in wide.items()]


def _introduction() -> Section:
    return Section(
        title="Method",
        anchor="errata",
        blocks=[
            "The model of each paper is computed with one equation as printed and all others corrected. The number is "
            "the largest effort error relative to analytic/noc over time and actuators, over the actuator's scale."
        ],
    )


def _sentence(costs: pd.DataFrame) -> str:
    corrected = costs.loc[costs["erratum"] == CORRECTED, "relative_error"].max()
    spoiled = costs[(costs["erratum"] != CORRECTED) & (costs["relative_error"] > 1e-9)]["erratum"].unique()
    harmless = costs[(costs["erratum"] != CORRECTED) & ~costs["erratum"].isin(spoiled)]["erratum"].unique()
    return (
        f"As corrected, the model agrees with the reference to {corrected:.1e}. As printed, {len(spoiled)} of "
        f"{len(spoiled) + len(harmless)} errata change an effort: {', '.join(spoiled) or '–'}. The remaining errata "
        f"do not change an effort in these cases, or are errors of notation: {', '.join(harmless) or '–'}."
    )


def _matrix(costs: pd.DataFrame) -> pd.DataFrame:
    """A row for each erratum, a column for each mode and configuration."""
    texts = ["erratum", "equation", "printed", "corrected"]
    case = costs["mode"] + ", " + costs["configuration"] + " [-]"
    wide = costs.assign(case=case).set_index([*texts, "case"])["relative_error"]
    return wide.unstack("case", sort=False).reset_index()
