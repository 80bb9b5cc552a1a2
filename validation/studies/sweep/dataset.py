"""The Parquet data set of a study: a file for each chunk of cases, whole or not there."""

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from robots.errors import OutputError

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
    """The file of a chunk."""
    return folder / PARTS / f"part-{chunk:06d}.parquet"


def write_part(table: pa.Table, path: Path) -> None:
    """Write a chunk; it gets its name when it is whole and on the disk.

    Raises:
        OutputError: If it cannot be written.
    """
    draft = path.with_suffix(".writing")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            pq.write_table(table, file, compression="zstd")
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        raise OutputError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)


def clear(folder: Path) -> None:
    """Remove the data set of an earlier study."""
    shutil.rmtree(folder / PARTS, ignore_errors=True)


def tables(folder: Path, count: int, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The chunks in order, one at a time.

    Raises:
        OutputError: If one cannot be read.
    """
    for chunk in range(count):
        path = part(folder, chunk)
        try:
            with pq.ParquetFile(path) as file:
                yield file.read(columns=columns)
        except (OSError, pa.ArrowException) as error:
            raise OutputError(f"{path}: want a part of the study: {error}") from error
