"""Baselines: stored rows of an earlier run, so that a command fails only for rows that are worse."""

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from loopcheck.robots.errors import HarnessError

SCHEMA = "loopcheck.baseline/1"
"""Version of the file."""


class BaselineError(HarnessError):
    """A baseline that cannot be read or written."""


def write_baseline(path: Path, command: str, rows: Sequence[Mapping[str, Any]], **more: Any) -> None:
    """Write a baseline, a row per line, so that its changes are readable in a repository.

    Args:
        path: File to write.
        command: Command that the rows come from.
        rows: Rows of texts, finite numbers and None.
        more: Further entries of the file.

    Raises:
        BaselineError: If the file cannot be written.
    """
    head = {"schema": SCHEMA, "command": command, "loopcheck": version("loopcheck"), **more}
    lines = [json.dumps(row, ensure_ascii=False, allow_nan=False) for row in rows]
    start = json.dumps(head, indent=1, ensure_ascii=False, allow_nan=False).removesuffix("\n}")
    text = start + ',\n "rows": [' + ",".join(f"\n  {line}" for line in lines) + "\n ]\n}\n"
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BaselineError(f"{path}: cannot write the baseline: {error.strerror}") from error


def read_baseline(
    path: Path,
    command: str,
    columns: Mapping[str, tuple[type, ...]],
    texts: Sequence[str] = (),
    option: str = "--write-baseline",
) -> Mapping[str, Any]:
    """Content of a baseline.

    Args:
        path: File to read.
        command: Command that its rows must come from.
        columns: Types of the entries of each row.
        texts: Further entries of the file, objects of texts.
        option: Option of the command that writes such a file.

    Raises:
        BaselineError: If the file is missing, is no baseline, or belongs to another command.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BaselineError(f"{path}: must be a baseline in JSON: {error}") from error
    found = content if isinstance(content, dict) else {}
    for name, wanted in {"schema": SCHEMA, "command": command}.items():
        if found.get(name) != wanted:
            remedy = f"Write it with loopcheck {command} {option} {path.name}"
            raise BaselineError(f"{path}: '{name}' must be '{wanted}', got {found.get(name)!r}. {remedy}")
    for name in texts:
        values = found.get(name)
        if not (isinstance(values, dict) and all(isinstance(value, str) for value in values.values())):
            raise BaselineError(f"{path}: '{name}' must be an object of texts, got {values!r:.60}")
    rows = found.get("rows")
    for k, row in enumerate(rows if isinstance(rows, list) else [rows]):
        if not (
            isinstance(row, dict) and all(isinstance(row.get(name, ...), kinds) for name, kinds in columns.items())
        ):
            raise BaselineError(f"{path}: row {k + 1} must have the columns {', '.join(columns)}, got {row!r:.60}")
    return found
