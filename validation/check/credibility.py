"""The page of credibility of a result: what was verified by what, with which uncertainty, and what was left out.

The factors are those of NASA-STD-7009, beside the activities of ASME V&V 10 (2006) and the uncertainties of V&V 20
(2009): a comparison error E with the numerical u_num, input u_input and data u_D parts of the validation uncertainty.
Every finding is from the tables and the record of the result; what loopcheck cannot assess is named as such.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from loopcheck.robots.errors import OutputError, listed
from loopcheck.robots.formats.losses import losses_in, unread
from loopcheck.validation.check.closing import unsupported_in_words
from loopcheck.validation.check.independence import IN_WORDS, bases
from loopcheck.validation.common.results import Results
from loopcheck.validation.common.results import read as read_results
from loopcheck.validation.common.sources import is_log
from loopcheck.validation.common.verdicts import CASE, case_verdicts, verdict_counts
from loopcheck.validation.execution.tables import read_record
from loopcheck.validation.report import pages
from loopcheck.validation.report.blocks import Cell, Section, Table, digits, percent

if TYPE_CHECKING:
    import pandas as pd

STEM, TITLE = "credibility", "loopcheck: credibility of a result"
WITH_TABLES = ("check", "judge")
"""Studies whose results have a page of credibility."""
SAFETY = 3.0
"""Factor of safety of an uncertainty without a trusted order [-], as in `docs/reference/orders.md`."""
FEW = 3
"""Names in a cell, before their number."""


def write_credibility(folder: Path) -> Path:
    """Write the page into a folder of results.

    Raises:
        OutputError: If the folder has no result of a check or of a judged log.
    """
    study = str(read_record(folder).get("study"))
    if study not in WITH_TABLES:
        raise OutputError(
            f"{folder}: a page of credibility must be made from a result of check or judge, got one of {study!r}"
        )
    results = read_results(folder)
    pages.write_pages([section(results)], folder, stem=STEM, title=TITLE)
    return folder / f"{STEM}.html"


def section(results: Results) -> Section:
    """The page: a row for each factor, with what was found and where the evidence is."""
    rows = [[Cell(cell) for cell in row] for row in _rows(results)]
    return Section(
        title="Credibility",
        anchor="credibility",
        blocks=[Table(["factor (NASA-STD-7009)", "activity (ASME V&V 10, 20)", "finding", "evidence"], rows)],
    )


def _rows(results: Results) -> Iterator[tuple[str, str, str, str]]:
    run = results.run
    robots = [str(name) for name in results.summary["robot"].unique()]
    cases = results.summary[CASE].drop_duplicates()
    yield (
        "Intended use",
        "model of interest",
        f"Efforts of the actuators of {listed(robots, FEW)} for a prescribed motion. Cases of a robot, mode and "
        f"configuration: {len(cases)}. Other motions, contacts and dry friction are outside.",
        "summary.csv",
    )
    yield "Data pedigree", "inputs", _inputs(results), "run.json: models, tolerances"
    yield "Verification", "code verification", _code(results), "report.html: verdicts; audit.csv"
    yield "Verification", "independence", _independence(results), "run.json: lineages, shares"
    yield "Verification", "solution verification, u_num", _numerical(results), "ladder.csv"
    yield "Validation", "validation, E and u_D", _validation(results), "summary.csv: rows of logs"
    yield (
        "Input uncertainty",
        "u_input",
        "Not propagated: masses, lengths and motions are taken as exact. loopcheck study sweep varies them.",
        "",
    )
    yield "Results robustness", "comparison error E", _errors(results), "summary.csv, efforts.csv"
    yield "Left out", "assumptions", _left_out(results), "run.json: losses, not_run"
    yield "Use history", "documentation", _history(run), "run.json"
    yield "Management, people", "assessment", "Not assessed by loopcheck.", ""


def _inputs(results: Results) -> str:
    """Files with the first digits of their SHA-256, and the readers that agree on their numbers."""
    models = results.run.get("models") or {}
    files = [f"{about['file']} {str(about['sha256'])[:12]}" for about in models.values()]
    found = bases(results)
    read = {basis.text_of_file for basis in found.values()}
    count = sum(bool(basis.readers) for basis in found.values())
    readers = f"; numbers confirmed by a second reader in {count} of {len(found)} judged cases" if read else ""
    return f"SHA-256 {listed(files, FEW)}{readers}."


def _code(results: Results) -> str:
    """Counts of verdicts, and of the audit of what engines simulate."""
    counts = {name: count for name, count in verdict_counts(results).items() if count}
    audited = _counted(results.audit["verdict"].value_counts(sort=False))
    return f"Comparisons with the reference: {_counted(counts)}. Audit of the engines' models: {audited}."


def _counted(counts: "Mapping[str, int] | pd.Series[int]") -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"


def _independence(results: Results) -> str:
    """Cases with independent equations, and inputs that all sources share."""
    found = bases(results).values()
    if not found:
        return "No case has a source that agrees with the reference."
    independent = sum(basis.is_independent for basis in found)
    closed = sum(basis.closed_form for basis in found)
    every = [{*inputs} for inputs in (results.run.get("shares") or {}).values()]
    common = set.intersection(*every) if every else set()
    shared = ", ".join(words for name, words in IN_WORDS.items() if name in common)
    return (
        f"{independent} of {len(found)} cases with an agreement rest on a closed form ({closed}) or on two code bases; "
        f"the others are agreement only. Inputs that every source shares with the reference: {shared or 'none'}."
    )


def _numerical(results: Results) -> str:
    """Largest uncertainty of the simulations at their finest step, by source."""
    ladder = results.ladder
    if ladder.empty:
        return "No source has results for several step sizes; exact sources have round-off only."
    keys = [*CASE, "source"]
    finest = ladder.groupby(keys, sort=False).tail(1)
    largest = finest.groupby("source")["change"].max().dropna().sort_values()
    sizes = [f"{source} {SAFETY * change:.1e}" for source, change in largest.items()]
    return (
        f"{len(sizes)} sources in refinement; bound of the finest step before extrapolation, {SAFETY:g} times its last "
        f"change over the scale: {listed(sizes[::-1], FEW)}. Orders and ranges: loopcheck study refinement."
    )


def _validation(results: Results) -> str:
    logs = results.summary[[is_log(str(source)) for source in results.summary["source"]]]
    if logs.empty:
        return (
            "None: no measured data in this result. It verifies that engines solve the equations of the model, and "
            "says nothing on how well the model describes a machine. loopcheck judge compares a measured log."
        )
    error = logs["relative_error"].max()
    return (
        f"Logs judged: {logs['source'].nunique()}. E is up to {percent(float(error))} of the peak effort. u_D is the "
        "noise of the log, as in the report. A simulated log validates nothing."
    )


def _errors(results: Results) -> str:
    """Largest errors of the judged sources and of unmodified simulations."""
    judged = [
        finding.error
        for of_case in case_verdicts(results).values()
        for source, finding in of_case.items()
        if not is_log(source)
        if finding.verdict in ("agree", "disagree", "as expected") and np.isfinite(finding.error)
    ]
    unmodified = results.summary.loc[results.summary["source"].str.endswith("/as_is"), "relative_error"].dropna()
    parts = [
        f"judged sources up to {digits(max(judged))} of the scale of the actuator" if judged else "",
        f"unmodified simulations up to {percent(float(unmodified.max()))} of the peak effort"
        if len(unmodified)
        else "",
    ]
    return "; ".join(part for part in parts if part).capitalize() + "." if any(parts) else "No error was measured."


def _left_out(results: Results) -> str:
    """Elements of the files that are not in the equations, tasks that did not run, and engines without a verdict."""
    losses = [loss for loss in losses_in(results.run) if loss.kind != "setting"]
    missing = results.run.get("not_run") or []
    absent = unsupported_in_words(results)
    parts = [
        f"not in the model: {listed([*dict.fromkeys(loss.words for loss in losses)], FEW)}" if losses else "",
        f"{len(unread(losses))} unread parts of the mechanism: results are of another robot" if unread(losses) else "",
        f"not run: {listed(missing, FEW)}" if missing else "",
        f"not supported: {absent}" if absent else "",
    ]
    return "; ".join(part for part in parts if part).capitalize() + "." if any(parts) else "Nothing."


def _history(run: Mapping[str, Any]) -> str:
    listed = [f"{name} {version}" for name, version in (run.get("versions") or {}).items()]
    command = " ".join(map(str, run.get("command") or ()))
    made = f"loopcheck {run.get('loopcheck')} ({str(run.get('commit'))[:10]}), {run.get('start')}"
    return f"{made}: {command}. {', '.join(listed)}."
