"""How results look on a terminal."""

import math
from collections.abc import Iterable, Sequence

import pandas as pd
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.table import Table

from validation.judge.verdicts import CaseVerdict, worst

COLOURS = {
    "disagree": "bold red",
    "not run": "yellow",
    "not comparable": "yellow",
    "agree": "green",
    "as expected": "green",
    "informational": "dim",
    "reference": "dim",
}
"""Colours of the verdicts."""
PIPED = 160
"""Width of what goes into a file or a log, where nothing need be cut [characters]."""


def show(summary: Iterable[RenderableType]) -> None:
    """Print what a study says: texts as they are, whatever their length, and tables."""
    console = Console()
    if not console.is_terminal:
        console = Console(width=PIPED)
    for item in summary:
        if isinstance(item, str):
            console.print(item, soft_wrap=True, markup=False, highlight=False)
        else:
            console.print(item)
    console.file.flush()  # in a pipe too it is there before the page is drawn


def table(columns: Sequence[object], rows: Iterable[Sequence[str]], *, title: str) -> Table:
    """A table with a title; cells may hold markup."""
    shown = Table(*map(escape, map(str, columns)), title=title, title_justify="left")
    for row in rows:
        shown.add_row(*row)
    return shown


def error_table(wide: pd.DataFrame, *, title: str) -> Table:
    """Errors by the names in the index, blank where there is none."""
    rows = ((str(name), *(_error(error) for error in row)) for name, row in wide.iterrows())
    return table([wide.index.name, *wide.columns], rows, title=title)


def verdict_cell(verdicts: Sequence[CaseVerdict]) -> str:
    """The worst of several findings, with the largest error."""
    if not verdicts:
        return ""
    verdict, error, *_ = worst(verdicts)
    return coloured(f"{verdict} {_error(error)}".strip(), verdict)


def awaited(findings: Sequence[CaseVerdict], coming: str) -> str:
    """The largest error of several findings, of which something is still to come."""
    return f"[dim]{_error(worst(findings).error)} {escape(coming)}[/]"


def coloured(text: str, verdict: str) -> str:
    """A text in the colour of a verdict."""
    return f"[{COLOURS[verdict]}]{text}[/]"


def _error(error: float) -> str:
    return "" if math.isnan(error) else f"{error:.1e}"
