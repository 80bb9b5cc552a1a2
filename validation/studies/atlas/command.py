"""`loopcheck atlas`."""

from pathlib import Path
from typing import Any

import click

from validation.studies.options import RESULTS, Execution, execution_options, scheduler_option


@click.command()
@click.argument("patterns", metavar="[PATTERN]...", nargs=-1)
@click.option(
    "--remote",
    metavar="PREFIX",
    help="Where repositories are, as file:///folder/of/bare/ones; PREFIX/OWNER/NAME is fetched. Default: GitHub.",
)
@click.option("--engine", "engines", multiple=True, help="Engine to try; may repeat; default: all that are there.")
@click.option("--source", "sources", multiple=True, help="Source to try besides, as pinocchio/kkt; may repeat.")
@click.option(
    "--models", type=click.Path(path_type=Path), help="Folder of a manifest of your own, instead of the one built in."
)
@click.option("--no-tuning", is_flag=True, help="Leave out the search for settings, which takes most of the time.")
@scheduler_option
@execution_options(RESULTS / "atlas")
def command(execution: Execution, patterns: tuple[str, ...], **options: Any) -> int:
    """Fetch public models at pinned commits, and hold engines against their equations of motion.

    A PATTERN is that of a model's name or repository, as '*cassie*' or 'OWNER/*'; by default all are tried. Every task
    has 120 s unless --time-limit says something else; what stops one model stops no other. --scheduler needs
    `pip install 'loopcheck[dask]'` here and on the cluster, whose workers must see this machine's cache.

    \b
    Examples:
      loopcheck atlas
      loopcheck atlas '*fourbar*' --engine mujoco
      loopcheck atlas --engine mujoco --source pinocchio/kkt --source pybullet/kkt
      loopcheck atlas --remote file:///mirror --out atlas
    """
    from validation.studies.atlas.fetching import PUBLIC
    from validation.studies.atlas.manifest import MANIFEST, entries
    from validation.studies.atlas.study import CAP, Atlas, sources_of

    study = Atlas(
        entries=entries(patterns, options["models"] or MANIFEST),
        remote=options["remote"] or PUBLIC,
        sources=sources_of(options["engines"], options["sources"]),
        cap=execution.time_limit or CAP,
        tunes=not options["no_tuning"],
        scheduler=options["scheduler"],
    )
    return execution.run(study)
