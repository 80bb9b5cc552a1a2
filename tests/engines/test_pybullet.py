"""PyBullet's routes against the reference on all sorts of mechanisms, and its Jacobians against its own poses."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pybullet", reason="pybullet is not installed: it has wheels for Python 3.10 and 3.11 alone")

from loopcheck import engines
from loopcheck.analytic.kinematics.closures import closure_residual
from loopcheck.analytic.kinematics.tree import poses
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.pybullet import _as_is
from loopcheck.engines.pybullet._jacobian import closure_bias
from loopcheck.engines.pybullet._world import opened
from loopcheck.engines.pybullet.simulation import PybulletRobot
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import EffortHistory
from loopcheck.robots.errors import EngineError, NotRepresentableError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, Robot, load, make_case, representative_case
from loopcheck.validation.common.tolerances import registered
from tests.conftest import MODELS, CaseMaker
from tests.engines.mechanisms import PLAIN_FOUR_BAR, Own, reference
from tests.errors import relative_error
from tests.faults.adapters import set_to


@pytest.fixture(autouse=True)
def pybullet() -> Any:
    return pytest.importorskip("pybullet")


@cache
def case_3prr(key: tuple[str, str, str]) -> tuple[Case, Motion]:
    variant, mode, configuration = key
    case = make_case(load("3prr"), variant=variant, mode=mode, configuration=configuration)
    return case, prescribe(case)


def run(route: str, case: Case, motion: Motion) -> EffortHistory:
    return engines.load(f"pybullet/{route}").compute_efforts(case, motion)


def test_a_run_as_it_comes_changes_no_setting_of_solver_or_links(
    pybullet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Except for the report of the iterations; before every step, settings are those of a new connection."""
    fresh = pybullet.connect(pybullet.DIRECT)
    defaults = pybullet.getPhysicsEngineParameters(physicsClientId=fresh)
    pybullet.disconnect(fresh)
    defaults = {name: value for name, value in defaults.items() if not name.startswith("gravity")}
    seen, set_parameters, push = [], pybullet.setPhysicsEngineParameter, PybulletRobot.push

    def set_report(*, physicsClientId: int, reportSolverAnalytics: int) -> None:
        set_parameters(reportSolverAnalytics=reportSolverAnalytics, physicsClientId=physicsClientId)

    def no_change(*arguments: Any, **named: Any) -> None:
        raise AssertionError(named)

    def pushed(robot: PybulletRobot, force: Array) -> None:
        seen.append(pybullet.getPhysicsEngineParameters(physicsClientId=robot.world.client))
        push(robot, force)

    monkeypatch.setattr(pybullet, "setPhysicsEngineParameter", set_report)
    monkeypatch.setattr(pybullet, "changeDynamics", no_change)
    monkeypatch.setattr(PybulletRobot, "push", pushed)
    case, motion = case_3prr(("default", "plus", "vertical"))
    start = motion.assemble(motion.t[:4])
    record = _as_is.simulate(case.mechanism, start, _as_is.demands(case.mechanism, start))
    assert len(seen) > 3
    for settings in seen:
        assert {name: settings[name] for name in defaults} == defaults
    # a torque that is commanded is not reported; it is the reaction at the first bodies, whose slides bear nothing else
    assert not record.readings["reported"].any()
    np.testing.assert_allclose(record.readings["reaction"], record.readings["commanded"], rtol=1e-6)


def test_loops_drawn_together_by_a_fifth_stay_wider_open() -> None:
    case, motion = case_3prr(("default", "plus", "vertical"))
    start = motion.assemble(motion.t[:4])
    right, loose = (
        source.compute_efforts(case, start).closure_drift
        for source in (engines.load("pybullet/forward"), set_to("pybullet/forward", erp=0.2))
    )
    assert right is not None
    assert loose is not None
    assert loose.length > 2 * right.length


@pytest.mark.parametrize("rate", [0.0, 1e-323, 1e-170])
def test_a_velocity_whose_square_is_no_number_has_no_bias(rate: float) -> None:
    """As for a start at rest, displaced by two units in the last place."""
    case, motion = case_3prr(("default", "plus", "vertical"))
    with opened(case.mechanism) as world:
        bias = closure_bias(world, motion.q[0], np.full(case.mechanism.nv, rate))
    assert not bias.any()


def test_a_plain_four_bar_agrees(tmp_path: Path) -> None:
    """With a hundredth of the limit to spare: it was 9e-6 off while the solver stopped at changes of 1e-12."""
    path = tmp_path / "plain.xml"
    path.write_text(PLAIN_FOUR_BAR, encoding="utf-8")
    robot = Robot(name="plain", folder=tmp_path, title="", mjcf=path.name, source="test")
    case = make_case(robot, variant="default", mode="home", configuration="vertical")
    motion = prescribe(case)
    error = relative_error(run("forward", case, motion).effort, reference(case, motion))
    assert error < (registered()["pybullet/forward"].relative_error or 0) / 20


def test_finer_steps_are_added_until_the_efforts_are_settled() -> None:
    from loopcheck.engines.pybullet.routes.forward import OWN, PybulletForward

    case = representative_case(load("four_bar"))
    motion = prescribe(case)
    fixed = PybulletForward(replace(OWN, settled=np.inf)).compute_efforts(case, motion)
    added, refined = (route.compute_efforts(case, motion) for route in (PybulletForward(), PybulletForward().refined()))
    assert [round(motion.dt / rung.dt) for rung in fixed.ladder] == [2, 4, 8, 16]
    assert [round(motion.dt / rung.dt) for rung in added.ladder] == [2, 4, 8, 16, 32]
    assert [round(motion.dt / rung.dt) for rung in refined.ladder] == [4, 8, 16, 32, 64]
    wanted = reference(case, motion)
    assert relative_error(added.effort, wanted) < relative_error(fixed.effort, wanted) / 30


@pytest.mark.parametrize("name", ["four_bar", "welded_four_bar", "geared_pair"])
def test_opening_of_loops_is_that_of_the_mechanism(model_case: CaseMaker, name: str) -> None:
    from loopcheck.engines.pybullet._equations import set_state
    from loopcheck.engines.pybullet._loops import opening
    from loopcheck.engines.pybullet._world import inertial_poses, joint_state, opened

    mechanism = model_case(MODELS / f"{name}.xml").mechanism
    open_poses = np.random.default_rng(4).uniform(-0.3, 0.3, (3, mechanism.nq)) + mechanism.rest_position
    found = []
    with opened(mechanism) as world:
        for q in open_poses:
            set_state(world, q, np.zeros(mechanism.nv))
            found.append((joint_state(world)[0], inertial_poses(world)))
        measured = opening(world, *(np.array(values) for values in zip(*found, strict=True)))
    phi = closure_residual(mechanism, poses(mechanism, open_poses), open_poses)
    apart, turned = np.linalg.norm(phi[:, :3], axis=1), np.linalg.norm(phi[:, 3:], axis=1)  # the sine of the angle
    assert measured == pytest.approx((apart.max(), np.arcsin(turned).max()), rel=1e-12)


@pytest.mark.parametrize("spoilt", ["mass", "localInertiaDiagonal"])
def test_a_millionth_more_mass_or_inertia_is_noticed(own: Own, pybullet: Any, spoilt: str) -> None:
    from loopcheck.engines.pybullet._world import opened, want_as_given

    with opened(own("five_bar").mechanism) as world:
        link, where = world.links[2], {"physicsClientId": world.client}
        info = pybullet.getDynamicsInfo(world.tree, link, **where)
        given = {"mass": info[0], "localInertiaDiagonal": np.array(info[2])}
        given[spoilt] *= 1 + 1e-6
        for name, value in given.items():  # the inertia last: a new mass takes it away
            pybullet.changeDynamics(world.tree, link, **{name: value}, **where)
        with pytest.raises(NotRepresentableError, match="pybullet: body 'right': loaded mass must be"):
            want_as_given(world)


def test_what_pybullet_raises_becomes_an_engine_error(own: Own, pybullet: Any) -> None:
    from loopcheck.engines.pybullet._world import opened

    with pytest.raises(EngineError, match="pybullet: "), opened(own("to_world").mechanism) as world:
        pybullet.getJointInfo(world.tree, 99, physicsClientId=world.client)


def test_a_belt_on_a_light_pulley_with_a_rotor_keeps_its_ratio(model_case: CaseMaker, tmp_path: Path) -> None:
    """A sweep of the solver leaves .84 of the error of two gears on this pulley; the belt is swept last."""
    pulley = """<body pos="{0} .05 0"><joint name="{1}" axis="0 1 0"{2}/>
        <inertial pos="{3} 0 0" mass="{4}" diaginertia="{5}"/></body>"""
    path = tmp_path / "belt.xml"
    path.write_text(
        f"""<mujoco><worldbody><body><joint name="arm" axis="0 1 0"/>
        <inertial pos=".2 0 0" mass="1" diaginertia="2e-4 .014 .014"/>
        {pulley.format(0, "light", ' armature=".002"', 0, 0.3, "2e-4 3.75e-4 2e-4")}
        {pulley.format(0.4, "heavy", "", 0.08, 0.8, "3e-4 .0064 .0062")}</body></worldbody>
        <equality><joint joint1="heavy" joint2="light" polycoef="0 2 0 0 0"/></equality>
        <actuator><motor name="arm" joint="arm"/><motor name="light" joint="light"/></actuator></mujoco>""",
        encoding="utf-8",
    )
    case = model_case(path, amplitude=0.3)
    history = run("as_is", case, prescribe(case))
    assert history.closure_drift is not None
    assert history.closure_drift.angle < 1e-4  # 0.01 with the belt swept first
