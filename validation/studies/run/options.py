"""Options of the commands that run cases, and how those compute and end."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from validation.studies.options import RESULTS, Execution, execution_options

if TYPE_CHECKING:
    from robots.robot import Case

_sources = click.option(
    "--source",
    "sources",
    multiple=True,
    help="Source, as mujoco/forward; default: all. The reference always runs.",
)
_dt = click.option(
    "--dt", type=float, help="Step of the report grid in s; default: 0.01 for up to 2 s, 0.02 up to 4 s, 0.05 above."
)
_junit = click.option(
    "--junit", type=click.Path(path_type=Path), help="JUnit file to write: a test case for each case and source."
)
_tolerances = click.option(
    "--tolerance",
    "limits",
    metavar="SOURCE=VALUE",
    multiple=True,
    callback=lambda _, __, values: dict(map(_limit, values)),
    help="Your own limit of a source's relative error, instead of the registered one; may repeat.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """How cases are run."""

    execution: Execution
    sources: tuple[str, ...]
    dt: float | None
    junit: Path | None
    limits: Mapping[str, float]

    def run(self, cases: "list[Case]", twins: Mapping[str, tuple[Path, ...]] | None = None) -> int:
        """Run cases, write tables, report and JUnit file, print the summary; returns the exit status.

        Args:
            cases: What to run.
            twins: Files that may be closed twins of robots, by the robot's name.
        """
        from validation.execution.files import want_writable
        from validation.studies.run.study import Run, results_of

        if self.junit:
            want_writable(self.junit.parent)
        study = Run(cases=cases, sources=self.sources, dt=self.dt, limits=self.limits, twins=twins or {})
        result, conclusion = self.execution.compute(study)
        if self.junit:
            from validation.studies.run.junit import write_junit

            write_junit(results_of(result), self.junit)
        return self.execution.end(result, conclusion)


def run_options(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options of how cases are run, as its argument `running`."""

    @wraps(command)
    def with_options(**options: Any) -> int:
        running = Running(**{field.name: options.pop(field.name) for field in fields(Running)})
        return command(running=running, **options)

    return _sources(_junit(_tolerances(_dt(execution_options(RESULTS)(with_options)))))


def _limit(text: str) -> tuple[str, float]:
    source, _, value = text.rpartition("=")
    try:
        return source, float(value)
    except ValueError:
        raise click.BadParameter(f"want SOURCE=VALUE, as mujoco/forward=1e-3, got '{text}'") from None
