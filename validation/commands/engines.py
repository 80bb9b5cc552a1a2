"""`loopcheck engines`."""

from collections.abc import Iterator

import click

from loopcheck.validation.frame.options import Command, option


@click.group(invoke_without_command=True, short_help="List, add, update and remove engines.")
@click.pass_context
def command(context: click.Context) -> int:
    """List, add, update and remove engines, each in an environment of its own.

    An engine that cannot be imported by this Python runs in an environment with another Python and other package
    versions. All commands use it as if it were installed here. uv makes the environments.

    \b
    Examples:
      loopcheck engines
      loopcheck engines add pybullet
      loopcheck engines add pybullet==3.2.6 --python /usr/bin/python3.11
      loopcheck engines add drake --find-links wheels
      loopcheck engines update
      loopcheck engines remove pybullet
    """
    return 0 if context.invoked_subcommand else _list()


@command.result_callback()
def _status(status: int) -> int:
    return status


@command.command("list", cls=Command, short_help="List the engines.")
def _list_command() -> int:
    """List the engines: installed here, in environments, or missing.

    \b
    Example:
      loopcheck engines list
    """
    return _list()


@command.command("add", cls=Command, short_help="Make the environment of an engine.")
@click.argument("requirement", metavar="ENGINE[==VERSION]")
@option(
    "--python",
    default="",
    metavar="PATH|VERSION",
    help="Python to use.  [default: a version with wheels of the engine]",
)
@option("--find-links", default="", metavar="FOLDER", help="Folder of wheels, for machines without a network.")
def _add(requirement: str, python: str, find_links: str) -> int:
    """Make the environment of an ENGINE; an incomplete environment is made again.

    \b
    Example:
      loopcheck engines add pybullet==3.2.6 --python 3.11
    """
    from loopcheck.validation.execution.environment_making import add

    environment = add(requirement, python=python, find_links=find_links)
    click.echo(f"{environment.name}: added; Python {environment.python}, {environment.size / 1e6:.0f} MB")
    return 0


@command.command("update", cls=Command, short_help="Update environments.")
@click.argument("requirement", metavar="[ENGINE[==VERSION]]", default="")
def _update(requirement: str) -> int:
    """Update the packages of all environments, or of an ENGINE. A version in the environment's name stays.

    \b
    Example:
      loopcheck engines update
    """
    from loopcheck.robots.errors import HarnessError
    from loopcheck.validation.execution.environment_making import environments_matching, update

    chosen = environments_matching(requirement)
    for environment in chosen:
        name = update(environment).name
        click.echo(f"{environment.name}: updated{'' if name == environment.name else f', now {name}'}")
    if not chosen:
        raise HarnessError("no environment to update. Run: loopcheck engines add ENGINE")
    return 0


@command.command("remove", cls=Command, short_help="Remove environments.")
@click.argument("requirement", metavar="ENGINE[==VERSION]")
def _remove(requirement: str) -> int:
    """Remove the environments of an ENGINE, or of a version.

    \b
    Example:
      loopcheck engines remove pybullet==3.2.6
    """
    from loopcheck.validation.execution.environment_making import remove

    for name in remove(requirement):
        click.echo(f"{name}: removed")
    return 0


def _list() -> int:
    from loopcheck.validation.execution.environments import environments_folder
    from loopcheck.validation.report.terminal import show, table

    columns = ["engine", "package", "version", "Python", "MB", "state", "adds"]
    show([table(columns, list(_rows()), title="engines"), f"environments: {environments_folder()}"])
    return 0


def _rows() -> Iterator[list[str]]:
    """Each engine here, in each of its environments, unfinished or missing."""
    from loopcheck import engines
    from loopcheck.validation.execution.environment_making import engine_of_folder
    from loopcheck.validation.execution.environments import broken_environments, environment_of, environments
    from loopcheck.validation.execution.invocation import pasted
    from loopcheck.validation.execution.uv import THIS

    versions, whole, broken = engines.versions(), environments(), broken_environments()
    for name in engines.engine_names():
        begin, lineage = [name, engines.distribution(name)], engines.lineage(name)
        own = [environment for environment in whole if environment.engine == name]
        unfinished = [folder for folder in broken if engine_of_folder(folder) == name]
        if name in versions:
            yield [*begin, versions[name], THIS, "", "here", lineage]
        for environment in own:
            is_used = environment == environment_of(name)
            state = f"environment {environment.name}{'' if is_used else ', for versions'}"
            size = f"{environment.size / 1e6:.0f}"
            yield [*begin, environment.version, environment.python, size, state, lineage]
        for folder in unfinished:
            yield [*begin, "", "", "", f"unfinished {folder.name}: {pasted('engines', 'add', name)}", lineage]
        if not (name in versions or own or unfinished):
            yield [*begin, "", "", "", f"missing: {pasted('engines', 'add', name)}", lineage]
