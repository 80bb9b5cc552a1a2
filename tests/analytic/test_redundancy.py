"""Redundant actuation: moving efforts are compared, internal efforts are shown."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg

from loopcheck.analytic.dynamics.lagrange import Lagrange
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.dynamics.powers import effort_scale
from loopcheck.analytic.kinematics.closures import closure_jacobian_at
from loopcheck.analytic.kinematics.redundancy import moving_part
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import EffortHistory
from loopcheck.robots.errors import NotFoundError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, Robot, load, make_case
from loopcheck.validation.check.collect import _effort_rows
from loopcheck.validation.check.efforts.compare import summarize
from loopcheck.validation.check.efforts.evaluate import evaluate
from loopcheck.validation.check.efforts.outcome import Modelled, Ran, Redundant
from loopcheck.validation.check.record import robot_record
from loopcheck.validation.common import sources
from tests.errors import relative_error
from tests.outcomes import ran


@pytest.fixture(scope="module")
def case() -> Case:
    return make_case(load("2pur2rpu"), variant="default", mode="home", configuration="horizontal")


@pytest.fixture(scope="module")
def motion(case: Case) -> Motion:
    return prescribe(case)


def test_the_reference_has_no_internal_part(case: Case, motion: Motion) -> None:
    Pi = moving_part(case.mechanism, motion)
    assert Pi is not None
    np.testing.assert_allclose(Pi @ Pi, Pi, atol=1e-14)
    np.testing.assert_allclose(np.trace(Pi, axis1=1, axis2=2), 3, atol=1e-14)
    effort = Noc().compute_efforts(case, motion).effort
    np.testing.assert_allclose((Pi @ effort[..., None])[..., 0], effort, atol=1e-14)


def test_internal_efforts_do_no_work(case: Case, motion: Motion) -> None:
    """Efforts in the kernel of Π have no power along the motion, nor along any other motion with closed loops."""
    Pi = moving_part(case.mechanism, motion)
    assert Pi is not None
    internal = np.linalg.svd(Pi)[2][:, 3]
    actuated = motion.qd @ case.mechanism.selection.T
    np.testing.assert_allclose((internal * actuated).sum(1), 0, atol=1e-15)


def test_a_robot_without_redundancy_is_compared_as_it_is(prr: Case, prr_motion: Motion) -> None:
    assert moving_part(prr.mechanism, prr_motion) is None
    assert not isinstance(evaluate(prr, prr_motion, "mujoco/kkt"), Redundant)


@pytest.fixture(scope="module")
def forward(case: Case, motion: Motion) -> Ran:
    return ran(evaluate(case, motion, "mujoco/forward"))


def test_an_internal_effort_does_not_count_and_is_shown(case: Case, motion: Motion, forward: Ran) -> None:
    reference = evaluate(case, motion, sources.REFERENCE)
    outcome = evaluate(case, motion, "mujoco/kkt")
    assert isinstance(outcome, Redundant)
    summary = summarize([reference, outcome])
    assert (summary.loc[summary["source"] == "mujoco/kkt", "verdict"] == "agree").all()
    assert summary["note"].str.contains("internal part is up to").any()
    drawn = [row["effort"] for row in _effort_rows(forward)]  # what is drawn is what is judged
    np.testing.assert_array_equal(drawn, forward.compared.effort.T.ravel())
    assert np.abs(forward.compared.effort - forward.history.effort).max() > 0.1
    wrong = replace(outcome.projected, effort=outcome.projected.effort * 1.001)
    summary = summarize([reference, replace(outcome, projected=wrong)])
    assert (summary.loc[summary["source"] == "mujoco/kkt", "verdict"] == "disagree").any()


def test_analytic_sources_are_held_to_the_least_norm(case: Case, motion: Motion) -> None:
    """An internal effort in an analytic source is a disagreement: it must compute the least norm itself."""
    reference = ran(evaluate(case, motion, sources.REFERENCE))
    assert not isinstance(evaluate(case, motion, "analytic/lagrange"), Redundant)
    Pi = moving_part(case.mechanism, motion)
    assert Pi is not None
    internal = np.linalg.svd(Pi)[2][:, 3]
    history: EffortHistory = replace(
        reference.history, source="analytic/lagrange", effort=reference.history.effort + internal
    )
    summary = summarize([reference, Modelled(case=case, source="analytic/lagrange", history=history)])
    assert (summary.loc[summary["source"] == "analytic/lagrange", "verdict"] == "disagree").any()


def test_forward_leaves_one_motor_off(case: Case, motion: Motion, forward: Ran) -> None:
    """Four drives on three degrees of freedom contradict each other; moving efforts do not depend on the choice."""
    history = forward.history
    assert history is not None
    off = [k for k, effort in enumerate(history.effort.T) if not effort.any()]
    assert len(off) == 1
    assert "redundantly actuated" in history.note
    Pi = moving_part(case.mechanism, motion)
    assert Pi is not None
    noc = Noc().compute_efforts(case, motion).effort
    moving = (Pi @ history.effort[..., None])[..., 0]
    assert relative_error(moving, noc) < 1e-8
    assert relative_error(history.effort, noc) > 0.1


@pytest.mark.parametrize("name", ["2pur2rpu", "2t1r"])
def test_redundant_constraints_leave_the_efforts_as_they_are(name: str) -> None:
    """The order of the closures, and a loop that is closed twice, change multipliers and no effort."""
    case = make_case(load(name), variant="default", mode="home", configuration="vertical")
    motion, mechanism = prescribe(case), case.mechanism
    reference, scale = Noc().compute_efforts(case, motion).effort, effort_scale(mechanism, motion).scale
    for closures in (mechanism.closures[::-1], (*mechanism.closures, mechanism.closures[0])):
        other = replace(case, mechanism=replace(mechanism, closures=closures))
        for source in (Noc(), Lagrange()):
            error = np.abs(source.compute_efforts(other, motion).effort - reference).max(0) / scale
            assert error.max() < 1e-12


SLIDER_CRANK = """
<mujoco>
  <worldbody>
    <body name="crank">
      <joint name="crank" axis="0 0 1"/><inertial pos="0.1 0.02 0" mass="1" diaginertia="0.01 0.02 0.02"/>
      <body name="rod" pos="0.2 0 0">
        <joint name="rod" axis="0 0 1"/><inertial pos="0.2 0 0" mass="0.7" diaginertia="0.01 0.02 0.02"/>
        <site name="end" pos="0.4 0.1 0"/>
      </body>
    </body>
    <body name="slider" pos="0.6 0.1 0">
      <joint name="slider" type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="2" diaginertia="0.01 0.02 0.02"/>
      <site name="pin"/>
    </body>
  </worldbody>
  <equality><connect name="pin" site1="end" site2="pin"/></equality>
  <actuator><motor name="turn" joint="crank" gear="2"/><motor name="push" joint="slider"/></actuator>
</mujoco>"""
"""A motor in N m and a motor in N for a single degree of freedom."""


@pytest.fixture(params=["slider_crank", "2pur2rpu"])
def weighed(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Case, Motion, Case]:
    """A case with effort scales of its own, its motion, and the same case with equal weights."""
    if request.param == "2pur2rpu":
        robot, scales = load("2pur2rpu"), {"q1": 30.0, "q2": 0.2, "q4": 5.0}
    else:
        (tmp_path / "mine.xml").write_text(SLIDER_CRANK, encoding="utf-8")
        robot = Robot(name="mine", folder=tmp_path, title="", mjcf="mine.xml", source="test")
        scales = {"turn": 0.25, "push": 40.0}
    plain, case = (
        make_case(each, variant="default", mode="home", configuration="vertical")
        for each in (robot, robot.model_copy(update={"effort_scales": scales}))
    )
    return case, prescribe(case), plain


def _actuator_velocities(case: Case, motion: Motion) -> Array:
    """S N at each sample, by SciPy's null space."""
    Phi = closure_jacobian_at(case.mechanism, motion.q)
    return np.array([case.mechanism.selection @ scipy.linalg.null_space(each, rcond=1e-5) for each in Phi])


@pytest.mark.parametrize(
    "weighed",
    [
        pytest.param("slider_crank", marks=pytest.mark.evidence("all exact sources", seconds=1)),
        pytest.param(
            "2pur2rpu", marks=pytest.mark.extended("test_efforts_of_different_units_are_weighed_by_their_scales")
        ),
    ],
    indirect=True,
)
def test_efforts_of_different_units_are_weighed_by_their_scales(weighed: tuple[Case, Motion, Case]) -> None:
    """All sources find the least norm that a constrained least squares finds, and move the robot as with weights 1."""
    case, motion, plain = weighed
    effort, unweighed = (Noc().compute_efforts(each, motion).effort for each in (case, plain))
    A_T = _actuator_velocities(case, motion).swapaxes(1, 2)
    force = (A_T @ unweighed[..., None])[..., 0]
    np.testing.assert_allclose((A_T @ effort[..., None])[..., 0], force, atol=1e-12 * np.abs(force).max())
    scale, dof = case.mechanism.effort_scales, A_T.shape[1]
    for each, f, found in zip(A_T, force, effort, strict=True):
        conditions = np.block([[np.diag(scale**-2), each.T], [each, np.zeros((dof, dof))]])
        least = np.linalg.solve(conditions, np.concatenate([np.zeros(len(scale)), f]))[: len(scale)]
        np.testing.assert_allclose(found, least, atol=1e-11 * np.abs(effort).max())
    assert relative_error(unweighed, effort) > 0.01
    for source in (name for name in sources.names(case.robot) if name.endswith(("lagrange", "paper", "kkt"))):
        assert relative_error(sources.load(source).compute_efforts(case, motion).effort, effort) < 1e-10


def test_the_part_that_moves_the_robot_has_the_least_weighed_norm(weighed: tuple[Case, Motion, Case]) -> None:
    """Whatever an engine adds to the reference without moving the robot is taken off again."""
    case, motion, _ = weighed
    Pi = moving_part(case.mechanism, motion)
    assert Pi is not None
    reference = Noc().compute_efforts(case, motion).effort
    amount = np.random.default_rng(0).normal(size=(len(motion.t), case.mechanism.na, 1))
    A_T = _actuator_velocities(case, motion).swapaxes(1, 2)
    internal = np.array([scipy.linalg.null_space(each) for each in A_T])
    effort = reference + (internal @ amount[:, : internal.shape[2]])[..., 0]
    assert relative_error(effort, reference) > 0.01
    assert relative_error((Pi @ effort[..., None])[..., 0], reference) < 1e-10
    said = [evaluate(case, motion, "mujoco/kkt").note, *robot_record(case)["assumptions"]]
    assert sum("efforts of equal weight: " in text for text in said) == 2


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan")])
def test_a_scale_must_be_positive(scale: float) -> None:
    with pytest.raises(ValueError, match="effort_scales"):
        Robot(name="", folder=Path(), title="", mjcf="", source="", effort_scales={"q1": scale})


def test_a_scale_of_an_unknown_actuator_is_refused() -> None:
    robot = load("2pur2rpu").model_copy(update={"effort_scales": {"q5": 2.0}})
    with pytest.raises(NotFoundError, match=r"unknown actuator of 2pur2rpu.xml: 'q5'. Known: q1, q2, q3, q4"):
        robot.mechanism()
