"""Files with few digits: accuracy of their loops, degrees of freedom, and efforts against the file with all digits."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from loopcheck.analytic.dynamics.lagrange import Lagrange
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.dynamics.resolution import file_resolution
from loopcheck.analytic.kinematics.closing import LARGEST, allowed, loop_gaps, with_closing
from loopcheck.analytic.kinematics.continuation import CLOSED, close
from loopcheck.analytic.kinematics.mobility import mobility
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.robots.size import closure_units, resolved_part, unit_rates
from tests.conftest import CaseMaker
from tests.exported_legs import Leg, cut_trees, opening_rates

ALL = 17
"""Digits of a file whose loops close to round-off."""
DOFS = {"fixed": 1, "hinge": 2, "slide": 2, "ball": 4, "free": 7, "two hinges": 3}
"""Degrees of freedom of a leg by its carrier: those of the carrier, and one of the four-bar."""
LEGS = [
    Leg(carrier=carrier, closure=closure, digits=digits, seed=seed)
    for seed, (carrier, closure, digits) in enumerate(
        [
            ("fixed", "two connects", 6),
            ("hinge", "two connects", 6),
            ("hinge", "two connects", 4),
            ("hinge", "weld", 5),
            ("hinge", "connect", 6),
            ("slide", "two connects", 5),
            ("ball", "two connects", 6),
            ("free", "two connects", 6),
            ("free", "weld", 6),
            ("two hinges", "two connects", 5),
            ("two hinges", "weld", 6),
        ]
    )
]
SCALED = [
    Leg(scale=0.03, degrees=True, seed=3),
    Leg(scale=3.0, legs=2, seed=4),
    Leg(carrier="free", closure="connect", legs=2, seed=5),
    Leg(carrier="slide", closure="connect", digits=4, seed=779),
    Leg(closure="connect", digits=4, seed=1),
    Leg(closure="weld", digits=4, seed=1),
]


def mechanism_of(leg: Leg, folder: Path) -> Mechanism:
    path = folder / f"leg{leg.digits}.xml"
    path.write_text(leg.text(), encoding="utf-8")
    return with_closing(read_mechanism(ModelFile(path=path)))


def moved(leg: Leg, folder: Path, model_case: CaseMaker) -> tuple[Case, Motion]:
    path = folder / f"leg{leg.digits}.xml"
    path.write_text(leg.text(), encoding="utf-8")
    case = model_case(path, amplitude=0.3, duration=0.1, frequency=2.0)
    return case, prescribe(case)


@pytest.mark.parametrize("leg", [*LEGS, *SCALED], ids=str)
def test_rounding_takes_no_freedom(leg: Leg, tmp_path: Path) -> None:
    rounded, exact = (mechanism_of(each, tmp_path) for each in (leg, replace(leg, digits=ALL)))
    accuracy = rounded.closing.accuracy
    assert 0.1 * 10.0**-leg.digits < accuracy < 30 * 10.0**-leg.digits
    assert exact.closing.accuracy == 0
    assert rounded.closing.rank_limit == pytest.approx(max(1e-5, 30 * accuracy))
    dofs = [mobility(each, each.rest_position).dof for each in (rounded, exact)]
    assert dofs == 2 * [DOFS[leg.carrier] + leg.legs - 1]


@pytest.mark.parametrize("leg", LEGS, ids=str)
def test_closed_poses_have_gaps_of_the_accuracy(leg: Leg, tmp_path: Path) -> None:
    """From 0.2 rad beside the pose of the file; a pose of larger gaps is open."""
    mechanism = mechanism_of(leg, tmp_path)
    away = mechanism.rest_position[None].copy()
    away[:, mechanism.q_slices[-1]] += 0.2
    q, residual = close(mechanism, away, np.ones(mechanism.nv, dtype=bool))
    assert residual <= 1e-12
    gap = loop_gaps(mechanism, State.at_rest(mechanism, q).gap).max()
    assert 0.01 * mechanism.closing.accuracy < gap < allowed(0.0, mechanism)
    stricter = replace(mechanism, closing=mechanism.closing._replace(accuracy=gap / 4))
    assert State.at_rest(stricter, q).residual[0] > CLOSED / 100


@pytest.mark.parametrize("leg", [LEGS[0], LEGS[1], LEGS[3], *SCALED[:1]], ids=str)
def test_efforts_are_those_of_the_file_with_all_digits(leg: Leg, tmp_path: Path, model_case: CaseMaker) -> None:
    case, motion = moved(leg, tmp_path, model_case)
    exact, other = moved(replace(leg, digits=ALL), tmp_path, model_case)
    effort, expected = (Noc().compute_efforts(*pair).effort for pair in ((case, motion), (exact, other)))
    peak = np.abs(expected).max(axis=0)
    assert (np.abs(effort - expected).max(axis=0) < 30 * 10.0**-leg.digits * peak).all()
    assert (np.abs(effort - expected).max(axis=0) > 0.01 * 10.0**-leg.digits * peak).any()
    by_energy = Lagrange().compute_efforts(case, motion).effort
    assert (np.abs(by_energy - effort).max(axis=0) < 1e-11 * peak).all()


def efforts_by_rows(case: Case, motion: Motion, weights: Array) -> Array:
    """Efforts by MuJoCo's inverse dynamics of the tree, and null space of its weighted closure rows, truncated."""
    efforts = []
    for model, data in cut_trees(case, motion):
        J = [opening_rates(model, data, k) for k in range(model.neq)]
        values, V_T = np.linalg.svd(weights[:, None] * np.concatenate(J))[1:]
        N = V_T[int((values > 1e-3 * values[0]).sum()) :].T
        efforts.append(np.linalg.lstsq((case.mechanism.selection @ N).T, N.T @ data.qfrc_inverse)[0])
    return np.array(efforts)


@pytest.mark.parametrize("leg", [LEGS[0], LEGS[1]], ids=str)
def test_all_that_rows_leave_open_is_within_the_resolution(leg: Leg, tmp_path: Path, model_case: CaseMaker) -> None:
    """Of the rows of two connects each set closes the loop, and each gives other efforts; equal weights give ours."""
    case, motion = moved(leg, tmp_path, model_case)
    effort, r = Noc().compute_efforts(case, motion).effort, file_resolution(case.mechanism, motion)
    peak, by_rows = np.abs(effort).max(axis=0), partial(efforts_by_rows, case, motion)
    equal, *single = (by_rows(np.array(w)) for w in ([1.0] * 6, [1, 1, 1, 1e-9, 1e-9, 1e-9], [1, 2, 3, 4, 5, 6.0]))
    assert (np.abs(equal - effort).max(axis=0) < 1e-11 * peak).all()
    off = np.max([np.abs(other - effort).max(axis=0) for other in single], axis=0)
    assert (off < 3 * r).all()
    assert (off > r / 1000).any()
    assert (r < 30e-6 * peak).all()


@pytest.mark.parametrize("digits", [4, 5, 6])
def test_the_resolution_falls_by_ten_with_each_digit(digits: int, tmp_path: Path, model_case: CaseMaker) -> None:
    case, motion = moved(Leg(carrier="fixed", seed=1, digits=digits), tmp_path, model_case)
    peak = np.abs(Noc().compute_efforts(case, motion).effort).max(axis=0)
    assert (file_resolution(case.mechanism, motion) / peak).max() == pytest.approx(2 * 10.0**-digits, rel=2)
    exact, motion = moved(Leg(carrier="fixed", seed=1, digits=ALL), tmp_path, model_case)
    assert not file_resolution(exact.mechanism, motion).any()


def test_a_start_that_closes_by_chance_is_not_exact(tmp_path: Path) -> None:
    """The axis of a rocker is tilted by 1e-5 rad about its own end, which stays in place."""
    leg = mechanism_of(Leg(digits=ALL), tmp_path)
    joint = leg.joints[-1]
    tilted = joint.axis + 1e-5 * np.cross(joint.axis, [0.6, 0.48, 0.64])
    bent = replace(leg, joints=(*leg.joints[:-1], replace(joint, axis=tilted / np.linalg.norm(tilted))))
    assert np.abs(State.at_rest(bent, bent.rest_position[None]).gap).max() < 1e-12
    assert 1e-8 < with_closing(bent).closing.accuracy < 1e-4


def test_directions_of_motion_are_resolved_no_better_than_the_axes(tmp_path: Path, model_case: CaseMaker) -> None:
    """A tilted axis leaves no gap in the pose of the file, and the weights there are balanced along other motions."""
    case, motion = moved(Leg(carrier="fixed", digits=ALL, seed=1), tmp_path, model_case)
    joint = case.mechanism.joints[-1]
    tilted = joint.axis + 1e-5 * np.cross(joint.axis, [0.6, 0.48, 0.64])
    joints = (*case.mechanism.joints[:-1], replace(joint, axis=tilted / np.linalg.norm(tilted)))
    bent = with_closing(replace(case.mechanism, joints=joints))
    rest = np.zeros((2, bent.nv))
    at_rest = replace(motion, t=motion.t[:2], q=np.tile(bent.rest_position, (2, 1)), qd=rest, qdd=rest)
    peak = np.abs(Noc().compute_efforts(replace(case, mechanism=bent), at_rest).effort).max()
    assert 1e-9 < file_resolution(bent, at_rest).max() / peak < 1e-3


def test_an_open_loop_has_no_accuracy(tmp_path: Path) -> None:
    """Links that are too short by 2 % leave a gap that no digits explain."""
    text = """<mujoco><worldbody><site name="g" pos=".51 0 0"/><body><joint name="a" axis="0 1 0"/><geom size=".01"/>
      <body pos=".3 0 0"><joint name="b" axis="0 1 0"/><geom size=".01"/><site name="e" pos=".2 0 0"/></body></body>
      </worldbody><equality><connect site1="e" site2="g"/></equality><actuator><motor joint="a"/></actuator></mujoco>"""
    (tmp_path / "short.xml").write_text(text, encoding="utf-8")
    mechanism = with_closing(read_mechanism(ModelFile(path=tmp_path / "short.xml")))
    assert mechanism.closing.accuracy == 0
    assert allowed(1e-4, mechanism) == 1e-4
    q, residual = close(mechanism, mechanism.rest_position[None], np.ones(mechanism.nv, dtype=bool))
    assert residual > LARGEST
    assert q.shape == (1, 2)


@pytest.mark.parametrize("change", [lambda A: A, lambda A: np.diag([3.0, 1, 1, 2, 5, 1]) @ A], ids=["plain", "scaled"])
def test_the_resolved_part_has_one_null_space(change: Callable[[Array], Array], tmp_path: Path) -> None:
    """The rows of P J may be scaled one by one: their rank and null space stay."""
    mechanism = mechanism_of(LEGS[1], tmp_path)
    J = State.at_rest(mechanism, mechanism.rest_position[None]).every_Phi
    P = resolved_part(mechanism, J)
    assert P is not None
    np.testing.assert_allclose(P @ P, P, atol=1e-14)
    A = (J[0] / closure_units(mechanism).units[:, None]) * unit_rates(mechanism)
    N = np.linalg.svd(A)[2][2:].T * unit_rates(mechanism)[:, None]
    of_rows = change((P @ J)[0])
    assert np.abs(of_rows @ N).max() < 1e-12
    assert np.linalg.matrix_rank(of_rows, tol=1e-10) == 2
    assert np.linalg.matrix_rank(change(J[0]), tol=1e-10) > 2
