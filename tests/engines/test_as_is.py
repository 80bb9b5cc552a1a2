"""Unmodified simulations: the effort that acted over a step is the change of the momentum, not a reading."""

import hashlib
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from loopcheck import engines
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.as_is import Record, runs_at
from loopcheck.engines.computed_torque import ComputedTorque, Demand, bandwidth, computed_torque, following, targets
from loopcheck.engines.mujoco import as_is
from loopcheck.engines.mujoco.actuators import actuators
from loopcheck.engines.mujoco.model import DISCRETE
from loopcheck.engines.mujoco.stepper import MujocoStepper
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import EngineError, NotRepresentableError
from loopcheck.robots.formats.mjcf import compile_model, read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.log import UNMODELLED
from loopcheck.robots.motion import Drive, Motion
from loopcheck.robots.robot import Case, load, representative_case
from loopcheck.validation.check.audit.audit import audit, expected_terms
from loopcheck.validation.common.targets import cases_of
from tests.conftest import MODELS, CaseMaker

mujoco = pytest.importorskip("mujoco")

INERTIA = 0.4
"""Inertia of the flywheel about its axis [kg m²]."""
KINDS = {
    "motor": '<motor {on} gear="3"/>',
    "position": '<position {on} kp="40" kv="3" gear="2"/>',
    "velocity": '<velocity {on} kv="2"/>',
    "damped": '<general {on} biastype="affine" gainprm="0.5" biasprm="0.2 0 -1.5"/>',
    "clipped": '<position {on} kp="40" kv="3" forcerange="-1 1"/>',
    "limited": '<position {on} kp="40" kv="3" ctrlrange="-0.05 0.05"/>',
    "filter": '<general {on} dyntype="filter" dynprm="0.02" biastype="affine" gainprm="5" biasprm="0 -5 -1"/>',
    "integrating": '<intvelocity {on} kp="40" actrange="-3 3"/>',
    "on_limited_joint": '<position {on} kp="40" kv="3" gear="2"/>',
    "on_tendon": '<position {on} kp="40" kv="3"/>',
}
if hasattr(mujoco.mjtGain, "mjGAIN_DCMOTOR"):
    KINDS["dcmotor"] = '<dcmotor {on} motorconst="1 1" resistance="0.5" gear="2"/>'
INTEGRATORS = ("Euler", "implicit", "implicitfast", "discrete", "RK4")
TWO_CONTROLS = """<mujoco><worldbody>
  <body name="servo"><joint name="servo" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 0.4"/></body>
  <body name="wheel"><joint name="wheel" axis="0 0 1"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 0.2"/></body>
  </worldbody><actuator>
  <dcmotor name="servo" joint="servo" motorconst="2" resistance="1" input="pos vel" controller="100 0 5"/>
  <motor name="wheel" joint="wheel" ctrlrange="-7 3"/></actuator></mujoco>"""
"""An actuator with two controls, a position and a velocity, before one with a single control."""


def flywheels(folder: Path, kinds: Sequence[str], integrator: str = "Euler", step: float = 4e-3) -> Path:
    """Wheels, each with an actuator of its own kind on its axis as the only load."""
    wheel = """<body name="{0}"><joint name="{0}" axis="0 0 1"{2}/>
        <inertial pos="0 0 0" mass="1" diaginertia="1 1 {1}"/></body>"""
    limits = {"on_limited_joint": ' actuatorfrcrange="-1 1"'}
    bodies = "".join(wheel.format(kind, INERTIA, limits.get(kind, "")) for kind in kinds)
    tendons = "".join(f'<fixed name="{kind}"><joint joint="{kind}" coef="1.5"/></fixed>' for kind in kinds)
    where = {kind: f'{"tendon" if kind == "on_tendon" else "joint"}="{kind}" name="{kind}"' for kind in kinds}
    path = folder / "flywheels.xml"
    path.write_text(
        f"""<mujoco><option timestep="{step}" integrator="{integrator}" gravity="0 0 0"/>
        <worldbody>{bodies}</worldbody><tendon>{tendons}</tendon>
        <actuator>{"".join(KINDS[kind].format(on=where[kind]) for kind in kinds)}</actuator></mujoco>""",
        encoding="utf-8",
    )
    return path


def run(make: CaseMaker, path: Path, *, width: float = 20.0) -> tuple[Case, Motion, Record]:
    """A file as it is, moved to and fro."""
    case = make(path, amplitude=0.3)
    motion = prescribe(case)
    model = as_is.compiled(case.mechanism)
    return case, motion, as_is.simulate(as_is.plan(case.mechanism, motion), MujocoStepper(model), width)


def momentum_errors(record: Record, case: Case) -> tuple[Array, Array]:
    """Distance of acting and of reported efforts from the change of momentum, over its peak [-], (na,)."""
    torque = INERTIA * np.diff(record.qd, axis=0) / record.step
    acted, reported = (
        np.abs(effort[:-1] @ case.mechanism.selection - torque).max(axis=0) / np.abs(torque).max(axis=0)
        for effort in (record.acted, record.readings["reported"])
    )
    return acted, reported


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_the_effort_that_acted_is_what_changed_the_momentum(
    integrator: str, model_case: CaseMaker, tmp_path: Path
) -> None:
    if integrator == "discrete" and DISCRETE < 0:
        pytest.skip("this version of MuJoCo has no discrete integrator")
    case, _, record = run(model_case, flywheels(tmp_path, list(KINDS), integrator))
    acted, reported = momentum_errors(record, case)
    np.testing.assert_array_less(acted, 1e-9)
    if integrator != "Euler":  # what those report that are implicit in the velocity is not what acted
        damped = [list(KINDS).index(kind) for kind in ("position", "velocity", "damped", "filter", "on_tendon")]
        np.testing.assert_array_less(1e-3, reported[damped])


def test_torques_follow_the_motion_and_servos_hold_themselves(model_case: CaseMaker, tmp_path: Path) -> None:
    _, motion, record = run(model_case, flywheels(tmp_path, ["motor", "damped"]))
    assert np.abs(record.q - motion.law(record.controller.t).q).max() < 5e-3  # positions are half a step late
    assert not record.holds_itself
    _, _, servo = run(model_case, flywheels(tmp_path, ["position"]))
    assert servo.holds_itself
    assert np.abs(servo.positions - servo.controller.q).max() > 1e-2  # it stays behind, which is its own affair


def test_dry_friction_is_overcome_in_the_direction_of_the_prescribed_motion(
    model_case: CaseMaker, tmp_path: Path
) -> None:
    """It is eight times what the inertia needs; by itself the feedback would leave the wheel behind."""
    path = flywheels(tmp_path, ["motor"], step=2e-3)
    _replace(path, 'axis="0 0 1"', 'axis="0 0 1" frictionloss="40"')
    case, motion, record = run(model_case, path)
    distance = np.abs(record.q - motion.law(record.controller.t).q).max()
    assert distance < 0.01 * np.ptp(motion.q)
    model = as_is.compiled(case.mechanism)
    middle = record.controller.t + record.step / 2
    at_middle = motion.law(np.minimum(middle, motion.t[-1]))
    fast = np.abs(at_middle.qd[:, 0]) > 0.5 * np.abs(at_middle.qd).max()
    needed = INERTIA * at_middle.qdd[fast, 0] + 40 * np.sign(at_middle.qd[fast, 0])
    np.testing.assert_allclose(3 * cast(ComputedTorque, record.controller).effort[fast, 0], needed, rtol=1e-6)
    assert model.dof_frictionloss[0] == 40


def test_a_tendon_rubs_too(model_case: CaseMaker, tmp_path: Path) -> None:
    path = flywheels(tmp_path, ["motor", "on_tendon"])  # the second of two tendons
    _replace(path, "<position", "<motor")
    _replace(path, 'kp="40" kv="3"', "")
    _replace(path, '<fixed name="on_tendon"', '<fixed name="on_tendon" frictionloss="40"')
    _, _, record = run(model_case, path)
    assert np.abs(record.positions - record.controller.q).max() < 0.01 * np.ptp(record.controller.q)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ({8: "follows", 1: "follows"}, (8, np.nan, 1)),
        ({8: "follows", 2: "follows"}, (8, np.nan, 2)),
        ({8: "follows"}, (8, np.nan, None)),
        ({8: "diverges", 4: "lost", 2: "follows", 1: "follows"}, (2, 4, 1)),
        ({8: "diverges", 4: "diverges", 2: "diverges", 1: "follows"}, (1, 2, None)),
        ({8: "lost", 16: "follows"}, (16, np.nan, None)),
        ({8: "lost"}, (8, np.nan, None)),
        ({8: "diverges"}, (4, np.nan, None)),
        ({8: "servo"}, (8, np.nan, None)),
        (dict.fromkeys((1, 2, 4, 8, 16), "diverges"), "at 8"),
    ],
)
def test_the_largest_and_the_smallest_bandwidth_that_follow_are_found(
    ends: Mapping[float, str], expected: tuple[float, float, float | None] | str
) -> None:
    def run(width: float, sample: int) -> Record:
        end = ends.get(width, "lost")
        if end == "diverges":
            raise EngineError(f"diverged at {width:g}")
        aim = np.array([[0.0], [1.0]])
        behind = {"follows": 0.04, "lost": 0.06, "servo": 0.5}[end]
        record = SimpleNamespace(
            controller=SimpleNamespace(q=aim), positions=aim - behind, holds_itself=end == "servo", sample=sample
        )
        return cast(Record, record)

    if isinstance(expected, str):
        with pytest.raises(EngineError, match=expected):
            runs_at(run, 8, 50)
        return
    found = runs_at(run, 8, 50)
    assert (found.bandwidth, found.slower and found.slower[0]) == (expected[0], expected[2])
    assert found.not_at == pytest.approx(expected[1], nan_ok=True)
    assert [cast(Any, one).sample for one in (found.whole, found.second)] == [0, 50]


def test_loops_that_are_not_soft_do_not_slow_the_controller() -> None:
    assert [bandwidth(2e-3, timeconst) for timeconst in (np.inf, 0.01, 0.5)] == [50, 50, 10]


def test_pybullet_holds_a_robot_that_would_fall() -> None:
    """Four bars upright, two seconds of slow motion: neglected damping would shift them by half a stroke."""
    pytest.importorskip("pybullet")
    case = next(c for c in cases_of([load("four_bar").folder / "four_bar.xml"]) if c.configuration == "vertical")
    history = engines.load("pybullet/as_is").compute_efforts(case, prescribe(case))
    assert history.as_is is not None
    assert history.as_is.following.max() < 5e-3


def test_a_servo_is_commanded_in_its_own_units(model_case: CaseMaker, tmp_path: Path) -> None:
    """A gripper with commands from 0 to 255 gets counts, not radians: it rests at the prescribed position."""
    path = flywheels(tmp_path, ["motor"])
    counts = '<general joint="motor" biastype="affine" gainprm="0.314" biasprm="0 -80 -9" ctrlrange="-255 255"/>'
    _replace(path, "<motor.*?/>", counts)
    model = as_is.compiled(model_case(path, amplitude=0.3).mechanism)
    wanted = np.array([0.25])
    data = mujoco.MjData(model)
    data.qpos[:], data.ctrl[:] = wanted, actuators(model).input_of_servo(wanted, np.zeros(1))
    mujoco.mj_forward(model, data)
    assert data.ctrl[0] == pytest.approx(0.25 * 80 / 0.314)
    assert data.actuator_force[0] == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(("kind", "reaches"), [("position", False), ("clipped", True), ("limited", True)])
def test_controls_and_forces_at_their_limits_are_counted(
    kind: str, reaches: bool, model_case: CaseMaker, tmp_path: Path
) -> None:
    _, _, record = run(model_case, flywheels(tmp_path, [kind]))
    assert list(record.at_limits) == [kind] * reaches
    assert all(count > 10 for count in record.at_limits.values())


def test_an_actuator_that_is_no_motor_or_servo_is_refused(model_case: CaseMaker, tmp_path: Path) -> None:
    path = flywheels(tmp_path, ["motor"])
    _replace(path, "<motor.*?/>", '<muscle name="biceps" tendon="motor" lengthrange="-1 1"/>')
    with pytest.raises(
        NotRepresentableError, match=r"actuator 'biceps'.*position, velocity or general.*got gain_muscle, bias_"
    ):
        run(model_case, path)


@pytest.mark.parametrize("element", ['damper joint="motor" kv="1" ctrlrange="0 1"', 'position joint="motor" kp="0"'])
def test_an_actuator_without_a_force_at_rest_is_refused(element: str, model_case: CaseMaker, tmp_path: Path) -> None:
    """The controls for an effort were divided by zero."""
    path = flywheels(tmp_path, ["motor"])
    _replace(path, "<motor.*?/>", f'<{element} name="brake"/>')
    with pytest.raises(
        NotRepresentableError, match=r"actuator 'brake': must have a force at rest .*, got gainprm 0 0 "
    ):
        run(model_case, path)


def test_two_actuators_on_a_joint_that_limits_their_sum_are_refused(model_case: CaseMaker, tmp_path: Path) -> None:
    path = flywheels(tmp_path, ["on_limited_joint"])
    _replace(path, "</actuator>", '<motor name="second" joint="on_limited_joint"/></actuator>')
    with pytest.raises(
        NotRepresentableError, match=r"must have a single actuator, because actuatorfrcrange .* got on_.*, second"
    ):
        actuators(as_is.compiled(model_case(path, amplitude=0.3).mechanism))


def digest(model: Any) -> str:
    """Checksum of all that MuJoCo keeps of a model."""
    buffer = np.empty(mujoco.mj_sizeModel(model), dtype=np.uint8)
    mujoco.mj_saveModel(model, None, buffer)
    return hashlib.sha256(buffer.tobytes()).hexdigest()


def test_nothing_of_the_file_is_changed_before_a_run_or_after_it(model_case: CaseMaker, tmp_path: Path) -> None:
    """With friction, damping, a limit and a solver setting in the file; only the case's gravity differs."""
    text = (MODELS / "four_bar.xml").read_text(encoding="utf-8")
    own = '<option iterations="7" tolerance="1e-5" cone="elliptic" impratio="3"/><worldbody>'
    text = text.replace("<worldbody>", own).replace("<joint ", '<joint frictionloss="0.03" range="-170 170" ')
    path = tmp_path / "own.xml"
    path.write_text(text, encoding="utf-8")
    case = model_case(path, configuration="vertical", amplitude=0.1)
    plain, model = mujoco.MjModel.from_xml_path(str(path)), as_is.compiled(case.mechanism)
    assert (plain.dof_frictionloss == 0.03).all()
    assert digest(model) != digest(plain)
    plain.opt.gravity[:] = case.mechanism.gravity
    assert digest(model) == digest(plain)
    motion = prescribe(case)
    as_is.simulate(as_is.plan(case.mechanism, motion.assemble(motion.t[:3])), MujocoStepper(model), 20.0)
    assert digest(model) == digest(plain)


@pytest.mark.parametrize(
    ("solref", "flag", "expected"),
    [
        ((0.05, 1), "", 0.05),
        ((0.001, 1), "", 0.004),
        ((0.001, 1), 'refsafe="disable"', 0.001),
        ((-900, -80), "", 0.025),
    ],
)
def test_the_time_constant_of_the_loops_is_the_one_in_force(
    solref: tuple[float, float], flag: str, expected: float, tmp_path: Path
) -> None:
    path = tmp_path / "pair.xml"
    path.write_text(
        f"""<mujoco><option timestep="0.002"><flag {flag}/></option><worldbody>
        <body><joint name="a"/><geom size=".1"/></body><body><joint name="b"/><geom size=".1"/></body></worldbody>
        <equality><joint joint1="a" joint2="b" solref="{solref[0]} {solref[1]}"/></equality></mujoco>"""
    )
    assert as_is.timeconst(mujoco.MjModel.from_xml_path(str(path))) == pytest.approx(expected)


def test_a_step_with_nothing_to_solve_costs_one_too(model_case: CaseMaker, tmp_path: Path) -> None:
    """Otherwise robots without constraints would have no cost, at any step."""
    assert run(model_case, flywheels(tmp_path, ["motor"]))[2].iterations == 1
    assert run(model_case, flywheels(tmp_path, ["motor"], integrator="RK4"))[2].iterations == 4


def test_a_joint_limit_that_pushes_is_logged_as_the_effort_it_stands_for(model_case: CaseMaker, tmp_path: Path) -> None:
    """A wheel against its stop: actuator and stop together change its momentum."""
    path = flywheels(tmp_path, ["motor"])
    _replace(path, 'axis="0 0 1"', 'axis="0 0 1" limited="true" range="-9 0.2"')
    _, _, record = run(model_case, path, width=10.0)
    torque = INERTIA * np.diff(record.qd[:, 0]) / record.step
    together: Array = (record.acted + record.readings[UNMODELLED])[:-1, 0]
    assert np.abs(3 * record.readings[UNMODELLED]).max() > 0.1 * np.abs(torque).max()
    np.testing.assert_allclose(3 * together, torque, atol=1e-9 * np.abs(torque).max())


def _replace(path: Path, pattern: str, text: str) -> None:
    path.write_text(re.sub(pattern, text, path.read_text(encoding="utf-8")), encoding="utf-8")


@pytest.mark.parametrize(
    "name", [name for name in engines.names() if name.endswith("/as_is") and not name.startswith("mjx/")]
)
def test_a_motion_of_a_few_steps_is_refused(name: str, prr: Case, prr_motion: Motion) -> None:
    if not engines.installed(name.split("/")[0]):
        pytest.skip(f"{name}: its engine is not installed")
    with pytest.raises(
        NotRepresentableError,
        match=r"half of the motion must last at least 15 steps for a log, got \d+ steps of .* ms",
    ):
        engines.load(name).compute_efforts(prr, prr_motion.assemble(prr_motion.t[:3]))


def test_a_drive_that_stands_still_has_no_stroke() -> None:
    """A law through equal samples moves by their last digits, which are not a motion to follow."""
    t = np.linspace(0, 1, 101)
    still = np.full(101, 0.7)
    rounded = still + np.spacing(still) * (np.arange(101) % 3)
    off = 1e-5 * np.ones((101, 2))
    aim = np.stack([rounded, np.sin(t)], axis=1)
    np.testing.assert_allclose(following(aim, aim + off)[1], 1e-5 / np.sin(1), rtol=1e-6)
    np.testing.assert_array_equal(following(aim[:, :1], aim[:, :1] + off[:, :1])[1], [0.0])
    slow = 0.7 + 1e-9 * np.stack([t], axis=1)
    np.testing.assert_allclose(following(slow, slow + 1e-9)[1], [1.0], rtol=1e-6)


def test_a_step_that_outlasts_the_motion_is_refused(prr: Case, prr_motion: Motion, tmp_path: Path) -> None:
    path = tmp_path / "slow.xml"
    shutil.copy(prr.mechanism.model.path, path)
    _replace(path, "<option ", '<option timestep="10" ')
    slow = replace(prr, mechanism=read_mechanism(ModelFile(path=path)))
    with pytest.raises(
        NotRepresentableError, match=r"half of the motion must last at least 15 steps for a log, got \d+ steps$"
    ):
        engines.load("mujoco/as_is").compute_efforts(slow, prr_motion)


def test_drives_that_lose_a_degree_of_freedom_are_refused(prr: Case, prr_motion: Motion) -> None:
    """As redundant drives at a dead centre: the remaining drives cannot hold the motion."""
    demand = Demand(effort=np.zeros(3), per_acceleration=np.eye(3), of_friction=np.zeros((3, 0)))
    demands = [demand for _ in prr_motion.t]
    demands[7] = replace(demand, per_acceleration=np.eye(3)[:, :2])
    with pytest.raises(NotRepresentableError, match=r"held drives must move \d degrees of freedom .* got 2 at 0\.07 s"):
        computed_torque(prr_motion, demands, (0, 1, 2), (0.0, 1e-3, 50), 100.0)


def test_a_law_that_may_close_loops_is_asked_at_the_samples_alone() -> None:
    """Redundant drives follow from the others; between samples they agree to the eighth digit."""
    case = representative_case(load("2pur2rpu"))
    motion = prescribe(case)
    between = (motion.t[40:50] + motion.t[41:51]) / 2
    wanted, given = motion.law(between), targets(motion, between)
    np.testing.assert_allclose(given.q, wanted.q, atol=1e-8)
    np.testing.assert_allclose(given.qd, wanted.qd, atol=1e-6)

    def law(t: Array) -> Drive:
        assert np.isin(t, motion.t).all()
        return motion.law(t)

    model = as_is.compiled(case.mechanism)
    short = replace(motion, law=law)
    record = as_is.simulate(as_is.plan(case.mechanism, short), MujocoStepper(model), 20.0, start=len(motion.t) - 3)
    assert len(record.q) > 5


def test_a_file_is_compiled_once_as_long_as_it_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run changes the options of a copy; a file that is written anew is compiled again."""
    path, compilations = tmp_path / "robot.xml", list[ModelFile]()

    def compile_counted(model: ModelFile) -> Any:
        compilations.append(model)
        return compile_model(model)

    monkeypatch.setattr(as_is, "compile_model", compile_counted)
    text = (MODELS / "four_bar.xml").read_text(encoding="utf-8")
    steps = []
    for step in ("0.001", "0.001", "0.003"):
        path.write_text(text.replace("<option ", f'<option timestep="{step}" ', 1), encoding="utf-8")
        model = as_is.compiled(read_mechanism(ModelFile(path=path)))
        steps.append(model.opt.timestep)
        model.opt.timestep = 1.0
    assert steps == [0.001, 0.001, 0.003]
    assert len(compilations) == 2


@pytest.mark.skipif(not hasattr(mujoco.MjModel, "actuator_ctrlnum"), reason="each actuator has one control")
def test_controls_are_not_counted_as_actuators(tmp_path: Path, model_case: CaseMaker) -> None:
    """The limits are those of the second actuator, every exact quantity agrees, and a simulation refuses the first."""
    path = tmp_path / "two_controls.xml"
    path.write_text(TWO_CONTROLS, encoding="utf-8")
    case = model_case(path, amplitude=0.5)
    (limit,) = case.mechanism.actuators[1].limits
    assert (limit.low, limit.high) == (-7, 3)
    motion = prescribe(case)
    assert {row["verdict"] for row in audit(case, expected_terms(case, motion), "mujoco")} == {"agree"}
    for source in ("mujoco/kkt", "mujoco/inverse"):
        effort = engines.load(source).compute_efforts(case, motion).effort
        np.testing.assert_allclose(effort, motion.qdd * [0.4, 0.2], rtol=0, atol=1e-14)
    with pytest.raises(NotRepresentableError, match="actuator 'servo': force must be affine"):
        engines.load("mujoco/as_is").compute_efforts(case, motion)
