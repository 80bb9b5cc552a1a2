"""The page of credibility names what was verified by what, and what was not, from the tables of a result."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loopcheck.robots.errors import OutputError
from loopcheck.validation.check.credibility import section, write_credibility
from loopcheck.validation.common import results as result_tables
from loopcheck.validation.common.results import table
from loopcheck.validation.report.blocks import Table
from tests.validation.conftest import Command
from tests.validation.test_report import EMPTY, REFERENCE, audit_row, ladder_rows, summary_row

LOSS = {"kind": "mechanism", "tag": "plugin", "words": "plugins", "elements": [], "path": "mujoco/extension"}
RUN: dict[str, Any] = {
    "study": "check",
    "commit": "0123456789abcdef",
    "loopcheck": "0.1.0",
    "start": "2026-01-01",
    "command": ["loopcheck", "check", "bar.xml"],
    "versions": {"mujoco": "4.0.0"},
    "models": {"bar": {"file": "bar.xml", "sha256": "ab12" * 16}},
    "lineages": {"a/kkt": "A", "b/kkt": "B"},
    "shares": {"a/kkt": ["geometry", "gravity"], "b/kkt": ["gravity"]},
    "robots": {"bar": {}},
}


def findings(*rows: Any, **run: Any) -> dict[str, str]:
    """Findings by activity, of a result with some rows besides the reference."""
    summary = table("summary", [summary_row(REFERENCE, "reference"), *rows])
    audit = table("audit", [audit_row("a", "static", "mass", 1e-15, "agree")])
    results = replace(EMPTY, summary=summary, audit=audit, run={**RUN, **run})
    (shown,) = section(results).blocks
    assert isinstance(shown, Table)
    return {str(row[1].text): str(row[2].text) for row in shown.rows}


def test_what_agrees_rests_on_two_code_bases() -> None:
    found = findings(summary_row("a/kkt", "agree", 2e-12), summary_row("b/kkt", "agree", 1e-12))
    assert "1 of 1 cases with an agreement rest on a closed form (0) or on two code bases" in found["independence"]
    assert "shares with the reference: gravity." in found["independence"]
    assert found["code verification"] == (
        "Comparisons with the reference: 2 agree. Audit of the engines' models: 1 agree."
    )
    assert found["comparison error E"] == "Judged sources up to 2.00e-12 of the scale of the actuator."
    assert "bar.xml ab12ab12ab12" in found["inputs"]
    assert "0 of 1 judged cases" in found["inputs"]
    assert found["assumptions"] == "Nothing."
    assert found["documentation"] == "loopcheck 0.1.0 (0123456789), 2026-01-01: loopcheck check bar.xml. mujoco 4.0.0."


def test_one_code_base_is_agreement_only() -> None:
    found = findings(summary_row("a/kkt", "agree", 2e-12), summary_row("b/kkt", "disagree", 0.3))
    assert "0 of 1 cases with an agreement" in found["independence"]
    assert "1 agree, 1 disagree" in found["code verification"]
    assert "up to 0.3 of the scale" in found["comparison error E"]


def test_without_measured_data_nothing_is_validated() -> None:
    assert findings(summary_row("a/kkt", "agree", 2e-12))["validation, E and u_D"].startswith("None: no measured data")


def test_a_log_is_compared_with_its_peak() -> None:
    found = findings(summary_row("log/bench.csv", "informational", 0.125))
    assert "Logs judged: 1. E is up to 12" in found["validation, E and u_D"]


def test_a_result_without_an_agreement_rests_on_nothing() -> None:
    found = findings(summary_row("log/bench.csv", "disagree", 0.5))
    assert found["independence"] == "No case has a source that agrees with the reference."
    assert found["comparison error E"] == "No error was measured."


def test_what_is_left_out_is_named() -> None:
    losses = [LOSS, {**LOSS, "kind": "setting", "tag": "opt.timestep", "words": "time step"}]
    found = findings(losses=losses, not_run=["interrupted"], absent={"genesis": "not installed"})["assumptions"]
    assert found == (
        "Not in the model: plugins; 1 unread parts of the mechanism: results are of another robot; "
        "not run: interrupted; not supported: genesis (not installed)."
    )


def test_unmodified_simulations_are_named_apart() -> None:
    found = findings(summary_row("a/kkt", "agree", 1e-12), summary_row("a/as_is", "informational", 0.25))
    assert found["comparison error E"].endswith("unmodified simulations up to 25 % of the peak effort.")


def test_the_numerical_uncertainty_is_three_times_the_last_change() -> None:
    """The finest of the steps changes the efforts by 3e-4."""
    results = replace(EMPTY, summary=table("summary", [summary_row(REFERENCE, "reference")]), run=RUN)
    results = replace(results, ladder=table("ladder", list(ladder_rows())))
    (shown,) = section(results).blocks
    assert isinstance(shown, Table)
    assert "a/forward 9.0e-04" in next(row[2].text for row in shown.rows if row[1].text.startswith("solution"))
    assert "round-off only" in findings()["solution verification, u_num"]


def test_the_page_stands_beside_the_report(tmp_path: Path, loopcheck: Command, no_figures: None) -> None:
    summary = table("summary", [summary_row(REFERENCE, "reference"), summary_row("a/kkt", "agree", 1e-12)])
    result_tables.write(replace(EMPTY, summary=summary, run=RUN), tmp_path)
    status, out, err = loopcheck("report", tmp_path, "--credibility")
    assert (status, err) == (0, "")
    assert f"Credibility: {tmp_path / 'credibility.html'}" in out.replace("\n", "")
    text = (tmp_path / "credibility.md").read_text(encoding="utf-8")
    assert "NASA-STD-7009" in text
    assert "activity (ASME V" in text


def test_a_result_of_another_study_is_one_line(tmp_path: Path) -> None:
    result_tables.write(replace(EMPTY, run={**RUN, "study": "sweep"}), tmp_path)
    with pytest.raises(OutputError, match="must be made from a result of check or judge, got one of 'sweep'"):
        write_credibility(tmp_path)
