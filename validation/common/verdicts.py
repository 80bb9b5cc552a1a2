"""Findings of a run: a verdict for each source in a case, and their counts."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from loopcheck.robots.arrays import Array
from loopcheck.validation.common import sources
from loopcheck.validation.common.limits import LEAST_PEAK, UNUSABLE

if TYPE_CHECKING:
    import pandas as pd

    from loopcheck.validation.common.results import Results

CASE = ["robot", "variant", "mode", "configuration"]
MEASURED = "measured"
"""Verdict of a study on a measured value without a limit."""
NOT_SUPPORTED = "not supported"
"""Verdict on a source that lacks an element of the model, unless the user has named the source."""
SEVERITY = ("disagree", "not run", "not comparable", NOT_SUPPORTED, "agree", "informational", "reference")
"""Verdicts, the worst first: a source is shown with the worst of its actuators."""
WORST_FIRST = (
    "disagree",
    "not run",
    "not comparable",
    NOT_SUPPORTED,
    "agree",
    "informational",
    "as expected",
    "reference",
)
"""Meaning of the verdicts, the worst first; several cases together are shown with their worst verdict."""
MEANING: Mapping[str, str] = {
    "agree": "for every actuator, the largest error over time is within the tolerance",
    "disagree": "for at least one actuator, the error exceeds the tolerance, or the source exceeds another limit. "
    "The note names the limit",
    "not comparable": "the engine simulates a different robot, the route does not resolve this error, or there are no "
    "finite efforts. The note names the reason",
    "not run": "there is no result. The note names the reason",
    NOT_SUPPORTED: "the source cannot represent an element of the model, which the note names. The row is not counted",
    "as expected": "not comparable, as registered in robot.toml for this mode. The row is not counted",
    "informational": "the error is measured and never judged",
}
JUDGED = ("agree", "disagree", "not comparable", "not run")
NO_LOAD = "no load: no force does work along the motion of this actuator"
IDLE = "idle, error at most"
"""First words of the note on an actuator that needs less effort than the noise floor; see `verdict_of`."""

FILE = "model file"
"""Takes the place of an engine in the audit: the compiled model, and further readings of the robot's files."""
READING = "second reading"
"""Quantity of a further reading of the files that agrees; its note has the reader and the number of values."""

Key: TypeAlias = tuple[str, str, str, str]
"""Robot, variant, mode and configuration."""


def within(error: float, limit: float) -> bool:
    """Return whether an error is at most a limit; values that are not finite never agree."""
    return math.isfinite(error) and math.isfinite(limit) and error <= limit


def verdict_of_figure(figure: float, otherwise: str = "not comparable") -> str:
    """Verdict on a measured figure without a limit: `measured`, if it is finite."""
    return MEASURED if math.isfinite(figure) else otherwise


class CaseVerdict(NamedTuple):
    """Verdict on a source in a case."""

    verdict: str
    """The worst of its actuators, or `as expected`; `reference` for the reference, unless it failed."""
    error: float
    """Largest error of its actuators, each as in `shown_error` [-]; NaN if there is none."""
    tolerance: float
    """Tolerance or accuracy, the limit of the error [-]; NaN without a judgement."""
    note: str

    @property
    def is_unusable(self) -> bool:
        """Whether it is not judged and its error exceeds the effort itself, as of a run that chatters."""
        return self.verdict == "informational" and self.error > UNUSABLE

    @property
    def word(self) -> str:
        """The verdict as it is shown."""
        return "unusable" if self.is_unusable else self.verdict


def case_verdicts(results: "Results") -> Mapping[Key, Mapping[str, CaseVerdict]]:
    """Verdicts by case and source."""
    return summary_verdicts(results.summary, about_robots(results))


def summary_verdicts(
    summary: "pd.DataFrame", robots: Mapping[str, Mapping[str, Any]]
) -> Mapping[Key, Mapping[str, CaseVerdict]]:
    """Verdicts by case and source.

    Args:
        summary: Table of a run.
        robots: Entries of its record on each robot.
    """
    columns = [*CASE, "source", "verdict", "note", "peak", "max_error", "scale", "relative_error", "tolerance"]
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
    """The verdict registered by the robot's file for the mode of a case; empty without a registration."""
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


def shown_error(row: Mapping[Any, Any]) -> float:
    """Error of a row of the summary, relative to the quantity of its limit [-].

    For unmodified simulations and logs, with an accuracy, this is the peak of the required effort; for all other
    sources, with a tolerance, it is the scale.
    """
    if not sources.has_accuracy(str(row["source"])):
        return float(row["relative_error"])
    divisor = float(accuracy_divisor(row["peak"], row["scale"]))
    return float(row["max_error"]) / divisor if divisor > 0 else math.nan


def shown_errors(rows: "pd.DataFrame") -> "pd.Series[float]":
    """Errors of rows of the summary, each as in `shown_error` [-]."""
    import pandas as pd

    return pd.Series(list(map(shown_error, rows.to_dict("records"))), index=rows.index, dtype=float)


def accuracy_divisor(peak: ArrayLike, scale: ArrayLike) -> Array:
    """Efforts that an accuracy multiplies: the peak, and at least a part of the scale [N or N m], of the same shape.

    Args:
        peak: Largest required efforts [N or N m].
        scale: Scales of the errors [N or N m].
    """
    return np.maximum(np.asarray(peak, dtype=np.float64), LEAST_PEAK * np.asarray(scale, dtype=np.float64))


def verdict_of(rows: Sequence[Mapping[str, Any]]) -> CaseVerdict:
    """The verdict on a source in a case from its rows, with a row for each actuator.

    Idle actuators do not count beside a judged actuator.
    """
    rows = counted(rows)
    tolerances = [row["tolerance"] for row in rows if row["tolerance"] is not None]
    limits = [float(tolerance) for tolerance in tolerances if not math.isnan(tolerance)]
    errors = [shown_error(row) for row in rows if row["scale"] != 0]
    return CaseVerdict(
        verdict=min((str(row["verdict"]) for row in rows), key=SEVERITY.index),
        error=float(np.max(errors)) if errors else math.nan,  # NaN if one of them is
        tolerance=min(limits, default=math.nan),
        note="; ".join(dict.fromkeys(str(row["note"]) for row in rows if row["note"])),
    )


def counted(rows: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The rows of a source in a case that count: idle actuators do not, beside a judged actuator."""
    if any(row["verdict"] in ("agree", "disagree") for row in rows):
        return [row for row in rows if not str(row["note"]).startswith(IDLE)]
    return rows


def worst(findings: Sequence[CaseVerdict]) -> CaseVerdict:
    """Several verdicts combined: the worst verdict, and the largest error of all."""
    errors = [finding.error for finding in findings if not math.isnan(finding.error)]
    first = min(findings, key=lambda finding: WORST_FIRST.index(finding.verdict))
    return first._replace(error=max(errors, default=math.nan))


def gravest(findings: Sequence[CaseVerdict]) -> CaseVerdict:
    """Several verdicts combined: the worst verdict, and the largest error among the sources with this verdict."""
    verdict = worst(findings).verdict
    return worst([finding for finding in findings if finding.verdict == verdict])


def exit_verdicts(results: "Results") -> list[str]:
    """The verdicts that decide the exit status of a check; a case without a judged engine is not comparable."""
    every = [finding.verdict for of_case in case_verdicts(results).values() for finding in of_case.values()]
    return [*every, *results.connections["verdict"], *("not comparable" for _ in unjudged_cases(results))]


def unjudged_cases(results: "Results") -> list[Key]:
    """Cases without a judged row of an engine, unless the user has named analytic sources only.

    The agreement of our own models shows nothing about an engine. Cases on a random motion have no engine of their own.
    """
    if results.run.get("analytic_only", False):
        return []
    findings = case_verdicts(results).items()
    return [case for case, of in findings if not (original_mode(results, case) or is_engine_judged(of))]


def original_mode(results: "Results", case: Key) -> str:
    """Mode of the case that this case repeats on a random motion; empty for all other cases."""
    robot, _, mode, _ = case
    return str(((results.run.get("random_modes") or {}).get(robot) or {}).get(mode, ""))


def is_engine_judged(of_case: Mapping[str, CaseVerdict]) -> bool:
    """Return whether the case has a judged row of an engine or a log, or its verdict is registered.

    Args:
        of_case: Verdicts of the case by source.
    """
    return any(
        finding.verdict in (*JUDGED, "as expected")
        for source, finding in of_case.items()
        if not source.startswith("analytic/")
    )


def verdict_counts(results: "Results") -> Mapping[str, int]:
    """Number of comparisons by verdict, each of a source in a case; the reference does not count."""
    verdicts = [finding.verdict for of_case in case_verdicts(results).values() for finding in of_case.values()]
    return {verdict: verdicts.count(verdict) for verdict in MEANING}


def about_robots(results: "Results") -> Mapping[str, Mapping[str, Any]]:
    """Entries of the record on each robot, robots of the tables first."""
    records = results.run.get("robots") or {}
    return {str(name): records.get(name) or {} for name in [*results.summary["robot"].unique(), *records]}


def reference_of(summary: "pd.DataFrame") -> str:
    """The source that rows of the summary are held against."""
    return str(summary["reference"].iloc[0]) if len(summary) else "analytic/noc"
