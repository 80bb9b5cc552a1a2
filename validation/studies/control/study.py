"""Computed torque with sensed passive joints: does it withstand wrong parameters better?"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from loopcheck.robots.errors import NotFoundError
from loopcheck.robots.formats.model_file import file_hash
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec
from loopcheck.validation.execution.workers import WorkerPool
from loopcheck.validation.frame.study import MEASURED, Computed, Conclusion, Study, StudyResult
from loopcheck.validation.studies.control.perturbation import KINDS, Kind
from loopcheck.validation.studies.control.report import sections, summary
from loopcheck.validation.studies.control.runs import (
    CONTROLLERS,
    EXACT,
    HISTORIES,
    PLANTS,
    REGULAR,
    RUNS,
    ControlSettings,
    RunGroup,
    history,
    not_run,
    run_batch,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Control(Study):
    """Varied and fixed settings of the study."""

    name: ClassVar[str] = "control"
    page: ClassVar[str] = "control"
    tables: ClassVar[dict[str, TableSpec]] = {"ctc_runs": RUNS, "ctc_histories": HISTORIES}

    plants: tuple[str, ...] = (EXACT,)
    modes: tuple[str, ...] = ("pmp",)
    seeds: tuple[int, ...] = (0,)
    kinds: tuple[Kind, ...] = KINDS
    levels: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0)
    """Errors of the parameters of the plant [%]."""
    templates: int = 10
    """Number of plants per level."""
    settings: ControlSettings = field(default_factory=ControlSettings)

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`."""
        _want_known(self)
        groups = product(self.plants, self.modes, self.seeds, self.kinds, CONTROLLERS)
        batches = [RunGroup(*group, self.levels, self.templates) for group in groups]
        runs = pool.results(
            [
                Task(run_batch, (self.settings, batch), partial(not_run, batch), engine=batch.plant)
                for batch in batches  # the exact plant needs no engine
            ],
            "batches of runs",
        )
        shown = (self.modes[0], self.seeds[0], max(self.levels))
        histories = pool.results(
            [
                Task(history, (self.settings, name, *shown), lambda _: HISTORIES.frame([]))
                for name in sorted(CONTROLLERS)
            ],
            "histories",
        )
        tables = {"ctc_runs": _joined(runs), "ctc_histories": _joined(histories)}
        return Computed(tables, {"varied": _varied(self), "held": _held(self.settings)})

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        runs = result.tables["ctc_runs"]
        number_diverged = int(runs["diverged_at"].notna().sum())
        return Conclusion(
            title="loopcheck: computed torque with sensed passive joints, 3rrr",
            sections=sections(result.tables, result.record),
            summary=[f"{len(runs)} runs, {number_diverged} diverged"],
            verdicts=["not run" if note else MEASURED for note in runs["note"]],
            tables={"ctc_summary": summary(runs)},
        )


STUDY = Control


def _joined(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    full = [table for table in tables if len(table)]
    return pd.concat(full, ignore_index=True) if full else tables[0]


def _varied(study: Control) -> dict[str, Any]:
    names = ("plants", "modes", "seeds", "kinds", "levels")
    return {name: list(getattr(study, name)) for name in names} | {
        "templates": study.templates,
        "controllers": list(CONTROLLERS),
    }


def _held(settings: ControlSettings) -> dict[str, Any]:
    """Record of the common settings."""
    return {
        "configuration": settings.configuration,
        "overshoot [-]": settings.overshoot,
        "peak time [s]": settings.peak_time,
        "Kp [1/s²]": settings.gains.Kp,
        "Kv [1/s]": settings.gains.Kv,
        **{f"task: {name}": value for name, value in asdict(settings.task).items()},
        "model": file_hash(settings.case(REGULAR[0]).mechanism.model.path),
    }


def _want_known(study: Control) -> None:
    for kind, names, known_names in (
        ("plant of the study", study.plants, PLANTS),
        ("mode of the study", study.modes, REGULAR),
        ("kind of perturbation", study.kinds, KINDS),
    ):
        for name in names:
            if name not in known_names:
                raise NotFoundError(kind, name, known_names)
