"""The document's model of platforms on six legs: its Jacobians, its structure, and the effect of each erratum."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.kinematics.tree import poses
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.papers import angeles2014 as paper
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import NotFoundError, NotRepresentableError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, make_case
from tests.errors import relative_error

H = 1e-5
SWITCHABLE = [erratum.key for erratum in paper.ERRATA if erratum.computes]


@pytest.fixture(scope="module", params=["6spu", "6x6r"])
def case(request: pytest.FixtureRequest) -> Case:
    return make_case(load(request.param), variant="default", mode="home", configuration="vertical")


@pytest.fixture(scope="module")
def motion(case: Case) -> Motion:
    return prescribe(case, dt=0.1)


@pytest.fixture(scope="module")
def p(case: Case) -> paper.Parameters:
    return paper.parameters(case.mechanism)


@pytest.fixture(scope="module")
def states(case: Case, motion: Motion, p: paper.Parameters) -> tuple[tuple[Array, Array], Array]:
    """Poses of the platform as the document's equations give them, and twists."""
    drive = motion.law(motion.t)
    pose = paper.platform_poses(p, drive.q, paper._guess(case))
    model = paper.dynamic_model(p, pose, drive.qd, case.mechanism.gravity)
    return pose, (model.T @ drive.qd[..., None])[..., 0]


def test_count_of_loops_and_freedom() -> None:
    """Six legs of six joints; six legs of five links, the platform and the base."""
    assert paper.loop_count(36, 32) == 5
    assert paper.degree_of_freedom(36, 32) == 6


def test_the_document_closes_its_loops_where_the_assembly_does(
    case: Case, motion: Motion, p: paper.Parameters, states: tuple[tuple[Array, Array], Array]
) -> None:
    """Pose of the platform, and position and orientation of all links, against the tree of the model."""
    (C, R), t = states
    at = poses(case.mechanism, motion.q)
    names = [body.name for body in case.mechanism.bodies]
    np.testing.assert_allclose(at.c[:, names.index("platform")], C, atol=1e-12)
    np.testing.assert_allclose(at.R[:, names.index("platform")], R, atol=1e-12)
    legs = paper.legs_at(p, (C, R), t)
    lower, upper = paper._link_axes(p, legs)
    for k in paper.LEGS:
        np.testing.assert_allclose(at.R[:, names.index(f"lower{k}")], lower[:, k - 1], atol=1e-12)
        np.testing.assert_allclose(at.R[:, names.index(f"upper{k}")], upper[:, k - 1], atol=1e-12)
        np.testing.assert_allclose(at.p[:, names.index(f"lower{k}")], C + legs.o[:, k - 1, 0], atol=1e-12)


def test_leg_jacobians_by_finite_differences(p: paper.Parameters, states: tuple[tuple[Array, Array], Array]) -> None:
    """Rates of joints 1 to 3 from the turning lower link, of joint 4 from its coordinate, for any twist."""
    pose, _ = states
    for t in np.eye(6):
        ahead, behind = _moved(pose, t, H), _moved(pose, t, -H)
        twists = np.tile(t, (len(pose[0]), 1))
        legs = paper.legs_at(p, pose, twists)
        theta_dot = np.linalg.solve(legs.J, twists[:, None, :, None])[..., 0]
        q_dot = (paper.actuated_coordinates(p, ahead) - paper.actuated_coordinates(p, behind)) / (2 * H)
        np.testing.assert_allclose(theta_dot[:, :, paper.ACTUATED], q_dot, atol=1e-8)
        there, back = (paper._link_axes(p, paper.legs_at(p, x, twists))[0] for x in (ahead, behind))
        turn = Rotation.from_matrix((there @ back.swapaxes(2, 3)).reshape(-1, 3, 3)).as_rotvec() / (2 * H)
        w = (legs.e[:, :, :3] * theta_dot[:, :, :3, None]).sum(2)
        np.testing.assert_allclose(turn.reshape(w.shape), w, atol=1e-6)


def test_rates_by_finite_differences(p: paper.Parameters, states: tuple[tuple[Array, Array], Array]) -> None:
    """Shape of the axes, of J_J, and of Y and Z along the motion of the platform."""
    pose, t = states
    legs = paper.legs_at(p, pose, t)
    ahead, behind = (paper.legs_at(p, _along(pose, t, h), t) for h in (H, -H))
    for rate, there, back in (
        (legs.e_dot, ahead.e, behind.e),
        (legs.o_dot, ahead.o, behind.o),
        (legs.J_dot, ahead.J, behind.J),
    ):
        np.testing.assert_allclose(rate, (there - back) / (2 * H), atol=1e-7)
    (Y1, Z1, _, _), (Y0, Z0, _, _) = (paper.twist_shape(p, x) for x in (ahead, behind))
    _, _, Y_dot, Z_dot = paper.twist_shape(p, legs)
    np.testing.assert_allclose(Y_dot, (Y1 - Y0) / (2 * H), atol=1e-7)
    np.testing.assert_allclose(Z_dot, (Z1 - Z0) / (2 * H), atol=1e-7)


def test_passive_joints_drop_out(p: paper.Parameters, states: tuple[tuple[Array, Array], Array]) -> None:
    """A_J J_J has three columns of zeros, and u_J removes two more: Y J_J has a single entry, ζ_J, per leg."""
    pose, t = states
    legs = paper.legs_at(p, pose, t)
    Y, Z, _, _ = paper.twist_shape(p, legs)
    rows = (Y[:, :, None] @ legs.J)[:, :, 0]
    np.testing.assert_allclose(rows[:, :, paper.ACTUATED], np.diagonal(Z, axis1=1, axis2=2), atol=1e-14)
    np.testing.assert_allclose(np.delete(rows, paper.ACTUATED, axis=2), 0, atol=1e-14)


def test_matrices_have_their_structure(case: Case, motion: Motion, p: paper.Parameters) -> None:
    """M symmetric and positive definite, Ṁ − 2N skew, Λ the identity."""
    q, qd, _ = motion.law(motion.t)
    guess, gravity = paper._guess(case), case.mechanism.gravity
    model = paper.dynamic_model(p, paper.platform_poses(p, q, guess), qd, gravity)
    np.testing.assert_allclose(model.M, model.M.swapaxes(1, 2), atol=1e-12)
    assert np.linalg.eigvalsh(model.M).min() > 0
    np.testing.assert_allclose(model.Lambda, np.broadcast_to(np.eye(6), model.Lambda.shape), atol=1e-13)
    (q1, qd1, _), (q0, qd0, _) = (motion.law(motion.t + h) for h in (H, -H))
    M1, M0 = (
        paper.dynamic_model(p, paper.platform_poses(p, x, guess), v, gravity).M for x, v in ((q1, qd1), (q0, qd0))
    )
    skew = (M1 - M0) / (2 * H) - 2 * model.N
    np.testing.assert_allclose(skew + skew.swapaxes(1, 2), 0, atol=1e-6 * np.abs(model.N).max())


def test_forward_dynamics_gives_the_motion_back(case: Case, motion: Motion, p: paper.Parameters) -> None:
    q, qd, qdd = motion.law(motion.t)
    model = paper.dynamic_model(p, paper.platform_poses(p, q, paper._guess(case)), qd, case.mechanism.gravity)
    phi = Noc().compute_efforts(case, motion).effort
    np.testing.assert_allclose(paper.accelerations(model, qd, phi), qdd, atol=1e-11)


LEAST = {
    "leg_gravity": 0.1,
    "n_transpose": 0.001,
    "coriolis_sign": 0.001,
    "lambda_transpose": 0.1,
    "twist_sign": 0.01,  # the weight is still balanced: T cancels between Tᵀ w and Λ
}
"""A cost that each erratum exceeds, upright [-]."""


@pytest.fixture(scope="module")
def reference(case: Case, motion: Motion) -> Array:
    return Noc().compute_efforts(case, motion).effort


def test_the_corrected_model_is_right(case: Case, motion: Motion, reference: Array) -> None:
    assert relative_error(paper.efforts(case, motion), reference) < 1e-11


@pytest.mark.parametrize("key", SWITCHABLE)
def test_what_an_erratum_costs(key: str, case: Case, motion: Motion, reference: Array) -> None:
    error = relative_error(paper.efforts(case, motion, frozenset({key})), reference)
    assert error > LEAST[key]


def test_a_slide_taken_for_a_revolute_repeats_the_third_axis(
    p: paper.Parameters, states: tuple[tuple[Array, Array], Array]
) -> None:
    """The erratum that cannot be computed: e4 along S–U is the third axis at S of R_lower = Rx Ry Rz."""
    if p.lengths is None:
        legs = paper.legs_at(p, *states)
        np.testing.assert_allclose(legs.e[:, :, 3], legs.e[:, :, 2], atol=1e-15)
        np.testing.assert_allclose(legs.o[:, :, 3], legs.o[:, :, 2], atol=1e-15)


def test_an_unknown_erratum_is_refused(case: Case, motion: Motion) -> None:
    with pytest.raises(NotFoundError, match=r"unknown erratum: 'l_shape'. Known: leg_gravity"):
        paper.efforts(case, motion, frozenset({"l_shape"}))


def test_what_the_document_has_not_is_refused(case: Case, prr: Case) -> None:
    with pytest.raises(NotRepresentableError, match="must have a body 'lower1', the model has no such body"):
        paper.parameters(prr.mechanism)
    mechanism = case.mechanism
    joints = tuple(replace(joint, damping=0.1) if joint.name == "leg2" else joint for joint in mechanism.joints)
    with pytest.raises(NotRepresentableError, match="armature, damping or spring of joint 'leg2'"):
        paper.parameters(replace(mechanism, joints=joints))
    elsewhere = (replace(mechanism.wrenches[0], point=np.zeros(3)),)
    with pytest.raises(NotRepresentableError, match="must act at the platform's mass centre"):
        paper.parameters(replace(mechanism, wrenches=elsewhere))


def _moved(pose: tuple[Array, Array], t: Array, h: float) -> tuple[Array, Array]:
    """Poses after a small motion with a constant twist."""
    return _along(pose, np.tile(t, (len(pose[0]), 1)), h)


def _along(pose: tuple[Array, Array], t: Array, h: float) -> tuple[Array, Array]:
    """Poses after a small motion, each with its twist; only the first order counts."""
    return pose[0] + h * t[:, 3:], Rotation.from_rotvec(h * t[:, :3]).as_matrix() @ pose[1]
