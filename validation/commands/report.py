"""`loopcheck report`."""

from pathlib import Path

import click

from loopcheck.validation.frame.options import Command, all_figures_option


@click.command(cls=Command, short_help="Write the report of a results folder again.")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@all_figures_option
@click.option(
    "--credibility",
    is_flag=True,
    help="Write credibility.html beside the report: what was verified by what, uncertainty, inputs, and what was left "
    "out, with the headings of NASA-STD-7009 and ASME V&V 10 and 20.",
)
def command(folder: Path, all_figures: bool, credibility: bool) -> int:
    """Write the report of a check or study again, from the tables in its output folder DIR.

    The exit status is that of the check or study.

    \b
    Examples:
      loopcheck report results/check
      loopcheck report results/check --all-figures
      loopcheck report results/check --credibility
    """
    from loopcheck.validation.execution.tables import read_record
    from loopcheck.validation.frame.study import exit_status, rebuild
    from loopcheck.validation.report.terminal import show

    conclusion = rebuild(folder, say=show, all_figures=all_figures)
    if credibility:
        from rich.text import Text

        from loopcheck.validation.check.credibility import write_credibility

        show([Text(f"Credibility: {write_credibility(folder)}")])
    return exit_status(conclusion.verdicts, read_record(folder))
