"""Presentation of results on a terminal."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.markup import escape
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from loopcheck.robots.errors import one_line
from loopcheck.validation.common.verdicts import CaseVerdict, worst
from loopcheck.validation.execution.progress import text_console

if TYPE_CHECKING:
    import pandas as pd

COLOURS = {
    "disagree": "bold red",
    "not run": "yellow",
    "not comparable": "yellow",
    "not supported": "dim",
    "agree": "green",
    "as expected": "green",
    "informational": "dim",
    "reference": "dim",
}
"""Colours of the verdicts."""


def show(summary: Iterable[RenderableType]) -> None:
    """Print texts and tables of a study, above the progress bars if there are any.

    Args:
        summary: Strings are broken between words. A `Text` is not broken: copied commands and paths stay whole.
    """
    console = text_console()
    for item in summary:
        if isinstance(item, str):
            line = one_line(item)
            text = fill(line, console.width, break_long_words=False, break_on_hyphens=False)
            console.print(Text(text if sys.stdout.isatty() else line), soft_wrap=True)
        elif isinstance(item, Text):
            console.print(Text(one_line(item.plain), item.style), soft_wrap=True)
        else:
            console.print(item)
    console.file.flush()  # a reader of a pipe gets the text before the page is drawn


def table(
    columns: Sequence[object], rows: Iterable[Sequence[str]], *, title: str, splits: bool = True
) -> RenderableType:
    """A table with a title; cells may hold markup.

    A terminal that is too narrow gets several tables, each with the first column, instead of broken cells.

    Args:
        splits: Whether it may become several tables; otherwise cells are broken.
    """
    names = [escape(one_line(str(column))) for column in columns]
    parts = _Parts(escape(one_line(title)), names, [[one_line(str(cell)) for cell in row] for row in rows])
    return parts if splits else parts.whole


@dataclass(frozen=True, slots=True)
class _Parts:
    """Columns of a table, in as many tables as the console needs."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render as many columns a table as fit, at least two."""
        chosen = [0]
        for number in range(1, len(self.columns)):
            if len(chosen) > 1 and self._width([*chosen, number], console, options) > options.max_width:
                yield self._part(chosen)
                chosen = [0]
            chosen.append(number)
        yield self._part(chosen)

    @property
    def whole(self) -> Table:
        """All columns."""
        return self._part(range(len(self.columns)))

    def _width(self, numbers: Sequence[int], console: Console, options: ConsoleOptions) -> int:
        unlimited = options.update(max_width=10_000)
        return Measurement.get(console, unlimited, self._part(numbers)).maximum

    def _part(self, numbers: Sequence[int]) -> Table:
        part = Table(*(self.columns[k] for k in numbers), title=self.title, title_justify="left")
        for row in self.rows:
            part.add_row(*(row[k] for k in numbers))
        return part


def of_tree(loops: int | None) -> str:
    """Addition to the title of a table on a robot without loops."""
    return " (no loop: a tree)" if loops == 0 else ""


def error_table(wide: pd.DataFrame, *, title: str) -> RenderableType:
    """Errors by the names in the index; missing errors are blank."""
    rows = ((escape(str(name)), *(_error(error) for error in row)) for name, row in wide.iterrows())
    return table([wide.index.name, *wide.columns], rows, title=title)


def verdict_cell(verdicts: Sequence[CaseVerdict]) -> str:
    """The worst of several findings, with the largest error."""
    if not verdicts:
        return ""
    finding = worst(verdicts)
    return coloured(f"{finding.word} {_error(finding.error)}".strip(), finding.verdict)


def coloured(text: str, verdict: str) -> str:
    """A text in the colour of a verdict."""
    return f"[{COLOURS[verdict]}]{text}[/]"


def _error(error: float) -> str:
    return "" if math.isnan(error) else f"{error:.1e}"
