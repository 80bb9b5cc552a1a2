"""Calls of functions in the Python of another environment, by a worker process.

Its process starts at the first call and waits for more. It is killed, with its children, if a call takes too long, and
ends with the worker.
"""

import atexit
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Timer
from typing import Any

from loopcheck.robots.processes import exit_reason
from loopcheck.validation.execution.folders import IMPORT_FOLDER
from loopcheck.validation.execution.forkserver import ONE_THREAD
from loopcheck.validation.execution.remote_worker import FAILURE, OURS, PROTOCOL, dumps

HERE = Path(sys.executable)
"""The running Python."""
COMPILED = "compiled"
"""Folder in an environment for its compiled files, so that its Python writes nothing beside the loopcheck sources."""
ENDING = 5.0
"""Longest time from the last answer of a process to its end [s]."""
BEGIN = """
import sys
from importlib.machinery import PathFinder
root, parent = sys.argv[1:]
class Loopcheck:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [root]) if name == "loopcheck" and path is None else None
sys.meta_path.insert(0, Loopcheck)
from loopcheck.validation.execution.remote_worker import answer
answer(int(parent))
"""
"""Finds only loopcheck in its folder, as the folder may contain packages of another Python."""


class LostCallError(Exception):
    """A call has no result; the message says why."""


_running: dict[Path, "subprocess.Popen[bytes]"] = {}


def call(python: Path, function: Callable[..., Any], args: tuple[Any, ...], time_limit: float) -> Any:
    """Result of a function in another Python.

    Args:
        python: Its executable file, in the environment.
        function: A function of a module.
        time_limit: Longest duration [s].

    Raises:
        HarnessError: If the function raises it.
        TimeoutError: If it takes longer.
        LostCallError: If the process dies or cannot be started, or the function raises another exception.
    """
    process = _process(python)
    is_late = Event()

    def kill_late() -> None:
        is_late.set()
        _kill(process)

    content, timer = dumps((function, args)), Timer(time_limit, kill_late)
    timer.start()
    try:
        pickle.dump(content, process.stdin, PROTOCOL)  # type: ignore[arg-type]
        process.stdin.flush()  # type: ignore[union-attr]
        result = pickle.load(process.stdout)  # type: ignore[arg-type]
    except (OSError, EOFError, pickle.UnpicklingError) as error:  # the process has died
        with suppress(subprocess.TimeoutExpired):
            process.wait(ENDING)  # so that its own exit status is seen
        end(python)
        if is_late.is_set():
            raise TimeoutError from error
        raise LostCallError(f"its process died: {exit_reason(process.returncode)}") from error
    finally:
        timer.cancel()
    kind, value = pickle.loads(result)
    if kind == OURS:
        raise value
    if kind == FAILURE:
        raise LostCallError(value)
    return value


def end(python: Path) -> None:
    """End the process of a Python and its children, if there is one."""
    process = _running.pop(python, None)
    if process is not None:
        _kill(process)
        for stream in (process.stdin, process.stdout):
            with suppress(BrokenPipeError):  # what it has not read before it died
                stream.close()  # type: ignore[union-attr]


@atexit.register
def end_all() -> None:
    """End all processes."""
    for python in list(_running):
        end(python)


def _process(python: Path) -> "subprocess.Popen[bytes]":
    """The process of a Python that waits for calls; a new one if there is none."""
    process = _running.get(python)
    if process is not None and process.poll() is None:
        return process
    end(python)
    prefix = () if python == HERE else ("-X", f"pycache_prefix={python.parent.parent / COMPILED}")
    try:
        process = subprocess.Popen(
            [str(python), "-I", *prefix, "-c", BEGIN, str(IMPORT_FOLDER), str(os.getpid())],
            env={**os.environ, **ONE_THREAD},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        raise LostCallError(f"{python}: cannot be started: {error.strerror}") from error
    _running[python] = process
    return process


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process and its group, which it may have left behind."""
    with suppress(ProcessLookupError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
