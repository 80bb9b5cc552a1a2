"""Fixtures of the tests of the judge."""

import fcntl
import hashlib
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from pebble import ThreadPool

from loopcheck.robots.processes import main_left_out
from loopcheck.validation.check.stages import OF_PAGE
from loopcheck.validation.check.study import Check
from loopcheck.validation.cli import main
from loopcheck.validation.common.results import TABLES, Results
from loopcheck.validation.common.verdicts import exit_verdicts
from loopcheck.validation.execution import progress, workers
from loopcheck.validation.execution.errors import internal_errors
from loopcheck.validation.execution.forkserver import worker_context
from loopcheck.validation.execution.workers import ALONE, Workers, nothing, worker_pool
from loopcheck.validation.frame import study
from loopcheck.validation.frame.preload import PRELOAD
from loopcheck.validation.report import pages
from tests.pageless import leave_pages_out, shorten_proofs

Command: TypeAlias = Callable[..., tuple[int, str, str]]
"""Takes command-line arguments; returns exit status, stdout and stderr."""
Once: TypeAlias = Callable[..., Path]
"""Takes a function that fills an empty folder, and what it depends on; returns the folder, which tests only read."""


IMPORTED_LATE = (
    "scipy.interpolate",
    "scipy.integrate",
    "jinja2",
    "tabulate",
    "pyarrow.parquet",
    "matplotlib.figure",
    "mpl_toolkits.mplot3d",
)
"""Modules besides `PRELOAD` that a task imports when it needs them, in each of hundreds of workers of the tests."""


@pytest.fixture(scope="session", autouse=True)
def _forking() -> None:
    """The process that workers are forked from, for all tests of this one; it has imported what draws, too."""
    of_mutants = ["tests.mutation_config"] if "MUTANT_UNDER_TEST" in os.environ else []
    context = worker_context([*PRELOAD, *OF_PAGE, *IMPORTED_LATE, *of_mutants])
    with main_left_out():
        first = context.Process(target=nothing)  # which waits for the imports, so that no test takes their time
        first.start()
    first.join()


@pytest.fixture
def loopcheck(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs the command in this process; how far it is goes unsaid, however slow the machine."""
    monkeypatch.setattr(progress, "PERIOD", 1e6)

    def call(*arguments: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["loopcheck", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return call


@pytest.fixture(scope="session")
def once(tmp_path_factory: pytest.TempPathFactory) -> Once:
    """Makes a folder once for all processes of this run of the tests; the others wait for it."""
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "once"
    root.mkdir(exist_ok=True)

    def made(make: Callable[[Path], object], *key: object) -> Path:
        folder = root / hashlib.sha256(repr((make.__module__, make.__qualname__, key)).encode()).hexdigest()[:16]
        with folder.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not folder.exists():
                draft = Path(tempfile.mkdtemp(dir=root))
                make(draft)
                draft.rename(folder)
        return folder

    return made


@pytest.fixture
def tables_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """No page is drawn: for tests that look at tables, of robots whose page others draw."""
    leave_pages_out(monkeypatch)


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages have no figures that tasks draw: for tests that look at texts of pages."""
    monkeypatch.setattr(pages, "completed", lambda sections, _=None: [pages._filled(s, repeat([])) for s in sections])


@pytest.fixture
def short_proofs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proofs of settings with fewer samples and controllers: for tests of what is said about them."""
    shorten_proofs(monkeypatch)


def exit_status(results: Results) -> int:
    """Exit status of a run with these results."""
    errors = internal_errors(study.notes_of([results.summary, results.audit]))
    return study.exit_status(exit_verdicts(results), {"not_run": [], "internal_errors": errors, **results.run})


def write_report(results: Results, folder: Path, workers: Workers = ALONE, *, all_figures: bool = False) -> None:
    """Write the page of a run."""
    tables = {name: getattr(results, name) for name in TABLES}
    with worker_pool(workers, preload=PRELOAD) as pool:
        result = study.StudyResult(folder=folder, tables=tables, record=results.run)
        study.write_conclusion(Check, result, pool, all_figures=all_figures)


class Threads(ThreadPool):
    """Stands in for worker processes, which see nothing of what a test puts in place of what they call."""

    def __init__(self, count: int, **_: Any) -> None:
        super().__init__(count)

    def schedule(self, function: Callable[..., Any], args: Any = (), timeout: float = 0) -> Future[Any]:  # type: ignore[override]
        return super().schedule(function, args=args)


@contextmanager
def in_this_process() -> Iterator[pytest.MonkeyPatch]:
    """Calls run in threads; what is patched meanwhile holds for them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "Processes", Threads)
        patch.setattr(workers, "worker_context", lambda _: None)  # a server that forks would be started for nothing
        yield patch
