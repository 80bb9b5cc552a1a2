"""Calls of functions in the Python of another environment, by a process that waits for more.

It starts at the first call of a worker, is killed with its children if a call takes too long, and ends with the worker.
"""

import atexit
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from threading import Event, Timer
from typing import Any, BinaryIO, cast

from loopcheck.robots.errors import HarnessError
from loopcheck.robots.processes import end_with_parent, exit_reason
from loopcheck.validation.execution.errors import internal_error
from loopcheck.validation.execution.folders import IMPORT_FOLDER
from loopcheck.validation.execution.forkserver import ONE_THREAD

HERE = Path(sys.executable)
"""The running Python."""
COMPILED = "compiled"
"""Folder in an environment for its compiled files, so that its Python writes nothing beside the loopcheck sources."""
ENDING = 5.0
"""Longest time from the last answer of a process to its end [s]."""
PROTOCOL = 4
"""Of pickles between Pythons: numpy 1.26 reads the arrays of numpy 2 in this protocol, and not in a later one."""
BEGIN = """
import os, sys
from importlib.machinery import PathFinder
calls, results = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
for stream in range(3):  # of an engine, which may print
    os.dup2(os.open(os.devnull, os.O_RDWR), stream)
class Loopcheck:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, sys.argv[1:]) if name == "loopcheck" and path is None else None
sys.meta_path.insert(0, Loopcheck)
from loopcheck.validation.execution.remote_calls import answer
answer(calls, results)
"""
"""Finds only loopcheck in its folder, as the folder may contain packages of another Python."""
sys.modules.setdefault("pathlib._local", sys.modules["pathlib"])  # the module of a path's class in Python 3.13


class LostCallError(Exception):
    """A call has no result; the message says why."""


_running: dict[Path, subprocess.Popen[bytes]] = {}


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
    process = _waiting(python)
    calls, results = cast("BinaryIO", process.stdin), cast("BinaryIO", process.stdout)
    late = Event()

    def stop() -> None:
        late.set()
        _kill(process)

    limit = Timer(time_limit, stop)
    limit.start()
    try:
        _send(calls, dumps((function, args)))
        content = pickle.load(results)
    except (OSError, EOFError, pickle.UnpicklingError) as error:  # the process has died
        with suppress(subprocess.TimeoutExpired):
            process.wait(ENDING)  # so that its own exit status is seen
        end(python)
        if late.is_set():
            raise TimeoutError from error
        raise LostCallError(f"its process died: {exit_reason(process.returncode)}") from error
    finally:
        limit.cancel()
        if late.is_set():  # even if the result came in the last moment
            end(python)
    has_result, result = pickle.loads(content)
    if not has_result:
        raise result
    return result


def dumps(content: Any) -> bytes:
    """A pickle that other versions of Python and numpy read.

    Args:
        content: Any picklable object, of types known to both.
    """
    return pickle.dumps(content, PROTOCOL)


def answer(calls: BufferedReader, results: BinaryIO) -> None:
    """Compute calls in the other Python, one after the other, until there are no more."""
    end_with_parent()
    while calls.peek(1):
        _send(results, _answer(pickle.load(calls)))


def _send(pipe: BinaryIO, content: bytes) -> None:
    """Write bytes as a pickle, which is read to its end even if the other Python cannot read the content."""
    pipe.write(pickle.dumps(content, PROTOCOL))
    pipe.flush()


def _answer(call: bytes) -> bytes:
    """Whether a call has a result, and the result or the exception to be raised."""
    try:
        function, args = pickle.loads(call)
        try:
            return dumps((True, function(*args)))
        except HarnessError as error:
            return dumps((False, error))
    except Exception as error:  # a bug of ours, as in all workers
        return dumps((False, LostCallError(internal_error(error))))


def end(python: Path) -> None:
    """End the process of a Python and its children, if there is one."""
    if python in _running:
        with suppress(BrokenPipeError), _running.pop(python) as process:
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):  # it has ended
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()


@atexit.register
def end_all() -> None:
    """End all processes."""
    for python in list(_running):
        end(python)


def _waiting(python: Path) -> subprocess.Popen[bytes]:
    """The process of a Python that waits for calls; a new one if there is none."""
    if python in _running and _running[python].poll() is None:
        return _running[python]
    end(python)
    compiled = [] if python == HERE else ["-X", f"pycache_prefix={python.parent.parent / COMPILED}"]
    try:
        _running[python] = subprocess.Popen(
            [python, "-I", *compiled, "-c", BEGIN, IMPORT_FOLDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **ONE_THREAD},
            start_new_session=True,
        )
    except OSError as error:
        raise LostCallError(f"{python}: cannot be started: {error.strerror}") from error
    return _running[python]
