"""Statistics of a sweep, read from its data set a chunk at a time, so that its size does not matter.

Quantiles come from a histogram with bins of a fiftieth of a decade: 5 % of the error. Sensitivities come from the
normal equations of a linear regression of the root mean square effort of each actuator on all parameters, over the
cases with the robot's own motion.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.robots.arrays import AnyArray, Array, EffortSeries
from loopcheck.validation.common.sources import REFERENCE
from loopcheck.validation.common.tolerances import registered
from loopcheck.validation.studies.sweep.cases import (
    COMPUTED,
    NO_MOTION,
    Variation,
    effort_columns,
    nominal,
    table_of_cases,
)
from loopcheck.validation.studies.sweep.dataset import tables

LOWEST, HIGHEST, PER_DECADE = -18, 3, 50
"""Range of counted errors in powers of ten, and bins per decade; errors outside are in the outermost bins."""
BINS = (HIGHEST - LOWEST) * PER_DECADE
QUANTILES = (0.05, 0.5, 0.95, 0.99)
KEPT = 5
"""Number of stored cases for each reason of a failure, and of worst cases of each source and kind of motion."""
CONFIDENCE = 1.96
"""Standard errors of a 95 % interval [-]."""


class Worst(NamedTuple):
    """A case with a large error."""

    error: float
    case: int


@dataclass(slots=True, kw_only=True)
class Tally:
    """Errors of one source in one kind of motion."""

    histogram: AnyArray = field(default_factory=lambda: np.zeros(BINS, dtype=np.int64))
    """Cases by bin, shape (bins,)."""
    worst: list[Worst] = field(default_factory=list)
    """Largest errors, descending."""
    beyond: int = 0
    """Cases with an error beyond the tolerance of the source, or without a finite error."""

    @property
    def count(self) -> int:
        """Cases with an error."""
        return int(self.histogram.sum())

    def add(self, errors: Array, cases: AnyArray, tolerance: float) -> None:
        """Count errors.

        Args:
            errors: Relative errors [-], shape (n,).
            cases: Their cases [-], shape (n,).
            tolerance: Tolerance of the source; infinite without a registered tolerance [-].
        """
        errors = np.where(np.isnan(errors), np.inf, errors)
        with np.errstate(divide="ignore"):
            bins = np.floor((np.log10(errors) - LOWEST) * PER_DECADE)
        np.add.at(self.histogram, np.clip(bins, 0, BINS - 1).astype(int), 1)
        self.beyond += int((np.isinf(errors) | (errors > tolerance)).sum())
        candidates = [*self.worst, *(Worst(float(e), int(c)) for e, c in zip(errors, cases, strict=True))]
        self.worst = sorted(candidates, key=lambda one: (-one.error, one.case))[:KEPT]

    def quantile(self, fraction: float) -> float:
        """Upper edge of the bin that a fraction of the errors does not exceed [-]; NaN without errors."""
        if not self.count:
            return float("nan")
        k = int(np.searchsorted(self.histogram.cumsum(), fraction * self.count))
        return min(10.0 ** (LOWEST + (k + 1) / PER_DECADE), self.worst[0].error)


@dataclass(slots=True, kw_only=True)
class Regression:
    """Normal equations of the efforts (n, na) on a constant and the parameters (n, np)."""

    moments: Array
    """XᵀX, shape (1 + np, 1 + np)."""
    products: Array
    """XᵀY, shape (1 + np, na)."""
    squares: Array
    """Sums of Y², shape (na,)."""

    def add(self, X: Array, Y: EffortSeries) -> None:
        """Add samples.

        Args:
            X: Parameters' changes [%], shape (n, np).
            Y: Efforts less the nominal efforts [N or N m], shape (n, na).
        """
        X = np.column_stack([np.ones(len(X)), X])
        self.moments += X.T @ X
        self.products += X.T @ Y
        self.squares += (Y**2).sum(axis=0)


class Statistics(NamedTuple):
    """Statistics of a sweep."""

    tallies: Mapping[tuple[str, str], Tally]
    """Counts of errors by kind of motion and source."""
    results: Mapping[tuple[str, str, str], int]
    """Number of rows by source, kind of motion and result."""
    reasons: pd.DataFrame
    """Reasons for missing errors: source, result, reason, rows, first cases."""
    sensitivity: pd.DataFrame
    """A row for each actuator and parameter."""
    seconds: Mapping[str, float]
    """Mean wall time of each source [s]."""


def nominal_efforts(variation: Variation) -> dict[str, float]:
    """Root mean square effort of each actuator of the nominal robot in its own motion [N or N m]."""
    robot = nominal(variation)
    history = Noc().compute_efforts(robot.case, robot.baseline.own)
    rms = np.sqrt((history.effort**2).mean(axis=0))
    return {name: float(value) for name, value in zip(history.actuators, rms, strict=True)}


def gather(variation: Variation, folder: Path, parts: int, nominal_efforts: Mapping[str, float]) -> Statistics:
    """Read a data set once.

    Args:
        variation: Settings of the sweep.
        folder: Folder of the data set.
        parts: Number of chunks.
        nominal_efforts: Effort of each actuator in the own motion of the nominal robot [N or N m].
    """
    robot = nominal(variation)
    size, na = 1 + len(robot.varied), robot.case.mechanism.na
    regression = Regression(moments=np.zeros((size, size)), products=np.zeros((size, na)), squares=np.zeros(na))
    tallies: dict[tuple[str, str], Tally] = {
        (kind, source): Tally() for kind in variation.motions for source in variation.every_source[1:]
    }
    results: Counter[tuple[str, str, str]] = Counter()
    reasons: dict[tuple[str, str, str], list[int]] = {}
    seconds: dict[str, list[float]] = {source: [0.0, 0.0] for source in variation.every_source}
    for frame in tables(folder, parts, table_of_cases(robot)):
        _count(frame, tallies, results)
        _note(frame, reasons)
        for source, rows in frame.dropna(subset="wall_time").groupby("source", observed=True):
            seconds[str(source)][0] += float(rows["wall_time"].sum())
            seconds[str(source)][1] += len(rows)
        own = frame[(frame["source"] == REFERENCE) & (frame["motion"] == "own") & (frame["result"] == COMPUTED)]
        efforts = own[list(effort_columns(robot))].to_numpy(float) - np.array(list(nominal_efforts.values()))
        regression.add(own[[parameter.name for parameter in robot.varied]].to_numpy(float), efforts)
    return Statistics(
        tallies=tallies,
        results=results,
        reasons=_reasons(reasons),
        sensitivity=_sensitivity(variation, regression, nominal_efforts),
        seconds={source: total / count if count else float("nan") for source, (total, count) in seconds.items()},
    )


def _count(
    frame: pd.DataFrame, tallies: Mapping[tuple[str, str], Tally], results: Counter[tuple[str, str, str]]
) -> None:
    for key, rows in frame.groupby(["source", "motion", "result"], observed=True):
        source, motion, result = map(str, key)
        results[source, motion, result] += len(rows)
        if result == COMPUTED and source != REFERENCE:
            limit = registered()[source].relative_error if source in registered() else None
            tolerance = np.inf if limit is None else limit
            tallies[motion, source].add(rows["relative_error"].to_numpy(float), rows["case"].to_numpy(), tolerance)


def _note(frame: pd.DataFrame, reasons: dict[tuple[str, str, str], list[int]]) -> None:
    """Count reasons, the numbers in them apart; the first entry is the count, first cases follow."""
    failed = frame[(frame["result"] != COMPUTED) & ((frame["result"] != NO_MOTION) | (frame["source"] == REFERENCE))]
    for source, result, note, case in zip(
        failed["source"], failed["result"], failed["note"], failed["case"], strict=True
    ):
        whose = "all" if result == NO_MOTION else source
        count_and_cases = reasons.setdefault((whose, result, _without_numbers(note)), [0])
        count_and_cases[0] += 1
        if len(count_and_cases) <= KEPT:
            count_and_cases.append(int(case))


def _without_numbers(note: str) -> str:
    return re.sub(r"(?<![\w.])-?\d+(\.\d+)?(e[+-]?\d+)?(?![\w.]*\w)", "…", note)


def _reasons(reasons: Mapping[tuple[str, str, str], list[int]]) -> pd.DataFrame:
    rows = [
        {"source": source, "result": result, "reason": reason, "cases": count, "first cases": tuple(first)}
        for (source, result, reason), (count, *first) in reasons.items()
    ]
    frame = pd.DataFrame(rows, columns=["source", "result", "reason", "cases", "first cases"])
    return frame.sort_values("cases", ascending=False, kind="stable", ignore_index=True)


def _sensitivity(variation: Variation, regression: Regression, efforts: Mapping[str, float]) -> pd.DataFrame:
    """Slopes with their 95 % intervals, standardised slopes and the explained part of the variance."""
    varied, mechanism = nominal(variation).varied, nominal(variation).case.mechanism
    n, size = float(regression.moments[0, 0]), len(regression.moments)
    columns = ["actuator", "unit", "parameter", "slope", "interval", "elasticity", "standardised", "told", "cases"]
    if n <= size + 1 or variation.spread == 0:
        return pd.DataFrame(columns=columns)
    inverse = np.linalg.inv(regression.moments)
    slopes = inverse @ regression.products
    left = np.maximum(regression.squares - (slopes * regression.products).sum(axis=0), 0.0)
    scatter = regression.squares - regression.products[0] ** 2 / n
    widths = np.sqrt(
        np.diag(regression.moments)[1:] / n - (regression.moments[0, 1:] / n) ** 2
    )  # standard deviations of the changes
    rows: list[dict[str, Any]] = []
    for a, ((actuator, effort), unit) in enumerate(zip(efforts.items(), mechanism.actuator_units, strict=True)):
        errors = np.sqrt(np.diag(inverse)[1:] * left[a] / (n - size))
        for k, parameter in enumerate(varied):
            slope = float(slopes[1 + k, a])
            rows.append(
                {
                    "actuator": actuator,
                    "unit": unit,
                    "parameter": parameter.name,
                    "slope": slope,
                    "interval": CONFIDENCE * float(errors[k]),
                    "elasticity": 100 * slope / effort if effort > 0 else np.nan,
                    "standardised": slope * float(widths[k]) / float(np.sqrt(scatter[a] / n))
                    if scatter[a] > 0
                    else np.nan,
                    "told": 1 - float(left[a] / scatter[a]) if scatter[a] > 0 else np.nan,
                    "cases": int(n),
                }
            )
    return pd.DataFrame(rows, columns=columns)
