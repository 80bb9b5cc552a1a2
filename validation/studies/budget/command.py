"""`loopcheck budget`."""

import click

from validation.studies.options import RESULTS, Execution, execution_options, robots_argument


@click.command()
@robots_argument
@execution_options(RESULTS / "budget")
def command(robots: tuple[str, ...], execution: Execution) -> int:
    """Say what the error of simulations as they are is made of, and write budget.csv and budget.html.

    \b
    Example:
      loopcheck budget 3prr
    """
    from validation.studies.budget.study import Budget

    return execution.run(Budget(robots=robots))
