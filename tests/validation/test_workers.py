"""Work of a command's process beside its workers."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest

from loopcheck.validation.execution import forkserver
from loopcheck.validation.execution.forkserver import worker_context
from loopcheck.validation.execution.journal import Task, journal_in
from loopcheck.validation.execution.workers import Lane, LocalExecutor, Processes, WorkerFailure, Workers, worker_pool
from tests.validation.conftest import in_this_process

ROOT = Path(__file__).parents[2]
IMPORTING = """
import pathlib, time
pathlib.Path("importing").touch()
time.sleep(2)
"""
COMMAND = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for commands in the background
from loopcheck.validation.execution.forkserver import worker_context
worker_context(["slowly"])
try:
    time.sleep(30)
except KeyboardInterrupt:
    print("interrupted")
"""
PATIENCE = 30.0
"""Time limit of a task that waits for a file [s]."""


def awaited(path: Path) -> bool:
    """Whether a file appears; runs in a worker."""
    end = time.monotonic() + PATIENCE
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.01)
    return path.exists()


def test_this_process_works_while_its_workers_do(tmp_path: Path) -> None:
    """Concurrent work begins with the tasks, and may be their precondition."""
    with worker_pool(Workers(jobs=1)) as pool:
        results = list(pool.completed([Task(awaited, (tmp_path / "file",))], "files", (tmp_path / "file").touch))
    assert results == [(0, True)]


@pytest.mark.parametrize("wait", [0.0, 0.05, 0.5])
def test_a_worker_that_ends_between_two_tasks_takes_nothing_along(wait: float) -> None:
    """The system ends a process for its memory, perhaps one that still holds a lock."""
    with worker_pool(Workers(jobs=1)) as pool:
        for _ in range(2):
            (number,) = pool.results([Task(os.getpid, ())], "numbers")
            os.kill(number, signal.SIGKILL)
            time.sleep(wait)


def test_a_task_that_no_process_begins_is_lost_alone() -> None:
    broken = Lane(start=lambda: Processes(1, context=worker_context(), initializer=os._exit, initargs=(1,)))
    executor = LocalExecutor([broken])
    try:
        ((_, outcome),) = executor.outcomes([Task(os.getpid, ())], 10.0)
    finally:
        executor.stop()
    assert outcome == WorkerFailure("3 processes ended before they began it")


def test_a_task_given_at_the_moment_when_all_are_given_up_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = Processes(1, context=worker_context())
    assert pool.active
    pool._pool_manager.handle_broken_pool(BrokenProcessPool())
    monkeypatch.setattr(pool, "_check_pool_status", lambda: None)  # as just before it
    try:
        with pytest.raises(BrokenProcessPool):
            pool.schedule(os.getpid).result(timeout=10)
    finally:
        pool.join()


def test_nothing_is_done_meanwhile_where_all_is_known(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    task, begun = Task(awaited, (tmp_path / "file",)), []
    for _ in range(2):
        with in_this_process(), journal_in(tmp_path) as journal, worker_pool(Workers(jobs=1), journal) as pool:
            assert list(pool.completed([task], "files", lambda: begun.append(True))) == [(0, True)]
    assert begun == [True]


def spent(seconds: float) -> float:
    """CPU time of a task of this duration [s]; runs in a worker."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return seconds


@pytest.mark.extended(
    "tests/validation/test_cluster.py::test_a_task_that_takes_too_long_is_stopped_and_the_next_is_computed"
)
def test_a_limit_of_cpu_time_stops_work_but_not_waiting(tmp_path: Path) -> None:
    """On a loaded machine a task waits; a worker after one that was stopped has a limit of its own."""
    with worker_pool(Workers(jobs=1)) as pool:
        tasks = [Task(spent, (0.1,)), Task(spent, (60.0,)), Task(time.sleep, (2.5,)), Task(spent, (0.1,))]
        results = pool.with_cpu_limit(1.0).results(tasks, "tasks")
    assert results == [0.1, WorkerFailure("no result within 1 s of CPU time"), None, 0.1]


def test_ctrl_c_is_for_the_command_alone(tmp_path: Path) -> None:
    """Whoever presses it while workers import gets the command's line, and no traceback of theirs."""
    (tmp_path / "slowly.py").write_text(IMPORTING, encoding="utf-8")
    command = subprocess.Popen(
        [sys.executable, "-c", COMMAND],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, tmp_path)))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    assert awaited(tmp_path / "importing")
    os.killpg(command.pid, signal.SIGINT)
    assert command.communicate(timeout=PATIENCE) == ("interrupted\n", "")


def begun(path: Path) -> None:
    """Say that it has begun, and never end; runs in a worker."""
    path.touch()
    time.sleep(2 * PATIENCE)


STOPPED = """
from pathlib import Path
from loopcheck import __main__
from loopcheck.validation import cli
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.workers import Lane, LocalExecutor, Processes, WorkerFailure, Workers, worker_pool
from tests.validation.test_workers import begun

def command():
    with worker_pool(Workers(jobs=2)) as pool:
        print(*(failure.reason for failure in pool.results([Task(begun, (Path("begun").absolute(),))] * 2, "files")))

cli.main = command
__main__.main()
"""


@pytest.mark.extended("test_ctrl_c_is_for_the_command_alone")
def test_a_terminated_command_leaves_nothing_behind(tmp_path: Path) -> None:
    """Without a handler, Python complained of leaked semaphores, and results were lost."""
    command = subprocess.Popen(
        [sys.executable, "-c", STOPPED],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert awaited(tmp_path / "begun")
    command.terminate()
    assert command.communicate(timeout=PATIENCE) == ("interrupted interrupted\n", "")


@pytest.mark.parametrize("number", [None, 4711])
def test_a_refusal_ends_the_process_that_workers_are_forked_from(
    monkeypatch: pytest.MonkeyPatch, number: int | None
) -> None:
    """And no other process where it does not run."""
    killed: list[tuple[int, int]] = []
    monkeypatch.setattr(forkserver, "_process", lambda: number)
    monkeypatch.setattr(os, "kill", lambda *args: killed.append(args))
    forkserver.abandon()
    assert killed == ([(4711, signal.SIGKILL)] if number else [])
