"""The tables of a study: columns with types and units declared once, written whole or not at all, read with a check."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from robots.errors import OutputError
from validation.execution.files import RECORD, drafts

if TYPE_CHECKING:
    import pandera.pandas as pa

CSV, PARQUET = "csv", "parquet"
FORMULA = r"'*(?:[=+@\t\r]|-.)"
"""How a text begins that a spreadsheet would compute, or that would look so without an apostrophe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What stands in a column."""

    kind: type
    """Type of its entries."""
    unit: str = ""
    """Of a number."""
    known: tuple[str, ...] = ()
    """The only texts that it may hold, where there are some."""
    nullable: bool = False
    """Whether an entry may be missing."""


@dataclass(frozen=True, kw_only=True)  # without slots: the schema is kept in its dictionary
class TableSpec:
    """What a table is."""

    columns: Mapping[str, Column]
    """By name, in their order."""
    files: tuple[str, ...] = (CSV,)
    """Kinds of files that it is written to; it is read from the first."""
    optional: bool = False
    """Whether it is written only if it has rows."""

    @property
    def units(self) -> Mapping[str, str]:
        """Unit of each number, `[-]` for one without."""
        return {name: column.unit for name, column in self.columns.items() if column.unit}

    @cached_property
    def schema(self) -> "pa.DataFrameSchema":
        """What checks a table; its library is imported for that alone, so that no worker and no start waits for it."""
        import pandera.pandas as pa

        columns = {
            name: pa.Column(
                column.kind, pa.Check.isin(column.known) if column.known else None, nullable=column.nullable
            )
            for name, column in self.columns.items()
        }
        return pa.DataFrameSchema(columns, strict=True, ordered=True, coerce=True)

    def frame(self, rows: Sequence[Mapping[str, Any]] | pd.DataFrame) -> pd.DataFrame:
        """A table of these rows, its columns and their types checked."""
        frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows, columns=list(self.columns))
        return self.schema.validate(frame)


def table_of(columns: Mapping[str, Column], *files: str) -> TableSpec:
    """A table with these columns, in this order.

    Args:
        columns: By name, as `text` and the like make them.
        files: Kinds of files that it is written to, by default CSV.
    """
    return TableSpec(columns=columns, files=files or (CSV,))


def text(known: Sequence[str] = (), *, nullable: bool = False) -> Column:
    """A column of texts, only of the known ones where there are some."""
    return Column(kind=str, known=tuple(known), nullable=nullable)


def number(unit: str = "-", *, always: bool = False) -> Column:
    """A column of numbers with a unit; NaN where there is none, unless there always is one."""
    return Column(kind=float, nullable=not always, unit=unit)


def integer(unit: str = "-") -> Column:
    """A column of whole numbers with a unit."""
    return Column(kind=int, unit=unit)


def flag() -> Column:
    """A column of true and false."""
    return Column(kind=bool)


def write_tables(
    folder: Path, specs: Mapping[str, TableSpec], frames: Mapping[str, pd.DataFrame], record: Mapping[str, Any]
) -> None:
    """Write tables and their record into a folder; either all of them are replaced or, on an error, none.

    Raises:
        OutputError: If the folder cannot be written.
    """
    try:
        with drafts(folder) as draft:
            for name, spec in specs.items():
                for kind in spec.files if len(frames[name]) or not spec.optional else ():
                    _write(frames[name], draft / f"{name}.{kind}")
            (draft / RECORD).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            optional = [f"{name}.{kind}" for name, spec in specs.items() if spec.optional for kind in spec.files]
            for name in (RECORD, *optional):
                (folder / name).unlink(missing_ok=True)  # tables of two runs must never pass for one
    except OSError as error:
        raise OutputError(f"{folder}: cannot write the results: {error.strerror}") from error


def write_csv(folder: Path, frames: Mapping[str, pd.DataFrame]) -> None:
    """Write tables by name into a folder; either all of them are replaced or, on an error, none.

    Raises:
        OutputError: If the folder cannot be written.
    """
    try:
        with drafts(folder) as draft:
            for name, frame in frames.items():
                _write(frame, draft / f"{name}.{CSV}")
    except OSError as error:
        raise OutputError(f"{folder}: cannot write {', '.join(frames)}: {error.strerror}") from error


def to_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a table; a text that a spreadsheet would take for a formula gets an apostrophe before it.

    Names and messages come from models and engines of others. `read_csv` takes the apostrophe away again.

    Args:
        frame: The table.
        path: The file.
    """
    _with_texts(frame, rf"(?={FORMULA})", "'").to_csv(path, index=False, float_format="%.17g")


def read_csv(path: Path, **options: Any) -> pd.DataFrame:
    """Read a table that `to_csv` has written.

    Args:
        path: The file.
        options: Of pandas' own function.
    """
    return _with_texts(pd.read_csv(path, **options), rf"'(?={FORMULA})", "")


def _with_texts(frame: pd.DataFrame, pattern: str, start: str) -> pd.DataFrame:
    """The table with another start of the texts that begin with a pattern."""
    changed: dict[str, Any] = {}
    for name, column in frame.items():
        if not pd.api.types.is_numeric_dtype(column):
            texts = [text for text in column.unique() if isinstance(text, str) and re.match(pattern, text)]
            if texts:
                changed[str(name)] = column.replace({text: re.sub(rf"\A{pattern}", start, text) for text in texts})
    return frame.assign(**changed) if changed else frame


def read_record(folder: Path) -> Mapping[str, Any]:
    """The record of what a study has written into a folder.

    Raises:
        OutputError: If there is none, or it is not what it should be.
    """
    path = folder / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OutputError(f"{path}: want what a study of loopcheck has written: {error}") from error
    if not isinstance(record, dict):
        raise OutputError(f"{path}: want the record of a study, got {type(record).__name__}")
    return record


def read_tables(folder: Path, specs: Mapping[str, TableSpec]) -> dict[str, pd.DataFrame]:
    """The tables that a study has written into a folder.

    Raises:
        OutputError: If a table is missing or not what it should be.
    """
    return {name: _read(folder / f"{name}.{spec.files[0]}", spec) for name, spec in specs.items()}


def _write(frame: pd.DataFrame, path: Path) -> None:
    if path.suffix == f".{PARQUET}":
        frame.to_parquet(path, index=False)
    else:
        to_csv(frame, path)


def _read(path: Path, spec: TableSpec) -> pd.DataFrame:
    from pandera.errors import SchemaError

    if spec.optional and not path.exists():
        return spec.frame([])
    try:
        return spec.schema.validate(pd.read_parquet(path) if path.suffix == f".{PARQUET}" else _read_csv(path, spec))
    except (OSError, ValueError, SchemaError) as error:
        reason = " ".join(str(error).split())
        raise OutputError(f"{path}: want a table of a study of loopcheck: {reason}") from error


def _read_csv(path: Path, spec: TableSpec) -> pd.DataFrame:
    """What a CSV holds: an empty cell is NaN among numbers, and no text among texts."""
    numbers = [name for name, column in spec.columns.items() if column.kind is float]
    types: dict[str, Any] = dict.fromkeys(numbers, float)
    types |= {name: str for name, column in spec.columns.items() if column.kind in (str, object)}
    return read_csv(path, dtype=types, keep_default_na=False, na_values={name: [""] for name in numbers})
