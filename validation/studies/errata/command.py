"""`loopcheck errata`."""

import click

from validation.studies.options import RESULTS, Execution, execution_options, robots_argument


@click.command()
@robots_argument
@execution_options(RESULTS / "errata")
def command(robots: tuple[str, ...], execution: Execution) -> int:
    """Measure what each erratum of the papers costs, and write errata.csv and errata.html.

    \b
    Example:
      loopcheck errata 3prr
    """
    from validation.studies.errata.study import Errata

    return execution.run(Errata(robots=robots))
