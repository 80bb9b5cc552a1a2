"""`loopcheck study readings`."""

import click

from loopcheck.validation.frame.options import RESULTS, Command, Execution, execution_options, option


@click.command(cls=Command, short_help="Which reading of an engine is the effort that acted?")
@option(
    "--source",
    "patterns",
    metavar="ENGINE/as_is",
    multiple=True,
    help="Route `as_is` of an engine, or an engine; may repeat.  [default: all installed engines]",
)
@execution_options(RESULTS / "readings")
def command(patterns: tuple[str, ...], execution: Execution) -> int:
    """Compare every reading of an engine with the effort that acted, on a slide without other forces.

    The change of momentum of the slide gives the effort that acted in each step, without trust in the engine. Motors,
    position servos and velocity servos drive it, with and without a force limit, under every integrator.

    \b
    Examples:
      loopcheck study readings
      loopcheck study readings --source mujoco/as_is --source pybullet
    """
    from loopcheck.validation.studies.readings.study import Readings, routes

    return execution.run(Readings(sources=routes(patterns)))
