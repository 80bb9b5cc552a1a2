"""Parts of a run's results that several sections look at, and what all of them show alike."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import pandas as pd

from validation.judge.results import Results
from validation.judge.verdicts import CASE, CaseVerdict, Key
from validation.report.blocks import NOTHING, Block, Cell, Section

RUN_HEADERS = {
    "closure_drift": "closure drift [m or rad]",
    "tracking_error": "tracking error [m or rad]",
    "wall_time": "wall time [s]",
}


def verdict_cell(finding: CaseVerdict | None) -> Cell:
    """A verdict with its largest error, in its colour."""
    if finding is None:
        return Cell(NOTHING)
    number = "" if finding.verdict == "reference" or math.isnan(finding.error) else f"\n{finding.error:.1e}"
    return Cell(finding.verdict + number, finding.verdict)


def rows_where(frame: pd.DataFrame, **values: str) -> pd.DataFrame:
    """The rows of a table with the wanted values."""
    for column, value in values.items():
        frame = frame[frame[column] == value]
    return frame


def part_of(results: Results, *tables: str, **values: str) -> Results:
    """The results with the wanted rows of some tables, and none of the others: what a worker needs."""
    frames = {field.name: getattr(results, field.name) for field in fields(results)}
    kept: dict[str, Any] = {
        name: rows_where(frame, **values) if name in tables else frame.iloc[:0]
        for name, frame in frames.items()
        if isinstance(frame, pd.DataFrame)
    }
    return replace(results, **kept)


def source_names(results: Results) -> list[str]:
    """All sources, in the order in which the tables name them."""
    tables = (results.summary, results.efforts, results.ladder)
    return [str(source) for source in pd.concat([frame["source"] for frame in tables]).unique()]


def anchors_of_cases(results: Results) -> Mapping[Key, str]:
    """Where each case stands on the page."""
    cases_of = results.summary[[*CASE]].drop_duplicates().itertuples(index=False, name=None)
    return {(str(a), str(b), str(c), str(d)): f"case-{k}" for k, (a, b, c, d) in enumerate(cases_of, start=1)}


def section_if(
    content: object, title: str, anchor: str, *blocks: Block, folded: bool | None = None
) -> Sequence[Section]:
    """A section, if there is something to show."""
    return [Section(title=title, anchor=anchor, blocks=blocks, folded=folded)] if content else []


def absent_in_words(results: Results) -> str:
    """Which engines were not asked for because they are not installed, and what they would add; empty if none."""
    absent = results.run.get("absent") or {}
    if not absent:
        return ""
    extras = ",".join(dict.fromkeys(engine["extra"] for engine in absent.values() if engine["extra"]))
    voting = set((results.run.get("lineages") or {}).values())
    more = sorted({engine["lineage"] for engine in absent.values()} - voting)
    lineages = f"{len(more)} lineage{'s' * (len(more) > 1)} more: {', '.join(more)}" if more else "no lineage more"
    mend = f"pip install 'loopcheck[{extras}]', or loopcheck engines add ENGINE,"
    return f"not installed and not asked for: {', '.join(absent)}; {mend} adds {lineages}"
