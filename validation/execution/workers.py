"""Tasks in worker processes: a task that crashes or hangs is lost alone, with a reason, and all others continue.

Results are kept in a journal, so that the same command resumes after a kill; failures are not kept.
"""

import gc
import itertools
import math
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from queue import SimpleQueue
from threading import RLock
from typing import Any, NamedTuple, Protocol

from joblib import cpu_count
from pebble import ProcessExpired, ProcessPool
from threadpoolctl import threadpool_limits

from loopcheck.robots.errors import HarnessError
from loopcheck.robots.processes import OUT_OF_TIME, end_with_parent, exit_reason, main_left_out, within_cpu_time
from loopcheck.validation.execution.environments import Environment, environment_of
from loopcheck.validation.execution.errors import internal_error
from loopcheck.validation.execution.forkserver import RARE, worker_context
from loopcheck.validation.execution.journal import Journal, Task, keys
from loopcheck.validation.execution.progress import Display, display
from loopcheck.validation.execution.remote_calls import ENDING, LostCallError, call

TIME_LIMIT = 1800.0
"""Default time limit of a task [s]; the slowest task of the catalogue needs two minutes."""
LOADED = 10
"""Longest duration of a task with a limit of its CPU time, over that time [-]."""
INTERRUPTED = "interrupted"
TRIALS = 3
"""So many processes get a task, if they end before they begin it [-]."""
SWITCH = 0.0005
"""How long this process draws or imports before a thread gives the next task to a free worker [s]; 0.005 by default."""


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

        Tasks that are appended to the list meanwhile are run too. Workers of this machine begin at once, before the
        caller takes the first outcome.
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

    def results(self, tasks: Sequence[Task], description: str) -> list[Any]:
        """Results of all tasks, in their order.

        Args:
            tasks: Tasks to compute.
            description: Label of the progress bar.

        Raises:
            HarnessError: If a task raises it, or the journal cannot be written.
        """
        by_number = dict(self.completed(tasks, description))
        return [by_number[k] for k in range(len(tasks))]

    def completed(
        self,
        tasks: Sequence[Task],
        description: str,
        meanwhile: Callable[[], None] = nothing,
        expected: int = 0,
    ) -> Iterator[tuple[int, Any]]:
        """Number and result of each task as it ends: stored results first, interrupted tasks last.

        Args:
            tasks: Tasks to compute; those that the caller appends while it takes results are computed too.
            description: Label of the progress bar.
            meanwhile: Work of this process while the workers begin; only called if a task must be computed.
            expected: Number of tasks with those that will be appended.

        Raises:
            HarnessError: If a task raises it, or the journal cannot be written.
        """
        names: list[str] = []
        given: list[Task] = []
        numbers: list[int] = []
        missing: dict[int, None] = {}

        def begun() -> Iterator[tuple[int, Any]]:
            """Stored results of new tasks, after the workers have got the others."""
            while len(names) < len(tasks):
                new = range(len(names), len(tasks))
                names.extend(keys(tasks[new.start :]) if self.journal else [""] * len(new))
                known = dict(self.journal.known(names[new.start :])) if self.journal else {}
                computed = [k for k in new if k - new.start not in known]
                numbers.extend(computed)
                missing.update(dict.fromkeys(computed))
                given.extend(self._within_limit(tasks[k]) for k in computed)
                self.log.known += len(known)
                for k, result in known.items():
                    yield new.start + k, result

        yield from begun()
        try:
            coming = max(expected, len(tasks)) - (len(names) - len(given))
            for n, result in self._computed(given, description, meanwhile, coming):
                k = numbers[n]
                if self.journal and not isinstance(result, WorkerFailure) and tasks[k].is_kept(result):
                    self.journal.keep(names[k], result)
                del missing[k]
                self.log.computed += 1
                yield k, self._replaced(tasks[k], result) if isinstance(result, WorkerFailure) else result
                yield from begun()
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

    def _computed(
        self, tasks: Sequence[Task], description: str, meanwhile: Callable[[], None], expected: int
    ) -> Iterator[tuple[int, Any]]:
        """Number and result of each computed task; stops at an interruption."""
        if self.log.interrupted or not tasks:
            return
        outcomes = self.executor.outcomes(tasks, self.time_limit)
        meanwhile()
        for n, result in self.progress.track(outcomes, total=max(expected, len(tasks)), description=description):
            is_late = isinstance(result, WorkerFailure) and result.reason.endswith(OUT_OF_TIME)
            yield n, WorkerFailure(f"no result within {self.cpu_limit:g} s of CPU time") if is_late else result

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
        self._pool_manager.schedule = self._given  # type: ignore[method-assign]

    def _ended(self) -> tuple[tuple[int, int | None], ...]:
        """Numbers and exit statuses of the ended processes; pebble omits exit status 0.

        Each is reported at the second look, after its last messages, which name its task, have been read.
        """
        workers = self._pool_manager.worker_manager.workers
        gone = {pid for pid, process in tuple(workers.items()) if not process.is_alive()}
        surely, self._gone = gone & self._gone, gone
        return tuple((pid, workers.pop(pid).exitcode) for pid in surely)

    def _given(self, task: Any) -> None:
        """Give a task to a process; pebble would wait for one that it gives just after it has given up all tasks."""
        manager = self._pool_manager
        type(manager).schedule(manager, task)
        if not self._context.alive:
            manager.task_manager.tasks_abort(BrokenProcessPool())


@dataclass(slots=True, kw_only=True)
class Lane:
    """A worker process, and the engines that it has imported."""

    start: Callable[[], Processes]
    engines: set[str] = field(default_factory=set)
    is_free: bool = True
    pools: list[Processes] = field(default_factory=list)
    """The last one gets tasks, the others are lost: a process has ended between two tasks, perhaps with a lock."""

    def renew(self) -> None:
        """Go on with a new process."""
        self.pools.append(self.start())
        self.engines.clear()


class Job(NamedTuple):
    """A task of one call of `LocalExecutor.outcomes`."""

    number: int
    task: Task
    time_limit: float
    """Longest duration [s]."""
    ended: "SimpleQueue[tuple[int, Future[Any]]]"
    """Where its number and its result go."""
    environment: Environment | None
    """Of its engine, if it is not that of the worker."""
    trials: int = 1
    """Number of processes that got the task, of which all but the last have ended before they began it [-]."""


class LocalExecutor:
    """Worker processes of this machine.

    An engine stays with the worker that has imported it, as an import takes as long as many a task, unless a worker has
    nothing else to do. A worker takes its next task as soon as it is free, whatever this process does.
    """

    def __init__(self, lanes: Sequence[Lane], everywhere: Iterable[str] = ()) -> None:
        """For workers that have imported some engines before they begin."""
        self._lanes = lanes
        for lane in lanes:
            lane.renew()
        self._everywhere = {"", *everywhere}
        self._waiting: list[Job] = []
        self._lock = RLock()

    def outcomes(self, tasks: Sequence[Task], time_limit: float) -> Iterator[tuple[int, Any]]:
        """See `Executor.outcomes`."""
        ended: SimpleQueue[tuple[int, Future[Any]]] = SimpleQueue()
        count = self._take(tasks, 0, time_limit, ended)

        def results() -> Iterator[tuple[int, Any]]:
            begun = count
            try:
                for taken in itertools.count(1):
                    if taken > begun:
                        return
                    number, future = ended.get()
                    yield number, _result(future, time_limit)
                    begun = self._take(tasks, begun, time_limit, ended)
            finally:  # after an interruption nobody waits for the others
                with self._lock:
                    self._waiting = [job for job in self._waiting if job.ended is not ended]

        return results()

    def stop(self) -> None:
        """End all workers."""
        with self._lock:
            self._waiting = []
        pools = [pool for lane in self._lanes for pool in lane.pools]
        for pool in pools:
            pool.stop()  # type: ignore[no-untyped-call]
        for pool in pools:
            pool.join()

    def _take(
        self, tasks: Sequence[Task], begun: int, time_limit: float, ended: "SimpleQueue[tuple[int, Future[Any]]]"
    ) -> int:
        """Let the tasks from a number on wait for a worker; returns the number of all tasks."""
        new = range(begun, len(tasks))
        places = {engine: environment_of(engine) for engine in {tasks[k].engine for k in new}}
        with self._lock:
            self._waiting += [Job(k, tasks[k], time_limit, ended, places[tasks[k].engine]) for k in new]
            self._assign()
        return len(tasks)

    def _assign(self) -> None:
        """Give each free worker a task."""
        for lane in self._lanes:
            if lane.is_free and self._waiting:
                job = self._waiting.pop(self._place_of_next(lane))
                lane.is_free = False
                try:
                    future = self._scheduled(job, lane)
                except Exception as error:  # whoever waits for the result must get it
                    future = Future()
                    future.set_exception(error)
                future.add_done_callback(partial(self._end, lane, job))

    def _place_of_next(self, lane: Lane) -> int:
        """Place of the first waiting task of an engine of the worker or of none; otherwise the last."""
        elsewhere = {engine for other in self._lanes for engine in other.engines} - lane.engines - self._everywhere
        own = (k for k, job in enumerate(self._waiting) if job.task.engine not in elsewhere)
        return next(own, len(self._waiting) - 1)

    def _scheduled(self, job: Job, lane: Lane) -> Future[Any]:
        """A task computed by a worker, or by the Python of an environment under the supervision of a worker."""
        if not lane.pools[-1].active:
            lane.renew()
        lane.engines.add(job.task.engine)
        pool, task, limit = lane.pools[-1], job.task, job.time_limit
        if job.environment is None:
            return pool.schedule(task.function, args=task.args, timeout=limit)
        args = (job.environment.interpreter, task.function, task.args, limit)
        return pool.schedule(call, args=args, timeout=limit + ENDING)

    def _end(self, lane: Lane, job: Job, future: Future[Any]) -> None:
        """Hand over a result; the worker is free, or will be replaced, and gets a task again that it had not begun."""
        error = future.exception()
        with self._lock:
            if isinstance(error, BrokenProcessPool) and job.trials < TRIALS:
                self._waiting.insert(0, job._replace(trials=job.trials + 1))
            else:
                job.ended.put((job.number, future))
            if isinstance(error, ProcessExpired | TimeoutError):
                lane.engines.clear()
            lane.is_free = True
            self._assign()


def _result(future: Future[Any], time_limit: float) -> Any:
    try:
        return future.result()
    except ProcessExpired as error:
        return WorkerFailure(f"its process died: {exit_reason(error.exitcode)}")
    except LostCallError as error:
        return WorkerFailure(str(error))
    except BrokenProcessPool:
        return WorkerFailure(f"{TRIALS} processes ended before they began it")
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
        before = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH)

        def lane() -> Lane:
            return Lane(start=partial(Processes, 1, context=context, initializer=_begin, initargs=(directory,)))

        executor = LocalExecutor([lane() for _ in range(workers.count)], filter(None, map(_engine_of, preload)))
        try:
            yield WorkerPool(
                executor=executor,
                progress=progress,
                time_limit=workers.time_limit,
                journal=journal,
                count=workers.count,
            )
        finally:
            executor.stop()
            sys.setswitchinterval(before)  # this may be the process of a user's own program


def _engine_of(module: str) -> str:
    """Engine of a module of ours, as `mujoco` of `loopcheck.engines.mujoco.renderer`; empty for another module."""
    engine = re.match(r"loopcheck\.engines\.(\w+)\.", module)
    return engine[1] if engine else ""


def _begin(directory: str) -> None:
    """Keep the output of engines, and log files that they write to the working directory, away from the user."""
    silence = os.open(os.devnull, os.O_RDWR)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    os.chdir(directory)
    gc.freeze()
    gc.set_threshold(*RARE)
    threadpool_limits(1)  # so that a sum does not depend on the number of workers
    end_with_parent()
