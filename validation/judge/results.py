"""The tables of a run: their columns declared once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pandera.pandas as pa

from validation.execution.tables import CSV, PARQUET, TableSpec, read_record, read_tables, write_tables

VERDICTS = ("agree", "disagree", "not comparable", "not run", "informational", "reference")

_CASE = {name: pa.Column(str) for name in ("robot", "variant", "mode", "configuration", "source")}
_NUMBER = pa.Column(float, nullable=True)
_MOTION = {name: pa.Column(str) for name in ("robot", "variant", "mode")}

SCHEMAS: Mapping[str, pa.DataFrameSchema] = {
    name: pa.DataFrameSchema(columns, strict=True, ordered=True, coerce=True)
    for name, columns in {
        # effort of each actuator over time [unit]
        "efforts": {
            **_CASE,
            "actuator": pa.Column(str),
            "unit": pa.Column(str),
            "t": pa.Column(float),
            "effort": pa.Column(float),
        },
        # position, velocity and acceleration of each joint over time [m or rad, per s, per s²]
        "motion": {
            **_MOTION,
            "t": pa.Column(float),
            "joint": pa.Column(str),
            "q": _NUMBER,
            "qd": _NUMBER,
            "qdd": _NUMBER,
        },
        # the same of robots with dofs that nothing drives, which move differently in each configuration
        "free_motion": {
            "configuration": pa.Column(str),
            **_MOTION,
            "t": pa.Column(float),
            "joint": pa.Column(str),
            "q": _NUMBER,
            "qd": _NUMBER,
            "qdd": _NUMBER,
        },
        # task coordinates of the law and their rates over time [unit, per s, per s²]; only of laws that have them
        "task": {
            **_MOTION,
            "t": pa.Column(float),
            "coordinate": pa.Column(str),
            "unit": pa.Column(str),
            "x": _NUMBER,
            "xd": _NUMBER,
            "xdd": _NUMBER,
        },
        # what the efforts of the actuators do together on each task coordinate over time [unit]
        "task_efforts": {
            **_CASE,
            "coordinate": pa.Column(str),
            "unit": pa.Column(str),
            "t": pa.Column(float),
            "effort": pa.Column(float),
        },
        # a verdict for each actuator; its own peak, largest and rms error, what errors are relative to, and the largest
        # peak of actuators with its unit [unit], drift and tracking [m or rad], wall time [s]
        "summary": {
            **_CASE,
            "reference": pa.Column(str),
            "actuator": pa.Column(str),
            "unit": pa.Column(str),
            **dict.fromkeys(("peak", "max_error", "rms_error", "relative_error", "tolerance"), _NUMBER),
            "verdict": pa.Column(str, pa.Check.isin(VERDICTS)),
            **dict.fromkeys(("closure_drift", "tracking_error", "wall_time", "scale", "case_peak"), _NUMBER),
            "note": pa.Column(str, nullable=True),
        },
        # step sizes a forward route was run with: error against the reference and change from the coarser step, both
        # relative to the scale of their actuator; order observed from three steps
        "ladder": {
            **_CASE,
            **dict.fromkeys(
                ("dt", "relative_error", "change", "order", "closure_drift", "tracking_error", "wall_time"), _NUMBER
            ),
        },
        # what each engine simulates, held against the model: the worst entry of each quantity, in three tiers;
        # wanted and found [unit], error relative to the size of the quantity, for efforts to their scale [-]
        "audit": {
            **{name: column for name, column in _CASE.items() if name != "source"},
            **{name: pa.Column(str) for name in ("engine", "tier", "quantity", "element", "unit")},
            **dict.fromkeys(("wanted", "found", "error", "tolerance"), _NUMBER),
            "verdict": pa.Column(str, pa.Check.isin(VERDICTS)),
            "note": pa.Column(str, nullable=True),
        },
        # points of the bodies, to draw the robot [m]; the traced point has body "trace"
        "points": {
            **_MOTION,
            "t": pa.Column(float),
            "body": pa.Column(str),
            "point": pa.Column(str),
            "x": _NUMBER,
            "y": _NUMBER,
            "z": _NUMBER,
        },
    }.items()
}

_FRAMES = TableSpec(
    schema=pa.DataFrameSchema(
        {"robot": pa.Column(str), "mode": pa.Column(str), "t": pa.Column(float), "image": pa.Column(object)},
        strict=True,
        ordered=True,
        coerce=True,
    ),
    files=(PARQUET,),
    optional=True,
)
TABLES: Mapping[str, TableSpec] = {
    **{
        name: TableSpec(schema=schema, files=(CSV, PARQUET) if name == "efforts" else (CSV,))
        for name, schema in SCHEMAS.items()
    },
    "frames": _FRAMES,
}
"""Of a run."""


def frames_table(rows: Sequence[Mapping[str, Any]] | pd.DataFrame) -> pd.DataFrame:
    """Pictures of robots that move out of a plane, as WebP, over time [s]; the only table that may be missing."""
    return _FRAMES.frame(rows)


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
    run: Mapping[str, Any]
    """What `run.json` holds."""
    frames: pd.DataFrame = field(default_factory=lambda: frames_table([]))


def table(name: str, rows: Sequence[Mapping[str, Any]] | pd.DataFrame) -> pd.DataFrame:
    """A table of the given name, its columns and their types checked."""
    return TABLES[name].frame(rows)


def write(results: Results, folder: Path) -> None:
    """Write all tables into a folder; either all of them are replaced or, on an error, none.

    Raises:
        OutputError: If the folder cannot be written.
    """
    write_tables(folder, TABLES, {name: getattr(results, name) for name in TABLES}, results.run)


def read(folder: Path) -> Results:
    """Read the tables of a run back.

    Raises:
        OutputError: If a table is missing or not what it should be.
    """
    return Results(**read_tables(folder, TABLES), run=read_record(folder))
