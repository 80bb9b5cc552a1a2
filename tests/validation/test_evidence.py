"""Figures of the documents: the state of the code behind them, their age, and counts by verdict."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pandas as pd
import pytest

from loopcheck.validation.common.known_issues import REPRODUCED_BY
from loopcheck.validation.execution import code_state
from loopcheck.validation.execution.code_state import behaviour, code_digest, commit
from loopcheck.validation.execution.folders import ROOT
from loopcheck.validation.execution.journal import code_files
from loopcheck.validation.frame.study import StudyResult, exit_status
from loopcheck.validation.studies.evidence.age import LIMIT, age_of
from loopcheck.validation.studies.evidence.study import BEHIND_ROWS, Evidence, reproduced

PLAIN = b"x = 1\n\ndef f(a):\n    return a + 1\n"
NOW = datetime(2026, 11, 23, tzinfo=UTC)


@pytest.mark.parametrize(
    ("source", "same"),
    [
        (
            b'"""Module."""\nx = 1\n"""Field."""\n\ndef f(a):\n    """Docstring."""\n    return (a\n    + 1)  # why\n',
            True,
        ),
        (PLAIN.replace(b"a + 1", b"a + 2"), False),
        (PLAIN.replace(b"a + 1", b"a - 1"), False),
        (PLAIN.replace(b"return a + 1", b"return 'a'"), False),
    ],
)
def test_only_behaviour_counts_as_a_change(source: bytes, same: bool) -> None:
    assert (behaviour(source) == behaviour(PLAIN)) is same


def test_the_digest_depends_on_the_code_of_rows_and_on_no_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    files = {path.relative_to(ROOT).as_posix() for module in BEHIND_ROWS for path in code_files(module)}
    assert {"validation/check/efforts/compare.py", "validation/common/tolerances.toml"} <= files
    assert not any(file.startswith("validation/report/") for file in files)
    file = tmp_path / "module.py"
    monkeypatch.setattr(code_state, "ROOT", tmp_path)
    monkeypatch.setattr(code_state, "code_files", lambda _: {file})
    digests = []
    for source in (PLAIN, PLAIN + b"# why\n", PLAIN.replace(b"1", b"2")):
        file.write_bytes(source)
        digests.append(code_digest(["module"]))
    assert digests[0] == digests[1] != digests[2]


def test_a_record_names_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_state, "ROOT", tmp_path)
    assert commit().startswith("loopcheck ")  # an installation
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / "file").write_text("one")
    subprocess.run([*git, "add", "file"], check=True)
    subprocess.run([*git, "commit", "-qm", "first"], check=True)
    revision = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert commit() == revision
    (tmp_path / "file").write_text("two")
    assert commit() == f"{revision}+"


@pytest.mark.parametrize(
    ("code", "days", "stale", "too_old"),
    [("a", 100, False, False), ("b", 29, True, False), ("b", 31, True, True), (None, 31, True, True)],
)
def test_stored_figures_of_earlier_code_are_told_and_fail_after_a_month(
    code: str | None, days: int, stale: bool, too_old: bool
) -> None:
    record = {"start": (NOW - timedelta(days=days)).isoformat(), **({"code": code} if code else {})}
    age = age_of("atlas", record, "a", NOW)
    assert (age.is_stale, age.is_too_old) == (stale, too_old)
    assert ("has changed: loopcheck study evidence atlas" in age.text) is stale
    assert timedelta(days=30) == LIMIT


@pytest.mark.parametrize(("false", "status"), [(0, 0), (1, 1)])
def test_a_false_verdict_on_a_noisy_log_is_a_disagreement(false: int, status: int, tmp_path: Path) -> None:
    row = {"part": "logs", "subject": "3prr", "stored": 0, "note": ""}
    rows = [{**row, "verdict": "agree", "count": 8 - false}, {**row, "verdict": "disagree", "count": false}]
    record = {"not_run": [], "internal_errors": [], "commit": "c", "code": "d" * 64}
    tables = {
        "evidence": Evidence.tables["evidence"].frame(pd.DataFrame(rows)[list(Evidence.tables["evidence"].columns)])
    }
    conclusion = Evidence.conclude(StudyResult(folder=tmp_path, tables=tables, record=record))
    assert exit_status(conclusion.verdicts, record) == status


@pytest.mark.parametrize(
    ("line", "status", "verdict"),
    [
        ("1 passed in 2 s", 0, "agree"),
        ("1 failed in 2 s", 1, "disagree"),
        ("1 skipped in 2 s", 0, "not run"),
        ("1 passed, 1 skipped in 2 s", 0, "not run"),
        ("3 deselected in 2 s", 5, "not run"),
        ("", 4, "not run"),
    ],
)
def test_a_known_issue_is_reproduced_by_its_test(
    line: str, status: int, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = subprocess.CompletedProcess([], status, stdout=f"...\n{line}\n" if line else "")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    assert reproduced("an-issue", ROOT / REPRODUCED_BY)[0] == verdict
