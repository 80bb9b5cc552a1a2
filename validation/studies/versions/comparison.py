"""Changes of the results of the same command between versions of an engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from loopcheck.validation.common.results import Results
from loopcheck.validation.common.sources import REFERENCE
from loopcheck.validation.common.tolerances import registered
from loopcheck.validation.common.verdicts import CASE, CaseVerdict, case_verdicts
from loopcheck.validation.execution.tables import number, table_of, text

NOTICEABLE = 0.01
"""Smallest reported change of an effort of a source without a tolerance, over its scale."""
SAME = "analytic/lagrange"
"""Source with the tolerance for changes of the reference: it depends only on the compiler of MuJoCo."""
TABLE = table_of(
    {
        **{name: text() for name in (*CASE, "source", "version", "verdict")},
        **{name: number() for name in ("relative_error", "tolerance")},
        "closure_drift": number("m or rad"),
        "wall_time": number("s"),
        **{name: number() for name in ("wall_time_ratio", "effort_change")},
        **{name: text() for name in ("change", "note")},
    }
)
"""Errors and changes of effort over their scale; the ratio of wall times is relative to the oldest version that ran,
changes are relative to the previous version."""


_BLANK = {name: np.nan if name in TABLE.units else "" for name in TABLE.columns}


def versions_table(results_of_versions: Mapping[str, Results | str]) -> pd.DataFrame:
    """A row for each case, source and version, with the changes from the version before.

    Args:
        results_of_versions: The results of each version, the oldest first, or the reason for their absence.
    """
    tables = {
        version: _VersionTables.from_results(results)
        for version, results in results_of_versions.items()
        if isinstance(results, Results)
    }
    keys = dict.fromkeys(chain.from_iterable(table.verdicts for table in tables.values()))
    rows = [row for key in keys or [("",) * 5] for row in _rows(key, results_of_versions, tables)]
    return TABLE.frame(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class _VersionTables:
    """The results of a version, by robot, variant, mode, configuration and source."""

    verdicts: Mapping[tuple[str, ...], CaseVerdict]
    summary: Mapping[tuple[str, ...], pd.DataFrame]
    efforts: Mapping[tuple[str, ...], pd.DataFrame]

    @classmethod
    def from_results(cls, results: Results) -> "_VersionTables":
        findings = case_verdicts(results)
        return cls(
            verdicts={
                (*case, source): finding
                for case, findings_of_case in findings.items()
                for source, finding in findings_of_case.items()
            },
            summary=_by_source(results.summary),
            efforts=_by_source(results.efforts),
        )

    def largest(self, key: tuple[str, ...], column: str) -> float:
        return float(self.summary[key][column].max())


def _by_source(frame: pd.DataFrame) -> Mapping[tuple[str, ...], pd.DataFrame]:
    return {tuple(map(str, key)): rows for key, rows in frame.groupby([*CASE, "source"], sort=False)}


def _rows(
    key: tuple[str, ...], results_of_versions: Mapping[str, Results | str], tables: Mapping[str, _VersionTables]
) -> Sequence[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    before: _VersionTables | None = None
    first = float("nan")
    for version, results in results_of_versions.items():
        row: dict[str, Any] = {**dict(zip([*CASE, "source"], key, strict=True)), "version": version}
        own = tables.get(version)
        if own is None or key not in own.verdicts:
            note = results if isinstance(results, str) else "missing in its results"
            rows.append({**_BLANK, **row, "verdict": "not run", "note": note})
            continue
        finding, seconds = own.verdicts[key], own.largest(key, "wall_time")
        first = seconds if np.isnan(first) else first
        moved = np.nan if before is None else _effort_change(key, before, own)
        rows.append(
            {
                **row,
                "verdict": finding.verdict,
                "relative_error": finding.error,
                "tolerance": finding.tolerance,
                "closure_drift": own.largest(key, "closure_drift"),
                "wall_time": seconds,
                "wall_time_ratio": seconds / first if first > 0 else np.nan,
                "effort_change": moved,
                "change": "" if before is None else _change(before.verdicts[key], finding, moved, _limit(key, finding)),
                "note": finding.note,
            }
        )
        before = own
    return rows


def _limit(key: tuple[str, ...], finding: CaseVerdict) -> float:
    """Smallest change of an effort that is reported [-]."""
    if key[-1] == REFERENCE:
        return registered()[SAME].relative_error or 0.0
    return NOTICEABLE if np.isnan(finding.tolerance) else finding.tolerance


def _change(before: CaseVerdict, after: CaseVerdict, moved: float, limit: float) -> str:
    """The change, in words; empty without a relevant change."""
    parts = [f"{before.verdict} → {after.verdict}"] if before.verdict != after.verdict else []
    if moved > limit:
        parts.append(f"efforts change by {moved:.1e} of their scale")
    return "; ".join(parts)


def _effort_change(key: tuple[str, ...], before: _VersionTables, after: _VersionTables) -> float:
    """Largest change of an effort over time and actuators, over its scale [-]; NaN if the two do not compare."""
    if key not in before.efforts or key not in after.efforts:
        return np.nan
    one, other = (tables.efforts[key] for tables in (before, after))
    alike = len(one) == len(other) and (one["actuator"].to_numpy() == other["actuator"].to_numpy()).all()
    if not alike or not np.allclose(one["t"], other["t"], rtol=0, atol=1e-9):
        return np.nan
    scale = one["actuator"].map(after.summary[key].set_index("actuator")["scale"]).to_numpy(float)
    changes = np.abs(one["effort"].to_numpy() - other["effort"].to_numpy())[scale > 0] / scale[scale > 0]
    return float(changes.max()) if len(changes) else np.nan
