"""Engines that crash, hang, flood the terminal or return nonsense have no effect on others; nor does a kill."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from diskcache import Cache

from loopcheck.validation.comparison.evaluate import Outcome
from loopcheck.validation.comparison.results import TABLES, read
from loopcheck.validation.execution.files import LOCK, locked
from loopcheck.validation.execution.journal import JOURNAL
from loopcheck.validation.studies.sweep.cases import Variation, compute_cases, drawn, nominal
from loopcheck.validation.studies.sweep.dataset import PARTS
from tests.conftest import MODELS
from tests.house import copy_house, start
from tests.validation.conftest import Command

TIMES = ["wall_time"]
LIMIT = 8
"""Time limit of a call for hanging routes [s]."""
SEED = 20261121
FAST = ("3prr", "--mode", "plus", "--variant", "default", "--configuration", "vertical", "--dt", "0.05")
ROUTE = '''
import os, signal, time
import numpy as np
from loopcheck.robots.efforts import EffortHistory
from loopcheck.robots.errors import EngineError

class Bad:
    """A route that goes wrong."""
    name = "{name}"
    def compute_efforts(self, case, motion):
        {body}
'''
ENGINE = """
from loopcheck.engines.contract import Engine

ENGINE = Engine(
    name="{name}",
    requires="{requires}",
    extra="{name}",
    lineage="{name}",
    distribution="numpy",
    packages=frozenset(),
    shares=(),
)
"""
AUDIT = "from loopcheck.engines.mujoco.audit import audit, matrices\n"
BODIES = {
    "segfault": "os.kill(os.getpid(), signal.SIGSEGV)",
    "aborts": "os.abort()",
    "gone": "os._exit(3)",
    "leaves": "os._exit(0)",
    "hang": "time.sleep(1e6)",
    "flood": "while True: os.write(1, b'x' * 65536)",
    "nothing": "return EffortHistory(source=self.name, t=motion.t, effort=np.full((len(motion.t), 3), np.nan),"
    " actuators=tuple(actuator.name for actuator in case.mechanism.actuators))",
    "fickle": "off = 100 * (case.mechanism.bodies[0].mass / case.robot.mechanism().bodies[0].mass - 1)\n"
    "        if off > 0.8: os.abort()\n"
    "        if off < -0.8: time.sleep(1e6)\n"
    "        from loopcheck.engines.mujoco.routes.kkt import KKT\n"
    "        return KKT.compute_efforts(case, motion)",
    "moody": "os.environ.get('MENDED') or os.abort(); raise EngineError('no longer moody')",
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the house with two engines more: one whose routes all go wrong, and one that is not installed."""
    house = copy_house(tmp_path_factory.mktemp("house"))
    for engine, requires in {"broken": "numpy", "absent": "no_such_module"}.items():
        folder = house / "loopcheck" / "engines" / engine
        (folder / "routes").mkdir(parents=True)
        (folder / "routes" / "__init__.py").touch()
        about = ENGINE.format(name=engine, requires=requires)
        (folder / "__init__.py").write_text(about, encoding="utf-8")
        (folder / "audit.py").write_text(AUDIT, encoding="utf-8")
        for route, body in BODIES.items() if engine == "broken" else [("kkt", "")]:
            text = ROUTE.format(name=f"{engine}/{route}", body=body or "pass")
            (folder / "routes" / f"{route}.py").write_text(text, encoding="utf-8")
    return house


def status(house: Path, *arguments: Any) -> int:
    """Exit status of the command."""
    process = start(house, *arguments)
    process.communicate()
    return process.returncode


@pytest.mark.slow
def test_engines_that_go_wrong_take_nothing_along(house: Path, tmp_path: Path) -> None:
    bad = [f"broken/{route}" for route in BODIES if route not in ("moody", "fickle")] + ["absent/kkt"]
    chosen = [part for source in ["mujoco/kkt", *bad] for part in ("--source", source)]
    process = start(house, "check", *FAST, *chosen, "--time-limit", LIMIT, "--jobs", 2, "--out", tmp_path)
    out, err = process.communicate()
    assert process.returncode == 3, err
    assert "xxx" not in out + err
    summary = read(tmp_path).summary
    assert set(summary[summary["source"] == "mujoco/kkt"]["verdict"]) == {"agree"}
    assert set(summary[summary["source"].isin(bad)]["verdict"]) <= {"not run", "not comparable"}
    notes = _notes(tmp_path)
    assert "SIGSEGV" in notes["broken/segfault"]
    assert "SIGABRT" in notes["broken/aborts"]
    assert "exit status 3" in notes["broken/gone"]
    assert "exit status 0" in notes["broken/leaves"]
    assert f"timeout after {LIMIT} s" in notes["broken/hang"]
    assert f"timeout after {LIMIT} s" in notes["broken/flood"]
    assert "numbers must be finite, got nan" in notes["broken/nothing"]
    assert notes["absent/kkt"].startswith("engine 'absent' is not installed. Run: pip install 'loopcheck[absent]', or")
    assert set(read(tmp_path).audit.query("engine == 'mujoco'")["verdict"]) == {"agree"}


@pytest.mark.slow
def test_a_killed_run_is_finished_by_the_same_command(house: Path, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """Killed at random moments: what was computed is not computed anew, and the tables are the same, bit for bit."""
    chosen = ("check", *FAST, *_sources("analytic/lagrange", "mujoco/kkt", "mujoco/forward"))
    begin = time.monotonic()
    assert status(house, *chosen, "--out", tmp_path / "whole") == 0
    span = time.monotonic() - begin
    moments = random.Random(SEED)
    for kill in range(pytestconfig.getoption("--kills")):
        folder = tmp_path / f"killed{kill}"
        process = start(house, *chosen, "--out", folder)
        time.sleep(moments.uniform(0.3, 1.0) * span)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kept = _kept(folder)
        assert status(house, *chosen, "--out", folder) == 0
        assert {path.name for path in folder.iterdir()} == {path.name for path in (tmp_path / "whole").iterdir()}
        _want_same(folder, tmp_path / "whole")
        rows = read(folder).summary.to_dict("records")
        times = {(row["mode"], row["configuration"], row["source"]): row["wall_time"] for row in rows}
        for outcome in kept:
            assert times[outcome.case.mode, outcome.case.configuration, outcome.source] == outcome.wall_time


@pytest.mark.slow
def test_cases_of_a_sweep_that_crash_or_hang_are_lost_alone(house: Path, tmp_path: Path) -> None:
    """The route aborts where the first mass is more than 0.8 % too large, and hangs where it is as much too small."""
    for seed in count():
        study = Variation(target="3prr", seed=seed, motions=("own",), sources=("mujoco/kkt",))
        names = [parameter.name for parameter in nominal(study).varied]
        off = [100 * drawn(study, case)[0][names.index("mass of slider1")] for case in range(10)]
        crashing, hanging = ([k for k, x in enumerate(off) if sign * x > 0.8] for sign in (1, -1))
        if len(crashing) == len(hanging) == 1 and crashing < hanging:
            break
    chosen = ("--cases", 10, "--seed", seed, "--motion", "own", "--source", "broken/fickle", "--time-limit", 5)
    assert status(house, "study", "sweep", "3prr", *chosen, "--jobs", 2, "--out", tmp_path) == 3
    rows = pd.read_parquet(tmp_path / PARTS).query("source == 'broken/fickle'").set_index("case")
    wanted = compute_cases(study, range(10)).query("source == 'mujoco/kkt'").set_index("case")
    assert "SIGABRT" in rows["note"][crashing[0]]
    assert "timeout after 5 s" in rows["note"][hanging[0]]
    lost = rows.index.isin(crashing + hanging)
    assert (rows.loc[lost, "result"] == "not run").all()
    assert (rows.loc[~lost, "relative_error"] == wanted.loc[~lost, "relative_error"]).all()


@pytest.mark.slow
def test_what_died_is_tried_again(house: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = ("check", *FAST, *_sources("mujoco/kkt", "broken/moody"), "--out", tmp_path)
    assert status(house, *chosen) == 3
    assert "SIGABRT" in _notes(tmp_path)["broken/moody"]
    monkeypatch.setenv("MENDED", "yes")
    assert status(house, *chosen) == 3
    assert _notes(tmp_path)["broken/moody"] == "no longer moody"


def test_a_folder_is_for_one_command_at_a_time(loopcheck: Command, tmp_path: Path) -> None:
    with locked(tmp_path):
        before = {path.name for path in tmp_path.iterdir()}
        status, _, err = loopcheck("check", *FAST, "--source", "mujoco/kkt", "--out", tmp_path)
        assert (status, err) == (
            2,
            f"loopcheck: {tmp_path}: another loopcheck process writes there. Wait, or name another folder\n",
        )
        assert {path.name for path in tmp_path.iterdir()} == before
    assert not (tmp_path / LOCK).exists()


@pytest.mark.slow
def test_a_disk_that_is_full_is_one_line_and_harms_nothing(house: Path, tmp_path: Path) -> None:
    """A limit on the size of files stands for the disk: what is written beyond it fails as on a full one."""
    chosen = ("check", *FAST, *_sources("analytic/lagrange", "mujoco/kkt"), "--out", tmp_path)
    assert status(house, *chosen) == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    command = f"ulimit -f 16; trap '' XFSZ; exec {sys.executable} -m loopcheck {' '.join(map(str, chosen))}"
    environment = {**os.environ, "PYTHONPATH": str(house), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(["bash", "-c", command], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert str(tmp_path) in done.stderr
    assert {name: (tmp_path / name).read_bytes() for name in before} == before


@pytest.mark.slow
def test_nothing_an_engine_drops_lands_in_the_users_folder(house: Path, tmp_path: Path) -> None:
    chosen = ("check", *FAST, *_sources("mujoco/as_is", "broken/aborts"))
    start(house, *chosen, "--out", "out", at=tmp_path).communicate()
    assert {path.name for path in tmp_path.iterdir()} == {"out"}


@pytest.mark.slow
def test_rooms_of_the_users_own_are_not_taken_for_ours(tmp_path: Path) -> None:
    for room in ("robots", "analytic", "engines", "validation"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text("raise SystemExit('not ours')", encoding="utf-8")
    shutil.copy(MODELS / "four_bar.xml", tmp_path)
    command = [sys.executable, "-m", "loopcheck", "check", "four_bar.xml", "--source", "mujoco/kkt"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def _notes(folder: Path) -> dict[str, str]:
    """What is noted first of each source."""
    return {str(row["source"]): str(row["note"]) for row in read(folder).summary.iloc[::-1].to_dict("records")}


def _sources(*names: str) -> list[str]:
    return [part for name in names for part in ("--source", name)]


def _kept(folder: Path) -> list[Outcome]:
    """What the journal of a killed run holds."""
    if not (folder / JOURNAL).exists():
        return []
    with Cache(str(folder / JOURNAL)) as cache:
        return [cache[key] for key in cache if isinstance(cache[key], Outcome)]


def _want_same(one: Path, other: Path) -> None:
    for name in TABLES:
        found, wanted = (getattr(read(folder), name) for folder in (one, other))
        shown = [column for column in wanted if column not in TIMES]
        pd.testing.assert_frame_equal(found[shown], wanted[shown], check_exact=True)
    assert np.isfinite(read(one).efforts["effort"]).all()
