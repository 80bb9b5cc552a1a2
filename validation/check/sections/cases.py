"""Efforts and errors of each case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from loopcheck.robots.robot import DEFAULT
from loopcheck.validation.check.views import RUN_HEADERS, anchors_of_cases, case_name, drawn_cases, source_names
from loopcheck.validation.common.results import Results
from loopcheck.validation.common.verdicts import CASE, SEVERITY, Key, case_verdicts, reference_of
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.report import charts, figures
from loopcheck.validation.report.blocks import Block, OnRequest, Picture, Section, Table, digits, table

if TYPE_CHECKING:
    import pandas as pd

UNFOLDED = (
    "Unfolded: the worst case of each robot in each configuration, by its gravest verdict, then by the largest error "
    "over its limit."
)


def cases(results: Results) -> Section:
    """Efforts and errors of each case."""
    findings, anchors, styles = case_verdicts(results), anchors_of_cases(results), looks_of_sources(results)
    summaries, efforts, on_task = map(_by_case, (results.summary, results.efforts, results.task_efforts))
    drawn_always = drawn_cases(results)
    folds: dict[str, list[Section]] = {}
    for case, of_case in findings.items():
        verdicts, name = {finding.verdict for finding in of_case.values()}, case_name(case, results)
        drawn: list[Block] = []
        if case in efforts:
            picture = Task(_efforts_picture, (efforts[case], summaries[case], name, styles))
            more = (efforts[case], summaries[case], on_task.get(case, results.task_efforts[:0]), name, styles)
            drawn = [picture if case in drawn_always else OnRequest(picture), OnRequest(Task(_error_pictures, more))]
        errors = Section(
            title="Errors of each actuator",
            anchor=f"{anchors[case]}-errors",
            folded=case in drawn_always,
            blocks=[_error_table(summaries[case])],
        )
        folds.setdefault(case[0], []).append(
            Section(
                title=name.removeprefix(f"{case[0]}, "),
                anchor=anchors[case],
                verdict=next((verdict for verdict in SEVERITY if verdict in verdicts), ""),
                folded=case not in drawn_always,
                blocks=[*(drawn or ["No efforts."]), errors],
            )
        )
    parts = [
        Section(title=robot, anchor=f"cases-{k}", blocks=of_robot)
        for k, (robot, of_robot) in enumerate(folds.items(), start=1)
    ]
    return Section(title="Efforts and errors by case", anchor="cases", blocks=[*([UNFOLDED] if parts else []), *parts])


def _by_case(table: pd.DataFrame) -> Mapping[Key, pd.DataFrame]:
    """Rows of each case."""
    return {(str(a), str(b), str(c), str(d)): rows for (a, b, c, d), rows in table.groupby(CASE, sort=False)}


def _efforts_picture(
    efforts: pd.DataFrame, summary: pd.DataFrame, case: str, styles: Mapping[str, figures.Look]
) -> list[Block]:
    """Required and computed efforts of a case over time."""
    curves = figures.curves(efforts, summary)
    svg = figures.efforts_figure(curves, styles) if curves else None
    if not curves or not svg:
        return []
    alt = f"{case}: effort of {', '.join(curves.actuators)} over time from {', '.join(curves.efforts)}"
    caption = f"Required and computed efforts. Thick grey: required, {curves.reference}. Brown: not judged."
    return [Picture(svg, alt=alt, caption=caption + _beyond(curves), chart=charts.efforts_chart(curves, styles))]


def _error_pictures(
    efforts: pd.DataFrame,
    summary: pd.DataFrame,
    on_task: pd.DataFrame,
    case: str,
    styles: Mapping[str, figures.Look],
) -> list[Block]:
    """Errors of a case over time, and its efforts on the task coordinates.

    Args:
        on_task: Rows of the table of efforts on task coordinates.
    """
    curves = figures.curves(efforts, summary)
    svg = figures.errors_figure(curves, styles) if curves else None
    pictures = list(_task_efforts(on_task, summary, case, styles))
    if not curves or not svg:
        return [*pictures]
    picture = Picture(
        svg,
        alt=f"{case}: error of {', '.join(curves.errors)} over time, relative to the effort scale",
        caption="Largest difference from the reference over all actuators, each divided by its effort scale: "
        f"{_scales(curves)}. Errors of unmodified simulations and logs are divided by the peak. "
        f"Values below {figures.FLOOR:g} are drawn at {figures.FLOOR:g}.{_unmodified(curves)}",
        chart=charts.errors_chart(curves, styles),
    )
    return [picture, *pictures]


def _task_efforts(
    on_task: pd.DataFrame, summary: pd.DataFrame, case: str, styles: Mapping[str, figures.Look]
) -> Iterable[Picture]:
    """Generalized efforts of each source on the task coordinates."""
    of_coordinates = on_task.rename(columns={"coordinate": "actuator"})
    curves = figures.curves(of_coordinates, summary.assign(scale=np.nan))  # the scale of an actuator is no measure here
    svg = figures.efforts_figure(curves, styles) if curves else None
    if curves and svg:
        names = ", ".join(curves.actuators)
        yield Picture(
            svg,
            alt=f"{case}: generalized effort on {names} over time from {', '.join(curves.efforts)}",
            caption=f"Generalized efforts of all actuators together on the task coordinates {names}. They do not "
            f"depend on the distribution among redundant actuators.{_beyond(curves)}",
        )


def _scales(curves: figures.Curves) -> str:
    """Effort scales with units."""
    columns = zip(curves.actuators, curves.scale, curves.units, strict=True)
    return ", ".join(f"{name} {digits(scale)} {unit}" for name, scale, unit in columns)


def _unmodified(curves: figures.Curves) -> str:
    """The origin of the difference of unmodified simulations, if there are any."""
    if not any(name.partition("/")[2].startswith("as_is") for name in curves.efforts):
        return ""
    return (
        "Unmodified simulations (as_is) follow the prescribed motion only approximately: the verdict uses the effort "
        "that their own motion requires."
    )


def _beyond(curves: figures.Curves) -> str:
    unit = " or ".join(dict.fromkeys(curves.units))
    return "".join(f" {name} exceeds the axes (up to {digits(most)} {unit})." for name, most in curves.beyond.items())


def _error_table(summary: pd.DataFrame) -> Table:
    """The rows of the summary of a case; a repeated note is a ditto mark."""
    units = summary["unit"].unique()
    unit = units[0] if len(units) == 1 else "unit"
    notes = summary["note"].fillna("")
    repeated = (summary["source"] == summary["source"].shift()) & (notes == notes.shift()) & (notes != "")
    headers = {
        **{name: name for name in ("source", "actuator", "unit")},
        "peak": f"peak [{unit}]",
        "scale": f"scale [{unit}]",
        "max_error": f"max error [{unit}]",
        "rms_error": f"rms error [{unit}]",
        "relative_error": "relative error [-]",
        "peak_error": "error / peak [-]",
        "tolerance": "tolerance [-]",
        "verdict": "verdict",
        **RUN_HEADERS,
        "note": "note",
    }
    return table(summary.assign(note=notes.mask(repeated, "″"))[list(headers)].rename(columns=headers))


def convergence(results: Results) -> Section:
    """Error by step size."""
    parts: list[Section] = []
    styles = looks_of_sources(results)
    for names, rows in results.ladder.groupby(["robot", "variant"], sort=False):
        robot, variant = map(str, names)
        title, number = robot if variant == DEFAULT else f"{robot}, variant {variant}", len(parts) + 1
        parts.append(
            Section(
                title=title,
                anchor=f"ladder-{number}",
                blocks=[
                    OnRequest(Task(_ladder_pictures, (title, rows, styles))),
                    Section(
                        title=f"Steps of {title}", anchor=f"steps-{number}", folded=True, blocks=[_ladder_table(rows)]
                    ),
                ],
            )
        )
    text = (
        "Each step size is a separate run. The judged efforts may be extrapolated from several step sizes. The "
        "grid-convergence index, 1.25 change / (r^p - 1) with the ratio r of two steps and the observed order p, "
        "estimates the error of a step without a reference. It is omitted for orders below 0.5. Finer steps are "
        "omitted if the estimated error, drift and tracking error are far below their limits (see the settings); two "
        "steps have no order and no index. A source named with --source takes all steps. `study refinement` "
        "compares observed orders with the expected ones."
    )
    blocks: Sequence[Block] = [text, *parts] if parts else ["No source has results for several step sizes."]
    return Section(title="Convergence", anchor="convergence", blocks=blocks)


def _ladder_pictures(title: str, rows: pd.DataFrame, styles: Mapping[str, figures.Look]) -> list[Block]:
    """Errors of a robot in a variant over the step."""
    cases_of = rows.groupby(["mode", "configuration"], sort=False)
    panels = {f"{configuration}, mode {mode}": ladder for (mode, configuration), ladder in cases_of}
    svg = figures.ladder_figure(panels, styles)
    alt = f"{title}: error and change against the step for {', '.join(rows['source'].unique())}"
    caption = (
        "Filled: error relative to the reference. Hollow, dotted: change from the previous step. Grey: slope of the "
        "observed order at the finest step, rounded."
    )
    return [Picture(svg, alt=alt, caption=caption)] if svg else []


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


def looks_of_sources(results: Results) -> Mapping[str, figures.Look]:
    """Line style of each source in all figures of the page."""
    informational = results.summary.loc[results.summary["verdict"] == "informational", "source"]
    reference = reference_of(results.summary)
    return figures.looks(source_names(results), reference=reference, informational=informational)
