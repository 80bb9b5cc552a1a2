"""Parts of a report: paragraphs, lists, tables, pictures and sections, and the text form of values."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from loopcheck.robots.errors import one_line
from loopcheck.validation.common.verdicts import MEANING
from loopcheck.validation.execution.journal import Task

if TYPE_CHECKING:
    import pandas as pd

NOTHING = "\N{EN DASH}"
LONG = 16
"""A table with more rows is folded at first."""


class Cell(NamedTuple):
    """A cell of a table."""

    text: str
    kind: str = ""
    """`number`, or a verdict."""
    link: str = ""
    """Anchor it leads to."""


class Table(NamedTuple):
    """A table; without columns, a list of facts."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


class Picture(NamedTuple):
    """A figure."""

    svg: str
    alt: str
    caption: str
    chart: Mapping[str, Any] | None = None
    """The same for plotly.js: `data`, `layout`, and the rows of panels."""

    @property
    def uri(self) -> str:
        """The figure as a data URI."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg.encode()).decode()


class Movie(NamedTuple):
    """An animated robot; on paper and without JavaScript, its first pose."""

    drawing: str
    """SVG of the first pose."""
    movie: Mapping[str, Any]
    """Places of its shapes over time, as `loopcheck.validation.report.charts` makes them."""
    alt: str
    caption: str


class Code(NamedTuple):
    """Lines of a file or of a difference between files, as they are."""

    code: str


class OnRequest(NamedTuple):
    """A task that a page contains only with `--all-figures`."""

    task: Task


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Blocks under a heading."""

    title: str
    anchor: str
    blocks: Sequence[Block]
    verdict: str = ""
    """Verdict beside the title."""
    folded: bool | None = None
    """Whether it is folded at first; None if it cannot be folded."""


Block: TypeAlias = str | Sequence[str] | Table | Picture | Movie | Code | Section | Task | OnRequest
"""A string is a paragraph, a sequence of strings a list; a task returns a list of blocks that replace it."""


def facts(facts: Mapping[str, Any]) -> Table:
    """A table of names and values; missing values are left out."""
    return Table((), [[Cell(name), Cell(plain(value))] for name, value in facts.items() if plain(value) != NOTHING])


def table(frame: pd.DataFrame) -> Table:
    """A table of a frame's columns."""
    rows = frame.to_dict("split")["data"]
    return Table([str(column) for column in frame.columns], [[cell(value) for value in row] for row in rows])


def folded_if_long(title: str, anchor: str, table: Table) -> Sequence[Block]:
    """A table, under a title and folded if it is long."""
    return [Section(title=title, anchor=anchor, folded=True, blocks=[table])] if len(table.rows) > LONG else [table]


def cell(value: object) -> Cell:
    """A value as a cell: numbers to the right, verdicts in their colour."""
    text = plain(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return Cell(text, "number" if is_number else text if text in MEANING else "")


def plain(value: object) -> str:
    """Whatever JSON or a table can hold, as text."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {plain(item)}" for key, item in value.items()) or NOTHING
    if isinstance(value, list | tuple):
        return ", ".join(map(plain, value)) or NOTHING
    if isinstance(value, float):
        return digits(value)
    return NOTHING if value in (None, "") else str(value)


def digits(value: float) -> str:
    """A number with three or four significant digits."""
    if math.isnan(value):
        return NOTHING
    return f"{value:.4g}" if value == 0 or 1e-3 <= abs(value) < 1e5 else f"{value:.2e}"


def percent(ratio: float) -> str:
    """A ratio in percent with two significant digits, or below a hundredth of a percent as a number."""
    if math.isnan(ratio):
        return NOTHING
    return f"{two_digits(100 * ratio)} %" if ratio == 0 or ratio >= 1e-4 else f"{ratio:.1e}"


def two_digits(value: float) -> str:
    """A number with two significant digits."""
    return digits(float(f"{value:.2g}")) if value == 0 or value >= 1e-3 else f"{value:.1e}"


def line(text: str) -> str:
    """A text as one line of Markdown, without markup of tables, of links or of HTML."""
    text = " ".join(one_line(text).split()).replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;")
    return text.replace("|", "\\|").replace("](", "]\\(")


def pipes(table: Table) -> str:
    """A table in Markdown."""
    from tabulate import tabulate

    width = max([len(table.columns), *map(len, table.rows)])
    headers = [*map(line, table.columns), *[""] * (width - len(table.columns))]
    return tabulate([[line(cell.text) for cell in row] for row in table.rows], headers, "pipe", disable_numparse=True)
