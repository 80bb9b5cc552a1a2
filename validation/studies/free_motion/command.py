"""`loopcheck study free-motion`."""

import click

from loopcheck.validation.frame.options import RESULTS, Command, Execution, execution_options, targets_argument


@click.command(cls=Command, short_help="Forward dynamics against published free motions.")
@targets_argument
@execution_options(RESULTS / "free-motion")
def command(targets: tuple[str, ...], execution: Execution) -> int:
    """Compare forward dynamics, analytic and of the engines, with published free motions.

    A TARGET is a catalogue robot with a published free motion. Without a TARGET: all of them.

    \b
    Example:
      loopcheck study free-motion andrews
    """
    from loopcheck.validation.studies.free_motion.study import FreeMotion

    return execution.run(FreeMotion(robots=targets))
