"""What the commands print."""

import importlib.util
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import engines
from robots.robot import configurations, load, modes, names
from validation import sources
from validation.findings import Finding, about_robots, findings, verdict_counts, worst
from validation.independence import bases
from validation.ladder.advice import advice, answer
from validation.tables import Results

if TYPE_CHECKING:
    from validation.sweep.cases import Study
    from validation.sweep.study import Findings as Swept
    from validation.versions.study import Findings as Compared

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
_FINDING = ["verdict", "relative_error", "tolerance", "note"]


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=PIPED)


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
        if reason := engines.on_request(engine):
            routes = [f"--source {name}" for name in engines.names() if name.startswith(f"{engine}/")]
            click.echo(f"  {'':16}on request ({' '.join(routes)}): {reason}")


def print_summary(results: Results, folder: Path) -> None:
    """Print the worst verdict of each source in each configuration, the counts, and where the report is."""
    console = _console()
    by_robot: dict[str, dict[str, dict[str, list[Finding]]]] = {}
    grounds = bases(results)
    for (robot, _, _, configuration), of_case in findings(results).items():
        for source, finding in of_case.items():
            by_robot.setdefault(robot, {}).setdefault(source, {}).setdefault(configuration, []).append(finding)
    for robot, of_robot in by_robot.items():
        columns = list(dict.fromkeys(configuration for row in of_robot.values() for configuration in row))
        matrix = Table("source", *columns, title=f"{robot}: worst relative effort error", title_justify="left")
        for source, row in of_robot.items():
            matrix.add_row(source, *(_cell(row.get(configuration, [])) for configuration in columns))
        console.print(matrix)
        for line in _about(about_robots(results).get(robot, {})):
            console.print(line, soft_wrap=True, markup=False, highlight=False)
        texts = dict.fromkeys(basis.text for case, basis in grounds.items() if case[0] == robot)
        console.print(f"rests on {', or '.join(texts) or 'nothing that agrees'}", soft_wrap=True)
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
        _console().print(_errors(wide, title=f"{robot}: effort error over its scale"))
    click.echo(f"report: {folder / 'errata.html'}")


def print_mutants(found: pd.DataFrame, folder: Path) -> None:
    """Print the kill matrix of each robot, what was not noticed, and the kill rate."""
    from validation.mutants.report import KINDS, percent, sentence
    from validation.mutants.study import CAUGHT, TIMES, kill_rates

    console = _console()
    for robot, rows in found.groupby("robot", sort=False):
        wide = rows.pivot(index="mutant", columns="source", values="result").reindex(rows["mutant"].unique())
        matrix = Table("mutant", *wide.columns, title=f"{robot}: what came of each fault", title_justify="left")
        for mutant, row in wide.fillna("").iterrows():
            matrix.add_row(str(mutant), *(f"[{COLOURS[KINDS[cell]]}]{cell}[/]" if cell else "" for cell in row))
        console.print(matrix)
    unseen = found[~found["result"].isin([*CAUGHT, "shared", "not carried"])]
    for texts in unseen[["robot", "source", "mutant", "result", "note"]].itertuples(index=False):
        console.print(", ".join(map(str, texts)), soft_wrap=True)
    title = f"faults with an effect above {TIMES:g} tolerances, by route"
    rates = Table("source", "caught", "shared", "above", "kill rate", title=title, title_justify="left")
    for source, *numbers, rate in kill_rates(found).itertuples(index=False):
        rates.add_row(source, *map(str, numbers), percent(rate))
    console.print(rates)
    console.print(sentence(found), soft_wrap=True)
    console.print(f"report: {folder / 'mutants.html'}", soft_wrap=True)


def print_versions(found: "Compared", folder: Path) -> None:
    """Print the worst verdict of each source on each robot in each version, and what changes."""
    from validation.versions.report import steps

    console = _console()
    for robot, of_robot in found.table.groupby("robot", sort=False):
        title = f"{robot}: worst relative effort error"
        matrix = Table("source", "configuration", *(f"MuJoCo {v}" for v in found.versions), title=title)
        matrix.title_justify = "left"
        for (source, configuration), rows in of_robot.groupby(["source", "configuration"], sort=False):
            told = [rows[rows["mujoco"] == version] for version in found.versions]
            cells = [_cell([Finding(*row) for row in of[_FINDING].itertuples(index=False)]) for of in told]
            matrix.add_row(str(source), str(configuration), *cells)
        console.print(matrix)
    for sentence in steps(found):
        console.print(sentence, soft_wrap=True, markup=False, highlight=False)
    console.print(f"report: {folder / 'versions.html'}", soft_wrap=True)


def print_advice(rungs: pd.DataFrame, folder: Path) -> None:
    """Print the cheapest settings of each route and robot that meet each target."""
    for robot, rows in advice(rungs).groupby("robot", sort=False):
        title = f"{robot}: cheapest settings within a target; cost: wall time per simulated second"
        matrix = Table("engine", "target", "allowed", "setting", "error", "cost", title=title, title_justify="left")
        for row in rows.to_dict("records"):
            numbers = (f"{row['relative_error']:.1e}", f"{row['cost']:.2g}")
            matrix.add_row(row["route"].split("/")[0], f"{row['target']:g}", row["allowed"], answer(row), *numbers)
        _console().print(matrix)
    click.echo(f"what to set in full, and the diagrams: {folder / 'ladder.html'}")


def print_sweep(found: "Swept", folder: Path) -> None:
    """Print the quantiles of the error of each source, and what was not compared."""
    from validation.sweep.report import quantiles, sentence

    shown = quantiles(found)[["source", "motion", "cases", "median", "99 %", "largest", "its case", "beyond it"]]
    shown = shown.rename(columns={"beyond it": "beyond tolerance"})
    matrix = Table(*shown.columns, title="relative effort error", title_justify="left")
    for row in shown.to_dict("records"):
        matrix.add_row(*(f"{value:.1e}" if isinstance(value, float) else str(value) for value in row.values()))
    _console().print(matrix)
    for reason in found.statistics.reasons.to_dict("records"):
        line = f"{reason['source']}: {reason['result']}: {reason['cases']} cases, as {reason['first cases'][0]}"
        _console().print(f"{line}: {reason['reason']}", soft_wrap=True, markup=False, highlight=False)
    click.echo(sentence(found))
    click.echo(f"report: {folder / 'sweep.html'}")


def print_case(study: "Study", case: int) -> None:
    """Compute one case of a study and print what every source makes of it, and the changes of the parameters."""
    from validation.sweep.cases import compute_cases, effort_columns, nominal

    frame = compute_cases(study, (case,)).to_pandas()
    columns = ["motion", "source", "result", "relative_error", "note", *effort_columns(nominal(study))]
    for row in frame[columns].to_dict("records"):
        click.echo(", ".join(f"{name} {value}" for name, value in row.items() if not _is_nothing(value)))
    for parameter in nominal(study).varied:
        click.echo(f"{frame[parameter.name].iloc[0]:+.6f} %  {parameter.name}")


def _is_nothing(value: object) -> bool:
    return value in (None, "") or (isinstance(value, float) and math.isnan(value))


def print_bench(figures: pd.DataFrame, folder: Path) -> None:
    """Print each figure with its spread, and what is missing."""
    for (study, subject), of_subject in figures.groupby(["study", "subject"], sort=False):
        matrix = Table("quantity", "size", "lowest", "median", "highest", "unit", title=f"{study}: {subject}")
        for row in of_subject.to_dict(orient="records"):
            spread = (f"{row[part]:.3g}" for part in ("lowest", "median", "highest"))
            matrix.add_row(row["quantity"], str(row["size"]), *spread, f"{row['unit']} {row['note']}")
        _console().print(matrix)
    if importlib.util.find_spec("pinocchio") is None:
        click.echo("not measured: Pinocchio is not installed: pip install 'loopcheck[bench]'")
    if importlib.util.find_spec("llvmlite") is None:
        click.echo("measured in numpy: llvmlite is not installed: pip install 'loopcheck[fast]'")
    click.echo(f"figures: {folder / 'bench.csv'}")


def print_benchmarks(found: pd.DataFrame, folder: Path) -> None:
    """Print the error of each source in each published quantity."""
    from validation.benchmarks import matrix

    for name, of_robot in found.groupby("benchmark", sort=False):
        _console().print(_errors(matrix(of_robot).set_index("source"), title=f"{name}: error"))
    click.echo(f"report: {folder / 'benchmarks.html'}")


def _about(robot: Mapping[str, Any]) -> Iterator[str]:
    """What a robot is, what nothing drives, what is odd about it, and what is left out, a line each."""
    if robot.get("in_words"):
        yield str(robot["in_words"])
    for what, known in (("nothing drives", "undriven"), ("odd", "oddities"), ("left out", "left_out")):
        if robot.get(known):
            yield f"{what}: {'; '.join(robot[known])}"


def _errors(wide: pd.DataFrame, *, title: str) -> Table:
    """Errors by what they are of, blank where there is none."""
    found = Table(str(wide.index.name), *map(escape, wide.columns), title=title, title_justify="left")
    for name, row in wide.iterrows():
        found.add_row(str(name), *("" if math.isnan(error) else f"{error:.1e}" for error in row))
    return found


def _cell(found: Sequence[Finding]) -> str:
    """The worst of the findings, with the largest error."""
    if not found:
        return ""
    verdict, error, *_ = worst(found)
    return f"[{COLOURS[verdict]}]{verdict}{'' if math.isnan(error) else f' {error:.1e}'}[/]"
