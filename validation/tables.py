"""The tables of a run: their columns declared once, written whole or not at all, read back with a check."""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import pandera.pandas as pa
from pandera.errors import SchemaError

from robots.errors import OutputError

RECORD = "run.json"
FRAMES = "frames.parquet"
FORMULA = r"'*(?:[=+@\t\r]|-.)"
"""How a text begins that a spreadsheet would compute, or that would look so without an apostrophe."""
DRAFTS = ".writing"
"""Where files are written before they take their places."""
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

_FRAMES = pa.DataFrameSchema(
    {"robot": pa.Column(str), "mode": pa.Column(str), "t": pa.Column(float), "image": pa.Column(object)},
    strict=True,
    ordered=True,
    coerce=True,
)


def frames_table(rows: Sequence[Mapping[str, Any]] | pd.DataFrame) -> pd.DataFrame:
    """Pictures of robots that move out of a plane, as WebP, over time [s]; the only table that may be missing."""
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows, columns=list(_FRAMES.columns))
    return _FRAMES.validate(frame)


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
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows, columns=list(SCHEMAS[name].columns))
    return SCHEMAS[name].validate(frame)


def to_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a table; a text that a spreadsheet would take for a formula gets an apostrophe before it.

    Names and messages come from models and engines of others. `read_csv` takes the apostrophe away again.

    Args:
        frame: The table.
        path: The file.
    """
    _with_texts(frame, rf"(?={FORMULA})", "'").to_csv(path, index=False, float_format="%.17g")


def read_csv(path: Path, **how: Any) -> pd.DataFrame:
    """Read a table that `to_csv` has written.

    Args:
        path: The file.
        how: What pandas is told besides.
    """
    return _with_texts(pd.read_csv(path, **how), rf"'(?={FORMULA})", "")


def _with_texts(frame: pd.DataFrame, pattern: str, start: str) -> pd.DataFrame:
    """The table with another start of the texts that begin with a pattern."""
    changed: dict[str, Any] = {}
    for name, column in frame.items():
        if not pd.api.types.is_numeric_dtype(column):
            texts = [text for text in column.unique() if isinstance(text, str) and re.match(pattern, text)]
            if texts:
                changed[str(name)] = column.replace({text: re.sub(rf"\A{pattern}", start, text) for text in texts})
    return frame.assign(**changed) if changed else frame


def want_writable(folder: Path) -> None:
    """See that results can be written into a folder, without making it yet.

    Raises:
        OutputError: If they cannot.
    """
    nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        raise OutputError(f"{folder}: want a folder that can be written: {nearest}: {error.strerror}") from error


def write(results: Results, folder: Path) -> None:
    """Write all tables into a folder; either all of them are replaced or, on an error, none.

    Raises:
        OutputError: If the folder cannot be written.
    """
    try:
        with drafts(folder) as draft:
            for table_name in SCHEMAS:
                frame: pd.DataFrame = getattr(results, table_name)
                to_csv(frame, draft / f"{table_name}.csv")
            results.efforts.to_parquet(draft / "efforts.parquet", index=False)
            (draft / RECORD).write_text(json.dumps(results.run, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            if len(results.frames):
                results.frames.to_parquet(draft / FRAMES, index=False)
            for name in (RECORD, FRAMES):
                (folder / name).unlink(missing_ok=True)  # tables of two runs must never pass for one
    except OSError as error:
        raise OutputError(f"{folder}: cannot write the results: {error.strerror}") from error


@contextmanager
def drafts(folder: Path) -> Iterator[Path]:
    """A folder for files that take their places together at the end, `run.json` last; on an error none does.

    Args:
        folder: Where they go; made if it is not there. What a killed command left half-written there goes.
    """
    draft = folder / DRAFTS
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    try:
        yield draft
        for path in sorted(draft.iterdir(), key=lambda path: (path.name == RECORD, path.name)):
            path.replace(folder / path.name)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write_csv(folder: Path, frames: Mapping[str, pd.DataFrame]) -> None:
    """Write tables by name into a folder; either all of them are replaced or, on an error, none.

    Raises:
        OutputError: If the folder cannot be written.
    """
    try:
        with drafts(folder) as draft:
            for name, frame in frames.items():
                to_csv(frame, draft / f"{name}.csv")
    except OSError as error:
        raise OutputError(f"{folder}: cannot write {', '.join(frames)}: {error.strerror}") from error


def read(folder: Path) -> Results:
    """Read the tables of a run back.

    Raises:
        OutputError: If a table is missing or not what it should be.
    """
    frames = {name: _read_table(folder / f"{name}.csv", name) for name in SCHEMAS}
    path = folder / RECORD
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OutputError(f"{path}: want what `loopcheck run` has written: {error}") from error
    return Results(**frames, run=run, frames=_read_frames(folder / FRAMES))


def _read_frames(path: Path) -> pd.DataFrame:
    try:
        return frames_table(pd.read_parquet(path) if path.exists() else [])
    except (OSError, ValueError, SchemaError) as error:
        raise OutputError(f"{path}: want pictures of `loopcheck run`: {' '.join(str(error).split())}") from error


def _read_table(path: Path, name: str) -> pd.DataFrame:
    numbers = {
        c: float
        for c, column in SCHEMAS[name].columns.items()
        if column.dtype is not None and "float" in str(column.dtype)
    }
    texts = {c: str for c in SCHEMAS[name].columns if c not in numbers}
    try:
        frame = read_csv(path, dtype={**numbers, **texts}, keep_default_na=False, na_values={c: [""] for c in numbers})
        return SCHEMAS[name].validate(frame)
    except (OSError, ValueError, SchemaError) as error:
        reason = " ".join(str(error).split())
        raise OutputError(f"{path}: want a table of `loopcheck run`: {reason}") from error
