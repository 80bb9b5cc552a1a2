"""Motions with unactuated dofs, against a textbook pendulum, for any accelerations in a log."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicHermiteSpline, CubicSpline

from loopcheck.analytic.dynamics.lagrange import Lagrange, lagrange_model
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.kinematics.closures import null_space
from loopcheck.analytic.kinematics.continuation import Tracer
from loopcheck.analytic.kinematics.tree import retract
from loopcheck.analytic.motion import unactuated
from loopcheck.analytic.motion.assembly import finely_sampled
from loopcheck.analytic.motion.automatic import swing
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import MechanismError, SingularityError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from tests.conftest import MODELS, CaseMaker

PENDULUM = """
<mujoco><option gravity="0 0 -9.81"/><worldbody>
<body name="cart"><joint name="x" type="slide" axis="1 0 0"/><inertial mass="2" diaginertia="1 1 1" pos="0 0 0"/>
<body name="bob"><joint name="angle" axis="0 1 0" damping="0.05"/>
<inertial mass="1" diaginertia="0.01 0.02 0.01" pos="0 0 -0.5"/></body></body>
</worldbody><actuator><motor name="x" joint="x"/></actuator></mujoco>"""


def test_a_pendulum_on_a_cart_swings_as_its_textbook_equation(tmp_path: Path, model_case: CaseMaker) -> None:
    (tmp_path / "cart.xml").write_text(PENDULUM, encoding="utf-8")
    motion = prescribe(model_case(tmp_path / "cart.xml", amplitude=0.3))
    m, l, inertia, d, g = 1.0, 0.5, 0.02, 0.05, 9.81

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        a = motion.law(np.array([t])).qdd[0, 0]  # of the cart; the angle turns the bob towards −x
        return np.array([y[1], (m * l * (a * np.cos(y[0]) - g * np.sin(y[0])) - d * y[1]) / (inertia + m * l**2)])

    swing = solve_ivp(rate, (0, motion.t[-1]), [0.0, 0.0], t_eval=motion.t, rtol=1e-11, atol=1e-12).y
    np.testing.assert_allclose(motion.q[:, 1], swing[0], atol=1e-7)
    np.testing.assert_allclose(motion.qd[:, 1], swing[1], atol=1e-6)
    assert np.ptp(motion.q[:, 1]) > 0.01


STIFF = """
<mujoco><option gravity="0 0 0"/><worldbody>
<body name="cart"><joint name="x" type="slide" axis="1 0 0"/><inertial mass="2" diaginertia="1 1 1" pos="0 0 0"/>
<body name="pin"><joint name="give" type="slide" axis="1 0 0" stiffness="200" damping="14" springref="0.1"/>
<inertial mass="1e-4" diaginertia="1e-6 1e-6 1e-6" pos="0 0 0"/></body></body>
</worldbody><actuator><motor name="x" joint="x"/></actuator></mujoco>"""
"""A pin of negligible mass, slowed by its damper at 1.4e5 1/s."""


def test_a_stiff_motion_is_that_of_its_closed_form(
    tmp_path: Path, model_case: CaseMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stiff.xml").write_text(STIFF, encoding="utf-8")
    monkeypatch.setattr(unactuated, "MOST_EVALUATIONS", (5000, 0.0))  # an explicit method takes twenty times as many
    motion = prescribe(model_case(tmp_path / "stiff.xml", amplitude=1e-12, duration=0.5))
    slow, fast = np.sort(np.roots([1e-4, 14.0, 200.0]))[::-1]
    t = motion.t
    released = 0.1 * (1 - (fast * np.exp(slow * t) - slow * np.exp(fast * t)) / (fast - slow))
    np.testing.assert_allclose(motion.q[:, 1], released, atol=1e-9)


SPRUNG = """
<mujoco><option gravity="0 0 0"/><worldbody>
<body name="cart"><joint name="x" type="slide" axis="1 0 0"/><inertial mass="2" diaginertia="1 1 1" pos="0 0 0"/>
<body name="pin"><joint name="give" type="slide" axis="1 0 0" stiffness="24674" springref="0.01"/>
<inertial mass="1" diaginertia="1 1 1" pos="0 0 0"/></body></body>
</worldbody><actuator><motor name="x" joint="x"/></actuator></mujoco>"""
"""A mass that swings at 25 Hz."""


def test_a_controller_gets_samples_between_which_efforts_can_be_interpolated(
    tmp_path: Path, model_case: CaseMaker
) -> None:
    (tmp_path / "sprung.xml").write_text(SPRUNG, encoding="utf-8")
    case = model_case(tmp_path / "sprung.xml", amplitude=1e-12, duration=0.12)
    coarse, rate = prescribe(case), np.sqrt(24674.0)
    fine = finely_sampled(case.mechanism, coarse)
    t = np.linspace(0.02, 0.1, 997)
    wrong = [
        np.abs(CubicSpline(motion.t, Noc().compute_efforts(case, motion).effort[:, 0])(t) / peak - np.cos(rate * t))
        for motion in (coarse, fine)
        for peak in [0.01 * rate**2]
    ]
    assert wrong[0].max() > 0.01
    assert wrong[1].max() < 1e-3
    np.testing.assert_allclose(fine.q[::4], coarse.q, atol=1e-9)


def test_a_pose_stays_as_it_is(tmp_path: Path, model_case: CaseMaker) -> None:
    (tmp_path / "sprung.xml").write_text(SPRUNG, encoding="utf-8")
    case = model_case(tmp_path / "sprung.xml", amplitude=0.01, duration=0.05)
    pose = prescribe(case).assemble(np.zeros(1))
    assert finely_sampled(case.mechanism, pose) is pose


def test_a_motion_without_unactuated_dofs_stays_as_it_is(tmp_path: Path, model_case: CaseMaker) -> None:
    (tmp_path / "driven.xml").write_text(SPRUNG.replace('joint="x"/>', 'joint="x"/><motor joint="give"/>'), "utf-8")
    case = model_case(tmp_path / "driven.xml", amplitude=0.01)
    motion = prescribe(case)
    assert finely_sampled(case.mechanism, motion) is motion


def test_a_stiff_motion_of_many_dofs_does_not_take_all_memory(
    tmp_path: Path, model_case: CaseMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One state at a time gives the motion of all states together; a chain of 211 bodies needed 60 GB."""
    (tmp_path / "stiff.xml").write_text(STIFF, encoding="utf-8")
    case = model_case(tmp_path / "stiff.xml", amplitude=1e-12, duration=0.05)
    together = prescribe(case)
    states: list[int] = []

    def counted(tracer: Tracer, t: np.ndarray, *state: np.ndarray, rank: int | None = None) -> np.ndarray:
        states.append(len(t))
        return accelerations(tracer, t, *state, rank=rank)

    accelerations = unactuated.accelerations
    monkeypatch.setattr(unactuated, "AT_ONCE", 1)
    monkeypatch.setattr(unactuated, "accelerations", counted)
    motion = prescribe(case)
    assert set(states) == {1, len(motion.t)}  # the integration, and the accelerations of its samples
    np.testing.assert_allclose(motion.q, together.q, atol=1e-12)


def test_a_motion_that_takes_too_long_says_how_far_it_came(
    tmp_path: Path, model_case: CaseMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stiff.xml").write_text(STIFF, encoding="utf-8")
    case = model_case(tmp_path / "stiff.xml", amplitude=1e-12, duration=0.5)
    for limit, value in (("MOST_EVALUATIONS", (40, 0.0)), ("MOST_SECONDS", (0.0, 0.0))):
        with monkeypatch.context() as limited:
            limited.setattr(unactuated, limit, value)
            with pytest.raises(
                MechanismError,
                match=r"takes too long: at t = 0.0.* evaluations \(limit \d+\) and .* s \(limit .* s\)",
            ):
                prescribe(case)


def test_an_integration_that_stalls_is_a_singularity_with_its_place(
    tmp_path: Path, model_case: CaseMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stiff.xml").write_text(STIFF, encoding="utf-8")
    case = model_case(tmp_path / "stiff.xml", amplitude=1e-12, duration=0.5)
    monkeypatch.setattr(unactuated, "STALLED", (20, 1.0))  # the whole motion in so many evaluations: too much to ask
    with pytest.raises(
        SingularityError, match=r"t = 0.0\d+ s: the integration steps become too small, 'give' moves at .* m/s"
    ):
        prescribe(case)


def test_logged_accelerations_of_what_nothing_drives_do_not_matter(spinning: tuple[Case, Motion]) -> None:
    """Their effort is zero for any logged accelerations: the sources compute the accelerations themselves."""
    case, motion = spinning
    wanted = Noc().compute_efforts(case, motion).effort
    spun = motion.qdd.copy()
    spun[:, case.mechanism.dof_slices[-1]] += 30.0  # of the pendulum, which no closure holds
    for source in (Noc(), Lagrange()):
        found = source.compute_efforts(case, replace(motion, qdd=spun)).effort
        np.testing.assert_allclose(found, wanted, atol=1e-11 * np.abs(wanted).max())


def test_a_motion_at_other_times_is_evaluated_and_integrated_only_beyond_its_end(
    spinning: tuple[Case, Motion], monkeypatch: pytest.MonkeyPatch
) -> None:
    case, motion = spinning
    longer = prescribe(case).assemble(np.append(motion.t, motion.t[-1] + 0.1))
    evaluations: list[float] = []
    evaluate = unactuated._Integrand.__call__

    def counted(integrand: unactuated._Integrand, t: float, y: Array) -> Array:
        evaluations.append(t)
        return evaluate(integrand, t, y)

    monkeypatch.setattr(unactuated._Integrand, "__call__", counted)
    some = motion.t[3:9]
    between = motion.assemble(some[:-1] + motion.dt / 2)
    for again in (motion.assemble(some), between.assemble(some)):
        np.testing.assert_array_equal(again.q, motion.q[3:9])
    assert not evaluations
    beyond = motion.assemble(longer.t)
    assert min(evaluations) == motion.t[-1]
    np.testing.assert_allclose(beyond.q, longer.q, atol=1e-8)
    evaluations.clear()
    np.testing.assert_array_equal(beyond.assemble(longer.t).q, beyond.q)
    assert not evaluations


def test_a_pendulum_moves_between_samples_as_a_cubic_through_their_positions_and_velocities(
    spinning: tuple[Case, Motion],
) -> None:
    _, motion = spinning
    between = motion.assemble(motion.t[:-1] + motion.dt / 2)
    cubic = CubicHermiteSpline(motion.t, motion.q[:, -1], motion.qd[:, -1])
    np.testing.assert_allclose(between.q[:, -1], cubic(between.t), atol=1e-8)


@pytest.fixture(scope="module")
def spinning(model_case: CaseMaker) -> tuple[Case, Motion]:
    case = model_case(MODELS / "spinning_rod.xml", amplitude=0.1, duration=0.5)
    return case, prescribe(case)


HEAVY = """
<mujoco><compiler angle="radian"/><worldbody>
<body name="base"><joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
<joint name="z" type="slide"/><joint name="turn" axis="0 0 1"/>
<inertial pos="0.02 0.01 0.1" mass="400" diaginertia="20 15 10"/>
<body name="hip" pos="0 0.2 0"><joint name="hip" axis="0 1 0"/>
<inertial pos="0 0 -0.3" mass="4" diaginertia="0.05 0.05 0.01"/>
<body name="heel" pos="0 0 -0.6"><joint name="heel" axis="0.1 1 0" stiffness="1000"/>
<inertial pos="0.02 0 0" mass="0.01" diaginertia="1e-6 4e-6 4e-6"/></body></body></body>
</worldbody><tendon><fixed name="sum">
<joint joint="x" coef="1"/><joint joint="y" coef="1"/><joint joint="z" coef="1"/><joint joint="turn" coef="1"/>
<joint joint="hip" coef="1"/><joint joint="heel" coef="1"/></fixed></tendon>
<actuator><motor name="sum" tendon="sum"/></actuator></mujoco>"""
"""The driven coordinate is not a single joint, so the undriven remainder mixes heavy and light."""


def test_no_force_is_left_where_a_heavy_base_floats_and_a_light_link_swings(
    tmp_path: Path, model_case: CaseMaker
) -> None:
    """By Lagrange's equations, as a power: unactuated dofs take only round-off."""
    (tmp_path / "heavy.xml").write_text(HEAVY, encoding="utf-8")
    case = model_case(tmp_path / "heavy.xml")
    mechanism, rng = case.mechanism, np.random.default_rng(0)
    q = retract(mechanism, np.tile(mechanism.rest_position, (50, 1)), rng.uniform(-0.5, 0.5, (50, 6)))
    qd = rng.uniform(-1, 1, (50, 6)) * [1, 1, 1, 1, 1, 400]
    still = swing(mechanism, mechanism.rest_position, mechanism.drives, np.zeros(1), span=(0.0, 1.0))
    tracer = Tracer(mechanism=mechanism, law=still, drives=mechanism.drives, where="")
    qdd = unactuated.accelerations(tracer, np.linspace(0, 1, 50), q, qd)
    model = lagrange_model(mechanism, q, qd)
    terms = np.stack([(model.M @ qdd[..., None])[..., 0], model.coriolis, model.gravity])
    Z = null_space(mechanism.rates_of(mechanism.drives))
    left, at_work = np.abs(terms.sum(axis=0) @ Z), np.abs(terms @ Z).sum(axis=0)
    assert (left / at_work).max() < 1e-14
