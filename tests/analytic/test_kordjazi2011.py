"""The paper's own model of the 3-PRR: its equations, its table, and the effect of each erratum."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.papers import kordjazi2011 as paper
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import NotFoundError, NotRepresentableError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, make_case
from tests.errors import relative_error

H = 1e-6
SWITCHABLE = [erratum.key for erratum in paper.ERRATA if erratum.computes]


@pytest.fixture(scope="module")
def parameters(prr: Case) -> paper.Parameters:
    return paper.parameters(prr.mechanism)


def test_the_model_has_the_numbers_of_the_paper(parameters: paper.Parameters) -> None:
    """Table 1 in grams and g m², equation (36) in metres."""
    assert (parameters.l1, parameters.l2, parameters.l3) == (0.3, 0.15, 1.0)
    np.testing.assert_allclose(parameters.m * 1e3, [137.2] * 3 + [520.1] * 3 + [1419.5], rtol=1e-12)
    np.testing.assert_allclose(parameters.I * 1e3, [0.017] * 3 + [0.606] * 3 + [5.076], rtol=1e-12)


def test_the_printed_inertias_are_a_millionth() -> None:
    printed = paper.parameters(load("3prr").mechanism("printed_inertia"))
    np.testing.assert_allclose(printed.I * 1e9, [0.017] * 3 + [0.606] * 3 + [5.076], rtol=1e-12)


def test_loop_equations_are_the_differences_of_the_three_paths(parameters: paper.Parameters) -> None:
    """(29) against the transforms (23) to (27), from which the paper derived it."""
    q = _random_q()
    Q1, Q2, Q3 = paper.positions_of_P(parameters, q).T
    phi = paper.loop_equations(parameters, q)
    np.testing.assert_allclose(phi[:, 0] + 1j * phi[:, 1], Q1 - Q2, atol=1e-14)
    np.testing.assert_allclose(phi[:, 2] + 1j * phi[:, 3], Q1 - Q3, atol=1e-14)


def test_frames_as_printed_do_not_meet(parameters: paper.Parameters) -> None:
    """⁸₈T read as the identity leaves the links of legs 2 and 3 out: the paths end 0.3 m apart and more."""
    q = _random_q()
    paths = paper.positions_of_P(parameters, q)
    assert np.abs(paths - paper.positions_of_P(parameters, q, frozenset({"link_frames"})))[:, 1:].min() > 0.1


@pytest.mark.parametrize("printed", [frozenset(), frozenset({"loop_pair"})], ids=["corrected", "(28)"])
def test_loop_jacobian_against_finite_differences(parameters: paper.Parameters, printed: frozenset[str]) -> None:
    q, qd = _random_q(), np.random.default_rng(3).normal(size=(5, 9))
    Phi = paper.loop_jacobian(parameters, q, printed)
    for column, step in enumerate(H * np.eye(9)):
        slope = paper.loop_equations(parameters, q + step, printed) - paper.loop_equations(
            parameters, q - step, printed
        )
        np.testing.assert_allclose(Phi[..., column], slope / (2 * H), atol=1e-8)
    slope = paper.loop_jacobian(parameters, q + H * qd, printed) - paper.loop_jacobian(parameters, q - H * qd, printed)
    np.testing.assert_allclose(paper.loop_jacobian_rate(parameters, q, qd, printed), slope / (2 * H), atol=1e-8)


def test_twist_matrix_against_finite_differences(parameters: paper.Parameters) -> None:
    """Rate of K by differences, and K itself against the velocities of the mass centres."""
    q, qd = _random_q(), np.random.default_rng(4).normal(size=(5, 9))
    K, K_dot, _ = paper.twist_matrix(parameters, q, qd)
    ahead, behind = (paper.twist_matrix(parameters, q + s * H * qd, qd)[0] for s in (1, -1))
    np.testing.assert_allclose(K_dot, (ahead - behind) / (2 * H), atol=1e-8)
    P = [paper.positions_of_P(parameters, q + s * H * qd)[:, 0] for s in (1, -1)]
    velocity = (K.reshape(5, 7, 6, 9) @ qd[:, None, :, None])[:, 6, 3:5, 0]
    np.testing.assert_allclose(velocity[:, 0] + 1j * velocity[:, 1], (P[0] - P[1]) / (2 * H), atol=1e-8)


def test_the_paper_closes_its_loops_where_the_assembly_does(prr: Case, prr_motion: Motion) -> None:
    q = paper.joint_coordinates(paper.parameters(prr.mechanism), prr_motion.law(prr_motion.t).q, paper._guess(prr))
    names = [joint.name for joint in prr.mechanism.joints]
    ours = np.stack([prr_motion.q[:, names.index(f"q{k}")] for k in range(1, 8)], axis=1)
    np.testing.assert_allclose(q[:, :7], ours, atol=1e-12)


COSTS = {  # largest and smallest relative error it causes over modes, in the configurations that show it
    "omega7": ("horizontal", 0.1),
    "r47": ("vertical", 0.3),
    "v1": ("vertical", 0.05),
    "inertia_unit": ("horizontal", 0.05),
}


@cache
def _moved(mode: str, configuration: str) -> tuple[Case, Motion, Array]:
    """A case, its motion, and the efforts of the reference."""
    case = make_case(load("3prr"), variant="default", mode=mode, configuration=configuration)
    motion = prescribe(case)
    return case, motion, Noc().compute_efforts(case, motion).effort


@pytest.mark.parametrize("mode", ["plus", "minus"])
@pytest.mark.parametrize("key", SWITCHABLE)
def test_what_an_erratum_costs(key: str, mode: str) -> None:
    """Errors of mechanics spoil the effort; (28) is equivalent and (24) is corrected in (29) by the authors."""
    configuration, least = COSTS.get(key, ("vertical", 0.0))
    case, motion, reference = _moved(mode, configuration)
    error = relative_error(paper.efforts(case, motion, frozenset({key})), reference)
    assert error > least if key in COSTS else error < 1e-11


def test_an_unknown_erratum_is_refused(prr: Case, prr_motion: Motion) -> None:
    with pytest.raises(NotFoundError, match=r"unknown erratum: 'phi_shape'. Known: omega7, r47"):
        paper.efforts(prr, prr_motion, frozenset({"phi_shape"}))


def test_another_geometry_is_refused(model_case) -> None:  # type: ignore[no-untyped-def]
    from tests.conftest import MODELS

    with pytest.raises(NotRepresentableError, match="the 3-PRR of the paper must have a body 'slider1'"):
        paper.parameters(model_case(MODELS / "four_bar.xml").mechanism)


def _random_q() -> Array:
    return np.random.default_rng(2).normal(size=(5, 9)) * 0.3


def test_what_the_paper_has_not_is_refused(prr: Case) -> None:
    joints = tuple(replace(joint, armature=0.1) if joint.name == "q4" else joint for joint in prr.mechanism.joints)
    with pytest.raises(NotRepresentableError, match="armature, damping or spring of joint 'q4'"):
        paper.parameters(replace(prr.mechanism, joints=joints))
