"""Common parts of all studies: record, place of internal errors, pages made again, exit status."""

import importlib.metadata
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pandas as pd
import pytest

from loopcheck import engines
from loopcheck.robots.errors import OutputError
from loopcheck.validation.execution.files import LOCK, locked
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.execution.tables import TableSpec, number, table_of, text
from loopcheck.validation.execution.workers import WorkerFailure, WorkerPool, Workers, worker_pool
from loopcheck.validation.frame import study
from loopcheck.validation.frame.study import (
    Computed,
    Conclusion,
    Study,
    StudyResult,
    exit_status,
    notes_of,
    rebuild,
    run_study,
)
from loopcheck.validation.report import pages
from loopcheck.validation.report.blocks import Section
from tests.validation.conftest import in_this_process

CLEAN: Mapping[str, Sequence[str]] = {"not_run": [], "internal_errors": []}
SLIP = "internal error: IndexError: {}; traceback: in a file"


@dataclass(frozen=True, slots=True)
class Halves(Study):
    """Halves of some even numbers; it has the name of an existing study."""

    name: ClassVar[str] = "errata"
    page: ClassVar[str] = "halves"
    tables: ClassVar[Mapping[str, TableSpec]] = {
        "halves": table_of({"half": number("m"), "note": text()}),
        "sums": table_of({"sum": number()}),
    }

    numbers: tuple[int, ...]

    def compute(self, pool: WorkerPool, folder: Path) -> Computed:
        rows = pool.results([Task(half, (n,), lost) for n in self.numbers], "halves")
        frames = {name: spec.frame(rows if name == "halves" else [{"sum": 1.0}]) for name, spec in self.tables.items()}
        return Computed(frames, {"folder": folder.name}, [SLIP.format("said")] if 9 in self.numbers else [])

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        rows = result.tables["halves"]
        part = Section(title="Halves", anchor="halves", blocks=[f"{len(rows)} of them"])
        tables = {"odd": rows[rows["half"].isna()]}
        return Conclusion(title="all halves", sections=[part], summary=[], verdicts=["agree"], tables=tables)


class Bare(Halves):
    """Without a page, and without any follower."""

    page: ClassVar[str] = ""

    @staticmethod
    def conclude(result: StudyResult) -> Conclusion:
        return Conclusion(title="", sections=[], summary=[], verdicts=[])


def half(n: int) -> Mapping[str, Any]:
    if n % 2:
        raise ValueError("an odd one")
    return {"half": n / 2, "note": SLIP.format("noted") if n == 8 else ""}


def lost(reason: str) -> Mapping[str, Any]:
    return {"half": float("nan"), "note": ""}


@pytest.fixture(autouse=True)
def threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with in_this_process():
        yield


def read(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        ("", 3),
        ("informational", 3),
        ("reference", 3),
        ("agree", 0),
        ("as expected", 0),
        ("measured", 0),
        ("agree, informational", 0),
        ("agree, not run", 3),
        ("agree, not comparable", 3),
        ("disagree", 1),
        ("agree, disagree, not run, not comparable", 1),
    ],
)
def test_the_exit_status_follows_from_verdicts(verdicts: str, status: int) -> None:
    """And from losses without a verdict; an internal error comes before all."""
    kinds = verdicts.split(", ")
    assert exit_status(iter(kinds), CLEAN) == status
    assert exit_status(kinds, {**CLEAN, "not_run": ["its process died"]}) == (status or 3)
    for not_run in ([], ["its process died"]):
        assert exit_status(kinds, {"not_run": not_run, "internal_errors": ["internal error: x"]}) == 70


def test_all_is_recorded(tmp_path: Path) -> None:
    before = datetime.now(UTC).replace(microsecond=0)
    result, conclusion = run_study(
        Halves((2, 4)), tmp_path / "out", workers=Workers(1), command=("loopcheck", "halves")
    )
    record = read(tmp_path / "out" / "run.json")
    assert conclusion.title == "all halves"
    assert result.folder == tmp_path / "out"
    assert result.record == record
    assert before <= datetime.fromisoformat(record["start"]) <= datetime.now(UTC)
    assert datetime.fromisoformat(record["start"]).utcoffset() is not None
    assert 0 < record["duration_s"] < 60
    assert record["study"] == "errata"
    assert record["command"] == ["loopcheck", "halves"]
    assert record["loopcheck"] == importlib.metadata.version("loopcheck")
    assert record["tasks"] == {"computed": 2, "known": 0}
    assert record["units"] == {"halves": {"half": "m"}, "sums": {"sum": "-"}}
    assert record["folder"] == "out"
    assert record["not_run"] == record["internal_errors"] == []
    versions = record["versions"]
    assert versions["python"] == platform.python_version()
    assert {name: versions[name] for name in ("numpy", "scipy", "pandas", "matplotlib", "mujoco")} == {
        name: importlib.metadata.version(name) for name in ("numpy", "scipy", "pandas", "matplotlib", "mujoco")
    }
    assert set(engines.versions()) <= set(versions)
    cpu = record["cpu"]
    assert set(cpu) == {"model", "cores", "platform"}
    assert cpu["platform"] == platform.platform()
    assert cpu["cores"] >= 1
    names = {path.name for path in (tmp_path / "out").iterdir()} - {".journal", LOCK}
    assert names == {"run.json", "halves.csv", "sums.csv", "odd.csv", "halves.html", "halves.md"}
    again = run_study(Halves((2, 4, 6)), tmp_path / "out", workers=Workers(1))[0].record
    assert again["tasks"] == {"computed": 1, "known": 2}
    assert again["command"] == []


def test_errors_of_our_own_are_found_in_notes_in_failures_and_in_tables(tmp_path: Path) -> None:
    """A failure has its place in a table, and its row need not repeat it."""
    record = run_study(Halves((8, 9, 8)), tmp_path, workers=Workers(1))[0].record
    said, failed, noted = record["internal_errors"]
    assert (said, noted) == (SLIP.format("said"), SLIP.format("noted"))
    assert failed.startswith("internal error: ValueError: an odd one; traceback: ")
    assert record["not_run"] == []


def test_what_died_is_not_run_and_no_error_of_our_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = iter(["its process died: SIGSEGV", "an end", "its process died: SIGSEGV"])
    monkeypatch.setattr("loopcheck.validation.execution.workers._result", lambda *_: WorkerFailure(next(ends)))
    result, _ = run_study(Halves((2, 4, 6)), tmp_path, workers=Workers(1))
    assert result.record["not_run"] == ["an end", "its process died: SIGSEGV", "its process died: SIGSEGV"]
    assert result.record["internal_errors"] == []
    page = (tmp_path / "halves.md").read_text(encoding="utf-8")
    assert "\n## Not run\n" in page
    assert 'id="not-run"' in (tmp_path / "halves.html").read_text(encoding="utf-8")
    assert "its process died: SIGSEGV (2 tasks)" in page
    assert "an end (1 task)" in page


def test_each_note_is_said_once() -> None:
    frames = [
        pd.DataFrame({"note": ["one", None, "two", "one"]}),
        pd.DataFrame({"text": ["three"]}),
        pd.DataFrame({"note": ["four"]}),
    ]
    assert list(notes_of(frames)) == ["one", "two", "four"]


def test_a_page_tells_of_errors_of_our_own(tmp_path: Path) -> None:
    record = {"not_run": ["gone"], "internal_errors": ["internal error: x"]}
    frames = {name: spec.frame([]) for name, spec in Halves.tables.items()}
    study.write_conclusion(Halves, StudyResult(folder=tmp_path, tables=frames, record=record))
    page = (tmp_path / "halves.md").read_text(encoding="utf-8")
    assert "# all halves" in page
    assert "0 of them" in page
    assert "gone (1 task)" in page
    assert "internal error: x (1 task)" in page
    study.write_conclusion(Halves, StudyResult(folder=tmp_path, tables=frames, record={}))
    assert "## Not run" not in (tmp_path / "halves.md").read_text(encoding="utf-8")


def test_a_study_without_a_page_writes_its_tables_alone(tmp_path: Path) -> None:
    run_study(Bare((2,)), tmp_path / "out", workers=Workers(1))
    names = {path.name for path in (tmp_path / "out").iterdir()} - {".journal", LOCK}
    assert names == {"run.json", "halves.csv", "sums.csv"}


def test_a_folder_is_for_one_study(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"study": "sweep"}', encoding="utf-8")
    with pytest.raises(OutputError) as error:
        run_study(Halves((2,)), tmp_path, workers=Workers(1))
    assert str(error.value) == f"{tmp_path}: must be empty or a folder of the study 'errata', got the study 'sweep'"
    (tmp_path / "run.json").write_text("{}", encoding="utf-8")
    with pytest.raises(OutputError, match="got the study 'unknown'"):
        run_study(Halves((2,)), tmp_path, workers=Workers(1))
    with locked(tmp_path / "other"), pytest.raises(OutputError, match="another loopcheck process writes there"):
        run_study(Halves((2,)), tmp_path / "other", workers=Workers(1))


def test_a_page_is_made_again_from_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def imported(name: str) -> Any:
        asked.append(name)
        return SimpleNamespace(STUDY=Halves)

    run_study(Halves((2, 9)), tmp_path, workers=Workers(1))
    (tmp_path / "halves.md").unlink()
    monkeypatch.setattr(study, "import_module", imported)
    assert rebuild(tmp_path, Workers(1)).title == "all halves"
    assert asked == ["loopcheck.validation.studies.errata.study"]
    page = (tmp_path / "halves.md").read_text(encoding="utf-8")
    assert "2 of them" in page
    assert "an odd one" in page  # the record is read too
    with locked(tmp_path), pytest.raises(OutputError, match="another loopcheck process writes there"):
        rebuild(tmp_path, Workers(1))
    (tmp_path / "run.json").write_text('{"study": "halves"}', encoding="utf-8")
    with pytest.raises(OutputError) as error:
        rebuild(tmp_path, Workers(1))
    assert str(error.value) == f"{tmp_path / 'run.json'}: 'study' must name a study, got 'halves'"


def test_blocks_are_made_by_the_workers_that_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int | None]] = []
    pools: list[Workers] = []

    def completed(sections: Sequence[Section], pool: WorkerPool | None) -> Sequence[Section]:
        asked.append((len(sections), pool.count if pool else None))
        return sections

    def counted(workers: Workers, *args: Any, **options: Any) -> Any:
        pools.append(workers)
        return worker_pool(workers, *args, **options)

    monkeypatch.setattr(pages, "completed", completed)
    monkeypatch.setattr(study, "worker_pool", counted)
    run_study(Halves((2,)), tmp_path, workers=Workers(2))
    monkeypatch.setattr(study, "import_module", lambda _: SimpleNamespace(STUDY=Halves))
    rebuild(tmp_path, Workers(3))
    rebuild(tmp_path)
    study.write_conclusion(
        Halves, StudyResult(folder=tmp_path, tables={"halves": pd.DataFrame({"half": []})}, record={})
    )
    assert pools == [Workers(2), Workers(3), Workers()]
    assert asked[:2] == [(1, 2), (1, 3)]
    assert asked[3] == (1, None)


def test_the_processor_has_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = tmp_path / "cpuinfo"
    asked: list[str] = []

    def path(name: str) -> Path:
        asked.append(name)
        return said

    monkeypatch.setattr(study, "Path", path)
    monkeypatch.setattr(platform, "processor", lambda: "p")
    assert study.cpu_model() == "p"
    said.write_text("processor\t: 0\n", encoding="utf-8")
    assert study.cpu_model() == "p"
    said.write_text("flags\t: fpu\nmodel name\t: A: 3 GHz \nmodel name\t: B\n", encoding="utf-8")
    assert study.cpu_model() == "A: 3 GHz"
    assert set(asked) == {"/proc/cpuinfo"}
