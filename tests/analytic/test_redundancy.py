"""Redundant actuation: what moves the robot is compared, what is internal is shown."""

from dataclasses import replace

import numpy as np
import pytest

from analytic.assembly import prescribe
from analytic.lagrange import Lagrange
from analytic.noc import Noc
from analytic.redundancy import moving_efforts
from engines.mujoco.forward import MujocoForward
from robots.efforts import EffortHistory
from robots.motion import Motion
from robots.robot import Case, load, make_case
from validation import sources
from validation.compare import relative_error, summarize
from validation.evaluate import Outcome, evaluate
from validation.record import _effort_rows


@pytest.fixture(scope="module")
def case() -> Case:
    return make_case(load("2pur2rpu"), variant="default", mode="home", configuration="horizontal")


@pytest.fixture(scope="module")
def motion(case: Case) -> Motion:
    return prescribe(case)


def test_the_reference_has_no_internal_part(case: Case, motion: Motion) -> None:
    U = moving_efforts(case.mechanism, motion)
    assert U is not None
    np.testing.assert_allclose(U.swapaxes(1, 2) @ U, np.broadcast_to(np.eye(3), (len(U), 3, 3)), atol=1e-14)
    effort = Noc().compute_efforts(case, motion).effort
    np.testing.assert_allclose((U @ (U.swapaxes(1, 2) @ effort[..., None]))[..., 0], effort, atol=1e-14)


def test_internal_efforts_do_no_work(case: Case, motion: Motion) -> None:
    """What is orthogonal to U has no power along the motion, nor has it in any other that keeps the loops closed."""
    U = moving_efforts(case.mechanism, motion)
    assert U is not None
    internal = np.linalg.svd(U.swapaxes(1, 2))[2][:, 3]
    actuated = motion.qd @ case.mechanism.selection.T
    np.testing.assert_allclose((internal * actuated).sum(1), 0, atol=1e-15)


def test_a_robot_without_redundancy_is_compared_as_it_is(prr: Case, prr_motion: Motion) -> None:
    assert moving_efforts(prr.mechanism, prr_motion) is None
    assert evaluate(prr, prr_motion, "mujoco/kkt").projected is None


def test_an_internal_effort_does_not_count_and_is_shown(case: Case, motion: Motion) -> None:
    reference = evaluate(case, motion, sources.REFERENCE)
    assert reference.history is not None
    outcome = evaluate(case, motion, "mujoco/kkt")
    assert outcome.projected is not None
    summary = summarize([reference, outcome])
    assert (summary.loc[summary["source"] == "mujoco/kkt", "verdict"] == "agree").all()
    assert summary["note"].str.contains("its own split has an internal part of up to").any()
    forward = evaluate(case, motion, "mujoco/forward")
    assert forward.history is not None
    assert forward.compared is not None
    drawn = [row["effort"] for row in _effort_rows(forward)]  # what is drawn is what is judged
    np.testing.assert_array_equal(drawn, forward.compared.effort.T.ravel())
    assert np.abs(forward.compared.effort - forward.history.effort).max() > 0.1
    wrong = replace(outcome.projected, effort=outcome.projected.effort * 1.001)
    summary = summarize([reference, replace(outcome, projected=wrong)])
    assert (summary.loc[summary["source"] == "mujoco/kkt", "verdict"] == "disagree").any()


def test_analytic_sources_are_held_to_the_least_norm(case: Case, motion: Motion) -> None:
    """An internal effort in an analytic source is a disagreement: it must know the least norm by itself."""
    reference = evaluate(case, motion, sources.REFERENCE)
    assert evaluate(case, motion, "analytic/lagrange").projected is None
    U = moving_efforts(case.mechanism, motion)
    assert U is not None
    assert reference.history is not None
    internal = np.linalg.svd(U.swapaxes(1, 2))[2][:, 3]
    history: EffortHistory = replace(
        reference.history, source="analytic/lagrange", effort=reference.history.effort + internal
    )
    summary = summarize([reference, Outcome(case=case, source="analytic/lagrange", history=history)])
    assert (summary.loc[summary["source"] == "analytic/lagrange", "verdict"] == "disagree").any()


def test_forward_leaves_one_motor_off(case: Case, motion: Motion) -> None:
    """Four drives on three degrees of freedom would fight; the efforts that move the robot do not depend on which."""
    history = MujocoForward().compute_efforts(case, motion)
    off = [k for k, effort in enumerate(history.effort.T) if not effort.any()]
    assert len(off) == 1
    assert "redundantly actuated" in history.note
    U = moving_efforts(case.mechanism, motion)
    assert U is not None
    noc = Noc().compute_efforts(case, motion).effort
    moving = (U @ (U.swapaxes(1, 2) @ history.effort[..., None]))[..., 0]
    assert relative_error(moving, noc) < 1e-8
    assert relative_error(history.effort, noc) > 0.1


@pytest.mark.parametrize("name", ["2pur2rpu", "2t1r"])
def test_redundant_constraints_leave_the_efforts_as_they_are(name: str) -> None:
    """The order of the closures, and a loop that is closed twice, change multipliers and no effort."""
    case = make_case(load(name), variant="default", mode="home", configuration="vertical")
    motion, mechanism = prescribe(case), case.mechanism
    reference = Noc().compute_efforts(case, motion).effort
    for closures in (mechanism.closures[::-1], (*mechanism.closures, mechanism.closures[0])):
        other = replace(case, mechanism=replace(mechanism, closures=closures))
        for source in (Noc(), Lagrange()):
            assert relative_error(source.compute_efforts(other, motion).effort, reference) < 1e-12
