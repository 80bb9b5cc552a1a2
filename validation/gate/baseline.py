"""Baselines of the gate: stored findings, so that only new findings count."""

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import EllipsisType
from typing import TypeAlias

from loopcheck.validation.execution.baseline import read_baseline, write_baseline
from loopcheck.validation.gate.findings import Finding
from loopcheck.validation.gate.formats import GateResult

COMMAND = "gate"
COLUMNS = {"file": (str,), "code": (str,), "element": (str,), "count": (int,)}
"""Types of a row. Lines are left out, since they change with every edit."""
EXTENT = "extent"
"""Further column of findings with a size: the largest that is excused."""
GROWTH = 1.05
"""Growth of a finding beyond its stored size that is a new finding [-]; less is round-off of another machine."""
MOST = 1e30
"""Largest size that is stored: JSON has no infinity."""
Key: TypeAlias = tuple[str, str, str]


def store(results: Sequence[GateResult], path: Path) -> None:
    """Write the findings of some targets as a baseline, with files relative to its folder.

    Raises:
        BaselineError: If the file cannot be written.
    """
    stored: dict[Key, list[Finding]] = {}
    for finding in (finding for result in results for finding in result.findings):
        stored.setdefault(_key(finding, path), []).append(finding)
    rows: list[dict[str, object]] = []
    for key, findings in sorted(stored.items()):
        extents = [min(finding.extent, MOST) for finding in findings if finding.extent is not None]
        of_size = {EXTENT: float(f"{max(extents):.6g}")} if extents else {}
        rows.append(dict(zip(COLUMNS, (*key, len(findings)), strict=True)) | of_size)
    write_baseline(path, COMMAND, rows)


def new_findings(results: Sequence[GateResult], path: Path) -> list[GateResult]:
    """The results with new findings only.

    A stored finding excuses as many findings of its element as were stored, none that is larger. A baseline of an
    earlier version has no sizes: it excuses no finding with a size.

    Raises:
        BaselineError: If the baseline is missing or is no baseline of the gate.
    """
    rows = read_baseline(path, COMMAND, COLUMNS | {EXTENT: (int, float, EllipsisType)})["rows"]  # it may be absent
    left = {(row["file"], row["code"], row["element"]): row["count"] for row in rows}
    extents = {(row["file"], row["code"], row["element"]): row.get(EXTENT, 0.0) for row in rows}
    reduced = []
    for result in results:
        new = []
        for finding in result.findings:
            key = _key(finding, path)
            has_grown = finding.extent is not None and min(finding.extent, MOST) > GROWTH * extents.get(key, 0.0)
            if has_grown or not left.get(key):
                new.append(finding)
            else:
                left[key] -= 1
        reduced.append(replace(result, findings=tuple(new), known=len(result.findings) - len(new)))
    return reduced


def _key(finding: Finding, baseline: Path) -> Key:
    """File, code, and element or, for a finding on the whole file, its message without numbers if it has a size."""
    file = Path(os.path.relpath(finding.file, baseline.absolute().parent)).as_posix()
    message = finding.message if finding.extent is None else re.sub(r"[-+.\de]*\d[-+.\de]*", "#", finding.message)
    return file, finding.code, finding.element or message
