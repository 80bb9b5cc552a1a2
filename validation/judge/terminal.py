"""Terminal output of judged logs: a table for each log, then the closing lines."""

import re
from collections.abc import Iterator, Mapping, Sequence
from textwrap import shorten
from typing import Any

import pandas as pd
from rich.console import RenderableType
from rich.markup import escape
from rich.text import Text

from loopcheck.validation.check.closing import VERBS, Line, without_option
from loopcheck.validation.common import sources
from loopcheck.validation.common.results import Results
from loopcheck.validation.common.verdicts import SEVERITY, about_robots, shown_errors
from loopcheck.validation.execution.invocation import pasted
from loopcheck.validation.report.terminal import coloured, of_tree, table

RELATIVE = {"rms": "rms", "rms_floor": "floor of rms", "largest": "largest", "largest_floor": "floor"}
"""Columns that are divided by the peak of their actuator [-], with their headings."""
MOST = 4
"""Closing lines before the path of the report."""
LONGEST = 240
"""Length of a note if there are several logs [characters]."""
PROVEN = re.compile(r"(?:log agrees|noise floor) with ((?:--[a-z-]+ [\w:.+\-]+ ?)+)")
"""Options in a note with which a log is within its accuracy."""
UNDECIDED = re.compile(r"undecided by the noise floor: error ([\d.e+-]+), noise floor ([\d.e+-]+),")
"""Error and floor over the peak in the note on an undecided actuator, with two digits."""
ROUNDED_UP = 1.2
"""Suggested accuracy over the sum of both; more than the rounding of three figures to two digits."""
HINTS = 4
"""Hints on a log that was judged alone."""


def summary(results: Results, logs: pd.DataFrame) -> Iterator[RenderableType]:
    """A table of the actuators of each log, and the closing lines."""
    tree = of_tree(max((about.get("loops", 1) for about in about_robots(results).values()), default=1))
    for source, rows in _judged(results).groupby("source", sort=False):
        of_log = logs[(logs["source"] == source) & (logs["assumed"] != "other")].set_index("actuator")
        lines = [
            [
                escape(str(row["actuator"])),
                coloured(str(row["verdict"]), str(row["verdict"])),
                *(_over_peak(of_log, row["actuator"], name) for name in RELATIVE),
            ]
            for row in rows.to_dict("records")
        ]
        yield table(
            ["actuator", "verdict", *RELATIVE.values()],
            lines,
            title=f"{source}{tree}: residual / largest required effort [-]",
        )
    for line in verdict_lines(results):
        yield str(line)


def hints(results: Results) -> Iterator[RenderableType]:
    """Hints on a log that was judged alone, and the next command."""
    for line in _hint_lines(results):
        yield Text(str(line)) if line.command else str(line)


def closing_lines(results: Results) -> list[Line]:
    """The verdict on each log with its reason; a single log also has its hints."""
    return [*verdict_lines(results), *_hint_lines(results)]


def _hint_lines(results: Results) -> list[Line]:
    worst = _worst_rows(_judged(results))
    if len(worst) != 1:
        return []
    (row,) = worst
    _, *found = str(row["note"]).split("; ")
    return [*[Line("Hint", hint) for hint in found[:HINTS]], *_next(results, row), *_resolved(results, row)]


def verdict_lines(results: Results) -> list[Line]:
    """At most four lines: the verdict on each log with its reason."""
    worst = _worst_rows(_judged(results))
    if len(worst) == 1:
        (row,) = worst
        return [_line(row, str(row["note"]).split("; ")[0])]
    shown = worst if len(worst) <= MOST else worst[: MOST - 1]
    lines = [_line(row, shorten(str(row["note"]), LONGEST, placeholder=" …")) for row in shown]
    rest = worst[len(shown) :]
    counts = {verdict: sum(row["verdict"] == verdict for row in rest) for verdict in SEVERITY}
    texts = [f"{count} {verdict}" for verdict, count in counts.items() if count]
    return [*lines, *([Line(f"{len(rest)} more logs", ", ".join(texts))] if rest else [])]


def _next(results: Results, row: Mapping[Any, Any]) -> list[Line]:
    """The command with the options that are proven for a log that disagrees."""
    command = list(map(str, results.run.get("command") or ()))
    named = PROVEN.search(str(row["note"]))
    if row["verdict"] != "disagree" or not command or not named:
        return []
    return [Line("Next", "", pasted(command[1:], named[1].split()))]


def _resolved(results: Results, row: Mapping[Any, Any]) -> list[Line]:
    """The command with the accuracy that an undecided log resolves: error and floor of every actuator fit into it."""
    command = list(map(str, results.run.get("command") or ()))
    undecided = [match for note in _judged(results)["note"].fillna("") if (match := UNDECIDED.match(note))]
    accuracy = max(
        (ROUNDED_UP * (float(error) + float(floor)) for error, floor in map(re.Match.groups, undecided)), default=1
    )
    if row["verdict"] != "not comparable" or not command or accuracy >= 1:
        return []
    return [Line("Next", "", pasted(without_option(command[1:], "--accuracy"), "--accuracy", f"{100 * accuracy:.2g}%"))]


def _judged(results: Results) -> pd.DataFrame:
    return results.summary[results.summary["source"].map(sources.is_log)]


def _worst_rows(judged: pd.DataFrame) -> Sequence[Mapping[Any, Any]]:
    """The worst actuator of each log, worst log first."""
    rank = judged["verdict"].map(SEVERITY.index)
    ordered = judged.assign(rank=rank, error=shown_errors(judged), note=judged["note"].fillna("")).sort_values(
        ["rank", "error"], ascending=[True, False], kind="stable"
    )
    return ordered.drop_duplicates("source").to_dict("records")


def _line(row: Mapping[Any, Any], reason: str) -> Line:
    verb = VERBS.get(row["verdict"], row["verdict"])
    return Line(str(row["source"]), f"{verb} at '{row['actuator']}'{f': {reason}' if reason else ''}")


def _over_peak(of_log: pd.DataFrame, actuator: str, name: str) -> str:
    if actuator not in of_log.index:
        return ""
    row = of_log.loc[actuator]
    return f"{row[name] / row['divisor']:.1e}" if row["divisor"] else ""
