"""What the commands print."""

from pathlib import Path

import click
import pandas as pd
from rich.console import Console
from rich.table import Table

import engines
from robots.robot import configurations, load, modes, names
from validation import sources
from validation.tables import VERDICTS, Results

SEVERITY = ("disagree", "not run", "not comparable", "agree", "informational")
COLOURS = {
    "agree": "green",
    "disagree": "bold red",
    "not run": "yellow",
    "not comparable": "yellow",
    "informational": "dim",
}


def print_catalogue() -> None:
    """Print robots with their variants, modes, configurations and sources, and the engines."""
    for name in names():
        robot = load(name)
        mechanism = robot.mechanism()
        click.echo(f"{name}: {robot.title}")
        for what, known in {
            "variants": robot.variant_names,
            "modes": modes(mechanism),
            "configurations": configurations(mechanism),
            "actuators": [
                f"{a.name} [{u}]" for a, u in zip(mechanism.actuators, mechanism.actuator_units, strict=True)
            ],
            "sources": sources.names(robot),
        }.items():
            click.echo(f"  {what + ':':16}{', '.join(known)}")
    click.echo("engines:")
    versions = engines.versions()
    for engine in dict.fromkeys(route.split("/")[0] for route in engines.names()):
        state = versions.get(engine) or f"not installed: pip install 'loopcheck[{engines.extra(engine)}]'"
        click.echo(f"  {engine + ':':16}{state}")


def print_summary(results: Results, folder: Path) -> None:
    """Print the worst verdict of each source in each configuration, the counts, and where the report is."""
    console, summary = Console(), results.summary
    for robot, of_robot in summary.groupby("robot", sort=False):
        columns = of_robot["configuration"].unique()
        matrix = Table(
            "source", *map(str, columns), title=f"{robot}: worst relative effort error", title_justify="left"
        )
        for source, rows in of_robot.groupby("source", sort=False):
            matrix.add_row(str(source), *(_cell(rows[rows["configuration"] == column]) for column in columns))
        console.print(matrix)
    comparisons = summary.groupby(["robot", "variant", "mode", "configuration", "source"], sort=False)
    worst = comparisons["verdict"].agg(lambda verdicts: min(verdicts, key=SEVERITY.index))
    counts = [f"{(worst == verdict).sum()} {verdict}" for verdict in VERDICTS if (worst == verdict).any()]
    console.print(f"{len(worst)} comparisons: {', '.join(counts)}")
    console.print(f"report: {folder / 'report.html'}", soft_wrap=True)


def _cell(rows: pd.DataFrame) -> str:
    if rows.empty:
        return ""
    verdict = min(rows["verdict"], key=SEVERITY.index)
    error = rows["relative_error"].max()
    number = "" if pd.isna(error) else f" {error:.1e}"
    return f"[{COLOURS[verdict]}]{verdict}{number}[/]"
