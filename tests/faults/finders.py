"""The parts of the harness that find a fault, each as a function from a fault to what the harness says of it."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.logs.closing.closed_log import closed_log
from loopcheck.analytic.logs.residual import residual_efforts
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.efforts import EffortHistory, run_of
from loopcheck.robots.formats.mjcf import with_overrides
from loopcheck.robots.log import Held, Log
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, Robot, load, make_case, representative_case
from loopcheck.validation.check.audit.audit import ExpectedTerms, audit, blocking_reasons, doubts, expected_terms
from loopcheck.validation.check.efforts.as_is import Settled, settled
from loopcheck.validation.check.efforts.compare import summarize
from loopcheck.validation.check.efforts.evaluate import evaluate, outcome_of
from loopcheck.validation.check.efforts.outcome import Outcome
from loopcheck.validation.common import sources
from loopcheck.validation.common.readings import in_words, reading_of
from loopcheck.validation.common.verdicts import FILE, SEVERITY
from tests.conftest import MODELS
from tests.faults.adapters import MISREADINGS, OMITTED, misread_history
from tests.faults.edits import EDITS, closure_bias
from tests.faults.seeds import READINGS, ROBOTS, SHARED, WRONG

SEEN = np.sqrt(2)
"""Ratio of errors with and without a fault above which the fault is seen: equal and independent errors [-]."""
EXACTLY = 0.2
"""Largest difference of a column from a reading that explains it, over that of the reading from the effort [-]."""


@dataclass(frozen=True)
class Ready:
    """A case with its motion and reference, each computed once."""

    case: Case

    @cached_property
    def motion(self) -> Motion:
        return prescribe(self.case)

    @cached_property
    def reference(self) -> Outcome:
        return evaluate(self.case, self.motion, sources.REFERENCE)

    @cached_property
    def expected(self) -> ExpectedTerms:
        return expected_terms(self.case, self.motion)

    @property
    def peak(self) -> float:
        """Largest effort that the case needs [N or N m]."""
        return float(np.abs(Noc().compute_efforts(self.case, self.motion).effort).max())


@cache
def ready(robot: str) -> Ready:
    """The upright case of a robot of the catalogue; of a model of the tests; or with rotors at its driven joints."""
    folder, _, name = robot.rpartition("/")
    if folder == "models":
        spec: Any = {"law": "sine", "parameters": {"amplitude": 0.1}}
        model = Robot(name=name, folder=MODELS, title="", mjcf=f"{name}.xml", motion=spec, source="test")
        return Ready(make_case(model, variant="default", mode="home", configuration="vertical"))
    case = representative_case(load(name))
    if folder == "rotors":
        driven = [case.mechanism.joints[j] for j in case.mechanism.actuated_joints]
        armature = {joint.name: {"armature": 0.02 if joint.kind == "hinge" else 2.0} for joint in driven}
        case = replace(case, mechanism=with_overrides(case.mechanism, {"joint": armature}))
    return Ready(case)


def _compared(outcomes: Sequence[Outcome], source: str) -> str:
    """Verdict and note of the worst actuator of a source; empty if it agrees."""
    summary = summarize(outcomes)
    rows = summary[summary["source"] == source]
    verdict, note = min(zip(rows["verdict"], rows["note"], strict=True), key=lambda row: SEVERITY.index(row[0]))
    return "" if verdict == "agree" else f"{verdict}: {note}"


@cache
def computed(source: str, robot: str) -> EffortHistory:
    """Efforts of a source without a fault."""
    return sources.load(source).compute_efforts(ready(robot).case, ready(robot).motion)


def _with_fault(fault: str, source: str, robot: str) -> EffortHistory:
    """Efforts of a source with a fault of its robot, motion or reading, or of its adapter."""
    case, motion, omitted = ready(robot).case, ready(robot).motion, OMITTED.get(source, {})
    if not fault or fault in READINGS:
        history = computed(source, robot)
        return replace(history, effort=READINGS[fault](history.effort)) if fault else history
    if fault in omitted:
        return omitted[fault](ready(robot).peak).compute_efforts(case, motion)
    return WRONG[fault](sources.load(source), case, motion)


def outcome_with_fault(fault: str, source: str, robot: str) -> Outcome:
    """Outcome of a source with a fault, beside a sound reference."""
    compute = partial(_with_fault, fault, source, robot)
    with np.errstate(all="ignore"):  # of a simulation that ends in infinities
        return outcome_of(ready(robot).case, ready(robot).motion, source, compute)


def by_comparison(fault: str, source: str, robot: str) -> str:
    """The verdict of the efforts of a source, and its note."""
    return _compared([ready(robot).reference, outcome_with_fault(fault, source, robot)], source)


def _shared(fault: str, case: Case) -> AbstractContextManager[Case]:
    return SHARED[fault](case) if fault else nullcontext(case)


def by_comparison_of_shared_input(fault: str, source: str, robot: str) -> str:
    """The verdict if the reference, the motion and the input of the adapter have the fault."""
    at = _ready_with(fault, robot)
    with _shared(fault, at.case):
        return _compared([at.reference, evaluate(at.case, at.motion, source)], source)


@cache
def _ready_with(fault: str, robot: str) -> Ready:
    """A case, its motion and the reference with a fault of a shared input, computed once for all sources."""
    with _shared(fault, ready(robot).case) as wrong:
        at = Ready(wrong)
        assert at.reference
    return at


def by_second_reading(fault: str, _: str, robot: str) -> str:
    """The difference between the model and the robot's files."""
    with _shared(fault, ready(robot).case) as wrong:
        rows = audit(wrong, expected_terms(wrong, ready(robot).motion), FILE)
    return doubts(rows).get(wrong.key, "")


def _edited(fault: str, engine: str, case: Case) -> tuple[Case, AbstractContextManager[Any]]:
    if fault in ROBOTS:
        return replace(case, mechanism=ROBOTS[fault](case.mechanism)), nullcontext()
    if fault == "closure acceleration":
        return case, closure_bias()
    return case, EDITS[engine][fault.removeprefix("edit: ")]() if fault else nullcontext()


def by_audit(fault: str, engine: str, robot: str) -> str:
    """The reason of the audit against any comparison with an engine."""
    case, edit = _edited(fault, engine, ready(robot).case)
    with edit:
        rows = audit(case, ready(robot).expected, engine)
    return "; ".join(blocking_reasons(rows).values())


@cache
def ran(source: str, robot: str) -> tuple[EffortHistory, Settled, str]:
    """An unmodified simulation, its error without a fault, and the reading that it resembles nevertheless."""
    case = ready(robot).case
    history = sources.load(source).compute_efforts(case, ready(robot).motion)
    left = _settled(case, history)
    return history, left, "" if left.reason else _named(case, run_of(history).log, left)


def _settled(case: Case, history: EffortHistory) -> Settled:
    return settled(case.mechanism, run_of(history), most=200)


def by_as_is(fault: str, source: str, robot: str) -> str:
    """The reading that a column of an unmodified simulation resembles, or the error that the fault adds to it."""
    case = ready(robot).case
    history, sound, resembled = ran(source, robot)
    if fault in OMITTED.get(source, {}):
        history = OMITTED[source][fault](ready(robot).peak).compute_efforts(case, ready(robot).motion)
    elif fault:
        history = misread_history(history, MISREADINGS[fault])
    left = _settled(case, history)
    if left.reason:
        return left.reason
    larger = (left.rms > np.maximum(left.floor, SEEN * sound.rms)).any()
    named = "" if resembled else _named(case, run_of(history).log, left)
    return "; ".join(filter(None, ("a larger error" if larger else "", named)))


def _named(case: Case, log: Log, left: Settled) -> str:
    """Probable reading of the column of the first actuator; empty if it may be the effort."""
    closed = closed_log(case.mechanism, log, log.q[0])
    residual = residual_efforts(closed, Held(log.dt), start=float(log.t[0]) + left.window, noiseless=True)
    reading = reading_of(case.mechanism, residual, 0)
    words = in_words(reading)
    return f"exactly: {words}" if words and reading.left < EXACTLY * reading.effect else words


FINDERS: Mapping[str, Callable[[str, str, str], str]] = {
    "comparison": by_comparison,
    "comparison of shared input": by_comparison_of_shared_input,
    "second reading": by_second_reading,
    "audit": by_audit,
    "as_is": by_as_is,
}
"""From a fault, a source or engine, and a robot to what is said; empty if nothing is found."""
