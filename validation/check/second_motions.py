"""Another motion for cases whose generated motion fails in a simulation: the same with half the stroke, tried once."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from loopcheck.analytic.motion.automatic import GENERATED, OFFER
from loopcheck.analytic.motion.laws import AUTOMATIC
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.efforts.compare import summarize
from loopcheck.validation.check.efforts.evaluate import halved_or_error, motion_key
from loopcheck.validation.check.efforts.outcome import Failed, Outcome, Reference, is_stiff_on_gaps
from loopcheck.validation.check.record import Request, RunOutput
from loopcheck.validation.common import sources
from loopcheck.validation.common.verdicts import CASE, Key
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.workers import WorkerFailure, WorkerPool

Compute: TypeAlias = Callable[[Sequence[Case], Mapping[Key, Motion]], RunOutput]
"""Computes all sources on some motions."""


def by_motion(
    cases: Sequence[Case], task: Callable[[Case], Task], pool: WorkerPool, description: str
) -> Mapping[Key, Any]:
    """Results of a task for each case; cases with equal motions share that of the first.

    Args:
        description: Label of the progress bar.
    """
    keys = {case.key: motion_key(case) for case in cases}
    firsts = {keys[case.key]: case for case in reversed(cases)}
    results = dict(zip(firsts, pool.results([task(case) for case in firsts.values()], description), strict=True))
    return {case.key: results[keys[case.key]] for case in cases}


def with_second_motions(
    cases: Sequence[Case], output: RunOutput, request: Request, pool: WorkerPool, compute: Compute
) -> RunOutput:
    """The output, with a second motion for cases whose generated motion fails, if fewer simulations fail with it.

    Args:
        output: Results for the first motions.
    """
    reasons = failures(cases, output, request)
    if not reasons or pool.log.interrupted:
        return output
    failing = [case for case in cases if case.key in output.motions and motion_key(case) in reasons]

    def task(case: Case) -> Task:
        return Task(halved_or_error, (case, output.motions[case.key], reasons[motion_key(case)][0]), WorkerFailure)

    made = by_motion(failing, task, pool, "second motions")
    second = {key: motion for key, motion in made.items() if isinstance(motion, Motion)}
    again = [case for case in failing if case.key in second]
    other = compute(again, second)
    left = failures(again, other, request)
    better = {case.key for case in again if len(left.get(motion_key(case), ())) < len(reasons[motion_key(case)])}
    notes = {
        case.key: f"{GENERATED}: it failed ({reasons[motion_key(case)][0]}), and so did half its stroke. {OFFER}"
        for case in failing
        if case.key not in better
    }
    first = {**output.motions}
    for key, note in notes.items():
        first[key] = replace(first[key], notes=(*first[key].notes, note))
    return _merged(output._replace(motions=first), other, better)


def failures(cases: Sequence[Case], output: RunOutput, request: Request) -> dict[Key, list[str]]:
    """Failures of simulations along generated motions, in words, by the keys of these motions.

    A simulation fails if the engine does, or if it does not resolve the efforts. Unmodified simulations do not count:
    their failures belong to the model.
    """
    generated = {case.key: motion_key(case) for case in cases if case.robot.motion.law == AUTOMATIC}
    references = {outcome.case.key: outcome for outcome in output.outcomes if outcome.source == sources.REFERENCE}
    rows = summarize(output.outcomes, output.evidence(request))
    rows = rows[rows["verdict"] == "not comparable"]
    open_pairs = {(tuple(case), source) for *case, source in rows[[*CASE, "source"]].itertuples(index=False)}
    found: dict[Key, list[str]] = {}
    for outcome in output.outcomes:
        pair = (outcome.case.key, outcome.source)
        if outcome.case.key not in generated or not sources.simulates(outcome.source) or sources.is_as_is(pair[1]):
            continue
        if is_stiff_on_gaps(outcome.case, outcome.source):  # another motion leaves the digits of the file
            continue
        if isinstance(outcome, Failed) and outcome.is_engine_error:
            found.setdefault(generated[pair[0]], []).append(outcome.note)
        elif pair in open_pairs and pair in output.resolutions:
            words = f"{outcome.source}: not resolved, largest error at {_worst_time(outcome, references[pair[0]]):g} s"
            found.setdefault(generated[pair[0]], []).append(words)
    return found


def _worst_time(outcome: Outcome, reference: Outcome) -> float:
    """Time of the largest error over the scale of its actuator [s]."""
    if outcome.compared is None or not isinstance(reference, Reference):
        return math.nan
    error = np.abs(outcome.compared.effort - reference.history.effort)
    relative = np.divide(error, reference.scale, out=np.zeros_like(error), where=reference.scale > 0)
    return float(outcome.compared.t[int(relative.max(axis=1).argmax())])


def _merged(output: RunOutput, other: RunOutput, cases: set[Key]) -> RunOutput:
    """Results of some cases, and of their random motions, from another output."""
    beside = {**output.beside, **other.beside}
    keys = cases | {key for key, original in beside.items() if original in cases}
    order = {key: k for k, key in enumerate(dict.fromkeys([one.case.key for one in output.outcomes]))}

    def key_of(row: Mapping[str, Any]) -> Any:
        return tuple(row[name] for name in CASE)

    outcomes = [one for one in output.outcomes if one.case.key not in keys]
    outcomes += [one for one in other.outcomes if one.case.key in keys]
    audited = [row for row in output.audited if key_of(row) not in keys]
    audited += [row for row in other.audited if key_of(row) in keys]
    return output._replace(
        motions={**output.motions, **{key: motion for key, motion in other.motions.items() if key in keys}},
        outcomes=sorted(outcomes, key=lambda one: order.get(one.case.key, len(order))),
        audited=audited,
        resolutions={
            **{pair: one for pair, one in output.resolutions.items() if pair[0] not in keys},
            **{pair: one for pair, one in other.resolutions.items() if pair[0] in keys},
        },
        beside=beside,
    )
