"""Computes thousands of cases of a robot: wrong parameters, random motions, random poses."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from pydantic import TypeAdapter

from loopcheck.robots.errors import MechanismError, NotFoundError
from loopcheck.robots.formats.model_file import file_hash
from loopcheck.validation.common import sources
from loopcheck.validation.execution.cluster import on_cluster
from loopcheck.validation.execution.environments import environment_of
from loopcheck.validation.execution.errors import internal_errors
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec
from loopcheck.validation.execution.workers import WorkerFailure, WorkerPool
from loopcheck.validation.frame.study import Computed, Conclusion, Study, StudyResult
from loopcheck.validation.studies.sweep import motions
from loopcheck.validation.studies.sweep.cases import Variation, compute_cases, effort_columns, lost_cases, nominal
from loopcheck.validation.studies.sweep.dataset import chunks, clear, part, write_part
from loopcheck.validation.studies.sweep.report import SweepResult, derived, sections, summary, verdicts
from loopcheck.validation.studies.sweep.statistics import gather, nominal_efforts


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep(Study):
    """All cases of a variation, in a data set that grows a chunk at a time."""

    name: ClassVar[str] = "sweep"
    page: ClassVar[str] = "sweep"
    tables: ClassVar[Mapping[str, TableSpec]] = {}

    variation: Variation
    cases: int = 1000
    scheduler: str | None = None
    """Address of a Dask scheduler for all cases except single retries."""

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`.

        If a task of several cases crashes or times out, its cases are computed again one at a time, each with the full
        time limit.
        """
        _want_known(self.variation)
        clear(folder)
        parts = chunks(self.cases)
        errors: set[str] = set()
        for k, rows in _computed(self, parts, pool):
            write_part(rows, part(folder, k))
            errors.update(internal_errors(rows["note"].unique()))
        record = {"scheduler": self.scheduler, "cases": self.cases, **_settled(self.variation)}
        return Computed({}, record, sorted(errors))

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        varied, cases = TypeAdapter(Variation).validate_python(result.record["variation"]), result.record["cases"]
        statistics = gather(varied, result.folder, len(chunks(cases)), nominal_efforts(varied))
        case_verdicts = SweepResult(variation=varied, cases=cases, statistics=statistics, record=result.record)
        return Conclusion(
            title=f"loopcheck: sweep of {varied.name}",
            sections=sections(case_verdicts),
            summary=list(summary(case_verdicts)),
            verdicts=verdicts(case_verdicts),
            tables=derived(case_verdicts),
        )


STUDY = Sweep


def describe_case(variation: Variation, case: int) -> Iterator[str]:
    """Outcome of every source in a case, and the changes of the parameters, a line each."""
    frame = compute_cases(variation, (case,))
    columns = ["motion", "source", "result", "relative_error", "note", *effort_columns(nominal(variation))]
    for row in frame[columns].to_dict("records"):
        yield ", ".join(f"{name} {value}" for name, value in row.items() if not _is_nothing(value))
    for parameter in nominal(variation).varied:
        yield f"{frame[parameter.name].iloc[0]:+.6f} %  {parameter.name}"


def _is_nothing(value: object) -> bool:
    return value in (None, "") or (isinstance(value, float) and math.isnan(value))


def _computed(study: Sweep, parts: Sequence[Sequence[int]], pool: WorkerPool) -> Iterator[tuple[int, pd.DataFrame]]:
    """Number and rows of each part, as they come."""
    failed = []
    with on_cluster(pool, study.scheduler) as many:
        tasks = [Task(compute_cases, (study.variation, cases), files=_files(study.variation)) for cases in parts]
        for k, rows in many.completed(tasks, "cases, some at a time"):
            if isinstance(rows, WorkerFailure):
                failed.append(k)
            else:
                yield k, rows
    yield from _one_by_one(study.variation, {k: parts[k] for k in failed}, pool)


def _one_by_one(
    variation: Variation, parts: Mapping[int, Sequence[int]], pool: WorkerPool
) -> Iterator[tuple[int, pd.DataFrame]]:
    """Rows of parts, each after the end of all its cases; repeated failures are noted."""
    cases = [(k, case) for k, of_part in parts.items() for case in of_part]
    files = _files(variation)
    tasks = [
        Task(compute_cases, (variation, (case,)), partial(lost_cases, variation, (case,)), files) for _, case in cases
    ]
    tables: dict[int, dict[int, pd.DataFrame]] = {k: {} for k in parts}
    for number, rows in pool.completed(tasks, "cases, one at a time"):
        k, case = cases[number]
        tables[k][case] = rows
        if len(tables[k]) == len(parts[k]):
            of_part = tables.pop(k)
            yield k, pd.concat([of_part[case] for case in parts[k]], ignore_index=True)


def _files(variation: Variation) -> tuple[Path, ...]:
    """Files of the robot, and descriptions of the environments of its sources."""
    case = nominal(variation).case
    places = (environment_of(sources.engine_of(source)) for source in variation.sources)
    environments = dict.fromkeys(environment.description for environment in places if environment is not None)
    motion = [case.robot.motion_file] if case.robot.motion_file else []
    return (*map(Path, case.mechanism.model.hashes), *motion, *environments)


def _want_known(variation: Variation) -> None:
    sources.want_known(variation.sources)
    for name in variation.sources:
        if environment_of(sources.engine_of(name)) is None:
            sources.load(name)
    for kind in variation.motions:
        if kind not in motions.KINDS:
            raise NotFoundError("kind of motion", kind, motions.KINDS)
    if variation.motions == ():
        raise MechanismError(f"--motion must name at least one kind of motion: {', '.join(motions.KINDS)}")


def _settled(variation: Variation) -> Mapping[str, Any]:
    """Common values of all rows of the data set, with defaults filled in."""
    case = nominal(variation).case
    return {
        "variation": asdict(variation) | {"mode": case.mode, "configuration": case.configuration},
        "model": file_hash(case.mechanism.model.path),
    }
