"""`loopcheck judge`: the verdict on logs with known truth, in the tables and the exit status of a run."""

import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import solve_ivp

from loopcheck import engines
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import HarnessError, NotFoundError
from loopcheck.robots.log import Held, Instantaneous, Log
from loopcheck.robots.logs.log_files import read_log, write_log
from loopcheck.robots.robot import Case, load, make_case
from loopcheck.validation.common import sources
from loopcheck.validation.common.targets import case_of
from loopcheck.validation.judge.causes import with_causes
from loopcheck.validation.judge.logs import (
    JudgedLog,
    LogOptions,
    fit_rows,
    judge_log,
    log_rows,
    summary_rows,
    verdicts,
)
from loopcheck.validation.judge.study import (
    compared,
    judge_file,
    judge_of_files,
    results_of_logs,
)
from tests import planar_four_bar
from tests.conftest import MODELS, CaseMaker
from tests.json_outputs import valid_output
from tests.logs import exact_log
from tests.validation.conftest import Command

MODEL = Path(__file__).parents[2] / "robots/four_bar/four_bar.xml"


@pytest.fixture(scope="module")
def case() -> Case:
    return make_case(load("four_bar"), variant="default", mode="home", configuration="vertical")


@pytest.fixture(scope="module")
def exact() -> Log:
    return planar_four_bar.exact_log(0.02, 51)


def said(judged: JudgedLog, accuracy: float = 1e-3) -> tuple[str, str]:
    return verdicts(judged, accuracy)[0]


def said_with_causes(case: Case, log: Log, accuracy: float = 1e-3) -> tuple[str, str]:
    return said(with_causes(judge_log(case, log), case, LogOptions(accuracy=accuracy)), accuracy)


def test_an_exact_log_agrees_and_one_of_a_heavier_robot_does_not(case: Case) -> None:
    masses = (planar_four_bar.CRANK, 1.001 * planar_four_bar.COUPLER, planar_four_bar.ROCKER)
    good, heavy = planar_four_bar.held_log(1e-3, 100), planar_four_bar.held_log(1e-3, 100, masses=masses)
    assert said(judge_log(case, good), 1e-4)[0] == "agree"
    assert said(judge_log(case, heavy), 1e-4)[0] == "disagree"


def test_the_tables_state_a_known_error(case: Case) -> None:
    """A constant of 0.25 N m on top of the required efforts; all figures follow from it and from the log."""
    log = planar_four_bar.held_log(1e-3, 100)
    judged = judge_log(case, replace(log, effort=log.effort + 0.25))
    (table,), (summary,) = log_rows(judged), summary_rows(judged, LogOptions(accuracy=0.5))
    peak = float(np.abs(log.effort).max())
    for row, names in ((table, ("rms", "largest")), (summary, ("rms_error", "max_error"))):
        assert [row[name] for name in names] == pytest.approx([0.25, 0.25], abs=table["largest_floor"])
    assert table["rms_floor"] <= table["largest_floor"] < 1e-3
    assert (table["dt"], table["from"], table["assumed"]) == (
        pytest.approx(1e-3),
        pytest.approx(0.0, abs=0.05),
        "declared",
    )
    assert 80 < table["samples"] <= 100
    assert (table["actuator"], table["unit"], table["source"]) == ("crank", "N m", f"log/{log.name}")
    assert summary["peak"] == pytest.approx(peak, rel=0.02)
    assert table["divisor"] == pytest.approx(summary["peak"])
    assert summary["relative_error"] * summary["scale"] == pytest.approx(summary["max_error"])
    assert summary["peak_error"] * summary["peak"] == pytest.approx(summary["max_error"])
    assert table["scale"] == summary["scale"] >= summary["peak"]
    assert summary["closure_drift"] == table["gap"] < 1e-6
    assert (summary["tolerance"], summary["actuator"]) == (0.5, "crank")


@pytest.mark.extended("tests/validation/test_remedies.py::test_gravity_that_no_effort_shows_makes_up_its_size")
def test_a_robot_that_is_mounted_otherwise_is_told_by_its_gravity(case: Case) -> None:
    """The logs are of the upright linkage: lying flat, or tilted by 20 degrees, it would need other efforts."""
    log = planar_four_bar.held_log(1e-3, 100)
    flat = make_case(load("four_bar"), variant="default", mode="home", configuration="horizontal")
    down = flat.mechanism.with_gravity(np.array([-0.0, 0.0, -9.81]))  # as a turned vector has its zeros
    verdict, note = said_with_causes(replace(flat, mechanism=down), log)
    assert verdict == "disagree"
    assert "the log agrees with --configuration vertical (error" in note
    robot = case.robot.model_copy(update={"gravities": {"tilted": (3.355, -9.221, 0.0)}})
    tilted = make_case(robot, variant="default", mode="home", configuration="tilted")
    verdict, note = said_with_causes(tilted, replace(log, effort=log.effort + 0.01), 0.02)
    assert verdict == "disagree"
    assert "m/s² instead of (3.355, -9.221, 0)" in note
    heavy = planar_four_bar.held_log(1e-3, 100, masses=(0.4, 1.3, 0.8))
    assert "gravity" not in said_with_causes(case, heavy)[1]


def test_a_hold_that_the_efforts_do_not_keep_is_named(case: Case) -> None:
    log = planar_four_bar.held_log(1e-3, 100)
    doubt = "stated hold of efforts: 1 s, but they change every 0.001 s"
    assert doubt in said(judge_log(case, replace(log, effort_time=Held(1.0))))[1]
    every_tenth = log.effort[np.arange(len(log.t)) // 10 * 10]
    for kept in (log, replace(log, effort=every_tenth, effort_time=Held(0.01))):
        assert "stated hold of efforts" not in said(judge_log(case, kept))[1]


def test_below_the_floor_there_is_no_verdict_and_it_says_what_would_do(case: Case, exact: Log) -> None:
    rng = np.random.default_rng(0)
    noisy = replace(exact, q=exact.q + 1e-4 * rng.normal(size=exact.q.shape), qd=None)
    verdict, note = said(judge_log(case, noisy), 1e-5)
    assert verdict == "not comparable"
    assert note.startswith("undecided by the noise floor")
    assert "times the resolution" in note
    coarse = planar_four_bar.held_log(2e-3, 50)
    verdict, note = said(judge_log(case, coarse), 1e-6)
    assert verdict == "not comparable"
    wanted = float(note.split("sample every ")[1].split(" s")[0])
    finer = judge_log(case, planar_four_bar.held_log(wanted, round(0.1 / wanted)))
    assert said(finer, 1.25e-6)[0] == "agree"


@pytest.mark.extended("test_a_verdict_that_depends_on_an_undecided_time_of_the_efforts_asks_for_it")
def test_undeclared_efforts_are_never_said_to_disagree_if_another_time_explains_them(case: Case, exact: Log) -> None:
    every = planar_four_bar.held_log(1e-3, 1001, hertz=1.0)
    assert every.qd is not None
    held = replace(every, t=every.t[::20], q=every.q[::20], qd=every.qd[::20], effort=every.effort[::20])
    for log in (replace(held, effort_time=None), replace(exact, effort_time=None)):
        for accuracy in (1e-2, 1e-3, 1e-4):
            verdict, note = said(judge_log(case, log), accuracy)
            assert verdict in ("agree", "not comparable")
            assert "efforts assumed" in note
    assert said(judge_log(case, replace(held, effort_time=Held(1e-3))), 1e-6)[0] == "agree"


@pytest.mark.parametrize(
    ("change", "guess"),
    [
        (lambda log: replace(log, effort=-log.effort), 'signs = { "crank.effort" = -1 }'),
        (lambda log: replace(log, effort=2 * log.effort), "the efforts divided by 2 (given twice?)"),
        (lambda log: replace(log, effort=1e3 * log.effort), 'units = { torque = "N mm" }'),
        (lambda log: replace(log, qd=np.rad2deg(log.qd)), "57.3 times the derivatives of its positions (deg"),
        (lambda log: replace(log, qd=log.qd[:, ::-1]), "velocities are not used"),
    ],
    ids=["sign", "twice", "units", "degrees", "exchanged"],
)  # fmt: skip
def test_what_is_suspected_is_said(change: Callable[[Log], Log], guess: str, case: Case, exact: Log) -> None:
    assert guess in said_with_causes(case, change(exact))[1]


def test_a_motion_through_a_singularity_is_not_comparable_and_says_when(case: Case) -> None:
    t = np.linspace(0, 1, 101)
    log = Log(
        name="far",
        t=t,
        joints=("rocker",),
        q=1.18 + 1.5 * np.sin(np.pi * t)[:, None],
        actuators=("rocker",),
        effort=np.zeros((101, 1)),
        effort_time=Held(0.01),
    )
    robot = case.robot.model_copy(update={"actuated": ("rocker",)})
    judged = judge_log(make_case(robot, variant="default", mode="home", configuration="vertical"), log)
    verdict, note = said(judged)
    assert verdict == "not comparable"
    assert "singularity at t = 0." in note


def test_logs_side_by_side_are_cases_of_the_tables_of_a_run(case: Case, exact: Log, tmp_path: Path) -> None:
    heavy = replace(exact, effort=1.1 * exact.effort)
    found = []
    for name, log in (("good", exact), ("heavy", heavy)):
        write_log(log, tmp_path / f"{name}.csv")
        found.append(judge_file(case, name, tmp_path / f"{name}.csv", LogOptions()))
    results = results_of_logs(found, LogOptions())
    rows = results.summary.set_index(["mode", "source"])
    assert rows.loc[("good", "log/good"), "verdict"] == "agree"
    assert rows.loc[("heavy", "log/heavy"), "verdict"] == "disagree"
    assert rows.loc[("good", "analytic/noc"), "verdict"] == "reference"
    efforts = results.efforts.pivot_table(index=["mode", "t"], columns="source", values="effort")
    of_heavy = efforts.loc["heavy"]
    worst = (of_heavy["log/heavy"] - of_heavy["analytic/noc"]).abs().max()
    assert rows.loc[("heavy", "log/heavy"), "max_error"] == pytest.approx(worst, rel=1e-9)
    assert set(results.motion["mode"]) == {"good", "heavy"}


def test_what_is_before_the_start_does_not_count(case: Case, exact: Log) -> None:
    late = replace(exact, effort=exact.effort * np.where(exact.t < 0.3, 1.5, 1.0)[:, None])
    assert said(judge_log(case, late))[0] == "disagree"
    judged = judge_log(case, late, start=0.4)
    assert said(judged)[0] == "agree"
    assert judged.residuals[0].start_peak[0] > 0.1


def test_shipped_logs_are_what_their_truth_makes(case: Case) -> None:
    for name, log in planar_four_bar.shipped().items():
        kept = read_log(planar_four_bar.LOGS / f"{name}.csv", case.mechanism)
        for column in ("t", "q", "effort"):
            np.testing.assert_allclose(getattr(kept, column), getattr(log, column), rtol=1e-12, atol=1e-12)
        assert (kept.name, kept.joints, kept.effort_time) == (name, log.joints, log.effort_time)


def test_shipped_logs_are_judged_as_their_truth_is(case: Case) -> None:
    logs = {name: read_log(planar_four_bar.LOGS / f"{name}.csv", case.mechanism) for name in ("clean", "noisy")}
    assert said(judge_log(case, logs["clean"]), 1e-4)[0] == "agree"
    assert said(judge_log(case, logs["noisy"]), 0.02)[0] == "agree"
    log = read_log(planar_four_bar.LOGS / "friction.csv", case.mechanism)
    assert said(judge_log(case, log), 0.01)[0] == "disagree"
    fitted = judge_log(case, log, fitted=("friction",))
    assert said(fitted, 0.01)[0] == "not comparable"
    verdict, note = said(fitted, 0.05)
    assert verdict == "agree"
    assert "fitted Coulomb friction of crank +0.0" in note
    coulomb, viscous = fitted.fits[0].estimates
    assert abs(coulomb.value - planar_four_bar.COULOMB) < coulomb.half_width
    assert abs(viscous.value - planar_four_bar.VISCOUS) < viscous.half_width
    (row, _) = fit_rows(fitted)
    for name in ("value", "half_width", "unbounded", "alike"):
        assert row[name] == getattr(coulomb, name)
    assert row["after"] < row["before"] / 5


@pytest.mark.parametrize("engine", ["exudyn", "pinocchio"])
def test_runs_of_other_engines_are_judged_as_logs(engine: str, case: Case, tmp_path: Path) -> None:
    """The efforts of an engine's own simulation of the motion, written to a file and read again."""
    if not engines.installed(engine):
        pytest.skip(f"{engine} is not installed")
    motion = prescribe(case)
    history = sources.load(f"{engine}/forward").compute_efforts(case, motion)
    joints = tuple(joint.name for joint in case.mechanism.joints)
    log = Log(
        name=engine,
        t=motion.t,
        joints=joints,
        q=motion.q,
        qd=motion.qd,
        actuators=history.actuators,
        effort=history.effort,
        effort_time=Instantaneous(),
        source=f"{engine}/forward",
    )
    write_log(log, tmp_path / "run.csv")
    again = read_log(tmp_path / "run.csv", case.mechanism)
    assert said(judge_log(case, again), 1e-6)[0] == "agree"
    assert said(judge_log(case, replace(again, effort=1.00001 * again.effort)), 2e-6)[0] == "disagree"


SPRING, DAMPER = 50.0, 5.0
"""Of the pendulum below [N m/rad] and [N m s/rad]."""
PENDULUM = """
<mujoco model="pendulum">
  <option gravity="0 0 -9.80665"/>
  <worldbody>
    <body>
      <joint name="pivot" axis="0 1 0"/>
      <inertial mass="1" diaginertia="0.04 0.1 0.1" pos="2 0 0"/>
    </body>
  </worldbody>
  <actuator><motor name="pivot" joint="pivot"/></actuator>
</mujoco>"""
DESCRIPTION = """
effort_time = "instantaneous"
columns = { t = "Time", "pivot.q" = "Y_Angle", "pivot.qd" = "Y_AngVel", "pivot.effort" = "Y_Torque" }
signs = { "pivot.effort" = -1 }  # what the pendulum does to the ground
"""


@pytest.mark.parametrize(("mass", "verdict"), [(1.0, "agree"), (1.001, "disagree")])
def test_tables_as_adams_writes_them_are_judged(mass: float, verdict: str, tmp_path: Path) -> None:
    """Tabs, seven digits, a title behind #, and the reaction's sign: a pendulum on a spring, integrated by scipy.

    Adams' own files of it in Project Chrono (data/testing/joints/rotspring_force, BSD) leave 1.7e-6 of the scale, and
    those of the free pendulum beside it 2.8e-5, the accuracy of their digits.
    """

    def motion(_: float, state: Array) -> Array:
        q, qd = state
        return np.array([qd, (2 * 9.80665 * np.cos(q) - SPRING * q - DAMPER * qd) / 4.1])

    t = np.linspace(0, 5, 501)
    q, qd = solve_ivp(motion, (0, 5), np.zeros(2), t_eval=t, method="DOP853", rtol=1e-12, atol=1e-12).y
    columns = {"Time": t, "Y_Angle": q, "Y_AngVel": qd, "Y_Torque": SPRING * q + DAMPER * qd}
    table = pd.DataFrame(columns).to_csv(sep="\t", index=False, float_format="%+.6E")
    (tmp_path / "spring.tab").write_text(f"# RotSpring_ADAMS\n#\n{table}", encoding="utf-8")
    (tmp_path / "spring.toml").write_text(DESCRIPTION, encoding="utf-8")
    (tmp_path / "pendulum.xml").write_text(PENDULUM.replace('mass="1"', f'mass="{mass}"'), encoding="utf-8")
    pendulum = case_of(tmp_path / "pendulum.xml")
    found = judge_file(pendulum, "adams", tmp_path / "spring.tab", LogOptions())
    assert found.judged is not None
    assert said(found.judged, 1e-4)[0] == verdict


def test_bad_input_is_refused(tmp_path: Path, exact: Log) -> None:
    path = tmp_path / "run.csv"
    write_log(exact, path)
    with pytest.raises(NotFoundError, match="upside"):
        case_of(MODEL, configuration="upside")
    with pytest.raises(NotFoundError, match="away"):
        case_of(MODEL, mode="away")
    case = case_of(MODEL)
    with pytest.raises(HarnessError, match="the 1 logs must have different names, got a, b"):
        judge_of_files(case, [path], asked=LogOptions(), names=("a", "b"))
    with pytest.raises(HarnessError, match="the 2 logs must have different names, got run, run"):
        judge_of_files(case, [path, path], asked=LogOptions())
    with pytest.raises(HarnessError, match="accuracy must be positive and finite, got 0"):
        LogOptions(accuracy=0)
    with pytest.raises(HarnessError, match="must have more samples from 9 s on, got 0: too few for every filter"):
        judge_log(make_case(load("four_bar"), variant="default", mode="home", configuration="vertical"), exact, start=9)


def test_tables_of_long_logs_are_thinned_and_all_of_it_judged(
    case: Case, exact: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("loopcheck.validation.judge.study.MOST_ROWS", 12)
    found = compared(judge_log(case, exact))
    results = results_of_logs([found], LogOptions())
    assert results.efforts.groupby("source").size().max() <= 12
    assert found.judged is not None
    assert found.judged.residuals[0].floor.samples > 30
    assert isinstance(results.summary, pd.DataFrame)


def test_a_spike_disagrees_though_the_mean_is_small(case: Case, exact: Log) -> None:
    """A single sample of 51 a tenth of the peak off: the largest residual decides."""
    effort = exact.effort.copy()
    effort[25] += 0.1 * np.abs(effort).max()
    judged = judge_log(case, replace(exact, effort=effort))
    (residual,) = judged.residuals
    assert residual.rms[0] < 0.03 * np.abs(exact.effort).max() < residual.largest[0]
    assert said(judged, 0.03)[0] == "disagree"


@pytest.mark.extended("test_what_is_suspected_is_said")
@pytest.mark.parametrize(
    ("change", "defect"),
    [
        (lambda log: replace(log, qd=-log.qd), "velocities of 'crank' are -1 times"),
        (lambda log: replace(log, effort_time=Held(1.0)), "stated hold of efforts"),
    ],
    ids=["sign of velocities", "hold"],
)
@pytest.mark.usefixtures("tables_only")
def test_right_efforts_do_not_agree_in_a_log_with_a_defect(
    change: Callable[[Log], Log], defect: str, case: Case, tmp_path: Path, loopcheck: Command
) -> None:
    """The velocities are not used, and the hold is taken as a single step, but a warning never agrees."""
    log = planar_four_bar.held_log(1e-3, 100)
    assert said(judge_log(case, log))[0] == "agree"
    verdict, note = said(judge_log(case, change(log)))
    assert verdict == "not comparable"
    assert note.startswith("correct the defect of the log")
    assert defect in note
    write_log(change(log), tmp_path / "run.csv")
    options = ("--configuration", "vertical", "--jobs", "1", "--out", tmp_path / "out")
    output = valid_output(loopcheck("judge", MODEL, tmp_path / "run.csv", *options, "--format", "json")[1])
    assert (output["exit_status"], output["schema"]) == (3, "loopcheck.judge/1")


@pytest.mark.parametrize(("damping", "accuracy", "verdict"), [(0.02, 1e-3, "agree"), (2.0, 1e-3, "not comparable")])
def test_an_unexplained_force_at_an_unactuated_joint_is_no_agreement(
    damping: float, accuracy: float, verdict: str, model_case: CaseMaker
) -> None:
    """The log is of a pendulum with a hundred times the damping of the model; its motor is right in both."""
    case = model_case(MODELS / "spinning_rod.xml")
    joints = [replace(j, damping=damping) if j.name == "pendulum" else j for j in case.mechanism.joints]
    true = replace(case, mechanism=replace(case.mechanism, joints=tuple(joints)))
    judged = judge_log(case, exact_log(true, np.linspace(0, 0.2, 21)))
    first, *_ = verdicts(judged, accuracy)
    assert first.verdict == verdict
    assert ("unexplained force" in first.note) is (verdict != "agree")
    assert ("at joint 'pendulum' along an unactuated dof" in first.note) is (verdict != "agree")
    left = np.sqrt((judged.residuals[0].unactuated ** 2).mean(axis=0)).max()
    limit = accuracy * judged.required[0].divisor.max()
    assert (verdict == "agree") is bool(left < limit)
    assert left < 500 * limit  # a net a hundred times wider would miss it


def test_a_clear_reading_is_taken_and_its_figures_shown(case: Case, tmp_path: Path) -> None:
    """Efforts held over 20 ms are right as held efforts, and wrong as instantaneous efforts."""
    log = replace(planar_four_bar.held_log(0.02, 51), effort_time=None)
    assert said(judge_log(case, replace(log, effort_time=Held(0.02))), 0.02)[0] == "agree"
    assert said(judge_log(case, replace(log, effort_time=Instantaneous())), 0.02)[0] == "disagree"
    verdict, note = said(judge_log(case, log), 0.02)
    assert verdict == "agree"
    assert "efforts assumed held:0.02" in note
    assert [row["assumed"] for row in log_rows(judge_log(case, log))][:2] == ["assumed", "other"]


def test_a_verdict_that_depends_on_an_undecided_time_of_the_efforts_asks_for_it(case: Case) -> None:
    """An error like that of a soft loop in all readings: held efforts agree, and others nearly."""
    log = replace(planar_four_bar.held_log(4e-3, 251, hertz=1.0), effort_time=None)
    soft = replace(log, effort=log.effort + 0.05 * np.sin(7 * log.t)[:, None])
    judged = judge_log(case, soft)
    assert judged.rivals > 1
    first, *others = [
        float(one.largest[0] / one_required.divisor[0])
        for one, one_required in zip(judged.residuals, judged.required, strict=True)
    ]
    least, most = first, max(others[: judged.rivals - 1])
    assert most > 1.05 * least
    verdict, note = said(judged, (least + most) / 2)
    assert verdict == "not comparable"
    assert note.startswith("depends on the time of application of the efforts: state --effort-time")
    verdict, note = said(judged, 1.05 * most)
    assert verdict == "agree"
    assert "time of the efforts not decided between" in note


def test_options_of_the_command_reach_the_judge(case: Case, exact: Log, tmp_path: Path) -> None:
    """A wrong start of the efforts is not judged from a later time on."""
    late = replace(exact, effort=exact.effort * np.where(exact.t < 0.3, 1.5, 1.0)[:, None])
    write_log(late, tmp_path / "run.csv")
    for start, verdict in ((-np.inf, "disagree"), (0.4, "agree")):
        found = judge_file(case, "run", tmp_path / "run.csv", LogOptions(start=start))
        results = results_of_logs([found], LogOptions(start=start))
        rows = results.summary.set_index("source")
        assert rows.loc["log/run", "verdict"] == verdict
        assert "noise floor" in str(rows.loc["log/run", "note"])
        assert found.judged is not None
        residual = found.judged.residuals[0]
        assert rows.loc["log/run", "peak"] == np.abs(residual.needed).max()
        assert rows.loc["log/run", "peak_error"] == pytest.approx(residual.largest[0] / np.abs(residual.needed).max())


@pytest.mark.extended("test_below_the_floor_there_is_no_verdict_and_it_says_what_would_do")
@pytest.mark.usefixtures("tables_only")
def test_the_suggested_accuracy_of_an_undecided_log_agrees(loopcheck: Command, tmp_path: Path) -> None:
    options = ("--configuration", "vertical", "--jobs", "1", "--accuracy", "3%", "--out", tmp_path)
    status, out, _ = loopcheck("judge", MODEL, planar_four_bar.LOGS / "friction.csv", *options)
    assert (status, "not comparable" in out) == (3, True)
    (suggested,) = re.findall(r"^Next: loopcheck (.*)$", out, re.MULTILINE)
    status, out, _ = loopcheck(*shlex.split(suggested))
    assert (status, "Next:" in out) == (0, False)
