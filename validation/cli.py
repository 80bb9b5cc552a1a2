"""The command line. Everything heavy is imported inside a command, so that `--help` answers at once."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import click

from loopcheck.robots.errors import HarnessError, one_line
from loopcheck.robots.releases import extras, too_old
from loopcheck.validation.execution.errors import internal_error
from loopcheck.validation.execution.invocation import as_called, pasted
from loopcheck.validation.frame.options import Commands

HERE = Path(__file__).parent
BAD_INPUT, OWN_ERROR, STOPPED = 2, 70, 130
QUESTIONS = {
    "Is the torque in my log right?": "judge my_robot.xml run.csv",
    "Which settings make my simulation right?": "tune my_robot.xml --accuracy 1%",
    "What does my serial model need?": "serial leg.xml leg_serial.xml",
    "Does my engine agree?": "check my_robot.xml",
    "Is this file sound?": "gate my_robot.xml",
}
"""The questions that loopcheck answers, each with a command, in the order of demand."""


def main() -> None:
    """Entry point. Bad input gives one line on stderr and exit status 2, an internal error one line and 70."""
    try:
        status = cli(standalone_mode=False)
    except (HarnessError, click.ClickException) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        click.echo(f"loopcheck: {as_called(one_line(' '.join(message.split())))}", err=True)
        for line in getattr(error, "example", "").splitlines():
            click.echo(f"  {one_line(line)}", err=True)
        status = BAD_INPUT
    except click.exceptions.Abort:
        click.echo("loopcheck: interrupted", err=True)
        status = STOPPED
    except Exception as error:
        old = too_old(*extras())  # of an optional package, which nobody asked for if no command fails
        click.echo(f"loopcheck: {old or as_called(one_line(internal_error(error)))}", err=True)
        status = BAD_INPUT if old else OWN_ERROR
    sys.exit(status)


def study_modules() -> dict[str, str]:
    """Module of the command of each study, by name, found by file."""
    names = sorted(path.parent.name for path in (HERE / "studies").glob("*/command.py"))
    return {name.replace("_", "-"): f"loopcheck.validation.studies.{name}.command" for name in names}


class Main(Commands):
    """The commands that answer questions, then the others."""

    modules: ClassVar[Mapping[str, str]] = {
        **{
            name: f"loopcheck.validation.{name}.command"
            for name in ("judge", "tune", "serial", "check", "gate", "same", "versions", "convert", "new")
        },
        **{name: f"loopcheck.validation.commands.{name}" for name in ("list", "report", "engines")},
    }


class Studies(Commands):
    """The commands of the group `study`."""

    modules: ClassVar[Mapping[str, str]] = study_modules()
    removed: ClassVar[Mapping[str, str]] = {
        "evidence": "in a checkout, python -m docs.evidence computes the figures of the documents",
        "mutants": "tests/faults in a checkout has its faults, with what finds each",
        "speed": "docs/benchmark/README.md compares the speed with that of other programs",
        "versions": "loopcheck versions compares the releases of an engine, its option --efforts their efforts",
        "throughput": "docs/reference/engines.md has the last figures of batches",
    }


@click.group(
    cls=Main,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    invoke_without_command=True,
)
@click.version_option(package_name="loopcheck")
@click.pass_context
def cli(context: click.Context) -> int:
    """Check whether a physics engine gets the actuator efforts of a closed-loop robot right.

    Serial arms are robots too: every command takes a model without loops.

    A TARGET is the name of a catalogue robot (see `loopcheck list`), a model file (MJCF, URDF with its loop file, SDF,
    USD), a folder with robot.toml, or a public model, which is downloaded: atlas:NAME (a model of the atlas) or
    menagerie:NAME (a folder of MuJoCo Menagerie).

    \b
    Examples:
      loopcheck check 3prr
      loopcheck check my_robot.xml --accuracy 5%
      loopcheck judge my_robot.xml run.csv

    Run the same command again to resume after an interruption.

    \b
    Exit status, in order of precedence:
      2   bad input
      70  internal error: the message names the file with the traceback
      1   at least one judged comparison disagrees
      3   something was not comparable or did not run
      0   every judged comparison agrees

    \b
    Shell completion, for bash (zsh and fish likewise):
      eval "$(_LOOPCHECK_COMPLETE=bash_source loopcheck)"
    """
    if context.invoked_subcommand is None:
        for question, command in QUESTIONS.items():
            click.echo(f"{question}\n    {pasted(command.split())}\n")
        click.echo(f"Robots: {pasted('list')}. All commands and options: {pasted('--help')}.")
    return 0


@cli.result_callback()
def _status(status: int) -> int:
    return status


@cli.group("study", cls=Studies, short_help="Run a study: wrong parameters, step sizes, versions, ...")
def _study() -> None:
    """Run a study: step sizes, engine versions, derivatives, wrong parameters, and more.

    \b
    Examples:
      loopcheck study refinement 3prr
      loopcheck study sweep 3prr --cases 100
    """
