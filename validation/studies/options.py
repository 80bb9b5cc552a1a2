"""Options that commands share, and how a command computes its study and ends."""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from validation.execution.forkserver import worker_context
from validation.studies.preload import PRELOAD

if TYPE_CHECKING:
    from validation.studies.study import Conclusion, Study, StudyResult

RESULTS = Path("results")


class FiniteRange(click.FloatRange):
    """A range of numbers that nan and inf are not in, with which no comparison is true or no time ends."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """See `click.ParamType.convert`."""
        number: float = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"want a finite number, got {number:g}", param, ctx)
        return number


robots_argument = click.argument("robots", metavar="[ROBOT]...", nargs=-1)
folders_option = click.option(
    "--robots",
    "folders",
    metavar="DIR",
    type=click.Path(path_type=Path),
    multiple=True,
    help="Folder of your own robots, DIR/NAME/robot.toml; may repeat.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """Where a command writes, and with how many workers it computes."""

    out: Path
    jobs: int | None
    time_limit: float | None

    def compute(self, study: "Study") -> "tuple[StudyResult, Conclusion]":
        """Compute a study, print what it says and write it into the folder."""
        from validation.execution.workers import TIME_LIMIT, Workers
        from validation.report.terminal import show
        from validation.studies.study import run_study

        workers = Workers(self.jobs, self.time_limit or TIME_LIMIT)
        return run_study(study, self.out, workers=workers, command=["loopcheck", *sys.argv[1:]], say=show)

    def end(self, result: "StudyResult", conclusion: "Conclusion") -> int:
        """Print what has not run; returns the exit status."""
        from validation.studies.study import exit_status

        for reason in dict.fromkeys(result.record["not_run"]):
            click.echo(f"not run: {reason}")
        for line in result.record["internal_errors"]:
            click.echo(f"loopcheck: {line}", err=True)
        return exit_status(conclusion.verdicts, result.record)

    def run(self, study: "Study") -> int:
        """Compute a study and print what it says; returns the exit status."""
        return self.end(*self.compute(study))


def execution_options(folder: Path) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command the options of where and how it computes, as its argument `execution`.

    Args:
        folder: Where it writes by default.
    """

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        @wraps(command)
        def with_options(*, out: Path, jobs: int | None, time_limit: float | None, **options: Any) -> int:
            worker_context(
                PRELOAD
            )  # whose process imports what workers need while this one imports what it needs itself
            return command(execution=Execution(out=out, jobs=jobs, time_limit=time_limit), **options)

        return _time_limit(_jobs(out_option(folder)(with_options)))

    return decorate


def out_option(folder: Path) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """The option of where a command writes."""
    return click.option(
        "--out",
        type=click.Path(path_type=Path),
        default=folder,
        show_default=True,
        help="Folder of the results; the same command in it goes on after a kill.",
    )


_jobs = click.option("--jobs", type=click.IntRange(min=1), help="Worker processes; default: one for each core.")
_time_limit = click.option(
    "--time-limit",
    metavar="SECONDS",
    type=FiniteRange(min=0, min_open=True),
    help="Stop what takes longer, as a source on a case: it reads not run; default: 1800.",
)

scheduler_option = click.option(
    "--scheduler", metavar="ADDRESS", help="Dask scheduler whose workers compute, as tcp://10.0.0.1:8786."
)
"""The option of the cluster that computes, if any."""
