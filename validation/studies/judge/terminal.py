"""What the terminal says of judged logs."""

from collections.abc import Iterator

import pandas as pd
from rich.console import RenderableType

from validation.judge import sources
from validation.judge.results import Results
from validation.report.terminal import coloured, table

SHOWN = {"rms": "rms", "rms_floor": "floor", "largest": "largest", "largest_floor": "floor of it"}
"""Columns that are shown over the scale of their actuator [-], with their headings."""


def summary(results: Results, logs: pd.DataFrame) -> Iterator[RenderableType]:
    """A table of the actuators of each log, and what is said of them."""
    judged = results.summary[results.summary["source"].map(sources.is_log)]
    for source, rows in judged.groupby("source", sort=False):
        of_log = logs[(logs["source"] == source) & (logs["assumed"] != "other")].set_index("actuator")
        lines = [
            [
                str(row["actuator"]),
                coloured(str(row["verdict"]), str(row["verdict"])),
                *(_over_scale(of_log, row["actuator"], name) for name in SHOWN),
            ]
            for row in rows.to_dict("records")
        ]
        columns = ["actuator", "verdict", *SHOWN.values()]
        yield table(columns, lines, title=f"{source}: residual effort over its scale")
        for note in dict.fromkeys(rows["note"].dropna()):
            yield str(note)


def _over_scale(of_log: pd.DataFrame, actuator: str, name: str) -> str:
    if actuator not in of_log.index:
        return ""
    row = of_log.loc[actuator]
    return f"{row[name] / row['scale']:.1e}" if row["scale"] else ""
