"""Tables as text: CSV with commas, semicolons or tabs; lines above the names may begin with `#` or be empty."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from loopcheck.robots.arrays import Array

if TYPE_CHECKING:
    import pandas as pd

ENCODING = "utf-8-sig"
"""UTF-8, with or without a byte-order mark (as written by Windows programs)."""


def read_text_table(path: Path) -> "tuple[pd.DataFrame, str]":
    """A table, its cells as the texts that they are, and the lines above it.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is no table: it is not UTF-8, has no names, a name twice, or more cells in a row than names.
    """
    import pandas as pd  # takes half a second, for which no start of a command has to wait

    with path.open(encoding=ENCODING) as file:
        above: list[str] = []
        for line in file:
            if line.strip() and not line.startswith("#"):
                break
            above.append(line[1:].strip())
        else:
            raise ValueError("must have a header line with the column names")
    separator = max(",;\t", key=line.count)
    names = [name.strip() for name in line.split(separator)]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"column names must be unique, got '{name}' {names.count(name)} times")
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)  # a cell too many in every row would be lost in silence
        try:
            frame = pd.read_csv(
                path,
                sep=separator,
                skiprows=len(above),
                skipinitialspace=True,
                encoding=ENCODING,
                dtype=str,
                index_col=False,
            )
        except pd.errors.ParserWarning as error:
            raise ValueError(f"rows must not have more cells than the header ({len(names)} names)") from error
    return frame.rename(columns=str.strip), "\n".join(above)


def numbers(texts: "pd.Series") -> Array:
    """The numbers in a column; NaN for missing numbers, dates and complex numbers."""
    if texts.dtype.kind in "mMc":
        return np.full(len(texts), np.nan)
    import pandas as pd

    texts = texts.where(pd.to_numeric(texts, errors="coerce").notna())
    return np.array(texts.astype(float), dtype=np.float64)  # of texts exact, as not every pandas' own parser is
