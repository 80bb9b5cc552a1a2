"""MuJoCo's routes on mechanisms no robot of the catalogue covers, and the facts their recipes rest on."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.extrapolation import value_at_zero
from loopcheck.engines.mujoco._clock import CLOCK, add_clock, frozen_targets, moving_targets
from loopcheck.engines.mujoco._compliance import Run, choose, each_once
from loopcheck.engines.mujoco.model import build, driven, gearing
from loopcheck.engines.mujoco.routes import forward
from loopcheck.engines.mujoco.routes.forward import MujocoForward, Settings
from loopcheck.engines.mujoco.routes.kkt import KKT
from loopcheck.engines.mujoco.wrenches import READINGS, wrenches
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation, EffortHistory, Source
from loopcheck.robots.errors import EngineError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Coordinate
from loopcheck.robots.motion import Drive, Motion
from loopcheck.robots.robot import Case, load, representative_case
from loopcheck.validation.common.tolerances import registered
from tests.conftest import MODELS, CaseMaker
from tests.engines.mechanisms import FEET, PLAIN_FOUR_BAR, Own
from tests.errors import relative_error

mujoco = pytest.importorskip("mujoco")


def test_a_curved_joint_equality_is_named_as_what_mujoco_lets_drift(model_case: CaseMaker) -> None:
    case = model_case(MODELS / "geared_pair.xml", configuration="vertical", amplitude=0.1)
    motion = prescribe(case)
    history = MujocoForward(Settings(steps=(5e-3,))).compute_efforts(case, motion)
    assert relative_error(history.effort, Noc().compute_efforts(case, motion).effort) > 1e-3
    curved = [part for part in history.note.split("; ") if "curvature of the polynomial" in part]
    names = re.findall(r'<joint name="(\w+)"[^>]* polycoef', (MODELS / "geared_pair.xml").read_text(encoding="utf-8"))
    assert len(names) == 1
    assert len(curved) == 1
    assert names[0] in curved[0]


@pytest.mark.parametrize("route", [KKT, MujocoForward(Settings(steps=(1e-2,)))])
def test_a_gear_that_is_misread_does_not_reach_mujoco(route: Source, prr: Case, prr_motion: Motion) -> None:
    """Efforts pass through the engine's own transmission, so that a gear of ours that is wrong shows in them."""
    first, *others = prr.mechanism.actuators
    misread = replace(prr.mechanism, actuators=(replace(first, gear=2 * first.gear), *others))
    right, wrong = (route.compute_efforts(case, prr_motion) for case in (prr, replace(prr, mechanism=misread)))
    np.testing.assert_allclose(wrong.effort, right.effort, rtol=1e-12)
    assert np.abs(right.effort[:, 0]).max() > 1


def test_a_drive_of_nothing_that_an_actuator_moves_gives_no_effort(prr: Case) -> None:
    first, *others = prr.mechanism.actuators
    name = "q4"  # a passive hinge
    passive = Coordinate(name=name, joints=([j.name for j in prr.mechanism.joints].index(name),), weights=np.ones(1))
    misread = replace(prr.mechanism, actuators=(replace(first, coordinate=passive), *others))
    np.testing.assert_array_equal(gearing(driven(misread, misread.drives, timed=True), 3), np.diag([0.0, 1.0, 1.0]))


def test_softness_is_first_order_and_extrapolated_away(prr: Case, prr_motion: Motion) -> None:
    reference = Noc().compute_efforts(prr, prr_motion).effort
    settings = [forward.Settings(steps=(2.5e-3,), compliances=(c,)) for c in (0.1, 0.2)]
    soft = [MujocoForward(s).compute_efforts(prr, prr_motion).effort - reference for s in settings]
    assert np.abs(soft[1]).max() / np.abs(soft[0]).max() == pytest.approx(2, rel=0.01)
    assert np.abs(2 * soft[0] - soft[1]).max() < np.abs(soft[0]).max() / 1000


def test_constraints_are_as_hard_as_a_light_link_needs(own: Own) -> None:
    """A coupler of half a gram moves a rocker of 50 kg: at compliances of 1e-3 and 2e-3 the error is not linear."""
    light = PLAIN_FOUR_BAR.replace('-0.3484"/>', '-0.3484" mass="5e-4"/>', 1)
    case = own("light", light.replace('-0.4369"/>', '-0.4369" mass="50"/>'))
    motion = prescribe(case)
    wanted = Noc().compute_efforts(case, motion).effort
    fixed, found = (MujocoForward(s).compute_efforts(case, motion) for s in (Settings(), forward.OWN))
    assert relative_error(found.effort, wanted) < relative_error(fixed.effort, wanted) / 30
    assert found.closure_drift
    assert fixed.closure_drift
    assert found.closure_drift.length < fixed.closure_drift.length / 10
    assert "times 1e-05 and 2e-05" in found.settings["compliance"]
    assert "file close only" not in found.note


def test_an_ordinary_robot_keeps_the_compliances(prr_forward: EffortHistory) -> None:
    assert "times 0.001 and 0.002" in prr_forward.settings["compliance"]
    assert "doubled compliance" not in prr_forward.note


@pytest.mark.parametrize("truncation", [97, 1.9e3])
def test_a_step_that_is_too_long_is_not_taken_for_soft_constraints(truncation: float) -> None:
    """An error of the step grows with the stiffness: at the coarsest steps softer loops change the efforts less.

    The first figures are those of a humanoid of the atlas with drives too soft to follow the motion.
    """

    def simulated(dt: float, compliance: float) -> Run:
        effort = 1 + compliance + 4e-5 * compliance**2 + truncation * dt**4 / compliance
        off = Deviation(angle=1.6e-3 * compliance)
        return Run(effort=np.array([[effort]]), closure_drift=Deviation(), tracking_error=off, wall_time=0.0)

    steps, limits = (1.25e-3, 6.25e-4, 3.125e-4, 1.5625e-4), registered()["mujoco/forward"]
    chosen = choose((1e-3, 2e-3), simulated, steps, size=1.0).compliances
    runs = [simulated(steps[-1], compliance) for compliance in chosen]
    assert limits.relative_error
    assert limits.tracking_error
    assert abs(value_at_zero(chosen, [run.effort for run in runs]).item() - 1) < limits.relative_error
    assert max(run.tracking_error.angle for run in runs) < limits.tracking_error


def test_finer_steps_are_added_until_the_efforts_are_settled(prr: Case, prr_motion: Motion) -> None:
    wanted = Noc().compute_efforts(prr, prr_motion).effort
    coarse = Settings(steps=(1e-2, 5e-3))
    errors = {}
    for settled in (np.inf, 1e-8, 0.0):
        history = MujocoForward(replace(coarse, settled=settled)).compute_efforts(prr, prr_motion)
        errors[len(history.ladder)] = relative_error(history.effort, wanted)
        assert f"{1e3 * history.ladder[-1].dt:g} ms" in history.settings["steps"]
    assert list(errors) == [2, 3, 4]
    assert errors[2] > 1e-8 > errors[3]
    assert errors[2] > 8 * errors[3]
    assert errors[3] > 1.5 * errors[4]  # 2e-10 to 1e-9, by round-off alone


def test_loops_that_the_model_closes_only_so_far_are_named(own: Own) -> None:
    """A hinge out of line by 2e-6 rad: two points of the coupler cannot both reach their places."""
    text = PLAIN_FOUR_BAR.replace('pos="0.566 0 0"', 'pos="0.566 0 0" euler="1e-4 0 1e-4"')
    beside = '<connect name="beside" body1="coupler" body2="rocker" anchor="0.1538 0.1 -0.3484"/></equality>'
    case = own("crooked", text.replace("</equality>", beside))
    motion = prescribe(case)
    wanted = Noc().compute_efforts(case, motion).effort
    fixed, found = (MujocoForward(s).compute_efforts(case, motion) for s in (Settings(), forward.OWN))
    assert relative_error(found.effort, wanted) < relative_error(fixed.effort, wanted) / 3
    assert "the loops of the file close only to" in found.note


@pytest.mark.parametrize("integrator", forward.MJ_STEP)
def test_the_integrators_are_those_of_mj_step(integrator: str) -> None:
    """A forward computation and the quantities in the table continue exactly as `mj_step`."""
    robot = load("3prr")
    model = mujoco.MjModel.from_xml_path(str(robot.folder / robot.mjcf))
    model.opt.gravity[:] = (0, -9.81, 0)
    model.opt.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator.upper()}")
    ours, theirs = mujoco.MjData(model), mujoco.MjData(model)
    for data in (ours, theirs):
        mujoco.mj_resetDataKeyframe(model, data, 0)
    for _ in range(20):
        mujoco.mj_step(model, theirs)
        mujoco.mj_forward(model, ours)
        forward.MJ_STEP[integrator](model, ours)
    assert np.abs(theirs.qvel).max() > 1e-3
    np.testing.assert_array_equal(ours.qpos, theirs.qpos)
    np.testing.assert_array_equal(ours.qvel, theirs.qvel)


def test_a_simulation_that_diverges_is_an_error(prr: Case, prr_motion: Motion) -> None:
    """The sliders are sent off at once: the drives cannot hold them, and MuJoCo's warning becomes an error."""

    def law(t: np.ndarray) -> Drive:
        wild = 1e12 * np.sin(1e6 * t)[:, None] * np.ones(3)
        return Drive(q=prr_motion.law(t).q, qd=wild, qdd=1e6 * wild)

    with pytest.raises(EngineError, match="mujoco/forward"):
        MujocoForward().compute_efforts(prr, replace(prr_motion, law=law))


def test_a_simulation_does_not_depend_on_the_one_before(prr: Case, prr_motion: Motion) -> None:
    """All simulations of a route use the same memory and copies of a model."""
    alone, after = (
        MujocoForward(Settings(steps=steps, compliances=(1e-3,))).compute_efforts(prr, prr_motion).ladder[-1]
        for steps in ((5e-3,), (1e-2, 5e-3))
    )
    np.testing.assert_array_equal(after.effort, alone.effort)
    assert (after.closure_drift, after.tracking_error) == (alone.closure_drift, alone.tracking_error)


def test_a_diverged_simulation_is_not_repeated() -> None:
    run = Run(effort=np.zeros((1, 1)), closure_drift=Deviation(), tracking_error=Deviation(), wall_time=0.0)
    calls: list[tuple[float, float]] = []

    def simulated(dt: float, compliance: float) -> Run:
        calls.append((dt, compliance))
        if dt > 1e-3:
            raise EngineError("diverged")
        return run

    once = each_once(simulated)
    for _ in range(2):
        with pytest.raises(EngineError, match="diverged"):
            once(2e-3, 1.0)
        assert once(1e-3, 1.0) is run
    assert calls == [(2e-3, 1.0), (1e-3, 1.0)]


@pytest.mark.parametrize(("longest", "change", "levels"), [(1e-2, 0.3, 4), (1.25e-3, 0.0, 2), (1.25e-3, 0.3, 0)])
def test_efforts_that_do_not_converge_below_steps_that_diverge_are_no_answer(
    monkeypatch: pytest.MonkeyPatch, prr: Case, prr_motion: Motion, longest: float, change: float, levels: int
) -> None:
    """Shorter steps replace those that diverge; the change between two steps is that of a simulation in chaos."""
    simulated: list[tuple[float, tuple[float, ...]]] = []

    def simulate(robot: object, motion: Motion, drive: Drive, dt: float, settings: Settings) -> Run:
        simulated.append((dt, settings.compliances))
        if dt > longest:
            raise EngineError("diverged")
        effort = np.full((len(motion.t), 3), 1 + change * (np.log2(dt) % 2))
        return Run(effort=effort, closure_drift=Deviation(), tracking_error=Deviation(), wall_time=0.0)

    monkeypatch.setattr(forward, "_simulate", simulate)
    if not levels:
        with pytest.raises(EngineError, match="must converge with the step, but the simulation diverges at longer"):
            MujocoForward().compute_efforts(prr, prr_motion)
    else:
        ladder = MujocoForward().compute_efforts(prr, prr_motion).ladder
        assert [rung.dt for rung in ladder[:levels]] == [longest / 2**k for k in range(levels)]
    assert len(set(simulated)) == len(simulated)


@pytest.mark.parametrize("name", ["spinning_rod", "floating_rotors"])
def test_no_effort_is_left_where_nothing_drives(name: str, model_case: CaseMaker) -> None:
    """MuJoCo's forward dynamics with the efforts, its constraints nearly rigid, gives the same accelerations."""
    case = model_case(MODELS / f"{name}.xml", amplitude=0.1, duration=0.5)
    motion = prescribe(case)
    effort = Noc().compute_efforts(case, motion).effort
    model = _rigid(case)
    data = mujoco.MjData(model)
    for k in (0, len(motion.t) // 2, len(motion.t) - 1):
        data.qpos[:], data.qvel[:], data.ctrl[:] = motion.q[k], motion.qd[k], effort[k]
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(data.qacc, motion.qdd[k], atol=1e-4 * np.abs(motion.qdd).max())


@pytest.mark.parametrize("mode", ["plus", "minus"])
def test_the_model_opens_and_simulates_as_it_is(mode: str) -> None:
    """As in MuJoCo's viewer: from its keyframe the loops stay closed while the robot falls."""
    robot = load("3prr")
    model = mujoco.MjModel.from_xml_path(str(robot.folder / robot.mjcf))
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, model.key(mode).id)
    model.opt.gravity[:] = (0, -9.81, 0)
    for _ in range(200):
        mujoco.mj_step(model, data)
    assert not any(warning.number for warning in data.warning)
    assert np.abs(data.efc_pos[: data.nefc]).max() < 0.01
    assert np.abs(data.qvel).max() > 0.1


def _limit(source: str) -> float:
    return registered()[source].relative_error or 0.0


@pytest.fixture(scope="module")
def prr_forward(prr: Case, prr_motion: Motion) -> EffortHistory:
    return MujocoForward().compute_efforts(prr, prr_motion)


def _rigid(case: Case):  # type: ignore[no-untyped-def]
    model = mujoco.MjModel.from_xml_path(str(case.mechanism.model.path))
    model.opt.gravity[:] = case.mechanism.gravity
    model.opt.tolerance, model.opt.iterations = 0.0, 200
    model.eq_solimp[:] = (0.9999, 0.9999, 0.001, 0.5, 1.0)
    model.body_invweight0[:] *= 1e-4
    return model


PENDULUM = """
<mujoco><option integrator="RK4" tolerance="0"/><worldbody><body>
  <joint name="q" axis="0 1 0"/><inertial pos="0 0 -1" mass="2" diaginertia="0.1 0.1 0.1"/>
</body></worldbody><equality>
  <joint joint1="q" solref="-100 -20" solimp="0.9999 0.9999 0.001 0.5 1"/>
</equality></mujoco>"""


@pytest.mark.parametrize(("moves", "order", "most"), [(True, 4, 1e-4), (False, 1, 0.2)])
def test_targets_that_move_with_the_clock_keep_the_order_of_mj_step(*, moves: bool, order: float, most: float) -> None:
    """The torque that swings a pendulum, 2.1 kg m² q̈ + 2 kg g sin q, by mj_step's RK4; it gives a ten-thousandth."""
    found, error = zip(*(_torque_of_pendulum(dt, moves=moves) for dt in (0.04, 0.02, 0.01)), strict=True)
    coarse, fine = (np.abs(found[k] - found[k + 1][::2]).max() for k in (0, 1))
    assert np.log2(coarse / fine) == pytest.approx(order, abs=0.3)
    assert error[-1] < most


def _torque_of_pendulum(dt: float, *, moves: bool) -> tuple[Array, float]:
    """Torque over time that holds a pendulum to a swing [N m], and its largest error relative to the peak [-]."""
    spec = mujoco.MjSpec.from_string(PENDULUM)
    add_clock(spec)
    spec.equalities[0].name2 = CLOCK
    model = spec.compile()
    model.opt.timestep = dt
    data = mujoco.MjData(model)
    t = np.arange(2 / dt + 1) * dt / 2
    x, v, a = 0.5 * np.sin(2 * t), np.cos(2 * t), -2 * np.sin(2 * t)
    data.qvel[:] = v[0], 1
    mujoco.mj_forward(model, data)
    K, B, impedance, _ = data.efc_KBIP.ravel()
    wanted, feedback = (a + B * v + K * impedance * x)[:, None], np.array([K * impedance, B])
    found = []
    for target in moving_targets(wanted, feedback, dt) if moves else frozen_targets(wanted, feedback):
        model.eq_data[0, :3], data.qpos[1] = target[0], 0
        mujoco.mj_forward(model, data)
        found.append(data.efc_force[0])
        mujoco.mj_step(model, data)
    exact = 2.1 * a + 2 * 9.81 * np.sin(x)
    return np.array(found), float(np.abs(found - exact[::2]).max() / np.abs(exact).max())


def test_no_effort_moves_the_clock(model_case: CaseMaker, tmp_path: Path) -> None:
    """Not those of a four-bar of 290,000 tonnes: they act on the clock with the rates of their targets."""
    path = tmp_path / "heavy.xml"
    text = (MODELS / "four_bar.xml").read_text(encoding="utf-8")
    path.write_text(re.sub(r' mass="([0-9.]+)"', r' mass="\1e8"', text), encoding="utf-8")
    case = model_case(path, configuration="vertical", amplitude=0.2)
    motion = prescribe(case)
    reference = Noc().compute_efforts(case, motion).effort
    assert np.abs(reference).max() > 1e7
    assert relative_error(MujocoForward().compute_efforts(case, motion).effort, reference) < 1e-9


def test_the_clock_leaves_the_solver_its_tolerance(prr: Case, prr_motion: Motion) -> None:
    """MuJoCo's tolerance is relative to the inertia of the moving bodies, dominated by the clock."""
    reference = Noc().compute_efforts(prr, prr_motion).effort
    coarse = MujocoForward(Settings(tolerance=1e-8, steps=(5e-3,))).compute_efforts(prr, prr_motion)
    assert relative_error(coarse.effort, reference) < 1e-7


def test_a_file_with_the_integrator_discrete_is_simulated_exactly(model_case: CaseMaker, tmp_path: Path) -> None:
    """Under `discrete`, `mj_forward` solves for the change of a step, so the file's integrator must not be in force."""
    if not hasattr(mujoco.mjtIntegrator, "mjINT_DISCRETE"):
        pytest.skip("this MuJoCo has no discrete integrator")
    path = tmp_path / "discrete.xml"
    text = PLAIN_FOUR_BAR.replace("<worldbody>", '<option integrator="discrete" timestep="0.005"/><worldbody>')
    path.write_text(text.replace("<joint ", '<joint damping="0.3" '), encoding="utf-8")
    case = model_case(path)
    motion = prescribe(case)
    effort, reference = (one.compute_efforts(case, motion).effort for one in (MujocoForward(), Noc()))
    limit = registered()["mujoco/forward"].relative_error
    assert limit is not None
    assert relative_error(effort, reference) < limit


def test_a_loop_that_does_not_act_has_no_reading() -> None:
    """Not a force of zero."""
    four_bar = representative_case(load("four_bar"))
    model = build(four_bar.mechanism)
    data = mujoco.MjData(model)
    data.qpos[:] = four_bar.guess
    for is_active in (True, False):
        data.eq_active[:] = is_active
        mujoco.mj_forward(model, data)
        closure = wrenches(four_bar.mechanism, model, data)["efc_force"][-1]
        assert np.isfinite(closure).all() == is_active
        assert np.isnan(closure).all() != is_active


@pytest.mark.parametrize(
    "ends",
    [
        'body1="world" body2="foot" anchor="0.1 0.2 0.3" torquescale="3"',
        'body1="foot" body2="crank" relpose="0.1 0.2 0.3 1 2 -3 4"',
        'site1="sole" site2="ground" torquescale="0.2"',
        'site1="ground" site2="sole"',
    ],
)
def test_the_wrench_of_a_weld_has_its_generalized_forces(ends: str, tmp_path: Path) -> None:
    """In an open pose, by MuJoCo's own Jacobians of both bodies, at whose points it acts in opposite directions."""
    (tmp_path / "feet.xml").write_text(FEET.format(f"<weld {ends}/>"), encoding="utf-8")
    mechanism = read_mechanism(ModelFile(path=tmp_path / "feet.xml"))
    model, (weld,) = build(mechanism), mechanism.rigid_closures
    data, force = mujoco.MjData(model), np.zeros(model.nv)
    data.qpos[:], data.qvel[:] = np.sin(np.arange(model.nq)), np.cos(np.arange(model.nv))
    mujoco.mj_forward(model, data)
    turns = data.xmat.reshape(-1, 3, 3)
    read = wrenches(mechanism, model, data)["efc_force"][-1].reshape(2, 3)
    wrench = read @ turns[weld.body1 + 1].T
    for sign, body, point in ((1, weld.body1 + 1, weld.point1), (-1, weld.body2 + 1, weld.point2)):
        place = data.xpos[body] + turns[body] @ point
        mujoco.mj_applyFT(model, data, sign * wrench[1], sign * wrench[0], place, body, force)
    if "site" not in ends:  # the code of the page
        shown = {"mujoco": mujoco, "np": np, "model": model, "data": data, "equality": 0}
        exec(READINGS[1].code, shown | {"body1": weld.body1 + 1, "body2": weld.body2 + 1}, shown)
        np.testing.assert_allclose([shown["moment"], shown["force"]], read)
    assert np.abs(data.qfrc_constraint).min() > 1e-3
    np.testing.assert_allclose(force, data.qfrc_constraint, rtol=0, atol=1e-12 * np.abs(wrench).max())
