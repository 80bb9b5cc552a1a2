"""Further runs after an unsuccessful search, and the obstacle to an accuracy.

The obstacle is the part of the error that a further change of a setting removes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from loopcheck.engines.declarations import HARD_LOOPS
from loopcheck.validation.tune.runs.purposes import Purpose
from loopcheck.validation.tune.runs.tuning_runs import TuningRuns
from loopcheck.validation.tune.search import Candidate, Reach, Scored

WORDS = {"step": "half the step", "softness": "half the time constant"}
HELPS = 0.8
"""A change removes the cause of the error if less than this part of the error remains [-]."""


def refined(runs: TuningRuns, purposes: Sequence[Purpose], tried: Sequence[Scored], reach: Reach) -> list[Scored]:
    """Finer steps and harder loops than the best candidate of a search, as long as they help and CPU time is left.

    Args:
        runs: Runs of the tuning.
        tried: Tried candidates, some of them judged.
        reach: Limits of the search.
    """
    best, further = _best(runs, purposes, tried), list[Scored]()
    while True:
        further_ones = _further(runs, best.candidate).values()
        candidates = [one for one in further_ones if one.step >= reach.least_step(one.family.method)]
        others = runs.scored(purposes, candidates)
        further += others
        better = min(others, key=lambda one: one.error, default=best)
        if runs.is_over or not better.error < HELPS * best.error:
            return further
        best = better


def obstacle(runs: TuningRuns, purposes: Sequence[Purpose], tried: Sequence[Scored], wish: str) -> Mapping[str, Any]:
    """Reason for an unreachable accuracy, and the best settings.

    Args:
        runs: Runs of the tuning.
        tried: Tried candidates, some of them judged.
        wish: The wanted accuracy, in words.

    Returns:
        The verdict, the answer in words, and the least error, if any is known.
    """
    best = _best(runs, purposes, tried)
    if not np.isfinite(best.error):
        reason = runs.reason(purposes, best.candidate)
        return {"verdict": "not comparable", "answer": f"no settings can be judged on all motions: {reason}"}
    further = _further(runs, best.candidate)
    results = dict(zip(further, runs.scored(purposes, list(further.values())), strict=True))
    has_finer = "softness" in further and further["softness"].step < best.candidate.step
    beside = {"step": best, "softness": results["step"] if has_finer else best}
    causes = [name for name, one in results.items() if one.error < HELPS * beside[name].error]
    figures = ", ".join(f"{WORDS[name]} {one.error:.2g}" for name, one in results.items())
    beyond = f" ({figures})" if figures else ""
    reason = f"cause: {' and '.join(causes)}" if causes else _rest(runs, best)
    if not further:
        reason = f"no other change is permitted with {', '.join(runs.kept)} kept"
    return {
        "verdict": "disagree",
        "reached": best.error,
        "answer": f"the error must be at most {wish}, the best settings reach {best.error:.2g}; {reason}{beyond}",
    }


def _best(runs: TuningRuns, purposes: Sequence[Purpose], tried: Sequence[Scored]) -> Scored:
    """Candidate with the least error on all motions; a candidate that fails on one motion is not tried on the next."""
    on_all: list[Scored] = []
    for one in sorted(tried, key=lambda one: one.error):
        if on_all and min(other.error for other in on_all) <= one.error:
            break
        on_all += runs.scored(purposes, [one.candidate])
    return min(on_all, key=lambda one: one.error)


def _further(runs: TuningRuns, candidate: Candidate) -> dict[str, Candidate]:
    """Half the step with the same loops, and loops of half the time constant, with half the step if they need it.

    The second candidate exists only for methods with time constants.
    """
    changes = _changes(runs, candidate)
    return {name: one for name, one in changes.items() if runs.permitted([one])}


def _changes(runs: TuningRuns, candidate: Candidate) -> dict[str, Candidate]:
    family, step = candidate.family, candidate.step
    of_method = [one for one in runs.families if one.method == family.method]
    if not family.timeconst:
        hard = {"softness": Candidate(family=replace(family, timeconst=HARD_LOOPS.timeconst), step=step)}
        finer = Candidate(family=family, step=step / 2)
        return {"step": finer, **(hard if any(one.timeconst for one in of_method) else {})}
    same = replace(family, timeconst=2 * family.timeconst)
    harder = family if family.timeconst < 2 * HARD_LOOPS.timeconst else replace(family, timeconst=family.timeconst / 2)
    return {
        "step": Candidate(family=same, step=step / 2),
        "softness": Candidate(family=harder, step=step / 2 if harder is family else step),
    }


def _rest(runs: TuningRuns, best: Scored) -> str:
    """Remaining cause of the error if neither step nor softness helps, in words."""
    floors = [row["floor"] for row in runs.rows if np.isfinite(row["error"]) and row["error"] == best.error]
    if floors and best.error < 2 * max(floors):
        return f"cause: noise floor of a log with this step, {max(floors):.2g}"
    return "cause: neither step nor softness; remaining causes are precision, contacts, limits and dry friction"
