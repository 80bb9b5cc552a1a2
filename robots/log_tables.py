"""Formats of log files. Every reader returns named columns; `log_files` maps the names to joints and actuators."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from loopcheck.robots.errors import MechanismError
from loopcheck.robots.ros_tables import METADATA, echo_table, is_echo, read_bag
from loopcheck.robots.text_table import first_row, read_text_table

if TYPE_CHECKING:
    import pandas as pd

KEY = "loopcheck"
"""Metadata key of the description in a Parquet file."""
PARQUET = ".parquet"
FOXGLOVE = ("topic", "value")
"""Columns of a plot's data by Foxglove and Lichtblick: a row for each value."""
FOXGLOVE_TIMES = ("header.stamp", "receive time", "elapsed time")
"""Its times; the first without gaps counts."""


def read_table(path: Path) -> "tuple[pd.DataFrame, str]":
    """Named columns of a log file, and the description that it contains, as TOML.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is no table of this format.
        MechanismError: If the library of the format is not installed.
    """
    return read_bag(path) if path.is_dir() else FORMATS.get(path.suffix.lower(), _read_text)(path)


def files_of_log(path: Path) -> tuple[Path, ...]:
    """Files of a log: the file itself, or those in the folder of a bag; and the description beside it.

    Raises:
        MechanismError: If there is no such file, or no bag in the folder.
    """
    if path.is_dir() and not (path / METADATA).is_file():
        raise MechanismError(f"{path}: the folder of a bag must have a file {METADATA}, got none")
    if not path.exists():
        raise MechanismError(f"{path}: the file must exist, got no such file")
    return (*(sorted(path.iterdir()) if path.is_dir() else (path,)), path.with_suffix(".toml"))


def pyarrow(path: Path) -> ModuleType:
    """The library of Parquet files.

    Raises:
        MechanismError: If it is not installed.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise MechanismError(
            f"{path}: Parquet requires pyarrow: pip install 'loopcheck[parquet]', or convert the log to CSV"
        ) from error
    return pa


def _read_parquet(path: Path) -> "tuple[pd.DataFrame, str]":
    pa = pyarrow(path)
    try:
        table = pa.parquet.read_table(path)
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error
    metadata = table.schema.metadata or {}
    return table.to_pandas(ignore_metadata=True), metadata.get(KEY.encode(), b"").decode("utf-8")


def _read_text(path: Path) -> "tuple[pd.DataFrame, str]":
    if is_echo(first_row(path)):
        frame, above = read_text_table(path, has_names=False)
        return echo_table(frame), above
    frame, above = read_text_table(path)
    return (_of_foxglove(frame) if set(FOXGLOVE) <= set(frame.columns) else frame), above


def _of_foxglove(frame: "pd.DataFrame") -> "pd.DataFrame":
    """A column for each plotted path."""
    times = next((name for name in FOXGLOVE_TIMES if name in frame.columns and frame[name].notna().all()), "")
    if not times:
        raise ValueError(f"a plot's data must have a column of times ({', '.join(FOXGLOVE_TIMES)}) without gaps")
    topic, value = FOXGLOVE
    twice = frame.duplicated([times, topic])
    if twice.any():
        row = frame[twice].iloc[0]
        raise ValueError(f"a topic must have one value at a time, got two of '{row[topic]}' at {times} {row[times]}")
    wide = frame.pivot_table(index=times, columns=topic, values=value, aggfunc="first", sort=False)
    wide = wide.rename_axis(index="t", columns=None).reset_index()
    return wide.iloc[np.argsort(wide["t"].astype(float).to_numpy(), kind="stable")].reset_index(drop=True)


FORMATS: Mapping[str, Callable[[Path], "tuple[pd.DataFrame, str]"]] = {
    PARQUET: _read_parquet,
    ".mcap": read_bag,
    ".db3": read_bag,
}
"""Readers by suffix; the folder of a bag has none, and all other files are text."""
