"""Engines in environments of their own: crashes, hangs and prints there cost their own row and leave no process."""

import ctypes
import operator
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from loopcheck import engines
from loopcheck.engines.declarations import outlines, sourced
from loopcheck.robots.errors import EngineNotInstalledError, NotFoundError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load
from loopcheck.validation.check.efforts.evaluate import evaluate
from loopcheck.validation.check.study import Check
from loopcheck.validation.common import sources
from loopcheck.validation.execution import remote_calls
from loopcheck.validation.execution.environments import (
    PLACE,
    Environment,
    broken_environments,
    engine_versions,
    environment_of,
    environments,
    is_there,
)
from loopcheck.validation.execution.folders import IMPORT_FOLDER
from loopcheck.validation.execution.journal import Task, keys
from loopcheck.validation.execution.remote_calls import LostCallError, call, dumps, end
from loopcheck.validation.execution.workers import TaskLog, WorkerFailure, Workers, worker_pool
from loopcheck.validation.frame import study as study_module
from loopcheck.validation.studies.sweep.cases import COMPUTED, Variation, compute_cases
from loopcheck.validation.tune.engine import AskedTuning, tuning_of
from tests.house import ROOT
from tests.validation.other_python import make_environment

LIMIT = 30.0
SCRIPTS = ("scripts",)
HANG = (re.match, ("(a+)+$", "a" * 60 + "b"))
"""A call that holds the interpreter in C for ages."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("engines")


@pytest.fixture(scope="module")
def environment(place: Path) -> Iterator[Environment]:
    """The environment of an engine that counts as not importable here."""
    environment = make_environment(place, "mujoco")
    yield environment
    end(environment.interpreter)


@pytest.fixture(autouse=True)
def elsewhere(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLACE, str(place))


@pytest.fixture
def not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "installed", lambda name: False)


@pytest.fixture
def python(environment: Environment) -> Path:
    return environment.interpreter


@pytest.mark.evidence("a Python of its own is started", seconds=1.5)
def test_a_call_is_computed_in_the_environment_with_our_own_code(python: Path) -> None:
    assert call(python, sysconfig.get_path, SCRIPTS, LIMIT) == str(python.parent)
    assert call(python, load, ("3prr",), LIMIT) == load("3prr")


def test_linear_algebra_has_one_thread_there(python: Path) -> None:
    assert call(python, os.getenv, ("OPENBLAS_NUM_THREADS",), LIMIT) == "1"


def test_one_process_computes_all_calls(python: Path) -> None:
    assert call(python, os.getpid, (), LIMIT) == call(python, os.getpid, (), LIMIT) != os.getpid()


def test_an_error_of_ours_is_raised_here(python: Path) -> None:
    with pytest.raises(NotFoundError, match="unknown robot: 'nothing'") as caught:
        call(python, load, ("nothing",), LIMIT)
    assert "3prr" in caught.value.known


@pytest.mark.parametrize(
    ("function", "args", "reason"),
    [
        (os.abort, (), r"its process died: Aborted \(SIGABRT\)"),
        (ctypes.string_at, (1,), r"its process died: Segmentation fault \(SIGSEGV\)"),
        (os._exit, (0,), "its process died: exit status 0"),
        (sys.exit, (3,), "its process died: exit status 3"),
        (sys.exit, ("no number",), "its process died: exit status 1"),
        (operator.truediv, (1, 0), "internal error: ZeroDivisionError"),
        (threading.Lock, (), "internal error: TypeError: cannot pickle"),
    ],
    ids=["abort", "segfault", "exit", "SystemExit", "SystemExit with a text", "bug", "unpicklable"],
)
def test_a_call_that_goes_wrong_is_lost_alone(python: Path, function: Any, args: tuple[Any, ...], reason: str) -> None:
    with pytest.raises(LostCallError, match=reason):
        call(python, function, args, LIMIT)
    assert call(python, abs, (-1,), LIMIT) == 1


def test_what_is_printed_stands_not_between_the_frames(python: Path) -> None:
    assert call(python, os.system, ("echo printed by another process",), LIMIT) == 0
    assert call(python, os.write, (1, b"x" * 100_000), LIMIT) == 100_000
    assert call(python, os.read, (0, 1), LIMIT) == b""


@pytest.mark.parametrize("call_of_absent", [b"cno_such_module\nf\n.", dumps(("no", 1, "call"))])
def test_what_the_other_python_cannot_read_is_lost_alone(
    call_of_absent: bytes, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(remote_calls, "dumps", lambda _: call_of_absent)
        with pytest.raises(LostCallError, match="internal error"):
            call(python, abs, (-1,), LIMIT)
    assert call(python, abs, (-1,), LIMIT) == 1


def test_a_large_result_arrives(python: Path) -> None:
    array = call(python, np.full, ((1_000_000, 8), 0.5), LIMIT)
    assert array.shape == (1_000_000, 8)
    assert (array == 0.5).all()


@pytest.mark.extended("test_a_call_that_goes_wrong_is_lost_alone")
def test_what_takes_too_long_is_killed_with_all_that_it_started(python: Path) -> None:
    marker = f"{1e6 + os.getpid()}"
    call(python, abs, (-1,), LIMIT)
    with pytest.raises(TimeoutError):
        call(python, subprocess.call, (["sleep", marker],), 0.5)
    deadline = time.monotonic() + 10  # the system ends what is killed when it gets to it
    while _processes_with(marker) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _processes_with(marker)
    call(python, abs, (-1,), LIMIT)
    with pytest.raises(TimeoutError):
        call(python, *HANG, 0.5)
    assert call(python, abs, (-1,), LIMIT) == 1


def test_a_hang_ends_with_a_killed_parent(python: Path) -> None:
    """Also in C code that never checks for the parent."""
    program = (
        "import os, re\n"
        "from pathlib import Path\n"
        "from loopcheck.validation.execution.remote_calls import call\n"
        f"python = Path({str(python)!r})\n"
        "print(call(python, os.getpid, (), 30), flush=True)\n"
        f"call(python, re.match, {HANG[1]!r}, 1000)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(0.1)  # the hang begins
    assert _is_running(child)
    parent.send_signal(signal.SIGKILL)
    parent.communicate()
    deadline = time.monotonic() + 10
    while _is_running(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _is_running(child)


def test_a_python_that_cannot_be_started_is_a_reason(tmp_path: Path) -> None:
    with pytest.raises(LostCallError, match="cannot be started: No such file or directory"):
        call(tmp_path / "bin/python", abs, (-1,), LIMIT)


@pytest.mark.extended("test_a_call_is_computed_in_the_environment_with_our_own_code")
def test_packages_beside_our_own_are_not_taken_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In our installation, environments of other Pythons lie beside ours."""
    python = make_environment(tmp_path, "mujoco").interpreter
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text("raise SystemExit('of another Python')", encoding="utf-8")
    (tmp_path / "loopcheck").symlink_to(IMPORT_FOLDER / "loopcheck")
    monkeypatch.setattr(remote_calls, "IMPORT_FOLDER", tmp_path)
    try:
        assert call(python, load, ("3prr",), LIMIT).title == load("3prr").title
    finally:
        end(python)


@pytest.mark.extended("test_a_call_is_computed_in_the_environment_with_our_own_code")
def test_tasks_of_an_engine_run_where_the_engine_is(environment: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine importable here runs here; a crash or a hang there has no effect on others."""
    tasks = [
        Task(sysconfig.get_path, SCRIPTS),
        Task(sysconfig.get_path, SCRIPTS, engine="mujoco"),
        Task(os.abort, (), engine="mujoco"),
        Task(*HANG, engine="mujoco"),
    ]
    with worker_pool(Workers(1, time_limit=3)) as pool:
        assert pool.results(tasks[1:2], "here") == [sysconfig.get_path("scripts")]
        monkeypatch.setattr(engines, "installed", lambda name: False)
        here, there, *failures = pool.results(tasks, "there")
    assert (here, there) == (sysconfig.get_path("scripts"), str(environment.interpreter.parent))
    assert [failure.reason for failure in failures] == [
        "its process died: Aborted (SIGABRT)",
        "timeout after 3 s",
    ]
    assert all(isinstance(failure, WorkerFailure) for failure in failures)


@pytest.mark.extended("test_a_call_is_computed_in_the_environment_with_our_own_code")
def test_an_engine_gives_the_same_efforts_there(python: Path, prr: Case, prr_motion: Motion) -> None:
    motion = prr_motion.assemble(prr_motion.t[:20])
    there = call(python, evaluate, (prr, motion, "mujoco/kkt"), LIMIT).history
    here = sources.load("mujoco/kkt").compute_efforts(prr, motion)
    assert there.effort.tobytes() == here.effort.tobytes()


@pytest.mark.extended("test_a_call_is_computed_in_the_environment_with_our_own_code")
def test_studies_ask_an_engine_there(environment: Environment, prr: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a tuning nor a sweep imports the engine here."""
    variation = Variation(target="four_bar", sources=("mujoco/kkt",), motions=("pose",))
    wanted = tuning_of("mujoco").given(prr.mechanism)
    monkeypatch.setattr(engines, "installed", lambda name: False)
    with pytest.raises(EngineNotInstalledError):
        sources.load("mujoco/kkt")
    with worker_pool(Workers(1, time_limit=LIMIT)) as pool:
        assert AskedTuning(engine="mujoco", pool=pool).given(prr.mechanism) == wanted
    rows = compute_cases(variation, (0,)).to_dict("records")
    assert {(row["source"], row["result"]) for row in rows} == {("analytic/noc", COMPUTED), ("mujoco/kkt", COMPUTED)}


def test_an_outline_of_a_ladder_finds_what_does_it(prr_motion: Motion) -> None:
    crossing = pickle.loads(dumps(outlines("mujoco", prr_motion)))
    assert not any(level.source for ladder in crossing for level in ladder.levels)
    for ladder in crossing:
        levels = sourced(ladder, prr_motion).levels
        assert [level.value for level in levels] == [level.value for level in ladder.levels]
        assert all(level.source for level in levels)


def test_a_key_names_what_computes(not_here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an update of an environment a resumed run computes again."""
    monkeypatch.setenv(PLACE, str(tmp_path))
    task = Task(abs, (-1,), engine="mujoco")
    without = keys([task, task._replace(engine="")])
    assert without[0] == without[1]
    environment = make_environment(tmp_path, "mujoco")
    before, other = keys([task, task._replace(engine="")])
    assert (before != without[0], other) == (True, without[1])
    assert keys([task])[0] == before
    (package,) = environment.folder.rglob("*.dist-info")
    package.rename(package.with_name("numpy-2.0.dist-info"))
    assert keys([task])[0] not in (before, other)


def test_the_newest_whole_environment_is_used(not_here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLACE, str(tmp_path))
    assert environment_of("dart") is None
    assert not is_there("dart")
    for version in ("1.9", "1.10"):
        make_environment(tmp_path, "dart", version)
    make_environment(tmp_path, "dart", "2.0", whole=False)
    gone = make_environment(tmp_path, "dart", "3.0")
    shutil.rmtree(gone.interpreter.parent)
    assert [environment.version for environment in environments()] == ["1.10", "1.9"]
    assert [path.name for path in broken_environments()] == ["dart-2.0-py311", "dart-3.0-py311"]
    assert engine_versions() == {"dart": "1.10"}
    assert is_there("dart")
    assert "dart/kkt" in sources.names(load("3prr"))
    assert "dart" not in sources.absent_engines()


def test_the_record_names_what_computes(not_here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLACE, str(tmp_path))
    environment = make_environment(tmp_path, "dart", "1.10")
    study = Check(cases=())
    record = study_module._record(study, [], datetime.now(UTC), TaskLog())
    assert record["versions"]["dart"] == "1.10"
    named = {"name": environment.name, "python": environment.python, "numpy": environment.numpy}
    assert record["environments"] == {"dart": named}


def test_what_is_importable_is_used_as_ever(environment: Environment) -> None:
    assert environment_of("mujoco") is None
    assert engine_versions()["mujoco"] == engines.versions()["mujoco"] != environment.version


def test_a_folder_of_an_engines_name_is_no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some_engine").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(engines, "engine", lambda _: SimpleNamespace(requires="some_engine", distribution="numpy"))
    assert not engines.installed("some_engine")
    (tmp_path / "some_engine" / "__init__.py").touch()
    monkeypatch.setattr(engines, "engine", lambda _: SimpleNamespace(requires="some_engine", distribution="no-such"))
    assert not engines.installed("some_engine")
    monkeypatch.setattr(engines, "engine", lambda _: SimpleNamespace(requires="some_engine", distribution="numpy"))
    assert engines.installed("some_engine")


def _processes_with(text: str) -> list[str]:
    """Command lines of the processes that have a text in them."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return [line for line in lines if text in line]


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
