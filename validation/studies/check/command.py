"""`loopcheck check`."""

from pathlib import Path
from typing import Any

import click

from validation.studies.run.options import Running, run_options


@click.command()
@click.argument("model", metavar="MODEL.xml", type=click.Path(path_type=Path))
@click.option(
    "--motion", type=click.Path(path_type=Path), help="CSV with t and NAME.q, NAME.qd, NAME.qdd; default: made."
)
@click.option("--mode", help="Keyframe to start from; default: the first, or qpos0 where there is none.")
@click.option("--actuated", default="", help="Actuated joints, as J1,J2, instead of the file's actuators.")
@run_options
def command(model: Path, running: Running, **of_file: Any) -> int:
    """Check any MJCF: move it, compute every source, compare them, and write tables and report.

    Without a motion it makes its own: smooth, from rest, inside the joint limits, away from singularities.

    \b
    Examples:
      loopcheck check my_robot.xml
      loopcheck check my_robot.xml --mode closed --actuated hip,knee --motion walk.csv --out results
      loopcheck check my_robot.xml --junit loopcheck.xml --tolerance mujoco/as_is=0.05
    """
    from validation.studies.check.cases import cases_of_file

    return running.run(cases_of_file(model, **of_file))
