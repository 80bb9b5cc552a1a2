"""The data set of a study: a file for each chunk of cases, complete or absent."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from loopcheck.robots.errors import OutputError
from loopcheck.validation.execution.tables import TableSpec, bulk_format, read_table, write_table

PARTS = "sweep_cases"
"""Folder of the data set."""


def chunks(cases: int) -> list[range]:
    """Cases by chunk: the same for more cases, small enough to lose little, some thousand files for a million cases."""
    parts, first = [], 0
    while first < cases:
        size = min(1000, max(10, first // 20))
        parts.append(range(first, min(first + size, cases)))
        first += size
    return parts


def part(folder: Path, chunk: int) -> Path:
    """The file of a chunk; Parquet if pyarrow is installed, otherwise CSV."""
    return folder / PARTS / f"part-{chunk:06d}.{bulk_format()}"


def write_part(table: pd.DataFrame, path: Path) -> None:
    """Write a chunk; it gets its name when it is whole and on the disk.

    Raises:
        OutputError: If it cannot be written.
    """
    draft = path.with_name(f"writing-{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_table(table, draft)
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)


def clear(folder: Path) -> None:
    """Remove the data set of an earlier study."""
    shutil.rmtree(folder / PARTS, ignore_errors=True)


def tables(folder: Path, count: int, spec: TableSpec) -> Iterator[pd.DataFrame]:
    """The chunks in order, one at a time.

    Raises:
        OutputError: If a chunk cannot be read.
    """
    for chunk in range(count):
        files = sorted((folder / PARTS).glob(f"part-{chunk:06d}.*"))  # of the installation that wrote it
        yield read_table(files[0] if files else part(folder, chunk), spec)
