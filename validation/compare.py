"""Compares every source with the reference, actuator by actuator, and says what follows.

A comparison fails closed: whatever did not run, compared nothing or is not a number can never read `agree`.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from robots.arrays import Array
from robots.efforts import EffortHistory
from validation import sources
from validation.evaluate import Outcome
from validation.findings import FILE, Key
from validation.tables import table
from validation.tolerances import Tolerance, registered


def summarize(
    outcomes: Sequence[Outcome],
    tolerances: Mapping[str, Tolerance] | None = None,
    lost: Mapping[tuple[Key, str], str] | None = None,
    doubts: Mapping[Key, str] | None = None,
) -> pd.DataFrame:
    """The table of verdicts: a row for each case, source and actuator.

    Args:
        outcomes: What all sources found, the reference among them.
        tolerances: By name of the source; by default the registered ones.
        lost: Why nothing of an engine can be compared, by case and engine, as `audit.lost` says; by default nothing is.
        doubts: Why the reference is in doubt, by case, as `audit.doubts` says; by default it is not.
    """
    tolerances = registered() if tolerances is None else tolerances
    references = {outcome.case.key: outcome for outcome in outcomes if outcome.source == sources.REFERENCE}
    rows = []
    for outcome in outcomes:
        engine = outcome.source.split("/")[0]
        key, reference = outcome.case.key, references[outcome.case.key]
        loss = next((lost[key, name] for name in (engine, FILE) if (key, name) in lost), "") if lost else ""
        doubt = (doubts or {}).get(key, "") or _own_doubt(reference, tolerances)
        rows += _rows(outcome, reference, tolerances, loss, doubt)
    return table("summary", rows)


def relative_error(candidate: Array, reference: Array) -> float:
    """Largest error over time and actuators, over the largest reference effort [-].

    Args:
        candidate: Efforts to judge [N or N m], shape (nt, na).
        reference: Reference efforts [N or N m], shape (nt, na).
    """
    return _over(float(np.abs(candidate - reference).max()), float(np.abs(reference).max()))


def case_and_source(outcome: Outcome) -> dict[str, str]:
    """The first columns of a row about an outcome."""
    robot, variant, mode, configuration = outcome.case.key
    return {"robot": robot, "variant": variant, "mode": mode, "configuration": configuration, "source": outcome.source}


def ladder_rows(outcome: Outcome, reference: EffortHistory) -> list[Mapping[str, Any]]:
    """Rows of the ladder table of one source on one case: error, change and observed order at each step."""
    ladder = outcome.compared.ladder if outcome.compared else ()
    peak = float(np.abs(reference.effort).max())
    changes = [np.nan] + [float(np.abs(fine.effort - coarse.effort).max()) for coarse, fine in pairwise(ladder)]
    rows: list[Mapping[str, Any]] = []
    for k, rung in enumerate(ladder):
        ratio = ladder[k - 1].dt / rung.dt if k else np.nan
        order = np.log(changes[k - 1] / changes[k]) / np.log(ratio) if k > 1 and changes[k] > 0 else np.nan
        rows.append(
            {
                **case_and_source(outcome),
                "dt": rung.dt,
                "relative_error": relative_error(rung.effort, reference.effort),
                "change": _over(changes[k], peak),
                "order": float(order),
                "closure_drift": rung.closure_drift,
                "tracking_error": rung.tracking_error,
                "wall_time": rung.wall_time,
            }
        )
    return rows


def _rows(
    outcome: Outcome, reference: Outcome, tolerances: Mapping[str, Tolerance], loss: str, doubt: str
) -> list[Mapping[str, Any]]:
    mechanism, tolerance = outcome.case.mechanism, tolerances.get(outcome.source)
    rows: list[Mapping[str, Any]] = []
    for name, unit in zip((a.name for a in mechanism.actuators), mechanism.actuator_units, strict=True):
        judged = None if outcome is reference else outcome.compared
        numbers = _numbers(judged, reference.history, name)
        verdict, reason = _verdict(outcome, doubt, tolerances, numbers["relative_error"])
        if loss and not doubt and verdict in ("agree", "disagree"):
            verdict, reason = "not comparable", loss
        history = outcome.history
        rows.append(
            {
                **case_and_source(outcome),
                "reference": sources.REFERENCE,
                "actuator": name,
                "unit": unit,
                **numbers,
                "tolerance": tolerance.relative_error if tolerance else None,
                "verdict": verdict,
                "closure_drift": history.closure_drift if history else None,
                "tracking_error": history.tracking_error if history else None,
                "wall_time": outcome.wall_time,
                "note": "; ".join(part for part in (reason, outcome.note, _balance(outcome)) if part),
            }
        )
    return rows


def _numbers(candidate: EffortHistory | None, reference: EffortHistory | None, actuator: str) -> dict[str, float]:
    """Peak of the case, largest, root mean square and relative error of one actuator; NaN where nothing compares."""
    found = dict.fromkeys(("peak", "max_error", "rms_error", "relative_error"), np.nan)
    if reference is None:
        return found
    found["peak"] = float(np.abs(reference.effort).max(initial=0.0))
    if candidate is None or not _comparable(candidate, reference, actuator):
        return found
    error = (
        candidate.effort[:, candidate.actuators.index(actuator)]
        - reference.effort[:, reference.actuators.index(actuator)]
    )
    found["max_error"] = float(np.abs(error).max())
    found["rms_error"] = float(np.sqrt(np.mean(error**2)))
    found["relative_error"] = _over(found["max_error"], found["peak"])
    return found


def _comparable(candidate: EffortHistory, reference: EffortHistory, actuator: str) -> bool:
    same_grid = candidate.t.shape == reference.t.shape and np.allclose(candidate.t, reference.t, rtol=0, atol=1e-9)
    return same_grid and len(reference.t) > 0 and actuator in candidate.actuators and actuator in reference.actuators


def _own_doubt(reference: Outcome, tolerances: Mapping[str, Tolerance]) -> str:
    """What speaks against the reference in its own numbers, or nothing."""
    return _beyond(reference, tolerances[sources.REFERENCE]) if reference.history else "it did not run"


def _verdict(outcome: Outcome, doubt: str, tolerances: Mapping[str, Tolerance], error: float) -> tuple[str, str]:
    """Verdict of one actuator, and the reason where it is not plain."""
    tolerance = tolerances.get(outcome.source)
    if outcome.history is None:
        return outcome.failure, ""
    if outcome.source == sources.REFERENCE:
        return ("disagree", doubt) if doubt else ("informational", "the reference")
    if doubt:
        return "not comparable", f"the reference cannot be trusted: {doubt}"
    if tolerance is None:
        return "not comparable", "no tolerance is registered for this source"
    if tolerance.relative_error is None:
        return "informational", ""
    if not np.isfinite(error):
        return "not comparable", "no effort of this actuator on the reference's time grid, or a reference of zero"
    beyond = _beyond(outcome, tolerance)
    if beyond:
        return "disagree", beyond
    return ("agree" if error <= tolerance.relative_error else "disagree"), ""


def _beyond(outcome: Outcome, tolerance: Tolerance) -> str:
    """The first limit besides the effort error that an outcome exceeds, or nothing."""
    history = outcome.history
    measured = {
        "closure_drift": history.closure_drift if history else None,
        "tracking_error": history.tracking_error if history else None,
        "power_imbalance": outcome.power_imbalance,
    }
    for name, value in measured.items():
        limit = getattr(tolerance, name)
        if limit is not None and not (value is not None and value <= limit):
            got = "not reported" if value is None else f"{value:.3g}"
            return f"{name.replace('_', ' ')} {got}, want at most {limit:g}"
    return ""


def _balance(outcome: Outcome) -> str:
    return "" if outcome.power_imbalance is None else f"power balance {outcome.power_imbalance:.1e} of the peak power"


def _over(value: float, peak: float) -> float:
    return value / peak if peak > 0 else np.nan
