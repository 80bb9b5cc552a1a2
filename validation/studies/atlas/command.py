"""`loopcheck atlas`."""

from pathlib import Path

import click

from validation.studies.options import RESULTS, Execution, execution_options


@click.command()
@click.argument("patterns", metavar="[PATTERN]...", nargs=-1)
@click.option(
    "--remote",
    metavar="PREFIX",
    help="Where repositories are, as file:///folder/of/bare/ones; PREFIX/OWNER/NAME is fetched. Default: GitHub.",
)
@click.option("--engine", "engines", multiple=True, help="Engine to try; may repeat; default: all that are there.")
@click.option(
    "--models", type=click.Path(path_type=Path), help="Folder of a manifest of your own, instead of the one built in."
)
@execution_options(RESULTS / "atlas")
def command(
    execution: Execution, patterns: tuple[str, ...], remote: str | None, engines: tuple[str, ...], models: Path | None
) -> int:
    """Fetch public models at pinned commits, and hold engines against their equations of motion.

    A PATTERN is that of a model's name or repository, as '*cassie*' or 'OWNER/*'; by default all are tried. Every task
    has 120 s unless --time-limit says something else; what stops one model stops no other.

    \b
    Examples:
      loopcheck atlas
      loopcheck atlas '*fourbar*' --engine mujoco
      loopcheck atlas --remote file:///mirror --out atlas
    """
    from validation.studies.atlas.fetching import PUBLIC
    from validation.studies.atlas.manifest import MANIFEST, entries
    from validation.studies.atlas.study import CAP, Atlas, sources_of

    study = Atlas(
        entries=entries(patterns, models or MANIFEST),
        remote=remote or PUBLIC,
        sources=sources_of(engines),
        cap=execution.time_limit or CAP,
    )
    return execution.run(study)
