"""Runs all levels of a ladder, extrapolates from them, and compares both with the reference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pandas as pd

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.dynamics.powers import effort_scale
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.declarations import Ladder, Level, sourced
from loopcheck.engines.extrapolation import value_at_zero
from loopcheck.robots.arrays import Array
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.efforts.compare import relative_error
from loopcheck.validation.check.efforts.evaluate import outcome_of
from loopcheck.validation.execution.tables import flag, integer, number, table_of, text
from loopcheck.validation.studies.refinement.analysis import RICHARDSON, refinements

LEVELS = table_of(
    {
        **{name: text() for name in ("robot", "mode", "configuration", "route", "ladder", "refined")},
        "expected": number(),
        "source": text(),
        "limit": text(),
        "default": number("unit of the refined setting"),
        "value": number("unit of the refined setting"),
        "dt": number("s"),
        "runs": integer(),
        "settings": text(),
        **{name: number() for name in ("relative_error", "change", "order", "uncertainty")},
        "wall_time": number("s"),
        "own": flag(),
        "note": text(),
    },
    parquet=True,
)

EXTENDED = "extrapolated to zero (Richardson 1911)"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedCase:
    """A case, its motion and the reference."""

    case: Case
    motion: Motion
    reference: Array
    """Efforts [N or N m], shape (nt, na)."""
    scale: Array
    """Scale of the errors of each actuator [N or N m], shape (na,)."""

    @property
    def labels(self) -> Mapping[str, str]:
        """Robot, mode and configuration."""
        return {"robot": self.case.robot.name, "mode": self.case.mode, "configuration": self.case.configuration}


def prepared_case(case: Case) -> PreparedCase:
    """A case with its motion and the reference."""
    motion = prescribe(case)
    reference, scale = Noc().compute_efforts(case, motion).effort, effort_scale(case.mechanism, motion).scale
    return PreparedCase(case=case, motion=motion, reference=reference, scale=scale)


def simulate_levels(prepared: PreparedCase, ladder: Ladder) -> pd.DataFrame:
    """Run all levels of a ladder, extrapolate from them, and compare both with the reference."""
    levels = []
    for level in sourced(ladder, prepared.motion).levels:
        assert level.source is not None
        compute = partial(level.source.compute_efforts, prepared.case, prepared.motion)
        outcome = outcome_of(prepared.case, prepared.motion, ladder.route, compute)
        history = outcome.compared
        took = sum(rung.wall_time for rung in history.ladder) if history else float("nan")
        effort, note = (history.effort, "") if history else (None, outcome.note)
        levels.append(_LevelResult(*_about(level), effort=effort, wall_time=took, note=note))
    rows = [_rows(prepared, ladder, levels)]
    for count in ladder.extrapolated:
        groups = [levels[k - count : k] for k in range(count, len(levels) + 1)]
        rows.append(_rows(prepared, ladder, [_extrapolated(group) for group in groups], count))
    return LEVELS.frame(pd.concat(rows, ignore_index=True))


class _LevelResult(NamedTuple):
    value: float
    dt: float
    runs: int
    settings: str
    effort: Array | None
    wall_time: float
    note: str


def _about(level: Level) -> tuple[float, float, int, str]:
    return level.value, level.dt, level.runs, level.settings


def levels_not_run(prepared: PreparedCase, ladder: Ladder, reason: str) -> pd.DataFrame:
    """The levels of a ladder that was not simulated."""
    levels = [_LevelResult(*_about(level), effort=None, wall_time=np.nan, note=reason) for level in ladder.levels]
    return LEVELS.frame(_rows(prepared, ladder, levels))


def _extrapolated(group: Sequence[_LevelResult]) -> _LevelResult:
    """The value at zero of the polynomial through the efforts of the levels."""
    efforts = [level.effort for level in group if level.effort is not None]
    finest = group[-1]
    return finest._replace(
        runs=sum(level.runs for level in group),
        effort=value_at_zero([level.value for level in group], efforts) if len(efforts) == len(group) else None,
        wall_time=sum(level.wall_time for level in group),
        note=next((level.note for level in group if level.note), ""),
    )


def _rows(prepared: PreparedCase, ladder: Ladder, levels: Sequence[_LevelResult], count: int = 1) -> pd.DataFrame:
    """Rows of the levels of a ladder, each extrapolated from some of its steps, or from one.

    Extrapolation from n steps removes the powers of the step below n.
    """
    order = ladder.order
    if order is not None and count > 1:
        order = replace(order, value=max(order.value, float(count)), source=f"{order.source}; {count} steps {EXTENDED}")
    rows = [
        {
            **prepared.labels,
            "route": ladder.route,
            "ladder": f"{ladder.name}{RICHARDSON}{count}" if count > 1 else ladder.name,
            "refined": ladder.refined,
            "expected": order.value if order else np.nan,
            "source": order.source if order else "",
            "limit": order.limit if order else "",
            "default": ladder.default,
            **{field: getattr(level, field) for field in ("value", "dt", "runs", "settings")},
            "relative_error": np.nan
            if level.effort is None
            else relative_error(level.effort, prepared.reference, prepared.scale),
            "wall_time": level.wall_time,
            "own": ladder.own[0] == count and bool(np.isclose(ladder.own[1], level.value, rtol=1e-9)),
            "note": level.note,
        }
        for level in levels
    ]
    expected = order.value if order else np.nan
    estimates = refinements([row.value for row in levels], [row.effort for row in levels], prepared.scale, expected)
    return pd.concat([pd.DataFrame(rows), estimates], axis=1)[list(LEVELS.columns)]
