"""The process that workers are forked from, with the modules of all workers imported.

It imports in the background, while the command that started it imports its own modules.
"""

import multiprocessing
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

from loopcheck.validation.execution.folders import IMPORT_FOLDER

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""Environment variables that limit linear algebra to one thread; idle threads would slow other workers down."""
RARE = (100_000, 50, 50)
"""Thresholds of Python's search for cycles of objects [-], (700, 10, 10) by default: models and modules stay."""


def worker_context(preload: Sequence[str] = ()) -> Any:
    """Start method of worker processes; starts the process that they are forked from.

    Args:
        preload: Modules that this process imports once for all workers, on systems with fork.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver  # which some systems do not have
    from unittest.mock import patch  # a fifth of the time of `--help`

    context = multiprocessing.get_context("forkserver")
    if preload:  # of a process that is there already nothing changes
        context.set_forkserver_preload([*preload])
    path = os.pathsep.join(filter(None, [str(IMPORT_FOLDER), os.environ.get("PYTHONPATH")]))
    settings = {"PYTHONPATH": path, "PYTHONSAFEPATH": "1", **ONE_THREAD}  # a user may have packages of the same names
    with patch.dict(os.environ, settings), _without_interrupts():
        forkserver.ensure_running()
    return context


def quick_context() -> Any | None:
    """Start method of a process for a moment, with the imports of this process or of the workers; None without one.

    Only a process with a single thread is copied: other threads may hold locks, which nothing releases in a copy.
    """
    if sys.platform == "linux" and len([*Path("/proc/self/task").iterdir()]) == 1:
        return multiprocessing.get_context("fork")
    return None if _process() is None else multiprocessing.get_context("forkserver")


def abandon() -> None:
    """End the process that workers are forked from, whatever it still imports: bad input needs no workers."""
    process = _process()
    if process is not None:
        with suppress(OSError):
            os.kill(process, signal.SIGKILL)


def _process() -> int | None:
    """Number of the process that workers are forked from; None if it does not run, or where a system has no fork."""
    server: Any = sys.modules.get("multiprocessing.forkserver")
    number: int | None = server and server._forkserver._forkserver_pid
    return number


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Start processes that ignore Ctrl-C: this process ends them, without the traceback of an interrupted import."""
    resource_tracker.ensure_running()  # which lets interrupts through again when it has begun
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
