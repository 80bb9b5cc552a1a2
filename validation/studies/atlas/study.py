"""Every model of the manifest: fetched, read, moved, computed by every source, audited, tuned, each with a time cap."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd
from rich.console import RenderableType
from rich.markup import escape

from loopcheck import engines
from loopcheck.robots.errors import HarnessError, NotFoundError
from loopcheck.robots.motion import Motion
from loopcheck.validation.check.efforts.evaluate import prescribe_or_error
from loopcheck.validation.check.study import Check
from loopcheck.validation.common import sources
from loopcheck.validation.common.results import TABLES
from loopcheck.validation.common.verdicts import Key
from loopcheck.validation.execution.cluster import on_cluster
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec, number, table_of, text
from loopcheck.validation.execution.workers import WorkerFailure, WorkerPool
from loopcheck.validation.frame.study import Computed, Conclusion, Study, StudyResult
from loopcheck.validation.public_models.fetching import PUBLIC, fetched, want_remote
from loopcheck.validation.public_models.manifest import AtlasModel, Entry
from loopcheck.validation.report import terminal
from loopcheck.validation.report.blocks import Section, digits, table
from loopcheck.validation.studies.atlas.model_pages import COPY, VERDICTS, Page, let_one_stand_for_copies, without_cache
from loopcheck.validation.studies.atlas.reading import CLASSES, ReadModel, read_model
from loopcheck.validation.studies.atlas.tuning import Cost, tuned_cost

SHOWN = ("id", "class", "loops", "dof", "actuators", "verdict", "as_is_error", "tuned_cost", "tuned_accuracy")
NUMBERS = ("loops", "dof", "actuators", "as_is_error", "tuned_cost", "tuned_accuracy")


TABLE = "atlas"
EXACT = ("analytic/noc", "analytic/lagrange")
AT_ONCE = 16
"""Number of models with histories in memory at the same time."""
CAP = 60.0
"""Default limit of the CPU time of a task [s]: a loaded machine decides no row."""
TUNING = 10.0
"""Limit of the CPU time of a tuning, over that of other tasks [-]: it has many simulations."""
RUNS = 0.6
"""Limit of the CPU time of its runs, over that of the tuning [-]; motions, and a proof that has begun, come on top."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Atlas(Study):
    """Public models, held against the equations of motion some at a time, so that memory does not grow with them."""

    name: ClassVar[str] = "atlas"
    page: ClassVar[str] = "atlas"
    tables: ClassVar[Mapping[str, TableSpec]] = {
        TABLE: table_of(
            {
                **{name: text() for name in ("id", "repository", "commit", "path", "licence", "mesh_licence")},
                **{name: text() for name in ("sha256", "patches", "patched_sha256")},
                "class": text(("", *CLASSES)),
                **{name: number("-") for name in ("loops", "dof", "actuators", "bodies")},
                "start": text(),
                "verdict": text(VERDICTS),
                **{name: number("-") for name in ("as_is_error", "tuned_cost", "tuned_accuracy")},
                "copies_of": text(),
                "note": text(),
            }
        ),
        **{name: TABLES[name] for name in ("summary", "audit")},
    }

    entries: Sequence[Entry]
    remote: str = PUBLIC
    """Beginning of the addresses of repositories."""
    sources: tuple[str, ...] = ()
    """Names of models; by default all installed models."""
    cap: float = CAP
    """Limit of the CPU time of a task [s]."""
    tunes: bool = True
    """Whether to search for settings."""
    scheduler: str | None = None
    """Address of a Dask scheduler; its workers must see the cache of models of this machine."""

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`; a failure of a model becomes its note, and other models continue."""
        sources.want_known(self.sources)
        want_remote(self.remote)
        pages = [Page(entry=entry) for entry in self.entries]
        with on_cluster(pool.with_cpu_limit(self.cap), self.scheduler) as workers:
            self._read(pages, workers)
            tables, record = self._judged([page for page in pages if page.case is not None], workers, folder)
        rows = self.tables[TABLE].frame([page.row() for page in pages])
        record |= {"cap_s": self.cap, "tuned": self.tunes, "scheduler": self.scheduler}
        return Computed({TABLE: rows, **{name: _joined(tables, name) for name in ("summary", "audit")}}, record)

    def _read(self, pages: Sequence[Page], pool: WorkerPool) -> None:
        """Fetch all models, and store their properties and originals."""
        for page in pages:
            try:
                page.path = fetched(page.entry, self.remote)
            except HarnessError as error:
                page.stop("not run", f"not fetched: {error}")
        present = [page for page in pages if page.path is not None]
        tasks = [Task(read_or_error, (page.entry.model, page.path), WorkerFailure, page.files) for page in present]
        for page, reading in zip(present, pool.results(tasks, "models"), strict=True):
            page.take(reading)
        let_one_stand_for_copies(pages)

    def _judged(
        self, pages: Sequence[Page], pool: WorkerPool, folder: Path
    ) -> tuple[Sequence[Mapping[str, pd.DataFrame]], dict[str, Any]]:
        """Tables of the models that move, several models each, and the record of all."""
        tables: list[Mapping[str, pd.DataFrame]] = []
        record: dict[str, Any] = {}
        motions = _motions(pages, pool)
        moving = [page for page in pages if page.case is not None]
        for some in (moving[k : k + AT_ONCE] for k in range(0, len(moving), AT_ONCE)):
            computed = self._run(some, motions, pool, folder)
            tables.append({name: computed.tables[name] for name in ("summary", "audit")})
            record = _merged(record, computed.record)
        if self.tunes:  # last, as it takes the most time and decides no verdict
            _tune(pages, pool.with_cpu_limit(TUNING * self.cap), RUNS * TUNING * self.cap)
        return tables, record

    def _run(self, pages: Sequence[Page], motions: Mapping[Key, Motion], pool: WorkerPool, folder: Path) -> Computed:
        """Check some models."""
        cases = [page.case for page in pages if page.case is not None]
        own = {case.key: motions[case.key] for case in cases}
        run = Check(cases=cases, sources=self.sources, motions=own, writes_logs=False, draws=False)
        computed = run.compute(pool, folder)
        for page in pages:
            page.judge(computed.tables["summary"], computed.record)
        return computed

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        rows = result.tables[TABLE]
        return Conclusion(
            title="loopcheck: the atlas of closed-loop robots",
            sections=sections(rows, result.tables["summary"]),
            summary=list(summary(rows)),
            verdicts=[verdict for verdict in rows["verdict"] if verdict != COPY],
        )


STUDY = Atlas


def read_or_error(model: AtlasModel, path: Path) -> ReadModel | HarnessError | WorkerFailure:
    """Properties of a model, or the reason for their absence.

    Args:
        model: Entry of the manifest.
        path: Path of its MJCF.
    """
    if not path.is_file():
        return WorkerFailure(f"{path}: workers must see the cache of models of this machine, but the file is missing")
    try:
        return read_model(model, path)
    except HarnessError as error:
        return error


def _motions(pages: Sequence[Page], pool: WorkerPool) -> dict[Key, Motion]:
    """The generated motions; models without a motion are not checked."""
    tasks = [Task(prescribe_or_error, (page.case, None), WorkerFailure, page.files) for page in pages]
    motions: dict[Key, Motion] = {}
    for page, motion in zip(pages, pool.results(tasks, "motions"), strict=True):
        if isinstance(motion, WorkerFailure):
            page.stop("not run", f"no motion: {motion.reason}")
        elif isinstance(motion, HarnessError):
            page.stop("not comparable", f"no motion: {motion}")
        elif page.case is not None:
            motions[page.case.key] = motion
    return motions


def _tune(pages: Sequence[Page], pool: WorkerPool, cpu_limit: float) -> None:
    """Store the cost of tuned settings in the pages of models that agree.

    Small models are first, so that most are done when a run is stopped.

    Args:
        cpu_limit: Limit of the CPU time of the runs of each model [s].
    """
    agreeing = [(page, page.case) for page in pages if page.case is not None and page.verdict == "agree"]
    agreeing.sort(key=lambda one: len(one[1].mechanism.bodies))
    tasks = [Task(tuned_cost, (case, cpu_limit), lambda reason: Cost(reason=reason)) for _, case in agreeing]
    for (page, _), cost in zip(agreeing, pool.results(tasks, "tuned settings"), strict=True):
        page.cost = cost
        if cost.reason:
            page.notes.append(f"tuned: {cost.reason}")


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Two records of checks as one, with the entries of robots, sources and so on joined."""
    merged = {**one, **other}
    for name, value in other.items():
        if isinstance(value, Mapping) and isinstance(one.get(name), Mapping):
            merged[name] = _merged(one[name], value)
    return merged


def _joined(tables: Sequence[Mapping[str, pd.DataFrame]], name: str) -> pd.DataFrame:
    """A table of all models, with places of files in their repositories in the notes."""
    if not tables:
        return TABLES[name].frame([])
    frame = pd.concat([table[name] for table in tables], ignore_index=True)
    notes = [note if note is None or note != note else without_cache(str(note)) for note in frame["note"]]
    return frame.assign(note=notes)


def sources_of(engines_named: Sequence[str], sources_named: Sequence[str] = ()) -> tuple[str, ...]:
    """The analytic sources, the default routes of some engines, and further sources; empty, for all, without names.

    Args:
        engines_named: Names of engines, each for its default routes.

    Raises:
        NotFoundError: If an engine is unknown.
    """
    for name in engines_named:
        if name not in engines.engine_names():
            raise NotFoundError("engine", name, engines.engine_names())
    routes = [route for route in engines.names() if not engines.on_request(route)]
    of_engines = [route for name in engines_named for route in routes if route.split("/")[0] == name]
    named = (*of_engines, *sources_named)
    return tuple(dict.fromkeys((*EXACT, *named))) if named else ()


def summary(rows: pd.DataFrame) -> Iterator[RenderableType]:
    """A line for each model, and the numbers of models by kind and verdict.

    Args:
        rows: Table of the atlas.
    """
    lines = [[escape(str(row[name])) for name in SHOWN] for row in _in_digits(rows).to_dict("records")]
    yield terminal.table([name.replace("_", " ") for name in SHOWN], lines, title="atlas")
    yield counts(rows)


def counts(rows: pd.DataFrame) -> str:
    """Numbers of models by kind and verdict, without copies, in words.

    Args:
        rows: Table of the atlas.
    """
    own = rows[rows["copies_of"] == ""]
    verdicts = ", ".join(f"{count} {name}" for name, count in own["verdict"].value_counts(sort=False).items())
    kinds = ", ".join(f"{count} {name or 'not read'}" for name, count in own["class"].value_counts(sort=False).items())
    copies = len(rows) - len(own)
    return f"{len(own)} models of {own['repository'].nunique()} repositories, {copies} copies: {kinds}; {verdicts}"


def sections(rows: pd.DataFrame, judged: pd.DataFrame) -> Iterator[Section]:
    """The page: every model, then every source with its verdicts.

    Args:
        rows: Table of the atlas.
        judged: The summary of all checks.
    """
    shown = _in_digits(rows)[[*SHOWN, "start", "copies_of", "repository", "licence", "note"]]
    yield Section(title="Models", anchor="models", blocks=[counts(rows), table(shown)])
    worst = judged.groupby(["source", "verdict"], sort=False)["robot"].nunique().reset_index(name="models")
    yield Section(title="Sources", anchor="sources", blocks=[table(worst)])


def _in_digits(rows: pd.DataFrame) -> pd.DataFrame:
    texts = {name: ["" if x != x else digits(x) for x in rows[name]] for name in NUMBERS}
    return rows.assign(**texts)
