"""`loopcheck run`."""

from typing import Any

import click

from validation.studies.options import folders_option, robots_argument
from validation.studies.run.options import Running, run_options


@click.command()
@robots_argument
@click.option(
    "--configuration",
    "configurations",
    multiple=True,
    help="horizontal, vertical, given, turned; default: all.",
)
@click.option("--mode", "modes", multiple=True, help="Working mode, a keyframe of the MJCF; default: all.")
@click.option("--variant", "variants", multiple=True, help="Variant of the parameters; default: all.")
@folders_option
@run_options
def command(running: Running, **selection: Any) -> int:
    """Compute every source of the ROBOTs, compare them, and write tables and report.

    Without a ROBOT: all of the catalogue, or of your own folders where --robots names some.

    \b
    Examples:
      loopcheck run 3prr
      loopcheck run 3prr --configuration vertical --source mujoco/kkt --source pybullet/kkt
      loopcheck run --robots my_robots --junit loopcheck.xml --tolerance mujoco/forward=1e-4
    """
    from validation.judge.selection import Selection, plan

    return running.run(plan(Selection(**selection)))
