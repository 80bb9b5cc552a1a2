"""A common rule for the exit status of every command; an internal error is a line, its traceback in a file."""

import ast
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from loopcheck.validation.check import library
from loopcheck.validation.common import verdicts
from loopcheck.validation.common.verdicts import verdict_of_figure, within
from loopcheck.validation.execution.errors import internal_error, internal_errors
from loopcheck.validation.frame.study import Study, StudyResult, exit_status
from loopcheck.validation.studies.errata.costs import CORRECTED
from loopcheck.validation.studies.errata.study import Errata
from loopcheck.validation.studies.free_motion.study import FreeMotion
from loopcheck.validation.studies.sweep.statistics import Tally
from loopcheck.validation.tune.study import BUDGET, Tune
from tests.conftest import MODELS
from tests.validation.conftest import Command, in_this_process


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_the_whole_of_an_error_of_our_own_is_in_a_file_that_its_line_names(own_cache: Path) -> None:
    lines = []
    for _ in range(2):
        try:
            raise IndexError("out of\nrange \udcff")
        except IndexError as error:
            lines.append(internal_error(error))
    assert lines[0].startswith("internal error: IndexError: out of range ?; traceback: ")
    assert lines[0] == lines[1]  # one file for all that are alike
    (path,) = (own_cache / "loopcheck" / "errors").iterdir()
    assert lines[0].endswith(str(path))
    assert re.fullmatch("[0-9a-f]{16}.txt", path.name)
    first, second, *rest = path.read_text(encoding="utf-8").splitlines()
    assert first == "Traceback (most recent call last):"
    assert second.startswith(f'  File "{__file__}", line ')
    assert rest[-2:] == ["IndexError: out of", "range ?"]  # what no file can hold
    assert path.parent.stat().st_mode & 0o077 == 0


def test_where_no_file_can_be_written_the_line_says_so(own_cache: Path) -> None:
    own_cache.write_text("")
    line = internal_error(IndexError("x"))
    assert line.startswith("internal error: IndexError: x; traceback cannot be written: ")


def test_errors_of_our_own_are_found_in_notes_each_once(own_cache: Path) -> None:
    first, second = (internal_error(IndexError(what)) for what in ("one", "two: a; b"))
    own_cache.rename(own_cache.with_name("old"))
    own_cache.write_text("")
    third = internal_error(IndexError("three"))
    notes = ["all is well", f"not audited: {first}; and so on", second, "", f"note; {first}", third, "internal error"]
    assert internal_errors(notes) == [first, second, third]
    assert internal_errors([]) == []


def test_a_bug_in_a_command_is_one_line_and_status_70(
    loopcheck: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slip(*_: Any, **__: Any) -> Any:
        raise IndexError("a slip")

    monkeypatch.setattr(library, "cases_of", slip)
    status, _, err = loopcheck("check", MODELS / "four_bar.xml", "--out", tmp_path / "out")
    assert (status, err.count("\n")) == (70, 1)
    assert err.startswith("loopcheck: internal error: IndexError")


@pytest.mark.evidence("two whole commands with a fault of our own", seconds=1.5)
@pytest.mark.usefixtures("tables_only")
@pytest.mark.parametrize("place", ["loopcheck.engines.equations.Kkt.compute_efforts", "loopcheck.engines.matrices"])
def test_a_bug_in_a_row_is_status_70_when_all_tables_are_written(
    loopcheck: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    def slip(*_: Any, **__: Any) -> Any:
        raise IndexError("a slip")

    chosen = ("--source", "mujoco/kkt", "--source", "analytic/lagrange", "--dt", "0.2", "--out", tmp_path / "out")
    with in_this_process() as patch:
        patch.setattr(place, slip)
        status, out, err = loopcheck("check", MODELS / "four_bar.xml", *chosen)
    assert (status, err.count("\n")) == (70, 1), err
    assert "internal error: IndexError: a slip" in err
    assert "Agreement: 2 of " in out  # analytic/lagrange, in both configurations
    assert (tmp_path / "out" / "run.json").exists()


def test_a_study_that_judges_nothing_is_incomplete_where_something_did_not_run(tmp_path: Path) -> None:
    about = {"robot": "3prr", "mode": "plus", "configuration": "vertical", "equation": "", "printed": "", "note": ""}
    costs = Errata.tables["errata"].frame(
        [
            {**about, "corrected": "", "erratum": CORRECTED, "relative_error": 1e-15},
            {**about, "corrected": "", "erratum": "(7)", "relative_error": float("nan")},
        ]
    )
    assert status_of(Errata, costs, tmp_path) == 0  # a slip of notation costs nothing
    assert status_of(Errata, costs.assign(relative_error=float("nan")), tmp_path) == 3
    of_motion = {"benchmark": "andrews", "t": 1.0, "quantity": "beta [rad]", "wall_time": 1.0, "note": ""}
    motions = FreeMotion.tables["benchmarks"].frame(
        [{**of_motion, "source": name, "error": 1e-9} for name in ("a", "b")]
    )
    assert status_of(FreeMotion, motions, tmp_path) == 0
    assert status_of(FreeMotion, motions.assign(error=[1e-9, float("nan")]), tmp_path) == 3


@pytest.mark.parametrize("figure", [float("nan"), float("inf")])
def test_a_figure_that_is_not_finite_never_passes(figure: float, tmp_path: Path) -> None:
    assert not within(figure, 1.0)
    assert not within(1.0, figure)
    assert not within(figure, figure)
    assert within(1.0, 1.0)
    assert verdict_of_figure(figure) == "not comparable"
    about = {"benchmark": "andrews", "t": 1.0, "quantity": "beta [rad]", "wall_time": 1.0, "note": "", "source": "a"}
    motions = FreeMotion.tables["benchmarks"].frame([{**about, "error": figure}])
    assert status_of(FreeMotion, motions, tmp_path) == 3
    texts = dict.fromkeys(
        ("robot", "variant", "mode", "configuration", "source", "actuator", "unit", "setting", "note"), "-"
    )
    parts = Tune.tables[BUDGET].frame([{**texts, "part": "all", "rms": figure, "largest": figure}])
    result = StudyResult(
        folder=tmp_path, tables={"tune": Tune.tables["tune"].frame([]), BUDGET: parts}, record={"accuracy": 0}
    )
    assert list(Tune.conclude(result).verdicts) == ["not comparable"]
    tally = Tally()
    tally.add(np.array([figure, 1e-9]), np.arange(2), np.inf)
    assert tally.beyond == 1


def test_no_study_compares_for_agreement_without_the_rule_for_figures_that_are_not_finite() -> None:
    """`inf <= inf` is true: verdicts follow from `within`, or from a comparison after the finite case is decided."""
    for path in sorted(Path(verdicts.__file__).parents[1].rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.IfExp) and getattr(node.body, "value", "") in ("agree", verdicts.MEASURED):
                comparisons = [part for part in ast.walk(node.test) if isinstance(part, ast.Compare)]
                orders = [part for part in comparisons if isinstance(part.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE))]
                assert not orders, f"{path}:{node.lineno}"


def result_of(study: type[Study], table: pd.DataFrame, folder: Path) -> StudyResult:
    record: dict[str, Any] = {"not_run": [], "internal_errors": [], "settings": []}
    return StudyResult(folder=folder, tables=dict.fromkeys(study.tables, table), record=record)


def status_of(study: type[Study], table: pd.DataFrame, folder: Path) -> int:
    """Exit status of a study with a single table without losses."""
    result = result_of(study, table, folder)
    return exit_status(study.conclude(result).verdicts, result.record)
