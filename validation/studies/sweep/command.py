"""`loopcheck sweep`."""

from typing import Any

import click

from validation.studies.options import RESULTS, Execution, FiniteRange, execution_options, scheduler_option


@click.command()
@click.argument("robot", metavar="ROBOT")
@click.option(
    "--cases", type=click.IntRange(min=1), default=1000, show_default=True, help="How many robots and motions."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all that is random.")
@click.option(
    "--spread",
    type=FiniteRange(0, 50),
    default=1.0,
    show_default=True,
    help="How far masses, inertias and lengths may be off, in %.",
)
@click.option(
    "--vary",
    type=click.Choice(["all", "geometry", "inertia"]),
    default="all",
    show_default=True,
    help="What is off; lengths of an overconstrained robot, as 2t1r, do not fit each other then.",
)
@click.option(
    "--motion",
    "motions",
    multiple=True,
    default=("own", "random", "pose"),
    show_default=True,
    help="Kind of motion; may repeat, they are taken in turn.",
)
@click.option(
    "--source",
    "sources",
    multiple=True,
    default=("analytic/lagrange", "mujoco/kkt"),
    show_default=True,
    help="Source to compare with analytic/noc; may repeat.",
)
@click.option("--configuration", default="", help="As listed; default: vertical, or else the last.")
@click.option("--mode", default="", help="Working mode; default: the first that meets no singularity.")
@click.option("--variant", default="default", show_default=True, help="Variant of the parameters.")
@scheduler_option
@click.option("--case", type=click.IntRange(min=0), help="Compute the case of this number alone, and print it.")
@execution_options(RESULTS / "sweep")
def command(execution: Execution, cases: int, case: int | None, scheduler: str | None, **varied: Any) -> int:
    """Compute thousands of cases of a ROBOT: wrong parameters, random motions, random poses.

    Gives the distribution of the effort error of each source, and how the effort of each actuator hangs on each
    parameter. Motions have 11 samples. What is random depends on the seed and the number of a case alone. --scheduler
    needs `pip install 'loopcheck[dask]'` here and on the cluster. --time-limit holds for a case, and for the cases that
    are computed together, which are retried singly where they take longer. Exit status: 0 no error beyond the tolerance
    of its source; 1 one is; 3 a source failed or nothing was compared.

    \b
    Examples:
      loopcheck sweep 3prr --cases 10000 --out sweep
      loopcheck sweep 3rrr --spread 5 --motion own --source mujoco/kkt --source pybullet/kkt
      loopcheck sweep 3prr --case 421
    """
    from validation.studies.sweep.cases import Variation
    from validation.studies.sweep.study import Sweep, describe_case

    variation = Variation(**varied)
    if case is not None:
        for line in describe_case(variation, case):
            click.echo(line)
        return 0
    return execution.run(Sweep(variation=variation, cases=cases, scheduler=scheduler))
