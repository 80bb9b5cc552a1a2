"""Engines that crash, hang, flood the terminal or return nonsense have no effect on others; nor does a kill."""

import os
import shutil
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from loopcheck.validation.common.results import read
from loopcheck.validation.studies.sweep.cases import Variation, compute_cases, drawn, nominal
from loopcheck.validation.studies.sweep.dataset import PARTS
from tests.conftest import MODELS
from tests.house import copy_house, start
from tests.validation.conftest import Once

LIMIT = 5
"""Time limit of a call for hanging routes [s]."""
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
    "flood": "while True: os.write(1, b'x' * 65536), time.sleep(1e-3)",
    "nothing": "os.mknod('dropped'); return EffortHistory(source=self.name, t=motion.t,"
    " effort=np.full((len(motion.t), 3), np.nan),"
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


BAD = [f"broken/{route}" for route in BODIES if route != "fickle"] + ["absent/kkt"]


@pytest.fixture(scope="module")
def going_wrong(house: Path, once: Once) -> Path:
    """Folder in which a command has had its results in `out`, with all sources that go wrong beside others."""

    def check(folder: Path) -> None:
        limits = ("--time-limit", LIMIT, "--jobs", 2)
        chosen = (*FAST, *_sources("mujoco/kkt", "mujoco/as_is", *BAD))
        process = start(house, "check", *chosen, *limits, "--out", "out", at=folder)
        out, err = process.communicate()
        assert process.returncode == 3, err
        assert "xxx" not in out + err

    return once(check)


def test_engines_that_go_wrong_take_nothing_along(going_wrong: Path) -> None:
    results = read(going_wrong / "out")
    summary = results.summary
    assert set(summary[summary["source"] == "mujoco/kkt"]["verdict"]) == {"agree"}
    assert set(summary[summary["source"].isin(BAD)]["verdict"]) <= {"not run", "not comparable"}
    notes = _notes(going_wrong / "out")
    assert "SIGSEGV" in notes["broken/segfault"]
    assert "SIGABRT" in notes["broken/aborts"]
    assert "exit status 3" in notes["broken/gone"]
    assert "exit status 0" in notes["broken/leaves"]
    assert f"timeout after {LIMIT} s" in notes["broken/hang"]
    assert f"timeout after {LIMIT} s" in notes["broken/flood"]
    assert "numbers must be finite, got nan" in notes["broken/nothing"]
    assert notes["absent/kkt"].startswith("engine 'absent' is not installed. Run: pip install 'loopcheck[absent]', or")
    audited = results.audit.query("engine == 'mujoco'").set_index("quantity")["verdict"]
    assert set(audited.drop("effort, as_is")) == {"agree"}


def test_nothing_an_engine_drops_lands_in_the_users_folder(going_wrong: Path) -> None:
    assert {path.name for path in going_wrong.iterdir()} == {"out"}


@pytest.mark.extended("test_engines_that_go_wrong_take_nothing_along")
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


@pytest.mark.extended("tests/validation/test_journal.py::test_failures_are_not_kept_and_results_are")
def test_what_died_is_tried_again(
    house: Path, going_wrong: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shutil.copytree(going_wrong / "out", tmp_path / "out")
    assert "SIGABRT" in _notes(folder)["broken/moody"]
    monkeypatch.setenv("MENDED", "yes")
    chosen = ("check", *FAST, *_sources("mujoco/kkt", "broken/moody"), "--jobs", 1)
    assert status(house, *chosen, "--out", folder) == 3
    assert _notes(folder)["broken/moody"] == "no longer moody"


@pytest.mark.extended("tests/validation/test_recovery.py::test_a_disk_that_is_full_is_one_line_and_leaves_nothing_torn")
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


@pytest.mark.extended("test_nothing_an_engine_drops_lands_in_the_users_folder")
def test_rooms_of_the_users_own_are_not_taken_for_ours(tmp_path: Path) -> None:
    for room in ("robots", "analytic", "engines", "validation"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text("raise SystemExit('not ours')", encoding="utf-8")
    shutil.copy(MODELS / "four_bar.xml", tmp_path)
    chosen = ("--configuration", "given", "--dt", "0.1", "--source", "mujoco/kkt")
    command = [sys.executable, "-m", "loopcheck", "check", "four_bar.xml", *chosen]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def _notes(folder: Path) -> dict[str, str]:
    """What is noted first of each source."""
    return {str(row["source"]): str(row["note"]) for row in read(folder).summary.iloc[::-1].to_dict("records")}


def _sources(*names: str) -> list[str]:
    return [part for name in names for part in ("--source", name)]
