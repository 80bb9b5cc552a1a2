"""Wrenches of closures against the multipliers of two Lagrangian models that others derived: sign, axes and point."""

import numpy as np
import pytest

from loopcheck.analytic.dynamics.maximal_wrenches import MaximalWrenches
from loopcheck.analytic.dynamics.noc import needed_efforts
from loopcheck.analytic.dynamics.recursive_wrenches import recursive_wrenches
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import point_of
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.papers import zubizarreta2010 as paper
from loopcheck.robots.connections import connections
from loopcheck.robots.mechanism import WORLD
from loopcheck.robots.robot import load, make_case
from loopcheck.validation.studies.free_motion.benchmark import load_benchmark
from loopcheck.validation.studies.free_motion.measure import start_of

ACCELERATIONS = {"beta": 14222.4439199541138705911625887, "Theta": -10666.8329399655854029433719415}
MULTIPLIERS = {"K3": (98.5668703962410896057654982170, -6.12268834425566265503114393122), "K4": (0, 0), "K6": (0, 0)}
"""Of Andrews' squeezer at the start, as printed in the test set for initial value problem solvers."""


@pytest.mark.parametrize("configuration", ["horizontal", "vertical"])
@pytest.mark.parametrize("mode", ["pmp", "mpm"])
def test_legs_act_on_the_3rrr_platform_by_the_multipliers_of_the_paper(mode: str, configuration: str) -> None:
    """λ of (21) to (25) is the force of all legs on the platform and load, with its moment about P.

    It follows from the platform (46), (52); the force of each leg from both equations of its chain (54) to (57).
    """
    case = make_case(load("3rrr"), variant="default", mode=mode, configuration=configuration)
    mechanism, motion = case.mechanism, prescribe(case, dt=0.1)
    p, drive = paper.parameters(mechanism), motion.law(motion.t)
    g = -float(mechanism.gravity[1])
    x, q = paper.positions(p, drive.q, paper.passive_guess(case))
    qd = (paper.transformation(p, q) @ drive.qd[..., None])[..., 0]
    moving = paper.kinematics_of(p, x, q, qd)
    qdd = moving.T @ drive.qdd[..., None] + moving.T_dot @ drive.qd[..., None]
    D_x, G_x = paper.platform_model(p, g=g)
    lam = (moving.J_C @ qdd + moving.J_C_dot @ qd[..., None])[..., 0] @ D_x + G_x
    legs = paper.chain_model(p, q, qd, g=g)
    left = np.concatenate([paper.efforts(case, motion), np.zeros_like(drive.q)], axis=1)
    left = left - (legs.D @ qdd + legs.C @ qd[..., None])[..., 0] - legs.G
    inner, outer = (1j * length * np.exp(1j * angle) for length, angle in ((p.L, q[:, :3]), (p.l, q[:, :3] + q[:, 3:])))
    J = np.array([[x.real, x.imag] for x in (inner + outer, outer)]).transpose(2, 3, 0, 1)  # of C_i per (q_a, q_p)
    forces = np.linalg.solve(J, np.stack(np.split(left, 2, axis=1), axis=2)[..., None])[..., 0]
    limit = 1e-11 * np.abs(forces).max()
    np.testing.assert_allclose(forces.sum(axis=1), lam[:, :2], atol=limit)

    state = State(mechanism=mechanism, q=motion.q, qd=motion.qd)
    effort = needed_efforts(state, motion.qdd).effort
    platform = [body.name for body in mechanism.bodies].index("platform")
    order = [next(x.name for x in connections(mechanism) if x.body == platform), "qc2", "qc3"]
    for way in (
        recursive_wrenches(state, motion.qdd, effort),
        MaximalWrenches(mechanism, motion.q)(motion.qd, motion.qdd, effort),
    ):
        P, total = point_of(state.poses, platform, mechanism.site("P").position), np.zeros((len(motion.t), 6))
        for k, connection in enumerate(connections(mechanism)):
            if connection.body == platform:
                M, F = ((state.poses.R[:, platform] @ x[..., None])[..., 0] for x in np.split(way.wrench[:, k], 2, 1))
                np.testing.assert_allclose(F[:, :2], forces[:, order.index(connection.name)], atol=limit)
                arm = point_of(state.poses, platform, connection.point) - P
                total += np.concatenate([M + np.cross(arm, F), F], axis=1)
        np.testing.assert_allclose(total[:, [3, 4, 2]], lam, atol=limit)


def test_closures_of_the_squeezer_carry_the_published_multipliers() -> None:
    """The benchmark has M q̈ + Φᵀλ = f, so that λ acts on the other body."""
    start = start_of(load_benchmark("andrews"))
    mechanism, q = start.mechanism, start.q[None]
    qdd = np.array([[ACCELERATIONS.get(joint.name, 0.0) for joint in mechanism.joints]])
    state = State(mechanism=mechanism, q=q, qd=np.zeros_like(qdd))
    effort = np.full((1, 1), 0.033)
    found, named = connections(mechanism), {}
    for way in (recursive_wrenches(state, qdd, effort), MaximalWrenches(mechanism, q)(state.qd, qdd, effort)):
        for k, connection in enumerate(found):
            if connection.closure is not None:
                R = np.eye(3) if connection.body == WORLD else state.poses.R[0, connection.body]
                named[connection.name] = R @ way.wrench[0, k, 3:]
        assert named.keys() == MULTIPLIERS.keys()
        for name, lam in MULTIPLIERS.items():
            np.testing.assert_allclose(named[name][:2], np.negative(lam), atol=1e-9)
