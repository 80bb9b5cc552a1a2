"""Forward dynamics of the spatial robots: an external wrench, redundant closures, redundant actuation."""

import numpy as np
import pytest
from scipy.interpolate import make_interp_spline

from loopcheck.analytic.dynamics.forward import simulate
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.kinematics.redundancy import independent_dofs
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, make_case

ROUND_OFF = 1e-10


@pytest.fixture(scope="module", params=["6spu", "6x6r", "2t1r", "2pur2rpu"])
def case(request: pytest.FixtureRequest) -> Case:
    return make_case(load(request.param), variant="default", mode="home", configuration="vertical")


@pytest.fixture(scope="module")
def motion(case: Case) -> Motion:
    return prescribe(case)


def test_the_efforts_reproduce_the_motion(case: Case, motion: Motion) -> None:
    """A tenth of the motion, integrated from the efforts of the inverse dynamics."""
    span = motion.t[len(motion.t) // 10]
    fine = motion.assemble(np.linspace(motion.t[0], span, 101))
    effort = make_interp_spline(fine.t, Noc().compute_efforts(case, fine).effort, k=7)
    independent = independent_dofs(case.mechanism, motion)
    q, qd = simulate(case.mechanism, effort, fine.q[0], fine.qd[0], fine.t[::25], independent=independent)
    np.testing.assert_allclose(q, fine.q[::25], atol=1e-8)
    np.testing.assert_allclose(qd, fine.qd[::25], atol=1e-7)
