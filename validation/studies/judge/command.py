"""`loopcheck judge`."""

from pathlib import Path
from typing import Any

import click

from validation.studies.options import RESULTS, Execution, execution_options


@click.command()
@click.argument("model", metavar="MODEL.xml", type=click.Path(path_type=Path))
@click.argument("logs", metavar="LOG.csv...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--configuration", default="", help="Which way gravity points; default: as in the file.")
@click.option("--mode", help="Keyframe to start from where only the drives are logged; default: the first, or qpos0.")
@click.option("--actuated", default="", help="Actuated joints, as J1,J2, instead of the file's actuators.")
@click.option(
    "--effort-time",
    default="",
    metavar="WHEN",
    help="When the efforts acted: held:SECONDS or instantaneous; default: as the log says, else both are tried.",
)
@click.option("--accuracy", type=float, help="Largest residual over the effort's scale that agrees; default: 0.001.")
@click.option("--name", "names", multiple=True, help="Name of a log, in their order; default: the file's. May repeat.")
@click.option(
    "--from", "start", type=float, metavar="SECONDS", help="What is before does not count; default: all does."
)
@click.option(
    "--fit",
    "fitted",
    metavar="WHAT",
    multiple=True,
    help="Fit friction of the drives, or mass:BODY, and judge what is left; may repeat.",
)
@execution_options(RESULTS)
def command(model: Path, logs: tuple[Path, ...], execution: Execution, **options: Any) -> int:
    """Hold logs against the equations of the closed loop: are these the efforts that this motion needs?

    A log is a CSV or Parquet file with t, JOINT.q, perhaps JOINT.qd and JOINT.qdd, or qpos.0 ..., and ACTUATOR.effort,
    from any engine, tool or test bench. Its units, and when its efforts acted, stand in its header or in LOG.toml.

    \b
    Examples:
      loopcheck judge my_robot.xml run.csv
      loopcheck judge my_robot.xml bench.csv --fit friction --fit mass:thigh
      loopcheck judge my_robot.xml mine.csv simscape.csv --effort-time held:0.001 --accuracy 0.01 --from 0.2
    """
    from robots.log_description import effort_time_of
    from validation.studies.judge.study import Asked, judge_of_files

    when = effort_time_of(options.pop("effort_time"), "--effort-time")
    given = {name: options.pop(name) for name in ("accuracy", "start") if options[name] is not None}
    asked = Asked(effort_time=when, fitted=options.pop("fitted"), **given)
    return execution.run(
        judge_of_files(model, logs, asked=asked, **{k: v for k, v in options.items() if v is not None})
    )
