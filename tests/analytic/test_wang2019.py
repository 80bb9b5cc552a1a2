"""The paper's own model of the 2PUR-2RPU: its Jacobians and structure, least norm, and the effect of each erratum."""

from dataclasses import replace

import numpy as np
import pytest

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.kinematics.tree import poses
from loopcheck.analytic.motion.laws.wang2019 import modified_trapezoid
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.papers import wang2019 as paper
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import NotFoundError, NotRepresentableError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, make_case
from tests.errors import relative_error

H = 1e-6
SWITCHABLE = [erratum.key for erratum in paper.ERRATA if erratum.computes]


@pytest.fixture(scope="module", params=["horizontal", "vertical"])
def case(request: pytest.FixtureRequest) -> Case:
    return make_case(load("2pur2rpu"), variant="default", mode="home", configuration=request.param)


@pytest.fixture(scope="module")
def motion(case: Case) -> Motion:
    return prescribe(case, dt=0.1)


@pytest.fixture(scope="module")
def p(case: Case) -> paper.Parameters:
    return paper.parameters(case.mechanism)


@pytest.fixture(scope="module")
def x() -> Array:
    """Poses around the motion."""
    rng = np.random.default_rng(6)
    return np.array([0.0, 0.0, 0.08]) + rng.uniform(-1, 1, size=(7, 3)) * [0.15, 0.15, 0.01]


def test_law_is_printed_right() -> None:
    """(B-1) begins and ends at rest without acceleration, and its value, rate and acceleration have no jumps."""
    T, eps = 10.0, 1e-9
    ends = modified_trapezoid(np.array([0.0, T]), T)
    np.testing.assert_allclose(ends.x, [0, 2 * np.pi], atol=1e-14)
    np.testing.assert_allclose([ends.d, ends.dd], 0, atol=1e-14)
    joints = np.array([1, 3, 4, 5, 7]) * T / 8
    before, after = (modified_trapezoid(joints + s * eps, T) for s in (-1, 1))
    for part in ("x", "d", "dd"):
        np.testing.assert_allclose(getattr(before, part), getattr(after, part), atol=1e-8)


def test_tool_follows_the_helix(case: Case, motion: Motion) -> None:
    """The assembled robot against the path (42) to (44): the law goes through (45) to (47) and (39)."""
    phi = modified_trapezoid(motion.t, 10.0).x
    tool = case.mechanism.site("tool")
    at = poses(case.mechanism, motion.q)
    point = at.p[:, tool.body] + at.R[:, tool.body] @ tool.position
    helix = np.stack([0.005 * np.cos(phi) - 0.005, 0.005 * np.sin(phi), 0.12748 + 0.02 * phi / (2 * np.pi)], axis=1)
    np.testing.assert_allclose(point, helix, atol=1e-12)


def test_the_paper_closes_its_loops_where_the_assembly_does(case: Case, motion: Motion, p: paper.Parameters) -> None:
    """Orientation of every body against the tree of the model, and rates of x by differences."""
    drive = motion.law(motion.t)
    x, xd, xdd = paper.generalized_motion(p, *drive)
    at, axes = poses(case.mechanism, motion.q), paper._axes(p, x)
    names = [body.name for body in case.mechanism.bodies]
    for k, name in enumerate(("slider1", "slider2", "link1", "link2", "rod3", "rod4", "platform")):
        np.testing.assert_allclose(at.R[:, names.index(name)], axes[:, k], atol=1e-12)
    h = 1e-4
    (x1, v1, _), (x0, v0, _) = (paper.generalized_motion(p, *motion.law(motion.t + s * h)) for s in (1, -1))
    np.testing.assert_allclose(xd, (x1 - x0) / (2 * h), atol=1e-7)
    np.testing.assert_allclose(xdd, (v1 - v0) / (2 * h), atol=1e-7)


def test_actuation_by_finite_differences(p: paper.Parameters, x: Array) -> None:
    A = paper.actuation(p, x)
    for column, step in enumerate(H * np.eye(3)):
        slope = (paper.actuated_coordinates(p, x + step) - paper.actuated_coordinates(p, x - step)) / (2 * H)
        np.testing.assert_allclose(A[..., column], slope, atol=1e-8)


def test_twist_shaping_by_finite_differences(p: paper.Parameters, x: Array) -> None:
    """Mass centres and orientations of all bodies, displaced along α, β and ζ."""
    T = paper.twist_shaping(p, x)
    for column, step in enumerate(H * np.eye(3)):
        ahead, behind = (_centers(p, x + s * step) for s in (1, -1))
        np.testing.assert_allclose(T[:, :, 3:, column], (ahead - behind) / (2 * H), atol=1e-8)
        turn = paper._axes(p, x + step) @ paper._axes(p, x - step).swapaxes(2, 3) / (2 * H)
        spin = np.stack([turn[..., 2, 1] - turn[..., 1, 2], turn[..., 0, 2] - turn[..., 2, 0]], axis=-1) / 2
        np.testing.assert_allclose(T[:, :, :2, column], spin, atol=1e-8)


@pytest.mark.parametrize("key", SWITCHABLE)
def test_matrices_as_printed_are_no_derivatives(key: str, p: paper.Parameters, x: Array) -> None:
    """Each printed form differs from the matrix that the finite differences confirm, in its own body alone."""
    body = int(key[1]) - 1
    difference = np.abs(paper.twist_shaping(p, x, frozenset({key})) - paper.twist_shaping(p, x)).max(axis=(0, 2, 3))
    assert difference[body] > 1e-3
    assert np.delete(difference, body).max() == 0


def test_matrices_have_their_structure(case: Case, p: paper.Parameters, x: Array) -> None:
    """(26): I symmetric and positive definite, İ − 2C skew."""
    xd, h = np.random.default_rng(7).normal(size=x.shape) * [0.3, 0.3, 0.02], 1e-6
    gravity = case.mechanism.gravity
    model = paper.dynamic_model(p, x, xd, gravity)
    np.testing.assert_allclose(model.I, model.I.swapaxes(1, 2), atol=1e-16)
    assert np.linalg.eigvalsh(model.I).min() > 0
    ahead, behind = (paper.dynamic_model(p, x + s * h * xd, xd, gravity).I for s in (1, -1))
    skew = (ahead - behind) / (2 * h) - 2 * model.C
    np.testing.assert_allclose(skew + skew.swapaxes(1, 2), 0, atol=1e-7 * np.abs(model.C).max())


def test_least_norm_is_least(p: paper.Parameters, x: Array) -> None:
    """(31) with (36): it is the generalized inverse (32), and internal efforts make it longer."""
    A, tau = paper.actuation(p, x), np.random.default_rng(8).normal(size=x.shape)
    found = paper.minimum_norm(A, tau)
    A_T = A.swapaxes(1, 2)
    np.testing.assert_allclose((A_T @ found[..., None])[..., 0], tau, atol=1e-13)
    np.testing.assert_allclose(found, (A @ np.linalg.solve(A_T @ A, tau[..., None]))[..., 0], atol=1e-12)
    internal = np.linalg.svd(A_T)[2][:, 3]
    np.testing.assert_allclose((found * internal).sum(1), 0, atol=1e-13)


LEAST = {
    "t3_beta": 1e-5,
    "t4_beta_w": 1e-5,
    "t4_beta_v": 1e-4,
    "t4_zeta_w": 1e-5,
    "t4_zeta_v": 1e-5,
    "t7_alpha": 1e-2,
    "t7_zeta": 5e-5,
}
"""A cost that each erratum exceeds in both configurations [-]; links are light and the motion is slow."""


@pytest.mark.parametrize("key", SWITCHABLE)
def test_what_an_erratum_costs(key: str, case: Case, motion: Motion) -> None:
    reference = Noc().compute_efforts(case, motion).effort
    assert relative_error(paper.efforts(case, motion, frozenset({key})), reference) > LEAST[key]
    assert relative_error(paper.efforts(case, motion), reference) < 1e-11


def test_an_unknown_erratum_is_refused(case: Case, motion: Motion) -> None:
    with pytest.raises(NotFoundError, match=r"unknown erratum: 'f1'. Known: t3_beta"):
        paper.efforts(case, motion, frozenset({"f1"}))


def test_what_the_paper_has_not_is_refused(case: Case, prr: Case) -> None:
    with pytest.raises(NotRepresentableError, match="the 2PUR-2RPU of the paper must have a body 'rod3'"):
        paper.parameters(prr.mechanism)
    joints = tuple(replace(joint, stiffness=0.1) if joint.name == "q3" else joint for joint in case.mechanism.joints)
    with pytest.raises(NotRepresentableError, match="armature, damping or spring of joint 'q3'"):
        paper.parameters(replace(case.mechanism, joints=joints))


def _centers(p: paper.Parameters, x: Array) -> Array:
    """Mass centres of the seven bodies from the coordinates and axes, shape (nt, 7, 3)."""
    q, axes = paper.actuated_coordinates(p, x), paper._axes(p, x)
    X = np.array([1.0, 0.0, 0.0])
    sliders = [q[:, [k]] * X for k in (0, 1)]
    links = [sliders[k] + p.lc * axes[:, 2 + k, :, 2] for k in (0, 1)]
    pivots = [np.array([0.0, side * p.l3, p.d]) for side in (-1, 1)]
    rods = [pivots[k] + (q[:, [2 + k]] - p.qc) * axes[:, 4 + k, :, 1] for k in (0, 1)]
    P = x[:, 2, None] * np.stack([0 * x[:, 0], -np.sin(x[:, 0]), np.cos(x[:, 0])], axis=1)
    return np.stack([*sliders, *links, *rods, P], axis=1)
