"""The accuracy of a user: a rule with three verdicts, relative to the largest required effort of the motion."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loopcheck.analytic.dynamics.lagrange import Lagrange
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import ToleranceError
from loopcheck.robots.log import Instantaneous, Log
from loopcheck.robots.robot import Case, load, make_case
from loopcheck.validation.common import accuracy
from loopcheck.validation.common.accuracy import Requirement, requirement
from loopcheck.validation.common.targets import case_of
from loopcheck.validation.common.verdicts import NO_LOAD, verdict_of
from loopcheck.validation.judge.logs import LogOptions, judge_log, verdicts
from loopcheck.validation.tune.runs.purposes import OWN, Purpose, purpose_of
from tests.logs import PARALLELOGRAM

MODELS = Path(__file__).parents[1] / "models"


def required(peak: list[float], scale: list[float], **values: Any) -> Requirement:
    names = ["hip", "knee", "toe"][: len(peak)]
    units = ["N m"] * len(peak)
    return Requirement(actuators=names, units=units, peak=np.array(peak), scale=np.array(scale), **values)


@pytest.mark.parametrize(
    ("error", "floor", "verdict"),
    [
        (0.0, 0.0, "agree"),
        (0.0625, 0.0625, "agree"),  # error + floor is the limit
        (0.0625, 0.0626, "not comparable"),
        (0.1251, 0.0, "disagree"),
        (0.25, 0.0625, "not comparable"),  # limit + 2 floors
        (0.2501, 0.0625, "disagree"),
        (9.0, 5.0, "not comparable"),
        (np.nan, 0.0, "not comparable"),
        (0.0, np.nan, "not comparable"),
        (np.inf, np.inf, "not comparable"),
    ],
)
def test_error_and_floor_decide_against_the_limit(error: float, floor: float, verdict: str) -> None:
    """An eighth of a peak of 1 N m, whatever the scale."""
    for scale in (1.0, 900.0):
        found, note = required([1.0], [scale]).judged(0, error, floor, 0.125)
        assert found == verdict
        if not np.isfinite(error + floor):
            assert note == f"error and noise floor must be finite, got {error:g} and {floor:g}"
        else:
            assert f"error {error:.2g}, noise floor {floor:.2g}, limit 0.12 of the peak 1 N m" in note


def test_figures_are_over_the_peak() -> None:
    note = required([4.0], [5.0]).judged(0, 0.2, 0.1, 0.125).note
    assert note == "error 0.05, noise floor 0.025, limit 0.12 of the peak 4 N m"


def test_a_peak_below_a_thousandth_of_the_scale_is_replaced_by_it() -> None:
    resting = required([0.0, 0.002], [1.0, 4.0])
    assert resting.divisor.tolist() == [0.001, 0.004]
    assert resting.judged(0, 0.9e-5, 0.0, 0.01).verdict == "agree"
    assert resting.judged(0, 1.1e-5, 0.0, 0.01).verdict == "disagree"
    assert required([0.0], [0.0]).judged(0, 0.0, 0.0, 0.01) == ("not comparable", NO_LOAD)


def row(verdict: str, note: str = "") -> dict[str, Any]:
    numbers = {"peak": 1.0, "scale": 1.0, "max_error": 0.1, "relative_error": 0.1, "tolerance": 0.2}
    return {"source": "log/run", "verdict": verdict, "note": note, **numbers}


def test_an_idle_actuator_does_not_count_beside_a_judged_one() -> None:
    """Its required effort is below the noise of the log, so no verdict is possible."""
    idle = required([1.0, 0.01], [1.0, 1.0]).judged(1, 0.03, 0.02, 0.1)
    assert idle.verdict == "not comparable"
    assert idle.note.startswith("idle, error at most 0.03 N m")
    for error, floor in ((0.06, 0.02), (0.012, 0.009)):  # beyond its floor; with a floor below its peak
        assert "idle" not in required([1.0, 0.01], [1.0, 1.0]).judged(1, error, floor, 0.1).note
    silent = row(*idle)
    assert verdict_of([row("agree"), silent]).verdict == "agree"
    assert verdict_of([silent, row("disagree")]).verdict == "disagree"
    assert verdict_of([silent, silent]).verdict == "not comparable"
    assert verdict_of([row("agree"), row("not comparable", "no load")]).verdict == "not comparable"


def test_actuators_that_share_a_load_share_the_largest_ratio_of_peak_to_scale() -> None:
    """6 of 10 at the hip is 12 of 20 at the knee, whichever carries it; the toe is on its own."""
    sharing = required([6.0, 0.0, 3.0], [10.0, 20.0, 30.0], shared=[(0, 1)])
    assert sharing.divisor.tolist() == [6.0, 12.0, 3.0]
    assert sharing.judged(1, 1.1, 0.0, 0.1).verdict == "agree"
    note = sharing.judged(1, 1.3, 0.0, 0.1).note
    assert "the largest peak of a shared load, weighted by the scales hip 10 N m, knee 20 N m" in note
    assert sharing.internal_load(2, 1e6, 0.1, 1.0) == ("", "")
    assert sharing.internal_load(1, 1.1, 0.1, 1.0) == ("", "")
    assert sharing.internal_load(1, 3.0, 0.1, 1.0) == ("", "internal load of 3 N m, 0.25 of the largest shared peak")
    assert sharing.internal_load(1, 13.0, 0.1, 1.0) == (
        "not comparable",
        "internal load: 13 N m, 1.1 of the largest shared peak, at most 1 is expected; state the allowed load with "
        "loopcheck judge --internal-load",
    )
    assert sharing.internal_load(1, 13.0, 0.1, 1.2).verdict == ""


@pytest.fixture(scope="module")
def beam() -> tuple[Case, Log]:
    """A beam and the rod below it turn alike and slowly, the counterweight stays upright; the effort by hand."""
    case = case_of(MODELS / "counterbalanced_beam.xml")
    t, theta, rate, acceleration = swing(60.0)
    inertia = 72 + 400 * 1.0**2 + 200 * 2.0**2 + 0.2 + 0.5 * 1.0**2
    effort = inertia * acceleration + 0.1 * rate + 9.81 * np.cos(theta) * (400 * 1.0 - 200 * 2.0 - 0.5 * 1.0)
    return case, log_of(t, {"beam": theta, "hanger": -theta, "rod": theta}, {"beam": effort})


def swing(period: float) -> tuple[Array, Array, Array, Array]:
    """Times [s], an angle [rad], its rate and its acceleration."""
    t = np.linspace(0, period, 101)
    w = 2 * np.pi / period
    return t, 0.3 * np.sin(w * t), 0.3 * w * np.cos(w * t), -0.3 * w**2 * np.sin(w * t)


def log_of(t: Array, q: dict[str, Array], effort: dict[str, Array]) -> Log:
    positions, efforts = (np.stack(list(columns.values()), axis=1) for columns in (q, effort))
    return Log(
        name="run",
        t=t,
        joints=tuple(q),
        q=positions,
        actuators=tuple(effort),
        effort=efforts,
        effort_time=Instantaneous(),
    )


@pytest.mark.parametrize("factor", [0.0, -1.0])
def test_no_effort_and_a_flipped_one_disagree_where_weights_cancel(factor: float, beam: tuple[Case, Log]) -> None:
    """The terms are hundreds of times the effort; an accuracy over their sum would not notice it."""
    case, log = beam
    judged = judge_log(case, replace(log, effort=factor * log.effort))
    (residual,) = judged.residuals
    assert residual.scale[0] > 200 * np.abs(log.effort).max()
    ((verdict, note),) = verdicts(judged, 0.01)
    assert verdict == "disagree"
    assert f"error {1 - factor:.2g}, noise floor" in note
    assert verdicts(judge_log(case, log), 0.01)[0].verdict == "agree"


def test_the_mass_that_alone_reaches_the_limit_is_named(beam: tuple[Case, Log]) -> None:
    """Held against Lagrange's equations with that mass changed."""
    case, log = beam
    motion = judge_log(case, log).residuals[0].motion
    effort = Lagrange().compute_efforts(case, motion).effort
    found = requirement(case.mechanism, motion, effort)
    note = found.judged(0, 0.0, 0.0, 0.01).note
    ((body, effect),) = found.decisive.values()
    change = 0.01 * np.abs(effort).max() / effect
    assert f"a change of {100 * change:.2g} % of the mass of '{body}' alone reaches the limit" in note

    def changed(name: str) -> float:
        (mass,) = (one.mass for one in case.mechanism.bodies if one.name == name)
        other = replace(case, mechanism=case.mechanism.with_mass(name, (1 + change) * mass))
        return float(np.abs(Lagrange().compute_efforts(other, motion).effort - effort).max())

    assert changed(body) == pytest.approx(0.01 * np.abs(effort).max(), rel=0.02)
    assert max(changed(one.name) for one in case.mechanism.bodies) == changed(body)
    sampled = Lagrange().compute_efforts(replace(case, mechanism=case.mechanism.with_mass(body, 0.0)), motion).effort
    by_time = np.abs(sampled - effort)[:, 0]  # efforts are linear in a mass without unactuated dofs
    assert effect == pytest.approx(by_time.max(), rel=1e-3)
    assert by_time[0] != pytest.approx(by_time.max(), rel=2e-3)
    assert "terms cancel" in verdicts(judge_log(case, log), 0.01)[0].note
    upright = make_case(load("four_bar"), variant="default", mode="home", configuration="vertical")
    plain = prescribe(upright)
    own = Lagrange().compute_efforts(upright, plain).effort
    assert not requirement(upright.mechanism, plain, own).decisive
    sensitivities = accuracy._mass_sensitivities(upright.mechanism, plain)
    for one, found in zip(upright.mechanism.bodies, sensitivities, strict=True):
        without = replace(upright, mechanism=upright.mechanism.with_mass(one.name, 0.0))
        expected = np.abs(Lagrange().compute_efforts(without, plain).effort - own).max(axis=0)
        np.testing.assert_allclose(found, expected, rtol=0.02)


@pytest.fixture(scope="module")
def tense(tmp_path_factory: pytest.TempPathFactory) -> tuple[Case, Log, Array]:
    """A crank at either end of a rod, both driven, by hand, and efforts that only press them against each other."""
    path = tmp_path_factory.mktemp("redundant") / "parallelogram.xml"
    path.write_text(PARALLELOGRAM, encoding="utf-8")
    t, theta, _, acceleration = swing(1.0)
    half = ((2 * (0.1 + 0.2**2) + 2 * 0.4**2) * acceleration - 9.81 * (2 * 0.2 + 2 * 0.4) * np.sin(theta)) / 2
    log = log_of(t, {"a": theta, "pin": -theta, "b": theta}, {"a": half, "b": half})
    return case_of(path), log, np.array([1.0, -1.0])


def test_an_internal_load_is_reported_and_beyond_the_peaks_not_comparable(tense: tuple[Case, Log, Array]) -> None:
    """Equal cranks: opposite efforts of equal size cause no motion."""
    case, log, pressing = tense
    peak = np.abs(log.effort).max()
    outcomes = {
        size: verdicts(judge_log(case, replace(log, effort=log.effort + size * peak * pressing)), 0.01)
        for size in (0.0, 0.5, 100.0)
    }
    assert [one.verdict for one in outcomes[0.0]] == ["agree", "agree"]
    assert all("internal load" not in one.note for one in outcomes[0.0])
    assert [one.verdict for one in outcomes[0.5]] == ["agree", "agree"]
    assert all("internal load of" in one.note for one in outcomes[0.5])
    assert [one.verdict for one in outcomes[100.0]] == ["not comparable", "not comparable"]
    assert all(one.note.startswith(f"internal load: {100 * peak:.3g} N m") for one in outcomes[100.0])
    heavy = judge_log(case, replace(log, effort=log.effort + 100 * peak * pressing))
    assert [one.verdict for one in verdicts(heavy, 0.01, internal_load=200)] == ["agree", "agree"]
    with pytest.raises(ToleranceError, match="internal load must be at least 0, got -1"):
        LogOptions(internal_load=-1)


def test_settings_are_judged_by_the_peak_of_the_prescribed_motion_with_its_start() -> None:
    case = make_case(load("four_bar"), variant="default", mode="home", configuration="vertical")
    purpose = purpose_of(case, "mujoco", OWN)
    assert isinstance(purpose, Purpose)
    efforts = np.abs(Lagrange().compute_efforts(case, prescribe(case)).effort)
    assert purpose.required.peak[0] == pytest.approx(efforts.max(), rel=1e-9)
