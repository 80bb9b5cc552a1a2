"""The tasks of a check and what it says of the results so far; workers are played by the test."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, make_case
from loopcheck.validation.check.audit.audit import expected_terms
from loopcheck.validation.check.efforts.evaluate import evaluate, random_motion_or_error
from loopcheck.validation.check.efforts.outcome import Failed, Ran
from loopcheck.validation.check.plan import RUNNING, Plan
from loopcheck.validation.check.record import Request
from loopcheck.validation.common.tolerances import registered
from loopcheck.validation.execution.journal import Task, keys

NAMES = ("analytic/lagrange", "mujoco/kkt", "mujoco/as_is")


@dataclass
class Pool:
    """Ends each task with what a function makes of it."""

    result: Callable[[Task], Any]
    ended: list[Task] = field(default_factory=list)

    def completed(self, tasks: Sequence[Task], *_: Any) -> Iterator[tuple[int, Any]]:
        while len(self.ended) < len(tasks):
            task = tasks[len(self.ended)]
            self.ended.append(task)
            yield len(self.ended) - 1, self.result(task)


@pytest.fixture(scope="module")
def two() -> tuple[tuple[Case, Motion], ...]:
    """Two cases, whose motions differ."""
    cases = [make_case(load("3prr"), variant="default", mode=m, configuration="vertical") for m in ("plus", "minus")]
    return tuple((case, prescribe(case)) for case in cases)


def plan_of(cases: Sequence[tuple[Case, Motion]], names: tuple[str, ...] = NAMES, *, reactions: bool = False) -> Plan:
    request = Request(dt=None, tolerances=registered(), names=names, reactions=reactions)
    expected = {case.key: expected_terms(case, motion) for case, motion in cases}
    return Plan([case for case, _ in cases], {case.key: motion for case, motion in cases}, expected, request)


def taken(plan: Plan, result: Callable[[Task], Any]) -> list[Task]:
    """All tasks of a plan, in their order."""
    pool = Pool(result)
    for _ in plan.results(pool, lambda: None):  # type: ignore[arg-type]
        pass
    return pool.ended


def lost(task: Task) -> Any:
    """The result of a task whose process died."""
    return task.on_failure("died") if task.on_failure else MechanismError("died")


def test_a_simulation_is_repeated_on_the_random_motion_of_its_own_case(two: Any) -> None:
    (one, motion), (other, _) = two
    random = replace(motion, notes=("random",))

    def result(task: Task) -> Any:
        is_of_one = task.function is random_motion_or_error and task.args[0].mode == one.mode
        return random if is_of_one else lost(task)

    plan = plan_of(two)
    tasks = taken(plan, result)
    repeats = [task.args[0] for task in tasks if task.function is evaluate and task.args[1] is random]
    assert [case.mode for case in repeats] == ["plus-random"] * 2
    output = plan.output()
    assert output.motions[repeats[0].key] is random
    assert {outcome.case.mode for outcome in output.outcomes} == {one.mode, other.mode, "plus-random"}
    notes = {outcome.case.mode: outcome.note for outcome in output.outcomes if outcome.source == "mujoco/as_is"}
    assert "no random motion beside it" in notes[other.mode]
    assert "no random motion beside it" not in notes[one.mode]


def test_forces_in_the_joints_are_read_by_the_simulations_of_the_cases_alone(two: Any) -> None:
    """Not on random motions. The other results of a check without forces stand for those of a check with forces."""
    random, digests = replace(two[0][1], notes=("random",)), []
    for reactions in (False, True):
        plan = plan_of(two[:1], (*NAMES, "mujoco/forward"), reactions=reactions)
        tasks = taken(plan, lambda task: random if task.function is random_motion_or_error else lost(task))
        reading = [task.args[:3] for task in tasks if task.function is evaluate and task.args[4]]
        assert reading == [(*two[0], name) for name in ("mujoco/as_is", "mujoco/forward")] * reactions
        digests.append(keys(tasks))
    assert len(set(digests[1]) - set(digests[0])) == 2
    assert len(digests[0]) == len(digests[1]) == 10


def test_what_does_not_simulate_comes_first_and_then_a_page_is_possible(two: Any) -> None:
    plan = plan_of(two[:1])
    seen = []

    def result(task: Task) -> Any:
        seen.append((task.engine, plan.is_exact, plan.is_complete))
        return lost(task)

    tasks = taken(plan, result)
    first = next(k for k, (_, is_exact, _) in enumerate(seen) if is_exact)
    sources = [task.args[2] if task.function is evaluate else task.function.__name__ for task in tasks]
    assert set(sources[:first]) == {"analytic/noc", "analytic/lagrange", "mujoco/kkt", "audit"}
    assert sources[first:] == ["random_motion_or_error", "mujoco/as_is"]
    assert sources[:2] == ["analytic/noc", "audit"]  # the inputs of every verdict
    assert not any(is_complete for _, _, is_complete in seen)
    assert plan.is_complete


def test_what_runs_is_not_run_with_that_reason(two: Any) -> None:
    plan = plan_of(two[:1])
    for _ in plan.results(Pool(lost), lambda: None):  # type: ignore[arg-type]
        if plan.is_exact:
            break
    running = {
        outcome.source: (outcome.verdict, outcome.note)
        for outcome in plan.output().outcomes
        if isinstance(outcome, Failed)
    }
    assert running["mujoco/as_is"] == ("not run", RUNNING)
    assert running["mujoco/kkt"] == ("not run", "died")


@pytest.mark.parametrize(("factor", "words"), [(1.0, "analytic/lagrange agrees with the reference to "), (1.1, "")])
def test_the_first_verdict_waits_for_the_file_and_is_an_agreement(two: Any, factor: float, words: str) -> None:
    plan = plan_of(two[:1], ("analytic/lagrange",))
    said = []

    def result(task: Task) -> Any:
        said.append(plan.first_verdict(Request(dt=None, tolerances=registered())))
        outcome = task.function(*task.args)
        if isinstance(outcome, Ran) and outcome.source != "analytic/noc":
            history = replace(outcome.history, effort=factor * outcome.history.effort)
            return replace(outcome, history=history)
        return outcome

    tasks = taken(plan, result)
    assert [task.function.__name__ for task in tasks] == ["evaluate", "audit", "evaluate"]
    assert said == ["", "", ""]
    assert plan.first_verdict(Request(dt=None, tolerances=registered())).startswith(words)
    assert bool(words) == bool(plan.first_verdict(Request(dt=None, tolerances=registered())))


def test_no_verdict_without_the_reading_of_the_file(two: Any) -> None:
    plan = plan_of(two[:1], ("analytic/lagrange",))
    request = Request(dt=None, tolerances=registered())

    def result(task: Task) -> Any:
        return task.function(*task.args)

    said = {}
    plan._tasks.append(plan._tasks.pop(1))  # the audit comes last
    plan._keys.append(plan._keys.pop(1))
    for key, _ in plan.results(Pool(result), lambda: None):  # type: ignore[arg-type]
        said[key[1]] = bool(plan.first_verdict(request))
    assert said == {"analytic/noc": False, "analytic/lagrange": False, "model file": True}
