"""What is Drake's own: steps of first order, a start that lasts, angles of frames, and silence."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from loopcheck import engines
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.efforts import EffortHistory
from loopcheck.robots.errors import EngineError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from tests.engines.mechanisms import Own, reference


@pytest.fixture(autouse=True)
def drake() -> Any:
    return pytest.importorskip("pydrake")


def simulated(case: Case, motion: Motion, **settings: Any) -> EffortHistory:
    from loopcheck.engines.drake.routes.forward import DrakeForward, Settings

    return DrakeForward(Settings(**settings)).compute_efforts(case, motion)


@pytest.mark.parametrize("second", [-np.pi / 2, -0.4, 0.0, np.pi / 2 - 1e-9, np.pi / 2])
def test_angles_of_a_frame_are_right_where_they_are_singular(second: float) -> None:
    from loopcheck.engines.drake._plant import roll_pitch_yaw

    R = Rotation.from_euler("ZYX", [0.3, second, -1.1]).as_matrix()
    x, y, z = roll_pitch_yaw(R)
    np.testing.assert_allclose(Rotation.from_euler("ZYX", [z, y, x]).as_matrix(), R, atol=4e-16)


@pytest.mark.parametrize("name", ["spatial", "five_bar", "to_world"])
def test_loop_jacobian_is_the_derivative_of_drakes_own_poses(own: Own, name: str) -> None:
    from loopcheck.engines.drake._equations import _ends, _pose, equations

    case = own(name)
    h, q = 1e-6, prescribe(case).q[30]
    terms = equations(case.mechanism)
    model = terms.drake

    def gap(q: Any) -> Any:
        model.put(q, np.zeros(case.mechanism.nv))
        ends = _ends(case.mechanism.rigid_closures[0])
        return np.subtract(*(_pose(model, model.context, *end)[0] for end in ends))

    slopes = np.array([(gap(q + h * dq) - gap(q - h * dq)) / (2 * h) for dq in np.eye(len(q))]).T
    np.testing.assert_allclose(terms.jacobian(q), slopes, atol=1e-9)


def test_steps_are_of_first_order(prr: Case, prr_motion: Motion) -> None:
    """Seen in the changes from step to step alone, without a reference."""
    ladder = simulated(prr, prr_motion, parts=(4, 8, 16)).ladder
    coarse, fine = (np.abs(a.effort - b.effort).max() for a, b in pairwise(ladder))
    assert np.log2(coarse / fine) == pytest.approx(1, abs=0.1)


def test_a_start_lasts_for_some_steps_however_short(prr: Case, prr_motion: Motion) -> None:
    """Half of it is forgotten in each: read five steps in, it looks like a floor of the solver."""
    start = prr_motion.assemble(prr_motion.t[:5])
    wanted = reference(prr, prr_motion)[0]

    def error(parts: int, lead: int) -> float:
        return float(np.abs(simulated(prr, start, parts=(parts,), lead=lead).effort[0] - wanted).max())

    assert error(64, 5) == pytest.approx(error(16, 5), rel=0.05)
    assert error(16, 0) > 10 * error(16, 5) > 100 * error(16, 30)


def test_what_drake_raises_becomes_an_engine_error() -> None:
    from loopcheck.engines.drake._plant import guarded

    with pytest.raises(EngineError, match="drake: wrong"), guarded("drake"):
        raise RuntimeError("wrong")


def test_drake_prints_nothing(prr: Case, prr_motion: Motion, capfd: pytest.CaptureFixture[str]) -> None:
    for route in ("kkt", "forward"):
        engines.load(f"drake/{route}").compute_efforts(prr, prr_motion.assemble(prr_motion.t[:5]))
    assert capfd.readouterr() == ("", "")
