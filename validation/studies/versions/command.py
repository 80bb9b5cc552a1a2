"""`loopcheck versions`."""

from importlib import import_module
from pathlib import Path

import click

from validation.studies.options import RESULTS, Execution, execution_options


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("words", metavar="[ROBOT]...|MODEL.xml", nargs=-1, type=click.UNPROCESSED)
@click.option(
    "--mujoco", "versions", metavar="VERSION", multiple=True, help="Version to run; default: 3.6.0 and 3.7.0."
)
@click.option(
    "--engine",
    "others",
    metavar="ENGINE[==VERSION]",
    multiple=True,
    help="Another engine and its version to run, as pybullet==3.2.6; may repeat for versions of one engine.",
)
@click.option(
    "--python",
    "interpreters",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Interpreter of an environment that you have, with another version; may repeat.",
)
@execution_options(RESULTS / "versions")
def command(
    words: tuple[str, ...],
    versions: tuple[str, ...],
    others: tuple[str, ...],
    interpreters: tuple[Path, ...],
    execution: Execution,
) -> int:
    """See what an upgrade of MuJoCo, or of an --engine, does to ROBOTs, or to a MODEL.xml, version beside version.

    The version installed here always runs. Others get environments of their own, made by uv in a Python that they have
    wheels for, or are those of interpreters that you name. All other options are those of run or, for a MODEL.xml, of
    check; by default the sources are the engine's kkt, forward and as_is. Writes versions.csv, versions.html, and the
    results of each version.

    \b
    Examples:
      loopcheck versions 3prr
      loopcheck versions 3prr --mujoco 3.6.0 --mode plus --source mujoco/forward --out upgrade
      loopcheck versions 3prr --engine pybullet==3.2.6 --engine pybullet==3.2.7
      loopcheck versions my_robot.xml --python old_environment/bin/python

    Exit status as of run, over all versions: 3 also where a version did not run and none disagrees.
    """
    from validation.studies.versions.study import Versions, default_versions, environments

    engine, named = _engine_and_versions(versions, others)
    arguments = _arguments(engine, words)
    places = environments(engine, named or (() if interpreters else default_versions(engine)), interpreters)
    return execution.run(Versions(environments=places, arguments=arguments))


def _engine_and_versions(of_mujoco: tuple[str, ...], others: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The engine whose versions are compared, and those that are named."""
    from validation.execution.environment_making import parsed

    pairs = [*(("mujoco", version) for version in of_mujoco), *map(parsed, others)]
    names = list(dict.fromkeys(engine for engine, _ in pairs)) or ["mujoco"]
    if len(names) > 1:
        raise click.UsageError(f"want versions of one engine, got {', '.join(names)}")
    return names[0], tuple(version for _, version in pairs if version)


def _arguments(engine: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """The command line of `run` or `check`, checked, that is run in every version."""
    import engines
    from validation.judge.selection import Selection, plan
    from validation.studies.versions.study import routes_of

    name = "check" if any(word.endswith(".xml") for word in words) else "run"
    given = _command_of(name).make_context(f"loopcheck {name}", list(words)).params
    if given["junit"] is not None:
        raise click.UsageError("--junit is for one version: use it with run or check")
    others = [source for source in given["sources"] if source.split("/")[0] not in (engine, "analytic")]
    if others:
        raise click.UsageError(f"want sources of {engines.lineage(engine)}, got {', '.join(others)}")
    if name == "check" and not given["model"].is_file():
        raise click.UsageError(f"{given['model']}: no such file, want an MJCF")
    if name == "run":
        plan(Selection(**{field: given[field] for field in Selection.__dataclass_fields__}))
    defaults = () if given["sources"] else routes_of(engine)
    return (name, *words, *(f"--source={source}" for source in defaults))


def _command_of(name: str) -> click.Command:
    command: click.Command = import_module(f"validation.studies.{name}.command").command
    return command
