"""`from loopcheck import check`: the check of a robot in one call, for notebooks and for tests of other projects."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from loopcheck.robots.errors import NotFoundError
from loopcheck.validation.check.study import Check, results_of
from loopcheck.validation.common.results import Results
from loopcheck.validation.common.sources import groups, is_as_is
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.common.tolerances import registered
from loopcheck.validation.execution.workers import TIME_LIMIT, Workers, worker_pool
from loopcheck.validation.frame.preload import PRELOAD
from loopcheck.validation.frame.study import Conclusion, StudyResult, computed, exit_status, write_result

if TYPE_CHECKING:
    import pandas as pd

VERDICTS = {0: "agree", 1: "disagree", 3: "not comparable", 70: "internal error"}
"""Verdicts by exit status."""


class Options(TypedDict, total=False):
    """What is checked, and by which limits."""

    sources: Sequence[str]
    """Sources, engines or patterns, as `mujoco/forward`, `mujoco` or `*/kkt`; by default all installed sources."""
    accuracy: float | None
    """Largest effort error of the unmodified simulations relative to the peak [-]; by default they are not judged."""
    tolerances: Mapping[str, float]
    """Limits of the relative error by source [-], instead of the registered tolerances."""
    dt: float | None
    """Step of the report grid [s]; by default 0.01 up to 2 s, 0.02 up to 4 s, then 0.05."""
    motion: Path | str | None
    """CSV file with the motion of the actuated joints; by default the robot's own or a generated motion."""
    modes: Sequence[str]
    """Keyframes; by default all of a robot, the first of a model file."""
    variants: Sequence[str]
    """Variants of `robot.toml`; by default all."""
    configurations: Sequence[str]
    """Directions of gravity; by default all."""
    actuated: str
    """Actuated joints, for example J1,J2, instead of the actuators of the file."""
    reactions: bool
    """Whether to compute the forces in the joints."""
    leave_out: Sequence[str]
    """Elements of the model file that are accepted although they are not read, TAG or TAG:NAME."""


@dataclass(frozen=True, kw_only=True)  # without slots: the conclusion is kept in its dictionary
class CheckResult:
    """Efforts of a robot by every source, and their verdicts."""

    result: StudyResult = field(repr=False)

    @property
    def results(self) -> Results:
        """The tables by their names, and the record."""
        return results_of(self.result)

    @property
    def tables(self) -> "Mapping[str, pd.DataFrame]":
        """All tables of the command by name: `efforts`, `motion`, `summary`, `task`, `audit`, ..."""
        return self.result.tables

    @property
    def summary(self) -> "pd.DataFrame":
        """A row for each case, source and actuator: peak, errors, tolerance, verdict, note."""
        return self.tables["summary"]

    @property
    def efforts(self) -> "pd.DataFrame":
        """Effort of each actuator over time, by case and source [N or N m]."""
        return self.tables["efforts"]

    @property
    def exit_status(self) -> int:
        """That of the command: 0, 1, 3 or 70."""
        return exit_status(self._conclusion.verdicts, self.result.record)

    @property
    def verdict(self) -> str:
        """`agree`, `disagree`, `not comparable` or `internal error`."""
        return VERDICTS[self.exit_status]

    @property
    def agrees(self) -> bool:
        """Whether every judged comparison agrees."""
        return self.verdict == "agree"

    def report(self, folder: str | Path) -> Path:
        """Write the tables and the page into a folder of results, as the command does; returns the path of the page.

        Raises:
            OutputError: If the folder cannot be written, or holds results of another command.
        """
        return write_result(Check, Path(folder), self.result)

    @cached_property
    def _conclusion(self) -> Conclusion:
        return Check.conclude(self.result)

    def __str__(self) -> str:
        """The closing lines of the command."""
        return "\n".join(map(str, self._conclusion.summary[1:]))


def check(
    target: str | Path, *more: str | Path, jobs: int = 1, time_limit: float = TIME_LIMIT, **options: Unpack[Options]
) -> CheckResult:
    """Compute the actuator efforts of a robot by every source, and compare them with the reference.

    Args:
        target: Name of a catalogue robot, path of a model file, or folder with a `robot.toml`.
        *more: Further targets.
        jobs: Number of worker processes.
        time_limit: Longest duration of a task before its process is stopped [s].
        **options: See `Options`.

    Raises:
        HarnessError: If a target, file or name is bad, in one line with the requirement, the value and its place.
    """
    for option in options:
        if option not in Options.__annotations__:  # or a misspelt accuracy would judge nothing
            raise NotFoundError("option of check", option, Options.__annotations__)
    study = check_of([target, *more], writes_logs=False, **options)
    with worker_pool(Workers(jobs, time_limit), preload=PRELOAD) as pool:
        return CheckResult(result=computed(study, Path(), pool))


def check_of(targets: Sequence[str | Path], *, writes_logs: bool, **asked: Unpack[Options]) -> Check:
    """The study of some targets.

    Args:
        writes_logs: Whether the logs behind unmodified simulations are written.
        **asked: See `Options`.

    Raises:
        HarnessError: If a target, file or name is bad.
    """
    sources, accuracy, motion = tuple(asked.get("sources", ())), asked.get("accuracy"), asked.get("motion")
    groups(sources)  # refuses unknown names
    cases = cases_of(
        targets,
        variants=asked.get("variants", ()),
        modes=asked.get("modes", ()),
        configurations=asked.get("configurations", ()),
        actuated=asked.get("actuated", ""),
        motion=Path(motion) if motion else None,
        leave_out=asked.get("leave_out", ()),
    )
    as_is = {name: accuracy for name in registered() if is_as_is(name)} if accuracy is not None else {}
    limits = {**as_is, **asked.get("tolerances", {})}
    study = Check(
        cases=cases,
        sources=sources,
        dt=asked.get("dt"),
        limits=limits,
        writes_logs=writes_logs,
        reactions=asked.get("reactions", False),
    )
    study.want_losses(asked.get("leave_out", ()))
    return study
