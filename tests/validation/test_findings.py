"""Conclusions from a table of verdicts: the worst of the actuators, the worst of the cases, and the exit status."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from loopcheck.validation.common.results import VERDICTS, Results, table
from loopcheck.validation.common.verdicts import (
    JUDGED,
    MEANING,
    SEVERITY,
    WORST_FIRST,
    CaseVerdict,
    about_robots,
    case_verdicts,
    gravest,
    reference_of,
    verdict_counts,
    worst,
)
from tests.validation.conftest import exit_status
from tests.validation.test_report import EMPTY, REFERENCE, summary_row

HERE = ("bar", "default", "up", "vertical")


def results_of(*rows: Mapping[str, Any], expected: str = "", about: Mapping[str, Any] | None = None) -> Results:
    run = {"robots": {"bar": {"expected": {"up": expected}}}} if about is None else about
    return replace(EMPTY, summary=table("summary", rows), run=run)


def finding_of(*rows: Mapping[str, Any], expected: str = "") -> CaseVerdict:
    ((_, finding),) = case_verdicts(results_of(*rows, expected=expected))[HERE].items()
    return finding


FROM_WORST = ("disagree", "not run", "not comparable", "not supported", "agree", "informational", "reference")
"""A known error is worse than an unknown result, and this worse than a right or unjudged result."""


@pytest.mark.parametrize(("first", "second"), [*product(FROM_WORST, repeat=2)])
def test_a_source_is_as_bad_as_its_worst_actuator(first: str, second: str) -> None:
    rows = (summary_row("a/kkt", verdict, actuator=name) for name, verdict in (("m1", first), ("m2", second)))
    assert finding_of(*rows).verdict == min(first, second, key=FROM_WORST.index)


def test_every_verdict_has_its_place_and_its_meaning() -> None:
    assert set(FROM_WORST) == set(SEVERITY) == set(VERDICTS)
    assert set(WORST_FIRST) == {*SEVERITY, "as expected"}
    assert set(MEANING) == set(WORST_FIRST) - {"reference"}
    assert set(JUDGED) == {"agree", "disagree", "not comparable", "not run"}


WORST_OF_CASES = (
    "disagree",
    "not run",
    "not comparable",
    "not supported",
    "agree",
    "informational",
    "as expected",
    "reference",
)


@pytest.mark.parametrize(("first", "second"), [*product(WORST_OF_CASES, repeat=2)])
def test_cases_together_are_as_bad_as_the_worst(first: str, second: str) -> None:
    """With the tolerance and the note of that row, and the largest error of all."""
    ranks = sorted((first, second), key=WORST_OF_CASES.index)
    small, large = CaseVerdict(first, 0.125, 1.0, first), CaseVerdict(second, 0.5, 2.0, second)
    together = worst([small, large])
    assert (together.verdict, together.note, together.error) == (ranks[0], ranks[0], 0.5)
    assert together.tolerance == (1.0 if first == ranks[0] else 2.0)


def test_the_gravest_has_the_error_of_those_that_are_as_bad() -> None:
    """Not that of a better verdict, which may be larger: it belongs to another limit."""
    cases = [CaseVerdict("agree", 9.0, 10.0, "fine")]
    cases += [CaseVerdict("disagree", error, 0.1, "off") for error in (0.25, 0.5, np.nan)]
    cases += [CaseVerdict("informational", 7.0, np.nan, "shown")]
    assert gravest(cases) == CaseVerdict("disagree", 0.5, 0.1, "off")
    assert gravest(cases[:1]) == cases[0]
    beside = CaseVerdict("as expected", np.nan, np.nan, "singular")  # another mode of a robot whose file is shown as is
    assert gravest([beside, cases[-1]]) == cases[-1]


def test_an_error_that_is_not_known_hides_none() -> None:
    unknown, known = CaseVerdict("not run", np.nan, np.nan, ""), CaseVerdict("agree", 0.25, 1.0, "")
    assert worst([unknown, known]).error == worst([known, unknown]).error == 0.25
    assert np.isnan(worst([unknown]).error)


def test_a_finding_has_the_largest_error_and_the_tightest_limit() -> None:
    finding = finding_of(
        summary_row("a/kkt", "agree", 0.125, note="one", tolerance=1e-3),
        summary_row("a/kkt", "agree", 0.25, actuator="m2", note="two", tolerance=1e-4),
        summary_row("a/kkt", "agree", 0.0, actuator="m3", note="one", tolerance=1e-2),
        summary_row("a/kkt", "agree", 0.0, actuator="m4", note=None),
    )
    assert finding == CaseVerdict("agree", 0.25, 1e-9, "one; two")


def test_an_actuator_without_an_effort_leaves_no_error() -> None:
    """But an unloaded actuator has no remainder."""
    rows = [summary_row("a/kkt", "agree", 0.125), summary_row("a/kkt", "not comparable", actuator="m2")]
    assert np.isnan(finding_of(*rows).error)
    assert finding_of(rows[0], {**rows[1], "scale": 0.0}).error == 0.125


@pytest.mark.parametrize(
    ("expected", "verdict", "found", "note"),
    [
        ("not comparable", "not comparable", "as expected", "why"),
        ("not comparable", "agree", "disagree", "expected: not comparable; why"),
        ("not comparable", "disagree", "disagree", "why"),
        ("not comparable", "not run", "not run", "why"),
        ("not comparable", "informational", "informational", "why"),
        ("", "not comparable", "not comparable", "why"),
        ("", "agree", "agree", "why"),
    ],
)
def test_what_is_expected_of_a_mode_is_met_or_not(expected: str, verdict: str, found: str, note: str) -> None:
    finding = finding_of(summary_row("a/kkt", verdict, note="why"), expected=expected)
    assert (finding.verdict, finding.note) == (found, note)


def test_what_is_expected_of_one_mode_is_not_of_another() -> None:
    rows = [summary_row("a/kkt", "not comparable", mode=mode) for mode in ("up", "down")]
    found = case_verdicts(results_of(*rows, expected="not comparable"))
    assert [each["a/kkt"].verdict for each in found.values()] == ["as expected", "not comparable"]
    assert list(found) == [HERE, ("bar", "default", "down", "vertical")]
    assert case_verdicts(results_of(*rows, about={}))[HERE]["a/kkt"].verdict == "not comparable"
    assert case_verdicts(results_of(*rows, about={"robots": {"bar": None}}))[HERE]["a/kkt"].verdict == "not comparable"


def test_sources_of_a_case_stand_together() -> None:
    rows = [summary_row(REFERENCE, "reference"), summary_row("a/kkt", "agree"), summary_row("b/kkt", "not run")]
    verdicts = {source: finding.verdict for source, finding in case_verdicts(results_of(*rows))[HERE].items()}
    assert verdicts == {REFERENCE: "reference", "a/kkt": "agree", "b/kkt": "not run"}
    counts = {"agree": 1, "disagree": 0, "not comparable": 0, "not run": 1, "as expected": 0, "informational": 0}
    assert verdict_counts(results_of(*rows)) == counts | {"not supported": 0}


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [
        (["agree"], 0),
        (["agree", "agree", "informational", "reference"], 0),
        (["agree", "disagree", "not run", "not comparable"], 1),
        (["disagree"], 1),
        (["agree", "not supported"], 0),
        (["not supported"], 3),
        (["agree", "not run"], 3),
        (["agree", "not comparable"], 3),
        (["not run"], 3),
        (["not comparable"], 3),
        (["informational"], 3),
        (["reference"], 3),
        ([], 3),
    ],
)
def test_the_exit_status_is_that_of_the_worst(verdicts: list[str], status: int) -> None:
    """An unjudged row is no pass, and an error counts before an unknown result."""
    assert exit_status(results_of(*(summary_row(f"a/{k}", verdict) for k, verdict in enumerate(verdicts)))) == status


@pytest.mark.parametrize(
    ("verdicts", "status"),
    [(["not comparable"], 0), (["not comparable", "agree"], 1), (["not comparable", "not run"], 3)],
)
def test_what_is_expected_passes(verdicts: list[str], status: int) -> None:
    rows = (summary_row(f"a/{k}", verdict) for k, verdict in enumerate(verdicts))
    assert exit_status(results_of(*rows, expected="not comparable")) == status


def test_robots_of_the_tables_come_first() -> None:
    about = {"robots": {"foo": {"title": "Foo"}, "bar": None}}
    said = about_robots(results_of(summary_row("a/kkt", "agree"), about=about))
    assert list(said.items()) == [("bar", {}), ("foo", {"title": "Foo"})]
    assert about_robots(results_of(summary_row("a/kkt", "agree"), about={"robots": None})) == {"bar": {}}


def test_the_reference_is_that_of_the_table() -> None:
    assert reference_of(table("summary", [summary_row("a/kkt", "agree", reference="b/kkt")])) == "b/kkt"
    assert reference_of(EMPTY.summary) == "analytic/noc"
