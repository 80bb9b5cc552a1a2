"""Faults in inputs shared by the reference and routes: each is caught, and shared inputs are declared."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from loopcheck import engines
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, make_case
from loopcheck.validation.comparison.audit import audit, blocking_reasons, doubts, expected_terms
from loopcheck.validation.comparison.evaluate import evaluate
from loopcheck.validation.comparison.independence import FROM_FILES, IN_WORDS, shares
from loopcheck.validation.comparison.results import Results
from loopcheck.validation.comparison.tolerances import registered
from loopcheck.validation.comparison.verdicts import FILE, case_verdicts
from loopcheck.validation.report.blocks import Section, Table
from loopcheck.validation.studies.check.collect import collect
from loopcheck.validation.studies.check.record import Request, RunOutput
from loopcheck.validation.studies.check.sections.verdicts import verdicts
from loopcheck.validation.studies.mutants.detection import (
    PreparedCase,
    Seeded,
    compared_sources,
    prepare,
    rows_of_faults,
)
from loopcheck.validation.studies.mutants.faults import COMMON_FAULTS, CommonFault
from tests.cpu_time import extended_but
from tests.validation.conftest import exit_status

FAULTS = {fault.key: fault for fault in COMMON_FAULTS}
EXACT = ("analytic/lagrange", "mujoco/kkt", "pinocchio/kkt", "pybullet/kkt")
QUANTITIES = {
    "model: gear": "gear",
    "model: mass": "mass",
    "model: closure": "opening of the loops",
    "model: springs": "stiffness",
    "model: dampers": "damping",
    "model: rotor": "armature",
    "model: wrench": "external moment",
    "model: gravity": "gravity",
}
"""Values of the files for each fault of their numbers."""


@pytest.fixture(scope="module")
def prepared(prr: Case) -> PreparedCase:
    return prepare(prr, COMMON_FAULTS)


def results_of(prepared: PreparedCase, source: str) -> Mapping[str, Mapping[str, Any]]:
    if source != FILE and source not in ("analytic/lagrange", "analytic/paper"):
        pytest.importorskip(source.split("/")[0])
    return {row["mutant"]: row for row in rows_of_faults(prepared, source, COMMON_FAULTS)}


def test_the_files_of_the_zoo_say_what_the_model_does(zoo_case: Case, zoo_motion: Motion) -> None:
    rows = audit(zoo_case, expected_terms(zoo_case, zoo_motion), FILE)
    assert {row["verdict"] for row in rows} == {"agree"}
    of_loops = set() if zoo_case.mechanism.closures else {QUANTITIES["model: closure"]}  # a tree has none
    assert {row["quantity"] for row in rows} >= {*QUANTITIES.values(), "axis", "inertia", "force at rest"} - of_loops
    assert not doubts(rows)


@pytest.mark.extended("test_every_number_of_the_files_has_a_fault")
@pytest.mark.parametrize("robot", ["3prr", "6spu"])
def test_the_files_notice_every_fault_of_their_numbers(robot: str) -> None:
    mode = "plus" if robot == "3prr" else "home"
    case = make_case(load(robot), variant="default", mode=mode, configuration="vertical")
    motion = prescribe(case)
    assert not doubts(audit(case, expected_terms(case, motion), FILE))
    for key, quantity in QUANTITIES.items():
        if key == "model: wrench" and not case.mechanism.wrenches:
            continue
        assert f"model differs from its file: {quantity} of " in _doubt(FAULTS[key], case, motion), key


def test_every_number_of_the_files_has_a_fault() -> None:
    assert {fault.what for fault in COMMON_FAULTS} == set(IN_WORDS)
    assert {fault.key for fault in COMMON_FAULTS if fault.what in FROM_FILES} == set(QUANTITIES)


@pytest.mark.parametrize(
    "source",
    extended_but(
        ["analytic/lagrange", "analytic/paper", "mujoco/kkt", "pinocchio/kkt"],
        ["analytic/lagrange", "analytic/paper", "mujoco/kkt", "mujoco/forward", "pinocchio/kkt", "pybullet/kkt"],
        "test_a_route_notices_what_it_does_not_share",
    ),
)
def test_a_route_notices_what_it_does_not_share(prepared: PreparedCase, source: str) -> None:
    """And shares its declared inputs: an excessive declaration shows in the table as a kill."""
    rows = results_of(prepared, source)
    for key, row in rows.items():
        if row["result"] == "not carried":
            assert (key, row["note"]) == ("model: wrench", "the robot has no external wrench")
        elif row["result"] == "shared":
            assert FAULTS[key].what in shares(source)
            assert row["note"].endswith(prepared.common[key].doubt)  # type: ignore[union-attr]
        else:
            assert row["result"] in ("killed", "refused"), row


@pytest.mark.parametrize(
    ("robot", "source", "result"),
    [
        *(("bricard", source, "killed") for source in EXACT),
        *(("n_four_bar_2", source, "below tolerance") for source in EXACT),  # equal links: there is no J̇v to miss
    ],
)
def test_a_velocity_term_that_both_sides_lack_is_noticed(robot: str, source: str, result: str) -> None:
    if not source.startswith("analytic/"):
        pytest.importorskip(source.split("/")[0])
    case = make_case(load(robot), variant="default", mode="home", configuration="vertical")
    fault = [FAULTS["model: velocity term"]]
    (row,) = rows_of_faults(prepare(case, fault), source, fault)
    assert row["result"] == result, row
    if result == "killed":
        assert row["relative_error"] == pytest.approx(row["effect"], rel=1e-6)
        assert row["effect"] > 1e-2
    else:
        assert row["effect"] < 1e-12
        assert "the fault changes the efforts by" in row["note"]


@pytest.mark.extended("test_every_number_of_the_files_has_a_fault")
def test_a_base_point_that_is_misread_opens_the_loops_of_mujoco() -> None:
    """Its Jacobian does not depend on the point: the gap that the engine sees is all there is to notice."""
    case = make_case(load("6spu"), variant="default", mode="home", configuration="vertical")
    fault = [FAULTS["model: closure"]]
    (row,) = rows_of_faults(prepare(case, fault), "mujoco/kkt", fault)
    assert row["result"] == "killed", row
    assert row["relative_error"] < row["tolerance"]
    assert row["note"].startswith("closure drift must be at most 3.09e-06 m, got 0.0001 m")


def test_the_rank_of_the_drives_is_for_the_power_balance(prepared: PreparedCase) -> None:
    row = results_of(prepared, "mujoco/kkt")["model: rank"]
    assert row["result"] == "refused"
    assert "the reference cannot be trusted: power imbalance" in row["note"]


def test_the_model_file_is_a_judge_of_numbers_alone(prepared: PreparedCase) -> None:
    rows = results_of(prepared, FILE)
    assert {key for key, row in rows.items() if row["result"] == "killed"} == set(QUANTITIES) - {"model: wrench"}
    assert rows["model: velocity term"]["note"] == "the faulty input is not in the robot's files"


def test_what_nobody_notices_survives(prepared: PreparedCase) -> None:
    """A fault of a shared input survives without the files, and a fault of an unshared input does not."""
    seeded = prepared.common["model: gear"]
    assert isinstance(seeded, Seeded)
    silent = replace(prepared, common={"model: gear": replace(seeded, doubt="")})
    gear = [FAULTS["model: gear"]]
    assert [row["result"] for row in rows_of_faults(prepared, "analytic/lagrange", gear)] == ["shared"]
    assert [row["result"] for row in rows_of_faults(silent, "analytic/lagrange", gear)] == ["survived"]
    assert [row["result"] for row in rows_of_faults(silent, FILE, gear)] == ["survived"]
    undeclared = [replace(FAULTS["model: gear"], what="velocity term")]
    assert [row["result"] for row in rows_of_faults(prepared, "analytic/lagrange", undeclared)] == ["survived"]


@pytest.mark.extended("test_every_number_of_the_files_has_a_fault")
def test_a_gear_of_a_motor_that_is_left_off_is_for_the_files() -> None:
    """MuJoCo takes gears from its own file; but of redundant motors it drives only independent motors, without q1."""
    gear = [FAULTS["model: gear"]]
    prepared = prepare(make_case(load("2pur2rpu"), variant="default", mode="home", configuration="vertical"), gear)
    seeded = prepared.common["model: gear"]
    assert isinstance(seeded, Seeded)
    (row,) = rows_of_faults(prepared, "mujoco/forward", gear)
    assert (row["verdict"], row["result"]) == ("agree", "shared")
    silent = replace(prepared, common={"model: gear": replace(seeded, doubt="")})
    assert [row["result"] for row in rows_of_faults(silent, "mujoco/forward", gear)] == ["survived"]


def test_a_model_that_cannot_move_is_refused(prr: Case) -> None:
    """A fault that leaves no motion, nor a reference, is caught with the reason."""

    def torn(case: Case) -> Any:
        first = case.mechanism.closures[0]
        away = replace(first, point1=first.point1 + 100.0)  # type: ignore[arg-type,union-attr]
        mechanism = replace(case.mechanism, closures=(away, *case.mechanism.closures[1:]))
        return nullcontext(replace(case, mechanism=mechanism))

    fault = CommonFault("torn", "", "geometry", torn)
    rows = rows_of_faults(prepare(prr, [fault]), "mujoco/kkt", [fault])
    assert (rows[0]["result"], rows[0]["effect"]) == ("refused", np.inf)
    assert "the reference refuses the fault: " in rows[0]["note"]


def test_nothing_agrees_where_the_files_say_otherwise(prr: Case, prr_motion: Motion) -> None:
    with FAULTS["model: gear"].seed(prr) as wrong:
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


def test_a_fault_in_code_is_whole_again_afterwards(prr: Case, prr_motion: Motion) -> None:
    right = Noc().compute_efforts(prr, prr_motion).effort
    with FAULTS["model: velocity term"].seed(prr) as case:
        wrong = Noc().compute_efforts(case, prescribe(case)).effort
    assert np.abs(wrong - right).max() > 0.01 * np.abs(right).max()
    np.testing.assert_array_equal(Noc().compute_efforts(prr, prescribe(prr)).effort, right)


def test_every_judged_source_says_what_it_shares(prr: Case) -> None:
    for source in compared_sources(prr):
        assert set(shares(source)) <= set(IN_WORDS)
    assert set(shares("analytic/noc")) == set(IN_WORDS)
    assert "gears" not in shares("mujoco/forward")


def test_the_report_says_what_is_shared(prr: Case, prr_motion: Motion) -> None:
    blocks = verdicts(_judged(prr, prr_motion)[0]).blocks
    (table,) = [block.blocks[1] for block in blocks if isinstance(block, Section) and block.anchor == "shared"]
    assert isinstance(table, Table)
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    shared = dict(zip(IN_WORDS, rows["mujoco/kkt"], strict=True))
    assert {name for name, text in shared.items() if text == "shared"} == {"loads", "gravity"}
    assert set(rows) == {"analytic/lagrange", "mujoco/kkt"}


def _doubt(fault: CommonFault, case: Case, motion: Motion) -> str:
    with fault.seed(case) as wrong:
        return doubts(audit(wrong, expected_terms(wrong, motion), FILE)).get(case.key, "")


def _judged(case: Case, motion: Motion) -> tuple[Results, list[Mapping[str, Any]]]:
    sources = ("analytic/noc", "analytic/lagrange", "mujoco/kkt")
    outcomes = [evaluate(case, motion, name) for name in sources]
    rows = audit(case, expected_terms(case, motion), FILE)
    request = Request(dt=None, tolerances=registered())
    return collect([case], RunOutput({case.key: motion}, outcomes, rows, resolutions={}), request), rows


def _verdicts(results: Results) -> Mapping[str, str]:
    (of_case,) = case_verdicts(results).values()
    return {source: finding.verdict for source, finding in of_case.items()}
