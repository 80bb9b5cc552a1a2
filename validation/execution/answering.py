"""Runs in the Python of an environment: computes the calls that come in by stdin, one after the other."""

import ctypes
import os
import signal
import sys
import threading
import time

from loopcheck.robots.errors import HarnessError
from loopcheck.validation.execution.errors import internal_error
from loopcheck.validation.execution.frames import dumps, loads, read_frame, write_frame

RESULT, OURS, FAILURE = "result", "an error of ours", "failure"
"""Kinds of answers: result of the call, loopcheck error that it raised, or reason for the failure in words."""
PERIOD = 1.0
"""Interval between checks of the parent process, on systems without notification [s]."""
DEATH_SIGNAL = 1
"""Linux's `PR_SET_PDEATHSIG`."""


def answer(parent: int) -> None:
    """Compute calls until there are no more.

    Args:
        parent: Number of the process that asks: this one ends with it.
    """
    _end_with(parent)
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # or what an engine prints would stand between the frames
    while (call := read_frame(calls)) is not None:
        write_frame(answers, _answer(call))


def _answer(call: bytes) -> bytes:
    try:
        function, args = loads(call)
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


def _end_with(parent: int) -> None:
    if sys.platform == "linux":
        # This also ends a process that an engine holds in C; it must not have missed the end of the parent before.
        ctypes.CDLL(None).prctl(DEATH_SIGNAL, int(signal.SIGKILL))
    if os.getppid() != parent:
        os._exit(1)
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PERIOD)
    os._exit(1)
