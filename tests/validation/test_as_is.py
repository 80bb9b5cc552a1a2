"""Unmodified simulations: their error in the settled window equals that of a user's own loop."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.dynamics.powers import effort_scale
from loopcheck.analytic.logs.closing.closed_log import closed_log
from loopcheck.analytic.logs.signals.filters import step_filter
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.motion.random_motion import random_motion
from loopcheck.engines.as_is import Runs, history
from loopcheck.engines.computed_torque import bandwidth
from loopcheck.engines.mujoco import as_is
from loopcheck.engines.mujoco.stepper import MujocoStepper
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import AsIs
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.formats.mjcf import compile_model
from loopcheck.robots.log import UNMODELLED, Log
from loopcheck.robots.logs.log_files import read_log
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, make_case, representative_case
from loopcheck.validation.check import plan, study
from loopcheck.validation.check.efforts import as_is as judging
from loopcheck.validation.check.efforts.as_is import (
    Series,
    not_followed,
    residual_series,
    settled,
    start_window,
    step_residuals,
)
from loopcheck.validation.check.efforts.compare import summarize
from loopcheck.validation.check.efforts.evaluate import evaluate, random_case
from loopcheck.validation.check.efforts.outcome import Outcome, Reference
from loopcheck.validation.check.efforts.rules import Evidence
from loopcheck.validation.check.study import Check
from loopcheck.validation.common.limits import FILE_RESOLVES
from loopcheck.validation.common.readings import differences
from loopcheck.validation.common.targets import case_of
from loopcheck.validation.common.tolerances import with_own_limits
from loopcheck.validation.execution.workers import ALONE
from loopcheck.validation.frame.study import run_study
from loopcheck.validation.judge.logs import judge_log, verdicts
from tests.conftest import MODELS, CaseMaker
from tests.outcomes import unmodified
from tests.plain_loop import plain_loop
from tests.validation.conftest import in_this_process

pytest.importorskip("mujoco")

Edit = Callable[[Any], None]


def as_it_comes(spec: Any) -> None:
    """Leave the file as it is."""


def stiffened(spec: Any) -> None:
    """Loops as hard as MuJoCo lets them be at the step of the file."""
    for equality in spec.equalities:
        equality.solref[:], equality.solimp[:] = (2 * spec.option.timestep, 1), (0.9999, 0.9999, 0.001, 0.5, 2)


def with_servos(spec: Any) -> None:
    """Position servos in place of the motors."""
    for motor in spec.actuators:
        motor.set_to_position(kp=400, kv=16)


@pytest.fixture(scope="module")
def four_bar() -> tuple[Case, Motion]:
    case = representative_case(load("four_bar"))
    return case, prescribe(case)


def model_of(case: Case, edits: tuple[Edit, ...]) -> Any:
    def edit(spec: Any) -> None:
        for change in edits:
            change(spec)

    model = compile_model(case.mechanism.model, edit)
    model.opt.gravity[:] = case.mechanism.gravity
    return model


def run(case: Case, motion: Motion, *edits: Edit, width: float = 1.0) -> AsIs:
    """The route's own run of an edited file, at some part of the bandwidth that it would take."""
    model, plan = model_of(case, edits), as_is.plan(case.mechanism, motion)
    w = width * bandwidth(model.opt.timestep, as_is.timeconst(model))
    first, second = (as_is.simulate(plan, MujocoStepper(model), w, start=sample) for sample in (0, len(motion.t) // 2))
    result = history("mujoco/as_is", case, motion, Runs(w, first, second), {}).as_is
    assert result is not None
    return result


@pytest.mark.parametrize("edits", [(), (stiffened,), (with_servos,), (with_servos, stiffened)])
def test_a_loop_of_the_users_own_shows_the_same(edits: tuple[Edit, ...], four_bar: tuple[Case, Motion]) -> None:
    assert_same_in_a_loop_of_the_users_own(*four_bar, edits)


@pytest.mark.extended("test_a_loop_of_the_users_own_shows_the_same")
@pytest.mark.parametrize("name", ["3prr", "2t1r"])
def test_and_so_it_does_of_robots_of_the_papers(name: str) -> None:
    """Drives coupled by their masses, and errors of the 2t1r with a ratio of ten."""
    case = representative_case(load(name))
    assert_same_in_a_loop_of_the_users_own(case, prescribe(case), ())


def assert_same_in_a_loop_of_the_users_own(case: Case, motion: Motion, edits: tuple[Edit, ...]) -> None:
    """Other gains, other feed-forward, another start: within 10 % and both floors, root mean square and largest."""
    route = run(case, motion, *edits)
    left = settled(case.mechanism, route)
    assert not left.reason
    own = plain_loop(case.mechanism, model_of(case, edits), motion, Noc().compute_efforts(case, motion).effort)
    ours, theirs = (residual_series(case.mechanism, log, log.q[0]) for log in (route.log, own))
    start = own.t[0] + min(1.5 * left.window, 0.6 * motion.t[-1])
    (rms, largest), (other, other_largest) = (
        (np.sqrt((left**2).mean(axis=0)), np.abs(left).max(axis=0))
        for left in (series.residual[series.t >= start] for series in (ours, theirs))
    )
    np.testing.assert_array_less(np.abs(rms - other), 0.1 * rms + ours.floor + theirs.floor)
    floors = ours.floor_of_largest + theirs.floor_of_largest
    np.testing.assert_array_less(np.abs(largest - other_largest), 0.1 * largest + floors)
    np.testing.assert_array_less(10 * ours.floor, rms)


@pytest.mark.parametrize("integrator", ["IMPLICITFAST", "RK4"])
def test_what_acted_agrees_and_what_is_reported_does_not(integrator: str, four_bar: tuple[Case, Motion]) -> None:
    """Servos at 1 ms: by `actuator_force` as read the same run would be off by ten times its real error and more."""
    mujoco = pytest.importorskip("mujoco")
    case, motion = four_bar

    def servo(spec: Any) -> None:
        spec.option.integrator = getattr(mujoco.mjtIntegrator, f"mjINT_{integrator}")
        for motor in spec.actuators:
            motor.set_to_position(kp=100, kv=10)

    log = run(case, motion, servo, stiffened).log
    assert log.dt == pytest.approx(1e-3)
    reported = replace(log, effort=log.readings["reported"])
    ((acted, _), (read, _)) = (verdicts(judge_log(case, each, start=0.04), 5e-3)[0] for each in (log, reported))
    assert (acted, read) == ("agree", "disagree")
    scale = residual_series(case.mechanism, log, log.q[0]).scale
    assert differences(log.effort, log.readings, scale)["reported"] > 1e-2


def test_hard_loops_leave_less(four_bar: tuple[Case, Motion]) -> None:
    case, motion = four_bar
    soft, hard = (settled(case.mechanism, run(case, motion, *edits)) for edits in ((), (stiffened,)))
    np.testing.assert_array_less(2 * hard.rms, soft.rms)
    np.testing.assert_array_less(2 * hard.start_peak, soft.start_peak)


def test_a_start_is_not_what_errors_are_divided_by() -> None:
    """That of 2t1r pushes three times as hard as all that acts later on."""
    case = representative_case(load("2t1r"))
    motion = prescribe(case)
    left = settled(case.mechanism, run(case, motion))
    np.testing.assert_allclose(left.scale, effort_scale(case.mechanism, motion).scale, rtol=0.25)


@pytest.mark.parametrize("width", [1 / 3, 3.0])
def test_what_is_left_does_not_hang_on_the_gains(width: float, four_bar: tuple[Case, Motion]) -> None:
    case, motion = four_bar
    usual, other = (settled(case.mechanism, run(case, motion, width=w)) for w in (1.0, width))
    np.testing.assert_allclose(other.rms, usual.rms, rtol=0.1)


def test_the_start_is_off_by_what_the_impedance_lacks(four_bar: tuple[Case, Motion]) -> None:
    """In proportion to 1 - dmin, whatever the time constant: no other setting matters."""
    case, motion = four_bar

    def peak(dmin: float, timeconst: float) -> float:
        def edit(spec: Any) -> None:
            for equality in spec.equalities:
                equality.solref[:], equality.solimp[:2] = (timeconst, 1), (dmin, max(dmin, 0.95))

        log = run(case, motion, edit).log
        series = residual_series(case.mechanism, log, log.q[0])
        return float(np.abs(series.relative(series.residual[:3])).max())

    soft, slow, hard = peak(0.9, 0.02), peak(0.9, 0.06), peak(0.99, 0.02)
    assert slow == pytest.approx(soft, rel=0.02)
    assert soft / hard == pytest.approx(10, rel=0.1)


def series(t: Array, *residuals: Array, chatter: float = 0.0) -> Series:
    ones = np.ones(len(residuals))
    return Series(
        t=t,
        residual=np.stack(residuals, axis=1),
        needed=np.ones((len(t), len(residuals))),
        internal=np.zeros((len(t), len(residuals))),
        scale=ones,
        floor=0 * ones,
        floor_of_largest=0 * ones,
        chatter=chatter * ones,
        left_out=0 * ones,
    )


@pytest.mark.parametrize("tau", [0.01, 0.05, 0.1])
def test_a_start_is_seen_until_a_tenth_of_what_is_left(tau: float) -> None:
    """Of an exponential initial transient, the time is known exactly."""
    t = np.arange(0, 2, 1e-3)
    error = 0.01 * np.ones(len(t))
    second = error[1000:] + 0.1 * np.exp(-(t[1000:] - 1) / tau)
    window, lasts = start_window(series(t, error), t[1000:], second[:, None])
    assert not lasts.any()
    assert window == pytest.approx(tau * np.log(0.1 / (0.1 * 0.01)), abs=2e-3)


def test_round_off_is_no_start() -> None:
    """In single precision two runs differ by more than a tenth of the error to the end; the start is over before."""
    t, sigma = np.arange(0, 2, 1e-3), 5e-4
    round_off = np.random.default_rng(0).normal(0, sigma, 1000)
    start = 0.1 * np.exp(-(t[1000:] - 1) / 0.05)
    window, _ = start_window(series(t, 1e-3 * np.ones(len(t))), t[1000:], (1e-3 + start + round_off)[:, None])
    least, most = (0.05 * np.log(0.1 / (part * sigma)) for part in (6, 0.5))
    assert least < window < most


def test_noise_of_the_log_is_no_start() -> None:
    """Of a few steps, too few to detect alternation."""
    t = np.arange(0, 0.24, 5e-3)
    again = t[24:]
    start = 0.1 * np.exp(-(again - again[0]) / 0.01) + 5e-4 * (-1.0) ** np.arange(24)
    error = 1e-3 * np.ones(len(t))
    assert start_window(series(t, error), again, (1e-3 + start)[:, None])[0] == np.inf
    window, _ = start_window(series(t, error, chatter=1e-3), again, (1e-3 + start)[:, None])
    assert window == pytest.approx(0.045, abs=6e-3)


@pytest.mark.parametrize("step", [5, 300, 990])
def test_a_step_without_convergence_does_not_move_the_window(step: int) -> None:
    """Wherever it is, in either run: a solver that does not converge in a few steps is no start."""
    t, error = np.arange(0, 2, 1e-3), 0.01 * np.ones(2000)
    second = error[1000:] + 0.1 * np.exp(-(t[1000:] - 1) / 0.05)
    error[1000 + step], second[step + 2] = 0.5, 0.4
    window, _ = start_window(series(t, error, chatter=0.3), t[1000:], second[:, None])
    left = np.sqrt((error[1200:] ** 2).mean())
    assert window == pytest.approx(0.05 * np.log(0.1 / (0.1 * left)), rel=0.1)


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_a_transient_of_a_few_steps_is_not_judged(steps: int) -> None:
    """The force of a stiff loop builds up in a step or two, as few as a solver may take without convergence."""
    t, error = np.arange(0, 2, 1e-3), 0.01 * np.ones(2000)
    second = error[1000:].copy()
    second[:steps] += 0.5
    assert start_window(series(t, error), t[1000:], second[:, None])[0] == pytest.approx(1e-3 * steps)


def test_samples_before_a_given_time_are_not_judged(four_bar: tuple[Case, Motion]) -> None:
    case, motion = four_bar
    route = run(case, motion)
    first, last = route.log.t[0], route.log.t[-1]
    later = settled(case.mechanism, route, start=first + 0.8 * (last - first))
    assert not later.reason
    assert later.window == pytest.approx(0.8 * (last - first), abs=route.log.dt)
    half = (route.log.t[-1] - route.log.t[0]) / 2
    reason = settled(case.mechanism, route, start=np.inf).reason
    assert reason.startswith(
        f"not settled: the initial transient is still visible after half of the motion ({half:.3g} s"
    )


def test_a_transient_that_is_not_separable_gives_both_figures(four_bar: tuple[Case, Motion]) -> None:
    """A step of a run lacks convergence, and a later step of the other run: check of the transient."""
    case, motion = four_bar
    route = run(case, motion)
    usual = settled(case.mechanism, route)
    assert "not separable" not in usual.note
    early, late = (np.searchsorted(route.log.t, route.log.t[0] + usual.window) + k for k in (10, 30))
    spike = np.zeros_like(route.log.effort)
    spike[early] = 20 * usual.largest
    beside = np.zeros_like(route.restarted.effort)
    beside[late] = 20 * usual.largest
    left = settled(
        case.mechanism,
        replace(
            route,
            log=replace(route.log, effort=route.log.effort + spike),
            restarted=replace(route.restarted, effort=route.restarted.effort + beside),
        ),
    )
    assert left.window == pytest.approx(usual.window, rel=0.1)
    assert left.largest == pytest.approx(20 * usual.largest, rel=0.1)
    assert left.floor_of_largest == pytest.approx((left.largest - usual.largest) / 2, rel=0.1)
    figures = re.search(r"transient not separable: .* error of \S+ (\S+) of the scale .*, (\S+) after", left.note)
    assert figures
    assert float(figures[1]) / float(figures[2]) == pytest.approx(20, rel=0.1)


def test_steps_that_pybullet_does_not_solve_are_no_transient() -> None:
    """Its iterations end early in some steps of the 3-PRR lying flat: no window of any length."""
    pytest.importorskip("pybullet")
    own = make_case(load("3prr"), variant="default", mode="minus", configuration="horizontal")
    motion, case = random_motion(own.mechanism, prescribe(own), seed=14), random_case(own)
    outcome = unmodified(evaluate(case, motion, "pybullet/as_is"))
    steps = outcome.settled.window * 240
    assert 5 < steps < 20
    assert "transient not separable" in outcome.settled.note


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_start_that_alternates_is_waited_for(sign: float) -> None:
    t = np.arange(0, 2, 1e-3)
    start: Array = 0.1 * np.array([sign**k for k in range(1000)]) * np.exp(-(t[1000:] - 1) / 0.05)
    window, _ = start_window(series(t, 0.01 * np.ones(len(t))), t[1000:], (0.01 + start)[:, None])
    assert window == pytest.approx(0.05 * np.log(100), abs=2e-3)


def test_a_start_that_does_not_die_out_is_never_over() -> None:
    t = np.arange(0, 2, 1e-3)
    second = 0.01 + 0.1 * np.sin(t[1000:])
    assert start_window(series(t, 0.01 * np.ones(len(t))), t[1000:], second[:, None])[0] == np.inf


def test_a_small_error_beside_a_large_one_is_waited_for() -> None:
    """The transient decays equally in both, and is a tenth of the small error later; an endless transient is named."""
    t, ones = np.arange(0, 2, 1e-3), np.ones(2000)
    start = 0.1 * np.exp(-(t[1000:] - 1) / 0.05)
    small = series(t, 0.01 * ones, 1e-3 * ones, 1e-5 * ones)
    again = np.stack([0.01 + start, 1e-3 + start, np.full(1000, 3e-5)], axis=1)
    window, lasts = start_window(small, t[1000:], again)
    assert window == pytest.approx(0.05 * np.log(0.1 / (0.1 * 1e-3)), abs=2e-3)
    assert lasts.tolist() == [False, False, True]


FRICTION = 3.0


@pytest.mark.extended("test_many_steps_are_judged_in_parts_as_at_once")
def test_a_few_samples_see_a_start_as_long_as_all_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """The two runs are held against each other step by step: a line between samples far apart is no run."""
    case = case_of(load("3prr").folder / "3prr.xml")
    as_it_is = run(case, prescribe(case))
    counts = []

    def counted(of: Callable[..., Any], *args: Any, **options: Any) -> Any:
        found = of(*args, **options)
        counts.append(len(found.effort))
        return found

    with monkeypatch.context() as patch:
        for name in ("evaluate", "residual_efforts"):
            patch.setattr(judging, name, partial(counted, getattr(judging, name)))
        few = settled(case.mechanism, as_it_is, most=150)
    assert max(counts) <= 2 * 150  # on both sides of each sample
    every = settled(case.mechanism, as_it_is)
    assert (few.reason, every.reason) == ("", "")
    assert few.window == pytest.approx(every.window, abs=as_it_is.log.t[-1] / 2 / 100)
    np.testing.assert_allclose(few.largest, every.largest, rtol=0.05)
    assert (few.rms != every.rms).all()  # of other samples
    closed = closed_log(case.mechanism, as_it_is.log, as_it_is.log.q[0])
    kernels = step_filter(closed.log.dt, uses_velocities=True)
    sparse, whole = judging._series(closed, 20), judging._series(closed)
    bare = judging._without_floors(closed, kernels, 20)
    for name in ("t", "residual", "needed", "scale", "internal"):
        np.testing.assert_array_equal(getattr(bare, name), getattr(sparse, name))
    beside = judging._beside(closed, kernels, sparse, np.array([0.3334, 0.5001]))
    at = np.searchsorted(whole.t, [0.3334, 0.5001])
    np.testing.assert_allclose(beside.t, np.sort(np.concatenate([whole.t[at - 1], whole.t[at]])), atol=1e-12)
    np.testing.assert_allclose(beside.residual, whole.residual[np.searchsorted(whole.t, beside.t - 1e-9)], atol=1e-9)
    assert judging._beside(closed, kernels, whole, np.array([0.3334])) is whole


def test_a_run_is_judged_by_what_is_left_if_an_accuracy_is_asked_for(four_bar: tuple[Case, Motion]) -> None:
    case, motion = four_bar
    reference, run = evaluate(case, motion, "analytic/noc"), unmodified(evaluate(case, motion, "mujoco/as_is"))
    outcomes = [reference, run]

    def row(outcomes: Sequence[Outcome], limit: float | None) -> Any:
        limits = {} if limit is None else {"mujoco/as_is": limit}
        table = summarize(outcomes, Evidence(tolerances=with_own_limits(limits)))
        return table[table["source"] == "mujoco/as_is"].iloc[0]

    left = run.settled
    peak = np.abs(Noc().compute_efforts(case, motion).effort).max()
    error, floor = left.largest[0] / peak, left.floor_of_largest[0] / peak
    assert row(outcomes, None)["max_error"] == left.largest[0]
    assert row(outcomes, None)["peak_error"] == pytest.approx(error)
    assert 0 < floor < error / 10
    assert [row(outcomes, limit)["verdict"] for limit in (None, 2 * error, error / 2)] == [
        "informational",
        "agree",
        "disagree",
    ]
    assert row(outcomes, error - floor)["verdict"] == "not comparable"  # within the noise floor of the limit
    assert isinstance(reference, Reference)
    for part, verdict in ((0.99, "agree"), (1.01, "not comparable")):  # of what the digits of the file may leave open
        rounded = replace(reference, unresolved=np.array([part * FILE_RESOLVES[1] * 2 * error * peak]))
        assert row([rounded, run], 2 * error)["verdict"] == verdict
    lost = replace(run, settled=replace(left, reason="not followed"))
    assert row([outcomes[0], lost], 2 * error)["verdict"] == "not comparable"
    assert np.isnan(row([outcomes[0], lost], None)["max_error"])
    lasting = [outcomes[0], replace(run, settled=replace(left, reason="not settled", bounds=True))]
    read = [row(lasting, limit) for limit in (None, 2 * error, error / 2)]
    assert [one["verdict"] for one in read] == ["informational", "agree", "not comparable"]
    assert [one["max_error"] == left.largest[0] for one in read] == [False, True, False]


def test_a_run_that_does_not_settle_is_judged_by_its_second_half(four_bar: tuple[Case, Motion]) -> None:
    """A transient is still there, so its size and that of the error bound each other; before, it may be much larger."""
    case, motion = four_bar
    route = run(case, motion)
    usual = settled(case.mechanism, route)
    steps, half = len(route.log.t), len(route.log.t) // 2
    start = np.where(np.arange(steps) < half - 10, 1.0, 0.0)[:, None] * 20 * usual.largest
    apart = np.cos(np.arange(len(route.restarted.t)))[:, None] * 5 * usual.largest
    lasting = replace(
        route,
        log=replace(route.log, effort=route.log.effort + start),
        restarted=replace(route.restarted, effort=route.restarted.effort + apart),
    )
    left = settled(case.mechanism, lasting)
    assert left.bounds
    assert left.reason.startswith("not settled")
    assert left.window == pytest.approx(route.restarted.t[0] - route.log.t[0], abs=2 * route.log.dt)
    series = residual_series(case.mechanism, route.log, route.log.q[0])
    late = np.abs(series.residual[series.t >= route.restarted.t[0]]).max(axis=0)
    np.testing.assert_allclose(left.largest, late, rtol=1e-6)
    assert (left.start_peak > 10 * usual.largest).all()
    assert "its second half, with the rest of the transient, bounds the error to " in left.note
    assert not settled(case.mechanism, replace(lasting, following=np.array([0.06]))).bounds
    assert not settled(case.mechanism, lasting, start=np.inf).bounds


def test_a_robot_that_does_not_follow_reads_so(four_bar: tuple[Case, Motion]) -> None:
    case, motion = four_bar

    def weak(spec: Any) -> None:
        for motor in spec.actuators:
            motor.forcelimited, motor.forcerange = True, [-2, 2]

    route = run(case, motion, weak)
    ((name, count),) = route.at_limits.items()
    assert (name, count > 10) == (case.mechanism.actuators[0].name, True)
    left = settled(case.mechanism, route)
    limits = rf"with {count} controls or forces at a limit of their range \({name} {count}\)"
    assert re.match(
        rf"not followed by computed torque .*: '{case.mechanism.drives[0].name}' must stay within 5 % .*, {limits}",
        left.reason,
    )
    assert "end of their range" not in left.note
    often = replace(run(case, motion), at_limits={name: 3, "another": 4})
    assert (
        f"7 controls or forces at a limit of their range (another 4, {name} 3)" in settled(case.mechanism, often).note
    )
    strokes = [replace(route, at_limits={}, following=np.array([part])) for part in (0.049, 0.051)]
    assert [stroke.follows for stroke in strokes] == [True, False]
    log = replace(route.log, readings={**route.log.readings, UNMODELLED: -0.6 * route.log.effort})
    rubbing = not_followed(replace(route, at_limits={}, log=log))
    assert rubbing.endswith(f"; contacts, limits or dry friction act with up to 0.6 times the largest effort of {name}")
    apart = replace(route, log=replace(route.log, q=route.log.q + np.array([0, 0.5, 0])))
    reason = settled(case.mechanism, apart).reason
    assert re.match(r"not followed by .*; its log cannot be judged: .* got a gap of", reason)


def test_errors_that_depend_on_the_bandwidth_are_named_with_both(four_bar: tuple[Case, Motion]) -> None:
    case, motion = four_bar
    route = replace(run(case, motion), bandwidth=50.0, not_at=100.0)
    assert "; followed at 50 rad/s, not at 100 (this motion)" in settled(case.mechanism, route).note
    usual = settled(case.mechanism, route).largest
    for factor, said in ((1.0, ""), (0.2, ": the controller works against the softness of the loops"), (4.0, "")):
        _, residual = series_of(case, route.log)
        log = replace(route.log, effort=route.log.effort + (factor - 1) * residual)
        note = settled(case.mechanism, replace(route, slower=(6.25, log))).note
        assert "followed at 6.25 to 50 rad/s, not at 100 (this motion)" in note
        assert note.endswith(said)
        assert ("over the scale" in note.rpartition("(this motion)")[2]) == (factor != 1)
    assert (usual > 0).all()


def series_of(case: Case, log: Log) -> tuple[Array, Array]:
    """Times and residual efforts of a log, the residuals at its steps."""
    series = residual_series(case.mechanism, log, log.q[0])
    at_steps = np.stack([np.interp(log.t, series.t, column) for column in series.residual.T], axis=1)
    return log.t, at_steps


@pytest.mark.extended("test_a_loop_of_the_users_own_shows_the_same")
@pytest.mark.usefixtures("tables_only")
def test_the_log_of_a_run_says_the_same_again(four_bar: tuple[Case, Motion], tmp_path: Path) -> None:
    """On its own motion, and on the random motion beside it, which has a mode, a reference and a motion of its own."""
    case, motion = four_bar
    result, _ = run_study(Check(cases=[case], sources=("mujoco/as_is",)), tmp_path, workers=ALONE)
    summary, motions = result.tables["summary"], result.tables["motion"]
    rows = summary[summary["source"] == "mujoco/as_is"].to_dict("records")
    assert [row["mode"] for row in rows] == ["home", "home-random"]
    assert list(summary["source"]) == ["analytic/noc", "mujoco/as_is"] * 2
    assert len(list((tmp_path / "logs").iterdir())) == 2
    assert result.record["random_modes"] == {"four_bar": {"home-random": "home"}}
    for row in rows:
        path = tmp_path / "logs" / f"four_bar-default-{row['mode']}-vertical-mujoco.csv"
        again = residual_series(case.mechanism, log := read_log(path, case.mechanism), log.q[0])
        since = float(row["note"].split("judged from ")[1].split(" s")[0])
        judged = np.abs(again.residual[again.t >= again.t[0] + since])
        assert judged.max() == pytest.approx(row["max_error"], rel=1e-9)
        crank = motions[(motions["mode"] == row["mode"]) & (motions["joint"] == "crank")]
        followed = np.interp(crank["t"], log.t, log.q[:, log.joints.index("crank")])
        assert 0.8 < np.abs(followed - crank["q"]).max() / row["tracking_error"] < 1.01  # that is of every step
    crank = motions[(motions["mode"] == "home-random") & (motions["joint"] == "crank")]
    assert np.abs(crank["q"] - motion.q[:, 0]).max() > 0.1


def test_the_random_motion_is_judged_by_the_audit_of_the_other(four_bar: tuple[Case, Motion]) -> None:
    """An element lost by an engine is lost on every motion."""
    case, motion = four_bar
    beside = random_case(case)
    outcomes = [evaluate(beside, motion, source) for source in ("analytic/noc", "mujoco/as_is")]
    blocked = Evidence(
        tolerances=with_own_limits({"mujoco/as_is": 1.0}), blocking_reasons={(case.key, "mujoco"): "it has no coupler"}
    )
    agreeing, lost = (
        summarize(outcomes, evidence).set_index("source").loc["mujoco/as_is"]
        for evidence in (blocked, blocked.with_cases_beside({beside.key: case.key}))
    )
    assert (agreeing["verdict"], lost["verdict"]) == ("agree", "not comparable")
    assert lost["note"].startswith("it has no coupler")


def test_a_robot_without_room_for_a_random_motion_says_so(four_bar: tuple[Case, Motion]) -> None:
    case, _ = four_bar
    with in_this_process() as patch:
        patch.setattr(plan, "random_motion_or_error", lambda *_: HarnessError("a singularity at every turn"))
        results = study.run([case], source_names=("mujoco/as_is",), workers=ALONE)
    assert list(results.summary["mode"]) == ["home"] * 2
    assert "no random motion beside it: a singularity at every turn" in results.summary["note"].iloc[1]
    assert "no random motion" not in results.summary["note"].iloc[0]


def test_dry_friction_is_taken_as_the_engine_reports_it(four_bar: tuple[Case, Motion]) -> None:
    """The equations lack friction; with the engine's own rows the remainder is as small as without, and reported."""
    case, motion = four_bar

    def rough(spec: Any) -> None:
        spec.joint("crank").frictionloss = 2

    smooth, route = (run(case, motion, *edits) for edits in ((), (rough,)))
    left = settled(case.mechanism, route)
    assert "dry friction are not checked: the values of the engine" in left.note
    np.testing.assert_allclose(left.rms, settled(case.mechanism, smooth).rms, rtol=0.3)
    own = plain_loop(case.mechanism, model_of(case, (rough,)), motion, Noc().compute_efforts(case, motion).effort)
    ours, theirs = (np.interp(motion.t[8:20], log.t, log.readings[UNMODELLED][:, 0]) for log in (route.log, own))
    np.testing.assert_allclose(theirs, ours, rtol=0.01)  # by another reduction
    without = replace(route, log=replace(route.log, readings={}), restarted=replace(route.restarted, readings={}))
    np.testing.assert_array_less(10 * left.rms, settled(case.mechanism, without).rms)


def test_a_log_of_loops_that_are_open_by_a_millimetre_keeps_its_dofs() -> None:
    """A redundant row of closed loops is not redundant beside it."""
    case = representative_case(load("2t1r"))
    motion = prescribe(case, dt=0.05)
    log = run(case, motion).log
    assert len(closed_log(case.mechanism, log, log.q[0]).drives) == 3


def test_pybullet_is_stepped_as_it_comes(model_case: CaseMaker) -> None:
    """A spatial loop with a ball joint and a log in the coordinates of the model."""
    pytest.importorskip("pybullet")
    case = model_case(MODELS / "ball_and_universal.xml", configuration="vertical", amplitude=0.1)
    outcome = unmodified(evaluate(case, prescribe(case), "pybullet/as_is"))
    assert outcome.history.as_is is not None
    log = outcome.history.as_is.log
    assert log.dt == pytest.approx(1 / 240)
    assert "ball" in log.kinds
    assert np.isfinite(outcome.settled.rms).all()


def test_many_steps_are_judged_in_parts_as_at_once(
    four_bar: tuple[Case, Motion], monkeypatch: pytest.MonkeyPatch
) -> None:
    case, motion = four_bar
    log = run(case, motion).log
    series = residual_series(case.mechanism, log, log.q[0])
    monkeypatch.setattr("loopcheck.validation.check.efforts.as_is.AT_ONCE", 37)
    parts = step_residuals(case.mechanism, log, log.q[0])
    np.testing.assert_allclose(series.relative(parts), series.relative(series.residual), atol=1e-12)


@pytest.mark.extended("test_a_loop_of_the_users_own_shows_the_same")
def test_the_error_of_redundant_drives_is_stated_for_each_choice_of_held_drives() -> None:
    case = case_of("2pur2rpu")
    outcome = unmodified(evaluate(case, prescribe(case), "mujoco/as_is"))
    history, both = outcome.history, outcome.settled
    assert history.as_is is not None
    others = history.as_is.others
    assert set(others) == {"q1, q3, q4"}
    assert history.as_is.drives == ("q2", "q3", "q4")
    alone = settled(case.mechanism, replace(history.as_is, others={}))
    run = residual_series(case.mechanism, others["q1, q3, q4"], others["q1, q3, q4"].q[0])
    other = np.abs(run.residual[run.t >= run.t[0] + alone.window]).max(axis=0)
    assert (np.abs(other - alone.largest) > 0.05 * alone.largest).any()
    np.testing.assert_allclose(both.largest, np.maximum(other, alone.largest), rtol=1e-12)
    half = np.abs(other - alone.largest) / 2
    np.testing.assert_allclose(both.floor_of_largest, alone.floor_of_largest + half, rtol=1e-12)
    assert "held by: q2, q3, q4 " in both.note
    assert "held by" not in alone.note
    with pytest.MonkeyPatch.context() as patch:  # a transient to the end: a reason, not an error of our own
        patch.setattr(
            "loopcheck.validation.check.efforts.as_is.start_window", lambda *_, **__: (np.inf, np.ones(4, dtype=bool))
        )
        assert "not settled" in settled(case.mechanism, history.as_is, most=100).reason
