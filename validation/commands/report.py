"""`loopcheck report`."""

from pathlib import Path

import click


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def command(folder: Path) -> int:
    """Rebuild the page of any study from the tables in DIR.

    \b
    Example:
      loopcheck report results
    """
    from validation.report.terminal import show
    from validation.studies.study import rebuild

    rebuild(folder, say=show)
    return 0
