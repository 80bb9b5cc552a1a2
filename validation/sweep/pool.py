"""Calls in worker processes, here or on a cluster; a call that takes its process down is told, and harms no other."""

import importlib.metadata
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

from joblib import cpu_count
from joblib.externals.loky import ProcessPoolExecutor
from rich.console import Console
from rich.progress import Progress

import engines
from robots.errors import HarnessError

T = TypeVar("T")
R = TypeVar("R")
AHEAD = 2
"""Calls that are handed out for each worker."""
PATIENCE = 10.0
"""How long a scheduler may take to answer [s]."""
IDLE = 20.0
"""After how long a worker without work goes, also one whose parent was killed [s]."""
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
RETRIES = 3
"""How often a cluster calls again what a worker died over, or left behind."""

Crew: TypeAlias = tuple[Executor, Callable[[], int]]
"""An executor, and how many workers it has now."""


def calls(
    call: Callable[[T], R], items: Sequence[T], *, jobs: int | None = None, scheduler: str | None = None
) -> Iterator[tuple[T, R | None]]:
    """Results as they come; None where a worker process died while the call was in its hands, or waiting for it.

    Args:
        call: What is called; it and its items travel to other processes.
        items: What it is called with.
        jobs: Worker processes here; by default one for each core.
        scheduler: Address of a Dask scheduler, whose workers are taken instead.

    Raises:
        HarnessError: If the scheduler cannot be reached, is lost, or its workers have other versions.
    """
    waiting = deque(items)
    while waiting:
        with _cluster(scheduler) if scheduler else _processes(jobs or cpu_count()) as (executor, workers):
            yield from _handed_out(call, waiting, executor, workers)


def alone(call: Callable[[T], R], items: Sequence[T]) -> Iterator[tuple[T, R | None]]:
    """Results in order, one call at a time in a process of its own; None for a call that took it down."""
    waiting = deque(items)
    while waiting:
        with _processes(1) as (executor, _):
            while waiting:
                item = waiting.popleft()
                try:
                    yield item, executor.submit(call, item).result()
                except BrokenProcessPool:
                    yield item, None
                    break


@contextmanager
def shown(description: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar on the terminal, where there is one; called with how much more is done."""
    terminal = Console(stderr=True)
    with Progress(console=terminal, transient=True, disable=not terminal.is_terminal) as progress:
        task = progress.add_task(description, total=total)
        yield lambda more: progress.advance(task, more)


def _handed_out(
    call: Callable[[T], R], waiting: deque[T], executor: Executor, workers: Callable[[], int]
) -> Iterator[tuple[T, R | None]]:
    """Results until there is nothing left, or the workers have to be replaced."""
    running: dict[Future[R], T] = {}
    sound = True
    while running or (waiting and sound):
        while sound and waiting and len(running) < AHEAD * workers():
            running[executor.submit(call, waiting[0])] = waiting[0]
            waiting.popleft()
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            item = running.pop(future)
            try:
                yield item, future.result()
            except BrokenProcessPool:
                sound = False
                yield item, None
            except Exception as error:
                if type(error).__name__ != "KilledWorker":  # of distributed, which need not be installed
                    raise
                yield item, None


@contextmanager
def _processes(jobs: int) -> Iterator[Crew]:
    executor = ProcessPoolExecutor(max_workers=jobs, timeout=IDLE, env=ONE_THREAD)
    try:
        yield executor, lambda: jobs
    finally:
        executor.shutdown(wait=True, kill_workers=True)


@contextmanager
def _cluster(address: str) -> Iterator[Crew]:
    try:
        from distributed import Client
    except ImportError as error:
        raise HarnessError("Dask is not installed: pip install 'loopcheck[dask]'") from error
    try:
        client = Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise HarnessError(f"scheduler {address}: cannot be reached: {_line(error)}") from error
    try:
        client.wait_for_workers(1, timeout=60)
        _want_same_versions(client, address)
        yield client.get_executor(pure=False, retries=RETRIES), lambda: max(1, len(client.nthreads()))
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
