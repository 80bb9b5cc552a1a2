"""Keeps what an engine's C++ prints out of the user's terminal."""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

STREAMS = (1, 2)
"""File descriptors of standard output and standard error; engines write to both."""


@contextmanager
def silenced() -> Iterator[None]:
    """Send what the process prints to the null device meanwhile, below Python, with C's own buffers."""
    c_library = ctypes.CDLL(None)
    _flush(c_library)
    saved = [os.dup(stream) for stream in STREAMS]
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        for stream in STREAMS:
            os.dup2(null, stream)
        yield
    finally:
        _flush(c_library)
        for stream, copy in zip(STREAMS, saved, strict=True):
            os.dup2(copy, stream)
        for descriptor in (null, *saved):
            os.close(descriptor)


def _flush(c_library: ctypes.CDLL) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    c_library.fflush(None)
