"""Interim results of a check: the table of verdicts, filled as sources and audits end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import RenderableType

from loopcheck.validation.comparison import sources
from loopcheck.validation.comparison.audit import Row, blocking_reasons, doubts
from loopcheck.validation.comparison.compare import Evidence, verdict_rows
from loopcheck.validation.comparison.evaluate import Outcome
from loopcheck.validation.comparison.tolerances import Tolerance
from loopcheck.validation.comparison.verdicts import FILE, CaseVerdict, Key, verdict_of
from loopcheck.validation.report.terminal import awaited, table, verdict_cell

UNAUDITED = "audit pending"
UNRESOLVED = "rerun pending"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interim:
    """The results so far; a verdict on a route stands when engine and file are audited, and no error is in question."""

    tolerances: Mapping[str, Tolerance]
    """By name of the source."""
    beside: Mapping[Key, Key] = field(default_factory=dict)
    """Original case of each case on a random motion; both have the same audits."""
    outcomes: dict[tuple[Key, str], Outcome] = field(default_factory=dict)
    """By case and source."""
    audits: dict[tuple[Key, str], Sequence[Row]] = field(default_factory=dict)
    """By case and engine."""
    verdicts: dict[tuple[Key, str], tuple[CaseVerdict, str]] = field(default_factory=dict)
    """Verdict and pending step, by case and source."""

    def take(self, key: tuple[Key, str], result: Outcome | Sequence[Row]) -> None:
        """Add the outcome of a source in a case, or the audit of an engine."""
        case, name = key
        if isinstance(result, Outcome):
            self.outcomes[key] = result
        else:
            self.audits[key] = result
        concerns_all = name in (FILE, sources.REFERENCE)
        for other, source in self.outcomes:
            if case in (other, self.beside.get(other)) and (concerns_all or name in (source, source.split("/")[0])):
                self._judge(other, source)

    def table(self, robot: str) -> RenderableType:
        """The table of a robot."""
        cells: dict[str, dict[str, list[tuple[CaseVerdict, str]]]] = {}
        for (case, source), verdict in self.verdicts.items():
            if case[0] == robot:
                cells.setdefault(source, {}).setdefault(case[3], []).append(verdict)
        columns = list(dict.fromkeys(configuration for of_source in cells.values() for configuration in of_source))
        rows = ([source, *(_cell(of_source.get(name, ())) for name in columns)] for source, of_source in cells.items())
        return table(["source", *columns], rows, title=f"{robot}: so far")

    def _judge(self, case: Key, source: str) -> None:
        reference = self.outcomes.get((case, sources.REFERENCE))
        if reference is None:
            return
        engine, audited = source.split("/")[0], self.beside.get(case, case)
        readers = [FILE] if source in sources.ANALYTIC else [FILE, engine]
        known = [row for reader in readers for row in self.audits.get((audited, reader), ())]
        evidence = Evidence(
            tolerances=self.tolerances, blocking_reasons=blocking_reasons(known), doubts=doubts(known)
        ).with_cases_beside(self.beside)
        rows: list[Mapping[str, Any]] = verdict_rows(self.outcomes[case, source], reference, evidence)
        verdict = verdict_of(rows)
        coming = UNAUDITED if any((audited, reader) not in self.audits for reader in readers) else ""
        if not coming and verdict.verdict == "disagree" and verdict.error > verdict.tolerance:
            coming = UNRESOLVED
        self.verdicts[case, source] = (verdict, coming)


def _cell(verdicts_to_come: Sequence[tuple[CaseVerdict, str]]) -> str:
    """Entry of some cases in the table: their worst verdict, or the pending task."""
    coming = next((coming for _, coming in verdicts_to_come if coming), "")
    verdicts = [verdict for verdict, _ in verdicts_to_come]
    return awaited(verdicts, coming) if coming else verdict_cell(verdicts)
