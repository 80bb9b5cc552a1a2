"""Known differences between engines and the equations of motion."""

from collections.abc import Mapping, Sequence
from typing import Any

from validation.judge.results import Results
from validation.report.blocks import Block, Cell, Section, Table, digits, folded_if_long

UNBOUNDED = 1e100
"""A size above this stands for no upper bound."""


def explained(results: Results) -> Section:
    """The entries of the ledger that concern the engines and robots of the run."""
    issues = results.run.get("known_issues") or []
    columns = ["engine", "difference", "size", "cause", "what loopcheck does", "reproduce"]
    text = (
        "Differences between these engines and the equations of motion whose cause is known. Each is measured by the "
        "test that reproduces it, and an entry that no longer does fails the suite."
    )
    blocks: Sequence[Block] = (
        [text, *folded_if_long("Entries", "issues", Table(columns, list(map(_issue, issues))))]
        if issues
        else ["None is known here."]
    )
    return Section(title="Explained differences", anchor="explained", blocks=blocks)


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
