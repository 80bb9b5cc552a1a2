"""`loopcheck new`."""

from pathlib import Path

import click

from loopcheck.validation.frame.options import Command, actuated_option, names_of, option


@click.command(cls=Command, short_help="Make the folder of a robot from a model file.")
@click.argument("name", metavar="NAME")
@click.argument("model", metavar="TARGET", type=click.Path(path_type=Path))
@actuated_option
@option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=Path(),
    help="Folder to put the folder NAME into.  [default: the current folder]",
)
def command(name: str, model: Path, actuated: str, out: Path) -> int:
    """Make the folder NAME with a copy of a model file and a robot.toml; the folder is a TARGET of every command.

    Files that the model includes are copied too. Complete the title and source in robot.toml and the licence in
    README.md. A robot in the folder `robots` of a checkout is part of the catalogue and of the test suite.

    \b
    Examples:
      loopcheck new gripper my_gripper.xml
      loopcheck new leg leg.xml --actuated hip,knee --out my_robots
    """
    from loopcheck.robots.catalogue import want_targets
    from loopcheck.validation.execution.invocation import pasted
    from loopcheck.validation.new.new_robot import add_robot

    want_targets([model])
    folder = add_robot(name, model, catalogue=out, actuated=names_of(actuated))
    click.echo(f"{folder}: added. Complete title and source in robot.toml, and source and licence in README.md.")
    click.echo(f"Next: {pasted('check', str(folder))}")
    return 0
