"""Tables as text: CSV with commas, semicolons or tabs; lines above the names may begin with `#` or be empty."""

import csv
import io
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from loopcheck.robots.arrays import Array

if TYPE_CHECKING:
    import pandas as pd

ENCODING = "utf-8-sig"
"""UTF-8, with or without a byte-order mark (as written by Windows programs)."""


def first_row(path: Path) -> list[str]:
    """Cells of the first row below the lines above the table.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If it is not UTF-8, or has no row.
    """
    line, _ = _first_line(path)
    return [cell.strip() for cell in line.split(_separator(line))]


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

    line, above = _first_line(path)
    names = first_row(path)
    for name in names if has_names else ():
        if names.count(name) > 1:
            raise ValueError(f"column names must be unique, got '{name}' {names.count(name)} times")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a cell too many in every row would be lost in silence
        try:
            frame = pd.read_csv(
                path,
                sep=_separator(line),
                skiprows=len(above),
                skipinitialspace=True,
                encoding=ENCODING,
                dtype=str,
                index_col=False,
                header=0 if has_names else None,
            )
        except pd.errors.ParserWarning as error:
            raise ValueError(f"rows must not have more cells than the header ({len(names)} names)") from error
    return frame.rename(columns=str.strip) if has_names else frame, "\n".join(above)


def text_of(columns: Mapping[str, Array]) -> str:
    """A table of numbers with all their digits as CSV: pandas takes four times as long.

    Args:
        columns: Columns by name [any unit], shape (rows,) each; an empty cell stands for NaN.
    """
    names, form = io.StringIO(), ",".join(["%.17g"] * len(columns)) + "\n"
    csv.writer(names, lineterminator="\n").writerow(columns)
    rows = "".join([form % row for row in zip(*(values.tolist() for values in columns.values()), strict=True)])
    return names.getvalue() + rows.replace("nan", "")


def _first_line(path: Path) -> tuple[str, list[str]]:
    """The first line of the table, and the lines above it without their `#`."""
    with path.open(encoding=ENCODING) as file:
        above: list[str] = []
        for line in file:
            if line.strip() and not line.startswith("#"):
                return line, above
            above.append(line[1:].strip())
    raise ValueError("must have a header line with the column names")


def _separator(line: str) -> str:
    return max(",;\t", key=line.count)


def numbers(texts: "pd.Series") -> Array:
    """The numbers in a column; NaN for missing numbers, dates and complex numbers."""
    if texts.dtype.kind in "mMc":
        return np.full(len(texts), np.nan)
    import pandas as pd

    texts = texts.where(pd.to_numeric(texts, errors="coerce").notna())
    return np.array(texts.astype(float), dtype=np.float64)  # of texts exact, as not every pandas' own parser is
