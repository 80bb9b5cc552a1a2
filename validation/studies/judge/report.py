"""What the page says of judged logs, besides what it says of a run."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from validation.judge.results import Results
from validation.report.blocks import Block, Section, digits, table
from validation.studies.run.report import SECTIONS
from validation.studies.run.sections.verdicts import verdicts

TEXT = (
    "The motion judged is the log's own: its independent drives as logged, all else put on the closures. A residual is "
    "the effort that the log says acted less what the equations need for that motion, both through the same filter. "
    "The floor is 1.5 times what the log's own noise, propagated through filter and equations, and what the filter "
    "cuts off make of it; below it, and up to twice as much, nothing is said."
)
WHERE = ["robot", "variant", "mode", "configuration", "source"]
RELATIVE = (
    "rms",
    "rms_floor",
    "largest",
    "largest_floor",
    "noise",
    "truncation",
    "start_peak",
    "half_step_lag",
    "internal",
)
"""Columns that are shown over the scale of their actuator [-]."""


FITTED = (
    "By generalized least squares over the residual, with the correlation that filter and equations give the noise. "
    "The interval contains the truth in 95 of 100 logs, if nothing else is missing; before and after are root mean "
    "squares of the residual over the scale."
)


def sections(results: Results, logs: pd.DataFrame, fits: pd.DataFrame) -> Iterator[Section]:
    """The page: that of a run, with what the logs can tell, and what was fitted, behind its verdicts."""
    for section in SECTIONS:
        yield section(results)
        if section is verdicts:
            yield what_logs_tell(results, logs, fits)


def what_logs_tell(results: Results, logs: pd.DataFrame, fits: pd.DataFrame) -> Section:
    """Residuals and floors of every actuator, under each assumption of when the efforts acted."""
    parts: list[Block] = [TEXT]
    for source, rows in logs.groupby("source", sort=False):
        shown = _relative(rows).drop(columns=WHERE)
        notes = results.summary[results.summary["source"] == source]["note"].dropna().unique()
        anchor = f"log-{str(source).split('/', 1)[1]}"
        fitted = fits[fits["source"] == source].drop(columns=WHERE)
        blocks: list[Block] = [list(map(str, notes)), table(shown)]
        if len(fitted):
            blocks += [FITTED, table(fitted)]
        parts.append(Section(title=str(source), anchor=anchor, blocks=blocks))
    return Section(title="What the logs can tell", anchor="logs", blocks=parts)


def _relative(rows: pd.DataFrame) -> pd.DataFrame:
    """The figures over the scale of their actuator, as texts."""
    shown = rows.copy()
    scale = rows["scale"].where(rows["scale"] > 0, np.nan)
    for name in RELATIVE:
        shown[name] = [digits(x) for x in rows[name] / scale]
    return shown.rename(columns={name: f"{name.replace('_', ' ')} [-]" for name in RELATIVE})
