"""Seeds faults in a judged route of a robot, and lets the ordinary comparison judge the result.

The effect of a fault is what it does to the efforts of the reference (analytic/noc) in the same states; that of a fault
of an adapter, which the reference cannot have, is what it does to the efforts of its route. A simulation finds the
states by itself: to one that still agrees, a fault that makes the mirror image of the robot, moving likewise, is none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from analytic.assembly import prescribe
from analytic.noc import Noc
from analytic.papers import Paper
from robots.efforts import EffortHistory, Source
from robots.errors import INTERNAL, HarnessError
from robots.motion import Motion
from robots.robot import DEFAULT, Case, configurations, load, make_case, modes, names
from validation import sources
from validation.compare import relative_error, summarize
from validation.evaluate import SIMULATED, Outcome, evaluate, outcome_of
from validation.findings import SEVERITY
from validation.studies.mutants.faults import MUTANTS, Mutant, NotCarriedError, by_key
from validation.tolerances import Tolerance, registered

MEANING: Mapping[str, str] = {
    "killed": "the comparison reads disagree",
    "refused": "the source or the comparison gives a reason why there is nothing to compare: caught as well",
    "below tolerance": "it agrees, because the fault changes the efforts by less than the tolerance of the route",
    "survived": "it agrees although the fault changes the efforts by more than the tolerance: a bug of loopcheck",
    "broken": "something was raised that is no error of ours: nothing is known",
    "not run": "the worker process died, ran out of time or was interrupted: nothing is known",
    "not carried": "the route or the robot has no place for the fault, or the route does not agree without it",
}
"""What can come of a mutant."""
CAUGHT = ("killed", "refused")
BUGS = ("survived", "broken")
WITHOUT = ("not carried", "not run")
"""Results that say nothing of whether a fault is caught."""

_Effects: TypeAlias = Mapping[str, tuple[float, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A case with its motion, its reference, and what each fault does to the reference."""

    case: Case
    motion: Motion
    reference: Outcome
    effects: _Effects
    """By mutant: change of the effort over the peak [-], infinite where the reference refuses the fault; and a note."""


def cases_of(robots: Sequence[str]) -> list[Case]:
    """Each robot in its first variant, in its first mode that meets no singularity, upright where it has gravity.

    Args:
        robots: Names of robots; by default all.

    Raises:
        HarnessError: If a robot is unknown or its model is bad.
    """
    return [_case(name) for name in robots or names()]


def judged(case: Case) -> list[str]:
    """The sources of a case that are held against the reference."""
    return [
        name
        for name in sources.names(case.robot)
        if name != sources.REFERENCE and name in registered() and registered()[name].relative_error is not None
    ]


def prepare(case: Case, mutants: Sequence[Mutant] = MUTANTS) -> Prepared:
    """Assemble the motion of a case, and measure what each fault does to its reference."""
    motion = prescribe(case)
    reference = evaluate(case, motion, sources.REFERENCE)
    of_reference = [mutant for mutant in mutants if not mutant.in_adapter]
    effects = {mutant.key: _effect_on_reference(mutant, case, motion, reference) for mutant in of_reference}
    return Prepared(case=case, motion=motion, reference=reference, effects=effects)


def judge(prepared: Prepared, source: str, mutants: Sequence[Mutant] = MUTANTS) -> list[Mapping[str, Any]]:
    """A row for each fault of a source."""
    case, motion = prepared.case, prepared.motion
    sound = evaluate(case, motion, source)
    verdict, _, note = _verdict(prepared, sound)
    why_not = "" if verdict == "agree" else f"without a fault it reads {verdict}: {note}"
    return [_row(case, source, mutant, _judged(prepared, sound, mutant, why_not)) for mutant in mutants]


def kill_rate(found: pd.DataFrame, limit: str = "tolerance") -> tuple[int, int]:
    """How many of the faults with an effect above a limit were caught, and how many there are.

    Args:
        found: Rows of the table of a study.
        limit: `tolerance` or `noise`, those of the route.
    """
    above = found[(~found["result"].isin(WITHOUT)) & ~(found["effect"] <= found[limit])]
    return int(above["result"].isin(CAUGHT).sum()), len(above)


def not_run(case: Case, source: str, mutants: Sequence[str], reason: str) -> list[Mapping[str, Any]]:
    """Rows of a route of which nothing is known."""
    nothing = _Judged(result="not run", verdict="not run", note=reason)
    return [_row(case, source, by_key(mutant), nothing) for mutant in mutants]


def prepare_named(case: Case, mutants: Sequence[str]) -> Prepared:
    """`prepare`, for a worker: faults cannot be pickled."""
    return prepare(case, [by_key(mutant) for mutant in mutants])


def judge_named(prepared: Prepared, source: str, mutants: Sequence[str]) -> list[Mapping[str, Any]]:
    """`judge`, for a worker: faults cannot be pickled."""
    return judge(prepared, source, [by_key(mutant) for mutant in mutants])


def _case(name: str) -> Case:
    robot = load(name)
    mechanism = robot.mechanism()
    mode = next(mode for mode in modes(mechanism) if mode not in robot.expected)
    upright = list(configurations(mechanism))[-1]
    return make_case(robot, variant=DEFAULT, mode=mode, configuration=upright)


class _Anew:
    """The reference in states that the robot at hand has when its actuators move as prescribed."""

    name = Noc.name

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        return Noc().compute_efforts(case, prescribe(case).assemble(motion.t))


def _effect_anew(prepared: Prepared, mutant: Mutant) -> float:
    case, motion, reference = prepared.case, prepared.motion, prepared.reference
    return _effect_on_reference(mutant, case, motion, reference, source=_Anew())[0]


def _effect_on_reference(
    mutant: Mutant, case: Case, motion: Motion, reference: Outcome, *, source: Source | None = None
) -> tuple[float, str]:
    if reference.history is None:
        return np.nan, reference.note
    try:
        spoilt = mutant.compute(source or Noc(), case, motion)
    except NotCarriedError as error:
        return 0.0, str(error)
    except (HarnessError, np.linalg.LinAlgError) as error:
        return np.inf, f"the reference refuses it: {error}"
    return relative_error(spoilt.effort, reference.history.effort), ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    result: str
    effect: float = np.nan
    verdict: str = ""
    error: float = np.nan
    note: str = ""


def _judged(prepared: Prepared, sound: Outcome, mutant: Mutant, why_not: str) -> _Judged:
    """What came of one fault in one source."""
    effect, note = prepared.effects.get(mutant.key, (np.nan, ""))
    if why_not:
        return _Judged(result="not carried", effect=effect, note=why_not)
    spoilt = _spoilt(prepared, sound.source, mutant)
    if isinstance(spoilt, str):
        return _Judged(result="not carried", effect=effect, note=spoilt)
    if sound.source == Paper.name and _same(spoilt, sound):
        return _Judged(result="not carried", effect=effect, note="the paper's model does not read this from the robot")
    if mutant.in_adapter:
        effect = _change(spoilt, sound)
    verdict, error, said = _verdict(prepared, spoilt)
    tolerance = registered()[sound.source]
    if verdict == "agree" and effect > (tolerance.relative_error or 0.0) and sound.source.split("/")[1] in SIMULATED:
        effect, note = _effect_anew(prepared, mutant), "; ".join(filter(None, (note, "in states found anew")))
    result = _result(verdict, effect, tolerance, said)
    why = _explained(effect, tolerance) if verdict == "agree" else _reason(spoilt, said)
    return _Judged(
        result=result, effect=effect, verdict=verdict, error=error, note="; ".join(filter(None, (why, note)))
    )


def _spoilt(prepared: Prepared, source: str, mutant: Mutant) -> Outcome | str:
    """The outcome of a source with a fault, or why it cannot have it."""
    refusals: list[str] = []

    def compute() -> Any:
        try:
            return mutant.compute(sources.load(source), prepared.case, prepared.motion)
        except NotCarriedError as error:
            refusals.append(str(error))
            raise

    outcome = outcome_of(prepared.case, prepared.motion, source, compute)
    return refusals[0] if refusals else outcome


def _verdict(prepared: Prepared, outcome: Outcome) -> tuple[str, float, str]:
    """The worst verdict of the actuators, the largest error, and what is noted."""
    rows = summarize([prepared.reference, outcome])
    mine = rows[rows["source"] == outcome.source]
    return min(mine["verdict"], key=SEVERITY.index), float(mine["relative_error"].max()), str(mine["note"].iloc[0])


def _result(verdict: str, effect: float, tolerance: Tolerance, note: str) -> str:
    if note.startswith(INTERNAL):
        return "broken"
    if verdict != "agree":
        return "killed" if verdict == "disagree" else "refused"
    return "below tolerance" if effect <= (tolerance.relative_error or 0.0) else "survived"


def _same(spoilt: Outcome, sound: Outcome) -> bool:
    return bool(spoilt.history and sound.history and np.array_equal(spoilt.history.effort, sound.history.effort))


def _change(spoilt: Outcome, sound: Outcome) -> float:
    """What the fault did to the efforts of its route, over the peak [-]; infinite where there are none."""
    if spoilt.compared is None or sound.compared is None:
        return np.inf
    return relative_error(spoilt.compared.effort, sound.compared.effort)


def _reason(outcome: Outcome, note: str) -> str:
    """Why there is nothing to compare, or which limit besides the error is exceeded; nothing if the error says it."""
    if outcome.history is None:
        return outcome.note
    usual = tuple(filter(None, (outcome.note, "power balance")))
    return "" if note.startswith(usual) else note.split("; ")[0]


def _explained(effect: float, tolerance: Tolerance) -> str:
    """The effect of a fault that was not noticed, against the tolerance and the noise of the route."""
    limits = {"tolerance": tolerance.relative_error, "noise": tolerance.noise}
    parts = [
        f"{'below' if effect <= limit else 'above'} the {name} {limit:.1e} by a factor {_factor(effect, limit):.3g}"
        for name, limit in limits.items()
        if limit is not None
    ]
    return f"the fault changes the efforts by {effect:.1e}: {', '.join(parts)}"


def _factor(a: float, b: float) -> float:
    smaller, larger = sorted((a, b))
    return larger / smaller if smaller > 0 else np.inf


def _row(case: Case, source: str, mutant: Mutant, found: _Judged) -> Mapping[str, Any]:
    tolerance = registered()[source]
    return {
        "robot": case.robot.name,
        "mode": case.mode,
        "configuration": case.configuration,
        "source": source,
        "mutant": mutant.key,
        "fault": mutant.text,
        "result": found.result,
        "verdict": found.verdict,
        "relative_error": found.error,
        "effect": found.effect,
        "tolerance": tolerance.relative_error,
        "noise": tolerance.noise,
        "note": found.note,
    }
