"""Output of a run in progress: the answer before the page, and a line without a terminal."""

import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType

from loopcheck.validation.check.study import Check
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.execution import workers
from loopcheck.validation.execution.progress import Lines
from loopcheck.validation.frame.study import run_study
from tests.conftest import MODELS
from tests.validation.conftest import Command


def text_of(item: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(item)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


@pytest.mark.extended(
    "test_where_no_terminal_is_a_line_says_how_far_it_is",
    "tests/validation/test_first_page.py::test_the_page_is_complete_in_the_end",
)
def test_the_answer_is_there_before_the_page(tmp_path: Path) -> None:
    said: list[tuple[bool, bool, str]] = []

    def say(items: Any) -> None:
        text = " ".join(map(text_of, items))
        said.append(((tmp_path / "summary.csv").exists(), (tmp_path / "report.html").exists(), text))

    study = Check(cases=cases_of([MODELS / "four_bar.xml"])[:1], sources=("mujoco/kkt",), dt=0.1)
    run_study(study, tmp_path, workers=workers.ALONE, say=say)
    (answer, end) = said
    assert answer[:2] == (True, False)
    assert "Agreement: 1 of 1" in answer[2]
    assert end[:2] == (True, True)
    assert "report.html" in end[2]


def test_where_no_terminal_is_a_line_says_how_far_it_is() -> None:
    console = Console(file=io.StringIO(), width=200)

    def slowly() -> Iterator[int]:
        yield 1
        end = time.monotonic() + 20
        while not console.file.getvalue() and time.monotonic() < end:  # type: ignore[attr-defined]
            time.sleep(0.01)
        yield 2

    assert list(Lines(console, period=0.05).track(slowly(), total=7, description="motions")) == [1, 2]
    first = str(console.file.getvalue()).splitlines()[0]  # type: ignore[attr-defined]
    assert first.startswith("loopcheck: motions: 1 of 7 after 0.0 min")


@pytest.mark.extended("test_where_no_terminal_is_a_line_says_how_far_it_is")
def test_a_short_study_says_nothing_on_stderr(loopcheck: Command, tmp_path: Path) -> None:
    chosen = ("--source", "mujoco/kkt", "--dt", "0.1", "--out", tmp_path)
    assert loopcheck("check", MODELS / "four_bar.xml", *chosen)[2] == ""
