"""Findings of a check as a JUnit file, for tools that show test results.

One test case for each case and source, in a suite for each robot. The file passes if and only if the exit status of the
check is 0: `disagree` is a failure; `not run` and `not comparable` are errors; sources that are never judged are
skipped. A lost audit of a source that is never judged is a separate error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from junitparser import Error, Failure, JUnitXml, Properties, Property, Skipped, TestCase, TestSuite

from loopcheck.robots.errors import OutputError
from loopcheck.robots.formats.losses import losses_in, unread
from loopcheck.validation.common.results import Results
from loopcheck.validation.common.sources import has_accuracy
from loopcheck.validation.common.verdicts import (
    CASE,
    JUDGED,
    NOT_SUPPORTED,
    CaseVerdict,
    Key,
    case_verdicts,
    shown_error,
    unjudged_cases,
)
from loopcheck.validation.report.blocks import plain

if TYPE_CHECKING:
    import pandas as pd

FIGURES = (
    *("peak", "case_peak", "scale", "max_error", "rms_error", "relative_error", "peak_error"),
    *("tolerance", "closure_drift", "tracking_error"),
)
"""Columns of the summary that become properties of each actuator."""
RESULTS = {
    "disagree": Failure,
    "not run": Error,
    "not comparable": Error,
    NOT_SUPPORTED: Skipped,
    "informational": Skipped,
    "reference": Skipped,
}
"""Elements of a JUnit file by verdict; verdicts without an element pass."""


def write_junit(results: Results, path: Path) -> None:
    """Write the JUnit file of a run.

    Raises:
        OutputError: If it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        junit(results).write(str(path), pretty=True)
    except OSError as error:
        raise OutputError(f"{path}: cannot write the JUnit file: {error.strerror}") from error


def junit(results: Results) -> JUnitXml:
    """The JUnit file of a run."""
    summary, xml = results.summary, JUnitXml("loopcheck")
    findings = case_verdicts(results)
    for robot in dict.fromkeys(case[0] for case in findings):
        suite = TestSuite(robot)
        for name, value in _about(results, robot):
            suite.add_property(name, _legal(value))
        for case, of_case in findings.items():
            for source, finding in of_case.items() if case[0] == robot else ():
                rows = summary[(summary[[*CASE, "source"]] == [*case, source]).all(axis=1)]
                suite.add_testcase(_test_case(case, source, finding, rows))
        xml.add_testsuite(suite)
    failures = [*_failures_of_the_run(results, findings)]
    if failures:
        suite = TestSuite("loopcheck")
        suite.add_testcases(failures)
        xml.add_testsuite(suite)
    xml.update_statistics()
    return xml


def _test_case(case: Key, source: str, finding: CaseVerdict, rows: pd.DataFrame) -> TestCase:
    wall_time = float(rows["wall_time"].max())
    test = TestCase(source, ".".join(case), 0.0 if math.isnan(wall_time) else wall_time)
    properties = Properties()
    for name, value in _properties(finding, rows):
        properties.add_property(Property(name, _legal(value)))
    test.append(properties)
    if finding.verdict in RESULTS:
        test.append(RESULTS[finding.verdict](_message(finding, rows), finding.verdict))
    return test


def _properties(finding: CaseVerdict, rows: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """The verdict of the worst actuator, and the figures of each actuator; missing figures are left out."""
    yield "verdict", finding.verdict
    worst = {
        "peak_error" if has_accuracy(str(rows["source"].iloc[0])) else "relative_error": finding.error,
        "tolerance": finding.tolerance,
        "closure_drift": float(rows["closure_drift"].max()),
        "tracking_error": float(rows["tracking_error"].max()),
    }
    of_actuators = {
        f"{row['actuator']}.{name}": float(row[name]) for row in rows.to_dict("records") for name in FIGURES
    }
    for name, value in {**worst, **of_actuators}.items():
        if not math.isnan(value):
            yield name, repr(value)
    for row in rows.to_dict("records"):
        yield f"{row['actuator']}.unit", str(row["unit"])
    if finding.note:
        yield "note", finding.note


def _message(finding: CaseVerdict, rows: pd.DataFrame) -> str:
    """One line: the verdict, the worst actuator with its figures, and the note."""
    parts = [] if finding.verdict == "reference" else [finding.verdict]
    if finding.verdict == "disagree" and not math.isnan(finding.error):
        worst = max(rows.to_dict("records"), key=shown_error)
        parts += [f"{worst['actuator']}: relative error {finding.error:.3g}, tolerance {finding.tolerance:.3g}"]
    return _legal("; ".join([*parts, *([finding.note] if finding.note else [])]))


def _legal(text: str) -> str:
    """A text without characters that are illegal in XML, as an engine's message may contain them."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\N{REPLACEMENT CHARACTER}", text)


def _about(results: Results, robot: str) -> Iterator[tuple[str, str]]:
    """Properties needed to repeat the suite of a robot."""
    run = results.run
    yield "command", " ".join(map(str, run.get("command") or ()))
    yield "loopcheck", str(run.get("loopcheck"))
    for name in ("versions", "cpu"):
        yield name, plain(run.get(name))
    yield "model", plain((run.get("models") or {}).get(robot))
    tolerances = run.get("tolerances") or {}
    yield "tolerances.sha256", str(tolerances.get("sha256"))
    for source, limit in (tolerances.get("own") or {}).items():
        yield f"tolerances.own.{source}", repr(float(limit))


def _failures_of_the_run(results: Results, findings: Mapping[Key, Mapping[str, CaseVerdict]]) -> Iterator[TestCase]:
    """Failures of the whole check: no judged comparison, or lost tasks without a verdict."""
    verdicts = {finding.verdict for of_case in findings.values() for finding in of_case.values()}
    if not verdicts & {*JUDGED, "as expected"}:
        yield _failure_of_the_run("anything judged", "not run", ["not run: no judged source was run"])
    for case in unjudged_cases(results):
        reason = f"not comparable: {', '.join(case)}: no engine supports this case"
        yield _failure_of_the_run(f"engine judged: {'.'.join(case)}", "not comparable", [reason])
    for loss in unread(losses_in(results.run)):
        yield _failure_of_the_run(f"read: {loss.tag}", "not comparable", [f"not comparable: {loss.place}: {loss}"])
    for name, key, kind in (
        ("all tasks run", "not_run", "not run"),
        ("no error of loopcheck", "internal_errors", "internal error"),
    ):
        if results.run.get(key):
            yield _failure_of_the_run(name, kind, results.run[key])


def _failure_of_the_run(name: str, kind: str, reasons: Iterable[str]) -> TestCase:
    test = TestCase(name, "loopcheck")
    test.append(Error(_legal("; ".join(dict.fromkeys(reasons))), kind))
    return test
