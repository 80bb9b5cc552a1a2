"""Comparison of a check with a stored result: which rows are worse."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from loopcheck.validation.common.limits import FLOORS
from loopcheck.validation.common.verdicts import (
    CASE,
    NOT_SUPPORTED,
    SEVERITY,
    about_robots,
    case_verdicts,
    counted,
    unjudged_cases,
)
from loopcheck.validation.execution.baseline import read_baseline, write_baseline

if TYPE_CHECKING:  # bad input is refused before pandas is imported
    from loopcheck.validation.common.results import Results

COMMAND = "check"
KEY = (*CASE, "source", "actuator")
"""Columns that name a row."""
NUMBER = (int, float, type(None))
COLUMNS: Mapping[str, tuple[type, ...]] = {
    **dict.fromkeys((*KEY, "verdict"), (str,)),
    **dict.fromkeys(("max_error", "scale", "floor"), NUMBER),
}
"""Types of a row; error, scale and floor in N or N m."""
FAILING = ("disagree", "not run", "not comparable")
"""Verdicts that fail a check, the worst first."""
NO_ENGINE = "no engine"
"""Source of the row of a case that no engine is judged in."""
MOST = 20
"""Rows on the terminal."""
SAME_LOAD = 1e-6
"""Largest relative change of the scale of an effort on the same motion of the same robot [-].
The reference repeats its scales to round-off on every machine; another motion or load changes them by more."""

RowKey = tuple[str, ...]


class Worse(NamedTuple):
    """A row that is worse than its stored row."""

    row: RowKey
    """Robot, variant, mode, configuration, source and actuator."""
    verdict: str
    """Verdict that decides the exit status."""
    reason: str

    def __str__(self) -> str:
        return f"{', '.join(filter(None, self.row))}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineResult:
    """A check beside its baseline."""

    file: str
    worse: Sequence[Worse]
    better: int
    """Rows that failed and agree now, or with a smaller error beyond the floor."""
    unchanged: int
    changed: Sequence[str]
    """Robots with other model files or another load than stored; their rows count by their own verdicts."""

    @property
    def verdicts(self) -> list[str]:
        """Verdicts that decide the exit status: of worse rows; all others are as expected."""
        return [*(worse.verdict for worse in self.worse), "as expected"]

    @property
    def lines(self) -> Iterator[str]:
        """Terminal output."""
        yield f"Baseline: {len(self.worse)} worse, {self.better} better, {self.unchanged} unchanged ({self.file})"
        for change in self.changed:
            yield f"Changed: {change}; its rows count by their own verdicts. Accept with --write-baseline"
        yield from (f"Worse: {worse}" for worse in self.worse[:MOST])
        if len(self.worse) > MOST:
            yield f"Worse: {len(self.worse) - MOST} more, all with --format json"

    def as_json(self) -> dict[str, Any]:
        """The comparison for other programs."""
        worse = [
            {**dict(zip(KEY, row, strict=True)), "verdict": verdict, "reason": reason}
            for row, verdict, reason in self.worse
        ]
        counts = {"better": self.better, "unchanged": self.unchanged}
        return {"file": self.file, "worse": worse, **counts, "changed": list(self.changed)}


def store(results: "Results", path: Path) -> None:
    """Write the rows of a check as a baseline.

    Raises:
        BaselineError: If the file cannot be written.
    """
    write_baseline(path, COMMAND, list(rows_of(results).values()), models=_models(results))


def stored(path: Path) -> Mapping[str, Any]:
    """Content of the baseline of a check.

    Raises:
        BaselineError: If it is missing or is no baseline of a check.
    """
    return read_baseline(path, COMMAND, COLUMNS, ("models",))


def compare(results: "Results", baseline: Mapping[str, Any], file: str) -> BaselineResult:
    """Hold the rows of a check against a baseline.

    A row is worse if it agreed and does not, if its verdict is graver, or if it disagreed and its error is larger by
    more than `FLOORS` noise floors. A new row counts by its verdict, a missing row as not run. A stored row of another
    model file or another load is no excuse: the row of today counts as new.

    Args:
        results: Tables and record of the check.
        baseline: See `stored`.
        file: Name of the baseline, for the output.
    """
    before = {_key(row): row for row in baseline["rows"]}
    rows, changed = rows_of(results), dict[str, str]()
    for key, row in rows.items():
        then = before.get(key)
        if then is not None and _is_other_load(row, then):
            scales = f"{then['scale']:.4g} -> {row['scale']:.4g}"
            changed[key[0]] = f"{key[0]}: another motion or load, effort scale of '{row['actuator']}' {scales}"
    for name, digest in _models(results).items():
        then = baseline["models"].get(name, digest)
        if then != digest:
            changed[name] = f"{name}: another model file, SHA-256 {then:.12} -> {digest:.12}"
    worse, better, unchanged = [], 0, 0
    for key, row in rows.items():
        then = None if key[0] in changed else before.get(key)
        reason = _worse(row, then)
        if reason:
            verdict = row["verdict"] if row["verdict"] in FAILING else "not comparable"
            worse.append(Worse(key, verdict, reason))
        elif then is not None and _is_better(row, then):
            better += 1
        else:
            unchanged += 1
    worse += [
        Worse(key, "not run", f"the row is missing; it was '{row['verdict']}'")
        for key, row in before.items()
        if key not in rows and row["verdict"] in ("agree", *FAILING) and row["source"] != NO_ENGINE
    ]
    return BaselineResult(file=file, worse=worse, better=better, unchanged=unchanged, changed=list(changed.values()))


def rows_of(results: "Results") -> Mapping[RowKey, Mapping[str, Any]]:
    """Rows of a check as a baseline stores them: those that count, with the verdict that the robot's file expects."""
    findings, robots = case_verdicts(results), about_robots(results)
    floors = {_key(row): row["floor"] for row in results.run.get("floors") or ()}
    records: list[Any] = results.summary.fillna({"note": ""}).to_dict("records")
    by_source: dict[RowKey, list[Mapping[str, Any]]] = {}
    for row in records:
        by_source.setdefault(_key(row)[:-1], []).append(row)
    rows: dict[RowKey, Mapping[str, Any]] = {}
    for (*names, source), of_source in by_source.items():
        robot, variant, mode, configuration = names
        finding = findings[robot, variant, mode, configuration][source]
        is_expected = bool((robots[robot].get("expected") or {}).get(mode))
        for row in counted(of_source):
            key = _key(row)
            verdict = finding.verdict if is_expected else row["verdict"]
            numbers = {"max_error": row["max_error"], "scale": row["scale"], "floor": floors.get(key, math.nan)}
            rows[key] = {
                **dict(zip(KEY, key, strict=True)),
                "verdict": verdict,
                **{name: _finite(value) for name, value in numbers.items()},
            }
    nothing = dict.fromkeys(("max_error", "scale", "floor"))
    for case in unjudged_cases(results):
        key = (*case, NO_ENGINE, "")
        rows[key] = {**dict(zip(KEY, key, strict=True)), "verdict": "not comparable", **nothing}
    return rows


def _worse(row: Mapping[str, Any], then: Mapping[str, Any] | None) -> str:
    """The reason why a row is worse; empty if it is not."""
    now = row["verdict"]
    if then is None:
        return f"new row, '{now}'" if now in FAILING else ""
    was = then["verdict"]
    if (was == "agree" and now != "agree") or (now in FAILING and _gravity(now) < _gravity(was)):
        return f"'{was}' -> '{now}'"
    if now == was == "disagree" and _difference(row, then) > 0:
        return f"error {_number(then['max_error'])} -> {_number(row['max_error'])}, floor {_floor(row, then):.2g}"
    return ""


def _is_better(row: Mapping[str, Any], then: Mapping[str, Any]) -> bool:
    if then["verdict"] in FAILING and row["verdict"] not in FAILING and row["verdict"] != NOT_SUPPORTED:
        return True
    return row["verdict"] == then["verdict"] == "disagree" and _difference(then, row) > 0


def _gravity(verdict: str) -> int:
    return SEVERITY.index(verdict) if verdict in SEVERITY else len(SEVERITY)


def _difference(row: Mapping[str, Any], then: Mapping[str, Any]) -> float:
    """Increase of the error beyond the noise floors [N or N m]; an error that is not finite is the largest."""
    now, was = (math.inf if one["max_error"] is None else one["max_error"] for one in (row, then))
    return 0.0 if now == was else float(now - was - FLOORS * _floor(row, then))


def _floor(row: Mapping[str, Any], then: Mapping[str, Any]) -> float:
    return max(one["floor"] or 0.0 for one in (row, then))


def _is_other_load(row: Mapping[str, Any], then: Mapping[str, Any]) -> bool:
    now, was = row["scale"], then["scale"]
    return None not in (now, was) and abs(now - was) > SAME_LOAD * max(now, was)


def _models(results: "Results") -> dict[str, str]:
    """SHA-256 of the hashes of all files of each model."""
    models = (results.run.get("models") or {}).items()
    return {name: hashlib.sha256(json.dumps(model["files"]).encode()).hexdigest() for name, model in models}


def _key(row: Mapping[str, Any]) -> RowKey:
    return tuple(str(row[name]) for name in KEY)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.4g}"
