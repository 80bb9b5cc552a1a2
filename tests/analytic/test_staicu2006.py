"""The paper's own model of the 2T1R: its matrices, its conditions of connectivity, and the effect of each erratum."""

from dataclasses import replace

import numpy as np
import pytest

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.kinematics.tree import poses
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.papers import staicu2006 as paper
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import NotFoundError, NotRepresentableError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, make_case
from tests.errors import relative_error

H = 1e-5
SWITCHABLE = [erratum.key for erratum in paper.ERRATA if erratum.computes]


@pytest.fixture(scope="module", params=["horizontal", "vertical"])
def case(request: pytest.FixtureRequest) -> Case:
    return make_case(load("2t1r"), variant="default", mode="home", configuration=request.param)


@pytest.fixture(scope="module")
def motion(case: Case) -> Motion:
    return prescribe(case, dt=0.02)


@pytest.fixture(scope="module")
def p(case: Case) -> paper.Parameters:
    return paper.parameters(case.mechanism)


def test_the_model_has_the_numbers_of_the_paper(p: paper.Parameters) -> None:
    assert (p.r, p.R, p.L) == (0.1, 0.25, 0.4)
    np.testing.assert_allclose(p.m, [0.9751, 0.9803, 8.1573], rtol=1e-14)
    np.testing.assert_allclose(p.J2, np.diag([0.0006, 0.0524, 0.0524]), atol=1e-16)
    np.testing.assert_allclose(p.J3, np.diag([0.0269, 0.0658, 0.0501]), atol=1e-16)


def test_sliders_of_the_law_are_those_of_the_paper(p: paper.Parameters, motion: Motion) -> None:
    """The law and (6) are written separately; the paper's platform moves by (5)."""
    t = motion.t
    x = paper.platform_coordinates(p, motion.law(t).q)
    np.testing.assert_allclose(x[:, 0], -(t**2) * (t**2 - 1.3 * t + 0.3), atol=1e-12)
    np.testing.assert_allclose(x[:, 1], 0.2 * t**2 * (2 * t**2 - t - 1), atol=1e-12)
    np.testing.assert_allclose(x[:, 2], 0.4 * np.sin(4 * np.pi * t), atol=1e-12)


def test_frames_close_the_loops(p: paper.Parameters, motion: Motion) -> None:
    """All three paths (6) to P, (3) and (4), and the printed frame of r43 that cannot close."""
    x = paper.platform_coordinates(p, motion.law(motion.t).q)
    at, sliders = paper.frames(p, x), motion.law(motion.t).q
    y, z, theta = x.T
    P = np.stack([0 * y, y, z - p.h], axis=1)
    for leg, base, end in (("A", -p.R * paper.U2, p.r * paper.U2), ("B", p.R * paper.U2, -p.r * paper.U2)):
        lever = sliders[:, "AB".index(leg), None] * paper.U3 + base
        np.testing.assert_allclose(lever + p.L * at[f"{leg}20"][:, 0] + end, P, atol=1e-13)
    to_slider = sliders[:, 2:] * paper.U3 - p.R * paper.U1
    np.testing.assert_allclose(to_slider - p.L * at["C30"][:, 1] + p.r * at["C50"][:, 0], P, atol=1e-13)
    as_printed = to_slider - p.L * at["C20"][:, 1] + p.r * at["C50"][:, 0]
    assert np.abs(as_printed - P).max() > 0.1
    c50_0 = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])
    a = np.array([[[np.cos(q), 0, -np.sin(q)], [0, 1, 0], [np.sin(q), 0, np.cos(q)]] for q in theta])
    np.testing.assert_allclose(c50_0.T @ at["C50"], a, atol=1e-14)


def test_the_bodies_are_those_of_the_model(case: Case, motion: Motion, p: paper.Parameters) -> None:
    """Orientation of legs, bars and platform against the tree of the model."""
    x = paper.platform_coordinates(p, motion.law(motion.t).q)
    at, tree = paper.frames(p, x), poses(case.mechanism, motion.q)
    names = [body.name for body in case.mechanism.bodies]
    for matrix, row, body, axis, sign in (
        ("A20", 0, "legA", 2, -1),
        ("B20", 0, "legB", 2, -1),
        ("C30", 1, "bar3", 2, 1),
        ("C30", 1, "bar6", 2, 1),
        ("C50", 0, "platform", 0, 1),
        ("C50", 1, "platform", 2, -1),
    ):
        np.testing.assert_allclose(at[matrix][:, row], sign * tree.R[:, names.index(body), :, axis], atol=1e-12)


def test_slider_jacobian_by_finite_differences(p: paper.Parameters) -> None:
    for x in np.random.default_rng(5).uniform(-0.1, 0.1, size=(5, 3)):
        _, slope = paper.slider_displacements(p, x)
        for column, step in enumerate(H * np.eye(3)):
            ahead, behind = (paper.slider_displacements(p, x + s * step)[0] for s in (1, -1))
            np.testing.assert_allclose(slope[:, column], (ahead - behind) / (2 * H), atol=1e-8)


def test_rates_by_finite_differences(p: paper.Parameters, motion: Motion) -> None:
    """(14) and (15) against the angles and the platform at neighbouring times, both from sliders and from platform."""
    t = motion.t[1:-1]
    drive = motion.law(t)
    x = paper.platform_coordinates(p, drive.q)
    at = paper.frames(p, x)
    rates = paper.relative_velocities(p, at, paper._given(drive.qd))
    accelerations = paper.relative_accelerations(p, at, rates, paper._given(drive.qdd))
    later, earlier = (paper.platform_coordinates(p, motion.law(t + s * H).q) for s in (1, -1))
    np.testing.assert_allclose(rates.platform, (later - earlier) / (2 * H), atol=1e-7)
    ahead, behind = (_velocities(p, motion, t + s * H) for s in (1, -1))
    for name in ("w32", "w54", "platform"):
        slope = (getattr(ahead, name) - getattr(behind, name)) / (2 * H)
        np.testing.assert_allclose(getattr(accelerations, name), slope, atol=2e-6)
    for leg in "ABC":
        np.testing.assert_allclose(accelerations.w21[leg], (ahead.w21[leg] - behind.w21[leg]) / (2 * H), atol=2e-6)
        turn = (paper.frames(p, later)[f"{leg}21"] @ paper.frames(p, earlier)[f"{leg}21"].swapaxes(1, 2))[:, 0, 1]
        np.testing.assert_allclose(rates.w21[leg], turn / (2 * H), atol=1e-7)
    back = paper.inverse_velocities(p, at, rates.platform, frozenset())
    again = paper.inverse_accelerations(p, at, back, accelerations.platform, frozenset())
    for leg in "ABC":
        np.testing.assert_allclose(back.v[leg], rates.v[leg], atol=1e-13)
        np.testing.assert_allclose(again.v[leg], accelerations.v[leg], atol=1e-12)
        np.testing.assert_allclose(again.w21[leg], accelerations.w21[leg], atol=1e-12)


def test_recursions_give_the_motion_of_the_model(case: Case, motion: Motion, p: paper.Parameters) -> None:
    """Acceleration of C5 by (13) against a difference of positions of the tree."""
    t = motion.t[1:-1]
    drive = motion.law(t)
    at = paper.frames(p, paper.platform_coordinates(p, drive.q))
    rates = paper.relative_velocities(p, at, paper._given(drive.qd))
    accelerations = paper.relative_accelerations(p, at, rates, paper._given(drive.qdd))
    link = paper.body_motions(p, at, rates, accelerations)["C5"]
    platform = [body.name for body in case.mechanism.bodies].index("platform")
    h = 1e-4
    p0, p1, p2 = (poses(case.mechanism, motion.assemble(t + s * h).q).p[:, platform] for s in (-1, 0, 1))
    acceleration = (link.R.swapaxes(1, 2) @ link.g[..., None])[..., 0]
    np.testing.assert_allclose(acceleration, (p2 - 2 * p1 + p0) / h**2, atol=1e-4)


LEAST = dict.fromkeys(SWITCHABLE, 0.01)
"""A cost that each erratum exceeds in both configurations [-]."""


@pytest.mark.parametrize("key", SWITCHABLE)
def test_what_an_erratum_costs(key: str, case: Case, motion: Motion) -> None:
    reference = Noc().compute_efforts(case, motion).effort
    assert relative_error(paper.efforts(case, motion, frozenset({key})), reference) > LEAST[key]
    assert relative_error(paper.efforts(case, motion), reference) < 1e-11


def test_an_unknown_erratum_is_refused(case: Case, motion: Motion) -> None:
    with pytest.raises(NotFoundError, match=r"unknown erratum: 'bar_frame'. Known: epsilon_base"):
        paper.efforts(case, motion, frozenset({"bar_frame"}))


def test_what_the_paper_has_not_is_refused(case: Case, prr: Case) -> None:
    with pytest.raises(NotRepresentableError, match="the 2T1R of the paper must have a body 'sliderA'"):
        paper.parameters(prr.mechanism)
    joints = tuple(replace(joint, armature=0.1) if joint.name == "B" else joint for joint in case.mechanism.joints)
    with pytest.raises(NotRepresentableError, match="armature, damping or spring of joint 'B'"):
        paper.parameters(replace(case.mechanism, joints=joints))


def _velocities(p: paper.Parameters, motion: Motion, t: Array) -> paper.Rates:
    drive = motion.law(t)
    at = paper.frames(p, paper.platform_coordinates(p, drive.q))
    return paper.relative_velocities(p, at, paper._given(drive.qd))
