"""Processes of loopcheck: how they start, and end with the process that started them."""

import ctypes
import math
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import spawn
from typing import Any
from unittest.mock import patch

DEATH_SIGNAL = 1
"""Linux's `PR_SET_PDEATHSIG`."""
OUT_OF_TIME = "CPU time limit exceeded"
"""Reason of an end by SIGXCPU."""
_ONE_AT_A_TIME = threading.Lock()


def end_with_parent(wait: Callable[[], object] | None = None) -> None:
    """End this process when the process that started it has ended, killed or not.

    On Linux, this also ends a process that an engine holds in C, if the process that it was forked from ends too.

    Args:
        wait: Returns when the other process has ended; by default that of `multiprocessing`.
    """
    if sys.platform == "linux":
        parent = os.getppid()
        ctypes.CDLL(None).prctl(DEATH_SIGNAL, int(signal.SIGKILL))
        if os.getppid() != parent:  # it has ended before
            os._exit(1)
    started_by = multiprocessing.parent_process()
    if wait is None and started_by is not None:
        wait = started_by.join
    if wait is not None:
        threading.Thread(target=_end_after, args=(wait,), daemon=True).start()


def _end_after(wait: Callable[[], object]) -> None:
    wait()
    os._exit(1)


@contextmanager
def main_left_out() -> Iterator[None]:
    """Processes started in this context do not run the user's program again, which may lack a `__main__` guard."""

    def without_main(name: str) -> dict[str, Any]:
        return {key: value for key, value in whole(name).items() if not key.startswith("init_main")}

    with _ONE_AT_A_TIME:
        whole = spawn.get_preparation_data
        with patch.object(spawn, "get_preparation_data", without_main):
            yield


def limit_resource(name: str, largest: int) -> int:
    """Limit a resource of this process, or keep the limit of the user if it is lower; not on Windows.

    Args:
        name: As in the module `resource`, for example "RLIMIT_AS".
        largest: The limit [byte, s].

    Returns:
        The limit that holds.
    """
    import resource

    kind = getattr(resource, name)
    _, hard = resource.getrlimit(kind)  # a program cannot raise it, and batch systems set it
    limit = largest if hard == resource.RLIM_INFINITY else min(largest, hard)
    resource.setrlimit(kind, (limit, hard))
    return limit


def within_cpu_time(seconds: float, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Result of a function; this process ends with SIGXCPU when the function has used its CPU time.

    Args:
        seconds: CPU time of all threads of this process [s]; without effect on Windows.
    """
    if sys.platform == "win32":
        return function(*args)
    import resource

    before = resource.getrlimit(resource.RLIMIT_CPU)
    limit_resource("RLIMIT_CPU", math.ceil(time.process_time() + seconds))
    try:
        return function(*args)
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, before)


class OutOfTime(Exception):
    """The CPU time of a computation has ended."""


@contextmanager
def cpu_time_limit(seconds: float) -> Iterator[None]:
    """Raise `OutOfTime` in the block when this process has used its CPU time; without effect in other threads.

    Args:
        seconds: CPU time of all threads of this process [s]; without effect on Windows.

    Raises:
        OutOfTime: In the middle of any statement of the block.
    """
    if sys.platform == "win32" or threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(*_: object) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def exit_reason(exitcode: int | None) -> str:
    """Description of a process's end by its exit status [-]; a negative status is the signal that ended it."""
    if exitcode is None or exitcode >= 0:
        return f"exit status {exitcode}"
    if sys.platform != "win32" and exitcode == -signal.SIGXCPU:
        return OUT_OF_TIME
    memory = ", possibly out of memory" if exitcode == -signal.SIGKILL else ""
    return f"{signal.strsignal(-exitcode)} ({signal.Signals(-exitcode).name}){memory}"
