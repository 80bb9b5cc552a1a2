"""The Python of another environment, in which a worker process has its calls computed.

It is started at the first call and waits for more; it is killed, with all that it has started, when a call takes too
long, and ends with the worker.
"""

import atexit
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Event, Timer
from typing import Any

from loopcheck.robots.probe import exit_reason
from loopcheck.validation.execution.answering import FAILURE, OURS
from loopcheck.validation.execution.forkserver import HOUSE, ONE_THREAD
from loopcheck.validation.execution.frames import dumps, loads, read_frame, write_frame

HERE = Path(sys.executable)
"""The running Python."""
PACKAGES = ("loopcheck",)
COMPILED = "compiled"
"""Folder in an environment for its compiled files, so that its Python writes nothing beside the loopcheck sources."""
ENDING = 5.0
"""Longest time from the last answer of a process to its end [s]."""
BEGIN = """
import sys
from importlib.machinery import PathFinder
root, parent, *packages = sys.argv[1:]
class Packages:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [root]) if name in packages and path is None else None
sys.meta_path.insert(0, Packages)
from loopcheck.validation.execution.answering import answer
answer(int(parent))
"""
"""Finds only the loopcheck packages in their folder, as the folder may contain packages of another Python."""


class LostCallError(Exception):
    """A call has no result; the message says why."""


_running: dict[Path, "subprocess.Popen[bytes]"] = {}


def call(python: Path, function: Callable[..., Any], args: tuple[Any, ...], time_limit: float) -> Any:
    """What a function returns in another Python; our own errors are raised here.

    Args:
        python: Its executable file, in the environment.
        function: A function of one of our modules.
        time_limit: How long it may take [s].

    Raises:
        HarnessError: What the function raises.
        TimeoutError: If it takes longer.
        LostCallError: If the process dies or cannot be started, or the function raises what is no error of ours.
    """
    process = _process(python)
    is_late = Event()
    timer = Timer(time_limit, _kill_late, (process, is_late))
    timer.start()
    try:
        content = _exchange(process, dumps((function, args)))
    finally:
        timer.cancel()
    if content is None:
        with suppress(subprocess.TimeoutExpired):
            process.wait(ENDING)  # so that its own exit status is seen
        end(python)
        if is_late.is_set():
            raise TimeoutError
        raise LostCallError(f"its process died: {exit_reason(process.returncode)}")
    return _result(content)


def end(python: Path) -> None:
    """End the process of a Python, with all that it has started, if there is one."""
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
    command = [str(python), "-I", *prefix, "-c", BEGIN, str(HOUSE), str(os.getpid()), *PACKAGES]
    try:
        process = subprocess.Popen(
            command,
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


def _exchange(process: "subprocess.Popen[bytes]", content: bytes) -> bytes | None:
    """The answer to a call; None if the process has died."""
    try:
        write_frame(process.stdin, content)  # type: ignore[arg-type]
    except OSError:
        return None
    return read_frame(process.stdout)  # type: ignore[arg-type]


def _result(content: bytes) -> Any:
    kind, value = loads(content)
    if kind == OURS:
        raise value
    if kind == FAILURE:
        raise LostCallError(value)
    return value


def _kill_late(process: "subprocess.Popen[bytes]", is_late: Event) -> None:
    is_late.set()
    _kill(process)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process and its group, which it may have left behind."""
    with suppress(ProcessLookupError):
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
