"""Residual efforts of logs with exact solutions, and the part explained by the log itself."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import make_lsq_spline

from loopcheck.analytic.logs.closing.closed_log import closed_log
from loopcheck.analytic.logs.residual import Residual, acting_after, half_step_lag, residual_efforts
from loopcheck.analytic.logs.signals.filters import Filter, interpolating_filter, smoothing_filter, step_filter
from loopcheck.analytic.logs.signals.noise import noise, rounding, rounding_step, stuck_codes
from loopcheck.analytic.logs.signals.rates import wrong_rates
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import HarnessError, SingularityError
from loopcheck.robots.log import EffortTime, Held, Instantaneous, Log
from loopcheck.robots.mechanism import JointKind
from loopcheck.robots.robot import Case, load, make_case
from tests import planar_four_bar
from tests.conftest import MODELS, CaseMaker
from tests.logs import PARALLELOGRAM, exact_log, of_drives

RATE = 2 * np.pi * 2
DT = 0.02


@pytest.fixture(scope="module")
def four_bar() -> Case:
    return make_case(load("four_bar"), variant="default", mode="home", configuration="vertical")


@pytest.fixture(scope="module")
def exact() -> Log:
    return planar_four_bar.exact_log(DT, 51)


def judged(log: Log, case: Case, when: EffortTime | None = None) -> Residual:
    when = when or log.effort_time
    assert when is not None
    return residual_efforts(closed_log(case.mechanism, log, case.guess), when)


@pytest.mark.parametrize("uses_velocities", [True, False])
@pytest.mark.parametrize("half", [0, 3, 8])
def test_of_held_efforts_a_filter_gives_what_it_gives_of_accelerations(half: int, uses_velocities: bool) -> None:
    """A unit mass: held and smooth efforts."""
    h, rng = DT, np.random.default_rng(0)
    effort = rng.normal(size=(60, 1))
    v = np.concatenate([[[0.0]], np.cumsum(effort[:-1] * h, axis=0)])
    q = np.concatenate([[[0.0]], np.cumsum(v[:-1] * h + effort[:-1] * h**2 / 2, axis=0)])
    one = step_filter(h, uses_velocities=uses_velocities)
    many = smoothing_filter(h, max(half, 1), None, uses_velocities=uses_velocities) if half else one
    bases = many.bases(60)
    _, _, acceleration = many.motion(q, v, bases)
    np.testing.assert_allclose(many.effort.applied(effort, bases), acceleration, atol=1e-10)


@pytest.mark.parametrize("uses_velocities", [True, False])
@pytest.mark.parametrize("late", [0.0, 0.025, 0.1])
def test_of_instantaneous_efforts_too_to_the_order_of_the_nodes(late: float, uses_velocities: bool) -> None:
    t = np.arange(60) * DT
    q, v = np.sin(RATE * t)[:, None], RATE * np.cos(RATE * t)[:, None]
    hold = 2 * late * DT * RATE  # of held efforts the smooth curve through the ends needs h²/24 ë less, or more
    held = 1 + hold**2 / 24 if uses_velocities else 1 - hold**2 / 24
    effort = -(RATE**2) * np.sin(RATE * (t + late * DT))[:, None] / held
    filters: list[Filter] = [
        interpolating_filter(DT, 5, late, uses_velocities=uses_velocities),
        smoothing_filter(DT, 3, late, uses_velocities=uses_velocities),
        smoothing_filter(DT, 8, late, uses_velocities=uses_velocities),
    ]
    for kernels in filters:
        bases = kernels.bases(60)
        _, _, acceleration = kernels.motion(q, v, bases)
        assert np.abs(acceleration - kernels.effort.applied(effort, bases)).max() < 1e-7 * RATE**2


@pytest.mark.parametrize(("samples", "size", "scatter"), [(51, 1e-3, 0.17), (201, 1e-5, 0.075)])
def test_noise_is_known_without_bias_and_better_than_by_differences(samples: int, size: float, scatter: float) -> None:
    """Sixth differences alone determine it to 18 and 9 %, and the least of many orders is 7 and 2 % low."""
    t, rng = np.linspace(0, 1, samples)[:, None], np.random.default_rng(0)
    smooth = np.sin(2 * np.pi * t + np.arange(5)) + 0.1 * np.sin(6 * np.pi * t)
    estimates = np.array([noise(smooth + size * rng.normal(size=smooth.shape)) for _ in range(40)]) / size
    assert np.sqrt((estimates**2).mean()) == pytest.approx(1, abs=0.04)
    assert estimates.std() < scatter


def test_noise_is_told_from_what_moves_smoothly() -> None:
    t, rng = np.arange(400) * 0.02, np.random.default_rng(1)
    smooth = np.stack([np.sin(RATE * t), np.exp(t / 8)], axis=1)
    assert noise(smooth).max() < 1e-9
    np.testing.assert_allclose(noise(smooth + 1e-4 * rng.normal(size=smooth.shape)), 1e-4, rtol=0.2)
    jumps = smooth + 1e-4 * rng.normal(size=smooth.shape) + (t > 3)[:, None]
    np.testing.assert_allclose(noise(jumps), 1e-4, rtol=0.7)  # by squares it is 300 times that


def test_columns_whose_noise_is_known_are_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Smooth motion and noise are separated by differences alone, beside a column that suits splines better."""
    t, rng = np.arange(400) * 0.02, np.random.default_rng(2)
    smooth, still = np.sin(RATE * t), np.ones_like(t)
    columns = np.stack([smooth, still, smooth + 1e-3 * rng.normal(size=t.shape)], axis=1)
    alone = [noise(column[:, None])[0] for column in columns.T]
    fitted: list[int] = []

    def counted(x: Array, values: Array, *arguments: Any) -> Any:
        fitted.append(values.shape[1])
        return make_lsq_spline(x, values, *arguments)

    monkeypatch.setattr("scipy.interpolate.make_lsq_spline", counted)
    np.testing.assert_allclose(noise(columns), alone, rtol=1e-6)
    assert set(fitted) == {1}


def test_encoders_and_exporters_are_seen_by_their_steps() -> None:
    x = np.cumsum(np.random.default_rng(2).normal(size=(500, 1)), axis=0)
    assert rounding_step(np.round(x / 0.3) * 0.3) == pytest.approx(0.3)
    assert rounding_step(np.round(x, 4)) == pytest.approx(1e-4)
    assert rounding_step(x) == 0
    small = np.sin(np.linspace(0, 5, 201))[:, None]
    for size, offset in ((1e-3, 0), (1e-9, 0), (5e-4, 1), (9e-5, 0.1)):  # all of it near a whole number of some decimal
        assert rounding_step(offset + size * small) == 0
    assert rounding_step(np.round(1 + 5e-4 * small, 6)) == pytest.approx(1e-6)
    assert noise(np.round(x / 50) * 50)[0] >= 50 / np.sqrt(12)
    tall = np.random.default_rng(3).uniform(0, 2e3, size=(500, 1))  # 2e7 codes, more than an encoder has
    assert rounding_step(np.round(tall, 4)) == pytest.approx(1e-4)


def test_rounding_of_a_slow_column_is_noise_of_a_step_over_the_root_of_12() -> None:
    """Codes that repeat for many rows have no high differences in most of them: only their step shows the noise."""
    slow, step = np.sin(np.linspace(0, 6, 2000))[:, None], 0.05
    codes = step * np.round(slow / step)
    error = np.sqrt(((codes - slow) ** 2).mean())
    assert error == pytest.approx(step / np.sqrt(12), rel=0.05)
    assert noise(codes)[0] == pytest.approx(error, rel=0.1)


def test_an_exact_log_of_every_held_step_is_right_to_second_order(four_bar: Case) -> None:
    found = [judged(planar_four_bar.held_log(h, round(0.06 / h)), four_bar) for h in (2e-3, 1e-3, 0.5e-3, 0.25e-3)]
    sizes = [float((r.largest / r.scale)[0]) for r in found]
    assert sizes[-1] < 1e-6
    np.testing.assert_allclose(np.divide(sizes[:-1], sizes[1:]), 4, rtol=0.1)
    for r in found:
        assert (r.rms <= r.floor.rms).all()
        assert (r.floor.rms <= 3 * r.rms).all()
        assert (r.largest <= r.floor.largest).all()


def test_a_slow_log_of_instantaneous_efforts_is_right_to_a_millionth(exact: Log, four_bar: Case) -> None:
    for log in (
        exact,
        of_drives(exact, four_bar, velocities=True),
        of_drives(exact, four_bar, velocities=False),
    ):
        found = judged(log, four_bar)
        assert (found.largest < 1e-7 * found.scale).all()
        assert (found.largest <= found.floor.largest).all()


@pytest.mark.parametrize("link", [0, 1, 2])
def test_a_mass_off_by_a_thousandth_stands_out_of_the_floor(link: int, four_bar: Case) -> None:
    masses = [planar_four_bar.CRANK, planar_four_bar.COUPLER, planar_four_bar.ROCKER]
    masses[link] *= 1.001
    found = judged(planar_four_bar.held_log(1e-3, 100, masses=(masses[0], masses[1], masses[2])), four_bar)
    assert (found.rms > 3 * found.floor.rms).all()


def test_a_decimated_log_keeps_its_hold(four_bar: Case) -> None:
    """Efforts held for 1 ms at every twentieth row: the middle of the hold gives the required effort."""
    every = planar_four_bar.held_log(1e-3, 1001, hertz=1.0)
    assert every.qd is not None
    log = replace(every, t=every.t[::20], q=every.q[::20], qd=every.qd[::20], effort=every.effort[::20])
    declared, forgotten = (judged(log, four_bar, when) for when in (Held(1e-3), Instantaneous()))
    smooth = judged(replace(log, q=log.q, qd=None), four_bar, Held(1e-3))
    for found in (declared, smooth):
        assert (found.rms <= found.floor.rms).all()
        assert (found.floor.rms < 1e-7 * found.scale).all()
    assert (forgotten.rms > 3 * forgotten.floor.rms).all()


@pytest.mark.parametrize(("encoder", "torque"), [(1e-4, 5e-3), (1e-5, 2e-3)])
def test_the_floor_is_what_noise_makes(encoder: float, torque: float, exact: Log, four_bar: Case) -> None:
    rng, log = np.random.default_rng(0), replace(exact, qd=None)
    ratios = []
    for _ in range(8):
        noise_of_effort = torque * np.abs(log.effort).max() * rng.normal(size=log.effort.shape)
        noisy = replace(log, q=log.q + encoder * rng.normal(size=log.q.shape), effort=log.effort + noise_of_effort)
        found = judged(noisy, four_bar)
        ratios += list(found.floor.rms / found.rms)
    assert 0.8 < np.median(ratios) < 2
    assert min(ratios) > 0.6
    assert max(ratios) < 2.6


def test_noise_of_velocities_counts(exact: Log, four_bar: Case) -> None:
    """Positions and efforts are exact: all of the residual is by the velocities."""
    assert exact.qd is not None
    rng, ratios = np.random.default_rng(0), []
    for _ in range(3):
        noisy = judged(replace(exact, qd=exact.qd + 1e-3 * rng.normal(size=exact.qd.shape)), four_bar)
        ratios.append(float((noisy.floor.rms / noisy.rms)[0]))
    assert 0.8 < np.median(ratios) < 2.6


def test_noise_of_a_hundred_thousandth_is_smoothed(four_bar: Case) -> None:
    """Beside the exact motion only the torque is noisy, so that a window of several samples has less of it."""
    exact = planar_four_bar.exact_log(0.005, 101)
    size = 1e-5 * np.abs(exact.effort).max()
    noisy = exact.effort + size * np.random.default_rng(0).normal(size=exact.effort.shape)
    found = judged(replace(exact, effort=noisy), four_bar)
    assert found.rms[0] < 0.6 * size
    assert found.rms[0] < found.floor.rms[0] < 1.5 * size


SLIDER = """<mujoco><option gravity="0 0 0"/><worldbody><body><joint name="x" type="slide" axis="1 0 0"/>
  <inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/></body></worldbody>
  <actuator><motor name="x" joint="x"/></actuator></mujoco>"""


def test_a_motion_that_every_window_follows_has_no_floor_but_noise(model_case: CaseMaker, tmp_path: Path) -> None:
    """A cube of the time, F = 2 times 6 t: only noise changes with the window, in half of all draws downwards."""
    path = tmp_path / "slider.xml"
    path.write_text(SLIDER, encoding="utf-8")
    case, t, found = model_case(path), np.linspace(0, 1, 101), []
    for seed in range(5):
        noise_of_effort = 0.05 * np.random.default_rng(seed).normal(size=t.shape)
        efforts = (12 * t + noise_of_effort)[:, None]
        log = Log(name="l", t=t, joints=("x",), kinds=("slide",), q=t[:, None] ** 3, actuators=("x",), effort=efforts)
        found.append(judged(log, case, Instantaneous()))
    assert np.median([(r.floor.truncation / r.floor.noise)[0] for r in found]) < 0.02


def test_an_effort_held_for_a_part_of_the_step_acts_in_its_middle() -> None:
    for hold, after in ((0.3, 0.15), (0.6, 0.3), (0.9, 0.45), (1.0, None), (20.0, None)):
        assert acting_after(Held(hold * DT), DT) == (after if after is None else pytest.approx(after))


def test_a_full_log_through_a_dead_point_is_refused_with_its_time(four_bar: Case) -> None:
    """The rocker cannot drive at the alignment of crank and coupler."""
    robot = four_bar.robot.model_copy(update={"actuated": ("rocker",)})
    case = make_case(robot, variant="default", mode="home", configuration="vertical")
    t = np.linspace(0, 1, 101)
    angles, rate = 0.5 + 2 * t, 2.0
    every = [planar_four_bar.terms(float(angle)) for angle in angles]
    log = Log(
        name="turning",
        t=t,
        joints=("crank", "coupler", "rocker"),
        q=np.array([at.positions for at in every]),
        qd=rate * np.array([at.rates for at in every]),
        actuators=("rocker",),
        effort=np.zeros((101, 1)),
        effort_time=Instantaneous(),
    )
    dead = t[np.abs(np.sin(log.q[:, 1])).argmin()]
    assert np.abs(np.sin(log.q[:, 1])).min() < 0.02
    with pytest.raises(SingularityError, match="singularity at t = ") as caught:
        judged(log, case)
    assert float(str(caught.value).split("t = ")[1].split(" s")[0]) == pytest.approx(dead, abs=0.05)


def test_of_redundant_actuators_the_part_that_moves_the_robot_is_judged(exact: Log, four_bar: Case) -> None:
    """A second motor on the rocker gives part of the torque, and the first correspondingly less."""
    robot = four_bar.robot.model_copy(update={"actuated": ("crank", "rocker")})
    case = make_case(robot, variant="default", mode="home", configuration="vertical")
    rocker = np.sin(9 * exact.t)[:, None]
    ratio = np.array([planar_four_bar.terms(q).rates[2] for q in exact.q[:, 0]])[:, None]
    efforts = np.concatenate([exact.effort - ratio * rocker, rocker], axis=1)
    found = judged(replace(exact, actuators=("crank", "rocker"), effort=efforts), case)
    assert (found.largest <= np.maximum(found.floor.largest, 1e-8 * found.scale)).all()
    assert np.abs(found.internal).max() > 0.5


@pytest.mark.parametrize("is_of_drives", [False, True])
def test_no_redundant_drive_is_believed_before_another(
    is_of_drives: bool, model_case: CaseMaker, tmp_path: Path
) -> None:
    """Cranks of a parallelogram that are off by as much to either side turned as their mean did."""
    path = tmp_path / "parallelogram.xml"
    path.write_text(PARALLELOGRAM, encoding="utf-8")
    case = model_case(path)
    t, off = np.arange(0, 0.2, 0.005), 5e-3
    mean, rate = 0.3 + 0.2 * np.sin(9 * t), 1.8 * np.cos(9 * t)
    names = [joint.name for joint in case.mechanism.joints]
    turns = {"a": (mean + off, rate), "b": (mean - off, rate), "pin": (-mean, -rate)}
    log = Log(
        name="open",
        t=t,
        joints=tuple(names),
        kinds=("hinge",) * 3,
        q=np.stack([turns[name][0] for name in names], axis=1),
        qd=np.stack([turns[name][1] for name in names], axis=1),
        actuators=("a", "b"),
        effort=np.zeros((len(t), 2)),
        effort_time=Instantaneous(),
    )
    found = judged(of_drives(log, case, velocities=True) if is_of_drives else log, case)
    along = np.interp(found.motion.t, t, mean)
    for name, sign in (("a", 1), ("b", 1), ("pin", -1)):
        np.testing.assert_allclose(found.motion.q[:, names.index(name)], sign * along, atol=off / 50)


def test_what_spins_unactuated_follows_from_the_log(model_case: CaseMaker) -> None:
    case = model_case(MODELS / "spinning_rod.xml")
    log = exact_log(case, np.arange(0, 0.2001, 0.01))
    found = judged(log, case)
    assert (found.largest < 1e-5 * found.scale).all()
    assert np.abs(found.unactuated).max() < 1e-4 * found.scale.max()


def test_friction_where_nothing_drives_is_left_over(model_case: CaseMaker) -> None:
    """The log is of a pendulum with a hundred times the damping; the model lacks that."""
    case = model_case(MODELS / "spinning_rod.xml")
    damped = [replace(j, damping=2.0) if j.name == "pendulum" else j for j in case.mechanism.joints]
    log = exact_log(replace(case, mechanism=replace(case.mechanism, joints=tuple(damped))), np.linspace(0, 0.2, 21))
    left = np.sqrt((judged(log, case).unactuated ** 2).mean(axis=0))
    pendulum = case.mechanism.dof_slices[[j.name for j in case.mechanism.joints].index("pendulum")].start
    assert left[pendulum] > 0.05
    assert left[pendulum] == left.max()


def test_positions_half_a_step_late_are_named(four_bar: Case) -> None:
    """Positions of a semi-implicit integrator; with correct positions no effect of that size remains."""
    log = planar_four_bar.held_log(1e-3, 80)
    assert log.qd is not None
    closed = closed_log(four_bar.mechanism, replace(log, q=log.q + 0.5e-3 * log.qd), four_bar.guess)
    late = residual_efforts(closed, Held(1e-3))
    assert late.rms[0] == pytest.approx(half_step_lag(closed, late)[0], rel=0.05)
    assert late.rms[0] > 20 * judged(log, four_bar).rms[0]


def test_a_joint_that_stands_still_has_the_velocity_zero() -> None:
    """The last digits of a resting position have a meaningless rate; a small true rate is still named."""
    t = np.linspace(0, 0.39, 40)
    q = np.stack([np.full(40, 0.7), 0.7 + 1e-9 * np.sin(9 * t)], axis=1)
    log = Log(name="l", t=t, joints=("stands", "moves"), q=q, qd=0 * q, actuators=("m",), effort=np.zeros((40, 1)))
    assert list(wrong_rates(log)) == ["velocities of 'moves' are zero, not the derivatives of its positions"]


@pytest.mark.parametrize(("steps", "said"), [(-3, " s earlier"), (-0.5, ""), (0.5, ""), (3, " s later")])
def test_velocities_late_by_more_than_an_integrator_makes_are_named(steps: float, said: str) -> None:
    """Semi-implicit steps put positions half a step late; the check excludes this."""
    t, dt = np.linspace(0, 2, 201), 0.01
    q, qd = np.sin(4 * t), 4 * np.cos(4 * (t - steps * dt))
    log = Log(name="l", t=t, joints=("j",), q=q[:, None], qd=qd[:, None], actuators=("m",), effort=np.zeros((201, 1)))
    found = "".join(wrong_rates(log))
    if not said:
        assert found == ""
        return
    late = re.fullmatch(rf"velocities of 'j' are (.*){said} than the derivatives of its positions", found)
    assert late
    assert float(late[1]) == pytest.approx(abs(steps) * dt, rel=0.01)


@pytest.mark.parametrize(("factor", "said"), [(1.0, ""), (-1.0, "are -1 times the derivatives of its velocities")])
def test_accelerations_are_held_against_velocities(factor: float, said: str) -> None:
    t = np.linspace(0, 2, 201)
    q, qd, qdd = (x[:, None] for x in (np.sin(4 * t), 4 * np.cos(4 * t), -16 * factor * np.sin(4 * t)))
    log = Log(name="l", t=t, joints=("j",), q=q, qd=qd, qdd=qdd, actuators=("m",), effort=0 * q)
    assert [line.removeprefix("accelerations of 'j' ").split(" (")[0] for line in wrong_rates(log)] == [said][
        : bool(said)
    ]


@pytest.mark.parametrize(("kind", "cause"), [("hinge", "times in ms, not s?"), ("slide", "millimetres for metres?")])
def test_the_cause_of_a_gain_is_one_that_the_joint_can_have(kind: JointKind, cause: str) -> None:
    t = np.linspace(0, 2, 201)
    q, qd = (x[:, None] for x in (np.sin(4 * t), 4 * np.cos(4 * t)))
    stamps = t * 1000 if kind == "hinge" else t
    rates = qd if kind == "hinge" else qd * 1000
    log = Log(name="l", t=stamps, joints=("j",), kinds=(kind,), q=q, qd=rates, actuators=("m",), effort=0 * q)
    (said,) = wrong_rates(log)
    assert said == f"velocities of 'j' are 1000 times the derivatives of its positions ({cause})"


def test_an_encoder_that_hangs_is_named(exact: Log) -> None:
    assert list(stuck_codes(exact)) == []
    hanging = exact.q.copy()
    hanging[10:25, 1] = hanging[10, 1]
    (said,) = stuck_codes(replace(exact, q=hanging))
    assert said == (
        "positions of 'coupler' are constant from t = 0.2 to 0.48 s although further joints move. Is the encoder stuck?"
    )


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"joints": ("crank", "coupler", "knee")}, "unknown joint of four_bar.xml in log 'run': 'knee'. Known:"),
        ({"actuators": ("motor",)}, "unknown actuator of four_bar.xml in log 'run': 'motor'. Known: crank"),
        (
            {"q": np.rad2deg},
            r"closed to 0\.11 m \(10 % of the size of the robot\), got a gap of .* at t = .*, closure 'C'",
        ),
        ({"q": lambda q: q + np.array([0, 0.15, 0])}, r"closed to 0\.11 m .*, got a gap of 0\.1"),
    ],
    ids=["joint", "actuator", "degrees", "open loop"],
)
def test_a_log_of_another_robot_is_refused_in_one_line(
    changes: dict[str, Any], line: str, exact: Log, four_bar: Case
) -> None:
    made: dict[str, Any] = {
        name: change(getattr(exact, name)) if callable(change) else change for name, change in changes.items()
    }
    with pytest.raises(HarnessError, match=line):
        judged(replace(exact, **made), four_bar)


def test_what_alternates_in_a_computed_log_has_happened(four_bar: Case) -> None:
    """A torque in steps of random sign is not noise in a log written by a program: an effort 2 % too large is found."""
    log = planar_four_bar.held_log(1e-3, 200, chatter=0.5)
    wrong = replace(log, effort=1.02 * log.effort)
    measured, computed = (
        residual_efforts(closed_log(four_bar.mechanism, wrong, four_bar.guess), Held(log.dt), noiseless=noiseless)
        for noiseless in (False, True)
    )
    largest = 0.02 * np.abs(log.effort).max()
    assert computed.largest[0] == pytest.approx(largest, rel=0.05)
    assert computed.floor.largest[0] < 0.2 * largest
    assert measured.floor.largest[0] > largest
    assert computed.floor.largest_chatter[0] > largest


def test_last_digits_are_those_of_the_precision() -> None:
    values = np.random.default_rng(0).normal(size=(1000, 2))
    single = values.astype(np.float32).astype(float)
    rounded = np.sqrt(((single - values) ** 2).mean(axis=0))
    np.testing.assert_allclose(rounding(single), rounded, rtol=0.5)
    assert (rounding(values) < 1e-8 * rounding(single)).all()
