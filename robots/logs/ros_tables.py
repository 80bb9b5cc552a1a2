"""Joint states of ROS as tables: bags, rows of `ros2 topic echo --csv`, `rostopic echo -p` and bagpy (ROS 1).

A column has the name that PlotJuggler gives it, `/TOPIC/JOINT/position`, `velocity` or `effort`.
"""

import re
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopcheck.robots.errors import MechanismError
from loopcheck.robots.logs.text_table import is_number

if TYPE_CHECKING:
    import pandas as pd

METADATA = "metadata.yaml"
"""File of every bag, in its folder."""
MESSAGE = "sensor_msgs/msg/JointState"
QUANTITIES = ("position", "velocity", "effort")
TOPIC = "/joint_states"
FIELD_NAME, STAMP = "field.name", "field.header.stamp"
"""Columns of `rostopic echo -p`: names of joints by number, and the stamp of the message [ns]."""
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


def of_ros1(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Joint states of ROS 1 with a column for each joint; any other table as it is.

    `rostopic echo -p` has columns `%time` and `field.name0`, `field.position0` …; bagpy has `Time`, the list `name`,
    and `position_0` … beside it.

    Args:
        frame: Texts of all cells.

    Raises:
        ValueError: If the rows do not have the same joints.
    """
    import pandas as pd

    columns = list(map(str, frame.columns))
    numbers = [name.removeprefix(FIELD_NAME) for name in columns if name.startswith(FIELD_NAME)]
    if numbers:
        names = frame[[f"{FIELD_NAME}{number}" for number in sorted(numbers, key=int)]]
        form = "field.{}{}"
    elif {"name", "position_0"} <= set(columns) and len(frame):
        names, form = pd.DataFrame([re.findall(r"['\"]([^'\"]+)['\"]", str(cell)) for cell in frame["name"]]), "{}_{}"
    else:
        return frame
    joints = [str(name) for name in names.iloc[0]]
    if not (names == joints).all(axis=None):
        raise ValueError(f"every row must have the joints {', '.join(joints)}. Record a bag with one topic")
    renamed = {
        form.format(quantity, k): f"{TOPIC}/{joint}/{quantity}"
        for quantity in QUANTITIES
        for k, joint in enumerate(joints)
    }
    has_stamps = STAMP in columns and (frame[STAMP] != "0").any()
    times = {STAMP: "t", "%time": "received"} if has_stamps else {"%time": "t"}
    return frame.rename(columns=renamed | times)


def with_stamps(frame: "pd.DataFrame") -> "pd.DataFrame":
    """A table whose stamps in two columns, seconds and nanoseconds, are one column of times from the first row on."""
    columns = list(map(str, frame.columns))
    for seconds, nanoseconds in (("secs", "nsecs"), ("sec", "nanosec"), ("sec", "nsec")):
        for column in columns:
            other = f"{column.removesuffix(seconds)}{nanoseconds}"
            if not column.endswith(seconds) or other not in columns or other == column or "t" in columns:
                continue
            whole, part = (frame[one].astype(float).astype("int64") for one in (column, other))
            rest = frame.drop(columns=[column, other])
            if not whole.any():  # a publisher without a clock
                return rest
            t = 1e-9 * ((whole - whole.iloc[0]) * 10**9 + part - part.iloc[0])
            return rest.drop(columns=[one for one in columns if one.lower() == "time"]).assign(t=t)
    return frame


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
    return list(takewhile(lambda cell: not is_number(cell), cells[HEADER:]))
