"""`loopcheck study gradients`."""

from typing import Any

import click

from loopcheck.validation.frame.options import (
    RESULTS,
    Command,
    Execution,
    execution_options,
    loaded_configuration_option,
    mode_option,
    option,
    representative_cases,
    targets_argument,
)


@click.command(cls=Command, short_help="Derivatives of engines through closed loops.")
@targets_argument
@mode_option
@loaded_configuration_option
@option("--engine", "engines", metavar="E", multiple=True, help="Engine; may repeat.  [default: all installed]")
@execution_options(RESULTS / "gradients")
def command(targets: tuple[str, ...], execution: Execution, mode: str, configuration: str, **options: Any) -> int:
    """Compare derivatives of engines with exact derivatives and with differences of the engine's own values.

    Derivatives of accelerations along positions, velocities and efforts, and of efforts along positions, velocities,
    accelerations and inertial parameters, along motions that keep the loops closed. A derivative that differs from
    the differences of its own values is wrong. A right derivative of another function, as of soft loops or of a step,
    is named and not judged. Without a TARGET: all robots of the catalogue.

    \b
    Examples:
      loopcheck study gradients four_bar
      loopcheck study gradients my_robot.xml --engine pinocchio --engine mjx
    """
    cases = representative_cases(targets, modes=[mode], configurations=[configuration])
    from loopcheck.validation.studies.gradients.study import GradientsStudy

    return execution.run(GradientsStudy(cases=cases, **options))
