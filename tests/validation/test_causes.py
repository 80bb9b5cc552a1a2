"""Causes of logs that disagree: the option that makes them agree is named, and right logs are never suspected."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from loopcheck import judge
from loopcheck.analytic.motion.assembly import assemble
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.log import Held, Instantaneous, Log
from loopcheck.robots.motion import Motion
from tests import planar_four_bar
from tests.cpu_time import extended_but
from tests.logs import PARALLELOGRAM

MODEL = Path(__file__).parents[2] / "robots/four_bar/four_bar.xml"
MASSES = (planar_four_bar.CRANK, planar_four_bar.COUPLER, planar_four_bar.ROCKER)
SETTINGS: Any = {"configuration": "vertical", "accuracy": 0.02}
OFFSET = 0.5
LATE = 0.024
VISCOUS = 0.1


def noisy(log: Log, seed: int = 0) -> Log:
    """The log by an encoder of 1e-5 rad and a sensor of 0.01 N m, without velocities."""
    random = np.random.default_rng(seed)
    q, effort = log.q + 1e-5 * random.normal(size=log.q.shape), log.effort + 0.01 * random.normal(size=log.effort.shape)
    return replace(log, q=q, qd=None, effort=effort, effort_time=Instantaneous())


@pytest.fixture(scope="module")
def right() -> Log:
    return noisy(planar_four_bar.exact_log(0.02, 101))


def of_drive(log: Log) -> Log:
    """The log without its passive joints."""
    k = log.joints.index("crank")
    return replace(log, joints=("crank",), kinds=("hinge",), q=log.q[:, [k]], qd=None)


def note(log: Log, **options: Any) -> str:
    judged = judge(MODEL, log, **{**SETTINGS, **options})
    assert judged.verdict == "disagree"
    return judged.notes["crank"]


@pytest.mark.parametrize(
    ("wrong", "option"),
    [
        (lambda log: replace(log, t=1e3 * log.t), 'units = { time = "ms" }'),
        (lambda log: replace(log, t=1e9 * log.t), 'units = { time = "ns" }'),
        (lambda log: replace(log, effort=1e3 * log.effort), 'units = { torque = "N mm" }'),
        (lambda log: replace(log, effort=-log.effort), 'signs = { "crank.effort" = -1 }'),
        (lambda log: replace(of_drive(log), effort=1e3 * log.effort), 'units = { torque = "N mm" }'),
    ],
    ids=["ms", "ns", "N mm", "sign", "N mm of a log of the drive alone"],
)
def test_a_conversion_that_makes_the_log_agree_is_named_alone(
    wrong: Callable[[Log], Log], option: str, right: Log
) -> None:
    said = note(wrong(right))
    assert f"the log agrees with {option} in its description" in said
    assert said.count("agrees with") == 1
    assert "--fit" not in said
    assert "gravity" not in said


def test_the_path_of_the_drive_is_followed_once_for_all_times_and_efforts(
    right: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths: list[Motion] = []

    def counted(*arguments: Any, **options: Any) -> Motion:
        paths.append(assemble(*arguments, **options))
        return paths[-1]

    monkeypatch.setattr("loopcheck.analytic.logs.closing.closed_log.assemble", counted)
    assert 'the log agrees with units = { time = "ms" }' in note(replace(of_drive(right), t=1e3 * right.t))
    assert len(paths) == 1


def test_a_time_unit_explains_velocities_too() -> None:
    """In ms velocities are 1000 times the derivatives: no defect of their own. In degrees besides, they have one."""
    exact = replace(planar_four_bar.exact_log(0.02, 101), effort_time=Instantaneous())
    assert exact.qd is not None
    said = note(replace(exact, t=1e3 * exact.t))
    assert 'the log agrees with units = { time = "ms" }' in said
    assert "velocities" not in said
    said = note(replace(exact, t=1e3 * exact.t, qd=np.rad2deg(exact.qd)))
    assert 'the log agrees with units = { time = "ms" }' in said
    assert "velocities are not used" in said


def test_open_loops_are_no_degrees(tmp_path: Path) -> None:
    """Near a closed rest position small angles close the loops in any unit; only large angles are suspected."""
    (tmp_path / "rods.xml").write_text(PARALLELOGRAM, encoding="utf-8")
    t: Array = 0.01 * np.arange(101.0)
    angle = 0.4 * np.sin(5 * t)
    opened = Log(
        name="run",
        t=t,
        joints=("a", "pin", "b"),
        q=np.stack([angle, -angle, angle + 0.5], axis=1),
        actuators=("a", "b"),
        effort=np.zeros((101, 2)),
        effort_time=Instantaneous(),
    )
    exact = planar_four_bar.exact_log(0.02, 101)
    in_degrees = replace(exact, q=np.rad2deg(exact.q), qd=None)
    for model, log, suspects in ((tmp_path / "rods.xml", opened, False), (MODEL, in_degrees, True)):
        with pytest.raises(HarnessError, match=r"loops of .*\.xml must be closed") as caught:
            judge(model, log, accuracy=0.1)
        assert ("in degrees" in str(caught.value)) == suspects


SERVO = """<mujoco><option timestep="0.002" integrator="implicitfast" gravity="0 0 0"/><worldbody><body>
<joint name="hip" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia=".1 .1 .1"/></body></worldbody>
<actuator><position name="hip" joint="hip" kp="40" kv="8"/></actuator></mujoco>"""


@pytest.mark.parametrize(
    ("integrator", "gain", "verdict"),
    [("implicitfast", 1.0, "disagree"), ("Euler", 1.0, "agree"), ("Euler", 1.1, "disagree")],
)
def test_a_reported_force_that_did_not_act_is_named(integrator: str, gain: float, verdict: str, tmp_path: Path) -> None:
    """The efforts of a servo change within the step; under Euler they do not, and the log agrees."""
    mujoco = pytest.importorskip("mujoco")
    (tmp_path / "servo.xml").write_text(SERVO.replace("implicitfast", integrator), encoding="utf-8")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "servo.xml"))
    data = mujoco.MjData(model)
    rows: dict[str, list[Array]] = {name: [] for name in ("time", "qpos", "qvel", "actuator_force")}
    for _ in range(500):
        data.ctrl = np.sin(30 * data.time)
        mujoco.mj_step(model, data)
        for name, values in rows.items():
            values.append(np.copy(getattr(data, name)))
    arrays: dict[str, Any] = {name: np.array(values) for name, values in rows.items()}
    arrays["actuator_force"] *= gain
    np.savez(tmp_path / "run.npz", **arrays)
    judged = judge(tmp_path / "servo.xml", tmp_path / "run.npz", accuracy=0.01)
    assert judged.verdict == verdict, str(judged)
    assert ("log loopcheck.acted_effort" in str(judged)) == (integrator != "Euler")


@pytest.mark.extended("test_a_conversion_that_makes_the_log_agree_is_named_alone")
def test_a_conversion_that_is_not_enough_is_not_named(right: Log) -> None:
    """Newton millimetres, and ten percent too much: each alone leaves more than the accuracy."""
    said = note(replace(right, effort=1.1e3 * right.effort))
    unit = 'units = { torque = "N mm" } in its description'
    assert f"the log agrees with {unit} and the efforts divided by 1.10" in said
    assert f"the log agrees with {unit} (" not in said


def test_the_side_of_the_gear_is_named(right: Log, tmp_path: Path) -> None:
    path = tmp_path / "geared.xml"
    text = MODEL.read_text(encoding="utf-8").replace('joint="crank"/>', 'joint="crank" gear="40"/>')
    path.write_text(text, encoding="utf-8")
    judged = judge(path, right, **SETTINGS)
    assert "the log agrees with --effort-side joint" in judged.notes["crank"]


@pytest.mark.parametrize(
    ("changed", "term", "parameter", "truth"),
    [
        (lambda log: log.effort + OFFSET, "offset", "offset of crank", OFFSET),
        (lambda log: CubicSpline(log.t, log.effort)(log.t - LATE), "shift", "after that of the motion", LATE),
        (lambda log: log.effort + VISCOUS * log.qd[:, :1], "friction", "viscous friction of crank", VISCOUS),
    ],
    ids=["offset", "shift", "friction"],
)
def test_a_missing_term_is_named_with_an_interval_of_its_value(
    changed: Callable[[Log], Array], term: str, parameter: str, truth: float
) -> None:
    exact = planar_four_bar.exact_log(0.02, 101)
    wrong = noisy(replace(exact, effort=changed(exact)))
    said = note(wrong, start=0.1)
    assert f"the log agrees with --fit {term} (error" in said
    value, half_width = (float(word) for word in said.split(f"{parameter} ")[1].split()[:3:2])
    assert abs(value - truth) < max(half_width, 0.03 * truth)
    fitted = judge(MODEL, wrong, **SETTINGS, start=0.1, fit=[term])
    assert fitted.agrees, str(fitted)


def test_a_mass_is_named_with_every_other_cause_that_explains_as_much() -> None:
    heavy = planar_four_bar.held_log(1e-3, 200, masses=(MASSES[0], 1.3 * MASSES[1], MASSES[2]))
    said = note(heavy, accuracy=0.05)  # its inertia is larger, too
    assert "the log agrees with --fit mass:coupler (error" in said
    assert "mass of coupler 1.45" in said
    assert "kg instead of 1.1" in said
    assert "the log agrees with the efforts divided by 1.23" in said


def settled_after(log: Log, seconds: float) -> Log:
    """The log with a start whose efforts are off by an effort that decays."""
    off = 2.0 * np.exp(-8 * (log.t - log.t[0]) / seconds)[:, None]
    return replace(log, effort=log.effort + off)


def test_an_unsettled_start_is_left_out_and_a_stated_start_is_kept() -> None:
    log = settled_after(planar_four_bar.held_log(1e-3, 500), 0.1)
    judged = judge(MODEL, log, **SETTINGS)
    assert judged.agrees, str(judged)
    start = float(str(judged).split("the start is not settled: samples before ")[1].split()[0])
    assert 0.02 < start < 0.15
    said = note(log, start=0.0)
    later = float(said.split("the log agrees with --from ")[1].split()[0])
    assert judge(MODEL, log, **SETTINGS, start=later).agrees
    assert "--fit" not in said


def test_a_row_written_after_the_step_agrees_at_once() -> None:
    """The commonest loop of all: the effort of a row acted until its time."""
    before = settled_after(planar_four_bar.held_log(4e-3, 150), 0.1)
    assert before.qd is not None
    after = replace(before, t=before.t[1:], q=before.q[1:], qd=before.qd[1:], effort=before.effort[:-1])
    judged = judge(MODEL, replace(after, effort_time=None), **SETTINGS)
    assert judged.agrees, str(judged)
    assert "efforts assumed held-until:0.004" in str(judged)
    said = note(replace(after, effort_time=Held(0.004)))
    assert "the log agrees with --effort-time held-until:0.004" in said
    assert "--fit" not in said


def test_a_target_is_named_and_no_term_fitted() -> None:
    """The position that a servo wants: ahead of the joint by its lag."""
    log = replace(planar_four_bar.exact_log(0.02, 101), effort_time=Instantaneous())
    assert log.qd is not None
    said = note(replace(log, effort=log.q[:, :1] + 0.02 * log.qd[:, :1]))
    assert "'crank.effort' follows the position of 'crank'" in said
    assert "--fit" not in said
    assert "divided" not in said


def test_another_column_is_named_and_makes_the_log_agree(right: Log) -> None:
    columns = {"t": right.t, "crank.q": right.q[:, 0], "crank.effort": right.q[:, 0] ** 3, "tau": -right.effort[:, 0]}
    judged = judge(MODEL, columns, **SETTINGS, effort_time="instantaneous")
    edits = 'columns = { "crank.effort" = "tau" } and signs = { "crank.effort" = -1 } in its description'
    assert f"the log agrees with {edits}" in str(judged)
    assert judge(MODEL, {**columns, "crank.effort": -columns["tau"]}, **SETTINGS, effort_time="instantaneous").agrees


@pytest.mark.extended(
    "tests/validation/test_remedies.py::test_a_partial_change_removes_two_thirds_and_leaves_at_most_half_of_the_peak"
)
def test_what_leaves_more_than_the_accuracy_is_partial_with_its_figure(right: Log) -> None:
    """A sign, and a sixth of the peak besides: the figure is that of the log with the sign."""
    wave = 0.15 * np.abs(right.effort).max() * np.sin(37 * right.t)[:, None]
    wrong = replace(right, effort=-right.effort + wave)
    said = note(wrong)
    assert 'partial: signs = { "crank.effort" = -1 } in its description (the negative of the column) leaves an' in said
    left = float(said.split("leaves an error of ")[1].split(",")[0])
    figures = judge(MODEL, replace(wrong, effort=-wrong.effort), **SETTINGS).figures
    assert left == pytest.approx(float(figures["largest"].iloc[0] / figures["divisor"].iloc[0]), rel=0.1)
    assert "agrees with" not in said


def test_the_search_ends_in_the_middle_of_a_trial_when_its_time_is_over(
    right: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial without an end is cut off, and the verdict stays."""
    monkeypatch.setattr("loopcheck.validation.judge.causes.MOST_CPU", 0.1)

    def endless(*_: object, **__: object) -> None:
        while True:
            pass

    wrong = replace(right, effort=-right.effort)
    monkeypatch.setattr("loopcheck.validation.judge.causes.judge_log", endless)
    begin = time.process_time()
    said = note(wrong)
    assert time.process_time() - begin < 5
    assert "the search for causes ended after 1 trials and 0.1 s of CPU time" in said
    assert "agrees with" not in said


@pytest.mark.evidence("false alarms of the search over all shipped logs", seconds=1.5)
def test_right_logs_are_not_suspected() -> None:
    """Below their own noise, too, where nothing agrees."""
    for seed in range(5):
        log = noisy(planar_four_bar.exact_log(0.02, 101), seed)
        for accuracy in (1e-9, 1e-3, 0.02):
            judged = judge(MODEL, log, configuration="vertical", accuracy=accuracy)
            assert "agrees with" not in str(judged)
            assert "partial" not in str(judged)


@pytest.mark.evidence("the whole search of causes at rest", seconds=1.5)
@pytest.mark.parametrize("configuration", ["vertical", "horizontal"])
@pytest.mark.parametrize(
    "is_jittered",
    extended_but([False], [False, True], "test_a_wrong_log_of_a_robot_at_rest_is_judged_without_warnings"),
)
def test_a_wrong_log_of_a_robot_at_rest_is_judged_without_warnings(configuration: str, is_jittered: bool) -> None:
    """Every warning is an error here; terms without effect at rest are not named."""
    t = 0.01 * np.arange(60)
    t = t + 1e-4 * np.sin(np.arange(60)) * is_jittered
    for columns in ({}, {"crank.qd": 0 * t}):
        log = {"t": t, "crank.q": 0 * t + 0.5, "crank.effort": 0 * t + 9.0, **columns}
        judged = judge(MODEL, log, configuration=configuration, effort_time="instantaneous")
        assert "with --fit offset (error" in str(judged)
        assert "--fit friction" not in str(judged)
