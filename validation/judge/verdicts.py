"""What a run has found: a verdict for each source in a case, and their counts."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd

from validation.judge.results import Results

CASE = ["robot", "variant", "mode", "configuration"]
MEASURED = "measured"
"""Verdict of a study on what is a figure by itself."""
SEVERITY = ("disagree", "not run", "not comparable", "agree", "informational", "reference")
"""Verdicts, the worst first: a source is shown with the worst of its actuators."""
WORST_FIRST = ("disagree", "not run", "not comparable", "agree", "informational", "as expected", "reference")
"""What a finding can be, the worst first: several cases together are shown with the worst of them."""
MEANING: Mapping[str, str] = {
    "agree": "for every actuator, the largest error over time is within the tolerance",
    "disagree": "for at least one actuator it is not, or another limit of the source is exceeded; the note says which",
    "not comparable": "the source simulates another robot or resolves no such error, or nothing finite is there to "
    "compare; the note says why",
    "not run": "there is no result; the note says why",
    "as expected": "not comparable, as the robot's file says of this mode: not counted",
    "informational": "shown for what it is, never judged",
}
JUDGED = ("agree", "disagree", "not comparable", "not run")

FILE = "model file"
"""Stands in the place of an engine in the audit: the files of the robot, read past our own reading."""

Key: TypeAlias = tuple[str, str, str, str]
"""Robot, variant, mode and configuration."""


class CaseVerdict(NamedTuple):
    """What is found about a source in a case."""

    verdict: str
    """The worst of its actuators, or `as expected`; `reference` for the reference, unless it failed."""
    error: float
    """Largest error of its actuators, each relative to its own scale [-]; NaN if there is none."""
    tolerance: float
    """What it may be [-]; NaN if it is not judged."""
    note: str


def case_verdicts(results: Results) -> Mapping[Key, Mapping[str, CaseVerdict]]:
    """What was found, by case and source."""
    return summary_verdicts(results.summary, about_robots(results))


def summary_verdicts(
    summary: pd.DataFrame, robots: Mapping[str, Mapping[str, Any]]
) -> Mapping[Key, Mapping[str, CaseVerdict]]:
    """What was found, by case and source.

    Args:
        summary: The table of a run.
        robots: What its record says about each robot.
    """
    columns = [*CASE, "source", "verdict", "note", "scale", "relative_error", "tolerance"]
    by_source: dict[Key, dict[str, list[Mapping[str, Any]]]] = {}
    records: list[Any] = summary[columns].fillna({"note": ""}).to_dict("records")
    for row in records:
        robot, variant, mode, configuration, source = (str(row[name]) for name in (*CASE, "source"))
        by_source.setdefault((robot, variant, mode, configuration), {}).setdefault(source, []).append(row)
    return {
        case: {source: _seen_as(verdict_of(rows), _expected(robots, case)) for source, rows in of_case.items()}
        for case, of_case in by_source.items()
    }


def _expected(robots: Mapping[str, Mapping[str, Any]], case: Key) -> str:
    """The verdict that the robot's file expects of the mode of a case; empty if none."""
    robot, _, mode, _ = case
    return str((robots.get(robot, {}).get("expected") or {}).get(mode, ""))


def _seen_as(finding: CaseVerdict, expected: str) -> CaseVerdict:
    """A finding, seen against the verdict that is expected of the mode, if any."""
    if expected and finding.verdict == expected:
        return finding._replace(verdict="as expected")
    if expected and finding.verdict == "agree":
        return finding._replace(
            verdict="disagree", note="; ".join(filter(None, [f"expected: {expected}", finding.note]))
        )
    return finding


def verdict_of(rows: Sequence[Mapping[str, Any]]) -> CaseVerdict:
    """What the rows of a source in a case say, as `compare.verdict_rows` makes them."""
    limits = [float(row["tolerance"]) for row in rows if pd.notna(row["tolerance"])]
    errors = [float(row["relative_error"]) for row in rows if row["scale"] != 0]
    return CaseVerdict(
        verdict=min((str(row["verdict"]) for row in rows), key=SEVERITY.index),
        error=float(np.max(errors)) if errors else math.nan,  # NaN if one of them is
        tolerance=min(limits, default=math.nan),
        note="; ".join(dict.fromkeys(str(row["note"]) for row in rows if row["note"])),
    )


def worst(findings: Sequence[CaseVerdict]) -> CaseVerdict:
    """Several findings as one: the worst verdict, and the largest error there is."""
    errors = [finding.error for finding in findings if not math.isnan(finding.error)]
    first = min(findings, key=lambda finding: WORST_FIRST.index(finding.verdict))
    return first._replace(error=max(errors, default=math.nan))


def gravest(findings: Sequence[CaseVerdict]) -> CaseVerdict:
    """Several findings as one: the worst verdict, and the largest error of those that have it."""
    verdict = worst(findings).verdict
    return worst([finding for finding in findings if finding.verdict == verdict])


def verdict_counts(results: Results) -> Mapping[str, int]:
    """How many comparisons, of a source in a case each, have which verdict; the reference is none."""
    verdicts = [finding.verdict for of_case in case_verdicts(results).values() for finding in of_case.values()]
    return {verdict: verdicts.count(verdict) for verdict in MEANING}


def about_robots(results: Results) -> Mapping[str, Mapping[str, Any]]:
    """What the run says about each robot, those of the tables first."""
    records = results.run.get("robots") or {}
    return {str(name): records.get(name) or {} for name in [*results.summary["robot"].unique(), *records]}


def reference_of(summary: pd.DataFrame) -> str:
    """The source that rows of the summary are held against."""
    return str(summary["reference"].iloc[0]) if len(summary) else "analytic/noc"
