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
    "--python",
    "interpreters",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Interpreter of an environment that you have, with another MuJoCo; may repeat.",
)
@execution_options(RESULTS / "versions")
def command(
    words: tuple[str, ...], versions: tuple[str, ...], interpreters: tuple[Path, ...], execution: Execution
) -> int:
    """See what an upgrade of MuJoCo does to ROBOTs, or to a MODEL.xml: the same run in several versions, side by side.

    The version installed here always runs. Others get environments of their own, made by uv, or are those of
    interpreters that you name. All other options are those of run or, for a MODEL.xml, of check; by default the
    sources are mujoco/kkt, mujoco/forward and mujoco/as_is. Writes versions.csv, versions.html, and the results of
    each version.

    \b
    Examples:
      loopcheck versions 3prr
      loopcheck versions 3prr --mujoco 3.6.0 --mode plus --source mujoco/forward --out upgrade
      loopcheck versions my_robot.xml --python old_environment/bin/python

    Exit status as of run, over all versions: 3 also where a version did not run and none disagrees.
    """
    from validation.studies.versions.study import OLDER, Versions, environments

    arguments = _arguments(words)
    places = environments(versions or (() if interpreters else OLDER), interpreters)
    return execution.run(Versions(environments=places, arguments=arguments))


def _arguments(words: tuple[str, ...]) -> tuple[str, ...]:
    """The command line of `run` or `check`, checked, that is run in every version."""
    from validation.judge.selection import Selection, plan
    from validation.studies.versions.study import ROUTES

    name = "check" if any(word.endswith(".xml") for word in words) else "run"
    given = _command_of(name).make_context(f"loopcheck {name}", list(words)).params
    if given["junit"] is not None:
        raise click.UsageError("--junit is for one version: use it with run or check")
    others = [source for source in given["sources"] if source.split("/")[0] not in ("mujoco", "analytic")]
    if others:
        raise click.UsageError(f"want sources of MuJoCo, got {', '.join(others)}")
    if name == "check" and not given["model"].is_file():
        raise click.UsageError(f"{given['model']}: no such file, want an MJCF")
    if name == "run":
        plan(Selection(**{field: given[field] for field in Selection.__dataclass_fields__}))
    defaults = () if given["sources"] else ROUTES
    return (name, *words, *(f"--source={source}" for source in defaults))


def _command_of(name: str) -> click.Command:
    command: click.Command = import_module(f"validation.studies.{name}.command").command
    return command
