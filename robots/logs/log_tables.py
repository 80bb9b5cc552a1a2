"""Formats of log files. Every reader returns named columns; `log_files` maps the names to joints and actuators."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any
from zipfile import is_zipfile

import numpy as np

from loopcheck.robots.arrays import AnyArray
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.logs.ros_tables import METADATA, echo_table, is_echo, of_ros1, read_bag, with_stamps
from loopcheck.robots.logs.text_table import first_row, read_text_table

if TYPE_CHECKING:
    import pandas as pd

KEY = "loopcheck"
"""Metadata key of the description in a Parquet file."""
PARQUET = ".parquet"
FOXGLOVE = ("topic", "value")
"""Columns of a plot's data by Foxglove and Lichtblick: a row for each value."""
FOXGLOVE_TIMES = ("header.stamp", "receive time", "elapsed time")
"""Its times; the first without gaps counts."""


TIMES = ("t", "time", "times", "tout", "timestamp", "timestamps", "stamp")
"""Names of times in arrays and tables, in lower case."""
STATES = ("qpos", "qvel", "qacc", "effort", "actuator_force")
"""Arrays with a column for each number of MuJoCo's order, even if there is one only."""
DECLARED = ("effort_time", "reactions", "side", "source")
"""Texts among arrays that declare something."""
METADATA_CELL = re.compile(r"[A-Za-z]+:")


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
    if set(FOXGLOVE) <= set(frame.columns):
        return _of_foxglove(frame), above
    return _of_matlab(with_stamps(of_ros1(frame))), above


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


def _read_npz(path: Path) -> "tuple[pd.DataFrame, str]":
    """Arrays over time; a `timestep` states that each row was kept after an `mj_step` of this length."""
    if not is_zipfile(path):
        raise ValueError("must be arrays by name, as numpy.savez writes them")
    with np.load(path, allow_pickle=False) as file:
        arrays = dict(file)
    frame, above = _of_arrays(arrays)
    if "effort_time" in arrays or "timestep" not in arrays:
        return frame, above
    return frame, f'{above}effort_time = "held-until:{float(arrays["timestep"])!r}"\n'


def _read_mat(path: Path) -> "tuple[pd.DataFrame, str]":
    from scipy.io import loadmat

    advice = (
        "save numbers: s = table2struct(timetable2table(tt), 'ToScalar', true); "
        f"save('{path.name}', '-struct', 's', '-v7')"
    )
    try:
        variables = loadmat(path, simplify_cells=True)
    except NotImplementedError as error:
        raise ValueError(f"must be a MAT file up to version 7, got 7.3; {advice}") from error
    except Exception as error:  # it raises what its parser happens to meet
        raise ValueError(f"must be a MAT file: {error}") from error
    if any(type(value).__name__ == "MatlabOpaque" for value in variables.values()):
        raise ValueError(f"must not contain objects, as a timetable; {advice}")
    named = {name: value for name, value in variables.items() if not name.startswith("__")}
    if len(named) == 1 and isinstance(only := next(iter(named.values())), Mapping):
        named = dict(only)
    return _of_arrays(named)


def _of_arrays(arrays: Mapping[str, Any]) -> "tuple[pd.DataFrame, str]":
    """A column for each array over time, as `hip_q` or `qpos.0`, and the declarations among them."""
    import pandas as pd

    columns = dict(_columns("", arrays))
    times = next((name for name in columns if name.rpartition(".")[2].lower() in TIMES), "")
    if not times:
        raise ValueError(f"must have an array of times ({', '.join(TIMES)}), got {', '.join(columns) or 'no arrays'}")
    same = {"t" if name == times else name: x for name, x in columns.items() if len(x) == len(columns[times])}
    texts = {name: str(arrays[name]) for name in DECLARED if name in arrays}
    return pd.DataFrame(same), "".join(f"{name} = {json.dumps(text)}\n" for name, text in texts.items())


def _columns(name: str, value: Any) -> Iterator[tuple[str, AnyArray]]:
    """Columns of numbers in an array, in a structure, or in signals with time as Simulink saves them."""
    prefix = f"{name}." if name else ""
    if isinstance(value, Mapping) and {"time", "signals"} <= set(value):
        signals = value["signals"]
        yield f"{prefix}time", np.ravel(value["time"])
        for signal in [signals] if isinstance(signals, Mapping) else signals:
            yield from _columns(str(signal["label"]), signal["values"])
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _columns(f"{prefix}{key}", part)
    elif isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and value.ndim in (1, 2):
        if name not in STATES and (value.ndim == 1 or 1 in value.shape):
            yield name, value.ravel()
        else:
            yield from ((f"{name}.{k}", column) for k, column in enumerate(value.reshape(len(value), -1).T))


def _of_matlab(frame: "pd.DataFrame") -> "pd.DataFrame":
    """A table with its units in the names, and its durations in seconds, as `0.01 sec` or `00:00:00.01`."""
    import pandas as pd

    frame = _with_units(frame)
    for name in frame.columns:
        cells = frame[name]
        if name.lower() in TIMES and len(cells) and not pd.to_numeric(cells, errors="coerce").notna().any():
            frame[name] = pd.to_timedelta(cells, errors="coerce").dt.total_seconds().fillna(cells)
    return frame


def _with_units(frame: "pd.DataFrame") -> "pd.DataFrame":
    """A table of the Simulation Data Inspector: rows as `Unit: rad` below the names move into the names."""
    units: dict[str, str] = {}
    while (
        len(frame) and all(METADATA_CELL.match(str(x)) for x in frame.iloc[0].dropna()) and frame.iloc[0].notna().any()
    ):
        cells = frame.iloc[0].dropna()
        units |= {str(name): cell.partition(":")[2].strip() for name, cell in cells.items() if cell.startswith("Unit:")}
        frame = frame.iloc[1:].reset_index(drop=True)
    return frame.rename(columns={name: f"{name} [{unit}]" for name, unit in units.items() if unit})


FORMATS: Mapping[str, Callable[[Path], "tuple[pd.DataFrame, str]"]] = {
    PARQUET: _read_parquet,
    ".mcap": read_bag,
    ".db3": read_bag,
    ".npz": _read_npz,
    ".mat": _read_mat,
}
"""Readers by suffix; the folder of a bag has none, and all other files are text."""
