"""Every model of the manifest: fetched, read, moved, computed by every source, audited, tuned, each with a time cap."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan, nan
from pathlib import Path
from typing import Any, ClassVar

import pandas as pd

import engines
from robots.errors import HarnessError, NotFoundError
from robots.motion import Motion
from robots.robot import Case
from validation.execution.journal import Task
from validation.execution.tables import TableSpec, number, table_of, text
from validation.execution.user_folder import user_folder
from validation.execution.workers import WorkerFailure, WorkerPool
from validation.judge import sources
from validation.judge.evaluate import prescribe_or_error
from validation.judge.results import TABLES
from validation.studies.atlas.fetching import FOLDER, PUBLIC, fetched, want_remote
from validation.studies.atlas.manifest import Entry
from validation.studies.atlas.reading import CLASSES, Reading, read_model
from validation.studies.atlas.tuning import Cost, tuned_cost
from validation.studies.run.study import Run
from validation.studies.study import Computed, Conclusion, Study, StudyResult

TABLE = "atlas"
EXACT = ("analytic/noc", "analytic/lagrange")
AS_IS = "mujoco/as_is"
COPY = "copy"
VERDICTS = ("disagree", "agree", "not run", "not comparable", COPY)
AT_ONCE = 8
"""Models whose histories are in memory together."""
CAP = 120.0
"""How long a task of a model may take unless something else is said [s]."""


@dataclass(slots=True, kw_only=True)
class Page:
    """What is known of a model so far."""

    entry: Entry
    reading: Reading | None = None
    verdict: str = ""
    copies: str = ""
    """Name of the model that stands for it."""
    notes: list[str] = field(default_factory=list)
    counts: Mapping[str, Any] = field(default_factory=dict)
    """Of the closed mechanism, by name."""
    error: float = nan
    """Of the file as it is [-]."""
    cost: Cost = field(default_factory=Cost)

    def stop(self, verdict: str, reason: str) -> None:
        """Go no further with it."""
        self.verdict = verdict
        self.notes.append(reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Atlas(Study):
    """Public models, held against the equations of motion some at a time, so that memory does not grow with them."""

    name: ClassVar[str] = "atlas"
    page: ClassVar[str] = "atlas"
    tables: ClassVar[Mapping[str, TableSpec]] = {
        TABLE: table_of(
            {
                **{
                    name: text() for name in ("id", "repository", "commit", "path", "licence", "mesh_licence", "sha256")
                },
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
    """Names; by default all of what is installed."""
    cap: float = CAP
    """How long a task may take [s]."""
    tunes: bool = True
    """Whether settings are searched for."""

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """See `Study.compute`; what stops one model is its note, and stops no other."""
        sources.want_known(self.sources)
        want_remote(self.remote)
        capped = pool.limited(self.cap)
        pages = [Page(entry=entry) for entry in self.entries]
        first: dict[str, str] = {}
        tables: list[Mapping[str, pd.DataFrame]] = []
        record: dict[str, Any] = {}
        for some in (pages[k : k + AT_ONCE] for k in range(0, len(pages), AT_ONCE)):
            cases, motions = self._cases(some, first, capped)
            if cases:
                run = Run(
                    cases=list(cases.values()),
                    sources=self.sources,
                    motions={case.key: motions[name] for name, case in cases.items()},
                    writes_logs=False,
                    draws=False,
                )
                computed = run.compute(capped, folder)
                record = _merged(record, computed.record)
                tables.append({name: computed.tables[name] for name in ("summary", "audit")})
                _judge(cases, some, tables[-1]["summary"], computed.record)
                if self.tunes:
                    _tune(cases, some, capped)
        frames = {name: _joined([table[name] for table in tables], name) for name in ("summary", "audit")}
        rows = self.tables[TABLE].frame([_row(page) for page in pages])
        record |= {"cap_s": self.cap, "tuned": self.tunes}
        return Computed({TABLE: rows, **{name: _without_cache(frame) for name, frame in frames.items()}}, record)

    def _cases(
        self, pages: Sequence[Page], first: dict[str, str], pool: WorkerPool
    ) -> tuple[dict[str, Case], dict[str, Motion]]:
        """The cases that move, and their motions, by name of their model; all others get the reason why they do not.

        Args:
            pages: Of some models.
            first: Names of the models so far by their fingerprints; these are added.
            pool: What computes.
        """
        paths: dict[str, Path] = {}
        for page in pages:
            try:
                paths[page.entry.model.id] = fetched(page.entry, self.remote)
            except HarnessError as error:
                page.stop("not run", f"not fetched: {error}")
        present = [page for page in pages if not page.verdict]
        tasks = [
            Task(
                read_or_error, (page.entry.model, paths[page.entry.model.id]), WorkerFailure, _files(page.entry, paths)
            )
            for page in present
        ]
        cases: dict[str, Case] = {}
        for page, reading in zip(present, pool.results(tasks, "models"), strict=True):
            case = _take(page, reading, first)
            if case is not None:
                cases[page.entry.model.id] = case
        return _moving(present, cases, paths, pool)

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        """See `Study.conclude`."""
        from validation.studies.atlas.report import sections, summary

        rows = result.tables[TABLE]
        return Conclusion(
            title="loopcheck: the atlas of closed-loop robots",
            sections=sections(rows, result.tables["summary"]),
            summary=list(summary(rows)),
            last=[f"report: {result.folder / 'atlas.html'}"],
            verdicts=[verdict for verdict in rows["verdict"] if verdict != COPY],
        )


STUDY = Atlas


def read_or_error(*arguments: Any) -> Reading | HarnessError:
    """What a model is, or why it cannot be read."""
    try:
        return read_model(*arguments)
    except HarnessError as error:
        return error


def _take(page: Page, reading: Reading | HarnessError | WorkerFailure, first: dict[str, str]) -> Case | None:
    """Note what a model is; its case if it has one and no other model stands for it."""
    if isinstance(reading, WorkerFailure):
        page.stop("not run", reading.reason)
    elif isinstance(reading, HarnessError):
        page.stop("not comparable", str(reading))
    else:
        page.reading = reading
        name = page.entry.model.id
        page.copies = "" if (stands := first.setdefault(reading.fingerprint, name)) == name else stands
        if page.copies:
            page.verdict = COPY
        elif reading.case is None:
            page.stop("not comparable", reading.reason)
        return None if page.verdict else reading.case
    return None


def _moving(
    pages: Sequence[Page], cases: Mapping[str, Case], paths: Mapping[str, Path], pool: WorkerPool
) -> tuple[dict[str, Case], dict[str, Motion]]:
    """Those of the cases that a motion can be made for, with it."""
    files = {page.entry.model.id: _files(page.entry, paths) for page in pages}
    tasks = [Task(prescribe_or_error, (case, None), WorkerFailure, files[name]) for name, case in cases.items()]
    motions = dict(zip(cases, pool.results(tasks, "motions"), strict=True))
    for page in pages:
        motion = motions.get(page.entry.model.id)
        if isinstance(motion, WorkerFailure):
            page.stop("not run", f"no motion: {motion.reason}")
        elif isinstance(motion, HarnessError):
            page.stop("not comparable", f"no motion: {motion}")
    made = {name: motion for name, motion in motions.items() if isinstance(motion, Motion)}
    return {name: cases[name] for name in made}, made


def _judge(cases: Mapping[str, Case], pages: Sequence[Page], summary: pd.DataFrame, record: Mapping[str, Any]) -> None:
    """Note what a run has found of each model."""
    for page in pages:
        name = page.entry.model.id
        if name not in cases:
            continue
        rows = summary[summary["robot"] == name]
        kinds = set(rows["verdict"])
        page.verdict = next((verdict for verdict in VERDICTS if verdict in kinds), "not comparable")
        page.error = float(rows.loc[(rows["source"] == AS_IS) & (rows["scale"] > 0), "relative_error"].max())
        page.counts = record["robots"][name]["mechanism"]
        if page.verdict != "agree":
            reasons = rows.loc[rows["verdict"] == page.verdict, "note"].dropna().unique()
            page.notes += [str(reason) for reason in reasons[:1]]


def _tune(cases: Mapping[str, Case], pages: Sequence[Page], pool: WorkerPool) -> None:
    """Note what tuned settings cost, of models whose simulation as it is can be judged."""
    tuned = [page for page in pages if not isnan(page.error)]
    tasks = [Task(tuned_cost, (cases[page.entry.model.id],), _no_cost) for page in tuned]
    for page, cost in zip(tuned, pool.results(tasks, "tuned settings"), strict=True):
        page.cost = cost
        if cost.reason:
            page.notes.append(f"tuned: {cost.reason}")


def _row(page: Page) -> Mapping[str, Any]:
    repository, model, reading = page.entry.repository, page.entry.model, page.reading
    known = {} if reading is None else {"bodies": reading.bodies, "actuators": reading.actuators}
    loops = None if reading is None else reading.loops
    return {
        "id": model.id,
        "repository": repository.repository,
        "commit": repository.commit,
        **{name: getattr(model, name) for name in ("path", "licence", "mesh_licence")},
        "sha256": page.entry.sha256,
        "class": "" if reading is None else reading.kind,
        "loops": nan if loops is None else float(loops),
        "dof": float(page.counts.get("dof", nan)),
        **{name: float(known.get(name, nan)) for name in ("actuators", "bodies")},
        "start": reading.case.mode if reading is not None and reading.case is not None else model.start,
        "verdict": page.verdict,
        "as_is_error": page.error,
        "tuned_cost": page.cost.ratio,
        "tuned_accuracy": page.cost.accuracy,
        "copies_of": page.copies,
        "note": _short("; ".join(page.notes)),
    }


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Two records of runs as one: what is known of robots, sources and so on together."""
    merged = {**one, **other}
    for name, value in other.items():
        if isinstance(value, Mapping) and isinstance(one.get(name), Mapping):
            merged[name] = _merged(one[name], value)
    return merged


def _joined(frames: Sequence[pd.DataFrame], name: str) -> pd.DataFrame:
    return pd.concat(frames, ignore_index=True) if frames else TABLES[name].frame([])


def _without_cache(frame: pd.DataFrame) -> pd.DataFrame:
    """A table whose notes say where a file is in its repository, not where it is on this machine."""
    return frame.assign(note=[note if note is None or note != note else _short(str(note)) for note in frame["note"]])


def _short(note: str) -> str:
    return note.replace(f"{user_folder(FOLDER)}/", "")


def _files(entry: Entry, paths: Mapping[str, Path]) -> tuple[Path, ...]:
    """The files that a model is read from."""
    root = paths[entry.model.id].parents[entry.model.path.count("/")] if entry.model.id in paths else Path()
    return tuple(root / path for path in entry.model.every_file)


def _no_cost(reason: str) -> Cost:
    return Cost(reason=reason)


def sources_of(names: Sequence[str]) -> tuple[str, ...]:
    """The sources of some engines, with the analytic ones; none where none is named, which stands for all.

    Args:
        names: Of the engines.

    Raises:
        NotFoundError: If one is unknown.
    """
    for name in names:
        if name not in engines.engine_names():
            raise NotFoundError("engine", name, engines.engine_names())
    routes = [route for route in engines.names() if not engines.on_request(route)]
    of_engines = [route for name in names for route in routes if route.split("/")[0] == name]
    return (*EXACT, *of_engines) if names else ()
