"""`loopcheck study speed`."""

from pathlib import Path

import click

from loopcheck.validation.frame.options import (
    RESULTS,
    Command,
    Execution,
    option,
    out_option,
    representative_cases,
    targets_argument,
)


@click.command(cls=Command, short_help="Speed of batched inverse dynamics and of start-up.")
@targets_argument
@option(
    "--samples", type=click.IntRange(min=1000), default=100_000, show_default=True, help="Number of samples in a batch."
)
@option(
    "--chain",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    help="Number of four-bars in the longest chain.",
)
@out_option(RESULTS / "speed")
def command(targets: tuple[str, ...], samples: int, chain: int, out: Path) -> int:
    """Measure the speed of inverse dynamics on one core: batches, Pinocchio, the plain sources and the engines.

    Every ratio comes from one run, with its spread. Writes bench.csv and run.json. The rows of Pinocchio need
    `pip install 'loopcheck[bench]'`.

    \b
    Example:
      loopcheck study speed 3prr
    """
    cases = representative_cases(targets) if targets else []
    from loopcheck.validation.studies.speed.study import Speed

    execution = Execution(out=out, jobs=1, time_limit=None)
    return execution.run(Speed(cases=cases, samples=samples, chain=chain))
