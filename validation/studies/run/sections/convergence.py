"""How errors fall with the step."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from validation.execution.journal import Task
from validation.judge.results import Results
from validation.judge.verdicts import CASE
from validation.report import figures
from validation.report.blocks import Block, Picture, Section, Table, table
from validation.studies.run.looks import looks_of_sources
from validation.studies.run.views import RUN_HEADERS


def convergence(results: Results) -> Section:
    """How the error falls with the step."""
    parts: list[Section] = []
    styles = looks_of_sources(results)
    for names, rows in results.ladder.groupby(["robot", "variant"], sort=False):
        title, number = " · ".join(map(str, names)), len(parts) + 1
        parts.append(
            Section(
                title=title, anchor=f"ladder-{number}", blocks=[Task(_ladder_blocks, (title, number, rows, styles))]
            )
        )
    text = (
        "Each step size is a run by itself; the efforts judged above may be extrapolated from several. The "
        "grid-convergence index, 1.25 change / (r^p - 1) with r the ratio of two steps and p the order observed, "
        "estimates the error of a step without a reference; it is left out where the order is below one half. What to "
        "set in a simulation of your own for 1 %, 0.1 % or 1e-6 is measured by loopcheck ladder."
    )
    blocks: Sequence[Block] = [text, *parts] if parts else ["No source was run with several steps."]
    return Section(title="Convergence", anchor="convergence", blocks=blocks)


def _ladder_blocks(title: str, number: int, rows: pd.DataFrame, styles: Mapping[str, figures.Look]) -> list[Block]:
    """The figure and the table of the steps of a robot in a variant."""
    cases_of = rows.groupby(["mode", "configuration"], sort=False)
    panels = {" · ".join(map(str, case)): ladder for case, ladder in cases_of}
    svg = figures.ladder_figure(panels, styles)
    picture = Picture(
        svg or "",
        alt=f"{title}: error and change against the step for {', '.join(rows['source'].unique())}",
        caption="Filled: error against the reference. Hollow, dotted: change from the step before. Grey: the slope "
        "of the order observed at the finest step, rounded.",
    )
    steps = Section(title=f"Steps of {title}", anchor=f"steps-{number}", folded=True, blocks=[_ladder_table(rows)])
    return [*([picture] if svg else []), steps]


def _ladder_table(rows: pd.DataFrame) -> Table:
    ratio = rows.groupby([*CASE, "source"], sort=False)["dt"].shift() / rows["dt"]
    plausible = rows["order"].where(rows["order"].between(0.5, np.inf, "left") & (ratio > 1))
    headers = {
        **{name: name for name in ("mode", "configuration", "source")},
        "dt": "step [s]",
        "relative_error": "relative error [-]",
        "change": "change [-]",
        "order": "order [-]",
        "index": "grid-convergence index [-]",
        **RUN_HEADERS,
    }
    rows = rows.assign(index=1.25 * rows["change"] / (ratio**plausible - 1))
    return table(rows[list(headers)].rename(columns=headers))
