"""Bags of ROS 2 with joint states, written by rosbags."""

from collections.abc import Sequence
from pathlib import Path
from typing import TypedDict, Unpack

import numpy as np
import pytest

from loopcheck.robots.arrays import Array


class Options(TypedDict, total=False):
    """Options of `write_bag`."""

    storage: str
    """Format of the file, `MCAP` or `SQLITE3`; by default the first."""
    received: Sequence[int]
    """Times of arrival [ns], shape (n,); by default the stamps."""
    also: tuple[str, Sequence[int], Array]
    """A further topic, its stamps, and its positions."""


def write_bag(
    folder: Path,
    joints: Sequence[str],
    stamps: Sequence[int],
    values: Sequence[Array],
    **options: Unpack[Options],
) -> Path:
    """Write a message for each stamp; returns the folder.

    Args:
        joints: Names in every message.
        stamps: Times in the headers [ns], shape (n,).
        values: Positions, velocities and efforts [rad or m, per s, N m or N], each of shape (n, joints) or (n, 0).
        **options: See `Options`.
    """
    pytest.importorskip("rosbags", reason="the extra ros is not installed")
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_JAZZY)
    types = store.types
    JointState, Header, Time = (
        types[name] for name in ("sensor_msgs/msg/JointState", "std_msgs/msg/Header", "builtin_interfaces/msg/Time")
    )

    def write(topic: str, times: Sequence[int], columns: Sequence[Array], arrival: Sequence[int]) -> None:
        connection = writer.add_connection(topic, JointState.__msgtype__, typestore=store)
        for k, (stamp, arrived) in enumerate(zip(times, arrival, strict=True)):
            message = JointState(
                header=Header(stamp=Time(sec=stamp // 10**9, nanosec=stamp % 10**9), frame_id=""),
                name=list(joints),
                position=np.ascontiguousarray(columns[0][k]),
                velocity=np.ascontiguousarray(columns[1][k]),
                effort=np.ascontiguousarray(columns[2][k]),
            )
            writer.write(connection, arrived, store.serialize_cdr(message, JointState.__msgtype__))

    with Writer(folder, version=9, storage_plugin=StoragePlugin[options.get("storage", "MCAP")]) as writer:
        write("/joint_states", stamps, values, options.get("received", stamps))
        if "also" in options:
            topic, times, positions = options["also"]
            none = np.zeros((len(times), 0))
            write(topic, times, (positions, none, none), times)
    return folder
