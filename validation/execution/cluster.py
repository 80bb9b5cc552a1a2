"""Calls on the workers of a Dask cluster; one that workers die over is lost, and harms no other."""

import importlib.metadata
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.progress import Progress

import engines
from robots.errors import HarnessError
from validation.execution.workers import Call, Lost

AHEAD = 2
"""Calls that are handed out for each worker."""
PATIENCE = 10.0
"""How long a scheduler may take to answer [s]."""
RETRIES = 3
"""How often a cluster calls again what a worker died over, or left behind."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """Workers of a cluster that stand ready."""

    client: Any
    progress: Progress

    def results(self, calls: Sequence[Call], description: str) -> Iterator[tuple[int, Any]]:
        """Number and result of each call as it ends, or `Lost`; what a call raises is raised.

        Args:
            calls: What to call.
            description: What the progress bar counts.
        """
        yield from self.progress.track(self._handed_out(calls), total=len(calls), description=description)

    def _handed_out(self, calls: Sequence[Call]) -> Iterator[tuple[int, Any]]:
        executor = self.client.get_executor(pure=False, retries=RETRIES)
        waiting = deque(enumerate(calls))
        running: dict[Future[Any], int] = {}
        while running or waiting:
            while waiting and len(running) < AHEAD * max(1, len(self.client.nthreads())):
                k, call = waiting.popleft()
                running[executor.submit(call.function, *call.args)] = k
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                yield running.pop(future), _result(future)


def _result(future: Future[Any]) -> Any:
    try:
        return future.result()
    except Exception as error:
        if type(error).__name__ != "KilledWorker":  # of distributed, which need not be installed
            raise
        return Lost("workers died over it")


@contextmanager
def cluster(address: str) -> Iterator[Cluster]:
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
        raise HarnessError(f"scheduler {address}: cannot be reached: {_line(error)}") from error
    terminal = Console(stderr=True)
    try:
        client.wait_for_workers(1, timeout=60)
        _want_same_versions(client, address)
        with Progress(console=terminal, transient=True, disable=not terminal.is_terminal) as progress:
            yield Cluster(client, progress)
    except (OSError, TimeoutError, CancelledError) as error:
        raise HarnessError(f"scheduler {address}: lost it or its workers: {_line(error)}") from error
    finally:
        client.close()


def versions() -> dict[str, str]:
    """Versions of what computes."""
    return {name: importlib.metadata.version(name) for name in ("loopcheck", "numpy", "scipy")} | dict(
        engines.versions()
    )


def _want_same_versions(client: Any, address: str) -> None:
    mine = versions()
    for worker, theirs in client.run(versions).items():
        if theirs != mine:
            raise HarnessError(f"scheduler {address}: worker {worker}: want {_named(mine)}, got {_named(theirs)}")


def _named(found: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in found.items())


def _line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
