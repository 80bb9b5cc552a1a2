"""The audit's table: every figure of its rows, the limits of its verdicts, and its rows for a failing engine."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from loopcheck import engines
from loopcheck.analytic.kinematics.tree import poses
from loopcheck.robots.arrays import Array
from loopcheck.robots.errors import EngineError, NotRepresentableError
from loopcheck.robots.inventory import Inventory, Matrices
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.audit.audit import (
    ExpectedTerms,
    audit,
    blocking_reasons,
    doubts,
    effort_rows,
    expected_terms,
)
from loopcheck.validation.common.results import table
from loopcheck.validation.common.tolerances import audits, registered
from loopcheck.validation.common.verdicts import FILE, Key

KEY: Mapping[str, str] = {"robot": "3prr", "variant": "default", "mode": "plus", "configuration": "vertical"}
NUMBERS = ("wanted", "found", "error", "tolerance")


@pytest.fixture(scope="module")
def want(prr: Case, prr_motion: Motion) -> ExpectedTerms:
    return expected_terms(prr, prr_motion)


@pytest.fixture
def right(want: ExpectedTerms, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Any]:
    """An engine with the true model, and its requested quantities."""
    terms = want.terms
    asked: dict[str, Any] = {}

    def matrices(engine: str, mechanism: Mechanism, q: Array, qd: Array) -> Matrices:
        asked["matrices"] = (engine, mechanism, q, qd)
        return Matrices(
            M=np.concatenate([terms.M, terms.M]),
            bias=np.concatenate([terms.coriolis + terms.gravity, terms.gravity]),
            passive=np.concatenate([terms.load - terms.dissipation, terms.load]),
            J=np.concatenate([terms.Phi, terms.Phi]),
            closure_bias=np.concatenate([terms.closure_bias, 0 * terms.closure_bias]),
        )

    def inventory(engine: str, mechanism: Mechanism, q: Array) -> Inventory:
        asked["audit"] = (engine, mechanism, q)
        return want.inventory

    monkeypatch.setattr(engines, "audit", inventory)
    monkeypatch.setattr(engines, "matrices", matrices)
    return asked


def spoil(monkeypatch: pytest.MonkeyPatch, name: str, edit: Callable[[Any], Any]) -> None:
    """Let the data of an engine be edited on its way."""
    original = getattr(engines, name)
    monkeypatch.setattr(engines, name, lambda *arguments: edit(original(*arguments)))


def test_the_states_are_those_of_the_motion(prr: Case, want: ExpectedTerms, prr_motion: Motion) -> None:
    """Not at its ends, and the first is also that of the static tier."""
    assert len(prr_motion.t) == 101
    for name in ("q", "qd", "qdd"):
        np.testing.assert_array_equal(getattr(want, name), getattr(prr_motion, name)[[43, 17, 79]])
    np.testing.assert_allclose(want.inventory.rest_force, want.terms.gravity[0], rtol=1e-14)  # no loads in this one
    assert want.terms.M.shape == (3, 7, 7)
    np.testing.assert_array_equal(want.inventory.center, poses(prr.mechanism, want.q[:1]).c[0])


def test_the_engine_is_asked_about_these_states(prr: Case, want: ExpectedTerms, right: Mapping[str, Any]) -> None:
    audit(prr, want, "mujoco")
    engine, mechanism, q = right["audit"]
    assert (engine, mechanism) == ("mujoco", prr.mechanism)
    np.testing.assert_array_equal(q, want.q[0])
    engine, mechanism, q, qd = right["matrices"]
    assert (engine, mechanism) == ("mujoco", prr.mechanism)
    np.testing.assert_array_equal(q, np.concatenate([want.q, want.q]))
    np.testing.assert_array_equal(qd, np.concatenate([want.qd, np.zeros((3, 7))]))


@pytest.mark.usefixtures("right")
def test_a_row_has_every_figure(prr: Case, want: ExpectedTerms, monkeypatch: pytest.MonkeyPatch) -> None:
    mass = np.array(want.inventory.mass)
    mass[2] *= 1 + 2.0**-20
    mass[1] *= 1 + 2.0**-21
    edited = {"mass": mass, "rebuilt": {"mass": "bricks", "armature": "nothing"}}
    spoil(monkeypatch, "audit", lambda inventory: replace(inventory, **edited))
    rows = {row["quantity"]: row for row in audit(prr, want, "mujoco")}
    assert rows["mass"] == {
        **KEY,
        "engine": "mujoco",
        "tier": "static",
        "quantity": "mass",
        "element": "platform",
        "unit": "kg",
        "wanted": 1.4195,
        "found": mass[2],
        "error": pytest.approx(2.0**-20, rel=1e-9),
        "tolerance": audits()["static"].relative_error,
        "verdict": "disagree",
        "note": "rebuilt: bricks",
    }
    table("audit", list(rows.values()))


@pytest.mark.usefixtures("right")
def test_what_is_right_is_shown_where_there_is_most_of_it(prr: Case, want: ExpectedTerms) -> None:
    rows = {row["quantity"]: row for row in audit(prr, want, "mujoco")}
    assert {row["verdict"] for row in rows.values()} == {"agree"}
    assert (rows["mass"]["element"], rows["mass"]["wanted"], rows["mass"]["error"]) == ("platform", 1.4195, 0)
    assert (rows["gravity"]["wanted"], rows["gravity"]["found"]) == (-9.81, -9.81)
    tiers = {row["quantity"]: row["tier"] for row in rows.values()}
    assert (tiers["mass"], tiers["mass matrix"], tiers["dampers"]) == ("static", "instantaneous", "instantaneous")


@pytest.mark.usefixtures("right")
def test_a_rotor_that_is_too_many_is_seen_beside_the_inertia_of_the_pose(
    prr: Case, want: ExpectedTerms, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of the static tier, which is the first."""
    assert abs(want.terms.M[0][1, 1] / want.terms.M[1][1, 1] - 1) > 1e-3
    armature = np.array(want.inventory.armature)
    armature[1, 1] += 1e-3 * want.terms.M[0][1, 1]
    spoil(monkeypatch, "audit", lambda inventory: replace(inventory, armature=armature))
    rows = {row["quantity"]: row for row in audit(prr, want, "mujoco")}
    assert rows["armature"]["error"] == pytest.approx(1e-3)


@pytest.mark.usefixtures("right")
def test_an_error_as_large_as_the_limit_agrees(prr: Case, want: ExpectedTerms, monkeypatch: pytest.MonkeyPatch) -> None:
    freedom = np.array(want.inventory.freedom)
    freedom[1, 1] = audits()["static"].relative_error  # of a hinge, which has no translation
    spoil(monkeypatch, "audit", lambda inventory: replace(inventory, freedom=freedom))
    row = next(row for row in audit(prr, want, "mujoco") if row["quantity"] == "kind of joint")
    assert (row["error"], row["verdict"]) == (row["tolerance"], "agree")


def heavier(factor: float) -> Callable[[Inventory], Inventory]:
    """The platform, which has the largest mass, alone."""

    def edit(inventory: Inventory) -> Inventory:
        mass = np.array(inventory.mass)
        mass[2] *= 1 + factor * 1e-11
        return replace(inventory, mass=mass)

    return edit


def more_inert(factor: float) -> Callable[[Matrices], Matrices]:
    def edit(found: Matrices) -> Matrices:
        M = np.array(found.M)
        M[1, 4, 4] *= 1 + factor * 1e-11
        return replace(found, M=M)

    return edit


@pytest.mark.usefixtures("right")
@pytest.mark.parametrize(
    ("asked", "edit", "quantity"),
    [("audit", heavier, "mass"), ("matrices", more_inert, "mass matrix")],
    ids=["static", "instantaneous"],
)
@pytest.mark.parametrize(("factor", "verdict"), [(0.99, "agree"), (1.01, "disagree")])
def test_a_verdict_flips_at_the_registered_limit(
    asked: str,
    edit: Callable[[float], Callable[[Any], Any]],
    quantity: str,
    factor: float,
    verdict: str,
    case_and_want: tuple[Case, ExpectedTerms],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        spoil(patch, asked, edit(factor))
        rows = {row["quantity"]: row for row in audit(*case_and_want, "mujoco")}
    assert rows[quantity]["error"] == pytest.approx(factor * 1e-11, rel=1e-3)
    assert rows.pop(quantity)["verdict"] == verdict
    assert {row["verdict"] for row in rows.values()} == {"agree"}


@pytest.fixture
def case_and_want(prr: Case, want: ExpectedTerms) -> tuple[Case, ExpectedTerms]:
    return prr, want


@pytest.mark.usefixtures("right")
@pytest.mark.parametrize(("where", "tier"), [("audit", "static"), ("matrices", "instantaneous")])
@pytest.mark.parametrize(
    ("error", "verdict", "note"),
    [
        (NotRepresentableError("no such thing"), "not comparable", "no such thing"),
        (EngineError("it crashed"), "not run", "it crashed"),
        (ZeroDivisionError("a bug"), "not run", "internal error: ZeroDivisionError: a bug"),
    ],
)
def test_an_engine_that_fails_is_a_row(
    where: str, tier: str, error: Exception, verdict: str, note: str, case_and_want: tuple[Case, ExpectedTerms]
) -> None:
    def failing(*_: Any) -> None:
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engines, where, failing)
        *before, row = audit(*case_and_want, "mujoco")
    assert {each["tier"] for each in before} == ({"static"} if where == "matrices" else set())
    names = {name: value for name, value in row.items() if name not in NUMBERS}
    names["note"] = names["note"].split("; traceback")[0]
    texts = {"engine": "mujoco", "tier": tier, "quantity": "all", "element": "robot", "unit": "-"}
    assert names == {**KEY, **texts, "verdict": verdict, "note": note}
    assert np.isnan([row[name] for name in NUMBERS]).all()
    assert set(row) == {*names, *NUMBERS}
    assert blocking_reasons([row]) == {(tuple(KEY.values()), "mujoco"): f"not audited: {row['note']}"}


@pytest.mark.usefixtures("right")
def test_matrices_of_other_dofs_are_not_compared(
    prr: Case, want: ExpectedTerms, monkeypatch: pytest.MonkeyPatch
) -> None:
    dofs = (*want.inventory.dofs[:-1], "other")
    spoil(monkeypatch, "audit", lambda inventory: replace(inventory, dofs=dofs))
    rows = audit(prr, want, "mujoco")
    assert {row["tier"] for row in rows} == {"static"}
    assert "number of dofs" in [row["quantity"] for row in rows if row["verdict"] == "disagree"]


def audited(quantity: str, verdict: str = "disagree", **changed: Any) -> Mapping[str, Any]:
    row = {**KEY, "engine": "bullet", "tier": "static", "quantity": quantity, "element": "rod", "unit": "kg"}
    return {**row, "wanted": 0.1, "found": 2.0, "error": 19.0, "verdict": verdict, "note": "", **changed}


THERE: Key = ("3prr", "default", "plus", "vertical")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (audited("mass"), "mass of rod must be 0.10000000000000001, got 2 kg"),
        (audited("rank", unit="-", note="why"), "rank of rod must be 0.10000000000000001, got 2 (why)"),
        (audited("mass", "agree"), None),
        (audited("dampers", tier="instantaneous"), None),
    ],
)
def test_what_is_lost_is_said_in_a_sentence(row: Mapping[str, Any], reason: str | None) -> None:
    sentence = f"bullet simulates a different robot: {reason}"
    assert blocking_reasons([row]) == ({} if reason is None else {(THERE, "bullet"): sentence})


def test_the_first_reason_counts_for_each_engine_and_case() -> None:
    reasons = blocking_reasons(
        [
            audited("mass", "agree"),
            audited("armature"),
            audited("damping"),
            audited("all", "not run", tier="instantaneous", note="gone", engine="other"),
            audited("gear", mode="minus"),
        ]
    )
    assert list(reasons) == [(THERE, "bullet"), (THERE, "other"), (("3prr", "default", "minus", "vertical"), "bullet")]
    assert reasons[THERE, "bullet"].startswith("bullet simulates a different robot: armature of rod must be ")
    assert reasons[THERE, "other"] == "not audited: gone"


def test_a_file_that_says_otherwise_puts_the_reference_in_doubt() -> None:
    """No engine does, nor a file that could not be read; the first quantity counts, in each case."""
    of_file = {"engine": FILE}
    rows = [
        audited("gear"),
        audited("axis", "agree", **of_file),
        audited("all", "not run", **of_file),
        audited("mass", **of_file),
        audited("rank", **of_file),
        audited("rank", mode="minus", unit="-", wanted=1.0, **of_file),
    ]
    said = "the model differs from its file: "
    assert doubts(rows) == {
        THERE: f"{said}mass of rod is 0.10000000000000001 in the model, 2 kg in the file",
        ("3prr", "default", "minus", "vertical"): f"{said}rank of rod is 1 in the model, 2 in the file",
    }


@pytest.mark.usefixtures("right")
def test_the_file_is_read_in_the_pose_of_the_static_tier_and_has_no_other(
    prr: Case, want: ExpectedTerms, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def read(*args: Any) -> Inventory:
        asked.append(args)
        return want.inventory

    monkeypatch.setattr(engines, "read_file", read)
    rows = audit(prr, want, FILE)
    assert {(row["engine"], row["tier"], row["verdict"]) for row in rows} == {(FILE, "static", "agree")}
    ((case, q),) = asked
    assert case is prr
    np.testing.assert_array_equal(q, want.q[0])


def judged(source: str, actuator: str, error: float, verdict: str, note: str | None = "") -> Mapping[str, Any]:
    figures = dict.fromkeys(("max_error", "rms_error", "closure_drift", "tracking_error", "wall_time"), np.nan)
    scales = {"peak": 1.0, "scale": 1.0, "case_peak": 1.0, "tolerance": np.nan}
    names = {**KEY, "source": source, "reference": "analytic/noc", "actuator": actuator, "unit": f"unit of {actuator}"}
    return {**names, **figures, **scales, "relative_error": error, "verdict": verdict, "note": note}


def rows_of_efforts(*rows: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [dict(row) for row in effort_rows(table("summary", rows))]
    return found


def test_efforts_of_a_route_are_its_worst() -> None:
    rows = rows_of_efforts(
        judged("analytic/noc", "q1", np.nan, "reference"),
        judged("mujoco/kkt", "q1", 1e-15, "agree", "one"),
        judged("mujoco/kkt", "q2", 3e-3, "disagree", "two"),
        judged("mujoco/kkt", "q3", 2e-15, "agree", "one"),
        judged("analytic/lagrange", "q1", 1e-15, "agree"),
        judged("mujoco/as_is", "q1", 0.25, "informational", None),
        judged("pinocchio/forward", "q1", 1e-9, "agree"),
        judged("pinocchio/forward", "q2", np.nan, "not comparable", "no effort"),
    )
    kkt, as_is, forward = rows
    assert {name: kkt[name] for name in kkt if name not in ("wanted", "found")} == {
        **KEY,
        "engine": "mujoco",
        "tier": "instantaneous",
        "quantity": "effort, kkt",
        "element": "q2",
        "unit": "unit of q2",
        "error": 3e-3,
        "tolerance": registered()["mujoco/kkt"].relative_error,
        "verdict": "disagree",
        "note": "one; two",
    }
    assert np.isnan([kkt["wanted"], kkt["found"]]).all()
    assert (as_is["tier"], as_is["quantity"], as_is["verdict"]) == (
        "trajectory",
        "effort, as_is",
        "informational",
    )
    assert as_is["tolerance"] == registered()["mujoco/forward"].relative_error  # what its efforts are shown beside
    assert as_is["note"] == ""
    assert (forward["engine"], forward["tier"], forward["verdict"]) == ("pinocchio", "trajectory", "not comparable")
    assert np.isnan(forward["error"])  # one that is not there is no small one
    assert forward["note"] == "no effort"


def test_a_route_without_any_limit_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loopcheck.validation.check.audit.audit.registered", dict)
    (row,) = rows_of_efforts(judged("mujoco/inverse", "q1", 0.1, "not comparable"))
    assert row["tolerance"] is None
    assert row["tier"] == "instantaneous"


def test_cases_are_told_apart() -> None:
    other = {**judged("mujoco/kkt", "q1", 2e-15, "agree"), "configuration": "horizontal"}
    rows = rows_of_efforts(judged("mujoco/kkt", "q1", 1e-15, "agree"), other)
    assert [(row["configuration"], row["error"]) for row in rows] == [("vertical", 1e-15), ("horizontal", 2e-15)]
