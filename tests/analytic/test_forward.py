"""Forward dynamics: two independent ways agree, undo the inverse dynamics, and reproduce the prescribed motion."""

import numpy as np
import pytest
from scipy.interpolate import make_interp_spline

from loopcheck.analytic.dynamics.forward import simulate
from loopcheck.analytic.dynamics.lagrange import lagrange_model, potential_energy
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.kinematics.redundancy import independent_dofs
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import poses
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, make_case

ROUND_OFF = 1e-10


@pytest.mark.extended("tests/analytic/test_forward_spatial.py::test_the_efforts_reproduce_the_motion")
@pytest.mark.parametrize("mode", ["plus", "minus"])
def test_the_efforts_reproduce_the_motion(mode: str) -> None:
    """The 3-PRR, driven by its own inverse-dynamics efforts, reaches the prescribed pose a second later."""
    case = make_case(load("3prr"), variant="default", mode=mode, configuration="vertical")
    motion = prescribe(case)
    fine = motion.assemble(np.linspace(0, 1, 401))
    effort = make_interp_spline(fine.t, Noc().compute_efforts(case, fine).effort, k=7)
    independent = independent_dofs(case.mechanism, motion)
    t = motion.t[::25]
    q, qd = simulate(case.mechanism, effort, motion.q[0], motion.qd[0], t, independent=independent)
    np.testing.assert_allclose(q, motion.q[::25], atol=1e-8)
    np.testing.assert_allclose(qd, motion.qd[::25], atol=1e-7)


def test_a_robot_left_alone_keeps_its_energy(prr: Case, prr_motion: Motion) -> None:
    """Without effort and damping, kinetic energy is gained from height. The robot falls away from the singularity."""
    mechanism = prr.mechanism
    independent = independent_dofs(mechanism, prr_motion)
    t = np.linspace(0, 0.2, 5)
    start = prr_motion.q[60], prr_motion.qd[60]
    q, qd = simulate(mechanism, lambda time: np.zeros(3), *start, t, independent=independent)
    M = lagrange_model(mechanism, q, qd).M
    energy = np.einsum("ti,tij,tj->t", qd, M, qd) / 2 + potential_energy(State.at_rest(mechanism, q))
    assert np.ptp(energy) < 1e-9 * np.abs(energy).max()
    assert np.linalg.norm(poses(mechanism, q).c[-1] - poses(mechanism, q).c[0]) > 0.01
