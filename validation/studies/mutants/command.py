"""`loopcheck mutants`."""

import click

from validation.studies.options import RESULTS, Execution, execution_options, robots_argument


@click.command()
@robots_argument
@execution_options(RESULTS / "mutants")
def command(robots: tuple[str, ...], execution: Execution) -> int:
    """Seed faults in every route of the ROBOTs, see whether the comparison notices, and write mutants.csv and .html.

    Each robot runs in one case: first variant, first mode, upright. Without a ROBOT: all of them, about ten minutes on
    two cores. Exit status: 0 every fault with an effect above the tolerance of its route is caught; 1 one is not.

    \b
    Example:
      loopcheck mutants 3prr --out mutants
    """
    from validation.studies.mutants.study import Mutants

    return execution.run(Mutants(robots=robots))
