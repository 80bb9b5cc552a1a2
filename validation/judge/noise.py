"""Measures the noise of every judged source over the catalogue: `python -m validation.judge.noise`.

What `tolerances.toml` registers is the largest of these figures: what the changes of `validation.judge.resolution` do
to the efforts and, of a source without a solver of its own, how far its formulation is from that of the reference.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

from analytic.motion.prescribe import prescribe
from robots.efforts import Refinable
from robots.robot import Case
from robots.robot import names as robot_names
from validation.execution.journal import Task
from validation.execution.tables import to_csv
from validation.execution.workers import WorkerFailure, Workers, worker_pool
from validation.judge import sources
from validation.judge.evaluate import evaluate
from validation.judge.resolution import MOVED, REFINED, TIGHTENED, effort_changes
from validation.judge.selection import Selection, plan
from validation.judge.tolerances import registered

FORMULATION = "formulation"
"""How far the efforts are from those of the reference."""
FIGURES = (MOVED, TIGHTENED, REFINED, FORMULATION)
NOTHING = 1e-11
"""Peak of an actuator that carries nothing but round-off, over the largest of the case [-]."""


def noise_rows(case: Case, name: str) -> list[Mapping[str, Any]]:
    """A row for each actuator of a case that carries something: the figures over its own peak [-]."""
    motion = prescribe(case)
    reference = evaluate(case, motion, sources.REFERENCE).compared
    efforts = evaluate(case, motion, name).compared
    if reference is None or efforts is None:
        return []
    peaks = np.abs(reference.effort).max(axis=0)
    figures: dict[str, Any] = dict(effort_changes(case, motion, name, efforts))
    if not isinstance(sources.load(name), Refinable):
        figures[FORMULATION] = np.abs(efforts.effort - reference.effort).max(axis=0)
    robot, variant, mode, configuration = case.key
    described = {"robot": robot, "variant": variant, "mode": mode, "configuration": configuration, "source": name}
    return [
        {
            **described,
            "actuator": actuator,
            **{what: np.nan if isinstance(change, str) else change[k] / peaks[k] for what, change in figures.items()},
        }
        for k, actuator in enumerate(efforts.actuators)
        if peaks[k] > NOTHING * peaks.max()
    ]


def noise_table(cases: Sequence[Case], names: Sequence[str], workers: Workers) -> pd.DataFrame:
    """The figures of all sources in all cases; a source that a robot leaves out, or that fails, has no rows."""
    tasks = [
        Task(noise_rows, (case, name), engine=sources.engine_of(name))
        for name in names
        for case in cases
        if name not in case.robot.without
    ]
    with worker_pool(workers, preload=[evaluate.__module__]) as pool:
        results = pool.results(tasks, "noise")
    rows = [row for result in results if not isinstance(result, WorkerFailure) for row in result]
    columns = ["robot", "variant", "mode", "configuration", "source", "actuator", *FIGURES]
    return pd.DataFrame(rows, columns=columns)


def largest(table: pd.DataFrame) -> pd.DataFrame:
    """The row of the largest of each figure, by source."""
    where = ["robot", "mode", "configuration", "actuator"]
    figures = table.melt([*where, "source"], FIGURES, "figure", "noise").dropna(subset="noise")
    by_figure = figures.sort_values("noise", ascending=False).drop_duplicates(["source", "figure"])
    return by_figure.sort_values(["source", "noise"], ascending=[True, False])[["source", "figure", *where, "noise"]]


@click.command()
@click.option("--robot", "robots", multiple=True, help="Only this robot; may repeat. By default all.")
@click.option("--source", "names", multiple=True, help="Only this source; may repeat. By default all that are judged.")
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Worker processes; by default one a core.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("noise.csv"), show_default=True)
def main(robots: tuple[str, ...], names: tuple[str, ...], jobs: int | None, out: Path) -> None:
    """Measure the noise of every judged source over the default variant of all robots.

    Prints the largest figures of each source, which are to be registered, and writes all of them.
    """
    judged = [name for name, tolerance in registered().items() if tolerance.relative_error is not None]
    cases = [
        case
        for case in plan(Selection(robots=robots or robot_names(), variants=("default",)))
        if case.mode not in case.robot.expected
    ]
    table = noise_table(cases, names or judged, Workers(jobs=jobs))
    to_csv(table, out)
    click.echo(largest(table).to_string(index=False))


if __name__ == "__main__":
    from validation.judge.noise import main as command  # workers find its functions by the name of the module alone

    command()
