"""Pinocchio's routes against the reference on all sorts of mechanisms, and its Jacobians against its own poses."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from loopcheck import engines
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation, EffortHistory
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.common.tolerances import registered
from tests.conftest import MODELS
from tests.engines.mechanisms import OWN, Own, reference, want_agreement
from tests.errors import relative_error


@pytest.fixture(autouse=True)
def pin() -> Any:
    return pytest.importorskip("pinocchio")


def run(route: str, case: Case, motion: Motion) -> EffortHistory:
    return engines.load(f"pinocchio/{route}").compute_efforts(case, motion)


def want_right(route: str, case: Case, motion: Motion) -> None:
    """Within the registered limits; the gap that `kkt` sees in the given state is absent here."""
    history = run(route, case, motion)
    if route == "kkt":
        assert (history.closure_drift or Deviation()).largest < 1e-9
        history = replace(history, closure_drift=None)
    want_agreement(history, reference(case, motion), registered()[f"pinocchio/{route}"])


def test_euler_is_of_first_order(prr: Case, prr_motion: Motion) -> None:
    from loopcheck.engines.pinocchio._simulation import EULER, Solver
    from loopcheck.engines.pinocchio.routes.forward import PinocchioForward, Settings

    settings = Settings(steps=(0.01, 0.005, 0.0025), solver=Solver(integrator=EULER))
    ladder = PinocchioForward(settings).compute_efforts(prr, prr_motion).ladder
    wanted = reference(prr, prr_motion)
    errors = [relative_error(rung.effort, wanted) for rung in ladder]
    assert np.log2([a / b for a, b in pairwise(errors)]) == pytest.approx(1, abs=0.2)


def test_a_regularised_constraint_gives_way_in_proportion(prr: Case, prr_motion: Motion) -> None:
    """Remainder of mu after an iteration, and zero after some: the constraints are the solver's own."""
    from loopcheck.engines.pinocchio._simulation import Solver
    from loopcheck.engines.pinocchio.routes.forward import PinocchioForward, Settings

    def effort(mu: float, iterations: int) -> Array:
        settings = Settings(steps=(0.01,), solver=Solver(mu=mu, iterations=iterations))
        return PinocchioForward(settings).compute_efforts(prr, prr_motion).effort

    rigid = effort(1e-6, 5)
    left = [relative_error(effort(mu, 1), rigid) for mu in (1e-3, 1e-4)]
    assert left[0] / left[1] == pytest.approx(10, rel=0.1)
    assert relative_error(effort(1e-4, 5), rigid) < 1e-12


def test_quaternions_are_turned_over(own: Own, pin: Any) -> None:
    """Pose of the rod behind a ball joint, from Pinocchio and from the definition."""
    from loopcheck.engines.pinocchio._tree import build

    tree = build(own("ball", (MODELS / "ball_and_universal.xml").read_text(encoding="utf-8")).mechanism)
    ball = [joint.kind for joint in tree.mechanism.joints].index("ball")
    q, turn = np.array(tree.mechanism.rest_position), np.array([np.cos(0.3), np.sin(0.3), 0, 0])
    before = _rotation_of_body(tree, pin, q, tree.mechanism.joints[ball].body)
    q[tree.mechanism.q_slices[ball]] = 2 * turn  # of any length
    after = _rotation_of_body(tree, pin, q, tree.mechanism.joints[ball].body)
    about_x = np.array([[1, 0, 0], [0, np.cos(0.6), -np.sin(0.6)], [0, np.sin(0.6), np.cos(0.6)]])
    np.testing.assert_allclose(before.T @ after, about_x, atol=1e-14)
    q[tree.mechanism.q_slices[ball]] = turn
    np.testing.assert_allclose(tree.ours(tree.positions(q)), q, atol=1e-15)


def _rotation_of_body(tree: Any, pin: Any, q: Array, body: int) -> Array:
    pin.framesForwardKinematics(tree.model, tree.data, tree.positions(q))
    return np.array(tree.data.oMf[tree.bodies[body]].rotation)


def test_a_driven_tendon_is_refused(own: Own) -> None:
    tendon = '<tendon><fixed name="sum"><joint joint="crank" coef="1"/></fixed></tendon>'
    text = OWN["spatial"].replace("<actuator>", f"{tendon}<actuator>")
    case = own("driven_tendon", text.replace('joint="crank" gear="2"', 'tendon="sum"'))
    motion = prescribe(case)
    want_right("kkt", case, motion)
    if not case.mechanism.drives[0].is_joint:
        with pytest.raises(NotRepresentableError, match="pinocchio: not supported: drive of tendon 'sum'"):
            run("forward", case, motion)
