"""Constant external wrenches: every source adds the same efforts, equal to their virtual work."""

from dataclasses import replace

import numpy as np
import pytest

from loopcheck.analytic.dynamics.lagrange import lagrange_model
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.kinematics.tree import poses, rotation_about
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.mujoco.routes.inverse import MujocoInverse
from loopcheck.engines.mujoco.routes.kkt import KKT
from loopcheck.robots.errors import NotFoundError, ShapeError
from loopcheck.robots.mechanism import ConnectClosure, Wrench
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, Robot, load, make_case
from tests.conftest import MODELS, CaseMaker
from tests.errors import relative_error

POINT, MOMENT, FORCE = np.array([0.1, -0.05, 0.2]), np.array([0.3, -0.5, 0.4]), np.array([3.0, 2.0, -4.0])


@pytest.fixture(scope="module")
def loaded(model_case: CaseMaker) -> Case:
    """A spatial slider-crank with a load on its rod, off the mass centre."""
    case = model_case(MODELS / "ball_and_universal.xml", configuration="vertical", amplitude=0.1)
    return replace(case, mechanism=replace(case.mechanism, wrenches=(_wrench(1),)))


@pytest.fixture(scope="module")
def motion(loaded: Case) -> Motion:
    return prescribe(loaded)


def test_generalized_force_is_virtual_work_by_finite_differences(loaded: Case, motion: Motion) -> None:
    """Every dof alone displaced; the moment's work from the turn of the body, by Rodrigues' formula."""
    mechanism, q, h = loaded.mechanism, motion.q[10:11], 1e-6
    wrench = mechanism.wrenches[0]
    load_ = lagrange_model(mechanism, q, motion.qd[10:11]).load[0]
    at = poses(mechanism, q)
    slide = next(k for k, joint in enumerate(mechanism.joints) if joint.kind == "hinge")
    moved = [q.copy(), q.copy()]
    for sign, x in zip((1, -1), moved, strict=True):
        x[0, mechanism.q_slices[slide]] += sign * h
    ahead, behind = (poses(mechanism, x) for x in moved)
    points = [(there.p[0, wrench.body] + there.R[0, wrench.body] @ wrench.point) for there in (ahead, behind)]
    turn = ahead.R[0, wrench.body] @ behind.R[0, wrench.body].T
    axis = at.axes[0, mechanism.dof_slices[slide].start]
    np.testing.assert_allclose(turn, rotation_about(axis, np.array([2 * h]))[0], atol=1e-12)
    work = (points[0] - points[1]) @ wrench.force / (2 * h) + axis @ wrench.moment
    np.testing.assert_allclose(load_[mechanism.dof_slices[slide].start], work, rtol=1e-7)


def test_a_wrench_on_an_open_chain_is_what_inverse_dynamics_needs_less(model_case: CaseMaker) -> None:
    """`mj_inverse` is right without loops: there it carries the wrench too."""
    case = model_case(MODELS / "pendulum_tree.xml", amplitude=0.1)
    assert not any(isinstance(closure, ConnectClosure) for closure in case.mechanism.closures)
    case = replace(case, mechanism=replace(case.mechanism, wrenches=(_wrench(0),)))
    motion = prescribe(case)
    noc = Noc().compute_efforts(case, motion).effort
    assert relative_error(MujocoInverse().compute_efforts(case, motion).effort, noc) < 1e-11


@pytest.mark.parametrize(("left_out", "cost"), [("moment", (0.03, 0.1)), ("force", (0.06, 0.18))])
@pytest.mark.parametrize("name", ["6spu", "6x6r"])
def test_what_leaving_it_out_costs(name: str, left_out: str, cost: tuple[float, float]) -> None:
    """An engine that drops half of the wrench is far outside of every limit."""
    for configuration in ("horizontal", "vertical"):
        case = make_case(load(name), variant="default", mode="home", configuration=configuration)
        motion = prescribe(case, dt=0.1)
        (wrench,) = case.mechanism.wrenches
        none = np.zeros(3)
        kept = replace(wrench, moment=none) if left_out == "moment" else replace(wrench, force=none)
        half = replace(case.mechanism, wrenches=(kept,))
        reference = Noc().compute_efforts(case, motion).effort
        effort = KKT.compute_efforts(replace(case, mechanism=half), motion).effort
        error = np.abs(effort - reference).max() / np.abs(reference).max()
        assert cost[0] < error < cost[1]


def test_robot_toml_names_the_body(tmp_path) -> None:  # type: ignore[no-untyped-def]
    robot = load("3prr").model_dump()
    wrench = {"body": "platform", "point": [0.1, 0, 0], "force": [1, 2, 3]}
    mechanism = Robot(**{**robot, "wrenches": [wrench]}).mechanism()
    (found,) = mechanism.wrenches
    assert mechanism.bodies[found.body].name == "platform"
    np.testing.assert_array_equal(found.moment, np.zeros(3))
    with pytest.raises(NotFoundError, match=r"unknown body of 3prr.xml: 'plate'. Known: slider1"):
        Robot(**{**robot, "wrenches": [{**wrench, "body": "plate"}]}).mechanism()


def test_a_wrench_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(ShapeError, match="external wrench, force: numbers must be finite"):
        Wrench(body=0, point=POINT, moment=MOMENT, force=np.array([0.0, np.nan, 0.0]))


def _wrench(body: int) -> Wrench:
    return Wrench(body=body, point=POINT, moment=MOMENT, force=FORCE)
