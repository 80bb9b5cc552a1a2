"""`loopcheck bench`."""

from pathlib import Path

import click

from validation.studies.options import RESULTS, Execution, out_option, robots_argument


@click.command()
@robots_argument
@click.option("--samples", type=click.IntRange(min=1000), default=100_000, show_default=True, help="Of a batch.")
@click.option("--chain", type=click.IntRange(min=1), default=50, show_default=True, help="Most four-bars in a chain.")
@out_option(RESULTS / "bench")
def command(robots: tuple[str, ...], samples: int, chain: int, out: Path) -> int:
    """Measure batches of inverse dynamics beside Pinocchio, the plain sources and the engines, on one core.

    Every ratio comes from one run, with its spread. Writes bench.csv and run.json. The rows of Pinocchio need
    `pip install 'loopcheck[bench]'`.

    \b
    Example:
      loopcheck bench 3prr
    """
    from validation.studies.bench.study import Bench

    alone = Execution(out=out, jobs=1, time_limit=None)
    return alone.run(Bench(robots=robots, samples=samples, chain=chain))
