"""Result of `loopcheck versions`: a row for each release of each model file."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from loopcheck.validation.common.json_values import finite
from loopcheck.validation.versions.comparison import Comparison, Dump, compare, equal_again

SCHEMA = "loopcheck.versions/1"
VERDICTS = {0: "no change", 1: "changed", 3: "not run"}
"""Verdicts by exit status."""
FIRST, SAME, CHANGED, NOT_RUN = "first", "same", "changed", "not run"
VERDICTS_OF_RELEASES = (FIRST, SAME, CHANGED, NOT_RUN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A model file in a release, beside the last release before it that ran."""

    release: str
    before: str = ""
    """The release that it is compared with."""
    verdict: str
    comparison: Comparison = field(default_factory=Comparison)
    again: str = ""
    """Earlier release with the same behaviour, after other behaviour between."""
    reason: str = ""
    """Reason for a release that did not run."""
    changelog: str = ""
    """Line of the changelog that may explain the change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResult:
    """A model file in all releases, the oldest first."""

    target: str
    path: Path
    digest: str
    """SHA-256 of the hashes of all its files."""
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    @property
    def exit_status(self) -> int:
        """1 a change, 3 a release did not run, else 0."""
        verdicts = {row.verdict for row in self.rows}
        return 1 if CHANGED in verdicts else 3 if NOT_RUN in verdicts else 0

    @property
    def failures(self) -> list[str]:
        """A line for each change, and for each release that did not run."""
        lines = []
        for row in self.rows:
            if row.verdict == CHANGED:
                first, *_ = row.comparison.terms
                where = f" at '{first.elements[0]}'" if first.elements else ""
                lines.append(f"{row.before} -> {row.release}: {first.term} changes by {first.size:.1e}{where}")
            elif row.verdict == NOT_RUN:
                lines.append(f"{row.release} not run: {row.reason}")
        return lines

    @property
    def changes(self) -> tuple[Row, ...]:
        """Rows with a change."""
        return tuple(row for row in self.rows if row.verdict == CHANGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionsResult:
    """Model files in several releases of an engine."""

    engine: str
    models: tuple[ModelResult, ...]

    @property
    def exit_status(self) -> int:
        """0 no change, 1 a change, 3 a release did not run."""
        return min((model.exit_status for model in self.models if model.exit_status), default=0)

    @property
    def verdict(self) -> str:
        """`no change`, `changed` or `not run`."""
        return VERDICTS[self.exit_status]

    def as_json(self) -> str:
        """The object of `loopcheck versions --format json`."""
        models = [
            {
                "target": model.target,
                "sha256": model.digest,
                "verdict": VERDICTS[model.exit_status],
                "notes": model.notes,
                "releases": [asdict(row) for row in model.rows],
            }
            for model in self.models
        ]
        entries = {"schema": SCHEMA, "exit_status": self.exit_status, "verdict": self.verdict, "engine": self.engine}
        return json.dumps(finite({**entries, "models": models}))


def rows(dumps: Sequence[tuple[str, Dump]], stored: tuple[str, Dump] | None = None) -> Iterator[Row]:
    """A row for each release, compared with the last before it that ran.

    Args:
        dumps: Releases and their dumps, the oldest first.
        stored: Name and dump of a pin, which comes first.
    """
    ran: list[tuple[str, Dump]] = []
    for version, dump in [*([stored] if stored else []), *dumps]:
        if reason := dump.get("refusal") or dump.get("failure"):
            refuses = "refuses the file: " if "refusal" in dump else ""
            yield Row(release=version, verdict=NOT_RUN, reason=f"{refuses}{reason}")
            continue
        if not ran:
            yield Row(release=version, verdict=FIRST)
        else:
            before, old = ran[-1]
            comparison = compare(old, dump)
            again = equal_again(dump, reversed(ran[:-1])) if comparison.terms else ""
            verdict = CHANGED if comparison.terms else SAME
            yield Row(release=version, before=before, verdict=verdict, comparison=comparison, again=again)
        ran.append((version, dump))
