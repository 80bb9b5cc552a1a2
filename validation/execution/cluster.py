"""Tasks on the workers of a Dask cluster; a task that times out or kills workers is lost alone.

A worker starts a process for each task, in the environment of the task's engine if there is such an environment.
"""

import importlib.metadata
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

from loopcheck import engines
from loopcheck.robots.errors import HarnessError
from loopcheck.validation.execution.environments import environment_of
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.remote_calls import HERE, LostCallError, call
from loopcheck.validation.execution.workers import WorkerFailure, WorkerPool

AHEAD = 2
"""Number of submitted tasks per worker."""
PATIENCE = 10.0
"""Longest wait for an answer of the scheduler [s]."""
RETRIES = 3
"""Number of attempts after the death or loss of a worker."""
_ONE_AT_A_TIME = Lock()
"""Lock during a computation: a worker may have several threads."""


@dataclass(frozen=True, slots=True)
class ClusterExecutor:
    """Workers of a cluster."""

    client: Any

    def outcomes(self, tasks: Sequence[Task], time_limit: float) -> Iterator[tuple[int, Any]]:
        """See `loopcheck.validation.execution.workers.Executor.outcomes`."""
        executor = self.client.get_executor(pure=False, retries=RETRIES)
        running: dict[Future[Any], int] = {}
        begun = 0
        while running or begun < len(tasks):
            while begun < len(tasks) and len(running) < AHEAD * max(1, len(self.client.nthreads())):
                running[executor.submit(computed, tasks[begun], time_limit)] = begun
                begun += 1
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), _result(future)


def computed(task: Task, time_limit: float) -> Any:
    """Return the result of a task or the reason for its absence; runs on a worker.

    Args:
        task: Function and arguments.
        time_limit: Longest duration [s].
    """
    environment = environment_of(task.engine)
    python = HERE if environment is None else environment.interpreter
    with _ONE_AT_A_TIME:
        try:
            return call(python, task.function, task.args, time_limit)
        except TimeoutError:
            return WorkerFailure(f"timeout after {time_limit:g} s")
        except LostCallError as error:
            return WorkerFailure(str(error))


def _result(future: Future[Any]) -> Any:
    try:
        return future.result()
    except Exception as error:
        if type(error).__name__ != "KilledWorker":  # of distributed, which need not be installed
            raise
        return WorkerFailure("its workers died during the task")


@contextmanager
def on_cluster(pool: WorkerPool, address: str | None) -> Iterator[WorkerPool]:
    """A pool, with the workers of a cluster if there is a scheduler.

    Args:
        pool: With workers here.
        address: Of the Dask scheduler.

    Raises:
        HarnessError: If the scheduler cannot be reached, is lost, or its workers have other versions.
    """
    if address is None:
        yield pool
        return
    with cluster(address) as executor:
        yield replace(pool, executor=executor)


@contextmanager
def cluster(address: str) -> Iterator[ClusterExecutor]:
    """The workers of a cluster.

    Args:
        address: Of its Dask scheduler.

    Raises:
        HarnessError: If the scheduler cannot be reached, is lost, or its workers have other versions.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise HarnessError("Dask is not installed: pip install 'loopcheck[dask]'") from error
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise HarnessError(f"scheduler {address}: must be a running Dask scheduler: {_line(error)}") from error
    try:
        client.wait_for_workers(1, timeout=60)
        _want_same_versions(client, address)
        yield ClusterExecutor(client)
    except (OSError, TimeoutError, CancelledError) as error:
        raise HarnessError(f"scheduler {address}: connection to it or its workers lost: {_line(error)}") from error
    finally:
        client.close()


def versions() -> dict[str, str]:
    """Versions of the computing packages."""
    return {name: importlib.metadata.version(name) for name in ("loopcheck", "numpy", "scipy")} | dict(
        engines.versions()
    )


def _want_same_versions(client: Any, address: str) -> None:
    mine = versions()
    for worker, theirs in client.run(versions).items():
        if theirs != mine:
            raise HarnessError(f"scheduler {address}: worker {worker}: must have {_named(mine)}, got {_named(theirs)}")


def _named(digests: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in digests.items())


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
