"""Readings and windows of logs: the habit of the rows is found, transients are left out, and faults are not."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loopcheck.robots.arrays import Array
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.log import EffortTime, Held, Instantaneous, Log
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.robot import Case, load, make_case
from loopcheck.validation.common.targets import case_of
from loopcheck.validation.judge.logs import judge_log, verdicts
from loopcheck.validation.judge.remedies import Remedy, acted_over_steps
from loopcheck.validation.tune.study import reported_forces
from tests import planar_four_bar

ACCURACY = 0.02
H = 4e-3
"""Step of the logs [s]."""


@pytest.fixture(scope="module")
def case() -> Case:
    return make_case(load("four_bar"), variant="default", mode="home", configuration="vertical")


@pytest.fixture(scope="module")
def before() -> Log:
    """Rows before each step, whose efforts act from there on."""
    return replace(planar_four_bar.held_log(H, 125), effort_time=None)


def after(log: Log) -> Log:
    """The same with rows after each step."""
    assert log.qd is not None
    return replace(log, t=log.t[1:], q=log.q[1:], qd=log.qd[1:], effort=log.effort[:-1])


def every_fifth(log: Log) -> Log:
    assert log.qd is not None
    return replace(log, t=log.t[::5], q=log.q[::5], qd=log.qd[::5], effort=log.effort[::5])


def verdict_of(case: Case, log: Log) -> tuple[str, str]:
    return verdicts(judge_log(case, log, accuracy=ACCURACY), ACCURACY)[0]


def of_habit(habit: str) -> tuple[Log, EffortTime]:
    """A log by a habit of rows, and the time of its efforts."""
    if habit == "instant":
        return replace(planar_four_bar.exact_log(H, 125, hertz=4.0), effort_time=None), Instantaneous()
    is_decimated, until = habit.startswith("every fifth"), habit.endswith("after")
    h = H / 5 if is_decimated else H
    log = replace(planar_four_bar.held_log(h, 400 if is_decimated else 125), effort_time=None)
    log = after(log) if until else log
    return every_fifth(log) if is_decimated else log, Held(h, until=until)


@pytest.mark.parametrize("habit", ["before", "after", "instant", "every fifth", "every fifth after"])
def test_the_habit_of_the_rows_is_found(habit: str, case: Case) -> None:
    log, truth = of_habit(habit)
    judged = judge_log(case, log, accuracy=ACCURACY)
    found = judged.readings[0]
    assert type(found) is type(truth)
    if isinstance(truth, Held) and isinstance(found, Held):
        assert found.until == truth.until
        assert found.seconds == pytest.approx(truth.seconds, rel=0.1)
    assert verdicts(judged, ACCURACY)[0].verdict == "agree"
    assert judged.rivals == 1


def transient(log: Log, size: float, decay: float) -> Array:
    """Errors that fall by a factor of e in a time [s]."""
    return size * np.exp(-(log.t - log.t[0]) / decay)[:, None]


def test_a_transient_is_left_out_and_everything_else_is_judged(case: Case, before: Log) -> None:
    peak = float(np.abs(before.effort).max())
    span = float(before.t[-1] - before.t[0])
    early = replace(before, effort=before.effort + transient(before, peak, span / 40))
    judged = judge_log(case, early, accuracy=ACCURACY)
    assert verdicts(judged, ACCURACY)[0].verdict == "agree"
    first = float(judged.residuals[0].motion.t[0])
    assert judged.unsettled.startswith("the start is not settled: samples before")
    assert span / 40 < first < 0.4 * span
    assert judged.required[0].peak <= np.abs(judged.residuals[0].needed).max(axis=0)
    assert judge_log(case, early, accuracy=ACCURACY, start=-np.inf).unsettled == ""
    verdict, note = verdict_of(case, replace(early, effort=early.effort + 0.05 * peak))
    assert (verdict, "not settled" in note) == ("disagree", True)


def test_a_transient_of_most_of_the_log_allows_no_verdict(case: Case, before: Log) -> None:
    span = float(before.t[-1] - before.t[0])
    slow = transient(before, float(np.abs(before.effort).max()), span / 8)
    verdict, note = verdict_of(case, replace(before, effort=before.effort + slow))
    assert (verdict, note.startswith("not settled before t = ")) == ("not comparable", True)


def test_a_fault_of_the_first_rows_is_no_transient(case: Case, before: Log) -> None:
    span = float(before.t[-1] - before.t[0])
    steady = 0.3 * np.abs(before.effort).max() * (before.t < before.t[0] + 0.3 * span)[:, None]
    verdict, note = verdict_of(case, replace(before, effort=before.effort + steady))
    assert (verdict, "not settled" in note) == ("disagree", False)


SERVO = """<mujoco><option timestep="0.002" integrator="{}" gravity="0 0 0"/><worldbody><body>
<joint name="hip" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/></body></worldbody>
<actuator><position name="servo" joint="hip" kp="40" kv="8" gear="2"/></actuator></mujoco>"""


def servo(integrator: str, folder: Path) -> Mechanism:
    path = folder / "servo.xml"
    path.write_text(SERVO.format(integrator), encoding="utf-8")
    return read_mechanism(ModelFile(path=path))


@pytest.mark.parametrize("integrator", ["implicitfast", "implicit", "discrete", "RK4"])
@pytest.mark.parametrize("until", [False, True])
def test_the_effort_that_acted_follows_from_the_reported_force(integrator: str, until: bool, tmp_path: Path) -> None:
    """Against `acted_effort`, which repeats each step in MuJoCo."""
    mujoco = pytest.importorskip("mujoco")
    from loopcheck.engines.mujoco.acted_effort import acted_effort, integration_state

    mechanism = servo(integrator, tmp_path)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "servo.xml"))
    data = mujoco.MjData(model)
    rows = []
    acted = []
    for _ in range(40):
        data.ctrl = np.sin(30 * data.time)
        state = integration_state(model, data)
        mujoco.mj_forward(model, data)
        start = (data.time, data.qpos[0], data.qvel[0], data.actuator_force[0])
        acted.append(acted_effort(model, state).effort)
        mujoco.mj_step(model, data)
        rows.append((data.time, data.qpos[0], data.qvel[0], data.actuator_force[0]) if until else start)
    t, q, qd, force = np.array(rows).T
    log = Log(
        name="run", t=t, joints=("hip",), q=q[:, None], qd=qd[:, None], actuators=("servo",), effort=force[:, None]
    )
    robot = load("four_bar")
    plain = Remedy(
        case=replace(make_case(robot, variant="default", mode="home", configuration="vertical"), mechanism=mechanism),
        log=log,
    )
    remedies = {
        one.log.effort_time.until: one for one in acted_over_steps(plain) if isinstance(one.log.effort_time, Held)
    }
    rows_known = slice(1, None) if until else slice(-1)
    error = np.abs(remedies[until].log.effort - np.array(acted))[rows_known].max()
    change = np.abs(force[:, None] - np.array(acted))[rows_known].max()
    assert error < (0.2 if integrator == "RK4" else 1e-9) * change


def test_a_tuned_file_warns_of_reported_forces(tmp_path: Path) -> None:
    for integrator, warns in (("implicitfast", True), ("Euler", False)):
        servo(integrator, tmp_path)
        warning = reported_forces(tmp_path / "servo.xml")
        assert bool(warning) == warns
        assert all(f"with integrator {integrator}, actuator_force is not the effort" in words for words in warning)


def test_positions_of_semi_implicit_steps_are_read_as_such(tmp_path: Path) -> None:
    """Positions by the velocities of the ends of the steps: without velocities, half a step is open."""
    mujoco = pytest.importorskip("mujoco")
    servo("Euler", tmp_path)
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "servo.xml"))
    data, rows = mujoco.MjData(model), []
    for _ in range(120):
        data.ctrl = np.sin(30 * data.time)
        q, t = data.qpos[0], data.time
        mujoco.mj_step(model, data)
        rows.append((t, q, data.actuator_force[0]))
    t, q, force = np.array(rows).T
    log = Log(name="run", t=t, joints=("hip",), q=q[:, None], actuators=("servo",), effort=force[:, None])
    own = case_of(tmp_path / "servo.xml")
    for when in (None, Held(0.002)):
        judged = judge_log(own, replace(log, effort_time=when), accuracy=1e-9)
        (reading, *_) = judged.readings
        assert isinstance(reading, Held)
        assert reading.seconds == pytest.approx(0.002)
        assert judged.residuals[0].rms < 1e-10 * judged.required[0].peak
