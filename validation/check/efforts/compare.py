"""Comparison of every source with the reference, actuator by actuator: the table of verdicts; see `rules`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from loopcheck.analytic.kinematics.mobility import open_start
from loopcheck.robots.arrays import Efforts, EffortSeries
from loopcheck.robots.efforts import EffortHistory
from loopcheck.robots.errors import INTERNAL
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import modes
from loopcheck.validation.check.efforts.outcome import Modelled, Outcome, Ran, Reference, Unmodified, is_unsupported
from loopcheck.validation.check.efforts.resolution import measure_resolution
from loopcheck.validation.check.efforts.rules import Claim, Evidence, beyond_limits, doubt_of, judged
from loopcheck.validation.common import sources
from loopcheck.validation.common.results import table
from loopcheck.validation.common.tolerances import Tolerance
from loopcheck.validation.common.verdicts import CASE, Key

if TYPE_CHECKING:
    import pandas as pd

CANCELLED = 0.01
"""Smallest part of the peak of an actuator, for a limit with a unit, that gets a note [-]."""


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
        if is_unsupported(outcome):
            unsupported.setdefault(outcome.case.key, set()).add(outcome.source)
    rows: list[Mapping[str, Any]] = []
    for outcome in outcomes:
        if is_unsupported(outcome) and _is_required(outcome, evidence.requested, unsupported[outcome.case.key]):
            outcome = replace(outcome, verdict="not comparable")  # noqa: PLW2901
        rows += verdict_rows(outcome, references[outcome.case.key], evidence)
    return table("summary", rows)


def _is_required(outcome: Outcome, requested: Sequence[frozenset[str]] | None, unsupported: Collection[str]) -> bool:
    """Return whether an unsupported source counts: the user has named it, or a pattern without any supported route."""
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
        if outcome.compared and not isinstance(outcome, Unmodified) and (outcome.case.key, outcome.source) in pairs
    }
    if not resolutions:
        return summary
    return summarize(outcomes, replace(evidence or Evidence(), resolutions=resolutions))


def relative_error(candidate: EffortSeries, reference: EffortSeries, scale: Efforts) -> float:
    """Largest error over time and actuators, relative to the scale of the actuator [-].

    Args:
        candidate: Efforts to judge.
        scale: Scales of the actuators.

    Returns:
        The error over the actuators with load; NaN if no actuator has load.
    """
    return largest_of_acting(np.abs(candidate - reference).max(0), scale)


def largest_of_acting(errors: Efforts, scale: Efforts) -> float:
    """The largest error over the scale of the actuators with load [-]; NaN if no actuator has load.

    Args:
        errors: Error of each actuator.
        scale: Scales of the actuators.
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
        scale: Scales of the actuators.
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
    peaks = _peaks(reference, mechanism.actuator_units)
    resolution = evidence.resolutions.get((outcome.case.key, outcome.source))
    doubt = doubt_of(reference, evidence)
    beyond = None
    if isinstance(outcome, Ran) and tolerance is not None:
        beyond = beyond_limits(outcome, tolerance, resolution)
    settled = outcome.settled if isinstance(outcome, Unmodified) else None
    offsets = reference.offsets if isinstance(reference, Reference) and outcome.source not in sources.ANALYTIC else ""
    rows: list[Mapping[str, Any]] = []
    for k, (actuator, unit) in enumerate(zip(mechanism.actuators, mechanism.actuator_units, strict=True)):
        numbers = {**peaks[k], **_errors(outcome, reference, k)}
        numbers["peak_error"] = numbers["max_error"] / numbers["peak"] if numbers["peak"] > 0 else np.nan
        claim = Claim(
            outcome=outcome,
            reference=reference,
            doubt=doubt,
            beyond=beyond,
            actuator=k,
            numbers=numbers,
            evidence=evidence,
        )
        verdict, reason = judged(claim)
        if settled is not None and settled.bounds and verdict != "agree":
            numbers |= dict.fromkeys(("max_error", "rms_error", "relative_error", "peak_error"), np.nan)
        unmeasured = resolution.note if resolution else ""
        cancellation = "" if settled else _cancellation(tolerance, numbers)
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
                **_kept_to_motion(outcome),
                "wall_time": outcome.wall_time if isinstance(outcome, Ran) else None,
                "note": "; ".join(part for part in parts if part),
            }
        )
    return rows


def _peaks(reference: Outcome, units: Sequence[str]) -> list[dict[str, float]]:
    """Peak, that of all actuators with the same unit, and scale of each actuator [unit]; NaN without a reference."""
    if not isinstance(reference, Reference):
        return [dict.fromkeys(("peak", "case_peak", "scale"), np.nan) for _ in units]
    peaks = np.abs(reference.history.effort).max(0, initial=0.0)
    same_unit = [max(peak for peak, other in zip(peaks, units, strict=True) if other == unit) for unit in units]
    columns = zip(peaks, same_unit, reference.scale, strict=True)
    return [dict(zip(("peak", "case_peak", "scale"), map(float, values), strict=True)) for values in columns]


def _errors(outcome: Outcome, reference: Outcome, actuator: int) -> dict[str, float]:
    """Largest, root mean square and relative error of one actuator; NaN without a comparison."""
    errors = dict.fromkeys(("max_error", "rms_error", "relative_error"), np.nan)
    if not isinstance(reference, Reference):
        return errors
    if isinstance(outcome, Unmodified):
        left = outcome.settled
        if left.reason and not left.bounds:
            return errors
        largest, rms = (float(values[actuator]) for values in (left.largest, left.rms))
        return _with_relative({"max_error": largest, "rms_error": rms}, float(reference.scale[actuator]))
    name, expected = outcome.case.mechanism.actuators[actuator].name, reference.history
    candidate = None if outcome is reference else outcome.compared
    if candidate is None or not _comparable(candidate, expected, name):
        return errors
    error = candidate.effort[:, candidate.actuators.index(name)] - expected.effort[:, expected.actuators.index(name)]
    largest, rms = float(np.abs(error).max()), float(np.sqrt(np.mean(error**2)))
    return _with_relative({"max_error": largest, "rms_error": rms}, float(reference.scale[actuator]))


def _with_relative(errors: dict[str, float], scale: float) -> dict[str, float]:
    return {**errors, "relative_error": errors["max_error"] / scale if scale > 0 else np.nan}


def _comparable(candidate: EffortHistory, reference: EffortHistory, actuator: str) -> bool:
    same_grid = candidate.t.shape == reference.t.shape and np.allclose(candidate.t, reference.t, rtol=0, atol=1e-9)
    return same_grid and len(reference.t) > 0 and actuator in candidate.actuators and actuator in reference.actuators


def _kept_to_motion(outcome: Outcome) -> dict[str, float | None]:
    """Largest closure drift and tracking error of a source, each the larger of metres and radians."""
    names = ("closure_drift", "tracking_error")
    deviations = {name: getattr(outcome.history, name) if isinstance(outcome, Ran) else None for name in names}
    return {name: None if deviation is None else deviation.largest for name, deviation in deviations.items()}


def _opening(outcome: Outcome) -> str:
    """Gap of the start pose of the file, in the rows of the reference."""
    case = outcome.case
    if outcome.source != sources.REFERENCE or case.mode not in modes(case.mechanism):
        return ""
    return open_start(case.mechanism, case.guess)


def _balance(outcome: Outcome) -> str:
    if not isinstance(outcome, Modelled):
        return ""
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
