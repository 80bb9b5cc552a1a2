"""Tables and record of a study for the site, without unused rows and local paths."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from docs.site.entries import SPECS
from docs.site.notes import apart
from loopcheck.validation.common.verdicts import CASE, SEVERITY, shown_errors
from loopcheck.validation.execution.files import RECORD
from loopcheck.validation.execution.tables import to_csv

ROOT = Path(__file__).parent.parent
CHECKOUT = re.compile(r"/\S*?/(?=robots/)")
"""Folder of the checkout in the path of a model, on the machine of the run."""
FOREIGN_PLACE = re.compile(r"(?:file://)?/.*")
"""Command argument that depends on a path of the machine."""


def keep(folder: Path, tables: Mapping[str, pd.DataFrame], record: Mapping[str, Any]) -> None:
    """Write a collection of the site.

    Args:
        folder: Of the collection.
        tables: By name, of `SPECS`, with their notes.
        record: Of the study.
    """
    folder.mkdir(exist_ok=True)
    shorter = {"audit": _needed(tables["audit"]), "summary": _telling(tables["summary"])}
    needed = {name: _portable(table) for name, table in {**tables, **shorter}.items()}
    for name, table in apart(needed).items():
        to_csv(SPECS[name].frame(table), folder / f"{name}.csv")
    command = ["PLACE" if FOREIGN_PLACE.fullmatch(argument) else argument for argument in record["command"]]
    kept = {name: entry for name, entry in record.items() if name != "floors"}  # of a baseline alone
    text = json.dumps({**kept, "command": command}, indent=2, ensure_ascii=False)
    (folder / RECORD).write_text(CHECKOUT.sub("", text) + "\n", encoding="utf-8")


def _portable(table: pd.DataFrame) -> pd.DataFrame:
    """A table with file names in its notes relative to the root of the repository."""
    return table.assign(note=table["note"].str.replace(CHECKOUT, "", regex=True)) if "note" in table else table


def _telling(summary: pd.DataFrame) -> pd.DataFrame:
    """The decisive rows of each source, and all rows of the reference, with the required effort of each actuator."""
    rows = [row for _, of_source in summary.groupby([*CASE, "source"], sort=False) for row in _rows_of(of_source)]
    return summary.loc[sorted(rows)]


def _rows_of(rows: pd.DataFrame) -> set[Any]:
    """Labels of the rows of a source with its worst verdict, its largest error, its limit, or a note of their own."""
    if "reference" in set(rows["verdict"]):
        return set(rows.index)
    rank, errors = rows["verdict"].map(SEVERITY.index), shown_errors(rows[rows["scale"] != 0])
    telling = {rank.idxmin(), *rows.index[~rows["note"].duplicated()], *errors.index[errors.isna()][:1]}
    for ends in (errors.nlargest(1), rows["tolerance"].nsmallest(1)):
        telling.update(ends.index)
    return telling


def _needed(audit: pd.DataFrame) -> pd.DataFrame:
    """The audit rows for the pages: differences from the model, and one row of each robot and tier."""
    before = audit[audit["tier"] != "trajectory"]  # what is in there is in the summary
    return before[(before["verdict"] != "agree") | ~before.duplicated(["robot", "engine", "tier"])]
