"""Verdicts: the limits of each, to the last digit, and every figure of a row."""

from collections.abc import Mapping
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
import pytest

from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation, EffortHistory, Rung
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.check.efforts import compare
from loopcheck.validation.check.efforts.compare import (
    ladder_rows,
    relative_error,
    summarize,
    summarize_resolved,
    unexplained,
)
from loopcheck.validation.check.efforts.outcome import Failed, Modelled, Outcome, Ran, Redundant, Reference, Unmodified
from loopcheck.validation.check.efforts.resolution import Resolution
from loopcheck.validation.check.efforts.rules import Evidence
from loopcheck.validation.common import sources
from loopcheck.validation.common.accuracy import Requirement
from loopcheck.validation.common.targets import cases_of
from loopcheck.validation.common.tolerances import Tolerance, registered
from loopcheck.validation.common.verdicts import FILE
from loopcheck.validation.execution.errors import internal_errors
from tests.conftest import MODELS

T = np.array([0.0, 0.1, 0.2])
EXPECTED = np.array([[1.0, -6.0, 0.5], [-4.0, 2.0, 0.25], [3.0, 1.0, -0.5]])
"""Efforts of the reference [N]."""
SCALE = np.array([8.0, 16.0, 2.0])
ROUTE = "mujoco/forward"
LIMIT = 2.0**-10
KEPT: dict[str, Any] = {"closure_drift": Deviation(), "tracking_error": Deviation()}
"""Loops that stay closed and drives that follow."""
LIMITS = Tolerance(relative_error=LIMIT, closure_drift=1e-5, tracking_error=1e-4, reason="A test.")
TRUST = Tolerance(power_imbalance=1e-13, term_sum=1e-11, reason="A test.")
EVIDENCE = Evidence(tolerances={sources.REFERENCE: TRUST, ROUTE: LIMITS})


def history(source: str, effort: Array, **changed: Any) -> EffortHistory:
    return EffortHistory(source=source, actuators=("q1", "q2", "q3"), t=T, effort=effort, **changed)


def required(scale: Array) -> Requirement:
    """The requirement of a motion with these scales and the peaks of the reference."""
    names = [f"q{k + 1}" for k in range(len(scale))]
    return Requirement(actuators=names, units=["N"] * len(scale), peak=np.abs(EXPECTED).max(axis=0), scale=scale)


def off_by(*errors: float) -> Array:
    """The efforts of the reference, and an error of each actuator [N]."""
    return EXPECTED + np.array(errors)


R = TypeVar("R", bound=Ran)


@pytest.fixture
def reference(prr: Case) -> Reference:
    found = history(sources.REFERENCE, EXPECTED)
    return Reference(
        case=prr,
        source=sources.REFERENCE,
        history=found,
        power_imbalance=1e-15,
        required=required(SCALE),
        term_sum=1e-13,
    )


@pytest.fixture
def candidate(prr: Case) -> Ran:
    """A simulation with an error of half its limit at the second actuator."""
    effort = off_by(0.0, LIMIT * 8, 0.0)
    found = history(ROUTE, effort, closure_drift=Deviation(length=1e-6), tracking_error=Deviation(length=1e-7))
    return Ran(case=prr, source=ROUTE, history=found, wall_time=2.5, note="said so")


def changed(outcome: Reference, **values: Any) -> Reference:
    """The same with other values of the outcome."""
    return replace(outcome, **values)


def split(outcome: Ran, projected: EffortHistory) -> Redundant:
    """The same, of which a part is compared."""
    known = {field.name: getattr(outcome, field.name) for field in fields(outcome)}
    return Redundant(**known, projected=projected)


def failed(outcome: Ran, verdict: str, **values: Any) -> Failed:
    """A source that did not run."""
    return Failed(
        **{"case": outcome.case, "source": outcome.source, "verdict": verdict, "note": outcome.note, **values}
    )


def with_history(outcome: R, **values: Any) -> R:
    """The same with other values of its history."""
    return replace(outcome, history=replace(outcome.history, **values))


def rows_of(reference: Outcome, candidate: Outcome, evidence: Evidence = EVIDENCE) -> list[Mapping[str, Any]]:
    summary = summarize([reference, candidate], evidence)
    rows: list[Mapping[str, Any]] = summary[summary["source"] == candidate.source].to_dict("records")  # type: ignore[assignment]
    return rows


def verdicts(reference: Outcome, candidate: Outcome, evidence: Evidence = EVIDENCE) -> list[str]:
    return [row["verdict"] for row in rows_of(reference, candidate, evidence)]


def test_a_row_has_every_figure(reference: Reference, candidate: Ran) -> None:
    """An oscillating error: its largest is at a single sample, its mean over all."""
    swing = np.array([[0.0, 3.0, 0.0], [0.0, -4.0, 0.0], [0.0, 0.0, 0.0]]) * LIMIT
    swinging = with_history(candidate, effort=EXPECTED + swing)
    first, second, third = rows_of(reference, swinging)
    assert second == {
        "robot": "3prr",
        "variant": "default",
        "mode": "plus",
        "configuration": "vertical",
        "source": ROUTE,
        "reference": "analytic/noc",
        "actuator": "q2",
        "unit": "N",
        "peak": 6.0,
        "case_peak": 6.0,
        "scale": 16.0,
        "max_error": 4 * LIMIT,
        "rms_error": pytest.approx(5 * LIMIT / np.sqrt(3), rel=1e-12),
        "relative_error": LIMIT / 4,
        "peak_error": 4 * LIMIT / 6,
        "tolerance": LIMIT,
        "verdict": "agree",
        "closure_drift": 1e-6,
        "tracking_error": 1e-7,
        "wall_time": 2.5,
        "note": "said so",
    }
    assert (first["max_error"], first["rms_error"], first["relative_error"]) == (0, 0, 0)
    assert (third["peak"], third["case_peak"], third["scale"]) == (0.5, 6.0, 2.0)


def test_the_reference_is_its_own_row(reference: Reference, candidate: Ran) -> None:
    summary = summarize([reference, candidate], EVIDENCE)
    row = summary.iloc[0].to_dict()
    assert (row["source"], row["verdict"]) == (sources.REFERENCE, "reference")
    assert row["note"] == "power imbalance 1.0e-15 of the acting powers"
    assert np.isnan([row[name] for name in ("max_error", "rms_error", "relative_error", "tolerance")]).all()
    assert (row["peak"], row["case_peak"], row["scale"]) == (4.0, 6.0, 8.0)


def test_tolerances_are_the_registered_ones_by_default(reference: Reference, candidate: Ran) -> None:
    summary = summarize([reference, candidate])
    assert summary["tolerance"].iloc[-1] == registered()[ROUTE].relative_error
    assert summary["verdict"].tolist() == [*3 * ["reference"], "agree", "disagree", "agree"]


def test_a_single_sample_and_a_small_scale_compare(reference: Reference, candidate: Ran) -> None:
    one: dict[str, Any] = {"t": T[:1], "effort": EXPECTED[:1]}
    assert verdicts(with_history(reference, **one), with_history(candidate, **one)) == 3 * ["agree"]
    small = rows_of(replace(reference, required=required(SCALE / 64)), candidate)
    assert [row["verdict"] for row in small] == ["agree", "disagree", "agree"]
    assert small[1]["relative_error"] == 32 * LIMIT


def test_units_do_not_share_a_peak() -> None:
    case = cases_of([MODELS / "lift_and_finger.xml"])[-1]
    names = tuple(actuator.name for actuator in case.mechanism.actuators)
    effort = np.array([[4e3, 1e-3], [-5e3, -2e-3]])
    found = EffortHistory(source=sources.REFERENCE, actuators=names, t=T[:2], effort=effort)
    outcome = Reference(
        case=case,
        source=sources.REFERENCE,
        history=found,
        power_imbalance=0.0,
        required=required(np.ones(2)),
        term_sum=0.0,
    )
    summary = summarize([outcome], EVIDENCE)
    assert summary["peak"].tolist() == summary["case_peak"].tolist() == [5e3, 2e-3]
    assert summary["unit"].tolist() == ["N", "N m"]


def test_a_verdict_flips_at_the_limit(reference: Reference, candidate: Ran) -> None:
    """To the last digit: an error as large as the limit agrees, the next larger number does not."""
    for error, verdict in ((LIMIT, "agree"), (np.nextafter(LIMIT, 1), "disagree")):
        effort = EXPECTED * [1, 1, 0] + [0, 0, SCALE[2] * error]
        zero = replace(reference, history=history(sources.REFERENCE, EXPECTED * [1, 1, 0]))
        found = with_history(candidate, effort=effort)
        assert verdicts(zero, found) == ["agree", "agree", verdict]


@pytest.mark.parametrize("source", [name for name, limit in registered().items() if limit.relative_error])
def test_a_verdict_flips_at_the_registered_limit(source: str, reference: Reference, candidate: Ran) -> None:
    limit = registered()[source].relative_error or 0.0
    for factor, verdict in ((0.99, "agree"), (1.01, "disagree")):
        effort = off_by(0, 0, factor * limit * SCALE[2])
        found = Modelled(
            case=candidate.case, source=source, history=history(source, effort, **KEPT), power_imbalance=0.0
        )
        assert verdicts(reference, found, Evidence()) == ["agree", "agree", verdict]


@pytest.mark.parametrize("name", ["closure_drift", "tracking_error"])
def test_a_verdict_flips_at_each_other_limit(name: str, reference: Reference, candidate: Ran) -> None:
    """Lengths count by the size of the robot, angles do not."""
    limit: float = getattr(LIMITS, name)
    words = name.replace("_", " ")
    candidate = replace(candidate, size=4.0)
    for value, said in (
        (Deviation(4 * limit, limit), ""),
        (Deviation(np.nextafter(4 * limit, 1)), f"{words} must be at most {4 * limit:g} m, got {4 * limit:.3g} m"),
        (Deviation(angle=np.nextafter(limit, 1)), f"{words} must be at most {limit:g} rad, got {limit:.3g} rad"),
        (Deviation(length=np.nan), f"{words} must be at most {4 * limit:g} m, got nan m"),
        (Deviation(angle=np.nan), f"{words} must be at most {limit:g} rad, got nan rad"),
        (None, f"{words} must be at most {limit:g} rad, or {limit:g} of the robot's size, but is not reported"),
    ):
        found = with_history(candidate, **{name: value})
        rows = rows_of(reference, found)
        assert [row["verdict"] for row in rows] == 3 * ["disagree" if said else "agree"]
        assert rows[0]["note"] == "; ".join(filter(None, (said, "said so")))


def test_a_simulation_off_its_motion_says_so_whatever_its_error(reference: Reference, candidate: Ran) -> None:
    off = with_history(candidate, effort=5 * EXPECTED, closure_drift=Deviation(length=1.0))
    assert {row["verdict"] for row in rows_of(reference, off)} == {"disagree"}
    assert all(row["note"].startswith("closure drift must be at most ") for row in rows_of(reference, off))


@pytest.mark.parametrize("name", ["power_imbalance", "term_sum"])
def test_a_reference_in_doubt_lets_nothing_agree(name: str, reference: Reference, candidate: Ran) -> None:
    limit: float = getattr(TRUST, name)
    right = changed(reference, **{name: limit})
    assert verdicts(right, candidate) == 3 * ["agree"]
    for value, got in ((2 * limit, f"{2 * limit:.3g}"), (np.nan, "nan"), (None, "not reported")):
        wrong = changed(reference, **{name: value})
        doubt = f"{name.replace('_', ' ')} must be at most {limit:g}, got {got}"
        summary = summarize([wrong, candidate], EVIDENCE)
        assert summary["verdict"].tolist() == 6 * ["not comparable"]  # an internal error, not a verdict on the file
        assert internal_errors(summary["note"]) == [f"internal error: audit of our efforts: {doubt}"]
        assert summary["note"].iloc[-1] == f"the reference cannot be trusted: {doubt}; said so"


def test_a_reference_at_rest_has_no_balance(reference: Reference, candidate: Ran) -> None:
    still = replace(reference, power_imbalance=None, at_rest=True)
    summary = summarize([still, candidate], EVIDENCE)
    assert summary["verdict"].tolist() == [*3 * ["reference"], *3 * ["agree"]]
    assert summary["note"].tolist() == [*3 * ["at rest: no power balance"], *3 * ["said so"]]


def test_without_a_reference_nothing_compares(reference: Reference, candidate: Ran) -> None:
    none = failed(reference, "not run", note="why")
    summary = summarize([none, candidate], EVIDENCE)
    assert summary["verdict"].tolist() == [*3 * ["not run"], *3 * ["not comparable"]]
    assert summary["note"].iloc[0] == "why"
    assert summary["note"].iloc[-1] == "the reference cannot be trusted: it did not run; said so"
    numbers = ["peak", "case_peak", "scale", "max_error", "rms_error", "relative_error", "peak_error"]
    assert summary[numbers].isna().all(axis=None)


@pytest.mark.parametrize("failure", ["not run", "not comparable"])
def test_what_did_not_run_says_why(failure: str, reference: Reference, candidate: Ran) -> None:
    row = rows_of(reference, failed(candidate, failure))[0]
    assert (row["verdict"], row["note"], row["peak"], row["tolerance"]) == (failure, "said so", 4.0, LIMIT)
    assert np.isnan([row[name] for name in ("max_error", "closure_drift", "tracking_error", "wall_time")]).all()


def test_a_route_without_a_limit_is_not_judged(reference: Reference, candidate: Ran) -> None:
    (row, *_) = rows_of(reference, candidate, replace(EVIDENCE, tolerances={sources.REFERENCE: TRUST}))
    assert (row["verdict"], row["note"]) == (
        "not comparable",
        "no tolerance is registered for this source; said so",
    )
    shown = Tolerance(reason="Shown.")
    (row, *_) = rows_of(reference, candidate, replace(EVIDENCE, tolerances={sources.REFERENCE: TRUST, ROUTE: shown}))
    assert (row["verdict"], row["note"], row["max_error"]) == ("informational", "said so", 0)
    assert np.isnan(row["tolerance"])


@pytest.mark.parametrize(("internal", "verdict"), [(0.9, "agree"), (1.1, "not comparable")])
def test_an_internal_load_above_every_shared_peak_prevents_a_verdict(
    internal: float, verdict: str, reference: Reference, candidate: Ran
) -> None:
    """Of an unmodified simulation, whose controller divides the load."""
    together = replace(reference, required=replace(reference.required, shared=((0, 1, 2),)))
    left = SimpleNamespace(reason="", bounds=False, internal=internal * together.required.divisor)
    for name in ("largest", "rms", "floor_of_largest"):
        setattr(left, name, np.zeros(3))
    run = Unmodified(case=candidate.case, source="mujoco/as_is", history=candidate.history, settled=left)  # type: ignore[arg-type]
    limits = {**EVIDENCE.tolerances, "mujoco/as_is": Tolerance(relative_error=0.1, reason="asked for")}
    rows = rows_of(together, run, replace(EVIDENCE, tolerances=limits))
    assert [row["verdict"] for row in rows] == 3 * [verdict]
    assert all("internal load" in row["note"] for row in rows)


@pytest.mark.parametrize("reader", ["mujoco", FILE])
def test_an_engine_that_lost_something_is_not_compared(reader: str, reference: Reference, candidate: Ran) -> None:
    """Nor is one whose file has no audit."""
    key = candidate.case.key
    blocking_reasons = replace(EVIDENCE, blocking_reasons={(key, reader): "it lost a mass"})
    (row, *_) = rows_of(reference, candidate, blocking_reasons)
    assert (row["verdict"], row["note"]) == ("not comparable", "it lost a mass; said so")
    other = replace(
        EVIDENCE, blocking_reasons={(key, "pybullet"): "it lost a mass", (("a", "b", "c", "d"), "mujoco"): "no"}
    )
    assert verdicts(reference, candidate, other) == 3 * ["agree"]


@pytest.mark.parametrize(
    "change",
    [
        {"t": T[:2], "effort": EXPECTED[:2]},
        {"t": T + 2e-9},
        {"t": T * (1 + 1e-5)},
        {"actuators": ("q1", "other", "q3")},
    ],
    ids=["shorter", "later", "slower", "another actuator"],
)
def test_what_has_no_partner_is_not_compared(change: Mapping[str, Any], reference: Reference, candidate: Ran) -> None:
    row = rows_of(reference, with_history(candidate, **change))[1]
    assert row["verdict"] == "not comparable"
    assert row["note"].startswith("no finite effort of this actuator on the time grid of the reference")
    assert np.isnan([row["max_error"], row["relative_error"]]).all()
    assert row["peak"] == 6.0


def test_a_grid_that_is_off_by_round_off_compares(reference: Reference, candidate: Ran) -> None:
    found = with_history(candidate, t=T + 0.9e-9)
    assert verdicts(reference, found) == 3 * ["agree"]


def test_actuators_are_found_by_name(reference: Reference, candidate: Ran) -> None:
    swapped = with_history(candidate, actuators=("q3", "q2", "q1"), effort=EXPECTED[:, ::-1])
    assert verdicts(reference, swapped) == 3 * ["agree"]


def test_an_empty_grid_compares_nothing(reference: Reference, candidate: Ran) -> None:
    nothing: dict[str, Any] = {"t": T[:0], "effort": EXPECTED[:0]}
    empty, found = (with_history(each, **nothing) for each in (reference, candidate))
    row = rows_of(empty, found)[0]
    assert (row["verdict"], row["peak"], row["case_peak"]) == ("not comparable", 0, 0)


def test_the_part_that_moves_the_robot_is_compared(reference: Reference, candidate: Ran) -> None:
    shared = split(with_history(candidate, effort=5 * EXPECTED), candidate.history)
    assert verdicts(reference, shared) == 3 * ["agree"]


def test_where_nothing_acts_nothing_is_judged(reference: Reference, candidate: Ran) -> None:
    """Nor is there a verdict on the effort of an actuator there."""
    unmoved = replace(reference, required=required(SCALE * [1, 1, 0]))
    rows = rows_of(unmoved, candidate)
    assert [row["verdict"] for row in rows] == ["agree", "agree", "not comparable"]
    assert rows[2]["note"].startswith("no load: no force does work along the motion of this actuator")
    assert np.isnan(rows[2]["relative_error"])
    assert rows[2]["max_error"] == 0


@pytest.mark.parametrize(
    ("resolution", "verdict", "said"),
    [
        (None, "disagree", ""),
        (0.25, "not comparable", "below the resolution of this route: error 0.75, resolution 0.25, limit 0.00195"),
        (0.2499, "disagree", "error 0.75, resolution 0.25, limit 0.00195"),
    ],
)
def test_an_error_below_three_resolutions_is_no_verdict(
    resolution: float | None, verdict: str, said: str, reference: Reference, candidate: Ran
) -> None:
    found = replace(with_history(candidate, effort=off_by(0, 0, 0.75)), note="")
    measured = Resolution(effort={} if resolution is None else {"q3": resolution})
    evidence = replace(EVIDENCE, resolutions={(candidate.case.key, ROUTE): measured})
    rows = rows_of(reference, found, evidence)
    assert [row["verdict"] for row in rows] == ["agree", "agree", verdict]
    assert rows[2]["note"] == said
    assert rows[0]["note"] == ""


def test_only_efforts_beyond_their_limit_want_an_explanation(reference: Reference, candidate: Ran) -> None:
    """Once for all actuators of a source; not for open loops with agreeing efforts, even to the last digit."""
    found = with_history(candidate, effort=off_by(0, 1, 1))
    blocking_reasons = replace(EVIDENCE, blocking_reasons={(candidate.case.key, "mujoco"): "it lost a mass"})
    error = [0, 0, SCALE[2] * LIMIT]
    at_the_limit = with_history(candidate, effort=EXPECTED * [1, 1, 0] + error, closure_drift=Deviation(length=1.0))
    zero = replace(reference, history=history(sources.REFERENCE, EXPECTED * [1, 1, 0]))
    there = (("3prr", "default", "plus", "vertical"), ROUTE)
    assert unexplained(summarize([reference, found], EVIDENCE)) == [there]
    assert unexplained(summarize([reference, found], blocking_reasons)) == []
    assert unexplained(summarize([reference, candidate], EVIDENCE)) == []
    assert verdicts(zero, at_the_limit) == 3 * ["disagree"]
    assert unexplained(summarize([zero, at_the_limit], EVIDENCE)) == []
    other = replace(candidate.case, configuration="horizontal")
    both = [replace(each, case=case) for case in (candidate.case, other) for each in (reference, found)]
    elsewhere = (("3prr", "default", "plus", "horizontal"), ROUTE)
    assert unexplained(summarize(both, EVIDENCE)) == [there, elsewhere]


@pytest.mark.parametrize(
    ("resolved", "verdict", "note"),
    [
        (None, "not comparable", "power imbalance must be at most 1e-13, got 3e-13"),
        (np.nan, "not comparable", "power imbalance must be at most 1e-13, got 3e-13"),
        (9e-14, "not comparable", "power imbalance must be at most 1e-13, got 3e-13"),
        (
            2e-13,
            "not comparable",
            "below the resolution of this route: power imbalance 3e-13, resolution 2e-13, limit 1e-13",
        ),
    ],
)
def test_a_power_balance_is_judged_by_its_limit_and_by_what_is_resolved(
    resolved: float | None, verdict: str, note: str, reference: Reference, candidate: Ran
) -> None:
    """Near a singular pose two units in the last place unbalance the reference: then it cannot judge a source."""
    evidence, unbalanced = EVIDENCE, replace(reference, power_imbalance=3e-13)
    assert unexplained(summarize([unbalanced, candidate], EVIDENCE)) == [(candidate.case.key, sources.REFERENCE)]
    if resolved is not None:
        found = Resolution(effort={}, power_balance=resolved)
        evidence = replace(EVIDENCE, resolutions={(candidate.case.key, sources.REFERENCE): found})
    rows = summarize([unbalanced, candidate], evidence)
    assert set(rows["verdict"][:3]) == {verdict}
    assert rows["note"][0].removeprefix("internal error: audit of our efforts: ").startswith(note)
    assert bool(internal_errors(rows["note"])) == (resolved != 2e-13)
    assert set(rows["verdict"][3:]) == {"not comparable"}
    assert rows["note"][3].startswith(f"the reference cannot be trusted: {note}")
    faulty = replace(unbalanced, term_sum=1.0)
    assert internal_errors(summarize([faulty, candidate], evidence)["note"])


def test_what_is_resolved_is_asked_of_those_alone_whose_effort_is_beyond(
    reference: Reference, candidate: Ran, prr_motion: Motion, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And of the compared part; earlier results still hold."""
    asked: list[Any] = []

    def measured(*args: Any) -> Resolution:
        asked.append(args)
        return Resolution(effort={"q2": 0.5, "q3": 0.1})

    monkeypatch.setattr(compare, "measure_resolution", measured)
    assert summarize_resolved([reference, candidate], prr_motion, EVIDENCE)["verdict"].tolist()[3:] == 3 * ["agree"]
    assert asked == []
    beyond = split(with_history(candidate, effort=5 * EXPECTED), history(ROUTE, off_by(0, 1, 1)))
    beyond = replace(beyond, projected=replace(beyond.projected, closure_drift=Deviation(), tracking_error=Deviation()))
    gone = failed(candidate, "not run", source="mujoco/default")
    tolerances = {**EVIDENCE.tolerances, "pinocchio/forward": LIMITS, "mujoco/default": LIMITS}
    blocking_reasons = {(candidate.case.key, "pinocchio"): "it lost a mass"}
    evidence = Evidence(tolerances=tolerances, blocking_reasons=blocking_reasons)
    outcomes = [reference, beyond, replace(beyond, source="pinocchio/forward"), gone]
    found = summarize_resolved(outcomes, prr_motion, evidence)
    ((case, motion, name, efforts),) = asked
    assert (case, motion, name, efforts) == (candidate.case, prr_motion, ROUTE, beyond.projected)
    verdicts = [rows["verdict"].tolist() for _, rows in found.groupby("source", sort=False)]
    assert verdicts == [
        3 * ["reference"],
        ["agree", "not comparable", "disagree"],
        3 * ["not comparable"],
        3 * ["not run"],
    ]
    resolved = found[found["source"] == ROUTE]["note"].iloc[1]
    assert resolved.startswith("below the resolution of this route: error 1, resolution 0.5, limit 0.0156")
    by_default = summarize_resolved([reference, beyond], prr_motion)
    assert by_default["tolerance"].iloc[-1] == registered()[ROUTE].relative_error
    assert by_default["verdict"].tolist()[3:] == ["agree", "not comparable", "disagree"]


def test_a_limit_that_leaves_much_of_an_effort_open_says_so(reference: Reference, candidate: Ran) -> None:
    """From one hundredth of the peak on; and the effort relative to its cancelling terms."""
    cancelling = replace(reference, required=required(np.array([4.0, 6.0, 0.5]) / LIMIT * [0.01, 0.95, 1e9]))
    quiet = replace(candidate, note="")
    notes = [row["note"] for row in rows_of(cancelling, quiet)]
    ratio = 0.95 / LIMIT
    assert notes[:2] == ["", f"terms cancel to 1/{ratio:.0f}: agreement is to 95 % of the effort"]
    zero = replace(cancelling, history=history(sources.REFERENCE, 0 * EXPECTED))
    found = replace(quiet, history=history(ROUTE, 0 * EXPECTED, closure_drift=Deviation(), tracking_error=Deviation()))
    assert {row["note"] for row in rows_of(zero, found)} == {"terms cancel: the effort is zero throughout"}
    shown = replace(EVIDENCE, tolerances={sources.REFERENCE: TRUST, ROUTE: Tolerance(reason="Shown.")})
    assert {row["note"] for row in rows_of(cancelling, quiet, shown)} == {""}


def test_the_relative_error_is_the_worst_of_all_actuators() -> None:
    found = EXPECTED + np.array([[0, 0, 0], [-1.0, 1.5, 0], [0, 0, 0.125]])
    assert relative_error(found, EXPECTED, SCALE) == 0.125
    assert relative_error(found, EXPECTED, SCALE * [1, 1, 0.25]) == 0.25
    assert relative_error(found * [1, 1, 9], EXPECTED, SCALE * [1, 1, 0]) == 0.125  # nothing acts on the third
    assert relative_error(off_by(1, 0, 0), EXPECTED, SCALE * [1, 1, 0]) == 0.125
    assert np.isnan(relative_error(found, EXPECTED, 0 * SCALE))
    assert np.isnan(relative_error(found * [1, 1, np.nan], EXPECTED, SCALE))


def rungs(order: int, ratio: float) -> tuple[Rung, ...]:
    """Efforts that come closer to the reference as a power of the step: half of it in the second, more in the third."""
    steps = [0.01 / ratio**k for k in range(4)]
    return tuple(
        Rung(
            dt=dt,
            effort=EXPECTED + dt**order * np.array([0.0, -16.0, 1.0]),
            closure_drift=Deviation(2 * dt, dt),
            tracking_error=Deviation(dt, 3 * dt),
            wall_time=4 * dt,
        )
        for dt in steps
    )


@pytest.mark.parametrize(("order", "ratio"), [(1, 2.0), (2, 2.0), (4, 2.0), (2, 10.0), (1, 3.0)])
def test_a_power_of_the_step_has_its_order(order: int, ratio: float, candidate: Ran) -> None:
    """Changes between steps of (rᵖ − 1) times the finer error, and orders from the third step on."""
    ladder = rungs(order, ratio)
    found = with_history(candidate, ladder=ladder)
    rows = ladder_rows(found, history(sources.REFERENCE, EXPECTED), SCALE)
    exact = [dt**order for dt in (rung.dt for rung in ladder)]
    np.testing.assert_allclose([row["relative_error"] for row in rows], exact, rtol=1e-6)
    changes = [np.nan, *(fine * (ratio**order - 1) for fine in exact[1:])]
    np.testing.assert_allclose([row["change"] for row in rows], changes, rtol=1e-6)
    np.testing.assert_allclose([row["order"] for row in rows], [np.nan, np.nan, order, order], rtol=1e-5)
    assert all(isinstance(row["order"], float) for row in rows)
    last = rows[-1]
    assert (last["dt"], last["closure_drift"], last["tracking_error"], last["wall_time"]) == (
        ladder[-1].dt,
        2 * ladder[-1].dt,
        3 * ladder[-1].dt,
        ladder[-1].wall_time,
    )
    assert (last["robot"], last["source"], last["configuration"]) == ("3prr", ROUTE, "vertical")


def test_steps_that_change_nothing_tell_no_order(candidate: Ran) -> None:
    coarse, fine, *_ = rungs(2, 2.0)
    found = with_history(candidate, ladder=(coarse, fine, replace(fine, dt=0.001)))
    rows = ladder_rows(found, history(sources.REFERENCE, EXPECTED), SCALE)
    assert rows[2]["change"] == 0
    assert np.isnan(rows[2]["order"])


def test_the_steps_compared_are_those_of_what_is_compared(candidate: Ran) -> None:
    found = split(candidate, with_history(candidate, ladder=rungs(1, 2.0)[:2]).history)
    assert len(ladder_rows(found, history(sources.REFERENCE, EXPECTED), SCALE)) == 2
    nothing = failed(candidate, "not run")
    assert ladder_rows(nothing, history(sources.REFERENCE, EXPECTED), SCALE) == []
