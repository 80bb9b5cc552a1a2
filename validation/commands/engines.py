"""`loopcheck engines`."""

from collections.abc import Iterator

import click


@click.group(invoke_without_command=True)
@click.pass_context
def command(context: click.Context) -> int:
    """List, add, update and remove engines, each in an environment of its own.

    An engine that cannot be imported here runs in its environment: in another Python, beside other versions of the
    same packages. All commands use it as if it were here. Environments are made by uv.

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


@command.command("list")
def _list_command() -> int:
    """Say which engines there are, here or in environments, and what those that are missing would add."""
    return _list()


@command.command("add")
@click.argument("requirement", metavar="ENGINE[==VERSION]")
@click.option(
    "--python", default="", metavar="PATH|VERSION", help="Python to use; default: one that it has wheels for."
)
@click.option(
    "--find-links", default="", metavar="FOLDER", help="Folder of wheels to take all from, without a network."
)
def _add(requirement: str, python: str, find_links: str) -> int:
    """Make the environment of an ENGINE; an unfinished one is made anew."""
    from validation.execution.environment_making import add

    environment = add(requirement, python=python, find_links=find_links)
    click.echo(f"{environment.name}: added; Python {environment.python}, {environment.size / 1e6:.0f} MB")
    return 0


@command.command("update")
@click.argument("requirement", metavar="[ENGINE[==VERSION]]", default="")
def _update(requirement: str) -> int:
    """Make environments again with the newest packages: all, or those of an ENGINE. A version that was named stays."""
    from robots.errors import HarnessError
    from validation.execution.environment_making import asked_for, update

    chosen = asked_for(requirement)
    for environment in chosen:
        name = update(environment).name
        click.echo(f"{environment.name}: updated{'' if name == environment.name else f', now {name}'}")
    if not chosen:
        raise HarnessError("no environment to update: loopcheck engines add ENGINE makes one")
    return 0


@command.command("remove")
@click.argument("requirement", metavar="ENGINE[==VERSION]")
def _remove(requirement: str) -> int:
    """Remove the environments of an ENGINE, or of one of its versions."""
    from validation.execution.environment_making import remove

    for name in remove(requirement):
        click.echo(f"{name}: removed")
    return 0


def _list() -> int:
    from validation.execution.environments import environments_folder
    from validation.report.terminal import show, table

    columns = ["engine", "package", "version", "Python", "MB", "state", "adds"]
    show([table(columns, list(_rows()), title="engines"), f"environments: {environments_folder()}"])
    return 0


def _rows() -> Iterator[list[str]]:
    """Each engine here, in each of its environments, unfinished or missing."""
    import engines
    from validation.execution.environment_making import engine_of_folder
    from validation.execution.environments import broken_environments, environment_of, environments
    from validation.execution.uv import THIS

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
            yield [*begin, "", "", "", f"unfinished {folder.name}: loopcheck engines add {name}", lineage]
        if not (name in versions or own or unfinished):
            yield [*begin, "", "", "", f"missing: loopcheck engines add {name}", lineage]
