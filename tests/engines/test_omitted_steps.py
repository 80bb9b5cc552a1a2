"""Forward routes omit finer steps by a rule, if limits of a verdict are handed in."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from loopcheck import engines
from loopcheck.engines.forward import Enough, enough_steps, omission, remainder, surviving_rungs, until
from loopcheck.robots.efforts import Deviation, Limits, Rung, Stepped
from loopcheck.robots.errors import EngineError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.robots.size import size_in_motion
from loopcheck.validation.check.efforts.compare import summarize
from loopcheck.validation.check.efforts.evaluate import evaluate
from loopcheck.validation.check.plan import _evaluation
from loopcheck.validation.check.record import Request
from loopcheck.validation.common import sources
from loopcheck.validation.common.tolerances import registered
from tests.outcomes import ran

LIMITS = Limits(relative_error=6e-5, closure_drift=1e-3, tracking_error=1e-2)
LOOSE, TIGHT = (Limits(relative_error=x, closure_drift=inf, tracking_error=inf) for x in (inf, 1e-30))
NONE = Deviation()
ROUTES = {"mujoco/forward": 4, "pinocchio/forward": 3, "simbody/forward": 3, "exudyn/forward": 3}
"""Number of their own steps."""


def rung(dt: float, effort: float, drift: Deviation = NONE, tracking: Deviation = NONE) -> Rung:
    efforts = np.array([[2.0, 0.1], [-effort, 0.0]])
    return Rung(dt=dt, effort=efforts, closure_drift=drift, tracking_error=tracking, wall_time=0.0)


@pytest.fixture
def rule(prr: Case, prr_motion: Motion) -> Enough:
    return enough_steps(LIMITS, prr.mechanism, prr_motion, lambda ladder: remainder(ladder, 4))


@pytest.fixture
def size(prr: Case, prr_motion: Motion) -> float:
    return size_in_motion(prr.mechanism, prr_motion)


@pytest.mark.parametrize(("change", "is_enough"), [(2.9e-5, True), (3.1e-5, False)])
def test_an_estimated_error_of_a_sixtieth_of_the_limit_is_enough(rule: Enough, change: float, is_enough: bool) -> None:
    """A change c leaves c/15 after a half step of fourth order, here over a peak of 2."""
    assert rule([rung(0.02, 1.0), rung(0.01, 1 + change)]) == is_enough
    assert not rule([rung(0.01, 1.0)])


def test_the_estimate_is_of_the_two_finest_steps_and_their_ratio() -> None:
    ladder = [rung(0.04, 5.0), rung(0.02, 1.0), rung(0.01, 1.3)]
    assert remainder(ladder, 4) == pytest.approx(0.15 / 15)
    assert remainder(ladder, 2) == pytest.approx(0.15 / 3)
    assert remainder([ladder[0], ladder[2]], 1) == pytest.approx(1.85 / 3)
    assert remainder(ladder[:1], 4) == inf


@pytest.mark.parametrize("unit", ["length", "angle"])
@pytest.mark.parametrize(("name", "limit"), [("drift", 1e-4), ("tracking", 1e-3)])
def test_drift_and_tracking_error_must_be_a_tenth_of_their_limits(
    rule: Enough, size: float, name: str, limit: float, unit: str
) -> None:
    limit *= size if unit == "length" else 1
    for factor, is_enough in ((0.99, True), (1.01, False), (nan, False)):
        finest = rung(0.01, 1.0, **{name: Deviation(**{unit: factor * limit})})
        assert rule([rung(0.02, 1.0), finest]) == is_enough


def test_coarser_steps_may_have_drifted(rule: Enough) -> None:
    assert rule([rung(0.02, 1.0, Deviation(1.0), Deviation(1.0)), rung(0.01, 1.0)])


def test_no_step_is_omitted_without_limits(prr: Case, prr_motion: Motion) -> None:
    never = enough_steps(None, prr.mechanism, prr_motion, lambda ladder: 0.0)
    assert not never([rung(0.02, 1.0), rung(0.01, 1.0)])
    assert omission(None) == {}
    assert all(f"{number:g}" in omission(LIMITS)["omitted steps"] for number in (60, 6e-5, 10))


def test_simulations_that_are_not_needed_do_not_run() -> None:
    taken: list[float] = []

    def simulated(dt: float) -> Rung:
        taken.append(dt)
        if dt == 8:
            raise EngineError("diverged")
        return rung(dt, 1.0)

    def enough(ladder: Sequence[Rung]) -> bool:
        return len(ladder) == 2

    assert len(until(enough, map(simulated, (4, 2, 1)))) == 2
    assert taken == [4, 2]
    taken.clear()
    ladder, diverged = surviving_rungs(simulated, (8, 4, 2, 1), enough)
    assert (len(ladder), taken, len(diverged)) == (2, [8, 4, 2], 1)
    assert len(surviving_rungs(simulated, (4, 2, 1))[0]) == 3


@pytest.fixture(scope="module", params=ROUTES)
def route(request: pytest.FixtureRequest) -> Any:
    """A route of an installed engine; the import of the engine is no part of the tests."""
    if not engines.installed(request.param.split("/")[0]):
        pytest.skip(f"{request.param} is not installed")
    return engines.load(request.param)


def test_a_route_omits_steps_only_within_limits(route: Any, prr: Case, prr_motion: Motion) -> None:
    """Efforts of a ladder with all steps are the same, bit for bit, with limits or without."""
    motion = prr_motion.assemble(prr_motion.t[:3])
    assert isinstance(route, Stepped)
    own, loose, tight = (one.compute_efforts(prr, motion) for one in (route, route.within(LOOSE), route.within(TIGHT)))
    steps, fewer, every = ([one.dt for one in history.ladder] for history in (own, loose, tight))
    assert len(steps) == ROUTES[own.source]
    assert every == steps
    np.testing.assert_array_equal(tight.effort, own.effort)
    assert fewer[-1] > steps[-1]
    assert loose.settings["steps"].startswith(", ".join(f"{1e3 * dt:g}" for dt in fewer) + " ms")
    assert "omitted steps" not in own.settings
    assert f"{LOOSE.relative_error:g}" in loose.settings["omitted steps"]


def test_reruns_of_a_route_with_limits_take_all_steps(route: Any) -> None:
    limited = route.within(LOOSE)
    assert limited.limits is LOOSE
    assert limited.tightened().limits is limited.refined().limits is None


NAME = "mujoco/forward"


@pytest.mark.parametrize(
    ("asked", "is_named"),
    [((), False), ((NAME,), True), (("mujoco",), False), (("*/forward",), False), (("mujoco", NAME), True)],
)
def test_a_named_source_takes_all_steps(asked: tuple[str, ...], is_named: bool, prr: Case, prr_motion: Motion) -> None:
    groups = tuple(map(frozenset, sources.groups(asked)))
    request = Request(dt=None, tolerances=registered(), requested=groups)
    task = _evaluation(prr, prr_motion, NAME, request.limits_of(NAME))
    assert task.args[3] == (None if is_named else registered()[NAME].limits)  # type: ignore[union-attr]


def test_a_limit_of_the_user_decides_about_steps() -> None:
    own = registered()[NAME].model_copy(update={"relative_error": 1e-9})
    found = Request(dt=None, tolerances={NAME: own}).limits_of(NAME)
    assert found == Limits(relative_error=1e-9, closure_drift=1e-5, tracking_error=1e-5)
    assert Request(dt=None, tolerances={}).limits_of(NAME) is None
    assert [registered()[name].limits for name in ("analytic/noc", "mujoco/kkt", "mujoco/as_is")] == [None] * 3


def test_the_verdict_is_the_same_with_fewer_steps(prr: Case, prr_motion: Motion) -> None:
    motion = prr_motion.assemble(prr_motion.t[:6])
    reference = evaluate(prr, motion, sources.REFERENCE)
    every, fewer = (ran(evaluate(prr, motion, NAME, limits)) for limits in (None, registered()[NAME].limits))
    assert len(fewer.history.ladder) < len(every.history.ladder)
    verdicts = [summarize([reference, outcome])["verdict"].tolist() for outcome in (every, fewer)]
    assert verdicts == [["reference"] * 3 + ["agree"] * 3] * 2
    faulty = replace(fewer, history=replace(fewer.history, effort=1.01 * fewer.history.effort))
    assert summarize([reference, faulty])["verdict"].tolist() == ["reference"] * 3 + ["disagree"] * 3
