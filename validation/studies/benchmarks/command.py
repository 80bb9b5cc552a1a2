"""`loopcheck benchmarks`."""

import click

from validation.studies.options import RESULTS, Execution, execution_options, robots_argument


@click.command()
@robots_argument
@execution_options(RESULTS / "benchmarks")
def command(robots: tuple[str, ...], execution: Execution) -> int:
    """Measure forward dynamics against published free motions, and write benchmarks.csv and benchmarks.html.

    \b
    Example:
      loopcheck benchmarks andrews
    """
    from validation.studies.benchmarks.study import Benchmarks

    return execution.run(Benchmarks(robots=robots))
