"""What the commands print."""

import math
from collections.abc import Sequence
from pathlib import Path

import click
import pandas as pd
from rich.console import Console
from rich.table import Table

import engines
from robots.robot import configurations, load, modes, names
from validation import sources
from validation.findings import Finding, findings, verdict_counts, worst
from validation.tables import Results

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


def print_catalogue(folders: Sequence[Path]) -> None:
    """Print robots with their variants, modes, configurations and sources, and the engines."""
    for name in names(folders):
        robot = load(name, folders)
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
    console = Console()
    by_robot: dict[str, dict[str, dict[str, list[Finding]]]] = {}
    for (robot, _, _, configuration), of_case in findings(results).items():
        for source, finding in of_case.items():
            by_robot.setdefault(robot, {}).setdefault(source, {}).setdefault(configuration, []).append(finding)
    for robot, of_robot in by_robot.items():
        columns = list(dict.fromkeys(configuration for row in of_robot.values() for configuration in row))
        matrix = Table("source", *columns, title=f"{robot}: worst relative effort error", title_justify="left")
        for source, row in of_robot.items():
            matrix.add_row(source, *(_cell(row.get(configuration, [])) for configuration in columns))
        console.print(matrix)
    counts = verdict_counts(results)
    said = ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)
    console.print(f"{sum(counts.values())} comparisons: {said}")
    own = (results.run.get("tolerances") or {}).get("own") or {}
    if own:
        console.print(f"your own tolerances: {', '.join(f'{source} {limit:g}' for source, limit in own.items())}")
    console.print(f"report: {folder / 'report.html'}", soft_wrap=True)


def print_errata(costs: pd.DataFrame, folder: Path) -> None:
    """Print the largest effort error of each erratum over modes, in each configuration."""
    worst = costs.groupby(["robot", "configuration", "erratum"], sort=False)["relative_error"].max()
    for robot, of_robot in worst.groupby("robot", sort=False):
        wide = of_robot.droplevel("robot").unstack("configuration", sort=False)
        matrix = Table("erratum", *wide.columns, title=f"{robot}: effort error over the peak", title_justify="left")
        for erratum, row in wide.iterrows():
            matrix.add_row(str(erratum), *("" if math.isnan(error) else f"{error:.1e}" for error in row))
        Console().print(matrix)
    click.echo(f"report: {folder / 'errata.html'}")


def _cell(found: Sequence[Finding]) -> str:
    """The worst of the findings, with the largest error."""
    if not found:
        return ""
    verdict, error, *_ = worst(found)
    return f"[{COLOURS[verdict]}]{verdict}{'' if math.isnan(error) else f' {error:.1e}'}[/]"
