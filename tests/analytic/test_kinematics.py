"""Jacobians and their rates against finite differences of poses, and poses against the compiler's own."""

import numpy as np
import pytest

from loopcheck.analytic.kinematics.closures import (
    RANK_TOLERANCE,
    closure_jacobian,
    closure_jacobian_rate,
    closure_residual,
    solve_dependent,
)
from loopcheck.analytic.kinematics.tree import poses, retract, twist_matrices, twists
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

H = 1e-5
"""Step of central differences [m or rad]: truncation and round-off both near 1e-10."""
NEAR = 1e-8


def test_poses_are_the_engines(zoo_case: Case, zoo_motion: Motion) -> None:
    mujoco = pytest.importorskip("mujoco")
    from loopcheck.robots.formats.mjcf import compile_model

    model = compile_model(zoo_case.mechanism.model)
    data = mujoco.MjData(model)
    at = poses(zoo_case.mechanism, zoo_motion.q)
    for k in (0, 37, 99):
        data.qpos[:] = zoo_motion.q[k]
        mujoco.mj_kinematics(model, data)
        np.testing.assert_allclose(at.R[k], data.xmat[1:].reshape(-1, 3, 3), atol=1e-14)
        np.testing.assert_allclose(at.c[k], data.xipos[1:], atol=1e-14)


def test_twists_are_rates_of_poses(zoo_case: Case) -> None:
    mechanism = zoo_case.mechanism
    q, qd = _random_state(mechanism)
    at = poses(mechanism, q)
    ahead, behind = (poses(mechanism, retract(mechanism, q, s * H * qd)) for s in (1, -1))
    moving = twists(mechanism, at, qd)
    np.testing.assert_allclose(moving.v, (ahead.c - behind.c) / (2 * H), atol=NEAR)
    spin = (ahead.R - behind.R) / (2 * H) @ at.R.swapaxes(-1, -2)
    w = np.stack([spin[..., 2, 1], spin[..., 0, 2], spin[..., 1, 0]], axis=-1)
    np.testing.assert_allclose(moving.w, w, atol=NEAR)


def test_twist_rates_are_rates_of_twists(zoo_case: Case) -> None:
    mechanism = zoo_case.mechanism
    q, qd = _random_state(mechanism)
    ahead, behind = (twist_matrices(mechanism, poses(mechanism, retract(mechanism, q, s * H * qd))) for s in (1, -1))
    K_dot = twists(mechanism, poses(mechanism, q), qd).K_dot
    np.testing.assert_allclose(K_dot, (ahead - behind) / (2 * H), atol=NEAR)


def test_closure_jacobian_is_the_derivative_of_the_residual(zoo_case: Case, zoo_motion: Motion) -> None:
    mechanism, q = zoo_case.mechanism, zoo_motion.q[::20]
    at = poses(mechanism, q)
    Phi = closure_jacobian(mechanism, at, twist_matrices(mechanism, at), q)
    for dof, step in enumerate(H * np.eye(mechanism.nv)):
        ahead, behind = (_residual(mechanism, retract(mechanism, q, np.tile(s * step, (len(q), 1)))) for s in (1, -1))
        np.testing.assert_allclose(Phi[..., dof], (ahead - behind) / (2 * H), atol=NEAR)


def test_closure_jacobian_rate_keeps_the_loops_closed(zoo_case: Case, zoo_motion: Motion) -> None:
    """Φ L = 0 along the motion, so its second derivative must vanish: Φ q̈ + Φ̇ q̇ = 0."""
    mechanism, motion = zoo_case.mechanism, zoo_motion
    at = poses(mechanism, motion.q)
    moving = twists(mechanism, at, motion.qd)
    Phi = closure_jacobian(mechanism, at, moving.K, motion.q)
    Phi_dot = closure_jacobian_rate(mechanism, at, moving, motion.q, motion.qd)
    later = motion.assemble(motion.t[1:-1] + H)
    earlier = motion.assemble(motion.t[1:-1] - H)
    measured = (later.qd - earlier.qd) / (2 * H)  # accelerations that closed positions alone imply
    residual = np.einsum("tij,tj->ti", Phi[1:-1], measured) + np.einsum("tij,tj->ti", Phi_dot, motion.qd)[1:-1]
    np.testing.assert_allclose(residual, 0, atol=1e-6 * max(1, np.abs(measured).max()))


def _random_state(mechanism: Mechanism) -> tuple[Array, Array]:
    """States anywhere, loops open or not."""
    rng = np.random.default_rng(1)
    start = np.tile(mechanism.rest_position, (4, 1))
    return retract(mechanism, start, rng.normal(size=(4, mechanism.nv))), rng.normal(size=(4, mechanism.nv))


def _residual(mechanism: Mechanism, q: Array) -> Array:
    return closure_residual(mechanism, poses(mechanism, q), q)


@pytest.mark.parametrize("shape", [(12, 9), (9, 12), (9, 9)])
@pytest.mark.parametrize("condition", [10.0, 9e3, 1e12])
def test_dependent_rates_are_least_squares_of_least_norm(shape: tuple[int, int], condition: float) -> None:
    """As by singular values, sample by sample: well and ill conditioned, redundant and singular samples together."""
    random, few = np.random.default_rng(0), min(shape)
    U, V = (np.linalg.qr(random.normal(size=(40, n, few)))[0] for n in shape)
    values = np.tile(np.geomspace(1, 1 / condition, few), (40, 1))
    values[1], values[2, -1] = 1.0, 0.0
    A, right = U * values[:, None] @ V.swapaxes(1, 2), random.normal(size=(40, shape[0], 3))
    A[3], A[4, :, 0] = 0.0, 0.0
    A /= np.maximum(np.linalg.norm(A, axis=2, keepdims=True), 1e-9)
    rates = solve_dependent(A, right)
    for of_sample, matrix, b in zip(rates, A, right, strict=True):
        expected = -np.linalg.lstsq(matrix, b, rcond=RANK_TOLERANCE)[0]
        np.testing.assert_allclose(of_sample, expected, atol=1e-13 * min(condition, 1 / RANK_TOLERANCE) * few)


def test_redundant_rows_that_disagree_are_met_in_the_mean() -> None:
    A = np.array([[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]])
    np.testing.assert_allclose(solve_dependent(A, np.array([[[1.0], [2.0], [4.0]]]))[0, :, 0], [-1, -3], rtol=1e-15)
