"""Measure the noise of every judged source over the catalogue: `python -m loopcheck.validation.check.efforts.noise`.

`tolerances.toml` registers the largest of these figures: the changes of the efforts under the perturbations of
`loopcheck.validation.check.efforts.resolution`, and for a source without a solver the difference of its formulation
from that of the reference.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.catalogue import names as robot_names
from loopcheck.robots.efforts import Refinable
from loopcheck.robots.robot import Case
from loopcheck.validation.check.efforts.evaluate import evaluate
from loopcheck.validation.check.efforts.resolution import MOVED, REFINED, TIGHTENED, effort_changes
from loopcheck.validation.common import sources
from loopcheck.validation.common.limits import PEAK_OF_ROUND_OFF
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.common.tolerances import registered
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import to_csv
from loopcheck.validation.execution.workers import WorkerFailure, Workers, worker_pool

FORMULATION = "formulation"
"""Distance of the efforts from the reference efforts."""
FIGURES = (MOVED, TIGHTENED, REFINED, FORMULATION)


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
        if peaks[k] > PEAK_OF_ROUND_OFF * peaks.max()
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
@click.option("--robot", "robots", multiple=True, help="Name of a robot; can be repeated. By default all robots.")
@click.option("--source", "names", multiple=True, help="Name of a source; can be repeated. By default all judged.")
@click.option("--jobs", type=click.IntRange(min=1), default=None, help="Worker processes. By default one per core.")
@click.option("--out", type=click.Path(path_type=Path), default=Path("noise.csv"), show_default=True)
def main(robots: tuple[str, ...], names: tuple[str, ...], jobs: int | None, out: Path) -> None:
    """Measure the noise of every judged source over the default variant of all robots.

    Prints the largest figures of each source, for registration, and writes all figures.
    """
    judged = [name for name, tolerance in registered().items() if tolerance.relative_error is not None]
    cases = [
        case
        for case in cases_of(robots or robot_names(), variants=("default",))
        if case.mode not in case.robot.expected
    ]
    table = noise_table(cases, names or judged, Workers(jobs=jobs))
    to_csv(table, out)
    click.echo(largest(table).to_string(index=False))


if __name__ == "__main__":
    from loopcheck.validation.check.efforts.noise import (
        main as command,  # workers find its functions by the name of the module alone
    )

    command()
