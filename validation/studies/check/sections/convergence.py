"""Section of the report: error by step size."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from loopcheck.robots.robot import DEFAULT
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.judge.results import Results
from loopcheck.validation.judge.verdicts import CASE
from loopcheck.validation.report import figures
from loopcheck.validation.report.blocks import Block, Picture, Section, Table, table
from loopcheck.validation.studies.check.looks import looks_of_sources
from loopcheck.validation.studies.check.views import RUN_HEADERS


def convergence(results: Results) -> Section:
    """Error by step size."""
    parts: list[Section] = []
    styles = looks_of_sources(results)
    for names, rows in results.ladder.groupby(["robot", "variant"], sort=False):
        robot, variant = map(str, names)
        title, number = robot if variant == DEFAULT else f"{robot}, variant {variant}", len(parts) + 1
        parts.append(
            Section(
                title=title, anchor=f"ladder-{number}", blocks=[Task(_ladder_blocks, (title, number, rows, styles))]
            )
        )
    text = (
        "Each step size is a separate run. The judged efforts may be extrapolated from several step sizes. The "
        "grid-convergence index, 1.25 change / (r^p - 1) with the ratio r of two steps and the observed order p, "
        "estimates the error of a step without a reference. It is omitted for orders below 0.5. The study refinement "
        "measures the settings that reach 1 %, 0.1 % or 1e-6 in a simulation."
    )
    blocks: Sequence[Block] = [text, *parts] if parts else ["No source has results for several step sizes."]
    return Section(title="Convergence", anchor="convergence", blocks=blocks)


def _ladder_blocks(title: str, number: int, rows: pd.DataFrame, styles: Mapping[str, figures.Look]) -> list[Block]:
    """The figure and the table of the steps of a robot in a variant."""
    cases_of = rows.groupby(["mode", "configuration"], sort=False)
    panels = {f"{configuration}, mode {mode}": ladder for (mode, configuration), ladder in cases_of}
    svg = figures.ladder_figure(panels, styles)
    picture = Picture(
        svg or "",
        alt=f"{title}: error and change against the step for {', '.join(rows['source'].unique())}",
        caption="Filled: error relative to the reference. Hollow, dotted: change from the previous step. Grey: slope "
        "of the observed order at the finest step, rounded.",
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
