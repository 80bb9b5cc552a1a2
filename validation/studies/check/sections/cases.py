"""Efforts and errors of each case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from loopcheck.robots.robot import DEFAULT
from loopcheck.validation.comparison.results import Results
from loopcheck.validation.comparison.verdicts import CASE, SEVERITY, case_verdicts, reference_of
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.report import charts, figures
from loopcheck.validation.report.blocks import Block, Picture, Section, Table, digits, table
from loopcheck.validation.studies.check.views import RUN_HEADERS, anchors_of_cases, case_name, part_of, source_names

if TYPE_CHECKING:
    import pandas as pd


def cases(results: Results) -> Section:
    """Efforts and errors of each case."""
    findings, anchors, styles = case_verdicts(results), anchors_of_cases(results), looks_of_sources(results)
    of_case = ("summary", "efforts", "task_efforts")
    parts: list[Section] = []
    for robot in dict.fromkeys(case[0] for case in findings):
        of_robot = [case for case in findings if case[0] == robot]
        folds = []
        for case in of_robot:
            verdicts = [finding.verdict for finding in findings[case].values()]
            folds.append(
                Section(
                    title=case_name(case, results).removeprefix(f"{robot}, "),
                    anchor=anchors[case],
                    verdict=next((verdict for verdict in SEVERITY if verdict in verdicts), ""),
                    folded=case[1] != of_robot[0][1],
                    blocks=[
                        Task(
                            _case_blocks,
                            (
                                part_of(results, *of_case, **dict(zip(CASE, case, strict=True))),
                                case_name(case, results),
                                anchors[case],
                                styles,
                            ),
                        )
                    ],
                )
            )
        parts.append(Section(title=robot, anchor=f"cases-{len(parts) + 1}", blocks=folds))
    return Section(title="Efforts and errors by case", anchor="cases", blocks=parts)


def _case_blocks(results: Results, name: str, anchor: str, styles: Mapping[str, figures.Look]) -> list[Block]:
    """The figures and the table of a case, from its rows."""
    curves = figures.curves(results.efforts, results.summary)
    pictures = list(_case_pictures(curves, name, styles)) if curves else ["No efforts."]
    numbers = Section(
        title="Errors of each actuator", anchor=f"{anchor}-errors", folded=True, blocks=[_error_table(results.summary)]
    )
    return [*pictures, *_task_efforts(results, name, styles), numbers]


def _task_efforts(results: Results, case: str, styles: Mapping[str, figures.Look]) -> Iterable[Picture]:
    """Generalized efforts of each source on the task coordinates."""
    efforts = results.task_efforts.rename(columns={"coordinate": "actuator"})
    summary = results.summary.assign(scale=np.nan)  # that of the actuators is no measure here
    curves = figures.curves(efforts, summary)
    svg = figures.efforts_figure(curves, styles) if curves else None
    if curves and svg:
        names = ", ".join(curves.actuators)
        yield Picture(
            svg,
            alt=f"{case}: generalized effort on {names} over time from {', '.join(curves.efforts)}",
            caption=f"Generalized efforts of all actuators together on the task coordinates {names}. They do not "
            f"depend on the distribution among redundant actuators.{_beyond(curves)}",
        )


def _case_pictures(curves: figures.Curves, case: str, styles: Mapping[str, figures.Look]) -> Iterable[Picture]:
    efforts, errors = figures.efforts_figure(curves, styles), figures.errors_figure(curves, styles)
    if efforts:
        yield Picture(
            efforts,
            alt=f"{case}: effort of {', '.join(curves.actuators)} over time from {', '.join(curves.efforts)}",
            caption=f"Efforts. Thick grey: reference, {curves.reference}. Brown: not judged.{_beyond(curves)}",
            chart=charts.efforts_chart(curves, styles),
        )
    if errors:
        yield Picture(
            errors,
            alt=f"{case}: error of {', '.join(curves.errors)} over time, relative to the effort scale",
            caption="Largest difference from the reference over all actuators, each divided by its effort scale: "
            f"{_scales(curves)}. Errors of unmodified simulations and logs are divided by the peak. "
            f"Values below {figures.FLOOR:g} are drawn at {figures.FLOOR:g}.{_unmodified(curves)}",
            chart=charts.errors_chart(curves, styles),
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


def looks_of_sources(results: Results) -> Mapping[str, figures.Look]:
    """Line style of each source in all figures of the page."""
    informational = results.summary.loc[results.summary["verdict"] == "informational", "source"]
    reference = reference_of(results.summary)
    return figures.looks(source_names(results), reference=reference, informational=informational)
