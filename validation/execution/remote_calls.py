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
from shlex import quote
from typing import Any

import execnet

from loopcheck.robots.processes import exit_reason
from loopcheck.validation.execution.folders import IMPORT_FOLDER
from loopcheck.validation.execution.forkserver import ONE_THREAD
from loopcheck.validation.execution.remote_worker import FAILURE, OURS, dumps

HERE = Path(sys.executable)
"""The running Python."""
COMPILED = "compiled"
"""Folder in an environment for its compiled files, so that its Python writes nothing beside the loopcheck sources."""
ENDING = 5.0
"""Longest time from the last answer of a process to its end [s]."""
BEGIN = """
import os, sys
from importlib.machinery import PathFinder
root, settings = channel.receive()
if os.name == "posix":
    os.setsid()
os.environ.update(settings)
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
class Loopcheck:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return PathFinder.find_spec(name, [root]) if name == "loopcheck" and path is None else None
sys.meta_path.insert(0, Loopcheck)
from loopcheck.validation.execution.remote_worker import answer
answer(channel)
"""
"""Finds only loopcheck in its folder, as the folder may contain packages of another Python."""


class LostCallError(Exception):
    """A call has no result; the message says why."""


_running: dict[Path, Any] = {}


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
    channel = _channel(python)
    try:
        channel.send(dumps((function, args)))
        result = channel.receive(time_limit)
    except channel.TimeoutError as error:
        end(python)
        raise TimeoutError from error
    except channel.RemoteError as error:  # as of a result of more than 2 GiB
        end(python)
        raise LostCallError(f"its process failed: {str(error).strip().splitlines()[-1]}") from error
    except (OSError, EOFError) as error:  # the process has died
        process = channel.gateway._io.popen
        with suppress(subprocess.TimeoutExpired):
            process.wait(ENDING)  # so that its own exit status is seen
        end(python)
        raise LostCallError(f"its process died: {exit_reason(process.returncode)}") from error
    kind, value = pickle.loads(result)
    if kind == OURS:
        raise value
    if kind == FAILURE:
        raise LostCallError(value)
    return value


def end(python: Path) -> None:
    """End the process of a Python and its children, if there is one."""
    channel = _running.pop(python, None)
    if channel is not None:
        process = channel.gateway._io.popen
        with suppress(ProcessLookupError):  # it has ended, or has no group yet
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
        channel.gateway.exit()


@atexit.register
def end_all() -> None:
    """End all processes."""
    for python in list(_running):
        end(python)


def _channel(python: Path) -> Any:
    """Channel to the process of a Python that waits for calls; a new one if there is none."""
    channel = _running.get(python)
    if channel is not None and channel.gateway._io.popen.poll() is None:
        return channel
    end(python)
    prefix = "" if python == HERE else " -X " + quote(f"pycache_prefix={python.parent.parent / COMPILED}")
    try:
        gateway = execnet.makegateway(f"popen//python={quote(str(python))} -I{prefix}//execmodel=main_thread_only")
    except OSError as error:
        raise LostCallError(f"{python}: cannot be started: {error.strerror}") from error
    _running[python] = gateway.remote_exec(BEGIN)
    _running[python].send((str(IMPORT_FOLDER), ONE_THREAD))
    return _running[python]
