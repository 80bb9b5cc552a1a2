"""Known differences between engines and the equations of motion."""

from collections.abc import Mapping, Sequence
from typing import Any

from loopcheck.validation.judge.results import Results
from loopcheck.validation.report.blocks import Block, Cell, Section, Table, digits, folded_if_long

UNBOUNDED = 1e100
"""A size above this stands for no upper bound."""


def explained(results: Results) -> Section:
    """Known differences of the engines on the robots of the run."""
    issues = results.run.get("known_issues") or []
    columns = ["engine", "difference", "size", "cause", "treatment", "reproduce"]
    text = (
        "Differences between these engines and the equations of motion with a known cause. A test reproduces and "
        "measures each difference; if a difference disappears, its test fails."
    )
    blocks: Sequence[Block] = (
        [text, *folded_if_long("Entries", "issues", Table(columns, list(map(_issue, issues))))]
        if issues
        else ["No known differences for these engines and robots."]
    )
    return Section(title="Known differences", anchor="explained", blocks=blocks)


def _issue(issue: Mapping[str, Any]) -> Sequence[Cell]:
    low, high = issue["size"]
    lower = "at least " if high > UNBOUNDED else ""
    size = lower + digits(low) + (f" to {digits(high)}" if low < high <= UNBOUNDED else "")
    shown = f", seen in {', '.join(issue['sources'])}" if issue["sources"] else ""
    return [
        Cell(f"{issue['engine']}\n{issue['versions']}"),
        Cell(f"{issue['title']}{shown}. Needs: {issue['feature']}."),
        Cell(f"{size} [{issue['unit']}]: {issue['quantity']}"),
        Cell(issue["cause"]),
        Cell(issue["remedy"]),
        Cell(issue["reproduce"] + (f"; upstream: {issue['link']}" if issue["link"] else "")),
    ]
