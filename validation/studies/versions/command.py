"""`loopcheck study versions`."""

from pathlib import Path

import click

from loopcheck.validation.check.command import command as check
from loopcheck.validation.frame.options import RESULTS, Command, Execution, execution_options, option


@click.command(
    cls=Command,
    context_settings={"ignore_unknown_options": True},
    short_help="The same check in several versions of an engine.",
)
@click.argument("words", metavar="TARGET...", nargs=-1, type=click.UNPROCESSED)
@option(
    "--engine",
    "requirements",
    metavar="ENGINE[==VERSION]",
    multiple=True,
    help="Engine and version to run, for example pybullet==3.2.6; may repeat.  [default: mujoco==3.6.0 and 3.7.0]",
)
@option(
    "--python",
    "interpreters",
    metavar="FILE",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Python of an environment of yours with another version; may repeat.",
)
@execution_options(RESULTS / "versions")
def command(
    words: tuple[str, ...], requirements: tuple[str, ...], interpreters: tuple[Path, ...], execution: Execution
) -> int:
    """Run the same check in several versions of an engine, and compare the results version by version.

    The installed version always runs. uv makes an environment for each other version, with a suitable Python. All
    options of `loopcheck check` are accepted. By default the sources are kkt, forward and as_is of the engine. Writes
    versions.csv, versions.html and the results of each version.

    \b
    Examples:
      loopcheck study versions 3prr
      loopcheck study versions 3prr --engine mujoco==3.6.0 --mode plus
      loopcheck study versions 3prr --engine pybullet==3.2.6
      loopcheck study versions my_robot.xml --python old_environment/bin/python
    """
    engine, named = _engine_and_versions(requirements)
    arguments = _arguments(engine, words)
    from loopcheck.validation.studies.versions.study import Versions, default_versions, environments

    places = environments(engine, named or (() if interpreters else default_versions(engine)), interpreters)
    return execution.run(Versions(environments=places, arguments=arguments))


def _engine_and_versions(requirements: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The compared engine and its named versions."""
    from loopcheck.validation.execution.environment_making import parsed

    pairs = [*map(parsed, requirements)]
    names = list(dict.fromkeys(engine for engine, _ in pairs)) or ["mujoco"]
    if len(names) > 1:
        raise click.UsageError(f"--engine must name versions of one engine, got {', '.join(names)}")
    return names[0], tuple(version for _, version in pairs if version)


def _arguments(engine: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """The command line of `check`, verified, that is run in every version."""
    from loopcheck.robots.catalogue import want_targets
    from loopcheck.validation.studies.versions.study import routes_of

    given = check.make_context("loopcheck check", list(words)).params
    if given["junit"] is not None:
        raise click.UsageError("--junit is for one version: use it with loopcheck check")
    foreign = [source for source in given["sources"] if source.split("/")[0] not in (engine, "analytic")]
    if foreign:
        raise click.UsageError(f"--source must name routes of {engine}, got {', '.join(foreign)}")
    if not given["targets"] and not given["every"]:
        raise click.UsageError("A TARGET or --all must be given. Robots: loopcheck list.")
    want_targets(given["targets"])
    defaults = () if given["sources"] else routes_of(engine)
    return ("check", *words, *(f"--source={source}" for source in defaults))
