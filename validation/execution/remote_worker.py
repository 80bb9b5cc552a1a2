"""The other end of `remote_calls`: a Python that computes calls, one after the other.

Calls and results are pickles for all versions of Python and numpy: plain pickles of paths and arrays name private
modules of the version that wrote them.
"""

import io
import os
import pickle
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from loopcheck.robots.arrays import AnyArray
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.processes import end_with_parent
from loopcheck.validation.execution.errors import internal_error

RESULT, OURS, FAILURE = "result", "an error of ours", "failure"
"""Kinds of answers: result of the call, loopcheck error that it raised, or reason for the failure in words."""
PROTOCOL = 5


def answer(channel: Any) -> None:
    """Compute the calls of a channel, one after the other."""
    end_with_parent()
    for call in channel:
        try:
            channel.send(_answer(call))
        except SystemExit as error:  # execnet would go on
            os._exit(int(error.code or 0))


def _answer(call: bytes) -> bytes:
    try:
        function, args = pickle.loads(call)
        return dumps((RESULT, function(*args)))
    except HarnessError as error:
        return _of_error(error)
    except Exception as error:  # a bug of ours, as in all workers
        return dumps((FAILURE, internal_error(error)))


def _of_error(error: HarnessError) -> bytes:
    try:
        return dumps((OURS, error))
    except Exception as reason:
        return dumps((FAILURE, internal_error(reason)))


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, PurePath):
            return _path, (str(obj),)
        if isinstance(obj, np.ndarray | np.generic) and obj.dtype.kind in "biufcSU":
            return _array if isinstance(obj, np.ndarray) else _scalar, _content(np.asarray(obj))
        return NotImplemented


def dumps(content: Any) -> bytes:
    """A pickle that other versions of Python and numpy read.

    Args:
        content: Any picklable object, of types known to both.
    """
    file = io.BytesIO()
    _Pickler(file, PROTOCOL).dump(content)
    return file.getvalue()


def _path(text: str) -> Path:
    return Path(text)  # whose module has another name in Python 3.13


def _content(array: AnyArray) -> tuple[str, tuple[int, ...], bool, bytes | bytearray]:
    """Type, shape, column-major order and numbers of an array; the numbers of a writeable array as a `bytearray`."""
    by_columns = array.flags.f_contiguous and not array.flags.c_contiguous
    numbers = array.tobytes("F" if by_columns else "C")
    return array.dtype.str, array.shape, by_columns, bytearray(numbers) if array.flags.writeable else numbers


def _array(kind: str, shape: tuple[int, ...], by_columns: bool, numbers: bytes | bytearray) -> AnyArray:
    array: AnyArray = np.frombuffer(numbers, kind) if numbers else np.empty(0, kind)
    return array.reshape(shape, order="F" if by_columns else "C")


def _scalar(kind: str, shape: tuple[int, ...], by_columns: bool, numbers: bytes | bytearray) -> Any:
    return _array(kind, shape, by_columns, numbers)[()]
