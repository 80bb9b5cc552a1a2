"""The tables of a run: their columns declared once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopcheck.validation.execution.tables import (
    TableSpec,
    integer,
    number,
    read_record,
    read_tables,
    table_of,
    text,
    write_tables,
)

if TYPE_CHECKING:
    import pandas as pd

VERDICTS = ("agree", "disagree", "not comparable", "not run", "not supported", "informational", "reference")

OF_ACTUATOR = "unit of the actuator's effort"
OF_COORDINATE = "unit of the coordinate"
_CASE = {name: text() for name in ("robot", "variant", "mode", "configuration", "source")}
_OF_CASE = {name: column for name, column in _CASE.items() if name != "source"}
_MOTION = {name: text() for name in ("robot", "variant", "mode")}
_TIME = {"t": number("s", always=True)}
_RATES = {"q": number("m or rad"), "qd": number("m/s or rad/s"), "qdd": number("m/s² or rad/s²")}
_RUN = {"closure_drift": number("m or rad"), "tracking_error": number("m or rad"), "wall_time": number("s")}
_NOTE = {"note": text(nullable=True)}
_VERDICT = {"verdict": text(VERDICTS)}

TABLES: Mapping[str, TableSpec] = {
    # effort of each actuator over time
    "efforts": table_of(
        {**_CASE, "actuator": text(), "unit": text(), **_TIME, "effort": number(OF_ACTUATOR, always=True)},
        parquet=True,
    ),
    # position, velocity and acceleration of each joint over time
    "motion": table_of({**_MOTION, **_TIME, "joint": text(), **_RATES}),
    # the same of robots with dofs that nothing drives, which move differently in each configuration
    "free_motion": table_of({"configuration": text(), **_MOTION, **_TIME, "joint": text(), **_RATES}),
    # task coordinates of the law and their rates over time; only of laws that have them
    "task": table_of(
        {
            **_MOTION,
            **_TIME,
            "coordinate": text(),
            "unit": text(),
            "x": number(OF_COORDINATE),
            "xd": number(f"{OF_COORDINATE} per s"),
            "xdd": number(f"{OF_COORDINATE} per s²"),
        }
    ),
    # what the efforts of the actuators do together on each task coordinate over time
    "task_efforts": table_of(
        {**_CASE, "coordinate": text(), "unit": text(), **_TIME, "effort": number("the row's unit", always=True)}
    ),
    # verdict for each actuator, with its own peak, its largest and rms error, the error over scale and over peak, and
    # the largest peak of actuators with its unit
    "summary": table_of(
        {
            **_CASE,
            "reference": text(),
            "actuator": text(),
            "unit": text(),
            **{name: number(OF_ACTUATOR) for name in ("peak", "max_error", "rms_error")},
            "relative_error": number(),
            "peak_error": number(),
            "tolerance": number(),
            **_VERDICT,
            **_RUN,
            "scale": number(OF_ACTUATOR),
            "case_peak": number(OF_ACTUATOR),
            **_NOTE,
        }
    ),
    # step sizes a forward route was run with: error against the reference and change from the coarser step, both
    # relative to the scale of their actuator; order observed from three steps
    "ladder": table_of(
        {**_CASE, "dt": number("s"), "relative_error": number(), "change": number(), "order": number(), **_RUN}
    ),
    # what each engine simulates, held against the model: the worst entry of each quantity, in three tiers; errors are
    # relative to the size of the quantity, for efforts to their scale
    "audit": table_of(
        {
            **_OF_CASE,
            **{name: text() for name in ("engine", "tier", "quantity", "element", "unit")},
            "wanted": number("the row's unit"),
            "found": number("the row's unit"),
            "error": number(),
            "tolerance": number(),
            **_VERDICT,
            **_NOTE,
        }
    ),
    # points of the bodies, to draw the robot; the traced point has body "trace"
    "points": table_of(
        {**_MOTION, **_TIME, "body": text(), "point": text(), **{name: number("m") for name in ("x", "y", "z")}}
    ),
    # wrenches of the connections at some times; without a value where the component is not determined
    "reactions": TableSpec(
        optional=True,
        columns={
            **_OF_CASE,
            "source": text(),
            "reading": text(nullable=True),
            "connection": text(),
            "component": text(),
            "unit": text(),
            **_TIME,
            "value": number("the row's unit"),
            "in_world": number("the row's unit"),
            "unique": text(),
        },
    ),
    # largest loads of the connections by source and reading, against the first analytic way
    "connections": TableSpec(
        optional=True,
        columns={
            **_OF_CASE,
            "source": text(),
            "reading": text(nullable=True),
            "connection": text(nullable=True),
            "body": text(nullable=True),
            "force": number("N"),
            "force_t": number("s"),
            "moment": number("N m"),
            "moment_t": number("s"),
            "determined": integer(),
            "moment_error": number("N m"),
            "force_error": number("N"),
            "error": number(),
            "tolerance": number(),
            **_VERDICT,
            **_NOTE,
        },
    ),
}
"""Of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Everything a run has found, and all that its report is made from."""

    efforts: pd.DataFrame
    motion: pd.DataFrame
    free_motion: pd.DataFrame
    task: pd.DataFrame
    task_efforts: pd.DataFrame
    summary: pd.DataFrame
    ladder: pd.DataFrame
    audit: pd.DataFrame
    points: pd.DataFrame
    reactions: pd.DataFrame
    connections: pd.DataFrame
    run: Mapping[str, Any]
    """Content of `run.json`."""


def table(name: str, rows: Sequence[Mapping[str, Any]] | pd.DataFrame) -> pd.DataFrame:
    """A table of the given name, its columns and their types checked."""
    return TABLES[name].frame(rows)


def write(results: Results, folder: Path) -> None:
    """Write all tables into a folder; after an error no table is replaced.

    Raises:
        OutputError: If the folder cannot be written.
    """
    write_tables(folder, TABLES, {name: getattr(results, name) for name in TABLES}, results.run)


def read(folder: Path) -> Results:
    """Read the tables of a run back.

    Raises:
        OutputError: If a table is missing or invalid.
    """
    return Results(**read_tables(folder, TABLES), run=read_record(folder))
