"""Joint states of ROS 2 as tables: bags in MCAP or sqlite3, and the rows of `ros2 topic echo --csv`.

A column has the name that PlotJuggler gives it, `/TOPIC/JOINT/position`, `velocity` or `effort`.
"""

from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopcheck.robots.errors import MechanismError

if TYPE_CHECKING:
    import pandas as pd

METADATA = "metadata.yaml"
"""File of every bag, in its folder."""
MESSAGE = "sensor_msgs/msg/JointState"
QUANTITIES = ("position", "velocity", "effort")
TOPIC = "/joint_states"
HEADER = 3
"""Cells before the names in a row of `ros2 topic echo --csv`: seconds, nanoseconds and frame [-]."""


def read_bag(path: Path) -> "tuple[pd.DataFrame, str]":
    """Joint states of all topics in a bag, a row for each message, in the order of their stamps.

    Args:
        path: The folder of the bag, or its file.

    Raises:
        MechanismError: If rosbags is not installed.
        ValueError: If it is no bag, or has no joint states.
    """
    import pandas as pd

    try:
        from rosbags.highlevel import AnyReader, AnyReaderError
        from rosbags.serde import SerdeError
        from rosbags.typesys import Stores, get_typestore
    except ModuleNotFoundError as error:
        raise MechanismError(f"{path}: bags of ROS require rosbags: pip install 'loopcheck[ros]'") from error
    rows: list[dict[str, Any]] = []
    try:
        with AnyReader([path], default_typestore=get_typestore(Stores.ROS2_JAZZY)) as reader:
            connections = [one for one in reader.connections if one.msgtype == MESSAGE]
            topics = sorted({f"{one.topic} ({one.msgtype})" for one in reader.connections})
            for connection, received, raw in reader.messages(connections=connections) if connections else ():
                rows.append(_row(connection.topic, received, reader.deserialize(raw, connection.msgtype)))
    except (AnyReaderError, SerdeError) as error:
        raise ValueError(str(error)) from error
    if not rows:
        raise ValueError(f"must have messages of {MESSAGE}, got {', '.join(topics) or 'an empty bag'}")
    key = "stamp" if any(row["stamp"] for row in rows) else "received"  # a publisher without a clock leaves zeros
    rows.sort(key=lambda row: row[key])
    frame = pd.DataFrame([{name: x for name, x in row.items() if name not in ("stamp", "received")} for row in rows])
    frame.insert(0, "t", [1e-9 * (row[key] - rows[0][key]) for row in rows])
    return frame, ""


def is_echo(cells: Sequence[str]) -> bool:
    """Return whether cells are a row of `ros2 topic echo --csv` of joint states: no names above the numbers."""
    return all(cell.strip().isdigit() for cell in cells[:2]) and bool(_names(cells))


def echo_table(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Joint states in rows of `ros2 topic echo --csv`: stamp, frame, names, then values in the order of the names.

    Args:
        frame: Texts of all cells.

    Raises:
        ValueError: If the rows do not have the same joints, or only one quantity besides the positions.
    """
    import pandas as pd

    names = _names(frame.iloc[0].tolist())
    values = frame.iloc[:, HEADER + len(names) :]
    if not (frame.iloc[:, HEADER : HEADER + len(names)] == names).all(axis=None):
        raise ValueError(f"every row must have the joints {', '.join(names)}. Record a bag: ros2 bag record {TOPIC}")
    if values.shape[1] != len(QUANTITIES) * len(names):
        raise ValueError(
            f"rows of ros2 topic echo --csv must have {', '.join(QUANTITIES)} of each of {len(names)} joints, got "
            f"{values.shape[1]} numbers: which of them are missing? Record a bag: ros2 bag record {TOPIC}"
        )
    values.columns = pd.Index([f"{TOPIC}/{name}/{quantity}" for quantity in QUANTITIES for name in names])
    seconds, nanoseconds = (frame.iloc[:, k].astype(int) for k in (0, 1))
    t = 1e-9 * ((seconds - seconds.iloc[0]) * 10**9 + nanoseconds - nanoseconds.iloc[0])
    return pd.concat([t.rename("t"), values], axis=1)


def _row(topic: str, received: int, message: Any) -> dict[str, Any]:
    """Stamps [ns] and values of a message by column."""
    stamp = message.header.stamp
    row: dict[str, Any] = {"stamp": stamp.sec * 10**9 + stamp.nanosec, "received": received}
    for quantity in QUANTITIES:  # the two that a publisher does not know are empty
        values = getattr(message, quantity)
        row.update({f"{topic}/{name}/{quantity}": float(x) for name, x in zip(message.name, values, strict=False)})
    return row


def _names(cells: Sequence[str]) -> list[str]:
    """Names of the joints in a row."""
    return list(takewhile(lambda cell: not _is_number(cell), cells[HEADER:]))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
