"""`loopcheck study atlas`."""

from pathlib import Path
from typing import Any

import click

from loopcheck.validation.frame.options import (
    RESULTS,
    Command,
    Execution,
    execution_options,
    option,
    scheduler_option,
    sources_option,
)


@click.command(cls=Command, short_help="Public models at pinned commits, in every engine.")
@click.argument("patterns", metavar="[PATTERN]...", nargs=-1)
@option(
    "--remote",
    metavar="PREFIX",
    help="Address in front of OWNER/NAME of each repository, for example file:///mirror.  [default: GitHub]",
)
@option("--engine", "engines", metavar="E", multiple=True, help="Engine; may repeat.  [default: all installed]")
@sources_option("Additional source, as pinocchio/kkt; may repeat.")
@option(
    "--models",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Folder of your own manifest.  [default: the manifest of loopcheck]",
)
@option("--no-tuning", is_flag=True, help="Skip the search for settings (most of the time).")
@scheduler_option
@execution_options(RESULTS / "atlas", time_limit="60, of CPU time")
def command(execution: Execution, patterns: tuple[str, ...], **options: Any) -> int:
    """Fetch public models at pinned commits and check the engines on each.

    A PATTERN matches names or repositories of models, as '*cassie*' or 'OWNER/*'; by default all models are checked.
    A model that fails does not stop the others.
    --scheduler needs `pip install 'loopcheck[dask]'` here and on the cluster; its workers must share the cache of
    this machine.

    \b
    Examples:
      loopcheck study atlas
      loopcheck study atlas '*fourbar*' --engine mujoco
      loopcheck study atlas --engine mujoco --source pinocchio/kkt
      loopcheck study atlas --remote file:///mirror --out atlas
    """
    from loopcheck.validation.public_models.fetching import PUBLIC
    from loopcheck.validation.public_models.manifest import MANIFEST, entries
    from loopcheck.validation.studies.atlas.study import CAP, Atlas, sources_of

    study = Atlas(
        entries=entries(patterns, options["models"] or MANIFEST),
        remote=options["remote"] or PUBLIC,
        sources=sources_of(options["engines"], options["sources"]),
        cap=execution.time_limit or CAP,
        tunes=not options["no_tuning"],
        scheduler=options["scheduler"],
    )
    return execution.run(study)
