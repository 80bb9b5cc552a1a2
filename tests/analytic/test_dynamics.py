"""The analytic sources against each other, against energy, and against the structure their equations must have."""

import numpy as np

from loopcheck.analytic.dynamics.energy import total_energy
from loopcheck.analytic.dynamics.lagrange import lagrange_model
from loopcheck.analytic.dynamics.noc import Noc, noc_model
from loopcheck.analytic.kinematics.closures import closure_jacobian, closure_residual
from loopcheck.analytic.kinematics.inertia import inertia_matrix
from loopcheck.analytic.kinematics.redundancy import independent_dofs
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import poses, retract, twist_matrices
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

ROUND_OFF = 1e-11
"""Tolerance of exact equations in double precision, relative to the peak [-]."""
BALANCE = 1e-13
"""Largest remainder of a power balance, relative to the acting powers [-]."""


def test_energy_rate_is_the_slope_of_the_energy(prr: Case, prr_motion: Motion) -> None:
    """The complex step of the power balance against a difference of energies at neighbouring times."""
    h = 1e-4
    later, earlier = (prr_motion.assemble(prr_motion.t[1:-1] + s * h) for s in (1, -1))
    slope = (_energy(prr, later) - _energy(prr, earlier)) / (2 * h)
    effort = Noc().compute_efforts(prr, prr_motion).effort
    power = (effort * (prr_motion.qd @ prr.mechanism.selection.T)).sum(1)[1:-1]
    np.testing.assert_allclose(slope, power, atol=1e-6 * np.abs(power).max())


def test_noc_matrices_have_their_structure(zoo_case: Case, zoo_motion: Motion) -> None:
    """M symmetric and positive definite, Φ L = 0, Ṁ − 2C skew (up to armature, which is constant)."""
    mechanism, motion = zoo_case.mechanism, zoo_motion
    independent = independent_dofs(mechanism, motion)
    h, q, qd = 1e-5, motion.q[1:-1], motion.qd[1:-1]
    later, earlier = (retract(mechanism, q, s * h * qd) for s in (1, -1))
    model = noc_model(State(mechanism=mechanism, q=q, qd=qd), independent)
    np.testing.assert_allclose(model.M, model.M.swapaxes(1, 2), atol=1e-12)
    assert np.linalg.eigvalsh(model.M).min() > 0
    at = poses(mechanism, motion.q[1:-1])
    Phi = closure_jacobian(mechanism, at, twist_matrices(mechanism, at), motion.q[1:-1])
    np.testing.assert_allclose(Phi @ model.L, 0, atol=1e-10)
    M_later, M_earlier = (noc_model(State(mechanism=mechanism, q=x, qd=qd), independent).M for x in (later, earlier))
    M_dot = (M_later - M_earlier) / (2 * h)
    skew = M_dot - 2 * model.C
    np.testing.assert_allclose(skew + skew.swapaxes(1, 2), 0, atol=1e-5 * np.abs(M_dot).max(initial=1))


def test_lagrange_derivatives_are_derivatives(zoo_case: Case, zoo_motion: Motion) -> None:
    """The complex step against central differences: closure Jacobian, gravity, and the Jacobian of the other source."""
    mechanism, q = zoo_case.mechanism, zoo_motion.q[::25]
    qd, h = zoo_motion.qd[::25], 1e-5
    model = lagrange_model(mechanism, q, qd)
    at = poses(mechanism, q)
    np.testing.assert_allclose(model.Phi, closure_jacobian(mechanism, at, twist_matrices(mechanism, at), q), atol=1e-12)
    for dof, step in enumerate(h * np.eye(mechanism.nv)):
        ahead, behind = (retract(mechanism, q, np.tile(s * step, (len(q), 1))) for s in (1, -1))
        slope = [closure_residual(mechanism, poses(mechanism, x), x) for x in (ahead, behind)]
        np.testing.assert_allclose(model.Phi[..., dof], (slope[0] - slope[1]) / (2 * h), atol=1e-8)
        still = np.zeros_like(qd)
        energy = [total_energy(mechanism, x, still).real for x in (ahead, behind)]
        np.testing.assert_allclose(model.gravity[:, dof], (energy[0] - energy[1]) / (2 * h), atol=1e-7)


def test_inertia_matrix_gives_the_kinetic_energy(zoo_case: Case, zoo_motion: Motion) -> None:
    mechanism, q, qd = zoo_case.mechanism, zoo_motion.q, zoo_motion.qd
    M = inertia_matrix(State.at_rest(mechanism, q))
    kinetic = total_energy(mechanism, q, qd) - total_energy(mechanism, q, np.zeros_like(qd))
    np.testing.assert_allclose(np.einsum("ti,tij,tj->t", qd, M, qd) / 2, kinetic, atol=1e-12)


def _energy(case: Case, motion: Motion) -> np.ndarray:
    return total_energy(case.mechanism, motion.q, motion.qd).real
