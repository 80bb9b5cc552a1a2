"""Entries of the robots of some collections, each a folder with the tables of one study."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from docs.site.notes import NOTES, SPEC, together
from loopcheck.robots.errors import OutputError
from loopcheck.validation.common.results import TABLES
from loopcheck.validation.common.verdicts import CaseVerdict, Key, gravest, summary_verdicts, worst
from loopcheck.validation.execution.tables import TableSpec, read_record, read_tables
from loopcheck.validation.studies.atlas.study import Atlas

ATLAS = "atlas"
"""Name of the table of models, and of the collection of public models."""
CATALOGUE = "catalogue"
"""Name of the collection of the loopcheck robots."""
NAME = r"[a-z0-9][a-z0-9_-]*"
"""Pattern of robot names, which are part of the URLs of pages and files."""
COUNTS = ("loops", "dof", "actuators", "bodies")
MODELS = Atlas.tables[ATLAS]
"""A row for each model. Columns: `docs/reference/atlas.md`."""
_POINTS = TableSpec(columns=TABLES["points"].columns, optional=True)
SPECS: Mapping[str, TableSpec] = {
    ATLAS: MODELS,
    "summary": TABLES["summary"],
    "audit": TABLES["audit"],
    "points": _POINTS,
    NOTES: SPEC,
}
"""Tables of a collection by file name; robots are drawn only with the table of points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A robot with its tables."""

    collection: str
    """Name of the collection folder."""
    model: Mapping[str, Any]
    """Its row of the table of models; empty texts and NaN for unknown values."""
    about: Mapping[str, Any]
    """Its entry in the record of the run, if present."""
    verdicts: Mapping[Key, Mapping[str, CaseVerdict]]
    """Findings by case and source."""
    audit: pd.DataFrame
    """Its rows of the table of the audit."""
    points: pd.DataFrame
    """Its rows of the table of points; None if the drawing does not use points."""
    versions: Mapping[str, str]
    """Versions of all programs of the run, by name."""
    start: str
    """Date of the run."""

    @property
    def name(self) -> str:
        """Its `id`."""
        return str(self.model["id"])

    @property
    def title(self) -> str:
        """Title of the robot, or its name."""
        return str(self.about.get("title") or self.name)

    @property
    def findings(self) -> Mapping[str, Sequence[CaseVerdict]]:
        """Verdicts in each case, by source, without the reference."""
        by_source: dict[str, list[CaseVerdict]] = {}
        for of_case in self.verdicts.values():
            for source, finding in of_case.items():
                if finding.verdict != "reference":
                    by_source.setdefault(source, []).append(finding)
        return by_source

    @property
    def of_sources(self) -> Mapping[str, CaseVerdict]:
        """The worst verdict of each source, and the largest error with it."""
        return {source: gravest(findings) for source, findings in self.findings.items()}

    @property
    def losses(self) -> Mapping[str, Sequence[str]]:
        """Differences of each engine from the model and unsupported elements, by engine, each once."""
        sentences: dict[str, dict[str, None]] = {}
        expected = self.about.get("expected") or {}
        beyond = self.audit[
            (self.audit["tier"] != "trajectory")
            & ~self.audit["quantity"].str.startswith("effort")
            & (self.audit["verdict"] != "agree")
            & (self.audit["verdict"] != self.audit["mode"].map(expected))
        ]
        for row in records(beyond):
            sentences.setdefault(row["engine"], {})[_loss(row)] = None
        for source, findings in self.findings.items():
            for finding in findings:
                if finding.verdict in ("not comparable", "not run") and finding.note:
                    engine, _, route = source.partition("/")
                    sentences.setdefault(engine, {})[f"{route} is {finding.verdict}: {finding.note}"] = None
        return {engine: tuple(several) for engine, several in sorted(sentences.items())}


def read_collections(folders: Iterable[Path]) -> tuple[Entry, ...]:
    """The robots of all folders with a table of models, by collection and name.

    Args:
        folders: Folders of the collections; a missing folder has no robots.

    Raises:
        OutputError: If a table is invalid, or two robots share a name.
    """
    entries: dict[str, Entry] = {}
    for folder in folders:
        for entry in _entries(folder) if (folder / f"{ATLAS}.csv").exists() else ():
            if entry.name in entries:
                raise OutputError(f"{folder}: names must be unique in all collections, got '{entry.name}' twice")
            entries[entry.name] = entry
    return tuple(entries.values())


def _entries(folder: Path) -> Iterator[Entry]:
    tables, record = together(read_tables(folder, SPECS)), read_record(folder)
    models = tables.pop(ATLAS).sort_values("id")
    bad = [name for name in models["id"] if not pd.Series([name]).str.fullmatch(NAME).all()]
    if bad:
        raise OutputError(
            f"{folder / ATLAS}.csv: ids must consist of lower case letters, digits, - and _, got {bad[0]!r}"
        )
    about = record.get("robots") or {}
    verdicts = summary_verdicts(tables["summary"], about)
    rows = {name: dict(list(frame.groupby("robot"))) for name, frame in tables.items()}
    for model in records(models):
        name = model["id"]
        yield Entry(
            collection=folder.name,
            model=model,
            about=about.get(name) or {},
            verdicts={key: of_case for key, of_case in verdicts.items() if key[0] == name},
            audit=rows["audit"].get(name, tables["audit"].head(0)),
            points=rows["points"].get(name, tables["points"].head(0)),
            versions=record.get("versions") or {},
            start=str(record.get("start") or ""),
        )


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows of a table by their columns."""
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def _loss(row: Mapping[str, Any]) -> str:
    """Difference of an engine from the model, in one line."""
    if row["quantity"] == "all" and row["note"]:
        return f"{row['verdict']}: {row['note']}"
    subject = f"{row['quantity']} of {row['element']}"
    if pd.notna(row["wanted"]) and pd.notna(row["found"]):
        unit = "" if row["unit"] == "-" else f" {row['unit']}"
        subject += f": the model has {row['wanted']:.4g}{unit}, the engine {row['found']:.4g}{unit}"
    return f"{subject} ({row['note']})" if row["note"] else subject


def worst_as_is(entry: Entry, engine: str) -> CaseVerdict | None:
    """Verdict on the unmodified simulations of an engine, or None."""
    findings = entry.findings.get(f"{engine}/as_is")
    return worst(findings) if findings else None
