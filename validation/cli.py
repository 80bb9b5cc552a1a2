"""The command line. Everything heavy is imported inside a command, so that `--help` answers at once."""

import sys
from importlib import import_module
from pathlib import Path

import click

from robots.errors import HarnessError
from validation.execution.errors import internal_error

HERE = Path(__file__).parent
BAD_INPUT, OWN_ERROR, STOPPED = 2, 70, 130


def main() -> None:
    """Entry point: bad input is one line on stderr and exit status 2, an error of our own one line and 70."""
    try:
        status = cli(standalone_mode=False)
    except (HarnessError, click.ClickException) as error:
        message = error.format_message() if isinstance(error, click.ClickException) else str(error)
        click.echo(f"loopcheck: {' '.join(message.split())}", err=True)
        status = BAD_INPUT
    except click.exceptions.Abort:
        click.echo("loopcheck: interrupted", err=True)
        status = STOPPED
    except Exception as error:
        click.echo(f"loopcheck: {internal_error(error)}", err=True)
        status = OWN_ERROR
    sys.exit(status)


class Commands(click.Group):
    """The commands of `validation/commands/NAME.py` and `validation/studies/NAME/command.py`, imported when needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return sorted(_modules())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        module = _modules().get(cmd_name)
        command: click.Command | None = import_module(module).command if module else None
        return command


def _modules() -> dict[str, str]:
    """The module of each command."""
    others = {path.stem: f"validation.commands.{path.stem}" for path in (HERE / "commands").glob("[!_]*.py")}
    studies = (path.parent.name for path in (HERE / "studies").glob("*/command.py"))
    return others | {name: f"validation.studies.{name}.command" for name in studies}


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    no_args_is_help=True,
)
@click.version_option(package_name="loopcheck")
def cli() -> None:
    """Say whether a physics engine gets the actuator efforts of a closed-loop robot right.

    \b
    Examples:
      loopcheck list
      loopcheck run 3prr
      loopcheck run 3prr --configuration vertical --mode plus --source mujoco/forward --out results
      loopcheck check my_robot.xml
      loopcheck new my_robot my_robot.xml
      loopcheck report results

    The same command in the same folder goes on after a kill: what has been computed is not computed again.

    Exit status of all commands: 0 every judged comparison agrees; 1 at least one disagrees; 3 none disagrees but
    something was not comparable or did not run; 2 bad input; 70 an error of our own, which is before 1 and 3.
    """
