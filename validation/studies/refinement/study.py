"""Refinement ladders of all routes: expected and observed orders, errors and uncertainties."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

from loopcheck import engines
from loopcheck.engines import declarations as declared
from loopcheck.engines.declarations import Ladder
from loopcheck.robots.errors import NotFoundError
from loopcheck.robots.formats.model_file import file_hash
from loopcheck.robots.robot import Case
from loopcheck.validation.common.sources import engine_of
from loopcheck.validation.execution.environments import environment_of, used_environments
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec
from loopcheck.validation.execution.workers import WorkerFailure, WorkerPool
from loopcheck.validation.frame.study import Computed, Conclusion, Study, StudyResult
from loopcheck.validation.studies.refinement.analysis import claims
from loopcheck.validation.studies.refinement.levels import (
    LEVELS,
    PreparedCase,
    levels_not_run,
    prepared_case,
    simulate_levels,
)
from loopcheck.validation.studies.refinement.report import how, orders_table, sections, study_verdicts, targets

TABLE, CLAIMS, TITLE = "refinement_levels", "refinement_orders", "loopcheck: orders of convergence"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refinement(Study):
    """Routes and robots of the study; an empty tuple has the meaning in its comment."""

    name: ClassVar[str] = "refinement"
    page: ClassVar[str] = "refinement"
    tables: ClassVar[dict[str, TableSpec]] = {TABLE: LEVELS}

    cases: Sequence[Case]
    sources: tuple[str, ...] = ()
    """Routes; by default all installed routes with refinement levels."""

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`."""
        _want_known(self.sources)
        cases = self.cases
        prepared_cases = pool.results([Task(prepared_case, (case,), WorkerFailure) for case in cases], "motions")
        pairs = [
            (prepared, ladder)
            for prepared in prepared_cases
            if isinstance(prepared, PreparedCase)
            for ladder in _ladders(self, prepared, pool)
        ]
        tasks = [
            Task(
                simulate_levels,
                (prepared, ladder),
                partial(levels_not_run, prepared, ladder),
                engine=engine_of(ladder.route),
            )
            for prepared, ladder in pairs
        ]
        levels = pool.results(tasks, "ladders")
        table = pd.concat(levels, ignore_index=True) if levels else LEVELS.frame([])
        return Computed({TABLE: table}, {"models": _models(cases)})

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        levels = result.tables[TABLE]
        if levels.empty:  # every motion was lost
            return Conclusion(
                title=TITLE, sections=[how(result.record)], summary=["no refinement was simulated"], verdicts=[]
            )
        found = claims(levels, targets())
        return Conclusion(
            title=TITLE,
            sections=sections(levels, result.record),
            summary=[orders_table(found)],
            verdicts=study_verdicts(found),
            tables={CLAIMS: found},
        )


STUDY = Refinement


def _models(cases: Sequence[Case]) -> Mapping[str, Any]:
    """The file of each robot, with its digest."""
    files = {case.robot.name: case.mechanism.model.path for case in cases}
    return {name: {"file": path.name, "sha256": file_hash(path)} for name, path in files.items()}


def _want_known(sources: Sequence[str]) -> None:
    known_routes = tuple(name for name in engines.names() if name.endswith("/forward"))
    for name in sources:
        if name not in known_routes:
            raise NotFoundError("route with refinement levels", name, known_routes)
        if environment_of(engine_of(name)) is None:
            engines.load(name)


def _ladders(study: Refinement, prepared: PreparedCase, pool: WorkerPool) -> Iterator[Ladder]:
    """The ladders of the requested routes, without the excluded routes of the robot."""

    def is_wanted(route: str) -> bool:
        return route in study.sources if study.sources else not engines.on_request(route)

    tasks = [
        Task(declared.outlines, (engine, prepared.motion), lambda _: [], engine=engine)
        for engine in used_environments()
        if engines.provides(engine, "refinements")
    ]
    elsewhere = [ladder for of_engine in pool.results(tasks, "ladders") for ladder in of_engine]
    for ladder in (*declared.ladders(prepared.motion), *elsewhere):
        if is_wanted(ladder.route) and ladder.route not in prepared.case.robot.without:
            yield ladder
