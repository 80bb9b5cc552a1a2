"""Terminal output and page of the atlas."""

from collections.abc import Iterator

import pandas as pd
from rich.console import RenderableType
from rich.markup import escape

from loopcheck.validation.report import terminal
from loopcheck.validation.report.blocks import Section, digits, table

SHOWN = ("id", "class", "loops", "dof", "actuators", "verdict", "as_is_error", "tuned_cost", "tuned_accuracy")
NUMBERS = ("loops", "dof", "actuators", "as_is_error", "tuned_cost", "tuned_accuracy")


def summary(rows: pd.DataFrame) -> Iterator[RenderableType]:
    """A line for each model, and the numbers of models by kind and verdict.

    Args:
        rows: Table of the atlas.
    """
    lines = [[escape(str(row[name])) for name in SHOWN] for row in _in_digits(rows).to_dict("records")]
    yield terminal.table([name.replace("_", " ") for name in SHOWN], lines, title="atlas")
    yield counts(rows)


def counts(rows: pd.DataFrame) -> str:
    """Numbers of models by kind and verdict, without copies, in words.

    Args:
        rows: Table of the atlas.
    """
    own = rows[rows["copies_of"] == ""]
    verdicts = ", ".join(f"{count} {name}" for name, count in own["verdict"].value_counts(sort=False).items())
    kinds = ", ".join(f"{count} {name or 'not read'}" for name, count in own["class"].value_counts(sort=False).items())
    copies = len(rows) - len(own)
    return f"{len(own)} models of {own['repository'].nunique()} repositories, {copies} copies: {kinds}; {verdicts}"


def sections(rows: pd.DataFrame, judged: pd.DataFrame) -> Iterator[Section]:
    """The page: every model, then every source with its verdicts.

    Args:
        rows: Table of the atlas.
        judged: The summary of all checks.
    """
    shown = _in_digits(rows)[[*SHOWN, "start", "copies_of", "repository", "licence", "note"]]
    yield Section(title="Models", anchor="models", blocks=[counts(rows), table(shown)])
    worst = judged.groupby(["source", "verdict"], sort=False)["robot"].nunique().reset_index(name="models")
    yield Section(title="Sources", anchor="sources", blocks=[table(worst)])


def _in_digits(rows: pd.DataFrame) -> pd.DataFrame:
    texts = {name: ["" if x != x else digits(x) for x in rows[name]] for name in NUMBERS}
    return rows.assign(**texts)
