"""Properties of Drake: first-order steps, a lasting start, angles of frames, and suppressed output."""

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.dynamics.powers import effort_scale
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.efforts import EffortHistory
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, MotionSpec, Robot, make_case
from tests.conftest import MODELS
from tests.engines.mechanisms import reference


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


def test_the_first_sample_with_unactuated_rods_is_as_exact_as_the_others() -> None:
    """SAP forgets half of the start in each step, however short: without a pre-roll the error is the same at all."""
    robot = Robot(
        name="delta",
        folder=MODELS / "spinning",
        title="delta",
        mjcf="delta.xml",
        motion=MotionSpec(law="sine", parameters={"amplitude": 0.1, "frequency": 2.0, "duration": 0.05}),
        source="made for tests",
    )
    case = make_case(robot, variant="default", mode="home", configuration="horizontal")
    motion = prescribe(case, dt=0.01)
    errors = np.abs(simulated(case, motion, settled=2e-6).effort - Noc().compute_efforts(case, motion).effort)
    assert errors.max() < 1e-5 * effort_scale(case.mechanism, motion).scale.max()


def test_a_start_lasts_for_some_steps_however_short(prr: Case, prr_motion: Motion) -> None:
    """Half of it is forgotten in each: read five steps in, it looks like a floor of the solver."""
    start = prr_motion.assemble(prr_motion.t[:5])
    wanted = reference(prr, prr_motion)[0]

    def error(parts: int, lead: int) -> float:
        return float(np.abs(simulated(prr, start, parts=(parts,), lead=lead).effort[0] - wanted).max())

    assert error(64, 5) == pytest.approx(error(16, 5), rel=0.05)
    assert error(16, 0) > 10 * error(16, 5) > 100 * error(16, 30)
