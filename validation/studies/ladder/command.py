"""`loopcheck ladder`."""

from typing import Any

import click

from validation.studies.options import RESULTS, Execution, execution_options, robots_argument


@click.command()
@robots_argument
@click.option(
    "--configuration",
    "configurations",
    multiple=True,
    help="horizontal, vertical, given, turned; default: all.",
)
@click.option("--mode", "modes", multiple=True, help="Working mode; default: the first that meets no singularity.")
@click.option("--source", "sources", multiple=True, help="Route, as mujoco/forward; default: all forward routes.")
@execution_options(RESULTS / "ladder")
def command(execution: Execution, **selection: Any) -> int:
    """Measure what steps and solver settings cost and give, and say what to set for 1 %, 0.1 % and 1e-6.

    Every forward route of the ROBOTs, by default of all, over ladders of steps and of the settings of its solver:
    observed orders, floors, and work-precision diagrams.

    \b
    Examples:
      loopcheck ladder 3prr
      loopcheck ladder 6spu --configuration vertical --source mujoco/forward --out ladders
    """
    from validation.studies.ladder.study import LadderStudy

    return execution.run(LadderStudy(**selection))
