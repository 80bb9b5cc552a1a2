"""Figures of the documents: the state of the code behind them, their age, and counts of noisy logs."""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from docs import evidence_age
from docs.evidence import joined, sentence
from docs.evidence_age import BEHIND_ROWS, LIMIT, age_of, behaviour, code_digest
from docs.noisy_logs import Draws
from loopcheck.validation.execution import code_state
from loopcheck.validation.execution.code_state import commit
from loopcheck.validation.execution.folders import ROOT
from loopcheck.validation.execution.journal import code_files

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
    monkeypatch.setattr(evidence_age, "ROOT", tmp_path)
    monkeypatch.setattr(evidence_age, "code_files", lambda _: {file})
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
    assert ("has changed: python -m docs.evidence atlas" in age.text) is stale
    assert timedelta(days=30) == LIMIT


def test_draws_of_several_tasks_are_judged_together() -> None:
    """The expected error is that over all draws: of 3 and 4 it is 3.54, so that floors of 7 and 8 are 1.98 and 2.26."""
    one, other = (
        Draws(rms=np.array([[rms]]), floor=np.array([[floor]]), false=false, caught=1, doubted=0)
        for rms, floor, false in ((3.0, 7.0, 0), (4.0, 8.0, 1))
    )
    told = sentence(joined([one, other]))
    assert "1 false verdicts on 2 logs; 2 faults of three floors detected, 0 suspected" in told
    assert told.endswith("within 0.8 to 2: 50.0 % (its own), 50.0 % (expected), 100.0 % (exact model)")
