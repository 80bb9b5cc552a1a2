"""Properties of DART: first-order steps, rotors of drives, offsets of rotations, and suppressed output."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from loopcheck import engines
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.errors import EngineError, NotRepresentableError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from tests.conftest import MODELS
from tests.engines.mechanisms import CART, CART_MASS, OWN, PARALLEL_CRANKS, Own, reference, want_right
from tests.errors import relative_error


@pytest.fixture(autouse=True)
def dart() -> Any:
    return pytest.importorskip("dartpy")


@pytest.mark.parametrize("name", ["spatial", "to_world"])
def test_loop_jacobian_is_the_derivative_of_darts_own_poses(own: Own, name: str) -> None:
    from loopcheck.engines.dart._equations import DartEquations, position_of

    case = own(name)
    h, q, closure = 1e-6, prescribe(case).q[30], case.mechanism.rigid_closures[0]
    terms = DartEquations(case.mechanism)
    tree = terms.tree

    def gap(q: Any) -> Any:
        tree.put(q, np.zeros(case.mechanism.nv))
        ends = (closure.body1, closure.point1), (closure.body2, closure.point2)
        return np.subtract(*(position_of(tree, *end) for end in ends))

    slopes = np.array([(gap(q + h * dq) - gap(q - h * dq)) / (2 * h) for dq in np.eye(len(q))]).T
    np.testing.assert_allclose(terms.jacobian(q), slopes, atol=1e-9)


def test_positions_come_back(own: Own) -> None:
    from loopcheck.engines.dart._skeleton import build

    case = own("ball", (MODELS / "ball_and_universal.xml").read_text(encoding="utf-8"))
    tree = build(case.mechanism)
    for q in prescribe(case).q[::20]:
        back = tree.ours(tree.positions(q))
        np.testing.assert_allclose(back * np.sign(back @ q), q * np.sign(back @ q), atol=1e-15)


def test_steps_are_of_first_order(prr: Case, prr_motion: Motion) -> None:
    """Seen in the changes from step to step alone, without a reference; positions are of second order."""
    ladder = engines.load("dart/forward").compute_efforts(prr, prr_motion).ladder
    changes = [np.abs(a.effort - b.effort).max() for a, b in pairwise(ladder)]
    assert np.log2([a / b for a, b in pairwise(changes)]) == pytest.approx(1, abs=0.05)


def test_what_is_left_falls_with_the_rungs(prr: Case, prr_motion: Motion) -> None:
    from loopcheck.engines.dart.routes.forward import DartForward, Settings

    errors = [
        relative_error(DartForward(Settings(parts=parts)).compute_efforts(prr, prr_motion).effort, wanted)
        for wanted in [reference(prr, prr_motion)]
        for parts in ((2,), (2, 4), (2, 4, 8), (2, 4, 8, 16))
    ]
    assert all(after < before / 20 for before, after in pairwise(errors))


@pytest.mark.parametrize("name", ["ball_and_universal", "strutted_four_bar"])
def test_loads_act_on_both_bodies(name: str, own: Own) -> None:
    """The spring of a ball turns both bodies; a spring and a damper between two points pull both together."""
    text = (MODELS / f"{name}.xml").read_text(encoding="utf-8").replace('type="ball"', 'type="ball" stiffness="2"')
    case = own(name, text)
    motion = prescribe(case)
    want_right("dart/kkt", case, motion.assemble(motion.t[10:40:10]))


def test_a_start_with_unactuated_dofs_has_velocities_of_half_a_step_earlier(own: Own) -> None:
    """With forces of its own time, half of the first step's force would be missing."""
    from loopcheck.engines.dart.routes.forward import DartForward, Settings

    case = own("cart", CART)
    motion = prescribe(case)
    assert (motion.q[0] == 0).all()
    assert (motion.qd[0] == 0).all()
    effort = DartForward(Settings(parts=(2,))).compute_efforts(case, motion.assemble(motion.t[:3])).effort
    assert effort[0, 0] == pytest.approx(CART_MASS * motion.qdd[0, 0], rel=1e-3)


def test_a_rotor_is_carried_where_a_motion_drives_it(own: Own) -> None:
    """And only there: the torque of a rotor is determined by its prescribed acceleration."""
    driven = own("driven", OWN["five_bar"].replace('pos="-0.01 0 0" armature="0.003"', 'pos="-0.01 0 0"'))
    assert any(driven.mechanism.joints[j].armature for j in driven.mechanism.actuated_joints)
    motion = prescribe(driven)
    for route in ("kkt", "forward"):
        want_right(f"dart/{route}", driven, motion)


def test_a_rotor_that_follows_at_no_effort_is_refused(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    from loopcheck.engines.dart.routes import forward

    cranks = PARALLEL_CRANKS.replace('joint name="d" axis', 'joint name="d" armature="0.01" axis')
    one = own("parallel_cranks")
    two = own("two", cranks.format('<motor name="d" joint="d"/>'))
    monkeypatch.setattr(forward, "held_drives", lambda terms, motion: ((0,), 0))
    with pytest.raises(
        NotRepresentableError, match=r"dart: not supported: armature of joint 'd', a drive without effort"
    ):
        forward.DartForward().compute_efforts(two, prescribe(one))


def test_what_dart_raises_becomes_an_engine_error() -> None:
    from loopcheck.engines.dart._skeleton import guarded

    with pytest.raises(EngineError, match="dart: wrong"), guarded("dart"):
        raise RuntimeError("wrong")


def test_dart_prints_nothing(own: Own, capfd: pytest.CaptureFixture[str]) -> None:
    """It warns of bodies without mass, as between two hinges in sequence."""
    case = own("spatial")
    motion = prescribe(case)
    for route in ("kkt", "forward"):
        engines.load(f"dart/{route}").compute_efforts(case, motion.assemble(motion.t[:5]))
    assert capfd.readouterr() == ("", "")
