"""Runs the refinement ladders of all routes: what steps and solver settings cost and give."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

import engines
from engines import ladder as declared
from engines.ladder import Ladder
from robots.errors import NotFoundError
from robots.robot import DEFAULT, Case, load, regular_modes
from robots.robot import names as robot_names
from validation.execution.environments import environment_of, used_environments
from validation.execution.journal import Task
from validation.execution.tables import TableSpec
from validation.execution.workers import WorkerFailure, WorkerPool
from validation.judge.selection import Selection, plan
from validation.judge.sources import engine_of
from validation.studies.ladder.levels import LEVELS, PreparedCase, levels_not_run, prepared_case, simulate_levels
from validation.studies.ladder.report import derived, how, sections, settings_tables
from validation.studies.ladder.tuned import TUNED, tuned_rows
from validation.studies.study import MEASURED, Computed, Conclusion, Study, StudyResult

TABLE, ADVICE, TITLE = "ladder_rungs", "ladder_settings", "loopcheck: ladders"


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderStudy(Study):
    """What is measured; an empty tuple means what the comment says."""

    name: ClassVar[str] = "ladder"
    page: ClassVar[str] = "ladder"
    tables: ClassVar[dict[str, TableSpec]] = {TABLE: LEVELS, ADVICE: TUNED}

    robots: tuple[str, ...] = ()
    """By default all."""
    configurations: tuple[str, ...] = ()
    """By default all."""
    modes: tuple[str, ...] = ()
    """By default the first of each robot that meets no singularity."""
    sources: tuple[str, ...] = ()
    """Routes; by default all that have ladders and are installed."""

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`."""
        cases = _cases(self)
        prepared_cases = pool.results([Task(prepared_case, (case,), WorkerFailure) for case in cases], "motions")
        pairs = [
            (prepared, ladder)
            for prepared in prepared_cases
            if isinstance(prepared, PreparedCase)
            for ladder in _ladders(self, prepared, pool)
        ]
        tasks = [
            Task(simulate_levels, (prepared, ladder), partial(levels_not_run, prepared, ladder), engine=_engine(ladder))
            for prepared, ladder in pairs
        ]
        levels = pool.results(tasks, "ladders")
        table = pd.concat(levels, ignore_index=True) if levels else LEVELS.frame([])
        firsts = {case.robot.name: case for case in reversed(cases)}
        return Computed({TABLE: table, ADVICE: tuned_rows(list(firsts.values()), pool)}, {"models": _models(cases)})

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        levels = result.tables[TABLE]
        page = result.folder / "ladder.html"
        if levels.empty:  # every motion was lost
            return Conclusion(
                title=TITLE, sections=[how(result.record)], summary=["no ladder was simulated"], verdicts=[]
            )
        return Conclusion(
            title=TITLE,
            sections=sections(levels, result.tables[ADVICE], result.record),
            summary=list(settings_tables(result.tables[ADVICE])),
            last=[f"what to set in full, and the diagrams: {page}"],
            verdicts=[MEASURED] * len(levels),
            tables=derived(levels),
        )


STUDY = LadderStudy


def _models(cases: Sequence[Case]) -> Mapping[str, Any]:
    """The file of each robot, with its digest."""
    files = {case.robot.name: case.mechanism.model.path for case in cases}
    return {
        name: {"file": path.name, "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
        for name, path in files.items()
    }


def _cases(study: LadderStudy) -> list[Case]:
    """The cases of a study, in the default variant."""
    _want_known(study.sources)
    cases = []
    for name in study.robots or robot_names():
        modes = study.modes or regular_modes(load(name))[:1]
        cases += plan(Selection(robots=(name,), variants=(DEFAULT,), modes=modes, configurations=study.configurations))
    return cases


def _want_known(sources: Sequence[str]) -> None:
    known_routes = tuple(name for name in engines.names() if name.endswith("/forward"))
    for name in sources:
        if name not in known_routes:
            raise NotFoundError("route with ladders", name, known_routes)
        if environment_of(engine_of(name)) is None:
            engines.load(name)


def _none(_: str) -> list[Ladder]:
    """What an engine has that cannot say what it has."""
    return []


def _engine(ladder: Ladder) -> str:
    return engine_of(ladder.route)


def _ladders(study: LadderStudy, prepared: PreparedCase, pool: WorkerPool) -> Iterator[Ladder]:
    """The ladders of the routes that are asked for, but those that the robot goes without."""

    def is_wanted(route: str) -> bool:
        return route in study.sources if study.sources else not engines.on_request(route)

    tasks = [
        Task(declared.outlines, (engine, prepared.motion), _none, engine=engine)
        for engine in used_environments()
        if engines.provides(engine, "refinements")
    ]
    elsewhere = [ladder for of_engine in pool.results(tasks, "ladders") for ladder in of_engine]
    for ladder in (*declared.ladders(prepared.motion), *elsewhere):
        if is_wanted(ladder.route) and ladder.route not in prepared.case.robot.without:
            yield ladder
