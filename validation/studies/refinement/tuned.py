"""Recommended settings for an accuracy: the cheapest settings of unmodified simulations."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from loopcheck.robots.robot import Case
from loopcheck.validation.execution.tables import flag, number, table_of, text
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.tune.engine import AskedTuning, LostAnswerError, tunable
from loopcheck.validation.tune.runs.purposes import given_purposes
from loopcheck.validation.tune.runs.tuning_runs import TuningRuns, in_text
from loopcheck.validation.tune.search import choice

TARGETS = (1e-2, 1e-3, 1e-4)
"""Target errors over the peak of the effort [-]."""
TUNED = table_of(
    {
        **{name: text() for name in ("robot", "mode", "configuration", "engine")},
        "target": number("-"),
        "reached": flag(),
        "settings": text(),
        "error": number("-"),
        "cost": number("1/s"),
        "note": text(),
    }
)
HEADERS = {"target": "target [-]", "error": "error [-]", "cost": "cost [1/s]"}
MEANING = (
    "The table lists the cheapest settings of an unmodified simulation, with its own actuators and without changes "
    "of the model, that "
    "keep its settled error below a target on the robot's own motion. The cost counts solver iterations at all stages "
    "of all steps of a simulated second. `loopcheck tune MODEL.xml --accuracy A` finds the settings of your file."
)


def tuned_rows(cases: Sequence[Case], pool: WorkerPool) -> pd.DataFrame:
    """The settings of each robot in each tunable engine."""
    return TUNED.frame([row for case in cases for engine in tunable() for row in _rows(case, engine, pool)])


def _rows(case: Case, engine: str, pool: WorkerPool) -> Iterator[dict[str, Any]]:
    names = {"robot": case.robot.name, "mode": case.mode, "configuration": case.configuration, "engine": engine}
    empty = {"target": np.nan, "reached": False, "settings": "", "error": np.nan, "cost": np.nan}
    try:
        given = AskedTuning(engine=engine, pool=pool).given(case.mechanism)
    except LostAnswerError as error:
        yield {**names, **empty, "note": str(error)}
        return
    purposes, notes = given_purposes(case, engine, pool)
    runs = TuningRuns(case=case, engine=engine, given=given, pool=pool, include_start=False)
    for target in TARGETS if purposes else ():
        tried = runs.search(purposes[:1], target)
        best = choice(tried, target)
        nearest = best or min(tried, key=lambda one: one.error)
        can_be_judged = np.isfinite(nearest.error)
        settings = nearest.candidate.settings
        yield {
            **names,
            "target": target,
            "reached": best is not None,
            "settings": in_text(settings) if can_be_judged else "",
            "error": nearest.error,
            "cost": nearest.cost,
            "note": "" if can_be_judged else "; ".join(dict.fromkeys(row["reason"] for row in runs.rows[:1])),
        }
    if not purposes:
        yield {**names, **empty, "note": notes[0]}
