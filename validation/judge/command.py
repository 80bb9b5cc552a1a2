"""`loopcheck judge`."""

from pathlib import Path
from typing import Any

import click

from loopcheck.validation.frame.options import (
    JUDGEMENT,
    RESULTS,
    Accuracy,
    Command,
    Execution,
    accuracy_option,
    actuated_option,
    all_figures_option,
    configuration_option,
    execution_options,
    leave_out_option,
    mode_option,
    option,
    target_argument,
)


class _Start(click.ParamType):  # type: ignore[type-arg] # generic only since 8.4
    """A time, or `auto`."""

    name = "start"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float | None:
        """Convert a number; None of `auto`."""
        if value in (None, "auto"):
            return None
        try:
            return float(value)
        except ValueError:
            self.fail(f"must be a time in s or auto, got '{value}'", param, ctx)


@click.command(cls=Command, short_help="Is the effort in this log right?")
@target_argument
@click.argument("logs", metavar="LOG...", nargs=-1, required=True, type=click.Path(path_type=Path))
@mode_option
@configuration_option
@actuated_option
@leave_out_option
@option(
    "--effort-time",
    default="",
    metavar="WHEN",
    group=JUDGEMENT,
    help="Time at which the efforts acted, with S in seconds: held:S (for S from the time of the row on), held-until:S "
    "(for S up to the time of the row), or instantaneous.  [default: as in the log, else all three are tried]",
)
@option(
    "--effort-side",
    "side",
    type=click.Choice(["motor", "joint"]),
    group=JUDGEMENT,
    help="Side of the gear at which the efforts are logged.  [default: as in the log, or motor]",
)
@accuracy_option("Largest effort error that agrees, relative to the largest required effort.  [default: 0.001]")
@option(
    "--internal-load",
    type=Accuracy(),
    metavar="A",
    group=JUDGEMENT,
    help="Largest internal load of redundant actuators, relative to the largest required effort.  [default: 1]",
)
@option(
    "--from",
    "start",
    type=_Start(),
    metavar="S",
    default="auto",
    show_default=True,
    group=JUDGEMENT,
    help="Ignore samples before this time in seconds. auto: an unsettled start of a log that does not agree.",
)
@option(
    "--fit",
    "fitted",
    metavar="WHAT",
    multiple=True,
    group=JUDGEMENT,
    help="Fit a parameter and judge the remaining error: friction (at least 0), mass:BODY (at least 0 in total), shift "
    "(of the time of the efforts), or offset (of the efforts); may repeat.",
)
@option(
    "--name",
    "names",
    metavar="NAME",
    multiple=True,
    help="Name of a log in the report, in the order of the logs; may repeat.  [default: file name]",
)
@all_figures_option
@execution_options(RESULTS / "judge")
def command(target: str, logs: tuple[Path, ...], execution: Execution, all_figures: bool, **options: Any) -> int:
    """Check whether the efforts in a LOG are the efforts that its motion requires.

    A LOG is a CSV or Parquet file with t, JOINT.q (and JOINT.qd, JOINT.qdd if logged) or qpos.0 ..., and
    ACTUATOR.effort, or forces in joints as CONNECTION.force.x, from any engine, tool or test bench; joint states of
    ROS, a MAT file, or arrays of an own loop (.npz). Names such as qpos_0, tau[1] or hip_pos are known. Units, further
    names and the time at which the efforts acted are stated in its header or in LOG.toml.

    \b
    Examples:
      loopcheck judge my_robot.xml run.csv
      loopcheck judge my_robot.xml bench.csv --fit friction --fit mass:thigh
      loopcheck judge my_robot.xml rosbag2_2026_03_01 --effort-side joint
      loopcheck judge my_robot.xml run.csv --effort-time held:0.001 --from 0.2
      loopcheck judge 3prr mine.csv simscape.csv --accuracy 1%
    """
    from loopcheck.analytic.logs.parameters import want_parameters
    from loopcheck.robots.catalogue import want_targets
    from loopcheck.robots.formats.losses import want_losses
    from loopcheck.robots.logs.log_description import effort_time_of
    from loopcheck.robots.logs.log_files import read_log
    from loopcheck.robots.logs.log_tables import files_of_log
    from loopcheck.validation.common.targets import case_of

    want_targets([target])
    for log in logs:
        files_of_log(log)
    when = effort_time_of(options.pop("effort_time"), "--effort-time")
    leave_out = options.pop("leave_out")
    of_target = {name: options.pop(name) for name in ("mode", "configuration", "actuated")}
    case = case_of(target, leave_out=leave_out, **of_target)
    want_losses(leave_out, case.mechanism.losses)
    want_parameters(options["fitted"], case.mechanism)
    for log in logs:  # bad logs need no workers
        end = read_log(log, case.mechanism, effort_time=when, side=options["side"]).t[-1]
        if options["start"] is not None and options["start"] > end:
            raise click.BadParameter(
                f"must be before the end of {log} at {end:.6g} s, got {options['start']:g}", param_hint="--from"
            )
    execution.prepare()
    from loopcheck.validation.judge.logs import LogOptions
    from loopcheck.validation.judge.study import judge_of_files

    given = {
        name: options.pop(name) for name in ("accuracy", "internal_load", "start", "side") if options[name] is not None
    }
    asked = LogOptions(effort_time=when, fitted=options["fitted"], **given)
    study = judge_of_files(case, logs, asked=asked, names=options["names"])
    return execution.run(study, all_figures=all_figures)
