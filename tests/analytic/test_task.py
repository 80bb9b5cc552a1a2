"""Task coordinates: the path of the platform, the rates of the joints along it, and the efforts on it."""

import numpy as np
import pytest

from loopcheck.analytic.dynamics.noc import Noc, noc_model
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import poses
from loopcheck.analytic.motion.jets import Jet
from loopcheck.analytic.motion.laws import prescription, task
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.motion.task import Coordinate, Task, coordinates_of_platform, task_efforts
from loopcheck.analytic.papers import wang2019
from loopcheck.robots.arrays import Array
from loopcheck.robots.robot import Case, load, make_case

MODES = {"3rrr": "pmp"}
PLATFORM = ("px", "py", "pz", "phi", "theta", "psi")
"""Joints of the six-legged models that are the task coordinates themselves."""


DT = {"6spu": 0.2, "6x6r": 0.2, "2pur2rpu": 0.5, "3rrr": 0.1, "2t1r": 0.05}
"""Step of the grid [s]."""


def _case(name: str) -> tuple[Case, Task]:
    case = make_case(load(name), variant="default", mode=MODES.get(name, "home"), configuration="vertical")
    law = task(case)
    assert law is not None
    return case, law


def _joints_at(law: Task, x: Array) -> Array:
    still = np.zeros(x.shape[0])
    return law.inverse([Jet(column, still, still) for column in x.T]).q


@pytest.mark.parametrize("name", ["2pur2rpu", "2t1r", "3rrr", "6spu", "6x6r"])
def test_rates_of_the_joints_per_rate_of_the_task(name: str) -> None:
    case, law = _case(name)
    t = np.linspace(*prescription(case).span, 21)
    x = np.stack([jet.x for jet in law.path(t)], axis=1)
    A, h = law.jacobian(t), 1e-6
    for k, step in enumerate(h * np.eye(x.shape[1])):
        difference = (_joints_at(law, x + step) - _joints_at(law, x - step)) / (2 * h)
        np.testing.assert_allclose(A[..., k], difference, atol=1e-8 * np.abs(A).max())


@pytest.mark.parametrize(("name", "site", "axes"), [("3rrr", "P", (0, 1)), ("2t1r", "P", (1, 2))])
def test_the_platform_of_the_model_goes_where_the_task_says(name: str, site: str, axes: tuple[int, int]) -> None:
    case, law = _case(name)
    motion = prescribe(case, dt=DT[name])
    point, at = case.mechanism.site(site), poses(case.mechanism, motion.q)
    position = at.p[:, point.body] + at.R[:, point.body] @ point.position
    said = np.stack([jet.x for jet in law.path(motion.t)[:2]], axis=1)
    np.testing.assert_allclose((position - position[0])[:, axes], said - said[0], atol=1e-12)


@pytest.mark.parametrize("name", ["6spu", "6x6r"])
def test_task_coordinates_that_are_joints_of_the_model(name: str) -> None:
    """Path, rates and efforts are those of `noc` with the platform's joints as independent coordinates."""
    case, law = _case(name)
    motion = prescribe(case, dt=DT[name])
    mechanism, joints = case.mechanism, {joint.name: k for k, joint in enumerate(case.mechanism.joints)}
    dofs = [mechanism.dof_slices[joints[joint]].start for joint in PLATFORM]
    for jet, dof in zip(law.path(motion.t), dofs, strict=True):
        np.testing.assert_allclose(jet.x, motion.q[:, dof], atol=1e-12)
        np.testing.assert_allclose(jet.d, motion.qd[:, dof], atol=1e-11)
        np.testing.assert_allclose(jet.dd, motion.qdd[:, dof], atol=1e-10)
    mask = np.isin(np.arange(mechanism.nv), dofs)
    model = noc_model(State(mechanism=mechanism, q=motion.q, qd=motion.qd), mask)
    wanted = model.force(motion.qdd[:, mask], motion.qd[:, mask])[:, np.argsort(np.argsort(dofs))]
    effort = Noc().compute_efforts(case, motion).effort
    found = task_efforts(law, mechanism, motion.t, effort)
    np.testing.assert_allclose(found, wanted, atol=1e-11 * np.abs(wanted).max())
    assert law.effort_units == ("N", "N", "N", "N m", "N m", "N m")


@pytest.mark.parametrize(("mode", "site"), [("plus", "P"), ("minus", "platform2")])
def test_position_and_orientation_of_a_platform_without_a_law_of_its_own(mode: str, site: str) -> None:
    """The 3-PRR: P in the plane, and the angle q4 + q7; rates and accelerations by differences."""
    case = make_case(load("3prr"), variant="default", mode=mode, configuration="vertical")
    spec, h = case.robot.task, 1e-4
    assert spec is not None

    def at(t: Array) -> list[Coordinate]:
        motion = prescribe(case).assemble(t)
        return list(coordinates_of_platform(case.mechanism, site, spec.positions, spec.turns, motion))

    t = np.linspace(0.1, 0.9, 9)
    now, later, earlier = at(t), at(t + h), at(t - h)
    for one, after, before in zip(now, later, earlier, strict=True):
        np.testing.assert_allclose(one.xd, (after.x - before.x) / (2 * h), atol=1e-6)
        np.testing.assert_allclose(one.xdd, (after.xd - before.xd) / (2 * h), atol=1e-5)
    assert [(one.name, one.unit) for one in now] == [("x", "m"), ("y", "m"), ("angle about z", "rad")]
    motion, names = prescribe(case).assemble(t), [joint.name for joint in case.mechanism.joints]
    alpha = motion.q[:, names.index("q4")] + motion.q[:, names.index("q7")]
    np.testing.assert_allclose(np.diff(now[2].x), np.diff(alpha), atol=1e-12)


def test_moments_and_force_on_the_platform_of_wang() -> None:
    """τ = Iẍ + Cẋ − γ (25) with x from the actuated joints by (39), against Aᵀτ of the reference on the given path."""
    case, law = _case("2pur2rpu")
    motion = prescribe(case, dt=DT["2pur2rpu"])
    p, drive = wang2019.parameters(case.mechanism), law.law(motion.t)
    x, xd, xdd = wang2019.generalized_motion(p, drive.q, drive.qd, drive.qdd)
    for jet, *column in zip(law.path(motion.t), x.T, xd.T, xdd.T, strict=True):
        np.testing.assert_allclose([jet.x, jet.d, jet.dd], column, atol=1e-13)
    model = wang2019.dynamic_model(p, x, xd, case.mechanism.gravity)
    wanted = (model.I @ xdd[..., None] + model.C @ xd[..., None])[..., 0] - model.gamma
    effort = Noc().compute_efforts(case, motion).effort
    found = task_efforts(law, case.mechanism, motion.t, effort)
    np.testing.assert_allclose(found, wanted, atol=1e-14)
    internal = np.linalg.svd(law.jacobian(motion.t))[0][..., 3]
    np.testing.assert_allclose(task_efforts(law, case.mechanism, motion.t, effort + internal), wanted, atol=1e-14)


def test_a_law_for_the_joints_has_no_task(prr: Case) -> None:
    assert task(prr) is None
