"""The first page of a check, which is there while simulations run."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from loopcheck.robots.robot import Case
from loopcheck.validation.check import plan
from loopcheck.validation.check.efforts.evaluate import evaluate
from loopcheck.validation.check.study import Check
from loopcheck.validation.common import sources
from loopcheck.validation.execution.files import RECORD
from loopcheck.validation.execution.tables import write_tables
from loopcheck.validation.execution.workers import ALONE, worker_pool
from loopcheck.validation.frame import study
from loopcheck.validation.frame.study import Computed, rebuild, run_study
from tests.conftest import MODELS, CaseMaker
from tests.validation.conftest import in_this_process

PATIENCE = 60.0
"""How long a simulation waits for a page [s]."""
WRITTEN: list[tuple[Any, ...]] = []
"""Tables and records, as they were written."""
SOURCES = ("analytic/lagrange", "mujoco/kkt", "mujoco/inverse", "mujoco/as_is")


def verdicts(folder: Path) -> dict[str, set[str]]:
    """Verdicts by source in the table of a folder."""
    import pandas as pd

    summary = pd.read_csv(folder / "summary.csv")
    return {str(source): set(rows["verdict"]) for source, rows in summary.groupby("source")}


@pytest.fixture(scope="module")
def folders(model_case: CaseMaker, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder of results, and a copy of it made while its first simulation ran."""
    folder = tmp_path_factory.mktemp("check") / "out"
    copy = folder.with_name("first")

    def waiting(case: Case, motion: Any, source: str, *limits: Any) -> Any:
        end = time.monotonic() + PATIENCE
        while sources.simulates(source) and not (folder / "report.html").exists() and time.monotonic() < end:
            time.sleep(0.01)
        if sources.simulates(source) and not copy.exists():
            shutil.copytree(folder, copy)
        return evaluate(case, motion, source, *limits)

    def writing(*args: Any) -> None:
        WRITTEN.append(args)
        write_tables(*args)

    with in_this_process() as patch:
        patch.setattr(plan, "evaluate", waiting)
        patch.setattr(study, "write_tables", writing)
        case = model_case(MODELS / "four_bar.xml", amplitude=0.1)
        for _ in range(2):  # the second time all is known
            run_study(Check(cases=[case], sources=SOURCES), folder, workers=ALONE)
    return folder, copy


def test_tables_are_written_once_before_the_end_and_not_where_all_is_known(folders: tuple[Path, Path]) -> None:
    assert [bool(record.get("is_first")) for *_, record in WRITTEN] == [True, False, False]


def test_a_first_page_has_all_that_does_not_simulate(folders: tuple[Path, Path]) -> None:
    _, first = folders
    found = verdicts(first)
    assert found["analytic/lagrange"] == found["mujoco/kkt"] == {"agree"}
    assert found["mujoco/inverse"] == {"informational"}
    assert found["mujoco/as_is"] == {"not run"}
    page = (first / "report.html").read_text(encoding="utf-8")
    assert "Simulations are still running." in page
    assert '<meta http-equiv="refresh" content="4">' in page
    assert "All 2 judged comparisons agree" not in page  # as_is is open
    assert json.loads((first / RECORD).read_text(encoding="utf-8"))["is_first"] is True


def test_the_page_is_complete_in_the_end(folders: tuple[Path, Path]) -> None:
    folder, _ = folders
    assert verdicts(folder)["mujoco/as_is"] == {"informational"}
    for name in ("report.html", "report.md"):
        page = (folder / name).read_text(encoding="utf-8")
        assert "still running" not in page
        assert 'http-equiv="refresh"' not in page
    assert "is_first" not in json.loads((folder / RECORD).read_text(encoding="utf-8"))


def test_what_a_killed_command_leaves_makes_its_page_again(folders: tuple[Path, Path]) -> None:
    _, first = folders
    conclusion = rebuild(first, workers=ALONE)
    assert "Simulations are still running." in (first / "report.html").read_text(encoding="utf-8")
    assert "not run" in conclusion.verdicts


def test_without_simulations_the_first_page_is_the_last(model_case: CaseMaker, tmp_path: Path) -> None:
    published: list[Computed] = []
    case = model_case(MODELS / "four_bar.xml", amplitude=0.1)
    check = Check(cases=[case], sources=SOURCES[:2], draws=False, writes_logs=False).publishing(published.append)
    with in_this_process(), worker_pool(ALONE) as pool:
        check.compute(pool, tmp_path)
    assert published == []
