"""The first screen: closing lines, a picture per question, verdicts of all sources; then the data of the run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from loopcheck.validation.check.closing import (
    Line,
    closing_lines,
    in_plain_words,
    unsupported_in_words,
    worst_simulation,
)
from loopcheck.validation.check.independence import bases
from loopcheck.validation.check.sections.robots import first_movie
from loopcheck.validation.check.views import (
    anchors_of_cases,
    case_name,
    configuration_name,
    drawn_cases,
    part_of,
    rows_where,
    source_names,
    verdict_matrix,
)
from loopcheck.validation.common.results import Results
from loopcheck.validation.common.sources import is_log
from loopcheck.validation.common.verdicts import (
    CASE,
    JUDGED,
    NOT_SUPPORTED,
    CaseVerdict,
    Key,
    case_verdicts,
    gravest,
    reference_of,
    shown_error,
    verdict_counts,
    worst,
)
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.report import figures
from loopcheck.validation.report.blocks import Block, Cell, Picture, Section, Table, digits, facts

if TYPE_CHECKING:
    import pandas as pd

MOST_ACTUATORS = 12
"""Actuators in the picture of the unmodified simulation, the worst first."""

DEFINITIONS = (
    "A case is a robot with a variant, a mode and a configuration. A comparison is a source in a case. The error of an "
    "actuator is the largest difference from the reference over time. The relative error is the error divided by the "
    "effort scale of that actuator. The scale is the largest sum over time of the magnitudes of all terms that act on "
    "the actuator: inertia and weight of each body, springs, dampers, rotors and loads. Each actuator has its scale. "
    "Errors of unmodified simulations and logs are divided by the peak: the largest effort that the motion requires of "
    "the actuator, at least a thousandth of its scale. A source without a limit is informational, or unusable if its "
    "error exceeds the effort itself."
)


def answer(results: Results, lines: Sequence[Line] = ()) -> Section:
    """The first screen.

    Args:
        results: Results of the check.
        lines: Closing lines, instead of those of a check.
    """
    counts, run, findings = verdict_counts(results), results.run, _findings_of_sources(results)
    first = [str(line) for line in lines or closing_lines(results)]
    plain = "" if lines else in_plain_words(results)
    headline, *more = [plain, *first] if plain else first
    entries = {
        "command": " ".join(map(str, run.get("command") or ())),
        "start": run.get("start"),
        "duration [s]": run.get("duration_s"),
        "step of the report grid [s]": run.get("dt"),
        "tolerances of the user [-]": (run.get("tolerances") or {}).get("own"),
        "loopcheck": run.get("loopcheck"),
        "versions": run.get("versions"),
        "CPU": run.get("cpu"),
    }
    return Section(
        title="Answer",
        anchor="answer",
        blocks=[
            headline,
            *([more] if more else []),
            *_simulation(results),
            Task(_overview_picture, (findings,)),
            *first_movie(results),
            *_overview(results),
            Table(list(counts), [[Cell(str(n), verdict if n else "") for verdict, n in counts.items()]]),
            " ".join([_sentence(counts), *_confirmation(results), DEFINITIONS]),
            Section(title="This run", anchor="this-run", folded=True, blocks=[facts(entries)]),
        ],
    )


def _findings_of_sources(results: Results) -> Mapping[str, Sequence[CaseVerdict]]:
    """Verdicts by supported source: reference, unmodified simulations and logs, judged, informational sources."""
    of_cases = case_verdicts(results).values()
    findings = {name: [of_case[name] for of_case in of_cases if name in of_case] for name in source_names(results)}
    supported = {
        name: several for name, several in findings.items() if several and gravest(several).verdict != NOT_SUPPORTED
    }

    def place(item: tuple[str, Sequence[CaseVerdict]]) -> int:
        name, several = item
        if name == reference_of(results.summary):
            return 0
        if is_log(name) or _is_simulation(name):
            return 1
        return 3 if gravest(several).verdict == "informational" else 2

    return dict(sorted(supported.items(), key=place))


def _simulation(results: Results) -> Iterable[Task]:
    """The task that draws the worst unmodified simulation, or the worst log."""
    off = worst_simulation(results)
    if off is None:
        return
    if is_log(off.source):
        part = part_of(results, "efforts", "summary", **dict(zip(CASE, off.case, strict=True)))
        yield Task(_log_picture, (part, off.source, off.actuator, case_name(off.case, results)))
    else:
        rows = rows_where(results.summary, source=off.source, robot=off.case[0])
        yield Task(_simulation_picture, (off.source, rows))


def _simulation_picture(source: str, rows: pd.DataFrame) -> list[Block]:
    """The errors of an unmodified simulation by actuator."""
    findings: dict[str, list[CaseVerdict]] = {}
    for row in rows.to_dict("records"):
        finding = CaseVerdict(str(row["verdict"]), shown_error(row), float(row["tolerance"]), "")
        findings.setdefault(f"{row['actuator']} [{row['unit']}]", []).append(finding)
    worst_first = sorted(findings.items(), key=lambda item: -np.nan_to_num(gravest(item[1]).error, nan=-1.0))
    shown = dict(worst_first[:MOST_ACTUATORS])
    errors = [finding.error for several in shown.values() for finding in several if finding.error > 0]
    svg = figures.overview_figure(shown, low=min([*errors, 1e-3]) / 10)
    caption = (
        f"Largest effort error of each actuator in {source}: a mark per case and motion, after the initial transient. "
        "The number is the largest error with the worst verdict. Black stroke: accuracy of the user."
    )
    more = len(findings) - len(shown)
    alt = f"error of each actuator in {source}: {', '.join(shown)}"
    return [Picture(svg, alt=alt, caption=caption + f" Not shown: {more} actuators." * bool(more))] if svg else []


def _log_picture(results: Results, source: str, actuator: str, case: str) -> list[Block]:
    """The required effort of an actuator beside the effort in the log."""
    curves = figures.curves(results.efforts, results.summary)
    limit = curves.tolerances.get(source, math.nan) if curves else math.nan
    svg = figures.log_figure(curves, source, actuator, limit) if curves else None
    if not svg:
        return []
    caption = f"Effort of '{actuator}', {case}: required by the motion of the log, and logged. Below: the residual."
    return [Picture(svg, alt=f"effort of {actuator} over time, required and logged, {case}", caption=caption)]


def _overview_picture(findings: Mapping[str, Sequence[CaseVerdict]]) -> list[Block]:
    """The errors of all sources beside their tolerances."""
    svg = figures.overview_figure(findings)
    descriptions = (
        f"{source} {gravest(several).verdict} {digits(gravest(several).error)}" for source, several in findings.items()
    )
    caption = (
        "Largest error of each source, with a mark per case. The number is the largest error with the worst verdict. A "
        "black stroke is the tolerance. Filled marks are judged, hollow marks are not."
    )
    return (
        [Picture(svg, alt=f"largest error of each source: {', '.join(descriptions)}", caption=caption)] if svg else []
    )


def _overview(results: Results) -> Iterable[Block]:
    """Verdicts by robot and configuration, the worst of all modes and variants."""
    findings, anchors, drawn = case_verdicts(results), anchors_of_cases(results), drawn_cases(results)
    groups: dict[tuple[str, str], list[Key]] = {}
    for case in findings:
        groups.setdefault((case[0], case[3]), []).append(case)
    single = len({robot for robot, _ in groups}) == 1
    rows: dict[str, tuple[str, Mapping[str, CaseVerdict]]] = {}
    for (robot, configuration), of_group in groups.items():
        name = configuration_name(robot, configuration, results)
        several = {
            source: worst([findings[case][source] for case in of_group if source in findings[case]])
            for source in dict.fromkeys(source for case in of_group for source in findings[case])
        }
        shown = next((case for case in of_group if case in drawn), of_group[0])
        rows[name if single else f"{robot}, {name}"] = (anchors[shown], several)
    if rows:
        yield "Worst verdict and worst relative error of all modes, variants and actuators:"
        yield verdict_matrix(rows, _supported_names(results))
    if unsupported := unsupported_in_words(results):
        yield f"Not supported: {unsupported}."


def _supported_names(results: Results) -> list[str]:
    findings = _findings_of_sources(results)
    return [name for name in source_names(results) if name in findings]


def _confirmation(results: Results) -> Iterable[str]:
    """Number of independently confirmed cases, in words."""
    grounds = bases(results)
    cases = [case for case, of_case in case_verdicts(results).items() if _is_judged(of_case)]
    if cases:
        confirmed = sum(case in grounds and grounds[case].is_independent for case in cases)
        read = sum(case in grounds and bool(grounds[case].readers) for case in cases)
        yield f"Equations confirmed independently: {confirmed} of {len(cases)} cases."
        yield f"Numbers of the file read alike by a second reader: {read} of {len(cases)} cases."


def _is_judged(of_case: Mapping[str, CaseVerdict]) -> bool:
    """Return whether a case has a judged engine or analytic model, without unmodified simulations and logs."""
    return any(
        finding.verdict in JUDGED
        for source, finding in of_case.items()
        if not (_is_simulation(source) or is_log(source))
    )


def _is_simulation(source: str) -> bool:
    """Return whether a source is an unmodified simulation."""
    return not is_log(source) and source.partition("/")[2].startswith("as_is")


def _sentence(counts: Mapping[str, int]) -> str:
    """Counts of the comparisons in words."""
    judged = sum(counts[verdict] for verdict in JUDGED)
    rest = ", ".join(
        f"{counts[name]} {name}" for name in (NOT_SUPPORTED, "as expected", "informational") if counts[name]
    )
    extra = f" Not counted: {rest}." if rest else ""
    if not judged:
        return f"No comparison was judged.{extra}"
    if counts["agree"] == judged:
        return f"All {judged} judged comparisons agree with the reference.{extra}"
    parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in JUDGED)
    return f"Of {judged} judged comparisons with the reference: {parts}.{extra}"
