"""What the terminal says of a run, and the verdicts that its exit status follows from."""

import math
from collections.abc import Iterator, Mapping
from textwrap import shorten
from typing import Any

import pandas as pd
from rich.console import RenderableType
from rich.markup import escape

from validation.judge.independence import bases
from validation.judge.results import Results
from validation.judge.verdicts import CaseVerdict, about_robots, case_verdicts, verdict_counts
from validation.report.terminal import table, verdict_cell
from validation.studies.check.closed_twins import AS_IT_IS, AT_LIMITS, REPAIRED
from validation.studies.run.views import absent_in_words

EXPLAINED = ("disagree", "not comparable", "not run")
"""Verdicts whose reason stands beside them."""
LONGEST = 240
"""Of a reason [characters]."""


def title(results: Results) -> str:
    """Title of the page."""
    return f"loopcheck: {', '.join(about_robots(results)) or 'no robot'}"


def verdicts(results: Results) -> list[str]:
    """The verdict on each source in each case."""
    return [finding.verdict for of_case in case_verdicts(results).values() for finding in of_case.values()]


def summary(results: Results) -> Iterator[RenderableType]:
    """The worst verdict of each source in each configuration, the counts, and what the verdicts rest on."""
    grounds = bases(results)
    for robot, by_source in _by_robot(results).items():
        columns = list(dict.fromkeys(configuration for cells in by_source.values() for configuration in cells))
        reasons = {source: _reason(cells) for source, cells in by_source.items()}
        why = ["why"] if any(reasons.values()) else []
        rows = (
            [
                source,
                *(verdict_cell(cells.get(name, [])) for name in columns),
                *([escape(reasons[source])] if why else []),
            ]
            for source, cells in by_source.items()
        )
        yield table(["source", *columns, *why], rows, title=f"{robot}: worst relative effort error")
        yield from _about(about_robots(results).get(robot, {}))
        texts = dict.fromkeys(basis.text for case, basis in grounds.items() if case[0] == robot)
        yield f"rests on {', '.join(texts) or 'nothing that agrees'}"
    if absent := absent_in_words(results):
        yield absent
    counts = verdict_counts(results)
    counted = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    yield f"{sum(counts.values())} comparisons: {counted}"
    own = (results.run.get("tolerances") or {}).get("own") or {}
    if own:
        yield f"your own tolerances: {', '.join(f'{source} {limit:g}' for source, limit in own.items())}"


def _by_robot(results: Results) -> Mapping[str, Mapping[str, Mapping[str, list[CaseVerdict]]]]:
    """The findings of each robot, by source and configuration."""
    by_robot: dict[str, dict[str, dict[str, list[CaseVerdict]]]] = {}
    for (robot, _, _, configuration), of_case in case_verdicts(results).items():
        for source, finding in of_case.items():
            by_robot.setdefault(robot, {}).setdefault(source, {}).setdefault(configuration, []).append(finding)
    return by_robot


def _reason(cells: Mapping[str, list[CaseVerdict]]) -> str:
    """Why a source is open, disagrees or has no figure, as notes say, each once; the tables hold long ones whole."""
    findings = [finding for of_configuration in cells.values() for finding in of_configuration]
    notes = dict.fromkeys(finding.note for finding in findings if _is_explained(finding) and finding.note)
    return shorten(" / ".join(notes), LONGEST, placeholder=" … (summary.csv has all of it)")


def _is_explained(finding: CaseVerdict) -> bool:
    return finding.verdict in EXPLAINED or (finding.verdict == "informational" and math.isnan(finding.error))


def _twin_in_words(twin: Mapping[str, Any]) -> str:
    """What a robot without loops loses against its closed twin, in a line."""
    if not twin["motors"]:
        return f"closed twin: {twin['file']}, not compared: {twin['reason']}"
    figures = pd.DataFrame(twin["motors"]).max(numeric_only=True)
    plain, repaired = (100 * figures[name] for name in (AS_IT_IS, REPAIRED))
    asked = figures.get(AT_LIMITS, 0.0)
    limits = f"; at the limits here a motor needs {asked:.3g} times what it has" if asked > 1 else ""
    return (
        f"closed twin: against {twin['file']} efforts of motors are off by {plain:.2g} % rms of their peak, by "
        f"{repaired:.2g} % with the best constants{limits}; more by loopcheck serial {twin['file']} {twin['model']}"
    )


def _about(robot: Mapping[str, Any]) -> Iterator[str]:
    """What kind of mechanism a robot is, what is unactuated, odd or left out, a line each."""
    if robot.get("in_words"):
        yield str(robot["in_words"])
    for text, key in (
        ("nothing drives", "undriven"),
        ("odd", "oddities"),
        ("motion", "motion"),
        ("beyond the model's limits", "beyond_limits"),
        ("left out", "left_out"),
    ):
        if robot.get(key):
            yield f"{text}: {'; '.join(robot[key])}"
    if twin := robot.get("closed_twin"):
        yield _twin_in_words(twin)
