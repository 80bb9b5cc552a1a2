"""Studies that are killed at random moments go on from there and end as if nothing had been; nothing is lost."""

import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeAlias

import pandas as pd
import pytest
from diskcache import Cache

from tests.conftest import MODELS
from tests.validation.conftest import Command, in_this_process
from tests.validation.small_studies import COMPUTED, small
from validation.evaluate import Outcome
from validation.journal import JOURNAL, LOCK, Journal, held
from validation.ladder.study import KEY as RUNG
from validation.sweep.dataset import PARTS, part
from validation.workers import Call, Lost, Workers, crew

ROOT = Path(__file__).parents[2]
SEED = 20261122
TIMES = {"wall_time"}
Kept: TypeAlias = Callable[[Path], Mapping[Any, Any]]
"""What a folder holds, in figures that are others where it is computed anew."""
STUDIES: dict[str, tuple[str, ...]] = {
    "check": ("--resume", "--dt", "0.05", "--source", "mujoco/kkt", "--source", "mujoco/forward"),
    "sweep": ("3prr", "--cases", "60", "--motion", "own", "--source", "mujoco/kkt"),
    "ladder": ("3prr", "--configuration", "vertical", "--mode", "plus"),
    "ctc": ("--templates", "2"),
}


@pytest.fixture(autouse=True)
def small_studies() -> Iterator[None]:
    with small():
        yield


@pytest.mark.parametrize("name", STUDIES)
def test_a_killed_study_goes_on_and_ends_the_same(
    name: str, loopcheck: Command, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Killed without notice: what was computed is not computed anew, and the tables are the same, bit for bit."""
    chosen = [name, *([MODELS / "four_bar.xml"] if name == "check" else []), *STUDIES[name], "--jobs", "2", "--out"]
    begin = time.monotonic()
    status, _, err = loopcheck(*chosen, tmp_path / "whole")
    span = time.monotonic() - begin
    assert (status, err) == (0, "")
    moments = random.Random(SEED)
    kept_by, found_by = KEPT[name]
    for kill in range(pytestconfig.getoption("--kills")):
        folder = tmp_path / f"killed{kill}"
        _kill(chosen, folder, moments.uniform(0, span))
        kept = kept_by(folder)
        assert loopcheck(*chosen, folder)[0] == 0
        assert _names(folder) == _names(tmp_path / "whole")
        for path in _names(folder):
            if path.suffix in (".csv", ".parquet"):
                pd.testing.assert_frame_equal(_read(folder / path), _read(tmp_path / "whole" / path), check_exact=True)
        found = found_by(folder)
        assert {key: found[key] for key in kept} == kept


def _kill(command: list[Any], folder: Path, after: float) -> None:
    """Start a command and kill it some seconds after it has taken its folder."""
    program = [sys.executable, "-m", "tests.validation.small_studies", *map(str, command), str(folder)]
    process = subprocess.Popen(program, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    while not (folder / LOCK).exists() and process.poll() is None:
        time.sleep(0.02)
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def _names(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


def _read(path: Path) -> pd.DataFrame:
    """A table, the numbers of a CSV as they are written, without those that tell times."""
    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, dtype=str)
    return frame.drop(columns=TIMES & set(frame))


def _outcomes(folder: Path) -> Mapping[Any, Any]:
    """Times of the sources that the journal of a killed run holds."""
    if not (folder / JOURNAL).exists():
        return {}
    with Cache(str(folder / JOURNAL)) as cache:
        found = [kept for kept in Journal(cache).known(list(cache)).values() if isinstance(kept, Outcome)]
    return {(outcome.case.configuration, outcome.source): outcome.wall_time for outcome in found}


def _summary(folder: Path) -> Mapping[Any, Any]:
    rows = pd.read_csv(folder / "summary.csv")
    return rows.set_index(["configuration", "source"])["wall_time"].to_dict()


def _parts(folder: Path) -> Mapping[Any, Any]:
    return {path.name: path.read_bytes() for path in (folder / PARTS).glob("*.parquet")}


def _rungs(folder: Path) -> Mapping[Any, Any]:
    path = folder / "ladder_rungs.csv"
    if not path.exists():
        return {}
    return pd.read_csv(path, dtype=str).set_index([*RUNG, "value"])["wall_time"].to_dict()


def _runs(folder: Path) -> Mapping[Any, Any]:
    path = folder / "ctc_runs.csv"
    return {"runs that were there": len(pd.read_csv(path)) if path.exists() else 0}


def _old_runs(folder: Path) -> Mapping[Any, Any]:
    computed = int((folder / COMPUTED).read_text(encoding="utf-8"))
    return {"runs that were there": len(pd.read_csv(folder / "ctc_runs.csv")) - computed}


KEPT: dict[str, tuple[Kept, Kept]] = {
    "check": (_outcomes, _summary),
    "sweep": (_parts, _parts),
    "ladder": (_rungs, _rungs),
    "ctc": (_runs, _old_runs),
}
"""Before a study goes on, and after."""


@pytest.mark.parametrize(
    "command",
    [("sweep", "3prr"), ("ladder", "3prr"), ("ctc",), ("versions", "3prr"), ("bench", "3prr"), ("errata", "3prr")],
    ids=lambda command: command[0],
)
def test_every_command_holds_its_folder(command: tuple[str, ...], loopcheck: Command, tmp_path: Path) -> None:
    with held(tmp_path):
        status, _, err = loopcheck(*command, "--out", tmp_path)
    assert (status, err) == (
        2,
        f"loopcheck: {tmp_path}: another loopcheck is writing there; want another folder, or wait\n",
    )
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_full_is_one_line_and_leaves_nothing_torn(loopcheck: Command, tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk: what is written beyond it fails as on a full one."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with in_this_process():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2048, before[1]))
        try:
            status, _, err = loopcheck("sweep", "3prr", "--cases", "2", "--jobs", "1", "--out", tmp_path)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (status, err.count("\n")) == (2, 1), err
    assert f"{part(tmp_path, 0)}: cannot be written" in err
    assert _names(tmp_path) == {Path("sweep.json")}


def test_calls_that_end_their_process_at_once_are_told_by_a_busy_one() -> None:
    """Also with exit status 0, and though this process has hardly time to read which call they had taken."""
    done = Event()
    busy = [Thread(target=_work, args=(done,), daemon=True) for _ in range(2)]
    for thread in busy:
        thread.start()
    try:
        with crew(Workers(1)) as staff:
            found = staff.all_of([Call(os._exit, (k,)) for k in range(2)], "deaths")
    finally:
        done.set()
    assert found == [Lost(f"its process died: exit status {k}") for k in range(2)]


def _work(done: Event) -> None:
    while not done.is_set():
        sum(range(1000))
