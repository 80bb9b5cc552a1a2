"""Properties of DART: first-order steps, rotors of drives, offsets of rotations, and suppressed output."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from tests.conftest import MODELS
from tests.engines.mechanisms import PARALLEL_CRANKS, Own, reference
from tests.errors import relative_error


@pytest.fixture(autouse=True)
def dart() -> Any:
    return pytest.importorskip("dartpy")


def test_positions_come_back(own: Own) -> None:
    from loopcheck.engines.dart._skeleton import build

    case = own("ball", (MODELS / "ball_and_universal.xml").read_text(encoding="utf-8"))
    tree = build(case.mechanism)
    for q in prescribe(case).q[::20]:
        back = tree.ours(tree.positions(q))
        np.testing.assert_allclose(back * np.sign(back @ q), q * np.sign(back @ q), atol=1e-15)


def test_what_is_left_falls_with_the_rungs(prr: Case, prr_motion: Motion) -> None:
    from loopcheck.engines.dart.routes.forward import DartForward, Settings

    errors = [
        relative_error(DartForward(Settings(parts=parts)).compute_efforts(prr, prr_motion).effort, wanted)
        for wanted in [reference(prr, prr_motion)]
        for parts in ((2,), (2, 4), (2, 4, 8), (2, 4, 8, 16))
    ]
    assert all(after < before / 20 for before, after in pairwise(errors))


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
