"""`loopcheck study control`."""

from typing import Any

import click

from loopcheck.validation.frame.options import RESULTS, Command, Execution, execution_options, option


@click.command(cls=Command, short_help="Computed-torque control of the 3-RRR, wrong parameters.")
@option(
    "--plant",
    "plants",
    type=click.Choice(["exact", "mujoco", "pybullet"]),
    multiple=True,
    default=("exact",),
    show_default=True,
    help="Simulated robot; may repeat.",
)
@option(
    "--mode", "modes", metavar="M", multiple=True, default=("pmp",), show_default=True, help="Working mode; may repeat."
)
@option(
    "--seed",
    "seeds",
    type=click.IntRange(min=0),
    multiple=True,
    default=(0,),
    show_default=True,
    help="Seed of the wrong parameters; may repeat.",
)
@option(
    "--templates",
    type=click.IntRange(min=2),
    default=10,
    show_default=True,
    help="Number of robots for each parameter error.",
)
@execution_options(RESULTS / "control")
def command(execution: Execution, **varied: Any) -> int:
    """Study the effect of wrong parameters on three computed-torque controllers of the 3rrr.

    The controllers are the classical, the extended and the one in task space.

    \b
    Examples:
      loopcheck study control --out control
      loopcheck study control --mode pmp --mode mpm --seed 0 --seed 1
    """
    from loopcheck.validation.studies.control.study import Control

    return execution.run(Control(**varied))
