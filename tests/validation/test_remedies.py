"""Changes of a log that disagrees: their order, what they change, and the choice among trials."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from loopcheck import judge
from loopcheck.analytic.logs.parameters import Estimate
from loopcheck.robots.arrays import Array
from loopcheck.robots.log import Instantaneous, Log
from loopcheck.robots.robot import Case, load, make_case
from loopcheck.validation.judge import causes
from loopcheck.validation.judge.causes import Trial
from loopcheck.validation.judge.logs import LogOptions, judge_log
from loopcheck.validation.judge.remedies import Remedy, conversions, removes_most
from tests import planar_four_bar

MODEL = Path(__file__).parents[2] / "robots/four_bar/four_bar.xml"
LOG = replace(planar_four_bar.exact_log(0.02, 101), effort_time=Instantaneous())
WEIGHT: Array = np.array([[planar_four_bar.terms(float(q)).weight] for q in LOG.q[:, 0]])
FLAT = replace(LOG, effort=LOG.effort - WEIGHT)
"""Without gravity in the plane."""


@pytest.fixture(scope="module")
def case() -> Case:
    return make_case(load("four_bar"), variant="default", mode="home", configuration="vertical")


def found(case: Case, log: Log) -> list[Remedy]:
    plain = Remedy(case=case, log=log)
    return list(conversions(plain, judge_log(case, log).residuals[0], has_right_times=True))


def after_a_jump(effort: Array) -> Array:
    """Efforts after an unsettled start, which is a third of the log."""
    return effort + 100 * (LOG.t[:, None] < LOG.t[-1] / 3)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda effort: -effort, 'signs = { "crank.effort" = -1 } in its description (the negative of the column)'),
        (lambda effort: 2 * effort, "the efforts divided by 2 (given twice?)"),
        (lambda effort: effort / 2, "the efforts times 2 (half of the effort?)"),
        (lambda effort: 1e3 * effort, 'units = { torque = "N mm" } in its description'),
    ],
)
@pytest.mark.parametrize("unsettled", [lambda effort: effort, after_a_jump])
def test_a_change_of_the_efforts_is_that_of_its_words(
    wrong: Callable[[Array], Array], words: str, unsettled: Callable[[Array], Array], case: Case
) -> None:
    remedies = {str(one): one for one in found(case, replace(LOG, effort=unsettled(wrong(LOG.effort))))}
    chosen = remedies[words].log.effort[34:]
    assert chosen == pytest.approx(LOG.effort[34:], abs=1e-9)
    units = {'units = { angle = "deg" } in its description'}  # a motion is always tried
    assert set(remedies) - units == {words}


def test_columns_come_before_the_side_of_the_gear_and_that_before_units(tmp_path: Path, case: Case) -> None:
    path = tmp_path / "four_bar.xml"
    path.write_text(MODEL.read_text().replace('joint="crank"/>', 'joint="crank" gear="1000"/>'))
    robot = case.robot.model_copy(update={"folder": tmp_path, "mjcf": path.name})
    geared = make_case(robot, variant="default", mode="home", configuration="vertical")
    log = replace(LOG, unused={"motor": LOG.effort[:, 0] / 1000})
    assert [str(one) for one in found(geared, log)][:3] == [
        'columns = { "crank.effort" = "motor" } in its description',
        "--effort-side joint",
        'units = { torque = "N mm" } in its description',
    ]


@pytest.mark.parametrize(("name", "other", "log"), [("vertical", "horizontal", FLAT), ("horizontal", "vertical", LOG)])
def test_a_configuration_is_that_of_the_printed_option(name: str, other: str, log: Log) -> None:
    judged_as, printed = (
        make_case(load("four_bar"), variant="default", mode="home", configuration=one) for one in (name, other)
    )
    (remedy,) = (one for one in found(judged_as, log) if one.options)
    assert remedy.options == (f"--configuration {other}",)
    assert remedy.case.mechanism.gravity == pytest.approx(printed.mechanism.gravity)


def test_every_second_later_sample_chooses() -> None:
    residual: Any = SimpleNamespace(residual=np.ones((12, 1)))
    left = np.full((12, 1), 9.0)
    left[6::2] = 0.3
    assert removes_most(residual, left)
    left[8] = 9.0
    assert not removes_most(residual, left)


def test_no_actuator_may_get_worse() -> None:
    residual: Any = SimpleNamespace(residual=np.ones((10, 2)))
    assert removes_most(residual, np.tile([0.3, 1.0], (10, 1)))
    assert not removes_most(residual, np.tile([0.3, 1.1], (10, 1)))
    assert not removes_most(residual, np.tile([0.4, 0.4], (10, 1)))


def test_gravity_that_no_effort_shows_makes_up_its_size() -> None:
    """In a plane that is turned by 0.3 rad about X."""
    across = np.array([0.0, -np.sin(0.3), np.cos(0.3)])
    effect = np.random.default_rng(0).normal(size=(20, 1, 3))
    effect -= (effect @ across)[..., None] * across
    model = 9.81 * across
    felt = np.array([3.0, 0.0, 0.0])
    tilted = model + felt + causes._without_effect(model, felt, effect)
    assert np.linalg.norm(tilted) == pytest.approx(9.81)
    assert effect @ tilted == pytest.approx(effect @ felt)
    assert tilted @ across > 0
    whole = np.array([9.7, 0.0, 0.0])
    assert model + whole + causes._without_effect(model, whole, effect) == pytest.approx(whole)
    assert causes._without_effect(model, felt, np.eye(3)[:, None]) == pytest.approx(0 * felt)


@pytest.mark.parametrize(
    ("share", "gravity"), [(2.0, "(0, 9.81, 0) m/s² instead of (0, 0, -9.81)"), (1.5, "(0, 4.905, -8.496)")]
)
def test_gravity_beside_that_of_the_file_is_found(share: float, gravity: str) -> None:
    log = replace(LOG, effort=LOG.effort - share * WEIGHT, qd=None)
    assert f"the log agrees with gravity {gravity}" in judge(MODEL, log, configuration="horizontal").notes["crank"]


def trial(
    error: float, *, floor: float = 0.0, rms: float = 0.0, is_all: bool = False, options: tuple[str, ...] = ()
) -> Trial:
    """A trial with an accuracy of 0.01, of an actuator with a peak of 2 N m."""
    motion = SimpleNamespace(t=np.arange(4.0))
    values = SimpleNamespace(largest=np.array([2 * floor]))
    residual = SimpleNamespace(
        largest=np.array([2 * error]), floor=values, motion=motion, residual=np.full((4, 1), 2 * rms)
    )
    judged: Any = SimpleNamespace(rivals=1, residuals=[residual], required=[SimpleNamespace(divisor=np.array([2.0]))])
    none: Any = None
    return Trial(remedy=Remedy(case=none, log=none, options=options, is_all=is_all), judged=judged, accuracy=0.01)


def test_a_proof_counts_its_noise_floor_which_is_small() -> None:
    assert [trial(0.008, floor=0.001).agrees, trial(0.008, floor=0.003).agrees] == [True, False]
    assert [trial(0.012, floor=0.003).is_within, trial(0.012, floor=0.001).is_within] == [True, False]
    assert [trial(0.05, floor=0.1).is_within, trial(0.05, floor=0.11).is_within] == [True, False]
    assert "within accuracy and noise floor with" in trial(0.012, floor=0.003).words


def groups(*trials: Trial) -> list[causes._Group]:
    return [causes._Group(one, ()) for one in trials]


def test_the_fewest_changes_then_the_smallest_error_are_proven() -> None:
    two = trial(0.001, rms=0.0001, options=("--a", "--b"))
    worse, better = trial(0.004, rms=0.003, options=("--c",)), trial(0.006, rms=0.002, options=("--d",))
    within = trial(0.0095, floor=0.001)
    assert causes._proven(groups(two, worse, better, within)) == [better, worse]
    assert causes._proven(groups(within, trial(0.5))) == [within]
    assert causes._proven(groups(trial(0.5))) == []


def test_a_partial_change_removes_two_thirds_and_leaves_at_most_half_of_the_peak() -> None:
    def best(before: float, *trials: Trial) -> Trial | None:
        return causes._best_partial(groups(*trials), groups(trial(before)))

    one, two = trial(0.3, options=("--a",)), trial(0.28, options=("--a", "--b"))
    assert best(0.91, one, two) is one  # a further change must remove a tenth
    further = trial(0.26, options=("--a", "--b"))
    assert best(0.91, one, further) is further
    assert best(0.89, one) is None
    assert best(9.0, trial(0.51, options=("--a",))) is None
    assert best(9.0, trial(0.3, is_all=True)) is None


def test_a_start_is_chosen_by_every_second_sample() -> None:
    t = 0.01 * np.arange(100)
    motion = SimpleNamespace(t=t, dt=0.01, qd=np.ones((100, 1)))
    residual: Any = SimpleNamespace(motion=motion, needed=np.ones((100, 1)), scale=np.ones(1))
    whole: Any = SimpleNamespace(judged=SimpleNamespace(residuals=[residual]))
    search: Any = SimpleNamespace(asked=LogOptions(accuracy=0.01))
    left = np.where(np.arange(100) % 2, t < 0.305, t < 0.105)[:, None].astype(float)
    assert causes._Search._start(search, residual, left, whole) == pytest.approx(0.11)
    assert causes._Search._start(search, residual, (t < 0.45)[:, None].astype(float), whole) is None
    motion.qd[0] = 1e3  # a jump is no motion
    assert causes._Search._start(search, residual, left, whole) == pytest.approx(0.11)
    motion.qd[11:] = 0.0
    assert causes._Search._start(search, residual, left, whole) is None


@pytest.mark.parametrize(
    ("value", "half_width", "model", "sensible"),
    [(0.2, 0.1, 1.0, True), (-0.5, 0.6, 1.0, False), (-1.0, 0.0, 1.0, False), (-0.1, 0.01, 0.0, False)],
)
def test_a_fit_at_its_bound_or_without_a_positive_mass_is_not_named(
    value: float, half_width: float, model: float, sensible: bool
) -> None:
    estimate = Estimate(name="a", unit="kg", value=value, half_width=half_width, unbounded=value, model=model)
    assert causes._is_sensible(estimate) == sensible


def test_a_term_that_holds_only_at_the_samples_that_chose_it_is_not_named(case: Case) -> None:
    right = judge_log(case, replace(LOG, qd=None))
    residual = right.residuals[0]
    rows = len(residual.motion.t)
    is_testing = np.arange(rows) * causes.BLOCKS // rows % 2 == 1
    assert right.closed is not None
    assert right.given is not None
    for wrong, names in ((np.ones(rows), ["offset"]), (1.0 - is_testing, [])):
        judged = replace(right, residuals=(replace(residual, effort=residual.effort + wrong[:, None]),))
        search = causes._Search(judged=judged, closed=right.closed, asked=LogOptions(), case=case)
        group = causes._Group(Trial(remedy=Remedy(case=case, log=right.given), judged=judged, accuracy=1e-3), ())
        assert [one.name for one in search._chosen(group) if one.name == "offset"] == names
