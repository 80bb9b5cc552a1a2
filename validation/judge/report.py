"""Report of judged logs: the report of a check, and the residuals of each log."""

from collections.abc import Iterator, Mapping

import numpy as np
import pandas as pd

from loopcheck.validation.check.report import SECTIONS
from loopcheck.validation.check.sections.answer import answer
from loopcheck.validation.check.sections.verdicts import verdicts
from loopcheck.validation.common.results import Results
from loopcheck.validation.judge.terminal import closing_lines
from loopcheck.validation.report.blocks import Block, Section, digits, table

TEXT = (
    "The judged motion is the motion of the log: the logged independent drives, and all other joints from the loop "
    "closures. A residual is the logged effort minus the effort that the motion requires. Both pass through the same "
    "filter. The floor is 1.5 times the effect of the noise of the log, propagated through filter and equations, and "
    "of the frequencies that the filter removes. Figures are relative to the largest effort that the motion requires "
    "of the actuator. With the largest residual e, its floor f and the accuracy A: e > A + 2 f disagrees, e + f ≤ A "
    "agrees; between them the log is not comparable."
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
"""Columns that are shown over the peak of their actuator [-]."""


FITTED = (
    "Parameters fitted by generalized least squares to the residual, with the correlation of the filtered noise. If no "
    "other term is missing, the interval contains the true value in 95 of 100 logs. Values are changes of the model. "
    "Total masses and friction are at least 0. A parameter at such a bound never agrees, except friction at 0 whose "
    "unbounded estimate is within three standard deviations of 0. Before and after: root mean square of the residual "
    "over the effort scale."
)


def sections(results: Results, logs: pd.DataFrame, fits: pd.DataFrame) -> Iterator[Section]:
    """The report of a check with the closing lines of the logs, and the residuals behind the verdicts."""
    for section in SECTIONS:
        yield answer(results, closing_lines(results)) if section is answer else section(results)
        if section is verdicts:
            yield residuals_of_logs(results, logs, fits)


def residuals_of_logs(results: Results, logs: pd.DataFrame, fits: pd.DataFrame) -> Section:
    """Residuals and floors of every actuator, for each assumed time of the efforts."""
    parts: list[Block] = [TEXT]
    for source, rows in logs.groupby("source", sort=False):
        shown = _relative(rows).drop(columns=WHERE)
        notes = results.summary[results.summary["source"] == source]["note"].dropna().unique()
        anchor = f"log-{str(source).split('/', 1)[1]}"
        fitted = fits[fits["source"] == source].drop(columns=WHERE)
        blocks: list[Block] = [list(map(str, notes)), table(shown), *_columns(results.run["columns"][source])]
        if len(fitted):
            blocks += [FITTED, table(fitted)]
        parts.append(Section(title=str(source), anchor=anchor, blocks=blocks))
    return Section(title="Residuals of the logs", anchor="logs", blocks=parts)


def _columns(columns: Mapping[str, str]) -> Iterator[str]:
    """Used and unused columns of a log file."""
    used = [name if name == quantity else f"{name} ({quantity})" for name, quantity in columns.items() if quantity]
    unused = [column for column, quantity in columns.items() if not quantity]
    yield f"Columns used: {', '.join(used)}. Columns not used: {', '.join(unused) or 'none'}."


def _relative(rows: pd.DataFrame) -> pd.DataFrame:
    """The figures over the peak of their actuator, as texts."""
    shown = rows.copy()
    divisor = rows["divisor"].where(rows["divisor"] > 0, np.nan)
    for name in RELATIVE:
        shown[name] = [digits(x) for x in rows[name] / divisor]
    return shown.rename(columns={name: f"{name.replace('_', ' ')} [-]" for name in RELATIVE})
