"""Fits to a residual: intervals contain the truth at their stated rate; indistinguishable parameters are named."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from loopcheck.analytic.logs import evaluation
from loopcheck.analytic.logs.closing.closed_log import ClosedLog, closed_log
from loopcheck.analytic.logs.closing.closed_motion import States
from loopcheck.analytic.logs.evaluation import evaluate, slopes
from loopcheck.analytic.logs.parameters import FRICTION, fit, fitted_rows
from loopcheck.analytic.logs.residual import Residual, residual_efforts
from loopcheck.robots.errors import NotFoundError
from loopcheck.robots.log import Held, Instantaneous, Log
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, make_case
from tests import planar_four_bar
from tests.planar_four_bar import COULOMB, ENCODER, VISCOUS

HEAVIER, TORQUE = 0.1, 0.02
SEEDS = 500


@pytest.fixture(scope="module")
def case() -> Case:
    return make_case(load("four_bar"), variant="default", mode="home", configuration="vertical")


@pytest.fixture(scope="module")
def rubbing() -> Log:
    """Two seconds at 50 Hz, positions alone, of a four-bar with friction at its crank."""
    log = planar_four_bar.exact_log(0.02, 101)
    assert log.qd is not None
    rate = log.qd[:, :1]
    return replace(log, qd=None, effort=log.effort + COULOMB * np.sign(rate) + VISCOUS * rate)


def measured(log: Log, rng: np.random.Generator) -> Log:
    """The log as encoders and torque sensors would have it, noisy and rounded to codes."""
    noisy = log.q + ENCODER / 2 * rng.normal(size=log.q.shape)
    codes = np.round(noisy / ENCODER) * ENCODER
    return replace(log, q=codes, effort=log.effort + TORQUE * rng.normal(size=log.effort.shape))


def heavier(mechanism: Mechanism) -> Mechanism:
    bodies = [replace(body, mass=body.mass + HEAVIER) if body.name == "coupler" else body for body in mechanism.bodies]
    return replace(mechanism, bodies=tuple(bodies))


def of_seeds(log: Log, case: Case) -> Iterator[tuple[ClosedLog, Residual]]:
    """Residuals of as many measured logs, by the filter of the first; all samples of all of them at once."""
    logs = [measured(log, np.random.default_rng(seed)) for seed in range(SEEDS)]
    every = replace(
        log,
        t=log.dt * np.arange(float(SEEDS * len(log.t))),
        q=np.concatenate([one.q for one in logs]),
        effort=np.concatenate([one.effort for one in logs]),
    )
    of_first = closed_log(case.mechanism, logs[0], case.guess)
    first = residual_efforts(of_first, Instantaneous())
    starts = len(log.t) * np.arange(float(SEEDS))[:, None]
    found = evaluate(closed_log(case.mechanism, every, case.guess), first.filter, (starts + first.bases).ravel())
    samples = len(first.bases)
    for k, one in enumerate(logs):
        own = slice(k * samples, (k + 1) * samples)
        motion = replace(
            first.motion, q=found.states.q[own], qd=found.states.qd[own], qdd=found.states.qdd[own], t=first.motion.t
        )
        closed = replace(of_first, log=one, q=one.q, effort=one.effort)
        yield closed, replace(first, motion=motion, effort=found.effort[own], needed=found.needed[own])


@pytest.mark.extended(
    "test_a_mass_that_the_model_has_wrong_is_found_beside_friction",
    "test_an_interval_grows_with_what_is_left_beside_noise",
)
def test_intervals_of_friction_hold_the_truth_in_95_of_100_logs(case: Case, rubbing: Log) -> None:
    derivatives, hits, plain_hits = None, [], []
    for closed, residual in of_seeds(rubbing, case):
        if derivatives is None:
            rows = fitted_rows(closed, residual)
            motion = residual.motion
            derivatives = slopes(closed, States(q=motion.q[rows], qd=motion.qd[rows], qdd=motion.qdd[rows]))
        estimates = fit(closed, residual, [FRICTION], derivatives).estimates
        hits.append(
            [abs(e.value - truth) <= e.half_width for e, truth in zip(estimates, (COULOMB, VISCOUS), strict=True)]
        )
        plain_hits.append(plain(residual))
    covered = np.mean(hits, axis=0)
    assert (covered >= 0.92).all()
    assert (covered <= 0.98).all()
    assert np.mean(plain_hits) < 0.8  # what plain least squares would claim


def test_a_mass_that_the_model_has_wrong_is_found_beside_friction(case: Case, rubbing: Log) -> None:
    """The log is of the four-bar as it is; the model that it is held against has a coupler too heavy by 0.1 kg."""
    log = measured(rubbing, np.random.default_rng(1))
    closed = closed_log(heavier(case.mechanism), log, case.guess)
    found = fit(closed, residual_efforts(closed, Instantaneous()), [FRICTION, "mass:coupler"])
    by_name = {estimate.name: estimate for estimate in found.estimates}
    mass = by_name["mass of coupler"]
    assert abs(mass.value + HEAVIER) < 1.5 * mass.half_width
    assert mass.half_width < HEAVIER / 3
    assert mass.is_seen
    assert found.after.rms[0] < found.before.rms[0] / 5
    assert found.after.rms[0] < 2 * found.after.floor.rms[0]


def test_coulomb_friction_is_not_fitted_where_the_drive_reverses(case: Case) -> None:
    """At a sample of zero velocity, round-off and the data decide the direction; the estimates must not follow them."""
    log, fits = planar_four_bar.exact_log(0.02, 101), []
    assert log.qd is not None
    noise = 0.002 * np.random.default_rng(0).normal(size=log.effort.shape)
    reverses = np.abs(log.qd[:, :1]) < 1e-9
    assert 2 <= reverses.sum() <= 6
    for direction in (-1.0, 1.0):
        signs = np.where(reverses, direction, np.sign(log.qd[:, :1]))
        closed = closed_log(case.mechanism, replace(log, effort=log.effort + COULOMB * signs + noise), case.guess)
        fits.append(fit(closed, residual_efforts(closed, Instantaneous()), [FRICTION]))
    for one, other in zip(fits[0].estimates, fits[1].estimates, strict=True):
        assert abs(one.value - other.value) < 0.2 * min(one.half_width, other.half_width)
    assert fits[0].estimates[0].value == pytest.approx(COULOMB, abs=fits[0].estimates[0].half_width)


def test_an_interval_grows_with_what_is_left_beside_noise(case: Case) -> None:
    """A term that the fit lacks, 20 times the noise: the interval by noise alone would miss the truth each time."""
    log, hits = planar_four_bar.exact_log(0.02, 101), []
    assert log.qd is not None
    rubbed = log.effort + COULOMB * np.sign(log.qd[:, :1]) + VISCOUS * log.qd[:, :1]
    for seed in range(5):
        rng = np.random.default_rng(seed)
        wave = 0.04 * np.sin(rng.uniform(15, 30) * log.t + rng.uniform(0, 6))[:, None]
        wrong = replace(log, effort=rubbed + wave + 0.002 * rng.normal(size=log.effort.shape))
        closed = closed_log(case.mechanism, wrong, case.guess)
        estimates = fit(closed, residual_efforts(closed, Instantaneous()), [FRICTION]).estimates
        hits += [abs(e.value - x) <= e.half_width for e, x in zip(estimates, (COULOMB, VISCOUS), strict=True)]
    assert np.mean(hits) > 0.7


def test_a_clean_log_has_neither_friction_nor_a_wrong_mass(case: Case) -> None:
    closed = closed_log(case.mechanism, planar_four_bar.held_log(1e-3, 120), case.guess)
    found = fit(closed, residual_efforts(closed, Held(1e-3)), [FRICTION, "mass:rocker"])
    assert all(abs(estimate.value) < 1e-3 for estimate in found.estimates)


def test_masses_that_a_log_cannot_tell_apart_are_named(case: Case, rubbing: Log) -> None:
    log = measured(rubbing, np.random.default_rng(2))
    closed = closed_log(case.mechanism, log, case.guess)
    residual = residual_efforts(closed, Instantaneous())
    twice = fit(closed, residual, ["mass:coupler", "mass:coupler"]).estimates
    assert [estimate.alike for estimate in twice] == ["mass of coupler"] * 2
    assert all("indistinguishable from the mass of coupler" in str(estimate) for estimate in twice)
    with pytest.raises(NotFoundError, match=r"to fit: 'mass:arm'. Known: friction, shift, offset, mass:crank"):
        fit(closed, residual, ["mass:arm"])


def plain(residual: Residual) -> bool:
    """Whether the interval of viscous friction by plain least squares of all samples has the truth in it."""
    rate, kernel = residual.motion.qd[:, :1], residual.filter.effort
    bases = np.arange(-kernel.begin, len(rate) - kernel.end, 1.0)
    A = np.concatenate([kernel.applied(np.sign(rate), bases), kernel.applied(rate, bases)], axis=1)
    y = residual.residual[-kernel.begin : len(rate) - kernel.end, 0]
    values, left, *_ = np.linalg.lstsq(A, y)
    deviation = np.sqrt(left[0] / (len(y) - 2) * np.linalg.inv(A.T @ A)[1, 1])
    return bool(abs(values[1] - VISCOUS) <= 1.96 * deviation)


@pytest.mark.parametrize("drives_only", [False, True])
def test_derivatives_along_columns_equal_differences(
    prr: Case, prr_motion: Motion, drives_only: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each column of a log moves the drives, also those of passive joints, whose positions the loops determine."""
    rows, W = slice(0, 60), prr.mechanism.rates_of(prr.mechanism.drives)
    names = prr.mechanism.drives if drives_only else prr.mechanism.joints
    q, qd = (x[rows] @ W.T if drives_only else x[rows] for x in (prr_motion.q, prr_motion.qd))
    log = Log(
        name="3prr",
        t=prr_motion.t[rows],
        joints=tuple(one.name for one in names),
        kinds=("slide",) * 3 if drives_only else tuple(joint.kind for joint in prr.mechanism.joints),
        q=q,
        qd=qd,
        actuators=tuple(actuator.name for actuator in prr.mechanism.actuators),
        effort=np.zeros((60, 3)),
    )
    closed = closed_log(prr.mechanism, log, prr_motion.q[0])
    states = States(q=prr_motion.q[5:9], qd=prr_motion.qd[5:9], qdd=prr_motion.qdd[5:9])
    exact, differences = evaluation._by_equations(closed, states), evaluation._by_differences(closed, states)
    assert exact.shape == (4, 3, 3, len(closed.directions))
    for order in range(3):
        np.testing.assert_allclose(
            exact[:, :, order], differences[:, :, order], rtol=0, atol=1e-6 * np.abs(exact[:, :, order]).max()
        )
    np.testing.assert_array_equal(slopes(closed, states).motion, differences)
    monkeypatch.setattr(evaluation, "LARGEST", 5 * len(prr.mechanism.bodies) * prr.mechanism.nv)  # parts of five states
    np.testing.assert_allclose(evaluation._by_differences(closed, states), differences, rtol=1e-12, atol=1e-9)
    many = states.rows(np.repeat(np.arange(4), 16))
    np.testing.assert_array_equal(slopes(closed, many).motion, np.repeat(exact, 16, axis=0))
