"""Tasks in worker processes: a task that crashes or hangs is lost alone, with a reason, and all others continue.

Results are kept in a journal, so that the same command resumes after a kill; failures are not kept.
"""

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, NamedTuple, Protocol

from joblib import cpu_count
from pebble import ProcessExpired, ProcessPool
from threadpoolctl import threadpool_limits

from loopcheck.robots.errors import HarnessError
from loopcheck.robots.processes import OUT_OF_TIME, end_with_parent, exit_reason, main_left_out, within_cpu_time
from loopcheck.validation.execution.environments import Environment, environment_of
from loopcheck.validation.execution.errors import internal_error
from loopcheck.validation.execution.forkserver import worker_context
from loopcheck.validation.execution.journal import Journal, Task, keys
from loopcheck.validation.execution.progress import Display, display
from loopcheck.validation.execution.remote_calls import ENDING, LostCallError, call

TIME_LIMIT = 1800.0
"""Default time limit of a task [s]; the slowest task of the catalogue needs two minutes."""
LOADED = 10
"""Longest duration of a task with a limit of its CPU time, over that time [-]."""
INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Workers:
    """Number and limits of worker processes."""

    jobs: int | None = None
    """Number of processes, by default one per core."""
    time_limit: float = TIME_LIMIT
    """Longest duration of a task before its process is stopped [s]."""

    @property
    def count(self) -> int:
        """Number of worker processes."""
        return self.jobs or cpu_count()


ALL_CORES = Workers()
ALONE = Workers(jobs=1)


def nothing() -> None:
    """Do nothing: the default work of this process beside its workers."""


class WorkerFailure(NamedTuple):
    """Reason for a missing result: the process died or was stopped, or an internal error."""

    reason: str


class Executor(Protocol):
    """Processes that run tasks, here or elsewhere."""

    def outcomes(self, tasks: Sequence[Task], time_limit: float) -> Iterator[tuple[int, Any]]:
        """Number and result, or `WorkerFailure`, of each completed task; raises a `HarnessError` of a task.

        Workers of this machine begin at once, before the caller takes the first outcome.
        """


@dataclass(slots=True)
class TaskLog:
    """Counts and failures of the tasks so far."""

    computed: int = 0
    """Number of computed tasks."""
    known: int = 0
    """Number of results from the journal."""
    failures: list[WorkerFailure] = field(default_factory=list)
    """Reasons of all tasks with a replacement for their result."""
    interrupted: bool = False
    """Whether the user stopped the computation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPool:
    """Running worker processes and the journal of their results."""

    executor: Executor
    progress: Display
    time_limit: float
    """Longest duration of a task [s]."""
    cpu_limit: float = math.inf
    """Longest CPU time of a task [s]; another load of the machine does not matter."""
    journal: Journal | None = None
    count: int = 1
    """Number of workers."""
    log: TaskLog = field(default_factory=TaskLog)

    def results(self, tasks: Sequence[Task], description: str, meanwhile: Callable[[], None] = nothing) -> list[Any]:
        """Results of all tasks, in their order.

        Args:
            tasks: Tasks to compute.
            description: Label of the progress bar.
            meanwhile: Work of this process while the workers begin; only called if a task must be computed.

        Raises:
            HarnessError: If a task raises it, or the journal cannot be written.
        """
        by_number = dict(self.completed(tasks, description, meanwhile))
        return [by_number[k] for k in range(len(tasks))]

    def completed(
        self, tasks: Sequence[Task], description: str, meanwhile: Callable[[], None] = nothing
    ) -> Iterator[tuple[int, Any]]:
        """Number and result of each task as it ends: stored results first, interrupted tasks last.

        Args:
            tasks: Tasks to compute.
            description: Label of the progress bar.
            meanwhile: Work of this process while the workers begin; only called if a task must be computed.

        Raises:
            HarnessError: If a task raises it, or the journal cannot be written.
        """
        names = keys(tasks) if self.journal else [""] * len(tasks)
        missing = dict.fromkeys(range(len(tasks)))
        for k, result in self.journal.known(names) if self.journal else ():
            del missing[k]
            self.log.known += 1
            yield k, result
        try:
            for k, result in self._computed({k: tasks[k] for k in missing}, description, meanwhile):
                if self.journal and not isinstance(result, WorkerFailure) and tasks[k].is_kept(result):
                    self.journal.keep(names[k], result)
                del missing[k]
                self.log.computed += 1
                yield k, self._replaced(tasks[k], result) if isinstance(result, WorkerFailure) else result
        except KeyboardInterrupt:
            self.log.interrupted = True
        for k in missing:
            yield k, self._replaced(tasks[k], WorkerFailure(INTERRUPTED))

    def limited(self, time_limit: float) -> "WorkerPool":
        """The same workers, with at most that time for a task [s]."""
        return replace(self, time_limit=min(time_limit, self.time_limit))

    def with_cpu_limit(self, cpu_limit: float) -> "WorkerPool":
        """The same workers, with at most that CPU time for a task [s], and more on the clock for a loaded machine."""
        return replace(self.limited(LOADED * cpu_limit), cpu_limit=cpu_limit)

    def afresh(self) -> "WorkerPool":
        """The same workers without a journal, usable also after an interruption."""
        return replace(self, journal=None, log=TaskLog())

    def prepare(self, modules: Sequence[str]) -> None:
        """Let idle workers import modules of later tasks.

        Args:
            modules: Names of modules; a failed import is reported by the tasks that need the module.
        """
        if self.count > 1 and not self.log.interrupted:
            self.executor.outcomes([Task(_imported, (modules,))] * self.count, self.time_limit)

    def _computed(
        self, tasks: Mapping[int, Task], description: str, meanwhile: Callable[[], None]
    ) -> Iterator[tuple[int, Any]]:
        """Number and result of each computed task; stops at an interruption."""
        if self.log.interrupted or not tasks:
            return
        numbers = list(tasks)
        outcomes = self.executor.outcomes([self._within_limit(task) for task in tasks.values()], self.time_limit)
        meanwhile()
        for k, result in self.progress.track(outcomes, total=len(tasks), description=description):
            is_late = isinstance(result, WorkerFailure) and result.reason.endswith(OUT_OF_TIME)
            late = WorkerFailure(f"no result within {self.cpu_limit:g} s of CPU time")
            yield numbers[k], late if is_late else result

    def _within_limit(self, task: Task) -> Task:
        if math.isinf(self.cpu_limit):
            return task
        return task._replace(function=within_cpu_time, args=(self.cpu_limit, task.function, task.args))

    def _replaced(self, task: Task, failure: WorkerFailure) -> Any:
        if task.on_failure is None:
            return failure
        self.log.failures.append(failure)
        return task.on_failure(failure.reason)


class Processes(ProcessPool):
    """Worker processes whose end is always noticed, also with exit status 0 by an engine."""

    def __init__(self, count: int, **options: Any) -> None:
        super().__init__(count, **options)
        self._gone: set[int] = set()
        manager = self._pool_manager.worker_manager
        manager.inspect_workers = self._ended  # type: ignore[method-assign]
        manager.new_worker = main_left_out()(manager.new_worker)  # type: ignore[method-assign]

    def _ended(self) -> tuple[tuple[int, int | None], ...]:
        """Numbers and exit statuses of the ended processes; pebble omits exit status 0.

        Each is reported at the second look, after its last messages, which name its task, have been read.
        """
        workers = self._pool_manager.worker_manager.workers
        gone = {pid for pid, process in tuple(workers.items()) if not process.is_alive()}
        surely, self._gone = gone & self._gone, gone
        return tuple((pid, workers.pop(pid).exitcode) for pid in surely)


@dataclass(frozen=True, slots=True)
class LocalExecutor:
    """Worker processes of this machine."""

    processes: Processes

    def outcomes(self, tasks: Sequence[Task], time_limit: float) -> Iterator[tuple[int, Any]]:
        """See `Executor.outcomes`."""
        places = {engine: environment_of(engine) for engine in {task.engine for task in tasks}}
        futures: dict[Future[Any], int] = {
            self._scheduled(task, places[task.engine], time_limit): k for k, task in enumerate(tasks)
        }
        return ((futures.pop(future), _result(future, time_limit)) for future in as_completed([*futures]))

    def _scheduled(self, task: Task, environment: Environment | None, time_limit: float) -> Future[Any]:
        """A task computed by a worker, or by the Python of an environment under the supervision of a worker."""
        if environment is None:
            return self.processes.schedule(task.function, args=task.args, timeout=time_limit)
        args = (environment.interpreter, task.function, task.args, time_limit)
        return self.processes.schedule(call, args=args, timeout=time_limit + ENDING)


def _imported(modules: Sequence[str]) -> None:
    for module in modules:
        import_module(module)


def _result(future: Future[Any], time_limit: float) -> Any:
    try:
        return future.result()
    except ProcessExpired as error:
        return WorkerFailure(f"its process died: {exit_reason(error.exitcode)}")
    except LostCallError as error:
        return WorkerFailure(str(error))
    except TimeoutError:
        return WorkerFailure(f"timeout after {time_limit:g} s")
    except HarnessError:
        raise
    except Exception as error:  # a bug of ours must not take the results of the other tasks along
        return WorkerFailure(internal_error(error))


@contextmanager
def worker_pool(workers: Workers, journal: Journal | None = None, preload: Sequence[str] = ()) -> Iterator[WorkerPool]:
    """Worker processes, each with one thread for linear algebra, its own working directory and its output discarded.

    Args:
        workers: Number and limits.
        journal: Storage of their results, if any.
        preload: Modules that all workers need.
    """
    with tempfile.TemporaryDirectory(prefix="loopcheck-") as directory, display() as progress:
        context = worker_context(preload)
        processes = Processes(workers.count, context=context, initializer=_begin, initargs=(directory,))
        try:
            yield WorkerPool(
                executor=LocalExecutor(processes),
                progress=progress,
                time_limit=workers.time_limit,
                journal=journal,
                count=workers.count,
            )
        finally:
            processes.stop()  # type: ignore[no-untyped-call]
            processes.join()


def _begin(directory: str) -> None:
    """Keep the output of engines, and log files that they write to the working directory, away from the user."""
    silence = os.open(os.devnull, os.O_RDWR)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os.chdir(directory)
    threadpool_limits(1)  # so that a sum does not depend on the number of workers
    end_with_parent()
