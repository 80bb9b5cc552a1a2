"""One rule for the exit status of every command; an error of our own is one line, and its whole is in a file."""

from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from robots.errors import NoResultError
from tests.conftest import MODELS
from tests.validation.conftest import Command, in_this_process
from validation import benchmarks, check, errata
from validation.statuses import exit_status, internal_error
from validation.workers import Lost, or_raise


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize(
    ("verdicts", "internal_errors", "status"),
    [
        (["agree", "as expected", "informational", "reference"], 0, 0),
        (["as expected"], 0, 0),
        (["agree", "not run"], 0, 3),
        (["agree", "not comparable"], 0, 3),
        (["informational"], 0, 3),
        ([], 0, 3),
        (["agree", "not run", "disagree"], 0, 1),
        (["agree", "not run", "disagree"], 1, 70),
        (["agree"], 1, 70),
    ],
)
def test_precedence(verdicts: list[str], internal_errors: int, status: int) -> None:
    assert exit_status(Counter(verdicts), internal_errors) == status


def test_the_whole_of_an_error_of_our_own_is_in_a_file_that_its_line_names(own_cache: Path) -> None:
    lines = []
    for _ in range(2):
        try:
            raise IndexError("out of\nrange")
        except IndexError as error:
            lines.append(internal_error(error))
    assert lines[0].startswith("internal error: IndexError: out of range; the whole of it: ")
    assert lines[0] == lines[1]  # one file for all that are alike
    (path,) = (own_cache / "loopcheck" / "errors").iterdir()
    assert lines[0].endswith(str(path))
    assert 'raise IndexError("out of\\nrange")' in path.read_text(encoding="utf-8")
    assert path.parent.stat().st_mode & 0o077 == 0


def test_where_no_file_can_be_written_the_line_says_so(own_cache: Path) -> None:
    own_cache.write_text("")
    line = internal_error(IndexError("x"))
    assert line.startswith("internal error: IndexError: x; the whole of it cannot be written: ")


def test_a_bug_in_a_command_is_one_line_and_status_70(
    loopcheck: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slip(*_: Any, **__: Any) -> Any:
        raise IndexError("a slip")

    monkeypatch.setattr(check, "cases_of_file", slip)
    status, _, err = loopcheck("check", MODELS / "four_bar.xml", "--out", tmp_path / "out")
    assert (status, err.count("\n")) == (70, 1)
    assert err.startswith("loopcheck: internal error: IndexError")


@pytest.mark.parametrize("place", ["engines.mujoco.routes.kkt.MujocoKkt.compute_efforts", "engines.matrices"])
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
    assert "2 agree" in out  # analytic/lagrange, in both configurations
    assert (tmp_path / "out" / "run.json").exists()


def test_what_nothing_can_go_on_without_is_not_run(
    loopcheck: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any, **__: Any) -> Any:
        return or_raise("motion of four_bar", Lost("its process died: Aborted (SIGABRT)"))

    monkeypatch.setattr("validation.run.run", die)
    status, _, err = loopcheck("check", MODELS / "four_bar.xml", "--out", tmp_path / "out")
    assert (status, err) == (3, "loopcheck: not run: motion of four_bar: its process died: Aborted (SIGABRT)\n")
    with pytest.raises(NoResultError):
        die()


def test_a_study_that_judges_nothing_is_incomplete_where_something_did_not_run() -> None:
    costs = pd.DataFrame({"erratum": [errata.CORRECTED, "(7)"], "relative_error": [1e-15, float("nan")]})
    assert errata.exit_status(costs) == 0  # a slip of notation costs nothing
    assert errata.exit_status(costs.assign(relative_error=float("nan"))) == 3
    motions = pd.DataFrame({"error": [1e-9, 1e-8]})
    assert benchmarks.exit_status(motions) == 0
    assert benchmarks.exit_status(pd.concat([motions, pd.DataFrame({"error": [float("nan")]})])) == 3
