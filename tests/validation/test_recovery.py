"""All commands behave alike: they resume after a kill; tasks of a lost worker read not run, and are tried again."""

import json
import os
import random
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pandas as pd
import pytest

from loopcheck.robots.catalogue import CATALOGUE
from loopcheck.robots.processes import main_left_out
from loopcheck.validation.cli import Main, Studies
from loopcheck.validation.execution.files import LOCK, locked
from loopcheck.validation.execution.forkserver import worker_context
from loopcheck.validation.execution.journal import JOURNAL, RESULT, Task
from loopcheck.validation.execution.workers import LocalExecutor, WorkerFailure, Workers, worker_pool
from tests.cpu_time import extended_but
from tests.validation.atlas_repository import make_repository, write_manifest
from tests.validation.conftest import Command, in_this_process
from tests.validation.small_studies import run, small

ROOT = Path(__file__).parents[2]
SEED = 20261122
TIMES = {"wall_time", "wall_time_ratio"}
FOUR_BAR = ROOT / "robots/four_bar"
ATLAS = Path(tempfile.mkdtemp(prefix="loopcheck-atlas-"))
"""A repository of models and its manifest, made before the first test."""
FAST = ("3prr", "--mode", "plus", "--variant", "default", "--configuration", "vertical", "--dt", "0.05")
FIXED_STEP = ("--keep-setting", "timestep")
COMMANDS: dict[str, tuple[Any, ...]] = {
    "check": (*FAST, "--source", "mujoco/kkt", "--source", "analytic/lagrange"),
    "tune --explain": (FOUR_BAR / "four_bar.xml",),
    "judge": (FOUR_BAR / "four_bar.xml", FOUR_BAR / "logs/clean.csv", "--configuration", "vertical"),
    "tune": (FOUR_BAR / "four_bar.xml", "--accuracy", "0.1", "--motion", ATLAS / "short.csv", *FIXED_STEP),
    "study atlas": ("--models", ATLAS / "models", "--remote", f"file://{ATLAS}", "--engine", "mujoco", "--no-tuning"),
    "serial": (CATALOGUE / "legs/knee.xml", CATALOGUE / "legs/knee_serial.xml", "--samples", "8"),
    "study errata": ("3prr",),
    "study free-motion": ("slider_crank",),
    "study refinement": ("3prr", "--configuration", "vertical", "--mode", "plus"),
    "study control": ("--templates", "2"),
    "study sweep": ("3prr", "--cases", "30", "--motion", "own", "--source", "mujoco/kkt"),
    "study readings": ("--source", "mujoco/as_is", "--source", "dart/as_is"),
    "study gradients": ("four_bar", "--engine", "mujoco"),
}
"""A study that takes seconds, of each command."""
LIGHT = {*COMMANDS} - {"study sweep"}
"""Commands that begin at once."""
KILLED = {"check", "judge", "tune", "study sweep", "study readings", "study versions"}
"""Commands that are killed; the others find the journal that a killed command leaves, and need no other files of it."""
SECONDS = {"check": 5.0, "judge": 2.5, "tune": 8.5}
"""CPU time of the commands that are evidence [s]."""


@pytest.fixture(scope="module", autouse=True)
def models_of_the_atlas() -> Iterator[None]:
    t = np.arange(41) / 100
    values = {"q": 0.5 + 0.2 * (1 - np.cos(8 * t)), "qd": 1.6 * np.sin(8 * t), "qdd": 12.8 * np.cos(8 * t)}
    short = pd.DataFrame({"t": t, **{f"crank.{name}": column for name, column in values.items()}})
    commit = make_repository(ATLAS)
    short.to_csv(ATLAS / "short.csv", index=False)
    write_manifest(ATLAS / "models", commit, {"four-bar": ["four bar/four_bar.xml"], "twin": ["four bar/renamed.xml"]})
    yield
    shutil.rmtree(ATLAS)


@pytest.fixture(autouse=True)
def small_studies() -> Iterator[pytest.MonkeyPatch]:
    with small() as patch:
        yield patch


def test_every_study_is_tried_here() -> None:
    studies = {
        name
        for name in Main.modules
        if name not in ("engines", "list", "new", "report", "gate", "convert", "same", "versions")
    }
    assert studies | {f"study {name}" for name in Studies.modules} | {"tune --explain"} == set(COMMANDS)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            name,
            marks=pytest.mark.evidence("killed and resumed", seconds=SECONDS[name])
            if name in SECONDS
            else pytest.mark.extended("test_all_commands_behave_alike", "test_every_study_is_tried_here"),
        )
        for name in COMMANDS
    ],
)
def test_all_commands_behave_alike(
    name: str,
    loopcheck: Command,
    tmp_path: Path,
    small_studies: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
) -> None:
    """After lost workers all is written, and the status is 3; the same command then computes the same as a whole run.

    After a kill the same command resumes from its journal: the tables are the same, and finished results are not
    computed again.
    """
    command = [*name.split(), *COMMANDS[name], "--out"]
    _lose_all(name, small_studies, WorkerFailure("its process died: SIGSEGV"))
    status, out, err = loopcheck(*command, tmp_path / "whole")
    assert (status, err) == (3, ""), out
    assert "its process died: SIGSEGV" in out
    small_studies.undo()
    with small(name):
        begin = time.monotonic()
        status, _, err = loopcheck(*command, tmp_path / "whole")
        span = time.monotonic() - begin
        assert (status, err) == (0, "")
        whole = _record(tmp_path / "whole")
        assert whole["not_run"] == whole["internal_errors"] == []
        moments = random.Random(f"{SEED} {name}")
        for kill in range(pytestconfig.getoption("--kills")):
            folder = tmp_path / f"killed{kill}"
            if name in KILLED:
                _kill(command, folder, moments.uniform(0.25, 1.25) * span)
            else:
                _leave_half(tmp_path / "whole", folder, moments)
            kept = _kept(folder)
            assert loopcheck(*command, folder)[0] == 0
            tasks = _record(folder)["tasks"]
            assert tasks["known"] == kept
            assert tasks["known"] + tasks["computed"] == sum(whole["tasks"].values())
            _want_same_tables(folder, tmp_path / "whole")
        assert loopcheck("report", tmp_path / "whole")[0] == 0


@pytest.mark.parametrize(
    "name",
    extended_but(
        LIGHT,
        sorted(COMMANDS),
        "test_an_error_of_our_own_is_70_after_all_is_written",
    ),
)
def test_an_error_of_our_own_is_70_after_all_is_written(
    name: str, loopcheck: Command, tmp_path: Path, small_studies: pytest.MonkeyPatch
) -> None:
    """Of versions too, if it is one of the run's; there it is the reason for a missing version."""
    line = "internal error: ValueError: a slip; traceback: in a file"
    _lose_all(name, small_studies, WorkerFailure(line))
    status, out, err = loopcheck(*name.split(), *COMMANDS[name], "--out", tmp_path)
    assert (status, err) == (70, f"loopcheck: {line}\n"), out
    assert _record(tmp_path)["internal_errors"] == [line]


def _lose_all(name: str, patch: pytest.MonkeyPatch, failure: WorkerFailure) -> None:
    """Let no task of a command come to its end."""

    def outcomes(_: LocalExecutor, tasks: Sequence[Task], __: float) -> Iterator[tuple[int, WorkerFailure]]:
        return ((k, failure) for k in range(len(tasks)))

    patch.setattr(LocalExecutor, "outcomes", outcomes)


def _kill(command: list[Any], folder: Path, after: float) -> None:
    """Start a command and kill it some seconds after it has taken its folder."""
    with main_left_out():
        process = worker_context().Process(target=run, args=([*map(str, command), str(folder)],))
        process.start()
    while not (folder / LOCK).exists() and process.is_alive():
        time.sleep(0.02)
    time.sleep(after)
    process.kill()
    process.join()


def _leave_half(whole: Path, folder: Path, chance: random.Random) -> None:
    """Write what a killed command leaves: the journal with half of the results."""
    shutil.copytree(whole / JOURNAL, folder / JOURNAL)
    results = sorted((folder / JOURNAL).glob(f"[0-9a-f]*{RESULT}"))
    for path in chance.sample(results, (len(results) + 1) // 2):
        path.unlink()


def _record(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return record


def _kept(folder: Path) -> int:
    """Number of results in the journal of a killed command."""
    return len(list((folder / JOURNAL).glob(f"[0-9a-f]*{RESULT}")))


def _files(folder: Path) -> set[Path]:
    """The results in a folder, with those of versions."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path for path in paths if JOURNAL not in path.parts}


def _want_same_tables(folder: Path, whole: Path) -> None:
    assert _files(folder) == _files(whole)
    for path in _files(folder):
        if path.suffix in (".csv", ".parquet"):
            pd.testing.assert_frame_equal(_read(folder / path), _read(whole / path), check_exact=True)


def _read(path: Path) -> pd.DataFrame:
    """A table without its times, with the numbers of a CSV as written."""
    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, dtype=str)
    return frame.drop(columns=TIMES & set(frame))


@pytest.mark.parametrize("name", extended_but(LIGHT, COMMANDS, "test_every_command_locks_its_folder"))
def test_every_command_locks_its_folder(name: str, loopcheck: Command, tmp_path: Path) -> None:
    with locked(tmp_path):
        status, _, err = loopcheck(*name.split(), *COMMANDS[name], "--out", tmp_path)
    assert (status, err) == (
        2,
        f"loopcheck: {tmp_path}: another loopcheck process writes there. Wait, or name another folder\n",
    )
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_full_is_one_line_and_leaves_nothing_torn(loopcheck: Command, tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk: writes beyond it fail as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with in_this_process():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, before[1]))
        try:
            status, _, err = loopcheck("study", "sweep", "3prr", "--cases", "2", "--jobs", "1", "--out", tmp_path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (status, err.count("\n")) == (2, 1), err
    assert "cannot be written" in err
    assert not {path.name for path in _files(tmp_path)} & {"run.json", "sweep.html", "sweep_quantiles.csv"}


def test_calls_that_end_their_process_at_once_are_told_by_a_busy_one() -> None:
    """Also with exit status 0, and with hardly any time to read the number of the call."""
    done = Event()
    busy = [Thread(target=_work, args=(done,), daemon=True) for _ in range(2)]
    for thread in busy:
        thread.start()
    try:
        with worker_pool(Workers(1)) as pool:
            found = pool.results([Task(os._exit, (k,)) for k in range(2)], "deaths")
    finally:
        done.set()
    assert found == [WorkerFailure(f"its process died: exit status {k}") for k in range(2)]


def _work(done: Event) -> None:
    while not done.is_set():
        sum(range(1000))
