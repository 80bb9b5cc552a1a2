"""`loopcheck new`."""

from pathlib import Path

import click


@click.command()
@click.argument("name", metavar="NAME")
@click.argument("model", metavar="MODEL.xml", type=click.Path(path_type=Path))
@click.option("--actuated", default="", help="Actuated joints, as J1,J2, instead of the file's actuators.")
@click.option("--robots", type=click.Path(path_type=Path), help="Folder of the robots; default: the catalogue.")
def command(name: str, model: Path, actuated: str, robots: Path | None) -> int:
    """Add MODEL.xml to the robots as NAME: from then on it is part of list, run and the test suite.

    The model is copied with the parts it includes; source and licence are left to fill in.

    \b
    Examples:
      loopcheck new gripper my_gripper.xml
      loopcheck new leg leg.xml --actuated hip,knee --robots my_robots
    """
    from robots import robot
    from validation.new_robot import add_robot

    joints = tuple(joint.strip() for joint in actuated.split(",") if joint.strip())
    folder = add_robot(name, model, catalogue=robots or robot.CATALOGUE, actuated=joints)
    click.echo(f"{folder}: added; fill in title and source in robot.toml, and source and licence in README.md")
    return 0
