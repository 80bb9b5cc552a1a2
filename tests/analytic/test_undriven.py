"""Motions with dofs that nothing drives, against a textbook pendulum and whatever accelerations a log has."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from analytic.dynamics.lagrange import Lagrange
from analytic.dynamics.noc import Noc
from analytic.motion.prescribe import prescribe
from robots.motion import Motion
from robots.robot import Case
from tests.conftest import MODELS, CaseMaker

PENDULUM = """
<mujoco><option gravity="0 0 -9.81"/><worldbody>
<body name="cart"><joint name="x" type="slide" axis="1 0 0"/><inertial mass="2" diaginertia="1 1 1" pos="0 0 0"/>
<body name="bob"><joint name="angle" axis="0 1 0" damping="0.05"/>
<inertial mass="1" diaginertia="0.01 0.02 0.01" pos="0 0 -0.5"/></body></body>
</worldbody><actuator><motor name="x" joint="x"/></actuator></mujoco>"""


def test_a_pendulum_on_a_cart_swings_as_its_textbook_equation(tmp_path: Path, model_case: CaseMaker) -> None:
    (tmp_path / "cart.xml").write_text(PENDULUM, encoding="utf-8")
    motion = prescribe(model_case(tmp_path / "cart.xml", amplitude=0.3))
    m, l, inertia, d, g = 1.0, 0.5, 0.02, 0.05, 9.81

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        a = motion.law(np.array([t])).qdd[0, 0]  # of the cart; the angle turns the bob towards −x
        return np.array([y[1], (m * l * (a * np.cos(y[0]) - g * np.sin(y[0])) - d * y[1]) / (inertia + m * l**2)])

    swing = solve_ivp(rate, (0, motion.t[-1]), [0.0, 0.0], t_eval=motion.t, rtol=1e-11, atol=1e-12).y
    np.testing.assert_allclose(motion.q[:, 1], swing[0], atol=1e-7)
    np.testing.assert_allclose(motion.qd[:, 1], swing[1], atol=1e-6)
    assert np.ptp(motion.q[:, 1]) > 0.01


def test_logged_accelerations_of_what_nothing_drives_do_not_matter(spinning: tuple[Case, Motion]) -> None:
    """Their effort is zero whatever the log says: the sources find the accelerations by themselves."""
    case, motion = spinning
    wanted = Noc().compute_efforts(case, motion).effort
    spun = motion.qdd.copy()
    spun[:, case.mechanism.dof_slices[-1]] += 30.0  # of the pendulum, which no closure holds
    for source in (Noc(), Lagrange()):
        found = source.compute_efforts(case, replace(motion, qdd=spun)).effort
        np.testing.assert_allclose(found, wanted, atol=1e-11 * np.abs(wanted).max())


def test_the_motion_is_the_same_from_any_known_state(spinning: tuple[Case, Motion]) -> None:
    _, motion = spinning
    some = motion.t[3:9]
    again = motion.assemble(some)
    np.testing.assert_array_equal(again.q, motion.q[3:9])
    between = motion.assemble(some[:-1] + motion.dt / 2)
    np.testing.assert_allclose(between.assemble(some[1:]).q, motion.q[4:9], atol=1e-9)


@pytest.fixture(scope="module")
def spinning(model_case: CaseMaker) -> tuple[Case, Motion]:
    case = model_case(MODELS / "spinning_rod.xml", amplitude=0.1, duration=0.5)
    return case, prescribe(case)
