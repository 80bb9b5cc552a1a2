"""Tables as text: CSV with commas, semicolons or tabs, and perhaps lines above the names that begin with `#`."""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from robots.arrays import Array

ENCODING = "utf-8-sig"
"""UTF-8, of which programs under Windows write a mark before the first name."""


def read_text_table(path: Path) -> tuple[pd.DataFrame, str]:
    """A table, its cells as the texts that they are, and the lines above it.

    Args:
        path: The file.

    Raises:
        OSError: If it cannot be read.
        ValueError: If it is no table: it is not UTF-8, has no names, a name twice, or more cells in a row than names.
    """
    with path.open(encoding=ENCODING) as file:
        above: list[str] = []
        for line in file:
            if not line.startswith("#"):
                break
            above.append(line[1:].strip())
        else:
            raise ValueError("no line with the names of columns")
    separator = max(",;\t", key=line.count)
    names = [name.strip() for name in line.split(separator)]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"column '{name}' is there {names.count(name)} times")
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
            raise ValueError(f"rows have more cells than there are names, {len(names)}") from error
    return frame.rename(columns=str.strip), "\n".join(above)


def numbers(texts: pd.Series) -> Array:
    """The numbers in a column, NaN where there is none.

    Args:
        texts: The column.
    """
    texts = texts.where(pd.to_numeric(texts, errors="coerce").notna())
    return np.array(texts.astype(float), dtype=np.float64)  # of texts exact, as not every pandas' own parser is
