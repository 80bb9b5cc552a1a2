"""The tables of a study: columns with types and units declared once, written whole or not at all, read with a check."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loopcheck.robots.errors import OutputError
from loopcheck.validation.execution.files import RECORD, drafts

if TYPE_CHECKING:
    import pandas as pd

CSV, PARQUET = "csv", "parquet"
FORMULA = r"'*(?:[=+@\t\r]|-.)"
"""First characters of texts that a spreadsheet computes, or that would look so without an apostrophe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """Type and unit of a column."""

    kind: type
    """Type of its entries."""
    unit: str = ""
    """Of a number."""
    known: tuple[str, ...] = ()
    """Allowed texts; by default all."""
    nullable: bool = False
    """Whether entries may be missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """Columns and formats of a table."""

    columns: Mapping[str, Column]
    """Columns by name, in order."""
    parquet: bool = False
    """Whether to write Parquet too, if pyarrow is installed; the table is read from the CSV file."""
    optional: bool = False
    """Whether to omit the file of an empty table."""

    @property
    def units(self) -> Mapping[str, str]:
        """Unit of each number, `[-]` for a number without unit."""
        return {name: column.unit for name, column in self.columns.items() if column.unit}

    @property
    def formats(self) -> tuple[str, ...]:
        """Formats of its files."""
        return (CSV, PARQUET) if self.parquet and parquet_is_installed() else (CSV,)

    def frame(self, rows: Sequence[Mapping[str, Any]] | pd.DataFrame) -> pd.DataFrame:
        """A table of these rows, converted to the types of its columns.

        Raises:
            ValueError: If names or order of the columns differ, or an entry does not fit its column.
        """
        import pandas as pd

        frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows, columns=list(self.columns))
        if list(frame.columns) != list(self.columns):
            raise ValueError(f"columns must be {', '.join(self.columns)}, got {', '.join(map(str, frame.columns))}")
        return frame.assign(**{name: _converted(frame[name], column) for name, column in self.columns.items()})


def _converted(values: pd.Series[Any], column: Column) -> pd.Series[Any]:
    """Entries in the type of their column; missing entries stay missing."""
    missing = values.isna()
    if missing.any() and not column.nullable:
        raise ValueError(f"column '{values.name}' must have an entry in each row, row {missing.argmax() + 1} is empty")
    converted = values.astype(column.kind)
    if column.kind is str and missing.any():
        converted = converted.where(~missing, values)  # pandas 2 makes them texts
    unknown = ~converted.isin(column.known) & ~missing
    if column.known and unknown.any():
        known, got = ", ".join(column.known), converted[unknown].iloc[0]
        raise ValueError(f"column '{values.name}' must hold {known}, got '{got}' in row {unknown.argmax() + 1}")
    return converted


def parquet_is_installed() -> bool:
    """Return whether Parquet can be read and written: with the extra `parquet`."""
    return find_spec("pyarrow") is not None


def bulk_format() -> str:
    """Format of large data sets: Parquet if installed, otherwise CSV."""
    return PARQUET if parquet_is_installed() else CSV


def table_of(columns: Mapping[str, Column], *, parquet: bool = False) -> TableSpec:
    """A table with these columns, in this order.

    Args:
        columns: Columns by name, from `text`, `number` and the other constructors.
        parquet: Whether it is also written as Parquet if pyarrow is installed.
    """
    return TableSpec(columns=columns, parquet=parquet)


def text(known: Sequence[str] = (), *, nullable: bool = False) -> Column:
    """A column of texts; with `known`, of these texts only."""
    return Column(kind=str, known=tuple(known), nullable=nullable)


def number(unit: str = "-", *, always: bool = False) -> Column:
    """A column of numbers with a unit; NaN for a missing number, unless `always`."""
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
    """Write tables and their record into a folder; after an error no file is replaced.

    Raises:
        OutputError: If the folder cannot be written.
    """
    try:
        with drafts(folder) as draft:
            for name, spec in specs.items():
                for kind in spec.formats if len(frames[name]) or not spec.optional else ():
                    write_table(frames[name], draft / f"{name}.{kind}")
            (draft / RECORD).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            optional = [f"{name}.{CSV}" for name, spec in specs.items() if spec.optional]
            exports = [f"{name}.{PARQUET}" for name, spec in specs.items() if spec.parquet]
            for name in (RECORD, *optional, *exports):
                (folder / name).unlink(missing_ok=True)  # tables of two runs must never pass for one
    except OSError as error:
        raise OutputError(f"{folder}: cannot write the results: {error.strerror}") from error


def write_csv(folder: Path, frames: Mapping[str, pd.DataFrame]) -> None:
    """Write tables by name into a folder; after an error no file is replaced.

    Raises:
        OutputError: If the folder cannot be written.
    """
    try:
        with drafts(folder) as draft:
            for name, frame in frames.items():
                write_table(frame, draft / f"{name}.{CSV}")
    except OSError as error:
        raise OutputError(f"{folder}: cannot write {', '.join(frames)}: {error.strerror}") from error


def to_csv(frame: pd.DataFrame, path: Path) -> None:
    """Write a table; a text that a spreadsheet would read as a formula is preceded by an apostrophe.

    Names and messages come from foreign models and engines. `read_csv` removes the apostrophe.
    """
    _with_texts(frame, rf"(?={FORMULA})", "'").to_csv(path, index=False, float_format="%.17g")


def read_csv(path: Path, **options: Any) -> pd.DataFrame:
    """Read a table that `to_csv` has written.

    Args:
        options: Of pandas' own function.
    """
    import pandas as pd

    return _with_texts(pd.read_csv(path, **options), rf"'(?={FORMULA})", "")


def _with_texts(frame: pd.DataFrame, pattern: str, start: str) -> pd.DataFrame:
    """The table with another start of the texts that begin with a pattern."""
    import pandas as pd

    changed: dict[str, Any] = {}
    for name, column in frame.items():
        if not pd.api.types.is_numeric_dtype(column):
            texts = [text for text in column.unique() if isinstance(text, str) and re.match(pattern, text)]
            if texts:
                changed[str(name)] = column.replace({text: re.sub(rf"\A{pattern}", start, text) for text in texts})
    return frame.assign(**changed) if changed else frame


def read_record(folder: Path) -> Mapping[str, Any]:
    """The record that a study has written into a folder.

    Raises:
        OutputError: If the record is missing or invalid.
    """
    path = folder / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise OutputError(f"{path}: must be the record of a loopcheck study: {error}") from error
    if not isinstance(record, dict):
        raise OutputError(f"{path}: must be the record of a loopcheck study, got {type(record).__name__}")
    return record


def read_tables(folder: Path, specs: Mapping[str, TableSpec]) -> dict[str, pd.DataFrame]:
    """The tables that a study has written into a folder.

    Raises:
        OutputError: If a table is missing or invalid.
    """
    return {name: read_table(folder / f"{name}.{CSV}", spec) for name, spec in specs.items()}


def write_table(frame: pd.DataFrame, path: Path) -> None:
    """Write a table in the format of the suffix.

    Raises:
        OSError: If the file cannot be written.
    """
    if path.suffix == f".{PARQUET}":
        frame.to_parquet(path, index=False)
    else:
        to_csv(frame, path)


def read_table(path: Path, spec: TableSpec) -> pd.DataFrame:
    """Read a table in the format of the suffix.

    Raises:
        OutputError: If it is missing, cannot be read, or does not have the columns of the specification.
    """
    import pandas as pd

    if spec.optional and not path.exists():
        return spec.frame([])
    if path.suffix == f".{PARQUET}" and not parquet_is_installed():
        raise OutputError(f"{path}: reading Parquet requires pyarrow: pip install 'loopcheck[parquet]'")
    try:
        return spec.frame(pd.read_parquet(path) if path.suffix == f".{PARQUET}" else _read_csv(path, spec))
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise OutputError(f"{path}: must be a table of a loopcheck study: {reason}") from error


def _read_csv(path: Path, spec: TableSpec) -> pd.DataFrame:
    """Content of a CSV: an empty cell is NaN in a column of numbers and an empty text in a column of texts."""
    numbers = [name for name, column in spec.columns.items() if column.kind is float]
    types: dict[str, Any] = dict.fromkeys(numbers, float)
    types |= {name: str for name, column in spec.columns.items() if column.kind is str}
    return read_csv(path, dtype=types, keep_default_na=False, na_values={name: [""] for name in numbers})
