"""Notes of tables that a collection keeps once each: in a table of their own, with a key that stands in their place."""

from collections.abc import Mapping

import pandas as pd

from loopcheck.robots.errors import OutputError
from loopcheck.validation.execution.tables import TableSpec, integer, table_of, text

NOTES = "notes"
"""Name of the table of notes."""
KEPT_APART = ("summary", "audit")
"""Tables with notes in that table."""
SPEC: TableSpec = table_of({"key": integer(), "note": text()})


def apart(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Tables with keys for notes, and the table of notes.

    Args:
        tables: By name; a note that is missing or empty stays so.
    """
    every = [note for name in KEPT_APART for note in tables[name]["note"]]
    notes = [note for note in dict.fromkeys(every) if isinstance(note, str) and note]
    keys = {note: str(key) for key, note in enumerate(notes)}
    return {**_with_notes(tables, keys), NOTES: SPEC.frame(pd.DataFrame({"key": range(len(notes)), "note": notes}))}


def together(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Tables with their notes, as they were before they were kept apart.

    Args:
        tables: By name, with the table of notes.

    Raises:
        OutputError: If a key has no note.
    """
    notes = {str(row["key"]): row["note"] for row in tables[NOTES].to_dict("records")}
    keys = {key for name in KEPT_APART for key in tables[name]["note"] if key}
    if without := sorted(keys - set(notes)):
        raise OutputError(f"{NOTES}.csv: each key must have a note, missing: {', '.join(without)}")
    return _with_notes({name: table for name, table in tables.items() if name != NOTES}, notes)


def _with_notes(tables: Mapping[str, pd.DataFrame], other: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    """Tables with each note replaced; unknown notes become empty."""
    changed = {name: [other.get(note, "") for note in tables[name]["note"]] for name in KEPT_APART}
    return {**tables, **{name: tables[name].assign(note=notes) for name, notes in changed.items()}}
