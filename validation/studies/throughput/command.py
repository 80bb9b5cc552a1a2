"""`loopcheck study throughput`."""

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
    seed_option,
    target_argument,
)


def _counts(_: click.Context, parameter: click.Parameter, value: str) -> tuple[int, ...]:
    try:
        counts = tuple(sorted({int(part) for part in value.split(",")}))
    except ValueError as error:
        raise click.BadParameter(f"must be whole numbers, as 1,64,4096, got '{value}'", param=parameter) from error
    if counts[0] < 1:
        raise click.BadParameter(f"must be at least 1, got {counts[0]}", param=parameter)
    return counts


@click.command(cls=Command, short_help="Batches of robots: steps per second and effort error.")
@target_argument
@mode_option
@loaded_configuration_option
@option("--engine", "engines", metavar="E", multiple=True, help="Engine; may repeat.  [default: all with batches]")
@option(
    "--worlds",
    metavar="N,...",
    default="1,64,4096",
    show_default=True,
    callback=_counts,
    help="Numbers of robots in a batch.",
)
@option(
    "--steps",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Number of steps before worlds are compared.",
)
@seed_option
@execution_options(RESULTS / "throughput")
def command(target: str, execution: Execution, mode: str, configuration: str, **options: Any) -> int:
    """Check that parallel worlds are consistent, and measure throughput against effort accuracy.

    Worlds with equal initial states must stay equal, and each must match a single-world run up to round-off. Then the
    effort error of the unmodified model is measured against throughput (steps per second) on this device, for common
    settings. With `--jobs 1` no other process of loopcheck runs at the same time.

    Exit status: 0 all worlds agree; 1 some worlds differ; 3 something was not judged.

    \b
    Examples:
      loopcheck study throughput my_robot.xml
      loopcheck study throughput 3prr --engine mjx --worlds 1,1024 --jobs 1
    """
    (case,) = representative_cases([target], modes=[mode], configurations=[configuration])
    from loopcheck.validation.studies.throughput.study import Throughput

    return execution.run(Throughput(case=case, **options))
