"""The paper's own model of the 3-RRR: its equations, structure, singularities, and the effect of each erratum."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from scipy.optimize import brentq

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.kinematics.tree import poses
from loopcheck.analytic.motion.laws import prescription
from loopcheck.analytic.motion.laws import zubizarreta2010 as circle
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.papers import zubizarreta2010 as paper
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import (
    LoopClosureError,
    MechanismError,
    NotFoundError,
    NotRepresentableError,
    SingularityError,
)
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, make_case
from tests.errors import relative_error

H = 1e-6
G = 9.81
REGULAR = ("pmp", "mpm", "ppp", "ppm")
SINGULAR = ("pmm", "mpp", "mmp", "mmm")
SWITCHABLE = [erratum.key for erratum in paper.ERRATA if erratum.computes]


@cache
def _case(mode: str, configuration: str = "vertical") -> Case:
    return make_case(load("3rrr"), variant="default", mode=mode, configuration=configuration)


@cache
def _motion(mode: str) -> Motion:
    return prescribe(_case(mode))


@cache
def _reference(mode: str, configuration: str) -> Array:
    return Noc().compute_efforts(_case(mode, configuration), _motion(mode)).effort


@pytest.fixture(scope="module")
def parameters() -> paper.Parameters:
    return paper.parameters(_case("pmp").mechanism)


@pytest.fixture(scope="module")
def uneven(parameters: paper.Parameters) -> paper.Parameters:
    """Legs that all differ, so that an index of the wrong leg shows."""
    one = np.array([1.0, 0.97, 1.04])
    return replace(parameters, L=parameters.L * one, l=parameters.l * one[::-1], ml=parameters.ml * one)


def test_the_model_has_the_numbers_of_the_paper(parameters: paper.Parameters) -> None:
    np.testing.assert_array_equal(parameters.OA, [[-0.15, -0.84], [0.69, -0.17], [-0.66, 0.21]])
    wanted = {"L": 0.5, "l": 0.4, "d": 0.1732, "lcL": 0.25, "lcl": 0.2, "mL": 0.4239, "ml": 0.3391, "ms": 0.0656}
    inertias = {"IL": 0.0088, "Il": 0.0045, "Is": 3.687e-6, "Ip": 0.0085, "Ic": 8.3333e-4, "mp": 1.3576, "mc": 0.5}
    for name, value in (wanted | inertias).items():
        np.testing.assert_allclose(getattr(parameters, name), value, rtol=1e-12, err_msg=name)
    np.testing.assert_allclose(parameters.h, np.sqrt(3) * 0.1732, rtol=1e-12)


@pytest.mark.parametrize("mode", [*REGULAR, *SINGULAR])
def test_the_mode_says_the_signs(mode: str) -> None:
    np.testing.assert_array_equal(
        np.sign(np.sin(paper.passive_guess(_case(mode)))), [1 if s == "p" else -1 for s in mode]
    )


@pytest.mark.parametrize("mode", REGULAR)
def test_P_goes_round_the_circle(mode: str) -> None:
    """Through the assembly of the loops, without inverse kinematics."""
    motion, mechanism = _motion(mode), _case(mode).mechanism
    at, P = poses(mechanism, motion.q), mechanism.site("P")
    path = at.p[:, P.body] + at.R[:, P.body] @ P.position
    angle = np.pi * motion.t
    np.testing.assert_allclose(path[:, :2], 0.1 * np.stack([np.cos(angle), np.sin(angle)], axis=1), atol=1e-13)
    np.testing.assert_allclose(at.R[:, P.body], np.broadcast_to(np.eye(3), (len(path), 3, 3)), atol=1e-13)


@pytest.mark.parametrize("mode", [*REGULAR, *SINGULAR])
def test_law_against_finite_differences(mode: str) -> None:
    """Also before and after the span, in any order of calls, and starting exactly at the keyframe."""
    case = _case(mode)
    law, t = prescription(case).law, np.linspace(-0.1, 2.1, 45)
    ahead, behind, here = law(t + H), law(t - H), law(t)
    np.testing.assert_allclose(here.qd, (ahead.q - behind.q) / (2 * H), atol=1e-8)
    np.testing.assert_allclose(here.qdd, (ahead.qd - behind.qd) / (2 * H), atol=1e-7)
    np.testing.assert_array_equal(np.concatenate([law(t[[k]]).q for k in range(len(t))]), here.q)
    start = case.guess[[case.mechanism.q_slices[j].start for j in case.mechanism.actuated_joints]]
    np.testing.assert_allclose(law(np.zeros(1)).q[0], start, atol=1e-14)


def test_law_keeps_the_turns_of_the_guess() -> None:
    mechanism, start = _case("pmp").mechanism, _case("pmp").guess[[0, 3, 5]]
    turned = start + 2 * np.pi * np.array([1, -1, 2])
    q = circle.prescription(mechanism, turned).law(np.zeros(1)).q[0]
    np.testing.assert_allclose(q, turned, atol=1e-13)


def test_a_circle_out_of_reach_is_refused() -> None:
    case = _case("pmp")
    with pytest.raises(MechanismError, match=r"reach of leg 1 must cover .* m for the circle, got 0\.1 to 0\.9 m"):
        circle.prescription(case.mechanism, case.guess[[0, 3, 5]], radius=0.3)


def test_positions_close_every_closure(uneven: paper.Parameters) -> None:
    """(27), (28) and (30) at the solution of the inverse position problem (35), (36), in every mode."""
    x, _ = _poses()
    for mode in (*REGULAR, *SINGULAR):
        q = paper.inverse_position(uneven, x, np.array([1.0 if s == "p" else -1.0 for s in mode]))
        assert np.abs(paper.closure_chains(uneven, x, q)).max() < 1e-14
        assert np.abs(paper.closure_active(uneven, x, q[:, :3])).max() < 1e-14
        assert np.abs(paper.closure_passive(uneven, q)).max() < 1e-14
        np.testing.assert_allclose(paper.direct_position(uneven, q), x, atol=1e-14)


def test_active_jacobians_against_finite_differences(uneven: paper.Parameters) -> None:
    """(37) and (42)."""
    (x, q), (xd, qd) = _poses(), _rates()
    qa, qad = q[:, :3], qd[:, :3]
    J_xa, J_qa = paper.active_jacobians(uneven, x, qa)
    for k, step in enumerate(H * np.eye(3)):
        slope = (paper.closure_active(uneven, x + step, qa) - paper.closure_active(uneven, x - step, qa)) / (2 * H)
        np.testing.assert_allclose(J_xa[..., k], slope, atol=1e-9)
        slope = (paper.closure_active(uneven, x, qa + step) - paper.closure_active(uneven, x, qa - step)) / (2 * H)
        np.testing.assert_allclose(J_qa[..., k], slope, atol=1e-9)
    ahead, behind = (paper.active_jacobians(uneven, x + s * xd, qa + s * qad) for s in (H, -H))
    rates = paper.active_jacobian_rates(uneven, x, qa, xd, qad)
    for rate, a, b in zip(rates, ahead, behind, strict=True):
        np.testing.assert_allclose(rate, (a - b) / (2 * H), atol=1e-8)


def test_chain_jacobians_against_finite_differences(uneven: paper.Parameters) -> None:
    """(38) and (43)."""
    (x, q), (xd, qd) = _poses(), _rates()
    J_x, J_q = paper.chain_jacobians(uneven, x, q)
    for k, step in enumerate(H * np.eye(3)):
        slope = paper.closure_chains(uneven, x + step, q) - paper.closure_chains(uneven, x - step, q)
        np.testing.assert_allclose(J_x[..., k], slope / (2 * H), atol=1e-9)
    for k, step in enumerate(H * np.eye(6)):
        slope = paper.closure_chains(uneven, x, q + step) - paper.closure_chains(uneven, x, q - step)
        np.testing.assert_allclose(J_q[..., k], slope / (2 * H), atol=1e-9)
    ahead, behind = (paper.chain_jacobians(uneven, x + s * xd, q + s * qd) for s in (H, -H))
    for rate, a, b in zip(paper.chain_jacobian_rates(uneven, x, q, xd, qd), ahead, behind, strict=True):
        np.testing.assert_allclose(rate, (a - b) / (2 * H), atol=1e-8)


@pytest.mark.parametrize("printed", [frozenset(), frozenset({"next_link"})], ids=["corrected", "printed"])
def test_passive_jacobians_against_finite_differences(uneven: paper.Parameters, printed: frozenset[str]) -> None:
    """(40) and (44)."""
    (_, q), (_, qd) = _poses(), _rates()
    J = np.concatenate(paper.passive_jacobians(uneven, q, printed), axis=2)
    for k, step in enumerate(H * np.eye(6)):
        slope = paper.closure_passive(uneven, q + step, printed) - paper.closure_passive(uneven, q - step, printed)
        np.testing.assert_allclose(J[..., k], slope / (2 * H), atol=1e-9)
    ahead, behind = (paper.passive_jacobians(uneven, q + s * qd, printed) for s in (H, -H))
    for rate, a, b in zip(paper.passive_jacobian_rates(uneven, q, qd, printed), ahead, behind, strict=True):
        np.testing.assert_allclose(rate, (a - b) / (2 * H), atol=1e-8)


def test_J_C_and_T_against_finite_differences(uneven: paper.Parameters) -> None:
    """(39), (41) and their rates; q need not close the loops, as measured joints of another robot do not."""
    (x, q), (_, qd) = _poses(), _rates()
    at = paper.kinematics_of(uneven, x, q, qd)
    xd = (at.J_C @ qd[..., None])[..., 0]
    ahead, behind = (paper.kinematics_of(uneven, x + s * xd, q + s * qd, qd) for s in (H, -H))
    np.testing.assert_allclose(at.J_C_dot, (ahead.J_C - behind.J_C) / (2 * H), atol=1e-7)
    np.testing.assert_allclose(at.T_dot, (ahead.T - behind.T) / (2 * H), atol=1e-6)


def test_J_C_is_the_velocity_of_P() -> None:
    """(37), (39) and (41) agree on ẋ along the motion on the circle."""
    p, motion = paper.parameters(_case("ppm").mechanism), _motion("ppm")
    x, q = paper.positions(p, motion.law(motion.t).q, paper.passive_guess(_case("ppm")))
    qad = motion.law(motion.t).qd
    qd = (paper.transformation(p, q) @ qad[..., None])[..., 0]
    xd = (paper.kinematics_of(p, x, q, qd).J_C @ qd[..., None])[..., 0]
    angle = np.pi * motion.t
    speed = 0.1 * np.pi * np.stack([-np.sin(angle), np.cos(angle), 0 * angle], axis=1)
    np.testing.assert_allclose(xd, speed, atol=1e-13)
    J_xa, J_qa = paper.active_jacobians(p, x, q[:, :3])
    np.testing.assert_allclose(-np.linalg.solve(J_xa, J_qa @ qad[..., None])[..., 0], speed, atol=1e-13)


def test_equation_25(uneven: paper.Parameters) -> None:
    """−(∂Γ/∂q)ᵀ [(∂Γ/∂x)ᵀ]⁺ = J_Cᵀ, with numpy's own generalized inverse."""
    (x, q), (_, qd) = _poses(), _rates()
    J_x, J_q = paper.chain_jacobians(uneven, x, q)
    left = -J_q.swapaxes(1, 2) @ np.linalg.pinv(J_x.swapaxes(1, 2))
    np.testing.assert_allclose(left, paper.kinematics_of(uneven, x, q, qd).J_C.swapaxes(1, 2), atol=1e-13)


def test_the_chains_are_skew_only_with_56_corrected(uneven: paper.Parameters) -> None:
    (_, q), (_, qd) = _poses(), _rates()
    ahead, behind = (paper.chain_model(uneven, q + s * qd, qd, g=G) for s in (H, -H))
    D_dot = (ahead.D - behind.D) / (2 * H)
    for printed, is_skew in ((frozenset(), True), (frozenset({"c_passive"}), False)):
        N = D_dot - 2 * paper.chain_model(uneven, q, qd, g=G, printed=printed).C
        assert (np.abs(N + N.swapaxes(1, 2)).max() < 1e-8) == is_skew


def test_structure_of_the_model(uneven: paper.Parameters) -> None:
    """D T_q is symmetric positive definite and Ḋ − 2C is skew in active joints; D of (58) is 3×6, so it is neither."""
    x, _ = _poses()
    q = paper.inverse_position(uneven, x, np.array([1.0, -1.0, 1.0]))
    qd = (paper.transformation(uneven, q) @ np.random.default_rng(5).normal(size=(len(q), 3, 1)))[..., 0]
    at = paper.kinematics_of(uneven, x, q, qd)
    assert paper.redundant_model(uneven, x, q, qd, g=G).D.shape == (len(q), 3, 6)
    model = paper.active_model(uneven, x, q, qd, g=G)
    np.testing.assert_allclose(model.D, paper.redundant_model(uneven, x, q, qd, g=G).D @ at.T, rtol=1e-13)
    np.testing.assert_allclose(model.D, model.D.swapaxes(1, 2), atol=1e-13)
    assert np.linalg.eigvalsh(model.D).min() > 1e-3
    xd = (at.J_C @ qd[..., None])[..., 0]
    D_dot = np.zeros_like(model.D)
    for s in (1, -1):
        moved = paper.passive_joints(uneven, q[:, :3] + s * H * qd[:, :3], q[:, 3:] + s * H * qd[:, 3:])
        D_dot += s * paper.active_model(uneven, x + s * H * xd, moved, qd, g=G).D / (2 * H)
    N = D_dot - 2 * model.C
    assert np.abs(N + N.swapaxes(1, 2)).max() < 1e-7 * np.abs(N).max()


@pytest.mark.parametrize("configuration", ["horizontal", "vertical"])
@pytest.mark.parametrize("mode", REGULAR)
def test_the_redundant_model_gives_the_same_efforts(mode: str, configuration: str) -> None:
    """(58) is complete and exact."""
    case = _case(mode, configuration)
    reference = Noc().compute_efforts(case, _motion(mode)).effort
    assert relative_error(paper.redundant_efforts(case, _motion(mode)), reference) < 1e-12
    assert relative_error(paper.efforts(case, _motion(mode)), reference) < 1e-12


@pytest.mark.parametrize("mode", SINGULAR)
def test_singular_modes_are_refused_with_the_time(mode: str) -> None:
    """The determinant of the forces along the distal links gives the time, by another way to the same poses."""
    case = _case(mode)
    p, elbow = paper.parameters(case.mechanism), np.sign(np.sin(paper.passive_guess(case)))

    def determinant(time: float) -> float:
        x = np.array([[0.1 * np.cos(np.pi * time), 0.1 * np.sin(np.pi * time), 0.0]])
        return float(paper.singularity_determinant(p, x, paper.inverse_position(p, x, elbow))[0])

    t = np.linspace(0, 2, 401)
    signs = np.sign([determinant(time) for time in t])
    crossings = [brentq(determinant, t[k], t[k + 1], xtol=1e-13) for k in np.flatnonzero(np.diff(signs))]
    assert len(crossings) == 2
    with pytest.raises(SingularityError) as caught:
        prescribe(case)
    assert caught.value.time == pytest.approx(crossings[0], abs=1e-8)
    assert caught.value.singular_value < 1e-10
    assert f"meets a singularity at t = {crossings[0]:.6f} s, again at {crossings[1]:.6f} s" in str(caught.value)
    assert case.robot.expected[mode] == "not comparable"


def test_a_singularity_is_told_to_the_same_digits_every_time() -> None:
    told = set()
    for _ in range(3):
        with pytest.raises(SingularityError) as caught:
            prescribe(_case("pmm"))
        told.add(str(caught.value))
    assert len(told) == 1


@pytest.mark.parametrize("mode", REGULAR)
def test_regular_modes_stay_away_from_singularities(mode: str) -> None:
    p, motion = paper.parameters(_case(mode).mechanism), _motion(mode)
    x, q = paper.positions(p, motion.law(motion.t).q, paper.passive_guess(_case(mode)))
    determinant = paper.singularity_determinant(p, x, q)
    assert np.abs(determinant).min() > 0.7
    assert (np.sign(determinant) == np.sign(determinant[0])).all()


COSTS = {  # smallest relative error it causes in modes pmp and mpm, in the configuration that shows it best
    "c_passive": ("horizontal", 0.04),
    "g_passive": ("vertical", 0.1),
    "platform_weight": ("vertical", 0.15),
    "lagrangian_cross": ("horizontal", 0.03),
    "lagrangian_passive": ("horizontal", 0.1),
    "distal_center": ("horizontal", 0.03),
    "k_y": ("vertical", 0.1),
    "k_py": ("vertical", 0.1),
    "k_p": ("vertical", 0.2),
    "passive_root": ("vertical", 0.5),
}


@pytest.mark.parametrize("mode", ["pmp", "mpm"])
@pytest.mark.parametrize("key", sorted(set(SWITCHABLE) - {"arctangents"}))
def test_what_an_erratum_costs(key: str, mode: str) -> None:
    """Errors of mechanics spoil the effort; l_i for l_{i+1} does not show, because all distal links are as long."""
    configuration, least = COSTS.get(key, ("vertical", 0.0))
    case, motion = _case(mode, configuration), _motion(mode)
    error = relative_error(paper.efforts(case, motion, frozenset({key})), _reference(mode, configuration))
    assert error > least if key in COSTS else error < 1e-11


@pytest.mark.parametrize("key", ["g_passive", "platform_weight"])
def test_errata_of_weight_do_not_show_lying_flat(key: str) -> None:
    case, motion = _case("pmp", "horizontal"), _motion("pmp")
    reference = Noc().compute_efforts(case, motion).effort
    assert relative_error(paper.efforts(case, motion, frozenset({key})), reference) < 1e-12


def test_principal_arctangents_lose_the_pose() -> None:
    """(34) as printed turns the platform by a third of a turn or a half, out of the legs' reach."""
    case, motion = _case("pmp"), _motion("pmp")
    with pytest.raises(LoopClosureError, match="no real root"):
        paper.efforts(case, motion, frozenset({"arctangents"}))
    p = paper.parameters(case.mechanism)
    _, q = paper.positions(p, motion.law(motion.t).q, paper.passive_guess(case))
    theta = paper.direct_position(p, q, frozenset({"arctangents"}))[:, 2]
    assert (np.minimum(np.abs(theta + 2 * np.pi / 3), np.abs(theta + np.pi)) < 1e-9).all()


def test_the_next_link_matters_where_links_differ(uneven: paper.Parameters) -> None:
    x, _ = _poses()
    q = paper.inverse_position(uneven, x, np.ones(3))
    assert np.abs(paper.closure_passive(uneven, q, frozenset({"next_link"}))).max() > 1e-3


def test_an_unknown_erratum_is_refused() -> None:
    with pytest.raises(NotFoundError, match=r"unknown erratum: 'd41'. Known: c_passive, g_passive"):
        paper.efforts(_case("pmp"), _motion("pmp"), frozenset({"d41"}))


def test_what_the_paper_has_not_is_refused(prr: Case) -> None:
    mechanism = _case("pmp").mechanism
    with pytest.raises(NotRepresentableError, match="the 3-RRR of the paper must have a body 'proximal1'"):
        paper.parameters(prr.mechanism)
    joints = tuple(replace(joint, damping=0.1) if joint.name == "qp2" else joint for joint in mechanism.joints)
    with pytest.raises(NotRepresentableError, match="armature, damping or spring of joint 'qp2'"):
        paper.parameters(replace(mechanism, joints=joints))
    bodies = tuple(
        replace(body, center=body.center + 1e-3) if body.name == "distal3" else body for body in mechanism.bodies
    )
    with pytest.raises(NotRepresentableError, match="mass centres of the distal links"):
        paper.parameters(replace(mechanism, bodies=bodies))


def _poses() -> tuple[Array, Array]:
    """Poses near the circle, and joints that close no loop."""
    rng = np.random.default_rng(2)
    return rng.uniform(-0.08, 0.08, size=(6, 3)), rng.normal(size=(6, 6))


def _rates() -> tuple[Array, Array]:
    rng = np.random.default_rng(3)
    return rng.normal(size=(6, 3)), rng.normal(size=(6, 6))
