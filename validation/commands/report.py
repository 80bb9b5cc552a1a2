"""`loopcheck report`."""

from pathlib import Path

import click


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def command(folder: Path) -> int:
    """Rebuild the page of any study from the tables in DIR; the exit status is the study's.

    \b
    Example:
      loopcheck report results
    """
    from validation.execution.tables import read_record
    from validation.report.terminal import show
    from validation.studies.study import exit_status, rebuild

    conclusion = rebuild(folder, say=show)
    return exit_status(conclusion.verdicts, read_record(folder))
