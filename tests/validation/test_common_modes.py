"""Verdicts beside a second reading of the files, and the report of shared inputs; their faults are in the table."""

from collections.abc import Mapping
from typing import Any

import pytest

from loopcheck import engines
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.audit.audit import audit, blocking_reasons, doubts, expected_terms
from loopcheck.validation.check.collect import collect
from loopcheck.validation.check.efforts.evaluate import evaluate
from loopcheck.validation.check.independence import IN_WORDS
from loopcheck.validation.check.record import Request, RunOutput
from loopcheck.validation.check.sections.verdicts import verdicts
from loopcheck.validation.common.results import Results
from loopcheck.validation.common.tolerances import registered
from loopcheck.validation.common.verdicts import FILE, case_verdicts
from loopcheck.validation.report.blocks import Section, Table
from tests.faults.seeds import SHARED
from tests.faults.table import IN_FILES
from tests.validation.conftest import exit_status


def test_the_files_of_the_zoo_say_what_the_model_does(zoo_case: Case, zoo_motion: Motion) -> None:
    rows = audit(zoo_case, expected_terms(zoo_case, zoo_motion), FILE)
    assert {row["verdict"] for row in rows} == {"agree"}
    quantities = {said.split(" of ")[0] for said in IN_FILES.values()} - {"opening"}
    quantities |= {"opening of the loops"} if zoo_case.mechanism.closures else set()  # a tree has none
    assert {row["quantity"] for row in rows} >= {*quantities, "axis", "inertia", "force at rest"}
    assert not doubts(rows)


def test_nothing_agrees_where_the_files_say_otherwise(prr: Case, prr_motion: Motion) -> None:
    with SHARED["gears"](prr) as wrong:
        judged_wrong, _ = _judged(wrong, prr_motion)
    right, no_rows = _judged(prr, prr_motion)
    assert not doubts(no_rows)
    assert _verdicts(right) == {"analytic/noc": "reference", "analytic/lagrange": "agree", "mujoco/kkt": "agree"}
    assert exit_status(right) == 0
    everything = {"analytic/noc": "disagree", "analytic/lagrange": "not comparable", "mujoco/kkt": "not comparable"}
    assert _verdicts(judged_wrong) == everything
    note = case_verdicts(judged_wrong)[prr.key]["analytic/lagrange"].note
    reason = "the model differs from its file: gear of q1 is 2 in the model, 1 in the file"
    assert f"the reference cannot be trusted: {reason}" in note
    assert reason in case_verdicts(judged_wrong)[prr.key]["analytic/noc"].note
    assert exit_status(judged_wrong) == 1


def test_nothing_agrees_where_the_files_were_not_read(
    prr: Case, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no disagreement either, but an error of our own."""

    def broken(*_: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(engines, "read_file", broken)
    results, rows = _judged(prr, prr_motion)
    assert "internal error: ZeroDivisionError" in blocking_reasons(rows)[prr.key, FILE]
    assert set(_verdicts(results).values()) == {"reference", "not comparable"}
    assert exit_status(results) == 70


def test_the_report_says_what_is_shared(prr: Case, prr_motion: Motion) -> None:
    blocks = verdicts(_judged(prr, prr_motion)[0]).blocks
    (table,) = [block.blocks[1] for block in blocks if isinstance(block, Section) and block.anchor == "shared"]
    assert isinstance(table, Table)
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    shared = dict(zip(IN_WORDS, rows["mujoco/kkt"], strict=True))
    assert {name for name, text in shared.items() if text == "shared"} == {"loads", "gravity"}
    assert set(rows) == {"analytic/lagrange", "mujoco/kkt"}


def _judged(case: Case, motion: Motion) -> tuple[Results, list[Mapping[str, Any]]]:
    sources = ("analytic/noc", "analytic/lagrange", "mujoco/kkt")
    outcomes = [evaluate(case, motion, name) for name in sources]
    rows = audit(case, expected_terms(case, motion), FILE)
    request = Request(dt=None, tolerances=registered())
    return collect([case], RunOutput({case.key: motion}, outcomes, rows, resolutions={}), request), rows


def _verdicts(results: Results) -> Mapping[str, str]:
    (of_case,) = case_verdicts(results).values()
    return {source: finding.verdict for source, finding in of_case.items()}
