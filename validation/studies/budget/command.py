"""`loopcheck budget`."""

import click

from validation.studies.options import RESULTS, Execution, execution_options, robots_argument


@click.command()
@robots_argument
@click.option("--source", "sources", multiple=True, help="Route, as mjx/as_is; may repeat; default: all but slow ones.")
@execution_options(RESULTS / "budget")
def command(robots: tuple[str, ...], sources: tuple[str, ...], execution: Execution) -> int:
    """Say what the error of simulations as they are is made of, and write budget.csv and budget.html.

    \b
    Examples:
      loopcheck budget 3prr
      loopcheck budget four_bar --source mujoco/as_is --source mjx/as_is
    """
    from validation.studies.budget.study import Budget

    return execution.run(Budget(robots=robots, sources=sources))
