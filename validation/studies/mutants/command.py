"""`loopcheck mutants`."""

import click

from validation.studies.options import RESULTS, Execution, execution_options, robots_argument


@click.command()
@robots_argument
@click.option(
    "--source",
    "routes",
    multiple=True,
    help="Route, as mjx/as_is; may repeat; default: all that are judged, and those as they are but slow ones.",
)
@execution_options(RESULTS / "mutants")
def command(robots: tuple[str, ...], routes: tuple[str, ...], execution: Execution) -> int:
    """Seed faults in every route of the ROBOTs, see whether the comparison notices, and write mutants.csv and .html.

    Faults of the model that the reference shares are seeded in both; those that a route shares as well are for the
    robot's files, read past our own reading, to catch. Routes that run a robot as it is have other numbers taken for
    the effort, held against their own error. Each robot runs in one case: first variant, first mode, upright.
    Without a ROBOT: all of them, about fifteen minutes on two cores. Exit status: 0 every fault with an effect above
    the tolerance of its route is caught; 1 one is not; 3 none was there, or a route did not run.

    \b
    Examples:
      loopcheck mutants 3prr --out mutants
      loopcheck mutants 6spu --source mujoco_warp/as_is
    """
    from validation.studies.mutants.study import Mutants

    return execution.run(Mutants(robots=robots, routes=routes))
