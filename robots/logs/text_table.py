"""Tables as text: CSV with commas, semicolons, tabs or spaces; lines above the names may begin with `#` or be empty.

The last such line may itself contain the names, as `numpy.savetxt` writes them. Decimal commas are read where commas do
not separate cells.
"""

import csv
import io
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from loopcheck.robots.arrays import Array

if TYPE_CHECKING:
    import pandas as pd

ENCODING = "utf-8-sig"
"""UTF-8, with or without a byte-order mark (as written by Windows programs)."""
MARKS = "#%"
"""Marks of lines above a table."""
ROS = "%time"
"""Beginning of the names of `rostopic echo -p`, which is no such mark."""
SPACES = r"\s+"
DECIMAL_COMMA = r"^(\s*[-+]?\d*),(\d+(?:[eE][-+]?\d+)?\s*)$"
"""A number with a decimal comma."""


def first_row(path: Path) -> list[str]:
    """Cells of the first row below the lines above the table, or of the names among these lines.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not UTF-8, or has no row.
    """
    return _head_of(path).cells


def read_text_table(path: Path, *, has_names: bool = True) -> "tuple[pd.DataFrame, str]":
    """A table, its cells as the texts that they are, and the lines above it.

    Args:
        path: The file.
        has_names: Whether the first row contains the names of the columns; otherwise they are numbers.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is no table: it is not UTF-8, has no names, a name twice, or more cells in a row than names.
    """
    import pandas as pd  # takes half a second, for which no start of a command has to wait

    head = _head_of(path)
    for name in head.cells if has_names else ():
        if head.cells.count(name) > 1:
            raise ValueError(f"column names must be unique, got '{name}' {head.cells.count(name)} times")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a cell too many in every row would be lost in silence
        try:
            frame = pd.read_csv(
                path,
                sep=head.separator,
                skiprows=head.skipped,
                skipinitialspace=True,
                encoding=ENCODING,
                dtype=str,
                index_col=False,
                header=0 if has_names and not head.is_above else None,
                names=head.cells if has_names and head.is_above else None,
            )
        except pd.errors.ParserWarning as error:
            raise ValueError(f"rows must not have more cells than the header ({len(head.cells)} names)") from error
    if head.separator != ",":
        frame = frame.replace(DECIMAL_COMMA, r"\1.\2", regex=True)
    return frame.rename(columns=str.strip) if has_names else frame, "\n".join(head.above)


def text_of(columns: Mapping[str, Array]) -> str:
    """A table of numbers with all their digits as CSV: pandas takes four times as long.

    Args:
        columns: Columns by name [any unit], shape (rows,) each; an empty cell stands for NaN.
    """
    names, form = io.StringIO(), ",".join(["%.17g"] * len(columns)) + "\n"
    csv.writer(names, lineterminator="\n").writerow(columns)
    rows = "".join([form % row for row in zip(*(values.tolist() for values in columns.values()), strict=True)])
    return names.getvalue() + rows.replace("nan", "")


class _Head(NamedTuple):
    """Beginning of a table."""

    cells: list[str]
    """Names of the columns, or the first row of a table without names."""
    separator: str
    skipped: int
    """Number of lines above the first row, or above the names [-]."""
    above: list[str]
    """Lines above the table without their mark, except the names."""
    is_above: bool
    """Whether the names are in a line with a mark."""


def _head_of(path: Path) -> _Head:
    with path.open(encoding=ENCODING) as file:
        above: list[str] = []
        for line in file:
            if not line.strip() or (line[0] in MARKS and not line.startswith(ROS)):
                above.append(line[1:].strip())
                continue
            first = _cells(line)
            names = _cells(next((one for one in reversed(above) if one), ""))
            if len(names) == len(first) and all(map(is_number, first)) and not any(map(is_number, names)):
                place = len(above) - next(k for k, one in enumerate(reversed(above)) if one) - 1
                return _Head(names, _separator(line), len(above), [*above[:place], *above[place + 1 :]], is_above=True)
            return _Head(first, _separator(line), len(above), above, is_above=False)
    raise ValueError("must have a header line with the column names")


def _cells(line: str) -> list[str]:
    separator = _separator(line)
    return [cell.strip() for cell in (line.split() if separator == SPACES else line.split(separator))]


def _separator(line: str) -> str:
    mark = max(";,\t", key=line.count)
    return mark if mark in line else SPACES


def is_number(cell: str) -> bool:
    """Return whether a cell is a number, perhaps with a decimal comma."""
    try:
        float(cell.replace(",", "."))
    except ValueError:
        return False
    return True


def numbers(texts: "pd.Series") -> Array:
    """The numbers in a column; NaN for missing numbers, dates and complex numbers."""
    if texts.dtype.kind in "mMc":
        return np.full(len(texts), np.nan)
    import pandas as pd

    texts = texts.where(pd.to_numeric(texts, errors="coerce").notna())
    return np.array(texts.astype(float), dtype=np.float64)  # of texts exact, as not every pandas' own parser is
