"""Output of a run in progress: the table so far, the answer before the page, and a line without a terminal."""

import io
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType

from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.comparison.audit import audit, blocking_reasons, doubts, expected_terms
from loopcheck.validation.comparison.compare import Evidence, summarize
from loopcheck.validation.comparison.evaluate import evaluate, random_case
from loopcheck.validation.comparison.targets import cases_of
from loopcheck.validation.comparison.tolerances import registered
from loopcheck.validation.comparison.verdicts import FILE, Key
from loopcheck.validation.execution import workers
from loopcheck.validation.execution.progress import Bars, Lines
from loopcheck.validation.studies.check.interim import UNAUDITED, UNRESOLVED, Interim
from loopcheck.validation.studies.check.study import Check, run
from loopcheck.validation.studies.study import run_study
from tests.conftest import MODELS
from tests.validation.conftest import Command, in_this_process

SOURCES = ("analytic/noc", "analytic/lagrange", "mujoco/kkt", "mujoco/inverse")
ENGINES = (FILE, "mujoco")


def text_of(item: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(item)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


@pytest.mark.parametrize("seed", range(4))
def test_what_comes_in_any_order_ends_as_the_verdicts_of_the_run(prr: Case, prr_motion: Motion, seed: int) -> None:
    expected, beside = expected_terms(prr, prr_motion), random_case(prr)
    outcomes = {(case.key, source): evaluate(case, prr_motion, source) for case in (prr, beside) for source in SOURCES}
    audits = {(prr.key, engine): audit(prr, expected, engine) for engine in ENGINES}
    interim = Interim(tolerances=registered(), beside={beside.key: prr.key})
    results: list[tuple[tuple[Key, str], Any]] = [*outcomes.items(), *audits.items()]
    for key, result in random.Random(seed).sample(results, len(results)):
        interim.take(key, result)
    rows = [row for of_engine in audits.values() for row in of_engine]
    evidence = Evidence(blocking_reasons=blocking_reasons(rows), doubts=doubts(rows))
    summary = summarize(list(outcomes.values()), evidence.with_cases_beside({beside.key: prr.key}))
    assert set(interim.verdicts) == set(outcomes)
    for (case_key, source), (verdict, coming) in interim.verdicts.items():
        of_source = summary[(summary["source"] == source) & (summary["mode"] == case_key[2])]
        assert (set(of_source["verdict"]), coming) == ({verdict.verdict}, "")
        if source != "analytic/noc":
            assert verdict.error == of_source["relative_error"].max()


def test_a_verdict_waits_for_what_it_rests_on(prr: Case, prr_motion: Motion) -> None:
    interim = Interim(tolerances=registered())
    source = (prr.key, "mujoco/kkt")
    interim.take(source, evaluate(prr, prr_motion, "mujoco/kkt"))
    assert not interim.verdicts  # there is nothing to hold it against
    interim.take((prr.key, "analytic/noc"), evaluate(prr, prr_motion, "analytic/noc"))
    assert interim.verdicts[source][1] == UNAUDITED
    assert UNAUDITED in text_of(interim.table("3prr"))
    expected = expected_terms(prr, prr_motion)
    interim.take((prr.key, FILE), audit(prr, expected, FILE))
    assert interim.verdicts[source][1] == UNAUDITED
    interim.take((prr.key, "mujoco"), audit(prr, expected, "mujoco"))
    assert interim.verdicts[source][1] == ""
    assert "agree" in text_of(interim.table("3prr"))


def test_an_error_beyond_the_limit_is_in_question_until_it_is_resolved(prr: Case, prr_motion: Motion) -> None:
    strict = {**registered(), "mujoco/kkt": registered()["mujoco/kkt"].model_copy(update={"relative_error": 1e-20})}
    interim = Interim(tolerances=strict)
    expected = expected_terms(prr, prr_motion)
    for engine in ENGINES:
        interim.take((prr.key, engine), audit(prr, expected, engine))
    for source in ("analytic/noc", "mujoco/kkt"):
        interim.take((prr.key, source), evaluate(prr, prr_motion, source))
    assert interim.verdicts[prr.key, "mujoco/kkt"][1] == UNRESOLVED


class Watched(Bars):
    """A terminal that records all output above the bars."""

    def __init__(self) -> None:
        super().__init__(console=Console(file=io.StringIO()))
        self.shown: list[str] = []

    def show(self, above: RenderableType | None) -> None:
        self.shown.append(text_of(above) if above else "")


def test_the_table_fills_as_results_come() -> None:
    screen = Watched()

    @contextmanager
    def display() -> Iterator[Bars]:
        yield screen

    with in_this_process() as patch:
        patch.setattr(workers, "display", display)
        run(cases_of([MODELS / "four_bar.xml"])[:1], source_names=("mujoco/kkt",), dt=0.1, workers=workers.ALONE)
    *tables, last = screen.shown
    assert len(tables) == 4  # two sources, the audits of the engine and of the file
    assert "agree" not in tables[0]
    assert "agree" in tables[-1]
    assert last == ""


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_short_study_says_nothing_on_stderr(loopcheck: Command, tmp_path: Path) -> None:
    chosen = ("--source", "mujoco/kkt", "--dt", "0.1", "--out", tmp_path)
    assert loopcheck("check", MODELS / "four_bar.xml", *chosen)[2] == ""
