"""Findings on a target, as text, JSON, Markdown, commands of GitHub's workflows, and SARIF."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import one_line
from loopcheck.robots.mechanism import PinOffset
from loopcheck.validation.gate.findings import COLUMNS, PAGE, RULES, SEVERITIES, Finding, number_of

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "loopcheck.gate/1"
"""Version of the JSON object."""
MARKUP = frozenset("\\`*[]<>&|")
"""Characters with a meaning in Markdown."""
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """Findings on a target."""

    target: str
    file: Path
    findings: tuple[Finding, ...]
    seconds: float
    """Duration of the checks [s]."""
    loops: int | None = None
    """Number of closures and couplings; None for a file that does not compile, or with others alone."""
    known: int = 0
    """Further findings that a baseline excuses."""
    offsets: tuple[PinOffset, ...] = ()
    """Offsets along pins of closures."""
    closed: Array | None = None
    """A closed pose beside an open start of the file [m or rad], shape (nq,)."""

    @property
    def verdict(self) -> str:
        """Severity of the gravest finding, `error`, `warning` or `note`; `sound` without a finding."""
        found = {finding.severity for finding in self.findings}
        return next((severity for severity in SEVERITIES.values() if severity in found), "sound")

    @property
    def table(self) -> "pd.DataFrame":
        """A row for each finding: code, severity, file, line, element, message, remedy, page."""
        import pandas as pd

        return pd.DataFrame([finding.row for finding in self.findings], columns=COLUMNS)

    def report(self, path: str | Path) -> Path:
        """Write the output of `loopcheck gate` to a file: JSON, SARIF, Markdown or text, by its suffix."""
        path = Path(path)
        text = FORMATS[SUFFIXES.get(path.suffix.lower(), "text")]([self], int(self.verdict == "error"))
        path.write_text(f"{text}\n", encoding="utf-8")
        return path

    def __str__(self) -> str:
        return as_text([self], 0)


def as_text(results: Sequence[GateResult], status: int) -> str:
    """A line per finding, the remedy after the findings of a code, then the counts."""
    lines = []
    for (remedy, page), findings in groupby(_all(results), key=lambda finding: (finding.remedy, finding.page)):
        lines += [
            one_line(f"{each.file}:{each.line}: {each.code} {each.severity}: {each.message}") for each in findings
        ]
        lines.append(f"    {one_line(remedy)} See {page}")
    lines += [one_line(f"{result.file}: no loop (tree)") for result in results if result.loops == 0]
    seconds = sum(result.seconds for result in results)
    return "\n".join([*lines, f"{_counted(results)} ({seconds:.2f} s)"])


def as_json(results: Sequence[GateResult], status: int) -> str:
    """One object with a list of findings per target."""
    return json.dumps(
        {
            "schema": SCHEMA,
            "exit_status": status,
            "targets": [
                {
                    "target": result.target,
                    "file": str(result.file),
                    "seconds": result.seconds,
                    "known": result.known,
                    "loops": result.loops,
                    "findings": [finding.row for finding in result.findings],
                }
                for result in results
            ],
        }
    )


def as_github(results: Sequence[GateResult], status: int) -> str:
    """Commands of GitHub's workflows, which annotate the lines of a pull request."""
    kinds = {"error": "error", "warning": "warning", "note": "notice"}
    return "\n".join(
        f"::{kinds[finding.severity]} file={_escaped(finding.file, ':,')},line={finding.line},"
        f"title={finding.code}::{_escaped(f'{finding.message}. {finding.remedy}')}"
        for finding in _all(results)
    )


def as_markdown(results: Sequence[GateResult], status: int) -> str:
    """A table of errors and warnings for the comment of a pull request; notes are counted."""
    findings = list(_all(results))
    shown = [finding for finding in findings if finding.severity != "note"]
    lines = [f"**loopcheck gate**: {_counted(results)}"]
    if shown:
        lines += ["", "| file | code | finding | remedy |", "| --- | --- | --- | --- |"]
    for finding in shown:
        texts = (f"{finding.file}:{finding.line}", finding.message, finding.remedy)
        place, message, remedy = map(_unmarked, texts)
        lines.append(f"| {place} | {finding.code} {finding.severity} | {message} | {remedy} |")
    return "\n".join(lines)


def as_sarif(results: Sequence[GateResult], status: int) -> str:
    """A log in SARIF 2.1.0, for code scanning."""
    rules = [
        {
            "id": code,
            "name": rule.title.title().replace(" ", ""),
            "shortDescription": {"text": rule.title},
            "help": {"text": f"{rule.remedy} See {PAGE}#{code.lower()}."},
            "defaultConfiguration": {"level": SEVERITIES[code[2]]},
        }
        for code, rule in RULES.items()
    ]
    driver = {"name": "loopcheck", "version": version("loopcheck"), "rules": rules}
    run = {"tool": {"driver": driver}, "results": [_sarif_result(finding) for finding in _all(results)]}
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]})


FORMATS: Mapping[str, Callable[[Sequence[GateResult], int], str]] = {
    "text": as_text,
    "json": as_json,
    "github": as_github,
    "markdown": as_markdown,
    "sarif": as_sarif,
}
"""Writers by the value of `--format`."""
SUFFIXES = {".json": "json", ".sarif": "sarif", ".md": "markdown"}
"""Formats of files."""


def _all(results: Sequence[GateResult]) -> Iterator[Finding]:
    for result in results:
        yield from result.findings


def _counted(results: Sequence[GateResult]) -> str:
    """Number of files, and of findings by severity."""
    counts, known = Counter(finding.severity for finding in _all(results)), sum(result.known for result in results)
    counted = ", ".join(number_of(counts[severity], severity) for severity in SEVERITIES.values())
    return f"{number_of(len(results), 'file')}: {counted}{f', {known} in the baseline' if known else ''}"


def _sarif_result(finding: Finding) -> dict[str, Any]:
    place = {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(finding.file.replace("\\", "/"), safe="/:")},
            "region": {"startLine": finding.line},
        }
    }
    return {
        "ruleId": finding.code,
        "level": finding.severity,
        "message": {"text": f"{finding.message}. {finding.remedy}"},
        "locations": [place],
    }


def _unmarked(text: str) -> str:
    """A text in one line of Markdown, with its punctuation as characters: names may hold links, pictures and HTML."""
    return "".join(f"&#{ord(each)};" if each in MARKUP else each for each in one_line(text))


def _escaped(text: str, more: str = "") -> str:
    """A text with the characters encoded that end a command of a workflow."""
    for character in f"%\r\n{more}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text
