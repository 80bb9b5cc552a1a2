"""Calls in worker processes: one that crashes or hangs is lost alone, with the reason, and all others go on.

What has been computed is kept in a journal, so that who comes back after a kill goes on from there.
"""

import hashlib
import importlib.metadata
import multiprocessing
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import joblib
from joblib import cpu_count
from pebble import ProcessExpired, ProcessPool
from rich.console import Console
from rich.progress import Progress
from threadpoolctl import threadpool_limits

from robots.errors import NoResultError
from robots.trial import ending, main_left_out
from validation.journal import Journal

TIME_LIMIT = 1800.0
"""How long a call may take unless something else is said [s]; the slowest of the catalogue takes two minutes."""
WARM = ["validation.workers", "validation.evaluate", "engines.mujoco.routes.forward"]
"""What all workers need: imported once, where the system can fork them from a process that has it."""

HOUSE = Path(__file__).parent.parent
ROOMS = ("robots", "analytic", "engines", "validation")


@dataclass(frozen=True, slots=True)
class Workers:
    """How many worker processes there are, and what holds for them."""

    jobs: int | None = None
    """How many; by default one for each core."""
    time_limit: float = TIME_LIMIT
    """How long a call may take before its process is stopped [s]."""
    journal: Journal | None = None
    """Where what is computed is kept until all is; by default nowhere."""

    @property
    def count(self) -> int:
        """How many worker processes there are."""
        return self.jobs or cpu_count()


ALL_CORES = Workers()
ALONE = Workers(jobs=1)


class Call(NamedTuple):
    """A function of a module and its arguments; both, and what it returns, must be picklable."""

    function: Callable[..., Any]
    args: tuple[Any, ...]


class Lost(NamedTuple):
    """What a call has come to that its process did not survive."""

    reason: str


INTERRUPTED = Lost("interrupted")


def or_raise(what: str, result: Any) -> Any:
    """The result of a call that one cannot go on without.

    Raises:
        NoResultError: If it is lost.
    """
    if isinstance(result, Lost):
        raise NoResultError(f"{what}: {result.reason}")
    return result


class Processes(ProcessPool):
    """Worker processes of which each is missed that ends, also one that an engine ends as if all were well."""

    def __init__(self, count: int, **how: Any) -> None:
        super().__init__(count, **how)
        self._gone: set[int] = set()
        manager = self._pool_manager.worker_manager
        manager.inspect_workers = self._ended  # type: ignore[method-assign]
        manager.new_worker = main_left_out()(manager.new_worker)  # type: ignore[method-assign]

    def _ended(self) -> tuple[tuple[int, int | None], ...]:
        """Numbers and exit statuses of the processes that have ended; pebble leaves out those that end with 0.

        Each is told at the second look, when what it had to say before it ended has been read: which call it had taken.
        """
        workers = self._pool_manager.worker_manager.workers
        gone = {pid for pid, process in tuple(workers.items()) if not process.is_alive()}
        surely, self._gone = gone & self._gone, gone
        return tuple((pid, workers.pop(pid).exitcode) for pid in surely)


@dataclass(frozen=True, slots=True)
class Crew:
    """Worker processes that stand ready."""

    pool: Processes
    progress: Progress
    time_limit: float
    journal: Journal | None

    def results(self, calls: Sequence[Call], description: str) -> Iterator[tuple[int, Any]]:
        """Number and result of each call as it ends, or `Lost`; what a call raises is raised.

        Args:
            calls: What to call.
            description: What the progress bar counts.
        """
        futures: dict[Future[Any], int] = {
            self.pool.schedule(call.function, args=call.args, timeout=self.time_limit): k
            for k, call in enumerate(calls)
        }
        ended = as_completed(futures)
        for future in self.progress.track(ended, total=len(calls), description=description):
            yield futures.pop(future), self._result(future)

    def all_of(self, calls: Sequence[Call], description: str) -> list[Any]:
        """Results of all calls in their order, or `Lost`, also where an interruption took them away.

        What the journal holds is not computed again, and what is computed goes there. What a call raises is raised.

        Args:
            calls: What to call.
            description: What the progress bar counts.

        Raises:
            OutputError: If the journal cannot be written.
        """
        keys = _keys(calls)
        known = self.journal.known(keys) if self.journal else {}
        missing = [k for k, key in enumerate(keys) if key not in known]
        try:
            for k, result in self.results([calls[k] for k in missing], description):
                known[keys[missing[k]]] = result
                if self.journal and not isinstance(result, Lost):
                    self.journal.keep(keys[missing[k]], result)
        except KeyboardInterrupt:
            pass
        results = [known.get(key, INTERRUPTED) for key in keys]
        if self.journal:
            self.journal.lost += sum(isinstance(result, Lost) for result in results)
        return results

    def _result(self, future: Future[Any]) -> Any:
        try:
            return future.result()
        except ProcessExpired as error:
            return Lost(f"its process died: {ending(error.exitcode)}")
        except TimeoutError:
            return Lost(f"it did not come to an end within {self.time_limit:g} s")


@contextmanager
def crew(wanted: Workers) -> Iterator[Crew]:
    """Worker processes, each with one thread for linear algebra, a folder of its own to litter, and no voice.

    Args:
        wanted: How many there are, and what holds for them.
    """
    terminal = Console(stderr=True)
    with (
        tempfile.TemporaryDirectory(prefix="loopcheck-") as litter,
        Progress(console=terminal, transient=True, disable=not terminal.is_terminal) as progress,
    ):
        pool = Processes(wanted.count, context=_context(), initializer=_begin, initargs=(litter,))
        try:
            yield Crew(pool, progress, wanted.time_limit, wanted.journal)
        finally:
            pool.stop()  # type: ignore[no-untyped-call]
            pool.join()


def _keys(calls: Sequence[Call]) -> list[str]:
    """What tells the result of each call from all others: what is called, with what, and whose code computes."""
    every = {id(argument): argument for call in calls for argument in call.args}  # many calls share the same motion
    digests = {name: joblib.hash(argument) for name, argument in every.items()}
    return [
        str(joblib.hash((f.__module__, f.__qualname__, [digests[id(argument)] for argument in args], _code())))
        for f, args in calls
    ]


@cache
def _code() -> str:
    """Digest of our own files and of the versions of all packages."""
    digest = hashlib.sha256()
    for path in sorted(path for room in ROOMS for path in (HOUSE / room).rglob("*.py")):
        digest.update(path.read_bytes())
    packages = sorted(f"{found.name} {found.version}" for found in importlib.metadata.distributions())
    return digest.hexdigest() + hashlib.sha256("\n".join(packages).encode()).hexdigest()


def _context() -> Any:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    from multiprocessing import forkserver  # which some systems do not have

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(WARM)
    path = os.pathsep.join(filter(None, [str(HOUSE), os.environ.get("PYTHONPATH")]))
    with patch.dict(os.environ, PYTHONPATH=path, PYTHONSAFEPATH="1"):  # a user may have rooms of the same names
        forkserver.ensure_running()
    return context


def _begin(litter: str) -> None:
    """Let nothing of an engine reach the user: neither what it prints nor the log files it drops where it stands."""
    silence = os.open(os.devnull, os.O_RDWR)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os.chdir(litter)
    threadpool_limits(1)  # so that a sum does not depend on the number of workers
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
