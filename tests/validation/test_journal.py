"""The key of a task's result, and its storage: readable only by its user."""

import os
import pickle
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loopcheck.robots.errors import HarnessError, OutputError
from loopcheck.validation.check.study import Check
from loopcheck.validation.common.known_issues import LEDGER
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.common.tolerances import REGISTER
from loopcheck.validation.execution import journal as journals
from loopcheck.validation.execution.files import locked
from loopcheck.validation.execution.journal import JOURNAL, RESULT, Task, journal_in, keys
from loopcheck.validation.execution.workers import WorkerFailure, Workers, worker_pool
from loopcheck.validation.frame.study import run_study
from tests.conftest import MODELS
from tests.validation.conftest import in_this_process

COMPUTING = (
    "loopcheck.validation.check.efforts.evaluate",
    "loopcheck.validation.check.audit.audit",
    "loopcheck.validation.studies.errata.costs",
    "loopcheck.validation.studies.free_motion.measure",
    "loopcheck.validation.studies.refinement.levels",
    "loopcheck.validation.studies.control.runs",
    "loopcheck.validation.studies.sweep.cases",
)
"""Modules of the functions that tasks call."""
SHOWING = {
    "loopcheck.validation.report.blocks",
    "loopcheck.validation.report.pages",
    "loopcheck.validation.report.terminal",
    "loopcheck.validation.frame.study",
}


def double(x: float) -> float:
    return 2 * x


def crash(reason: str) -> None:
    raise ZeroDivisionError(reason)


@pytest.mark.parametrize("module", COMPUTING)
def test_how_results_are_shown_does_not_matter_to_them(module: str) -> None:
    """A change of the page recomputes no result, a change of the comparison does."""
    imported = journals._imported(module)
    assert module in imported
    assert not imported & SHOWING


def test_what_a_module_imports_matters_directly_or_not() -> None:
    assert "loopcheck.validation.check.efforts.compare" in journals._imported(
        "loopcheck.validation.studies.sweep.cases"
    )
    assert "loopcheck.validation.common.tolerances" in journals._imported(
        "loopcheck.validation.studies.sweep.cases"
    )  # by way of compare


def test_limits_and_known_issues_matter_to_results() -> None:
    assert {REGISTER, LEDGER} <= journals.code_files("loopcheck.validation.check.efforts.compare")


def test_other_packages_matter_to_results_and_our_own_metadata_do_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build beside the sources, of the wheel, leaves a folder there."""
    monkeypatch.syspath_prepend(tmp_path)
    digest = journals._packages.__wrapped__
    before = digest()
    (tmp_path / "loopcheck.egg-info").mkdir()
    assert digest() == before
    (tmp_path / "other-1.0.dist-info").mkdir()
    assert digest() != before


def test_a_result_is_known_by_function_arguments_and_files(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("one", encoding="utf-8")
    task = Task(double, (1.0,), files=(file,))
    (before,) = keys([task])
    file.touch()
    others = [task._replace(function=crash), task._replace(args=(2.0,)), task._replace(files=())]
    assert keys([task, task._replace(on_failure=str)]) == [before, before]
    assert before not in keys(others)
    file.write_text("two", encoding="utf-8")
    assert keys([task]) != [before]


def test_failures_are_not_kept_and_results_are(tmp_path: Path) -> None:
    tasks = [Task(double, (k,)) for k in (1.0, 2.0)] + [Task(crash, ("a slip",), WorkerFailure)]
    for known in (0, 2):
        with in_this_process(), journal_in(tmp_path) as journal, worker_pool(Workers(1), journal) as pool:
            *results, failure = pool.results(tasks, "tasks")
        assert results == [2.0, 4.0]
        line, _, path = failure.reason.partition("; traceback: ")
        assert line == "internal error: ZeroDivisionError: a slip"
        assert "raise ZeroDivisionError(reason)" in Path(path).read_text(encoding="utf-8")
        assert (pool.log.known, pool.log.computed, len(pool.log.failures)) == (known, 3 - known, 1)


def test_a_result_that_says_what_failed_is_computed_again(tmp_path: Path) -> None:
    tasks = [Task(HarnessError, ("a slip",)), Task(double, (1.0,), is_kept=lambda x: x > 2), Task(double, (2.0,))]
    for known in (0, 1):
        with in_this_process(), journal_in(tmp_path) as journal, worker_pool(Workers(1), journal) as pool:
            pool.results(tasks, "tasks")
        assert (pool.log.known, pool.log.computed) == (known, 3 - known)


def test_a_journal_is_made_smaller_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The least recently used result is deleted; never during a command."""
    monkeypatch.setattr(journals, "SIZE_LIMIT", 2**21)
    with journal_in(tmp_path) as journal:
        for k in range(60):
            journal.keep(str(k), bytes(2**16))
        assert len(list(journal.known([str(k) for k in range(60)]))) == 60
    with journal_in(tmp_path) as journal:
        assert [k for k, _ in journal.known(["0", "59"])] == [1]
    assert sum(path.stat().st_size for path in (tmp_path / JOURNAL).iterdir()) < 2**21


def test_a_used_result_stays_longer_and_other_files_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "SIZE_LIMIT", 2**17)
    with journal_in(tmp_path) as journal:
        for age, key in enumerate("ab"):
            journal.keep(key, bytes(2**16 - 1000))
            os.utime(tmp_path / JOURNAL / f"{key}{RESULT}", (age, age))
    notes = tmp_path / JOURNAL / "notes.txt"
    notes.write_bytes(bytes(2**18))
    with journal_in(tmp_path) as journal:
        list(journal.known(["a"]))
        journal.keep("c", bytes(2**16 - 1000))
    with journal_in(tmp_path) as journal:
        assert [k for k, _ in journal.known(["a", "b", "c"])] == [0, 2]
    assert notes.exists()


def test_an_empty_journal_leaves_nothing(tmp_path: Path) -> None:
    with journal_in(tmp_path):
        pass
    assert not (tmp_path / JOURNAL).exists()


def _as_file(place: Path) -> None:
    place.write_text("no folder", encoding="utf-8")


def _as_link(place: Path) -> None:
    place.symlink_to(place.parents[1] / "elsewhere")


@pytest.mark.parametrize("damage", [_as_file, _as_link])
def test_what_cannot_be_a_journal_is_set_aside_with_a_note(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    (tmp_path / "out").mkdir()
    place = tmp_path / "out" / JOURNAL
    for k in (1, 2):
        damage(place)
        with journal_in(tmp_path / "out") as journal:
            journal.keep("a", k)
        (note,) = journal.notes
        assert note.startswith(f"{place}: must be a writable folder, got: ")
        assert f"It is now {JOURNAL}-aside-{k}, " in note
        assert os.path.lexists(f"{place}-aside-{k}")
        assert kept(tmp_path / "out", "a") == [k]
        shutil.rmtree(place)


def test_a_run_goes_on_where_no_journal_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a folder of another user: neither the folder nor its name can be changed."""

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(journals, "TemporaryFile", refuse)
    monkeypatch.setattr(Path, "rename", refuse)
    with in_this_process(), journal_in(tmp_path) as journal, worker_pool(Workers(1), journal) as pool:
        assert pool.results([Task(double, (1.0,))], "tasks") == [2.0]
    (note,) = journal.notes
    assert note.startswith(
        f"{tmp_path / JOURNAL}: must be a writable folder, got: Permission denied. No result is stored"
    )


def test_a_damaged_result_is_computed_again(tmp_path: Path) -> None:
    keep(tmp_path, "a", 1)
    path = tmp_path / JOURNAL / f"a{RESULT}"
    content = path.read_bytes()
    for damaged in (b"", content[:-1], content[:10], bytes(len(content)), content[:-1] + b"x"):
        path.write_bytes(damaged)
        assert kept(tmp_path, "a") == []
    path.write_bytes(content)
    assert kept(tmp_path, "a") == [1]


def _database(place: Path, victim: Path) -> None:
    """Database of diskcache, a package that removes the file of an expired entry when its cache closes."""
    with sqlite3.connect(place / "cache.db") as database:
        database.execute("CREATE TABLE Settings (key TEXT NOT NULL UNIQUE, value)")
        columns = "key BLOB, raw INTEGER, store_time REAL, expire_time REAL, access_time REAL, tag BLOB, value BLOB"
        more = "access_count INTEGER DEFAULT 0, size INTEGER DEFAULT 0, mode INTEGER DEFAULT 0, filename TEXT"
        database.execute(f"CREATE TABLE Cache (rowid INTEGER PRIMARY KEY, {columns}, {more})")
        row = "INSERT INTO Cache(key, raw, store_time, expire_time, access_time, size, mode, filename)"
        database.execute(f"{row} VALUES ('x', 1, 0, 1, 0, 0, 2, ?)", (str(victim),))
    database.close()


def _link(place: Path, victim: Path) -> None:
    (place / f"a{RESULT}").symlink_to(victim)


def _journal_link(place: Path, victim: Path) -> None:
    place.rmdir()
    place.symlink_to(victim.parent)


def _pipe(place: Path, victim: Path) -> None:
    os.mkfifo(place / f"a{RESULT}")


@pytest.mark.parametrize("trap", [_database, _link, _journal_link, _pipe])
@pytest.mark.parametrize("limit", [0, 2**20])
def test_a_foreign_journal_touches_no_file_outside(
    tmp_path: Path, trap: Callable[[Path, Path], None], limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journals, "SIZE_LIMIT", limit)
    (tmp_path / "theirs").mkdir()
    victim = tmp_path / "theirs" / f"b{RESULT}"
    victim.write_text("precious", encoding="utf-8")
    os.utime(victim, (1, 1))
    place = tmp_path / "out" / JOURNAL
    place.mkdir(parents=True)
    trap(place, victim)
    assert kept(tmp_path / "out", "a") == []
    keep(tmp_path / "out", "a", 1)
    assert kept(tmp_path / "out", "a") == ([1] if limit else [])
    assert [path.name for path in victim.parent.iterdir()] == [victim.name]
    assert (victim.read_text(encoding="utf-8"), victim.stat().st_mtime) == ("precious", 1)


@pytest.mark.parametrize("name", ["certificate.json", "logs", "logs/run.csv", ".lock"])
def test_a_link_to_another_place_is_refused(tmp_path: Path, name: str) -> None:
    out, victim = tmp_path / "out", tmp_path / "victim"
    victim.write_text("precious", encoding="utf-8")
    (out / name).parent.mkdir(parents=True)
    (out / name).symlink_to(victim)
    with pytest.raises(OutputError, match=rf"{name}: must not be a link to another place, got {victim}"), locked(out):
        pass
    assert victim.read_text(encoding="utf-8") == "precious"
    (out / name).unlink()
    (out / "loop").symlink_to("loop")
    (out / "inside").symlink_to(out / "file")
    with locked(out):
        pass


@pytest.mark.extended("tests/validation/test_stale_results.py::test_every_file_of_a_model_is_part_of_its_keys")
@pytest.mark.usefixtures("tables_only")
def test_an_edited_model_is_computed_anew(tmp_path: Path) -> None:
    """Data of a file used by an engine, and not by us, is part of the key of a result."""
    model = tmp_path / "four_bar.xml"
    shutil.copy(MODELS / "four_bar.xml", model)
    computed = []
    for text in (model.read_text(encoding="utf-8"),) * 2 + (
        model.read_text(encoding="utf-8").replace("<mujoco", '<!-- option timestep="0.001" --><mujoco', 1),
    ):
        model.write_text(text, encoding="utf-8")
        study = Check(cases=cases_of([model])[:1], sources=("mujoco/kkt",), dt=0.05)
        result, _ = run_study(study, tmp_path / "out", workers=Workers(1))
        computed.append(result.record["tasks"]["computed"])
    assert computed == [6, 0, 6]  # motion, models, two sources, and audits of the engine and of the file


class Bomb:
    """A pickle that writes a file when it is read."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.trace, "it was read")


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))


def kept(folder: Path, key: str) -> list[Any]:
    """The next command's result under a key, if any."""
    with journal_in(folder) as journal:
        return [result for _, result in journal.known([key])]


def keep(folder: Path, key: str, result: Any) -> None:
    with journal_in(folder) as journal:
        journal.keep(key, result)


def test_what_is_kept_is_known_to_the_next_command(tmp_path: Path) -> None:
    keep(tmp_path / "out", "a", {"small": 1, "large": bytes(100_000)})
    assert kept(tmp_path / "out", "a") == [{"small": 1, "large": bytes(100_000)}]
    assert kept(tmp_path / "out", "b") == []


def test_the_secret_is_the_users_alone(tmp_path: Path) -> None:
    keep(tmp_path / "out", "a", 1)
    (secret,) = (tmp_path / "mine").rglob("secret")
    assert (secret.stat().st_mode & 0o077, len(secret.read_bytes())) == (0, 32)


def test_what_another_user_has_kept_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "theirs"))
    keep(tmp_path / "out", "a", Bomb(tmp_path / "trace"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "mine"))
    assert kept(tmp_path / "out", "a") == []
    assert not (tmp_path / "trace").exists()


def test_a_result_does_not_pass_for_that_of_another_call(tmp_path: Path) -> None:
    keep(tmp_path, "a", 1)
    place = tmp_path / JOURNAL
    shutil.copy(place / f"a{RESULT}", place / f"b{RESULT}")
    (place / f"c{RESULT}").write_bytes(bytes(40) + pickle.dumps(Bomb(tmp_path / "trace")))
    (place / f"d{RESULT}").mkdir()
    assert [kept(tmp_path, key) for key in "abcd"] == [[1], [], [], []]
    assert not (tmp_path / "trace").exists()


def test_where_no_secret_can_be_kept_nothing_is_known_afterwards(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("no folder")
    keep(tmp_path / "out", "a", 1)
    assert kept(tmp_path / "out", "a") == []
