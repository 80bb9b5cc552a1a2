"""Which worker gets which task: each worker is played by the test, which ends its tasks by hand."""

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from pebble import ProcessExpired

from loopcheck.validation.execution.journal import Task, journal_in
from loopcheck.validation.execution.progress import NoDisplay
from loopcheck.validation.execution.workers import TRIALS, Lane, LocalExecutor, WorkerFailure, WorkerPool, _engine_of


class Worker:
    """Runs one task at a time, when it is told to end it."""

    active = True

    def __init__(self) -> None:
        self.running: list[tuple[Callable[..., Any], Any, Future[Any]]] = []
        self.names: list[str] = []
        """First arguments of the tasks so far."""
        self.calls: list[str] = []

    def stop(self) -> None:
        self.calls.append("stop")

    def join(self) -> None:
        self.calls.append("join")

    def schedule(self, function: Callable[..., Any], args: Any, timeout: float) -> Future[Any]:
        future: Future[Any] = Future()
        self.running.append((function, args, future))
        self.names.append(args[0])
        return future

    def end(self, error: Exception | None = None) -> None:
        """End the task, with its result or an error."""
        ((function, args, future),) = self.running
        self.running = []
        if error:
            future.set_exception(error)
        else:
            future.set_result(function(*args))


def upper(name: str) -> str:
    return name.upper()


def task(name: str, engine: str = "") -> Task:
    return Task(upper, (name,), engine=engine)


@pytest.fixture
def two() -> tuple[Worker, Worker]:
    return Worker(), Worker()


def executor_of(workers: tuple[Worker, ...], everywhere: tuple[str, ...] = ()) -> LocalExecutor:
    return LocalExecutor([Lane(start=partial(next, repeat(worker))) for worker in workers], everywhere)


def test_an_engine_stays_with_the_worker_that_has_imported_it(two: tuple[Worker, Worker]) -> None:
    one, other = two
    executor_of(two).outcomes([task(name, name[0]) for name in ("a1", "b1", "b2", "a2", "c1")], 1.0)
    one.end()  # b2 waits longer, but is not its own
    other.end()
    assert (one.names, other.names) == (["a1", "a2"], ["b1", "b2"])
    one.end()  # of an engine that nobody has
    assert one.names == ["a1", "a2", "c1"]


def test_a_worker_without_work_of_its_own_takes_the_last_of_another(two: tuple[Worker, Worker]) -> None:
    one, other = two
    executor_of(two).outcomes([task(name, name[0]) for name in ("a1", "b1", "b2", "b3")], 1.0)
    one.end()
    assert (one.names, other.names) == (["a1", "b3"], ["b1"])
    other.end()
    assert other.names == ["b1", "b2"]


def test_tasks_without_an_engine_and_of_an_engine_of_all_go_in_their_order(two: tuple[Worker, Worker]) -> None:
    one, _ = two
    executor_of(two, ("m",)).outcomes([task("m1", "m"), task("m2", "m"), task("x"), task("m3", "m"), task("y")], 1.0)
    for _ in range(3):
        one.end()
    assert one.names == ["m1", "x", "m3", "y"]


@pytest.mark.parametrize("error", [ProcessExpired("gone", code=1), TimeoutError()])  # type: ignore[no-untyped-call]
def test_a_worker_that_was_replaced_has_no_engine(two: tuple[Worker, Worker], error: Exception) -> None:
    one, other = two
    executor_of(two).outcomes([task(name, name[0]) for name in ("a1", "b1", "c1", "a2", "c2")], 1.0)
    one.end(error)
    other.end()  # an engine that nobody has any more, before the last of the other worker's
    assert (one.names, other.names) == (["a1", "c1"], ["b1", "a2"])


def test_a_task_whose_processes_end_before_it_begins_is_tried_again_first_then_lost(two: tuple[Worker, Worker]) -> None:
    one, _ = two
    outcomes = executor_of((one,)).outcomes([task(name) for name in "ab"], 1.0)
    for _ in range(TRIALS):
        one.end(BrokenProcessPool())
    assert one.names == ["a", "a", "a", "b"]
    one.end()
    assert [*outcomes] == [(0, WorkerFailure("3 processes ended before they began it")), (1, "B")]


def test_a_process_in_the_place_of_a_lost_one_has_no_engine_and_all_are_ended(two: tuple[Worker, Worker]) -> None:
    one, other = two
    new = Worker()
    lanes: list[Any] = [Lane(start=partial(next, iter((one, new)))), Lane(start=partial(next, iter((other,))))]
    executor = LocalExecutor(lanes)
    executor.outcomes([task(name, name[0]) for name in ("a1", "b1", "c1", "a2", "c2")], 1.0)
    one.active = False
    one.end()
    other.end()  # an engine that nobody has any more, before one that the new process has
    assert (one.names, other.names) == (["a1"], ["b1", "a2"])
    executor.stop()
    assert [worker.calls for worker in (one, new, other)] == [["stop", "join"]] * 3


def test_workers_go_on_while_nobody_takes_results(two: tuple[Worker, Worker]) -> None:
    one, other = two
    outcomes = executor_of(two).outcomes([task(name) for name in "abcd"], 1.0)
    for _ in range(2):
        one.end()
    assert (one.names, other.names) == (["a", "c", "d"], ["b"])
    assert [next(outcomes), next(outcomes)] == [(0, "A"), (2, "C")]


def test_tasks_that_are_appended_are_run_too(two: tuple[Worker, Worker]) -> None:
    tasks = [task("a")]
    outcomes = executor_of((two[0], AtOnce())).outcomes(tasks, 1.0)
    two[0].end()
    assert next(outcomes) == (0, "A")
    tasks += [task("b"), task("c"), task("d")]
    assert [next(outcomes), next(outcomes)] == [(2, "C"), (3, "D")]
    two[0].end()
    assert list(outcomes) == [(1, "B")]


def test_after_an_interruption_no_task_of_the_call_waits(two: tuple[Worker, Worker]) -> None:
    one, other = two
    executor = executor_of(two)
    outcomes = executor.outcomes([task(name) for name in "abcd"], 1.0)
    one.end()
    assert next(outcomes) == (0, "A")
    outcomes.close()  # type: ignore[attr-defined]
    executor.outcomes([task("x")], 1.0)
    other.end()
    assert (one.names, other.names) == (["a", "c"], ["b", "x"])


def test_a_pool_that_cannot_take_a_task_is_the_reason_for_its_absence() -> None:
    class Broken(Worker):
        def schedule(self, *_: Any, **__: Any) -> Future[Any]:
            raise RuntimeError("the pool is not active")

    ((number, failure),) = executor_of((Broken(),)).outcomes([task("a")], 1.0)
    assert number == 0
    assert isinstance(failure, WorkerFailure)
    assert "the pool is not active" in failure.reason


class AtOnce(Worker):
    """Ends each task at once."""

    def schedule(self, function: Callable[..., Any], args: Any, timeout: float) -> Future[Any]:
        future = super().schedule(function, args, timeout)
        self.end()
        return future


def test_results_may_bring_tasks() -> None:
    tasks = [task("a"), task("b")]
    pool = WorkerPool(executor=executor_of((AtOnce(),)), progress=NoDisplay(), time_limit=1.0)
    found: dict[int, str] = {}
    for k, result in pool.completed(tasks, "letters"):
        found[k] = result
        if result in "AC":
            tasks.append(task("c" if result == "A" else "d"))
    assert found == {0: "A", 1: "B", 2: "C", 3: "D"}
    assert pool.log.computed == 4


def test_stored_results_may_bring_tasks(tmp_path: Path) -> None:
    counts: list[Mapping[str, int]] = []
    for _ in range(2):
        with journal_in(tmp_path) as journal:
            tasks = [task("a")]
            executor = executor_of((AtOnce(),))
            pool = WorkerPool(executor=executor, progress=NoDisplay(), time_limit=1.0, journal=journal)
            found = []
            for k, result in pool.completed(tasks, "letters"):
                found.append((k, result))
                if result == "A":
                    tasks.append(task("b"))
            assert found == [(0, "A"), (1, "B")]
            counts.append({"computed": pool.log.computed, "known": pool.log.known})
    assert counts == [{"computed": 2, "known": 0}, {"computed": 0, "known": 2}]


def test_the_engine_of_a_module() -> None:
    assert _engine_of("loopcheck.engines.mujoco.routes.forward") == "mujoco"
    assert _engine_of("loopcheck.engines.forward") == ""
    assert _engine_of("scipy.optimize") == ""
