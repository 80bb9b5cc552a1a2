"""Baselines of the gate: stored findings, so that only new findings count."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from loopcheck.validation.execution.baseline import read_baseline, write_baseline
from loopcheck.validation.gate.findings import Finding
from loopcheck.validation.gate.gate import GateResult

COMMAND = "gate"
COLUMNS = {"file": (str,), "code": (str,), "element": (str,), "count": (int,)}
"""Types of a row. Lines are left out, since they change with every edit."""


def store(results: Sequence[GateResult], path: Path) -> None:
    """Write the findings of some targets as a baseline, with files relative to its folder.

    Raises:
        BaselineError: If the file cannot be written.
    """
    counts = Counter(_key(finding, path) for result in results for finding in result.findings)
    rows = [dict(zip(COLUMNS, (*key, count), strict=True)) for key, count in sorted(counts.items())]
    write_baseline(path, COMMAND, rows)


def new_findings(results: Sequence[GateResult], path: Path) -> list[GateResult]:
    """The results with new findings only; a stored finding excuses as many findings of its element as were stored.

    Raises:
        BaselineError: If the baseline is missing or is no baseline of the gate.
    """
    rows = read_baseline(path, COMMAND, COLUMNS)["rows"]
    left = Counter({(row["file"], row["code"], row["element"]): row["count"] for row in rows})
    reduced = []
    for result in results:
        new = []
        for finding in result.findings:
            key = _key(finding, path)
            left[key] -= 1
            if left[key] < 0:
                new.append(finding)
        reduced.append(replace(result, findings=tuple(new), known=len(result.findings) - len(new)))
    return reduced


def _key(finding: Finding, baseline: Path) -> tuple[str, str, str]:
    """File, code, and element or, for a finding on the whole file, its message."""
    file = Path(os.path.relpath(finding.file, baseline.absolute().parent)).as_posix()
    return file, finding.code, finding.element or finding.message
