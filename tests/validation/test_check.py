"""`loopcheck check`: any MJCF, moved automatically or by a file, compared and judged."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from loopcheck.analytic.motion.prescribe import depends_on_gravity, prescribe
from loopcheck.robots.catalogue import CATALOGUE
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, make_case
from loopcheck.validation.common.results import read
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.execution.folders import IMPORT_FOLDER
from tests.conftest import MODELS, ZOO
from tests.cpu_time import extended_but
from tests.engines.mechanisms import want_right
from tests.validation.conftest import Command, in_this_process

EXACT = ("--source", "analytic/lagrange", "--source", "mujoco/kkt", "--jobs", "1")


@pytest.mark.evidence("a file of the user's own from its motion to its page", seconds=2)
def test_a_file_is_checked_with_a_motion_of_its_own(loopcheck: Command, tmp_path: Path) -> None:
    with in_this_process():
        status, out, err = loopcheck("check", MODELS / "four_bar.xml", *EXACT, "--dt", "0.05", "--out", tmp_path)
    assert status == 0, out + err
    assert set(read(tmp_path).summary["robot"]) == {"four_bar"}


@pytest.mark.parametrize(
    "name",
    extended_but(
        {*ZOO} - {"six_legs", "spinning_rod", "floating_rotors"},
        ZOO,
        "test_a_motion_of_its_own_moves_every_motor_and_comes_back",
    ),
)
def test_a_motion_of_its_own_moves_every_motor_and_comes_back(name: str) -> None:
    case = cases_of([MODELS / f"{name}.xml"])[0]
    motion = prescribe(case, dt=0.05)
    drive = motion.law(motion.t)
    assert (np.ptp(drive.q, axis=0) > 1e-3).all()
    np.testing.assert_allclose(drive.q[-1], drive.q[0], atol=1e-9)
    np.testing.assert_allclose(motion.qd[0], 0, atol=1e-12)
    if not depends_on_gravity(case):  # what nothing drives need not come back
        np.testing.assert_allclose(motion.q[-1], motion.q[0], atol=1e-9)
    want_right("mujoco/kkt", case, motion)


SCRIPT = """
from pathlib import Path
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.check.study import run
from loopcheck.validation.execution.workers import ALONE
results = run(cases_of([Path(MODEL)]), source_names=("analytic/lagrange",), dt=0.2, workers=ALONE)
print(sorted(set(results.summary["verdict"])))
"""


@pytest.mark.evidence("a program of the user in a process of its own", seconds=3)
def test_a_script_needs_no_guard_to_check_a_file(tmp_path: Path) -> None:
    """Processes that run it again, as Python's own do, would each begin to check the file, and die over it."""
    (tmp_path / "script.py").write_text(SCRIPT.replace("MODEL", repr(str(MODELS / "four_bar.xml"))), encoding="utf-8")
    surroundings = {**os.environ, "PYTHONPATH": str(IMPORT_FOLDER)}
    command = [sys.executable, str(tmp_path / "script.py")]
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "['agree', 'reference']\n"), done.stderr


def test_the_motion_stays_inside_the_limits(tmp_path: Path) -> None:
    text = (MODELS / "four_bar.xml").read_text(encoding="utf-8")
    limited = text.replace('<joint name="crank"', '<joint name="crank" range="-5 3" limited="true"')
    (tmp_path / "limited.xml").write_text(limited, encoding="utf-8")
    crank = prescribe(cases_of([tmp_path / "limited.xml"])[0]).q[:, 0]
    assert np.radians(-5) <= crank.min() < crank.max() <= np.radians(3)
    assert np.ptp(crank) > np.radians(2)


@pytest.mark.extended("tests/analytic/test_redundancy.py::test_the_reference_has_no_internal_part")
@pytest.mark.usefixtures("tables_only")
def test_two_motors_on_one_dof_share_the_effort(loopcheck: Command, tmp_path: Path) -> None:
    text = (MODELS / "four_bar.xml").read_text(encoding="utf-8")
    both = text.replace("</actuator>", '<motor name="second" joint="rocker" gear="2"/></actuator>')
    (tmp_path / "both.xml").write_text(both, encoding="utf-8")
    assert loopcheck("check", tmp_path / "both.xml", *EXACT, "--out", tmp_path / "out")[0] == 0


@pytest.mark.extended("test_a_file_is_checked_with_a_motion_of_its_own")
@pytest.mark.usefixtures("tables_only")
def test_named_joints_are_actuated_instead(loopcheck: Command, tmp_path: Path) -> None:
    model = MODELS / "four_bar.xml"
    assert loopcheck("check", model, "--actuated", "rocker", *EXACT, "--out", tmp_path)[0] == 0
    summary = read(tmp_path).summary
    assert set(summary["actuator"]) == {"rocker"}


def test_a_file_without_gravity_has_one_configuration(tmp_path: Path) -> None:
    text = (MODELS / "four_bar.xml").read_text(encoding="utf-8").replace('gravity="0.4 -1 -9.7"', 'gravity="0 0 0"')
    (tmp_path / "floating.xml").write_text(text, encoding="utf-8")
    assert [case.configuration for case in cases_of([tmp_path / "floating.xml"])] == ["given"]


def test_a_tilted_gravity_is_given_and_turned() -> None:
    given, turned = cases_of([MODELS / "four_bar.xml"])
    assert (given.configuration, turned.configuration) == ("given", "turned")
    np.testing.assert_array_equal(turned.mechanism.gravity, [0.4, -9.7, 1.0])


@pytest.mark.extended("tests/analytic/test_recorded.py::test_between_the_samples_a_cubic_is_met")
@pytest.mark.usefixtures("tables_only")
def test_a_recorded_motion_gives_the_efforts_of_the_law_it_samples(
    loopcheck: Command, tmp_path: Path, prr: Case, prr_motion: Motion
) -> None:
    """The 3-PRR's own motion, from a file of its actuated joints: the same efforts as by its law."""
    robot = CATALOGUE / "3prr" / "3prr.xml"
    drive, t = prr_motion.law(prr_motion.t), prr_motion.t
    columns = {"t": t}
    for k, name in enumerate(("q1", "q2", "q3")):
        columns |= {f"{name}.{rate}": getattr(drive, rate)[:, k] for rate in ("q", "qd", "qdd")}
    pd.DataFrame(columns).to_csv(tmp_path / "motion.csv", index=False, float_format="%.17g")
    chosen = ("--mode", "plus", "--motion", tmp_path / "motion.csv", *EXACT, "--out", tmp_path / "out")
    assert loopcheck("check", robot, *chosen)[0] == 0
    _assert_same_efforts(read(tmp_path / "out").efforts, prr, prr_motion)


@pytest.mark.extended("tests/analytic/test_recorded.py::test_tables_of_other_programs_are_read")
@pytest.mark.parametrize("digits", [17, 9])
@pytest.mark.usefixtures("tables_only")
def test_a_logged_state_is_taken_as_given(loopcheck: Command, tmp_path: Path, digits: int) -> None:
    """Rounded logs too: passive rates that fit the closures to 1e-9 alone made all sources disagree by 4e-10."""
    case = make_case(load("3prr"), variant="default", mode="minus", configuration="vertical")
    motion = prescribe(case)
    _log(motion).to_csv(tmp_path / "log.csv", index=False, float_format=f"%.{digits}g")
    chosen = ("--mode", "minus", "--motion", tmp_path / "log.csv", *EXACT, "--out", tmp_path / "out")
    assert loopcheck("check", CATALOGUE / "3prr" / "3prr.xml", *chosen)[0] == 0
    logged = _log(motion).map(lambda x: float(f"{x:.{digits}g}")).filter(like="qpos").to_numpy()
    assert (logged == read(tmp_path / "out").motion["q"].to_numpy().reshape(7, -1).T).all()


@pytest.mark.extended("tests/analytic/test_recorded.py::test_between_the_samples_a_cubic_is_met")
@pytest.mark.usefixtures("tables_only")
def test_a_log_that_gravity_would_not_make_is_not_simulated(loopcheck: Command, tmp_path: Path) -> None:
    """Undriven dofs follow the log in its own configuration; in the other they would move differently."""
    model = MODELS / "spinning_rod.xml"
    motion = prescribe(cases_of([model])[0])
    _log(motion).to_csv(tmp_path / "log.csv", index=False, float_format="%.17g")
    chosen = ("--motion", tmp_path / "log.csv", *EXACT, "--source", "mujoco/forward", "--out", tmp_path / "out")
    assert loopcheck("check", model, *chosen)[0] == 3
    results = read(tmp_path / "out")
    verdicts = results.summary.set_index(["configuration", "source"])["verdict"]
    assert (verdicts.loc["given", "mujoco/forward"], verdicts.loc["turned", "mujoco/forward"]) == (
        "agree",
        "not comparable",
    )
    assert (verdicts.xs("mujoco/kkt", level="source") == "agree").all()
    assert set(results.free_motion["configuration"]) == {"given", "turned"}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda log: log.assign(**{"qpos.1": log["qpos.1"] + 1e-3}), "the positions of the motion file must close"),
        (lambda log: log.assign(**{"qvel.2": log["qvel.2"] * 1.01}), "the velocities of the motion file must close"),
        (lambda log: log.assign(**{"qacc.2": 0.0}), "the accelerations of the motion file must close"),
        (lambda log: log.drop(columns="qvel.6"), "must have a column 'qvel.6'"),
        (lambda log: log.assign(t=0.0), "column 't': times must increase, got a time that repeats: 0 s in row 1"),
        (lambda log: log.assign(**{"qpos.0": "far"}), "column 'qpos.0': numbers must be finite, got 'far' in row 1"),
        (lambda log: log.assign(**{"qpos.0": np.inf}), "column 'qpos.0': numbers must be finite, got 'inf' in row 1"),
        (lambda log: log[["t"]], "must have a column 'q1.q', got t"),
    ],
)
def test_a_bad_motion_file_is_one_line(
    loopcheck: Command, tmp_path: Path, prr_motion: Motion, spoil: Callable[..., pd.DataFrame], message: str
) -> None:
    spoil(_log(prr_motion)).to_csv(tmp_path / "log.csv", index=False, float_format="%.17g")
    chosen = ("--motion", tmp_path / "log.csv", "--out", tmp_path / "out")
    status, _, err = loopcheck("check", CATALOGUE / "3prr" / "3prr.xml", *chosen)
    assert (status, err.count("\n")) == (2, 1)
    assert message in err
    assert not (tmp_path / "out").exists()


def _log(motion: Motion) -> pd.DataFrame:
    columns = {"t": motion.t}
    for name, values in (("qpos", motion.q), ("qvel", motion.qd), ("qacc", motion.qdd)):
        columns |= {f"{name}.{k}": values[:, k] for k in range(values.shape[1])}
    return pd.DataFrame(columns)


def _assert_same_efforts(efforts: pd.DataFrame, case: Case, motion: Motion) -> None:
    from loopcheck.analytic.dynamics.noc import Noc

    wanted = Noc().compute_efforts(case, motion).effort
    rows = efforts[(efforts["configuration"] == "vertical") & (efforts["source"] == "analytic/noc")]
    np.testing.assert_allclose(rows["effort"].to_numpy().reshape(3, -1).T, wanted, rtol=1e-11, atol=1e-12)
