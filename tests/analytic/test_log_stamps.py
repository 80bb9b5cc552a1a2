"""Logs with jittered stamps, jittered samples and gaps: the right reading is taken, and its error is stated."""

from dataclasses import replace

import numpy as np
import pytest

from docs.noisy_logs import back_and_forth, jittered
from loopcheck.analytic.logs.signals.stamps import at_equal_steps
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import ShapeError
from loopcheck.robots.log import Instantaneous, Log
from loopcheck.robots.robot import load, make_case
from loopcheck.validation.judge.logs import judge_log, verdicts
from tests.cpu_time import extended_but

DT = 0.02
T = DT * np.arange(201.0)
ENCODER = 1e-4
SMOOTHER = {"their stamps": "samples", "a regular grid": "stamps"}
"""What jitters, by the reading that the phrase states."""
STEP_OF_RIGHT_LOGS = "test_right_logs_without_noise_do_not_disagree_by_the_error_of_their_step"


def log(t: Array, at: Array, seed: int = 0, encoder: float = ENCODER, hertz: float = 0.5) -> Log:
    """A joint that swings; its values are those at the times `at` [s], stamped `t` [s]."""
    w = 2 * np.pi * hertz
    noise = encoder * np.random.default_rng(seed + 1000).normal(size=(len(t), 1))  # not those of the jitter
    q, effort = np.sin(w * at)[:, None], 3 * np.cos(2 * w * at)[:, None]
    return Log(name="run", t=t, joints=("hip",), q=q + noise, actuators=("m",), effort=effort)


@pytest.mark.parametrize(("reading", "jitters"), SMOOTHER.items())
@pytest.mark.parametrize("encoder", [0.0, ENCODER])
@pytest.mark.parametrize(
    "first", extended_but([0], range(0, 50, 10), "test_the_right_reading_is_taken_in_all_of_50_logs")
)
def test_the_right_reading_is_taken_in_all_of_50_logs(reading: str, jitters: str, encoder: float, first: int) -> None:
    for seed in range(first, first + 10):
        late = jittered(T, seed)
        found, words = at_equal_steps(log(late, late if jitters == "samples" else T, seed, encoder))
        assert f"read {'at' if reading == 'their stamps' else 'as'} {reading}" in words
        assert found.dt == pytest.approx(DT, rel=1e-3)
        there = found.t if jitters == "samples" else T
        assert np.abs(found.q[:, 0] - np.sin(np.pi * there)).max() < 5e-6 + 5 * encoder  # or else up to 2e-2


@pytest.mark.parametrize(("reading", "jitters"), SMOOTHER.items())
def test_noise_that_hides_most_of_the_jitter_does_not_hide_the_right_reading(reading: str, jitters: str) -> None:
    """An error of the wrong reading of 4.4e-3 rms beside noise of 3e-3: by hand it is 1.8 times as large with it."""
    for seed in range(10):
        late = jittered(T, seed)
        _, words = at_equal_steps(log(late, late if jitters == "samples" else T, seed, 3e-3))
        assert f"read {'at' if reading == 'their stamps' else 'as'} {reading}, the noise is" in words


def test_a_log_of_equal_steps_stays_as_it_is() -> None:
    regular = log(T, T)
    assert at_equal_steps(regular) == (regular, "")


def test_jitter_within_the_noise_counts_as_noise() -> None:
    """Where no reading is smoother, their difference is an error of each column: jitter times its rate."""
    late = T + 0.01 * (jittered(T, 1) - T)  # 2e-5 s, times up to 3 rad/s
    found, words = at_equal_steps(log(late, T))
    assert "equally smooth" in words
    assert 0.8 < found.errors["q"][0] / (2e-5 * np.pi / np.sqrt(2)) < 1.2


@pytest.mark.parametrize("hertz", [0.5, 2.0])
def test_the_error_of_an_interpolation_is_stated(hertz: float) -> None:
    """Against the exact motion, for samples at irregular times without noise."""
    t = np.sort(np.random.default_rng(0).uniform(0, 4, 200))
    t = t[np.r_[True, np.diff(t) > 2e-3]]
    found, words = at_equal_steps(log(t, t, encoder=0.0, hertz=hertz))
    assert words.endswith("read at their stamps")
    true = float(np.sqrt(((found.q[:, 0] - np.sin(2 * np.pi * hertz * found.t)) ** 2).mean()))
    assert true / 5 < found.errors["q"][0] < 20 * true


@pytest.mark.parametrize("lost", [[7], [50, 51, 120], list(range(10, 190, 9))])
def test_missing_samples_are_filled_and_named(lost: list[int]) -> None:
    kept = np.delete(T, lost)
    found, words = at_equal_steps(log(kept, kept, encoder=0.0))
    assert f"{len(lost)} of 201 samples missing" in words
    np.testing.assert_allclose(found.t, T, atol=1e-12)
    np.testing.assert_allclose(found.q[:, 0], np.sin(np.pi * T), atol=3e-5)
    rest = np.setdiff1d(np.arange(201), lost)
    np.testing.assert_allclose(found.q[rest, 0], np.sin(np.pi * T[rest]), atol=1e-12)
    assert found.errors["q"][0] > 1e-8


@pytest.mark.parametrize("row", [1, 100])
def test_a_clock_that_is_set_during_a_log_gets_one_line(row: int) -> None:
    """A message without a stamp, or a clock set to the date: the samples between would take terabytes."""
    late = jittered(T, 0)
    late[row:] += 1.76e9
    place = f"{late[row - 1]:.6g}"
    with pytest.raises(ShapeError, match=rf"got a gap of 1\.76e\+09 s after t = {place} s beside steps of 0\.0\d+ s"):
        at_equal_steps(log(late, T))


@pytest.mark.parametrize(
    "first", extended_but([0], range(0, 100, 10), "test_lost_samples_are_found_among_jittered_stamps")
)
def test_lost_samples_are_found_among_jittered_stamps(first: int) -> None:
    """One sample too many or too few moves all that follows by a step: 0.06 rad here."""
    for seed in range(first, first + 10):
        kept = np.random.default_rng(seed).random(len(T)) >= 0.05
        kept[[0, -1]] = True
        found, words = at_equal_steps(log(jittered(T, seed)[kept], T[kept], seed))
        assert f"{(~kept).sum()} of 201 samples missing: read as a regular grid" in words
        np.testing.assert_allclose(found.q[:, 0], np.sin(np.pi * T), atol=6 * ENCODER)


@pytest.mark.parametrize(("gain", "verdict"), [(1.0, "agree"), (1.1, "disagree")])
@pytest.mark.parametrize("jitters", ["samples", "stamps"])
def test_a_jittered_log_with_gaps_is_judged(gain: float, verdict: str, jitters: str) -> None:
    case = make_case(load("four_bar"), variant="default", mode="home", configuration="vertical")
    t = DT * np.arange(101.0)
    late = jittered(t, 3)
    exact = back_and_forth(case, late if jitters == "samples" else t)
    kept = np.delete(np.arange(len(t)), [30, 64])
    right = replace(exact, t=late[kept], q=exact.q[kept], effort=gain * exact.effort[kept], effort_time=Instantaneous())
    found = verdicts(judge_log(case, right), 0.02)[0]
    assert found.verdict == verdict, found.note
    assert "2 of 101 samples missing" in found.note


@pytest.mark.extended(STEP_OF_RIGHT_LOGS)
def test_the_step_of_jittered_stamps_is_known_as_well_as_stated() -> None:
    """Without noise all of the residual comes from the step: of 100 logs, 95 are within two standard deviations."""
    within = 0
    for seed in range(100):
        found, _ = at_equal_steps(log(jittered(T[:41], seed), T[:41], encoder=0.0))
        within += abs(found.dt / DT - 1) < 2 * found.clock
    assert 88 <= within < 100


@pytest.mark.parametrize("first", extended_but([0], range(0, 20, 5), STEP_OF_RIGHT_LOGS))
def test_right_logs_without_noise_do_not_disagree_by_the_error_of_their_step(first: int) -> None:
    case = make_case(load("four_bar"), variant="default", mode="home", configuration="vertical")
    exact = back_and_forth(case, DT * np.arange(41.0))
    for seed in range(first, first + 5):
        found = verdicts(judge_log(case, replace(exact, t=jittered(exact.t, seed))), 1e-9)[0]
        assert found.verdict == "not comparable", found.note


def test_the_equations_need_equal_steps() -> None:
    from loopcheck.analytic.logs.closing.closed_log import closed_log

    case = make_case(load("four_bar"), variant="default", mode="home", configuration="vertical")
    exact = back_and_forth(case, jittered(T[:21], 0))
    with pytest.raises(ShapeError, match="all time steps must be equal to the median step"):
        closed_log(case.mechanism, exact, case.guess)
