"""Runs the same command in several versions of MuJoCo, and lays what they find side by side."""

import importlib.metadata
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from packaging.version import InvalidVersion, Version
from rich.console import Console
from rich.progress import Progress

from robots.errors import HarnessError, OutputError
from validation import statuses
from validation.findings import CASE, Finding, findings
from validation.sources import REFERENCE
from validation.statuses import INTERNAL
from validation.tables import Results, drafts, read, read_csv, to_csv
from validation.tolerances import registered
from validation.versions.environments import Environment, made_by_uv, of_interpreter, rooms, run_in, this_one

OLDER = ("3.6.0", "3.7.0")
"""Run beside the installed version by default: between them MuJoCo changed how loops are solved."""
ROUTES = ("mujoco/kkt", "mujoco/forward", "mujoco/default")
"""Sources that run by default."""
NOTICEABLE = 0.01
"""Change of an effort of a source that is not judged, over its scale, from which on it is named [-]."""
SAME = "analytic/lagrange"
"""The source whose tolerance says how far the reference may move: it depends on MuJoCo's compiler alone."""
COLUMNS = {
    **dict.fromkeys((*CASE, "source", "mujoco", "verdict"), str),
    **dict.fromkeys(
        ("relative_error", "tolerance", "closure_drift", "wall_time", "wall_time_ratio", "effort_change"), float
    ),
    **dict.fromkeys(("change", "note"), str),
}
"""Of `versions.csv`: errors and changes of effort over their scale [-], drift [m or rad], wall time [s]; the ratio of
wall times is to the oldest version; changes are from the version before."""
TEXTS = tuple(column for column, kind in COLUMNS.items() if kind is str)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What the study has found, and all that its page is made from."""

    table: pd.DataFrame
    """What `versions.csv` holds."""
    run: Mapping[str, Any]
    """What `versions.json` holds."""

    @property
    def ran(self) -> tuple[str, ...]:
        """The versions that ran, the oldest first."""
        return tuple(of["mujoco"] for of in self.run["environments"] if not of["lacks"])

    @property
    def versions(self) -> tuple[str, ...]:
        """All versions that were asked for, the oldest first."""
        return tuple(of["mujoco"] for of in self.run["environments"])


def environments(versions: Sequence[str], interpreters: Sequence[Path]) -> list[Environment]:
    """The environments of a study, the oldest MuJoCo first; the one of this process is always there.

    Args:
        versions: Of MuJoCo, for which environments are made.
        interpreters: Of environments that the user has.

    Raises:
        HarnessError: If a version is none, an interpreter has no MuJoCo, or two have the same.
    """
    for version in versions:
        _want_version(version)
    found = [this_one(), *map(of_interpreter, interpreters)]
    for version in dict.fromkeys(versions):
        if version not in {environment.mujoco for environment in found}:
            found.append(made_by_uv(version))
    ordered = sorted(found, key=lambda environment: Version(environment.mujoco))
    for one, other in pairwise(ordered):
        if one.mujoco == other.mujoco:
            raise HarnessError(f"MuJoCo {one.mujoco} twice: {one.made} and {other.made}; want another version")
    return ordered


def _want_version(text: str) -> None:
    try:
        Version(text)
    except InvalidVersion as error:
        raise HarnessError(f"want a version of MuJoCo as 3.6.0, got '{text}'") from error


def run_study(where: Sequence[Environment], arguments: Sequence[str], out: Path, command: Sequence[str]) -> Findings:
    """Run a command of loopcheck in every environment, one after the other, and compare what they have written.

    Interrupted, it compares what is there.

    Args:
        where: The environments.
        arguments: The command and its arguments, without `--out`.
        out: Folder of the study; each version gets a folder in it.
        command: The command line, to be recorded.
    """
    start, found = datetime.now(UTC), dict.fromkeys((of.mujoco for of in where), "interrupted")
    results: dict[str, Results | str] = {}
    terminal = Console(stderr=True)
    with rooms() as place, Progress(console=terminal, transient=True, disable=not terminal.is_terminal) as progress:
        try:
            for of in progress.track(where, description="versions"):
                results[of.mujoco] = _results_of(of, place, arguments, out)
        except KeyboardInterrupt:
            pass
    results = {**found, **results}
    run = {
        "loopcheck": importlib.metadata.version("loopcheck"),
        "command": list(command),
        "start": start.isoformat(timespec="seconds"),
        "duration_s": (datetime.now(UTC) - start).total_seconds(),
        "environments": [_record(of, results[of.mujoco]) for of in where],
    }
    return Findings(table=versions_table(results), run=run)


def folder_of(version: str) -> str:
    """Name of the folder of a version's results."""
    return f"mujoco-{version}"


def _results_of(environment: Environment, place: Path, arguments: Sequence[str], out: Path) -> Results | str:
    folder = out / folder_of(environment.mujoco)
    reason = run_in(environment, place, [*arguments, "--out", str(folder)])
    if reason:
        return reason
    results = read(folder)
    got = (results.run.get("versions") or {}).get("mujoco")
    return results if got == environment.mujoco else f"it ran with MuJoCo {got}"


def _record(environment: Environment, results: Results | str) -> Mapping[str, Any]:
    ran = isinstance(results, Results)
    return {
        "mujoco": environment.mujoco,
        "made": environment.made,
        "lacks": "" if isinstance(results, Results) else results,
        "folder": folder_of(environment.mujoco) if ran else "",
        "duration_s": results.run.get("duration_s") if isinstance(results, Results) else None,
        "versions": results.run.get("versions") if isinstance(results, Results) else None,
    }


def versions_table(found: Mapping[str, Results | str]) -> pd.DataFrame:
    """A row for each case, source and version, with what has changed from the version before.

    Args:
        found: The results of each version, the oldest first, or why there are none.
    """
    seen = {version: _Seen.of(results) for version, results in found.items() if isinstance(results, Results)}
    keys = dict.fromkeys(chain.from_iterable(of.findings for of in seen.values()))
    rows = [row for key in keys or [("",) * 5] for row in _rows(key, found, seen)]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype(COLUMNS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """The results of a version, by robot, variant, mode, configuration and source."""

    findings: Mapping[tuple[str, ...], Finding]
    summary: Mapping[tuple[str, ...], pd.DataFrame]
    efforts: Mapping[tuple[str, ...], pd.DataFrame]

    @classmethod
    def of(cls, results: Results) -> "_Seen":
        found = findings(results)
        return cls(
            findings={(*case, source): finding for case, of in found.items() for source, finding in of.items()},
            summary=_by_source(results.summary),
            efforts=_by_source(results.efforts),
        )

    def largest(self, key: tuple[str, ...], column: str) -> float:
        return float(self.summary[key][column].max())


def _by_source(frame: pd.DataFrame) -> Mapping[tuple[str, ...], pd.DataFrame]:
    return {tuple(map(str, key)): rows for key, rows in frame.groupby([*CASE, "source"], sort=False)}


def _rows(
    key: tuple[str, ...], found: Mapping[str, Results | str], seen: Mapping[str, _Seen]
) -> Sequence[Mapping[str, Any]]:
    rows: list[Mapping[str, Any]] = []
    before: _Seen | None = None
    first = float("nan")
    for version, results in found.items():
        row: dict[str, Any] = {**dict(zip([*CASE, "source"], key, strict=True)), "mujoco": version}
        of = seen.get(version)
        if of is None or key not in of.findings:
            note = results if isinstance(results, str) else "it is not among its results"
            rows.append({**dict.fromkeys(COLUMNS, ""), **_no_numbers(), **row, "verdict": "not run", "note": note})
            continue
        finding, seconds = of.findings[key], of.largest(key, "wall_time")
        first = seconds if np.isnan(first) else first
        moved = np.nan if before is None else _effort_change(key, before, of)
        rows.append(
            {
                **row,
                "verdict": finding.verdict,
                "relative_error": finding.error,
                "tolerance": finding.tolerance,
                "closure_drift": of.largest(key, "closure_drift"),
                "wall_time": seconds,
                "wall_time_ratio": seconds / first if first > 0 else np.nan,
                "effort_change": moved,
                "change": "" if before is None else _change(before.findings[key], finding, moved, _limit(key, finding)),
                "note": finding.note,
            }
        )
        before = of
    return rows


def _no_numbers() -> Mapping[str, float]:
    return {column: np.nan for column, kind in COLUMNS.items() if kind is float}


def _limit(key: tuple[str, ...], finding: Finding) -> float:
    """From which change of an effort on it is named [-]."""
    if key[-1] == REFERENCE:
        return registered()[SAME].relative_error or 0.0
    return NOTICEABLE if np.isnan(finding.tolerance) else finding.tolerance


def _change(before: Finding, after: Finding, moved: float, limit: float) -> str:
    """What has changed, in words; empty if nothing that matters has."""
    parts = [f"{before.verdict} → {after.verdict}"] if before.verdict != after.verdict else []
    if moved > limit:
        parts.append(f"efforts move by {moved:.1e} of their scale")
    return "; ".join(parts)


def _effort_change(key: tuple[str, ...], before: _Seen, after: _Seen) -> float:
    """Largest change of an effort over time and actuators, over its scale [-]; NaN if the two do not compare."""
    if key not in before.efforts or key not in after.efforts:
        return np.nan
    one, other = (of.efforts[key] for of in (before, after))
    alike = len(one) == len(other) and (one["actuator"].to_numpy() == other["actuator"].to_numpy()).all()
    if not alike or not np.allclose(one["t"], other["t"], rtol=0, atol=1e-9):
        return np.nan
    scale = one["actuator"].map(after.summary[key].set_index("actuator")["scale"]).to_numpy(float)
    changes = np.abs(one["effort"].to_numpy() - other["effort"].to_numpy())[scale > 0] / scale[scale > 0]
    return float(changes.max()) if len(changes) else np.nan


def exit_status(found: Findings) -> int:
    """Exit status over all versions, as `statuses.exit_status` says."""
    internal = int(found.table["note"].str.contains(INTERNAL, regex=False).sum())
    return statuses.exit_status(Counter(found.table["verdict"]), internal)


def write_tables(found: Findings, folder: Path) -> None:
    """Write `versions.csv` and `versions.json` into a folder.

    Raises:
        OutputError: If the folder cannot be written.
    """
    try:
        with drafts(folder) as draft:
            to_csv(found.table, draft / "versions.csv")
            text = json.dumps(found.run, indent=2, ensure_ascii=False) + "\n"
            (draft / "versions.json").write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(f"{folder}: cannot write the tables of the study: {error.strerror}") from error


def read_tables(folder: Path) -> Findings | None:
    """What the study has written into a folder; None if it has not.

    Raises:
        OutputError: If a table is not what it should be.
    """
    csv, about = folder / "versions.csv", folder / "versions.json"
    if not csv.exists():
        return None
    try:
        frame = read_csv(csv, keep_default_na=False, na_values={c: [""] for c in COLUMNS if c not in TEXTS})
        run = json.loads(about.read_text(encoding="utf-8"))
        return Findings(table=frame[list(COLUMNS)].astype(COLUMNS), run=run)
    except (OSError, ValueError, KeyError) as error:
        raise OutputError(f"{csv}: want what `loopcheck versions` has written: {error}") from error
