"""What page and terminal say of judged logs, besides what they say of a run."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from rich.console import RenderableType

from validation.judge import sources
from validation.judge.results import Results
from validation.report.blocks import Block, Section, digits, table
from validation.report.terminal import coloured
from validation.report.terminal import table as terminal_table
from validation.studies.run.report import SECTIONS

TEXT = (
    "The motion judged is the log's own: its independent drives as logged, all else put on the closures. A residual is "
    "the effort that the log says acted less what the equations need for that motion, both through the same filter. "
    "The floor is 1.5 times what the log's own noise, propagated through filter and equations, and what the filter "
    "cuts off make of it; below it, and up to twice as much, nothing is said."
)
WHERE = ["robot", "variant", "mode", "configuration", "source"]
RELATIVE = ("rms", "rms_floor", "largest", "largest_floor", "noise", "truncation", "start_peak", "internal")
"""Columns that are shown over the scale of their actuator [-]."""


FITTED = (
    "By generalized least squares over the residual, with the correlation that filter and equations give the noise. "
    "The interval contains the truth in 95 of 100 logs, if nothing else is missing; before and after are root mean "
    "squares of the residual over the scale."
)


def sections(results: Results, logs: pd.DataFrame, fits: pd.DataFrame) -> list[Section]:
    """The page: that of a run, with what the logs can tell, and what was fitted."""
    parts = [section(results) for section in SECTIONS]
    return [*parts[:2], what_logs_tell(results, logs, fits), *parts[2:]]


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


def summary(results: Results, logs: pd.DataFrame) -> Iterator[RenderableType]:
    """A table of the actuators of each log, and what is said of them."""
    judged = results.summary[results.summary["source"].map(sources.is_log)]
    for source, rows in judged.groupby("source", sort=False):
        of_log = logs[(logs["source"] == source) & (logs["assumed"] != "other")].set_index("actuator")
        lines = [
            [
                str(row["actuator"]),
                coloured(str(row["verdict"]), str(row["verdict"])),
                *(_percent(of_log, row["actuator"], name) for name in RELATIVE[:4]),
            ]
            for row in rows.to_dict("records")
        ]
        columns = ["actuator", "verdict", "rms", "floor", "largest", "floor"]
        yield terminal_table(columns, lines, title=f"{source}: residual effort over its scale")
        for note in dict.fromkeys(rows["note"].dropna()):
            yield str(note)


def _percent(of_log: pd.DataFrame, actuator: str, name: str) -> str:
    if actuator not in of_log.index:
        return ""
    row = of_log.loc[actuator]
    return f"{row[name] / row['scale']:.1e}" if row["scale"] else ""


def _relative(rows: pd.DataFrame) -> pd.DataFrame:
    """The figures over the scale of their actuator, as texts."""
    shown = rows.copy()
    scale = rows["scale"].where(rows["scale"] > 0, np.nan)
    for name in RELATIVE:
        shown[name] = [digits(x) for x in rows[name] / scale]
    return shown.rename(columns={name: f"{name.replace('_', ' ')} [-]" for name in RELATIVE})
