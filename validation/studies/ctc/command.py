"""`loopcheck ctc`."""

from typing import Any

import click

from validation.studies.options import RESULTS, Execution, execution_options


@click.command()
@click.option(
    "--plant", "plants", multiple=True, default=("exact",), show_default=True, help="exact, mujoco, pybullet."
)
@click.option("--mode", "modes", multiple=True, default=("pmp",), show_default=True, help="Working mode; may repeat.")
@click.option(
    "--seed",
    "seeds",
    type=click.IntRange(min=0),
    multiple=True,
    default=(0,),
    show_default=True,
    help="Seed of the templates.",
)
@click.option("--templates", type=click.IntRange(min=2), default=10, show_default=True, help="Robots for each level.")
@execution_options(RESULTS / "ctc")
def command(execution: Execution, **varied: Any) -> int:
    """Study computed-torque control of the 3rrr with wrong parameters: classical, Extended, and task-space CTC.

    \b
    Examples:
      loopcheck ctc --out ctc
      loopcheck ctc --out ctc --mode pmp --mode mpm --seed 0 --seed 1
    """
    from validation.studies.ctc.study import Ctc

    return execution.run(Ctc(**varied))
