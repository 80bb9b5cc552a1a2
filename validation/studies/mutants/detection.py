"""Faults seeded in a judged route of a robot, and judged by the ordinary comparison.

The effect of a fault is its change of the efforts of the reference (analytic/noc) in the same states. The reference has
no adapter; the effect of a fault of an adapter is its change of the efforts of its route. A simulation computes its own
states: a fault that makes the mirror image of the robot, with the mirrored motion, is no fault to it.

Faults of shared inputs are seeded in both: the reference and the motion are computed anew with them, and the route is
judged against this reference. A route cannot detect a fault in an input that it declares as shared. The robot's files,
read by an independent reader, must detect it, and are a further judge beside the routes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.analytic.papers import Paper
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.errors import INTERNAL, HarnessError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.comparison import sources
from loopcheck.validation.comparison.audit import audit, doubts, expected_terms
from loopcheck.validation.comparison.compare import relative_error, summarize, summarize_resolved
from loopcheck.validation.comparison.evaluate import Outcome, evaluate, outcome_of, prescribe_or_error
from loopcheck.validation.comparison.independence import FROM_FILES, shares
from loopcheck.validation.comparison.tolerances import Tolerance, audits, registered
from loopcheck.validation.comparison.verdicts import FILE, SEVERITY
from loopcheck.validation.studies.mutants.faults import (
    FAULTS,
    CommonFault,
    Fault,
    Mutant,
    NotCarriedError,
    row_of_fault,
)

MEANING: Mapping[str, str] = {
    "killed": "the verdict of the comparison is disagree",
    "refused": "the source or the comparison gives a reason against any comparison: the fault is caught as well",
    "below tolerance": "it agrees, because the fault changes the efforts by less than the tolerance of the route",
    "shared": "it agrees, because it takes the faulty input from the same model. If the audit of the robot's files "
    "finds a difference in this input, the fault is detected, and no source agrees in this case",
    "survived": "it agrees although the fault changes the efforts by more than the tolerance: a bug of loopcheck",
    "broken": "unexpected exception, or a fault of an adapter without an effect: no result",
    "not run": "the worker process died, exceeded its time limit or was interrupted: no result",
    "not carried": "the fault does not apply to the route or the robot, or the route does not agree without the fault",
}
"""Meaning of the results of a mutant."""
CAUGHT = ("killed", "refused")
BUGS = ("survived", "broken")
TIMES = 10.0
"""Effect over tolerance above which a fault counts for the kill rate of a route [-]."""

PROJECTED = ("gears",)
"""Additional shared inputs with redundant drives: the comparison projects the efforts with the gears of the model,
so that a route without one of the motors cannot detect a wrong gear of this motor."""
WITHOUT = ("not carried", "not run")
"""Results without information on the detection of the fault."""

_Effects: TypeAlias = Mapping[str, tuple[float, str]]
_Finding: TypeAlias = Mapping[str, Any]
"""Columns of a row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seeded:
    """A case with a fault in a shared input."""

    motion: Motion | None
    """None if the robot cannot be assembled."""
    reference: Outcome
    doubt: str
    """Difference between the model and the robot's files, if present."""
    effect: float
    """Change of the efforts over their scales [-]; infinite without efforts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCase:
    """A case with its motion, its reference, and the effect of each fault on the reference."""

    case: Case
    motion: Motion
    reference: Outcome
    effects: _Effects
    """Change of the efforts over their scales [-] by mutant, infinite if the reference refuses it; and a note."""
    common: Mapping[str, Seeded | NotCarriedError]
    """Effect of each fault of shared inputs, or the reason why it does not apply to the robot."""


def compared_sources(case: Case) -> list[str]:
    """The sources of a case that are compared with the reference."""
    return [name for name in sources.names(case.robot) if has_tolerance(name)]


def has_tolerance(source: str) -> bool:
    """Return whether a source has a tolerance against the reference."""
    known = registered()
    return source != sources.REFERENCE and source in known and known[source].relative_error is not None


def prepare(case: Case, faults: Sequence[Fault] = FAULTS) -> PreparedCase:
    """Assemble the motion of a case, and measure the effect of each fault on its reference."""
    motion = prescribe(case)
    reference = evaluate(case, motion, sources.REFERENCE)
    effects = {
        fault.key: _effect_on_reference(fault, case, motion, reference)
        for fault in faults
        if isinstance(fault, Mutant) and not fault.in_adapter
    }
    common = {fault.key: _seeded(fault, case, reference) for fault in _common(faults)}
    return PreparedCase(case=case, motion=motion, reference=reference, effects=effects, common=common)


def rows_of_faults(prepared: PreparedCase, source: str, faults: Sequence[Fault] = FAULTS) -> list[Mapping[str, Any]]:
    """A row for each fault of a source; for the robot's files a row for each fault of a shared input."""
    case, motion = prepared.case, prepared.motion
    if source == FILE:
        return [_row(case, FILE, fault, _by_file(prepared, fault)) for fault in _common(faults)]
    sound = evaluate(case, motion, source)
    verdict, _, note = _verdict(summarize_resolved([prepared.reference, sound], motion), source)
    why_not = "" if verdict == "agree" else f"without a fault the verdict is {verdict}: {note}"
    results = [
        _of_common_fault(prepared, source, fault, why_not)
        if isinstance(fault, CommonFault)
        else _of_mutant(prepared, sound, fault, why_not)
        for fault in faults
    ]
    return [_row(case, source, fault, result) for fault, result in zip(faults, results, strict=True)]


def kill_rate(results: pd.DataFrame, limit: str = "tolerance", *, times: float = 1.0) -> tuple[int, int]:
    """Number of faults with an effect above a limit that the route itself detected, and the number of all such faults.

    Args:
        results: Rows of the table of a study.
        limit: `tolerance` or `noise`, of the route.
        times: Multiple of the limit [-].
    """
    above = _above(results, limit, times)
    return int(above["result"].isin(CAUGHT).sum()), len(above)


def caught_by_file(results: pd.DataFrame, *, times: float = 1.0) -> int:
    """Number of faults with an effect above the tolerance in shared inputs that the robot's files detect."""
    return int((_above(results, "tolerance", times)["result"] == "shared").sum())


def kill_rates(results: pd.DataFrame) -> pd.DataFrame:
    """Detection of the faults with an effect of more than `TIMES` tolerances, by route.

    Args:
        results: Rows of the table of a study.

    Returns:
        A row for each source: faults detected by the route, faults of shared inputs detected by the robot's files, all
        faults, and detected over all [-].
    """
    rows = []
    for source, of_source in results.groupby("source", sort=False):
        caught, above = kill_rate(of_source, times=TIMES)
        shared = caught_by_file(of_source, times=TIMES)
        rate = caught / above if above else np.nan
        rows.append({"source": source, "caught": caught, "shared": shared, "above": above, "kill_rate": rate})
    return pd.DataFrame(rows)


def _above(results: pd.DataFrame, limit: str, times: float) -> pd.DataFrame:
    return results[~results["result"].isin(WITHOUT) & ~(results["effect"] <= times * results[limit])]


def not_run(case: Case, source: str, faults: Sequence[Fault], reason: str) -> list[Mapping[str, Any]]:
    """Rows of a lost route, or of the robot's files."""
    lost = {"result": "not run", "verdict": "not run", "note": reason}
    return [_row(case, source, fault, lost) for fault in (_common(faults) if source == FILE else faults)]


def _common(faults: Sequence[Fault]) -> list[CommonFault]:
    """The faults of shared inputs."""
    return [fault for fault in faults if isinstance(fault, CommonFault)]


class _Anew:
    """The reference in states that the robot at hand has when its actuators move as prescribed."""

    name = Noc.name

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        return Noc().compute_efforts(case, prescribe(case).assemble(motion.t))


def _effect_anew(prepared: PreparedCase, mutant: Mutant) -> float:
    case, motion, reference = prepared.case, prepared.motion, prepared.reference
    return _effect_on_reference(mutant, case, motion, reference, source=_Anew())[0]


def _effect_on_reference(
    mutant: Mutant, case: Case, motion: Motion, reference: Outcome, *, source: Source | None = None
) -> tuple[float, str]:
    if reference.history is None or reference.scale is None:
        return np.nan, reference.note
    try:
        spoilt = mutant.compute(source or Noc(), case, motion)
    except NotCarriedError as error:
        return 0.0, str(error)
    except (HarnessError, np.linalg.LinAlgError) as error:
        return np.inf, f"the reference refuses the fault: {error}"
    return relative_error(spoilt.effort, reference.history.effort, reference.scale), ""


def _seeded(fault: CommonFault, case: Case, sound: Outcome) -> Seeded | NotCarriedError:
    """A case with a fault in a shared input: motion, reference, and the reading of the files."""
    try:
        with fault.seed(case) as wrong:
            motion = prescribe_or_error(wrong, None)
            if isinstance(motion, HarnessError):
                refused = Outcome(
                    case=wrong, source=sources.REFERENCE, history=None, failure="not comparable", note=str(motion)
                )
                return Seeded(motion=None, reference=refused, doubt="", effect=np.inf)
            reference = evaluate(wrong, motion, sources.REFERENCE)
            doubt = doubts(audit(wrong, expected_terms(wrong, motion), FILE)).get(case.key, "")
    except NotCarriedError as error:
        return error
    return Seeded(motion=motion, reference=reference, doubt=doubt, effect=_change(reference, sound, sound))


def _of_mutant(prepared: PreparedCase, sound: Outcome, mutant: Mutant, why_not: str) -> _Finding:
    """Finding on one fault in one source."""
    effect, note = prepared.effects.get(mutant.key, (np.nan, ""))
    if why_not:
        return {"result": "not carried", "effect": effect, "note": why_not}
    spoilt = _spoilt(prepared, sound.source, mutant)
    if isinstance(spoilt, str):
        return {"result": "not carried", "effect": effect, "note": spoilt}
    if sound.source == Paper.name and _same(spoilt, sound):
        return {"result": "not carried", "effect": effect, "note": "the model of the paper does not use this input"}
    if mutant.in_adapter:
        effect = _change(spoilt, sound, prepared.reference)
        if not effect:
            return {"result": "broken", "effect": effect, "note": "the fault has no effect on the efforts of its route"}
    verdict, error, reason = _verdict(summarize([prepared.reference, spoilt]), sound.source)
    tolerance = registered()[sound.source]
    if verdict == "agree" and effect > (tolerance.relative_error or 0.0) and sources.simulates(sound.source):
        effect, note = _effect_anew(prepared, mutant), "; ".join(filter(None, (note, "in recomputed states")))
    result = _result(verdict, effect, tolerance, reason)
    why = _explained(effect, tolerance) if verdict == "agree" else _reason(spoilt, reason)
    note = "; ".join(filter(None, (why, note)))
    return {"result": result, "effect": effect, "verdict": verdict, "relative_error": error, "note": note}


def _of_common_fault(prepared: PreparedCase, source: str, fault: CommonFault, why_not: str) -> _Finding:
    """Finding on one fault of a shared input in one source."""
    seeded = prepared.common[fault.key]
    if isinstance(seeded, NotCarriedError):
        return {"result": "not carried", "effect": 0.0, "note": str(seeded)}
    if why_not:
        return {"result": "not carried", "effect": seeded.effect, "note": why_not}
    if seeded.motion is None:
        note = f"the reference refuses the fault: {seeded.reference.note}"
        return {"result": "refused", "effect": seeded.effect, "verdict": "not comparable", "note": note}
    with fault.seed(prepared.case) as wrong:
        outcome = evaluate(wrong, seeded.motion, source)
    verdict, error, reason = _verdict(summarize([seeded.reference, outcome]), outcome.source)
    tolerance = registered()[source]
    result = _result(verdict, seeded.effect, tolerance, reason)
    shared = (*shares(source), *(PROJECTED if outcome.projected else ()))
    if result == "survived" and fault.what in shared and seeded.doubt:
        result = "shared"
    why = _explained(seeded.effect, tolerance) if verdict == "agree" else _reason(outcome, reason)
    note = "; ".join(filter(None, (why, seeded.doubt if result == "shared" else "")))
    return {"result": result, "effect": seeded.effect, "verdict": verdict, "relative_error": error, "note": note}


def _by_file(prepared: PreparedCase, fault: CommonFault) -> _Finding:
    """Finding of the robot's files on a fault of a shared input."""
    seeded = prepared.common[fault.key]
    if isinstance(seeded, NotCarriedError):
        return {"result": "not carried", "effect": 0.0, "note": str(seeded)}
    if fault.what not in FROM_FILES:
        return {
            "result": "not carried",
            "effect": seeded.effect,
            "note": "the faulty input is not in the robot's files",
        }
    if seeded.motion is None:
        return {
            "result": "refused",
            "effect": seeded.effect,
            "verdict": "not comparable",
            "note": seeded.reference.note,
        }
    verdict = "disagree" if seeded.doubt else "agree"
    result = _result(verdict, seeded.effect, audits()["static"], "")
    return {"result": result, "effect": seeded.effect, "verdict": verdict, "note": seeded.doubt}


def _spoilt(prepared: PreparedCase, source: str, mutant: Mutant) -> Outcome | str:
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


def _verdict(summary: pd.DataFrame, source: str) -> tuple[str, float, str]:
    """The worst verdict of a source's actuators, the largest error, and the note."""
    mine = summary[summary["source"] == source]
    return min(mine["verdict"], key=SEVERITY.index), float(mine["relative_error"].max()), str(mine["note"].iloc[0])


def _result(verdict: str, effect: float, tolerance: Tolerance, note: str) -> str:
    if note.startswith(INTERNAL):
        return "broken"
    if verdict != "agree":
        return "killed" if verdict == "disagree" else "refused"
    return "below tolerance" if effect <= (tolerance.relative_error or 0.0) else "survived"


def _same(spoilt: Outcome, sound: Outcome) -> bool:
    return bool(spoilt.history and sound.history and np.array_equal(spoilt.history.effort, sound.history.effort))


def _change(spoilt: Outcome, sound: Outcome, reference: Outcome) -> float:
    """Change of the efforts of a route by the fault, over their scales [-]; infinite without efforts."""
    if spoilt.compared is None or sound.compared is None or reference.scale is None:
        return np.inf
    if len(spoilt.compared.t) != len(sound.compared.t):
        return np.inf
    return relative_error(spoilt.compared.effort, sound.compared.effort, reference.scale)


def _reason(outcome: Outcome, note: str) -> str:
    """Reason for a missing comparison, or the exceeded limit besides the error; empty if the error decides."""
    if outcome.history is None:
        return outcome.note
    usual = tuple(filter(None, (outcome.note, "power balance", "no motion", "terms cancel")))
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


def _row(case: Case, source: str, fault: Fault, finding: _Finding) -> Mapping[str, Any]:
    limits = audits()["static"] if source == FILE else registered()[source]
    fields = {"tolerance": limits.relative_error, "noise": limits.noise, **finding}
    return row_of_fault(case, source, (fault.key, fault.text), fields)
