"""Redundant actuation: moving efforts are compared, internal efforts are shown."""

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg

from loopcheck.analytic.dynamics.lagrange import Lagrange
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.dynamics.powers import effort_scale, powers_along, scale_of, tree_inertia
from loopcheck.analytic.kinematics.closures import closure_jacobian_at
from loopcheck.analytic.kinematics.redundancy import actuator_motions, moving_part, undriven_dofs
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import EffortHistory
from loopcheck.robots.errors import NotFoundError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, Robot, load, make_case
from loopcheck.validation.check.collect import _effort_rows
from loopcheck.validation.check.efforts.compare import summarize
from loopcheck.validation.check.efforts.evaluate import evaluate
from loopcheck.validation.check.efforts.outcome import Modelled, Ran, Redundant
from loopcheck.validation.check.record import robot_record
from loopcheck.validation.common import sources
from tests.analytic.test_closed_chains import states
from tests.closed_chains import Shape, closed_chain
from tests.conftest import CaseMaker
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


def test_efforts_as_powers_do_not_depend_on_accelerations_that_nothing_drives(tmp_path: Path) -> None:
    """A pendulum on the slider swings freely, and the motor of the slider is off."""
    swing = '<body name="bob"><joint name="bob" axis="0 0 1"/><geom size=".1" pos=".1 .3 0" mass="3"/></body></body>'
    text = SLIDER_CRANK.replace('<site name="pin"/>\n    </body>', f'<site name="pin"/>{swing}')
    state = _closed_state(tmp_path, text.replace('<motor name="push" joint="slider"/>', ""))
    mechanism = state.mechanism
    D = actuator_motions(mechanism, state.Phi, partial(tree_inertia, state))
    np.testing.assert_allclose(state.Phi @ D, 0, atol=1e-14)
    np.testing.assert_allclose(mechanism.selection @ D, 1, atol=1e-14)
    Z = scipy.linalg.null_space(np.concatenate([state.Phi[0], mechanism.selection]), rcond=1e-9)
    assert Z.shape[1] == 1
    efforts = [scale_of(state, D[..., 0] + size * Z.T).effort[0, 0] for size in (0.0, 1.0, -50.0)]
    assert efforts[0] > 0.01
    np.testing.assert_allclose(efforts, efforts[0], rtol=1e-12)


def test_efforts_as_powers_have_the_least_norm_of_a_least_squares(tmp_path: Path) -> None:
    """Motors in N m and N on one degree of freedom, weighed by their scales."""
    state = _closed_state(tmp_path, SLIDER_CRANK)
    mechanism = state.mechanism
    scale = np.array([0.25, 40.0])
    actuators = tuple(replace(a, effort_scale=w) for a, w in zip(mechanism.actuators, scale, strict=True))
    D = actuator_motions(replace(mechanism, actuators=actuators), state.Phi, partial(tree_inertia, state))[0]
    N = scipy.linalg.null_space(state.Phi[0], rcond=1e-9)
    force = np.array([0.3, -1.2, 0.7])
    expected = scale * np.linalg.lstsq((scale[:, None] * (mechanism.selection @ N)).T, N.T @ force, rcond=None)[0]
    np.testing.assert_allclose(D.T @ force, expected, rtol=1e-12)


def _least_efforts(mechanism: Mechanism, M: Array, Phi: Array, force: Array) -> Array:
    """Efforts of least norm over their scales that hold the drives against a force, from a single linear system.

    M a + f = Sᵀ τ + Φᵀ λ, Φ a = 0, S a = 0: what nothing drives accelerates freely.
    """
    S, W = mechanism.selection, mechanism.effort_scales
    rows = np.concatenate([Phi, S])
    system = np.block([[M, -rows.T], [rows, np.zeros((len(rows), len(rows)))]])
    effort = np.linalg.lstsq(system, np.concatenate([-force, np.zeros(len(rows))]), rcond=1e-9)[0][-mechanism.na :] / W
    free = scipy.linalg.null_space(system, rcond=1e-9)[-mechanism.na :] / W[:, None]
    free[np.abs(free) < 1e-9] = 0.0  # of loops that are closed twice
    return np.asarray(W * (effort - free @ np.linalg.lstsq(free, effort, rcond=1e-9)[0]))


@pytest.mark.parametrize("drives", ["all", "one", "all, one twice", "one, twice"])
@pytest.mark.parametrize(
    "shape", [Shape(planar=True, loops=2), Shape(planar=False, loops=2)], ids=["planar", "spatial"]
)
def test_the_scale_is_what_all_terms_ask_of_the_motors(
    shape: Shape, drives: str, tmp_path: Path, model_case: CaseMaker
) -> None:
    """Each term as a force by itself, on random chains: with undriven dofs, and with motors that share a load."""
    random = np.random.default_rng(2)
    assert closed_chain(shape, random, tmp_path / "chain.xml")
    case = model_case(tmp_path / "chain.xml", configuration="vertical")
    motion, motors = states(case, random), case.mechanism.actuators
    assert len(motors) > 1
    again = replace(motors[0], name="again", gear=-0.7 * motors[0].gear, effort_scale=20.0)
    motors = motors if "all" in drives else motors[:1]
    mechanism = replace(case.mechanism, actuators=(*motors, again) if "twice" in drives else motors)
    undriven = undriven_dofs(mechanism, motion.q[0])
    assert (undriven > 0) == ("all" not in drives)
    state = State(mechanism=mechanism, q=motion.q, qd=motion.qd)
    every_dof = np.broadcast_to(np.eye(mechanism.nv), (len(motion.t), mechanism.nv, mechanism.nv))
    M, terms = tree_inertia(state), powers_along(state, motion.qdd, every_dof).signed
    shares = [
        [_least_efforts(mechanism, M_t, Phi, force) for force in forces]
        for M_t, Phi, forces in zip(M, state.Phi, terms, strict=True)
    ]
    scale = np.abs(shares).sum(axis=1).max(axis=0)
    np.testing.assert_allclose(effort_scale(mechanism, motion).scale, scale, rtol=1e-8)


def _closed_state(folder: Path, text: str) -> State:
    (folder / "m.xml").write_text(text, encoding="utf-8")
    mechanism = read_mechanism(ModelFile(path=folder / "m.xml"))
    return State.at_rest(mechanism, mechanism.rest_position[None])


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
