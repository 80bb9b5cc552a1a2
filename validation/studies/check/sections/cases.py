"""Efforts and errors of each case."""

from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from loopcheck.validation.execution.journal import Task
from loopcheck.validation.judge.results import Results
from loopcheck.validation.judge.verdicts import CASE, SEVERITY, case_verdicts
from loopcheck.validation.report import charts, figures
from loopcheck.validation.report.blocks import Block, Picture, Section, Table, digits, table
from loopcheck.validation.studies.check.looks import looks_of_sources
from loopcheck.validation.studies.check.views import RUN_HEADERS, anchors_of_cases, case_name, part_of


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
            f"{_scales(curves)}; of unmodified simulations and logs by the peak. "
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
