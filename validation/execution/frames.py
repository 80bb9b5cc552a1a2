"""Calls and results between two Pythons: what is sent is the same whatever versions of Python and numpy read it.

A frame is eight bytes of length, most significant first, and a pickle of protocol 5. Plain pickles do not cross: paths
and arrays name private modules of the version that wrote them.
"""

import io
import pickle
from pathlib import Path, PurePath
from typing import Any, BinaryIO

import numpy as np

from loopcheck.robots.arrays import AnyArray

PROTOCOL = 5
LENGTH = 8
"""Size of the length field of a frame [byte]."""


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, PurePath):
            return _path, (str(obj),)
        if isinstance(obj, np.ndarray | np.generic) and obj.dtype.kind in "biufcSU":
            return _array if isinstance(obj, np.ndarray) else _scalar, _content(np.asarray(obj))
        return NotImplemented


def _path(text: str) -> Path:
    return Path(text)  # whose module has another name in Python 3.13


def _content(array: AnyArray) -> tuple[str, tuple[int, ...], bool, bytes | bytearray]:
    """Type, shape, whether columns come first, and numbers of an array; those that may change are in a `bytearray`."""
    by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
    numbers = array.tobytes("F" if by_columns else "C")
    return array.dtype.str, array.shape, by_columns, bytearray(numbers) if array.flags.writeable else numbers


def _array(kind: str, shape: tuple[int, ...], by_columns: bool, numbers: bytes | bytearray) -> AnyArray:
    array: AnyArray = np.frombuffer(numbers, kind) if numbers else np.empty(0, kind)
    return array.reshape(shape, order="F" if by_columns else "C")


def _scalar(kind: str, shape: tuple[int, ...], by_columns: bool, numbers: bytes | bytearray) -> Any:
    return _array(kind, shape, by_columns, numbers)[()]


def dumps(content: Any) -> bytes:
    """What other Pythons read too.

    Args:
        content: Anything that pickles, of types that are known there.
    """
    file = io.BytesIO()
    _Pickler(file, PROTOCOL).dump(content)
    return file.getvalue()


def loads(content: bytes | bytearray) -> Any:
    """What another Python has written."""
    return pickle.loads(content)


def write_frame(stream: BinaryIO, content: bytes) -> None:
    """Send something.

    Raises:
        OSError: If nobody reads it any more.
    """
    stream.write(len(content).to_bytes(LENGTH, "big"))
    stream.write(content)
    stream.flush()


def read_frame(stream: BinaryIO) -> bytes | None:
    """What comes next; None if nothing does, or not the whole of it."""
    length = stream.read(LENGTH)
    if len(length) < LENGTH:
        return None
    size = int.from_bytes(length, "big")
    content = stream.read(size)
    return content if len(content) == size else None
