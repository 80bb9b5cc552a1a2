"""The interface of a study, and the computation, output, rebuild and exit status of all studies."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import shlex
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from joblib import cpu_count
from rich.console import RenderableType
from rich.text import Text

from loopcheck.robots.errors import INTERNAL, OutputError
from loopcheck.robots.formats.losses import MEANING, Loss, losses_in, unread, want_losses
from loopcheck.robots.robot import Case
from loopcheck.validation.common import verdicts
from loopcheck.validation.common.json_values import finite
from loopcheck.validation.execution.code_state import commit
from loopcheck.validation.execution.environments import engine_versions, used_environments
from loopcheck.validation.execution.errors import internal_errors
from loopcheck.validation.execution.files import RECORD, locked
from loopcheck.validation.execution.invocation import pasted
from loopcheck.validation.execution.journal import journal_in
from loopcheck.validation.execution.tables import TableSpec, read_record, read_tables, write_csv, write_tables
from loopcheck.validation.execution.workers import ALL_CORES, TaskLog, WorkerPool, Workers, worker_pool
from loopcheck.validation.frame.preload import PRELOAD
from loopcheck.validation.report import pages
from loopcheck.validation.report.blocks import Block, Section, Table, cell

if TYPE_CHECKING:
    import pandas as pd

LIBRARIES = ("numpy", "scipy", "pandas", "matplotlib")
VERSION = 1
"""Version of the JSON objects: it increases when an entry is removed or changes its meaning."""
MEASURED = verdicts.MEASURED
"""Verdict on a measured value without a limit."""
PASSED = frozenset({"agree", "as expected", MEASURED})
OPEN = frozenset({"not run", "not comparable"})


Say: TypeAlias = Callable[[Sequence[RenderableType]], None]
"""Output of a study to the user."""


def ignore(_: object) -> None:
    """Discard the first result of a study."""


def say_nothing(_: Sequence[RenderableType]) -> None:
    """Discard the terminal output of a study."""


class Computed(NamedTuple):
    """Computed tables of a study."""

    tables: Mapping[str, pd.DataFrame]
    """Tables by the names in `tables` of the study."""
    record: Mapping[str, Any] = {}
    """Additional entries of `run.json`."""
    notes: Iterable[str] = ()
    """Notes on rows that are in no table; internal errors are searched in them as in the notes of tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyResult:
    """Content of a folder of results: the complete input of a study's page."""

    folder: Path
    tables: Mapping[str, pd.DataFrame]
    record: Mapping[str, Any]
    """Content of `run.json`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conclusion:
    """Page, summary and verdicts from the result of a study."""

    title: str
    """Of the page."""
    sections: Iterable[Section]
    """Title of the page."""
    summary: Sequence[RenderableType]
    """Output on the terminal before the page is drawn; the path of the page follows."""
    verdicts: Sequence[str]
    """`agree`, `as expected`, `disagree`, `not comparable`, `not run`, `measured`; any other text is not judged."""
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    """Additional tables from the results."""
    hints: Sequence[RenderableType] = ()
    """Output after the summary; alone, if the summary of the first tables is on the terminal already."""


class Study(ABC):
    """A computation over many cases, with its tables, page and verdicts."""

    name: ClassVar[str]
    """The command."""
    page: ClassVar[str]
    """Stem of the page's files, without a page empty."""
    tables: ClassVar[Mapping[str, TableSpec]]
    """Computed tables, by name."""
    shown: ClassVar[Sequence[str]] = ()
    """Tables in the JSON object besides those with verdicts."""
    has_first_verdict: ClassVar[bool] = False
    """Whether the summary of the first tables is final, so that the terminal shows it while the rest is computed."""

    @property
    def losses(self) -> tuple[Loss, ...]:
        """Elements of the model files that the reference does not take into account, of all cases of the study."""
        values = (getattr(self, one.name) for one in fields(self) if one.init)  # type: ignore[arg-type]
        parts = chain.from_iterable(value if isinstance(value, list | tuple) else (value,) for value in values)
        return tuple(dict.fromkeys(loss for part in parts if isinstance(part, Case) for loss in part.mechanism.losses))

    def want_losses(self, leave_out: Iterable[str]) -> None:
        """Check that each name of `--leave-out` fits an element of a model of the study.

        Raises:
            NotFoundError: If a name fits none; the message lists the names.
        """
        want_losses(leave_out, self.losses)

    def publishing(self, publish: Callable[[Computed], None]) -> Study:
        """The study, which publishes first tables while it computes the others; by default it has none.

        Args:
            publish: Takes the tables.
        """
        return self

    @abstractmethod
    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        """Compute the tables.

        Args:
            pool: Workers; rows of a lost task come from its `on_failure`.
            folder: Folder for files that are too large for a table.

        Raises:
            HarnessError: If an input is missing or bad.
        """

    @staticmethod
    @abstractmethod
    def conclude(result: StudyResult) -> Conclusion:
        """Page, summary and verdicts, from the content of the folder alone."""


def run_study(
    study: Study,
    folder: Path,
    *,
    workers: Workers = ALL_CORES,
    command: Sequence[str] = (),
    say: Say = say_nothing,
    all_figures: bool = False,
) -> tuple[StudyResult, Conclusion]:
    """Compute a study, except results in the journal of its folder, and write tables, record and page.

    Args:
        study: Study to compute.
        folder: Output folder, for studies of one name.
        workers: Worker processes; by default one for each core.
        command: The command line, to be recorded.
        say: Takes the summary as soon as the tables are written, before the page is drawn.
        all_figures: Whether the page contains the figures on request.

    Raises:
        HarnessError: If an input is missing or bad, or the folder cannot be written.
    """
    with locked(folder):
        _want_own(folder, study.name)
        with journal_in(folder) as journal, worker_pool(workers, journal, PRELOAD) as pool:
            shown: list[StudyResult] = []

            def write_first(result: StudyResult) -> None:
                if study.has_first_verdict:
                    shown.append(result)
                    say([*_unread_lines(result.record), *study.conclude(result).summary])
                    return
                write_tables(folder, study.tables, result.tables, result.record)
                write_conclusion(study, result)
                pool.progress.say(f"First report, while simulations run: {_page(study, folder)}")

            result = computed(study, folder, pool, command, write_first)
            write_tables(folder, study.tables, result.tables, result.record)
            return result, write_conclusion(study, result, pool, say, all_figures=all_figures, is_shown=bool(shown))


def computed(
    study: Study,
    folder: Path,
    pool: WorkerPool,
    command: Sequence[str] = (),
    publish: Callable[[StudyResult], None] = ignore,
) -> StudyResult:
    """The tables and the record of a study.

    Args:
        study: Study to compute.
        folder: Folder for files that are too large for a table.
        command: The command line, to be recorded.
        publish: Takes the first result, while the study computes the rest; its record has the entry `is_first`.

    Raises:
        HarnessError: If an input is missing or bad.
    """
    start = datetime.now(UTC)

    def result_of(part: Computed, **more: Any) -> StudyResult:
        losses = {"losses": [asdict(loss) for loss in study.losses]}
        failures = (failure.reason for failure in pool.log.failures)
        errors = {"internal_errors": internal_errors([*part.notes, *failures, *notes_of(part.tables.values())])}
        if pool.journal and pool.journal.notes:
            errors["journal"] = list(pool.journal.notes)
        record = {**_record(study, command, start, pool.log), **losses, **errors, **part.record, **more}
        return StudyResult(folder=folder, tables=part.tables, record=record)

    publishing = study.publishing(lambda part: publish(result_of(part, is_first=True)))
    return result_of(publishing.compute(pool, folder))


def notes_of(tables: Iterable[pd.DataFrame]) -> Iterator[str]:
    """Notes in tables, each once."""
    for table in tables:
        if "note" in table:
            yield from table["note"].dropna().unique()


def write_conclusion(
    study: Study | type[Study],
    result: StudyResult,
    pool: WorkerPool | None = None,
    say: Say = say_nothing,
    *,
    all_figures: bool = False,
    is_shown: bool = False,
) -> Conclusion:
    """Write the page of a study, and the tables derived from its result.

    Args:
        pool: Workers that draw the page; by default this process draws it.
        say: Takes the terminal output: first the summary, and last the path of the page.
        all_figures: Whether the page contains the figures on request.
        is_shown: Whether the summary is on the terminal already.

    Raises:
        OutputError: If the folder cannot be written.
    """
    conclusion = study.conclude(result)
    if conclusion.tables:
        write_csv(result.folder, conclusion.tables)
    say([*([] if is_shown else [*_unread_lines(result.record), *conclusion.summary]), *conclusion.hints])
    if study.page:
        sections = chain(
            _first_section(result.record),
            _unread_section(result.record),
            conclusion.sections,
            _open_tasks(result.record),
        )
        command = "" if all_figures else pasted("report", str(result.folder), "--all-figures")
        complete = pages.completed(list(pages.selected(sections, command)), pool)
        title, is_first = conclusion.title, bool(result.record.get("is_first"))
        pages.write_pages(complete, result.folder, stem=study.page, title=title, is_first=is_first)
        say([Text(f"Report: {_page(study, result.folder)}")])
    return conclusion


def _page(study: Study | type[Study], folder: Path) -> Path:
    return folder / f"{study.page}.html"


def write_result(study: type[Study], folder: Path, result: StudyResult) -> Path:
    """Write tables, record and page of a study that is computed; returns the path of the page.

    Raises:
        OutputError: If the folder cannot be written, or holds results of another study.
    """
    with locked(folder):
        _want_own(folder, study.name)
        write_tables(folder, study.tables, result.tables, result.record)
        write_conclusion(study, replace(result, folder=folder))
    return _page(study, folder)


def rebuild(
    folder: Path, workers: Workers = ALL_CORES, say: Say = say_nothing, *, all_figures: bool = False
) -> Conclusion:
    """Write the page of a study again, from the content of its folder.

    Args:
        folder: Folder of its results.
        workers: Workers that draw the page.
        say: Takes the terminal output.
        all_figures: Whether the page contains the figures on request.

    Raises:
        OutputError: If a table is missing or invalid, or the folder cannot be written.
    """
    record = read_record(folder)
    study = _study_named(str(record.get("study")), folder)
    with locked(folder), worker_pool(workers, preload=PRELOAD) as pool:
        result = StudyResult(folder=folder, tables=read_tables(folder, study.tables), record=record)
        return write_conclusion(study, result, pool, say, all_figures=all_figures)


def exit_status(verdicts: Iterable[str], record: Mapping[str, Any]) -> int:
    """Exit status of every command: 70 internal error, 1 disagreement, 3 open or no judged comparison, otherwise 0.

    Args:
        verdicts: Verdicts of the study's conclusion.
        record: Content of `run.json`.
    """
    kinds = set(verdicts)
    if record.get("internal_errors"):  # folders of earlier versions have neither
        return 70
    if "disagree" in kinds:
        return 1
    return 3 if record.get("not_run") or unread(losses_in(record)) or kinds & OPEN or not kinds & PASSED else 0


def _unread_lines(record: Mapping[str, Any]) -> Iterator[Text]:
    """Unread parts of mechanisms, then unread parts of actuators and unknown names, for the terminal."""
    losses = [loss for loss in losses_in(record) if loss.path and not loss.is_accepted]
    for loss in unread(losses):
        accept = shlex.join(["--leave-out", loss.tag])
        yield Text(f"{_short(loss)}: the results are of the model without it. To accept this: {accept}")
    for loss in losses:
        if loss.kind in ("drive", "unknown"):
            yield Text(_short(loss))


def _short(loss: Loss) -> str:
    return f"{Path(loss.file).name}:{loss.line}: {loss}"


def _first_section(record: Mapping[str, Any]) -> list[Section]:
    """What a first page lacks."""
    if not record.get("is_first"):
        return []
    text = (
        "Simulations are still running. What does not simulate is complete. The page loads itself again until the "
        "simulations have ended."
    )
    return [Section(title="First report", anchor="first", blocks=[text])]


def _unread_section(record: Mapping[str, Any]) -> list[Section]:
    """Elements of the model files that are not read."""
    losses = [loss for loss in losses_in(record) if loss.path]
    if not losses:
        return []
    rows = [
        (loss.place, loss.tag, MEANING[loss.kind], loss.words, loss.count, "accepted" if loss.is_accepted else "")
        for loss in losses
    ]
    head = ["file:line", "name", "kind", "meaning", "count [-]", "--leave-out"]
    blocks: list[Block] = [Table(head, [[cell(one) for one in row] for row in rows])]
    if unread(losses):
        blocks.insert(
            0, "A part of the mechanism is not read: the results are of the model without it (exit status 3)."
        )
    return [Section(title="Not read", anchor="not-read", blocks=blocks)]


def json_object(study: Study, result: StudyResult, conclusion: Conclusion) -> dict[str, Any]:
    """The result of a study for other programs: counts of verdicts, output folder, tables and record.

    `python -m docs.json_schemas` writes its JSON Schemas. Time series stay in their files.
    """
    return {
        "schema": schema_name(study.name),
        "study": study.name,
        "verdicts": dict(Counter(conclusion.verdicts)),
        "folder": str(result.folder.absolute()),
        "tables": {name: f"{name}.csv" for name in result.tables},
        "rows": {name: _json_rows(result.tables[name]) for name in json_tables(study)},
        "record": finite(dict(result.record)),
    }


def schema_name(study: str) -> str:
    """Name and version of the JSON object of a study."""
    return f"loopcheck.{study}/{VERSION}"


def json_tables(study: Study | type[Study]) -> list[str]:
    """Names of the tables in the JSON object of a study."""
    return [name for name, spec in study.tables.items() if "verdict" in spec.columns or name in study.shown]


def _json_rows(table: pd.DataFrame) -> list[Any]:
    """Rows with all digits; pandas' own writer keeps ten decimals, so that small errors would read zero."""
    return [finite(row) for row in table.to_dict("records")]


def _study_named(name: str, folder: Path) -> type[Study]:
    """The study of a name: `NAME` is in `NAME/study.py`, `NAME.PART` in `NAME/PART.py`."""
    package, _, module = name.partition(".")
    rooms = [Path(__file__).parents[1], Path(__file__).parents[1] / "studies"]  # of a command, of a study
    found = [room for room in rooms if (room / package / f"{module or 'study'}.py").is_file()]
    if not re.fullmatch(r"\w+(\.\w+)?", name) or not found:
        raise OutputError(f"{folder / RECORD}: 'study' must name a study, got '{name}'")
    place = "loopcheck.validation" if found[0] == rooms[0] else "loopcheck.validation.studies"
    study: type[Study] = import_module(f"{place}.{package}.{module or 'study'}").STUDY
    return study


def _open_tasks(record: Mapping[str, Any]) -> list[Section]:
    """Lost tasks with their reasons, if any."""
    counts = Counter([*record.get("not_run", ()), *record.get("internal_errors", ())])
    reasons = [f"{reason} ({count} {'tasks' if count > 1 else 'task'})" for reason, count in counts.items()]
    return [Section(title="Not run", anchor="not-run", blocks=[reasons])] if reasons else []


def _want_own(folder: Path, name: str) -> None:
    if (folder / RECORD).exists():
        other = read_record(folder).get("study", "unknown")
        if other != name:
            raise OutputError(f"{folder}: must be empty or a folder of the study '{name}', got the study '{other}'")


def _record(study: Study, command: Sequence[str], start: datetime, log: TaskLog) -> dict[str, Any]:
    """Common record of all studies."""
    return {
        "study": study.name,
        "loopcheck": importlib.metadata.version("loopcheck"),
        "commit": commit(),
        "command": list(command),
        "start": start.isoformat(timespec="seconds"),
        "duration_s": (datetime.now(UTC) - start).total_seconds(),
        "tasks": {"computed": log.computed, "known": log.known},
        "not_run": sorted(failure.reason for failure in log.failures if not failure.reason.startswith(INTERNAL)),
        "versions": {
            "python": platform.python_version(),
            **{library: importlib.metadata.version(library) for library in LIBRARIES},
            **engine_versions(),
        },
        "environments": {
            engine: {"name": environment.name, "python": environment.python, "numpy": environment.numpy}
            for engine, environment in used_environments().items()
        },
        "cpu": {"model": cpu_model(), "cores": cpu_count(), "platform": platform.platform()},
        "units": {name: dict(spec.units) for name, spec in study.tables.items() if spec.units},
    }


def cpu_model() -> str:
    """Name of the processor, if the system states it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )
