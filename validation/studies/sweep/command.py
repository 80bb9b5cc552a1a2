"""`loopcheck study sweep`."""

from typing import Any

import click

from loopcheck.validation.frame.options import (
    RESULTS,
    Command,
    Execution,
    FiniteRange,
    execution_options,
    loaded_configuration_option,
    mode_option,
    option,
    scheduler_option,
    seed_option,
    target_argument,
    variant_option,
)


@click.command(cls=Command, short_help="Thousands of cases: wrong parameters, random motions.")
@target_argument
@variant_option
@mode_option
@loaded_configuration_option
@option("--cases", type=click.IntRange(min=1), default=1000, show_default=True, help="Number of robots and motions.")
@seed_option
@option(
    "--spread",
    type=FiniteRange(0, 50),
    default=1.0,
    show_default=True,
    help="Largest relative error of masses, inertias and lengths, in %.",
)
@option(
    "--vary",
    type=click.Choice(["all", "geometry", "inertia"]),
    default="all",
    show_default=True,
    help="Parameters with errors. An overconstrained robot (2t1r) cannot close with wrong lengths.",
)
@option(
    "--motion",
    "motions",
    metavar="KIND",
    multiple=True,
    default=("own", "random", "pose"),
    show_default=True,
    help="Kind of motion: own, random or pose; may repeat, then the kinds alternate.",
)
@option(
    "--source",
    "sources",
    metavar="S",
    multiple=True,
    default=("analytic/lagrange", "mujoco/kkt"),
    show_default=True,
    help="Source to compare with analytic/noc; may repeat.",
)
@option("--case", metavar="K", type=click.IntRange(min=0), help="Compute only the case with number K, and print it.")
@scheduler_option
@execution_options(RESULTS / "sweep")
def command(
    execution: Execution, target: str, cases: int, case: int | None, scheduler: str | None, **varied: Any
) -> int:
    """Compute thousands of cases of a TARGET: wrong parameters, random motions, random poses.

    Gives the distribution of the effort error of each source, and the sensitivity of each actuator effort to each
    parameter. Motions have 11 samples. All random numbers follow from the seed and the number of the case. Cases are
    computed in groups; a group that exceeds --time-limit is repeated case by case. --scheduler needs `pip install
    'loopcheck[dask]'` here and on the cluster.

    Exit status: 0 no error above the tolerance of its source; 1 an error above it; 3 a source failed, or no case was
    compared.

    \b
    Examples:
      loopcheck study sweep 3prr --cases 10000 --out sweep
      loopcheck study sweep 3rrr --spread 5 --motion own --source pybullet/kkt
      loopcheck study sweep 3prr --case 421
    """
    from loopcheck.robots.catalogue import absolute, want_targets

    want_targets([target])
    from loopcheck.validation.studies.sweep.cases import Variation
    from loopcheck.validation.studies.sweep.study import Sweep, describe_case

    variation = Variation(target=absolute(target), **varied)
    if case is not None:
        for line in describe_case(variation, case):
            click.echo(line)
        return 0
    return execution.run(Sweep(variation=variation, cases=cases, scheduler=scheduler))
