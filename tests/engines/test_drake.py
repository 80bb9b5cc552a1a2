"""Properties of Drake: first-order steps, a lasting start, angles of frames, and suppressed output."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from loopcheck import engines
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.dynamics.powers import effort_scale
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.efforts import EffortHistory
from loopcheck.robots.errors import EngineError
from loopcheck.robots.mechanism import Wrench
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, MotionSpec, Robot, make_case
from tests.conftest import MODELS
from tests.engines.mechanisms import CART, CART_MASS, Own, reference


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


def test_a_moment_acts_in_a_simulation(own: Own) -> None:
    """The motor of the crank, with a gear of 2, holds the part of the moment along its axis, fixed in space."""
    case = own("spatial")
    crank = [body.name for body in case.mechanism.bodies].index("crank")
    moment = np.array([3.0, -5.0, 4.0])
    wrench = Wrench(body=crank, point=np.zeros(3), moment=moment, force=np.zeros(3))
    turns = Rotation.from_euler("XYZ", [0.4, -1.1, 0.7]) * Rotation.from_euler("XYZ", [0.2, 0.5, -0.9])
    axis = turns.apply(np.array([0.2, 0.3, 1.0]) / np.linalg.norm([0.2, 0.3, 1.0]))
    motion = prescribe(case)
    start = motion.assemble(motion.t[:3])
    with_moment = replace(case, mechanism=replace(case.mechanism, wrenches=(wrench,)))
    loaded, free = (simulated(one, start, parts=(4,)).effort for one in (with_moment, case))
    np.testing.assert_allclose(loaded - free, -axis @ moment / 2, rtol=1e-4)


def test_a_start_with_unactuated_dofs_has_velocities_of_half_a_step_earlier(own: Own) -> None:
    """With forces of its own time, half of the first step's force would be missing."""
    case = own("cart", CART)
    motion = prescribe(case)
    assert (motion.q[0] == 0).all()
    assert (motion.qd[0] == 0).all()
    effort = simulated(case, motion.assemble(motion.t[:3]), parts=(2,)).effort
    assert effort[0, 0] == pytest.approx(CART_MASS * motion.qdd[0, 0], rel=1e-3)


def test_what_drake_raises_becomes_an_engine_error() -> None:
    from loopcheck.engines.drake._plant import guarded

    with pytest.raises(EngineError, match="drake: wrong"), guarded("drake"):
        raise RuntimeError("wrong")


def test_drake_prints_nothing(prr: Case, prr_motion: Motion, capfd: pytest.CaptureFixture[str]) -> None:
    for route in ("kkt", "forward"):
        engines.load(f"drake/{route}").compute_efforts(prr, prr_motion.assemble(prr_motion.t[:5]))
    assert capfd.readouterr() == ("", "")
