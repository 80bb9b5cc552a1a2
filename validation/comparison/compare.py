"""Comparison of every source with the reference, actuator by actuator, and the verdicts.

A comparison fails closed: a source that did not run, an empty comparison or a value that is not finite never reads
`agree`. Errors are divided by the scale of the same actuator (`loopcheck.analytic.dynamics.powers.effort_scale`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from loopcheck.analytic.kinematics.closing import allowed
from loopcheck.analytic.kinematics.mobility import open_start
from loopcheck.robots.arrays import Efforts, EffortSeries
from loopcheck.robots.efforts import EffortHistory
from loopcheck.robots.errors import INTERNAL
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import modes
from loopcheck.robots.size import size
from loopcheck.validation.comparison import sources
from loopcheck.validation.comparison.accuracy import Requirement
from loopcheck.validation.comparison.as_is import Settled
from loopcheck.validation.comparison.evaluate import STIFF_ON_GAPS, Outcome, is_stiff_on_gaps
from loopcheck.validation.comparison.limits import FILE_RESOLVES, INTERNAL_LOAD, RESOLVED
from loopcheck.validation.comparison.resolution import Resolution, measure_resolution
from loopcheck.validation.comparison.results import table
from loopcheck.validation.comparison.tolerances import Tolerance, registered
from loopcheck.validation.comparison.verdicts import CASE, FILE, NO_LOAD, NOT_SUPPORTED, Key
from loopcheck.validation.execution.errors import AUDIT

if TYPE_CHECKING:
    import pandas as pd

CANCELLED = 0.01
"""Smallest part of the peak of an actuator, for a limit with a unit, that gets a note [-]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Inputs of the verdicts besides the efforts themselves."""

    tolerances: Mapping[str, Tolerance] = field(default_factory=registered)
    """Tolerances by source."""
    blocking_reasons: Mapping[tuple[Key, str], str] = field(default_factory=dict)
    """Reasons against any comparison with an engine, by case and engine, from `audit.lost`."""
    doubts: Mapping[Key, str] = field(default_factory=dict)
    """Doubts about the reference by case, from `audit.doubts`."""
    requested: Sequence[frozenset[str]] | None = None
    """Groups of sources requested by the user, an exact name or the routes of a pattern; None: all by name."""
    resolutions: Mapping[tuple[Key, str], Resolution] = field(default_factory=dict)
    """Measured resolution by case and source; see `unexplained`."""

    def with_cases_beside(self, beside: Mapping[Key, Key]) -> Evidence:
        """The same evidence, extended to cases without audits of their own.

        Args:
            beside: Keys of the audited cases, by the keys of the cases without audits.
        """
        blocking = {
            (key, reader): reason
            for key, other in beside.items()
            for (case, reader), reason in self.blocking_reasons.items()
            if case == other
        }
        doubts = {key: self.doubts[other] for key, other in beside.items() if other in self.doubts}
        return replace(self, blocking_reasons={**self.blocking_reasons, **blocking}, doubts={**self.doubts, **doubts})


def summarize(outcomes: Sequence[Outcome], evidence: Evidence | None = None) -> pd.DataFrame:
    """The table of verdicts: a row for each case, source and actuator.

    Args:
        outcomes: Outcomes of all sources, the reference included.
        evidence: Further inputs of the verdicts; by default the registered tolerances alone.
    """
    evidence = Evidence() if evidence is None else evidence
    references = {outcome.case.key: outcome for outcome in outcomes if outcome.source == sources.REFERENCE}
    unsupported: dict[Key, set[str]] = {}
    for outcome in outcomes:
        if outcome.failure == NOT_SUPPORTED:
            unsupported.setdefault(outcome.case.key, set()).add(outcome.source)
    rows: list[Mapping[str, Any]] = []
    for outcome in outcomes:
        is_required = _is_required(outcome, evidence.requested, unsupported.get(outcome.case.key, set()))
        counted = replace(outcome, failure="not comparable") if is_required else outcome
        rows += verdict_rows(counted, references[outcome.case.key], evidence)
    return table("summary", rows)


def _is_required(outcome: Outcome, requested: Sequence[frozenset[str]] | None, unsupported: Collection[str]) -> bool:
    """Return whether an unsupported source counts: the user has named it, or a pattern without any supported route."""
    if outcome.failure != NOT_SUPPORTED:
        return False
    return requested is None or any(outcome.source in group and group <= set(unsupported) for group in requested)


def unexplained(summary: pd.DataFrame) -> list[tuple[Key, str]]:
    """Cases and sources with an effort or a power balance that disagrees, so that their resolution must be measured."""
    is_beyond = (summary["relative_error"] > summary["tolerance"]) | summary["source"].isin(sources.ANALYTIC)
    is_audit = summary["note"].str.startswith(INTERNAL) & (summary["verdict"] == "not comparable")
    rows = summary[((summary["verdict"] == "disagree") & is_beyond) | is_audit]
    return [((r, v, m, c), s) for r, v, m, c, s in rows[[*CASE, "source"]].drop_duplicates().itertuples(index=False)]


def summarize_resolved(outcomes: Sequence[Outcome], motion: Motion, evidence: Evidence | None = None) -> pd.DataFrame:
    """The table of verdicts of one case, with measured resolutions if necessary.

    Args:
        outcomes: Outcomes of all sources, the reference included.
        evidence: See `summarize`.
    """
    summary = summarize(outcomes, evidence)
    pairs = unexplained(summary)
    resolutions = {
        (outcome.case.key, outcome.source): measure_resolution(outcome.case, motion, outcome.source, outcome.compared)
        for outcome in outcomes
        if outcome.compared and outcome.settled is None and (outcome.case.key, outcome.source) in pairs
    }
    if not resolutions:
        return summary
    return summarize(outcomes, replace(evidence or Evidence(), resolutions=resolutions))


def relative_error(candidate: EffortSeries, reference: EffortSeries, scale: Efforts) -> float:
    """Largest error over time and actuators, relative to the scale of the actuator [-].

    Args:
        candidate: Efforts to judge [N or N m], shape (nt, na).
        reference: Reference efforts [N or N m], shape (nt, na).
        scale: Scales of the actuators [N or N m], shape (na,).

    Returns:
        The error over the actuators with load; NaN if no actuator has load.
    """
    return largest_of_acting(np.abs(candidate - reference).max(0), scale)


def largest_of_acting(errors: Efforts, scale: Efforts) -> float:
    """The largest error over the scale of the actuators with load [-]; NaN if no actuator has load.

    Args:
        errors: Error of each actuator [N or N m], shape (na,).
        scale: Scales of the actuators [N or N m], shape (na,).
    """
    acting = scale > 0
    return float((errors[acting] / scale[acting]).max()) if acting.any() else np.nan


def case_and_source(outcome: Outcome) -> dict[str, str]:
    """The first columns of a row about an outcome."""
    robot, variant, mode, configuration = outcome.case.key
    return {"robot": robot, "variant": variant, "mode": mode, "configuration": configuration, "source": outcome.source}


def ladder_rows(outcome: Outcome, reference: EffortHistory, scale: Efforts) -> list[Mapping[str, Any]]:
    """Rows of the refinement table of one source on one case: error, change and observed order at each step.

    Args:
        outcome: Outcome of the source.
        scale: Scales of the actuators [N or N m], shape (na,).
    """
    ladder = outcome.compared.ladder if outcome.compared else ()
    changes = [np.nan] + [relative_error(fine.effort, coarse.effort, scale) for coarse, fine in pairwise(ladder)]
    rows: list[Mapping[str, Any]] = []
    for k, rung in enumerate(ladder):
        ratio = ladder[k - 1].dt / rung.dt if k else np.nan
        order = np.log(changes[k - 1] / changes[k]) / np.log(ratio) if k > 1 and changes[k] > 0 else np.nan
        rows.append(
            {
                **case_and_source(outcome),
                "dt": rung.dt,
                "relative_error": relative_error(rung.effort, reference.effort, scale),
                "change": changes[k],
                "order": float(order),
                "closure_drift": rung.closure_drift.largest,
                "tracking_error": rung.tracking_error.largest,
                "wall_time": rung.wall_time,
            }
        )
    return rows


def verdict_rows(outcome: Outcome, reference: Outcome, evidence: Evidence) -> list[Mapping[str, Any]]:
    """Rows of one source in one case in the table of verdicts."""
    mechanism, tolerance = outcome.case.mechanism, evidence.tolerances.get(outcome.source)
    if outcome is not reference:
        outcome = replace(outcome, unresolved=reference.unresolved)
    peaks = _peaks(reference, mechanism.actuator_units)
    resolution = evidence.resolutions.get((outcome.case.key, outcome.source))
    doubt = ("disagree", evidence.doubts.get(outcome.case.key, ""))
    doubt = doubt if doubt[1] else _own_doubt(reference, evidence)
    rows: list[Mapping[str, Any]] = []
    for k, (actuator, unit) in enumerate(zip(mechanism.actuators, mechanism.actuator_units, strict=True)):
        numbers = {**peaks[k], **_errors(outcome, reference, k)}
        numbers["peak_error"] = numbers["max_error"] / numbers["peak"] if numbers["peak"] > 0 else np.nan
        verdict, reason = _verdict(outcome, reference, k, doubt, evidence, numbers)
        if outcome.settled is not None and outcome.settled.bounds and verdict != "agree":
            numbers |= dict.fromkeys(("max_error", "rms_error", "relative_error", "peak_error"), np.nan)
        history = outcome.history
        unmeasured = resolution.note if resolution else ""
        cancellation = "" if outcome.settled else _cancellation(tolerance, numbers)
        offsets = "" if outcome.source in sources.ANALYTIC else reference.offsets
        parts = (reason, unmeasured, outcome.note, offsets, _opening(outcome), _balance(outcome), cancellation)
        rows.append(
            {
                **case_and_source(outcome),
                "reference": sources.REFERENCE,
                "actuator": actuator.name,
                "unit": unit,
                **numbers,
                "tolerance": tolerance.relative_error if tolerance else None,
                "verdict": verdict,
                **_kept_to_motion(history),
                "wall_time": outcome.wall_time,
                "note": "; ".join(part for part in parts if part),
            }
        )
    return rows


def _unresolved(outcome: Outcome, actuator: int) -> float:
    """Part of an effort that the digits of the file leave open [N or N m]."""
    return 0.0 if outcome.unresolved is None else float(outcome.unresolved[actuator])


def _too_rounded(outcome: Outcome, actuator: int, limit: float) -> tuple[str, str]:
    """Verdict on an effort that the digits of the file leave open by more than a limit [N or N m], or empty texts."""
    unresolved = _unresolved(outcome, actuator)
    if unresolved <= limit:
        return "", ""
    return "not comparable", (
        f"the digits of the file leave this effort open by {unresolved:.3g}, at most {limit:.3g} can be judged: its "
        f"loops close to {outcome.case.mechanism.closing.accuracy:.1e} of its size. Write it with more digits"
    )


def _peaks(reference: Outcome, units: Sequence[str]) -> list[dict[str, float]]:
    """Peak, that of all actuators with the same unit, and scale of each actuator [unit]; NaN without a reference."""
    if reference.history is None or reference.scale is None:
        return [dict.fromkeys(("peak", "case_peak", "scale"), np.nan) for _ in units]
    peaks = np.abs(reference.history.effort).max(0, initial=0.0)
    same_unit = [max(peak for peak, other in zip(peaks, units, strict=True) if other == unit) for unit in units]
    columns = zip(peaks, same_unit, reference.scale, strict=True)
    return [dict(zip(("peak", "case_peak", "scale"), map(float, values), strict=True)) for values in columns]


def _errors(outcome: Outcome, reference: Outcome, actuator: int) -> dict[str, float]:
    """Largest, root mean square and relative error of one actuator; NaN without a comparison."""
    errors = dict.fromkeys(("max_error", "rms_error", "relative_error"), np.nan)
    left = outcome.settled
    if left is not None and (left.bounds or not left.reason) and reference.scale is not None:
        largest, rms = (float(values[actuator]) for values in (left.largest, left.rms))
        return _with_relative({"max_error": largest, "rms_error": rms}, float(reference.scale[actuator]))
    name, expected = outcome.case.mechanism.actuators[actuator].name, reference.history
    candidate = None if outcome is reference else outcome.compared
    if candidate is None or expected is None or reference.scale is None or not _comparable(candidate, expected, name):
        return errors
    if left is not None:
        return errors
    error = candidate.effort[:, candidate.actuators.index(name)] - expected.effort[:, expected.actuators.index(name)]
    largest, rms = float(np.abs(error).max()), float(np.sqrt(np.mean(error**2)))
    return _with_relative({"max_error": largest, "rms_error": rms}, float(reference.scale[actuator]))


def _with_relative(errors: dict[str, float], scale: float) -> dict[str, float]:
    return {**errors, "relative_error": errors["max_error"] / scale if scale > 0 else np.nan}


def _comparable(candidate: EffortHistory, reference: EffortHistory, actuator: str) -> bool:
    same_grid = candidate.t.shape == reference.t.shape and np.allclose(candidate.t, reference.t, rtol=0, atol=1e-9)
    return same_grid and len(reference.t) > 0 and actuator in candidate.actuators and actuator in reference.actuators


def _own_doubt(reference: Outcome, evidence: Evidence) -> tuple[str, str]:
    """The verdict on the reference by its own numbers, and the reason against it or an empty text."""
    if reference.history is None:
        return "disagree", "it did not run"
    resolution = evidence.resolutions.get((reference.case.key, sources.REFERENCE))
    return _beyond(reference, evidence.tolerances[sources.REFERENCE], resolution)


def _verdict(
    outcome: Outcome,
    reference: Outcome,
    actuator: int,
    doubt: tuple[str, str],
    evidence: Evidence,
    numbers: Mapping[str, float],
) -> tuple[str, str]:
    """Verdict of one actuator, and its reason if necessary; `doubt` is a result of `_own_doubt`."""
    tolerance = evidence.tolerances.get(outcome.source)
    if outcome.history is None:
        return outcome.failure, ""
    if outcome.source == sources.REFERENCE:
        return doubt if doubt[1] else ("reference", "")
    if doubt[1]:
        return "not comparable", f"the reference cannot be trusted: {doubt[1].removeprefix(f'{INTERNAL}: {AUDIT} ')}"
    if tolerance is None or tolerance.relative_error is None:
        return ("informational", "") if tolerance else ("not comparable", "no tolerance is registered for this source")
    for reader in (outcome.source.split("/")[0], FILE):
        if (outcome.case.key, reader) in evidence.blocking_reasons:
            return "not comparable", evidence.blocking_reasons[outcome.case.key, reader]
    accuracy, left = tolerance.relative_error, outcome.settled
    if left is not None and reference.required is not None:
        limit = FILE_RESOLVES[1] * accuracy * float(reference.required.divisor[actuator])
        rounded = _too_rounded(outcome, actuator, limit)
        return rounded if rounded[1] else _by_accuracy(left, reference.required, actuator, accuracy)
    rounded = _too_rounded(outcome, actuator, FILE_RESOLVES[0] * numbers["scale"])
    return rounded if rounded[1] else _by_tolerance(outcome, actuator, tolerance, evidence, numbers)


def _by_tolerance(
    outcome: Outcome, actuator: int, tolerance: Tolerance, evidence: Evidence, numbers: Mapping[str, float]
) -> tuple[str, str]:
    """Verdict by the tolerance of a route, and between it and 3 r by the resolution r of the file.

    Routes with the closed state and the rows of the reference have no part in r: their errors are no rounding.
    """
    resolution, limit = evidence.resolutions.get((outcome.case.key, outcome.source)), tolerance.relative_error or 0.0
    name = outcome.case.mechanism.actuators[actuator].name
    resolved = resolution.effort.get(name) if resolution else None
    beyond = _beyond(outcome, tolerance, resolution)
    verdict = _judged(numbers, limit, resolved, beyond)
    unresolved = RESOLVED * _unresolved(outcome, actuator)
    has_own_rows = is_stiff_on_gaps(outcome.case, outcome.source) or bool(outcome.history and outcome.history.own_rows)
    if verdict[0] == "disagree" and has_own_rows and not beyond[1] and numbers["max_error"] <= unresolved:
        figures = f"error {numbers['max_error']:.3g}, tolerance {limit * numbers['scale']:.3g}, 3 r {unresolved:.3g}"
        return "agree", f"agree to 3 r: the file resolves no more ({figures})"
    if verdict[0] != "agree" and verdict[1] != NO_LOAD and is_stiff_on_gaps(outcome.case, outcome.source):
        named = evidence.requested is None or frozenset({outcome.source}) in evidence.requested
        return "not comparable" if named else NOT_SUPPORTED, f"{STIFF_ON_GAPS} ({verdict[1] or 'effort error'})"
    return verdict


def _by_accuracy(left: Settled, required: Requirement, actuator: int, accuracy: float) -> tuple[str, str]:
    """Verdict on the remaining error of an unmodified simulation, by the accuracy of the user."""
    if left.reason and not left.bounds:
        return "not comparable", ""  # the note has it
    load = required.internal_load(actuator, float(left.internal[actuator]), accuracy, INTERNAL_LOAD)
    error, floor = float(left.largest[actuator]), float(left.floor_of_largest[actuator])
    verdict, note = required.judged(actuator, error, floor, accuracy)
    if left.bounds and verdict != "agree":
        return "not comparable", ""
    return load.verdict or verdict, "; ".join(filter(None, (load.note, note)))


def _judged(
    numbers: Mapping[str, float], limit: float, resolution: float | None, beyond: tuple[str, str]
) -> tuple[str, str]:
    """Verdict on the numbers of one actuator; `beyond` is the verdict on all limits except the effort error."""
    if numbers["scale"] == 0:
        return "not comparable", NO_LOAD
    if not np.isfinite(numbers["relative_error"]):
        return "not comparable", "no finite effort of this actuator on the time grid of the reference"
    by_effort = judge_effort(numbers["max_error"], limit * numbers["scale"], resolution)
    if beyond[1] and not (beyond[1].startswith(INTERNAL) and by_effort[0] == "disagree"):
        return beyond
    return by_effort


def judge_effort(error: float, limit: float, resolution: float | None) -> tuple[str, str]:
    """Verdict on an effort by its error alone, and its reason if necessary.

    Args:
        error: Largest error over time [N or N m].
        limit: Largest error that agrees [N or N m].
        resolution: Measured resolution of the source [N or N m]; NaN if it could not be measured, None if not measured.
    """
    if error <= limit:
        return "agree", ""
    if resolution is None:
        return "disagree", ""
    if np.isnan(resolution):
        figures = f"error {error:.3g}, limit {limit:.3g}"
        return "not comparable", f"the resolution of this route could not be measured: {figures}"
    figures = f"error {error:.3g}, resolution {resolution:.3g}, limit {limit:.3g}"
    if error <= RESOLVED * resolution:
        return "not comparable", f"below the resolution of this route: {figures}"
    return "disagree", figures


def _beyond(outcome: Outcome, tolerance: Tolerance, resolution: Resolution | None = None) -> tuple[str, str]:
    """The verdict by the first exceeded limit besides the effort error, and this limit, or empty texts."""
    measured = {
        "power_imbalance": 0.0 if outcome.at_rest else outcome.power_imbalance,
        "term_sum": outcome.term_sum,
    }
    resolutions, unresolved = {"power_imbalance": resolution.power_balance} if resolution else {}, ""
    for name, value in measured.items():
        limit, resolved, words = getattr(tolerance, name), resolutions.get(name, np.nan), name.replace("_", " ")
        if limit is None or (value is not None and value <= allowed(limit, outcome.case.mechanism)):
            continue
        if value is None or not value <= RESOLVED * resolved:
            got = "not reported" if value is None else f"{value:.3g}"
            return "not comparable", f"{INTERNAL}: {AUDIT} {words} must be at most {limit:g}, got {got}"
        figures = f"{words} {value:.3g}, resolution {resolved:.3g}, limit {limit:g}"
        unresolved = f"below the resolution of this route: {figures}"
    off = _off_the_motion(outcome, tolerance)
    return ("disagree", off) if off else ("not comparable", unresolved)


def _off_the_motion(outcome: Outcome, tolerance: Tolerance) -> str:
    """The first exceeded limit on the source's own state, or an empty text."""
    length = size(outcome.case.mechanism) if outcome.size is None else outcome.size
    for name in ("closure_drift", "tracking_error"):
        deviation, limit = getattr(outcome.history, name, None), getattr(tolerance, name)
        limit = limit if limit is None else allowed(limit, outcome.case.mechanism)
        if limit is None or (deviation is not None and deviation.over(length) <= limit):
            continue
        words = name.replace("_", " ")
        if deviation is None:
            return f"{words} must be at most {limit:g} rad, or {limit:g} of the robot's size, but is not reported"
        figures = (deviation.length, limit * length, "m"), (deviation.angle, limit, "rad")
        got, most, unit = next(figure for figure in figures if not figure[0] <= figure[1])
        return f"{words} must be at most {most:.3g} {unit}, got {got:.3g} {unit}"
    return ""


def _kept_to_motion(history: EffortHistory | None) -> dict[str, float | None]:
    """Largest closure drift and tracking error of a source, each the larger of metres and radians."""
    names = ("closure_drift", "tracking_error")
    deviations = {name: getattr(history, name, None) for name in names}
    return {name: None if deviation is None else deviation.largest for name, deviation in deviations.items()}


def _opening(outcome: Outcome) -> str:
    """Gap of the start pose of the file, in the rows of the reference."""
    case = outcome.case
    if outcome.source != sources.REFERENCE or case.mode not in modes(case.mechanism):
        return ""
    return open_start(case.mechanism, case.guess)


def _balance(outcome: Outcome) -> str:
    if outcome.at_rest:
        return "at rest: no power balance"
    if outcome.power_imbalance is None:
        return ""
    return f"power imbalance {outcome.power_imbalance:.1e} of the acting powers"


def _cancellation(tolerance: Tolerance | None, numbers: Mapping[str, float]) -> str:
    """Note on an effort that is a small difference of large terms, with the relative uncertainty left by the limit."""
    limit, peak, scale = tolerance.relative_error if tolerance else None, numbers["peak"], numbers["scale"]
    if limit is None or not limit * scale > CANCELLED * peak:
        return ""
    if peak == 0:
        return "terms cancel: the effort is zero throughout"
    agreement = f"agreement is to {100 * limit * scale / peak:.2g} % of the effort"
    return f"terms cancel to 1/{scale / peak:.0f}: {agreement}" if round(scale / peak) > 1 else agreement
