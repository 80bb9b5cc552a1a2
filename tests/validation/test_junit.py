"""JUnit files: that of the command, and that of the validation suite. Figures are properties of the test cases."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from loopcheck.robots.errors import OutputError
from loopcheck.validation.check.junit import write_junit
from loopcheck.validation.common.results import Results, read, table
from loopcheck.validation.report.blocks import plain
from tests.conftest import MODELS
from tests.validation.conftest import Command, exit_status
from tests.validation.test_report import EMPTY, REFERENCE, summary_row

HOUSE = Path(__file__).parents[2]


def properties(case: ElementTree.Element) -> Mapping[str, str]:
    return {each.attrib["name"]: each.attrib["value"] for each in case.iter("property")}


def results_of(verdicts: Mapping[str, str], expected: str = "") -> Results:
    rows = [summary_row(source, verdict, 0.25, note="why\x1b[1m") for source, verdict in verdicts.items()]
    return replace(EMPTY, summary=table("summary", rows), run={"robots": {"bar": {"expected": {"up": expected}}}})


def written(results: Results, tmp_path: Path) -> ElementTree.Element:
    write_junit(results, tmp_path / "new" / "loopcheck.xml")
    return ElementTree.parse(tmp_path / "new" / "loopcheck.xml").getroot()


@pytest.mark.parametrize(
    "verdicts",
    [
        ["agree", "informational"],
        ["agree", "disagree", "not run"],
        ["agree", "not run"],
        ["agree", "not comparable"],
        ["informational"],
        [],
    ],
)
@pytest.mark.parametrize("expected", ["", "not comparable"])
@pytest.mark.parametrize("lost", [{}, {"not_run": ["it died"]}, {"internal_errors": ["internal error: x"]}])
def test_the_file_passes_when_the_run_does(
    verdicts: list[str], expected: str, lost: Mapping[str, list[str]], tmp_path: Path
) -> None:
    """Also for a loss without a verdict: an audit of an engine that is never judged."""
    results = results_of({f"engine/{k}": verdict for k, verdict in enumerate(verdicts)}, expected)
    results = replace(results, run={**results.run, **lost})
    xml = written(results, tmp_path)
    bad = len(list(xml.iter("failure"))) + len(list(xml.iter("error")))
    assert (bad == 0) == (exit_status(results) == 0)
    assert bad == int(xml.attrib["failures"]) + int(xml.attrib["errors"])


def test_each_verdict_has_its_result(tmp_path: Path) -> None:
    verdicts = {
        REFERENCE: "informational",
        "a/kkt": "agree",
        "a/forward": "disagree",
        "b/kkt": "not run",
        "b/forward": "not comparable",
        "a/default": "informational",
    }
    cases = {case.attrib["name"]: case for case in written(results_of(verdicts), tmp_path).iter("testcase")}
    found = {name: [child.tag for child in case if child.tag != "properties"] for name, case in cases.items()}
    assert found == {
        REFERENCE: ["skipped"],
        "a/kkt": [],
        "a/forward": ["failure"],
        "b/kkt": ["error"],
        "b/forward": ["error"],
        "a/default": ["skipped"],
    }
    failure = cases["a/forward"].find("failure")
    assert failure is not None
    assert (
        failure.attrib["message"]
        == "disagree; m1: relative error 0.25, tolerance 1e-09; why\N{REPLACEMENT CHARACTER}[1m"
    )
    assert {case.attrib["classname"] for case in cases.values()} == {"bar.default.up.vertical"}


def test_a_case_has_every_figure(tmp_path: Path) -> None:
    """Of two actuators, the second the worse and with neither a drift nor a time recorded."""
    notes = {"note": "a\x00b"}
    rows = [
        summary_row("a/forward", "agree", 0.125, closure_drift=2e-6, tracking_error=3e-6, wall_time=1.5, **notes),
        summary_row("a/forward", "disagree", 0.25, actuator="m2", unit="N m", tolerance=1e-8, **notes),
        summary_row("a/default", "informational", actuator="m1", unit="N", tolerance=np.nan),
    ]
    results = replace(EMPTY, summary=table("summary", rows), run={"robots": {"bar": None}})
    root = written(results, tmp_path)
    assert (root.tag, root.attrib["name"]) == ("testsuites", "loopcheck")
    (suite,) = root
    assert (suite.attrib["name"], suite.attrib["tests"]) == ("bar", "2")
    first, second = suite.iter("testcase")
    assert first.attrib == {"name": "a/forward", "classname": "bar.default.up.vertical", "time": "1.5"}
    assert properties(first) == {
        "verdict": "disagree",
        "relative_error": "0.25",
        "tolerance": "1e-09",
        "closure_drift": "2e-06",
        "tracking_error": "3e-06",
        "m1.peak": "2.0",
        "m1.max_error": "0.25",
        "m1.rms_error": "0.125",
        "m1.relative_error": "0.125",
        "m1.tolerance": "1e-09",
        "m1.closure_drift": "2e-06",
        "m1.tracking_error": "3e-06",
        "m2.peak": "2.0",
        "m2.max_error": "0.5",
        "m2.rms_error": "0.25",
        "m2.relative_error": "0.25",
        "m2.tolerance": "1e-08",
        "m1.unit": "N",
        "m2.unit": "N m",
        "note": "a\N{REPLACEMENT CHARACTER}b",
        **{f"{actuator}.{scale}": "2.0" for actuator in ("m1", "m2") for scale in ("case_peak", "scale")},
    }
    (failure,) = first.findall("failure")
    said = "disagree; m2: relative error 0.25, tolerance 1e-09; a\N{REPLACEMENT CHARACTER}b"
    assert failure.attrib == {"message": said, "type": "disagree"}
    assert second.attrib["time"] == "0.0"
    assert properties(second) == {
        "verdict": "informational",
        "m1.peak": "2.0",
        "m1.case_peak": "2.0",
        "m1.scale": "2.0",
        "m1.unit": "N",
    }
    assert [child.attrib for child in second if child.tag == "skipped"] == [
        {"message": "informational", "type": "informational"}
    ]


def test_a_figure_that_is_missing_is_no_failure_of_the_file(tmp_path: Path) -> None:
    """An excessive drift without any error of the effort; the reference, with its note alone."""
    rows = [
        summary_row(REFERENCE, "reference", note="power balance fine"),
        summary_row("a/forward", "disagree", np.nan, note="loops open"),
    ]
    root = written(replace(EMPTY, summary=table("summary", rows)), tmp_path)
    messages = {case.attrib["name"]: case[-1].attrib["message"] for case in root.iter("testcase")}
    assert messages == {REFERENCE: "power balance fine", "a/forward": "disagree; loops open"}


def test_each_robot_has_a_suite_with_what_repeats_it(tmp_path: Path) -> None:
    run = {
        "command": ["loopcheck", "check", 3],
        "loopcheck": "0.1\x07",
        "versions": {"mujoco": "4.0"},
        "cpu": "fast",
        "models": {"bar": {"sha256": "abc"}, "foo": None},
        "tolerances": {"sha256": "def", "own": {"a/kkt": 1e-3}},
        "robots": {"bar": None, "foo": None},
    }
    rows = [summary_row("a/kkt", "agree", 1e-12), summary_row("a/kkt", "agree", 1e-12, robot="foo")]
    bar, foo = written(replace(EMPTY, summary=table("summary", rows), run=run), tmp_path)
    assert [suite.attrib["name"] for suite in (bar, foo)] == ["bar", "foo"]
    assert [case.attrib["classname"].split(".")[0] for case in (*bar.iter("testcase"), *foo.iter("testcase"))] == [
        "bar",
        "foo",
    ]
    about = {each.attrib["name"]: each.attrib["value"] for each in bar.iterfind("properties/property")}
    assert about == {
        "command": "loopcheck check 3",
        "loopcheck": "0.1\N{REPLACEMENT CHARACTER}",
        "versions": plain({"mujoco": "4.0"}),
        "cpu": "fast",
        "model": plain({"sha256": "abc"}),
        "tolerances.sha256": "def",
        "tolerances.own.a/kkt": "0.001",
    }
    bare = written(replace(EMPTY, summary=table("summary", rows[:1]), run={}), tmp_path)
    about = {each.attrib["name"]: each.attrib["value"] for each in bare.iterfind("testsuite/properties/property")}
    assert (about["command"], about["loopcheck"], about["tolerances.sha256"]) == ("", "None", "None")


@pytest.mark.parametrize("verdicts", [{}, {"a/default": "informational"}, {REFERENCE: "reference"}])
def test_a_run_that_judged_nothing_is_an_error(verdicts: dict[str, str], tmp_path: Path) -> None:
    root = written(results_of(verdicts), tmp_path)
    (case,) = [case for case in root.iter("testcase") if case.attrib["name"] == "anything judged"]
    (suite,) = [suite for suite in root if case in list(suite)]
    (error,) = case
    assert (suite.attrib["name"], case.attrib["classname"]) == ("loopcheck", "loopcheck")
    assert (error.tag, error.attrib) == ("error", {"message": "not run: no judged source was run", "type": "not run"})
    unjudged = int(bool(verdicts))  # the case without a judged row of an engine
    assert (root.attrib["errors"], root.attrib["tests"]) == (str(1 + unjudged), str(len(verdicts) + 1 + unjudged))


def test_what_a_run_lost_is_an_error_that_says_why(tmp_path: Path) -> None:
    """Each reason once, beside the errors of the sources themselves."""
    results = results_of({"a/kkt": "agree", "a/default": "informational"})
    run = {"not_run": ["it died", "it hung", "it died"], "internal_errors": ["internal error: \x07"]}
    root = written(replace(results, run={**results.run, **run}), tmp_path)
    errors = {
        (suite.attrib["name"], case.attrib["classname"], case.attrib["name"]): error.attrib
        for suite in root
        for case in suite
        for error in case.iter("error")
    }
    assert errors == {
        ("loopcheck", "loopcheck", "all tasks run"): {"message": "it died; it hung", "type": "not run"},
        ("loopcheck", "loopcheck", "no error of loopcheck"): {
            "message": "internal error: \N{REPLACEMENT CHARACTER}",
            "type": "internal error",
        },
    }
    assert (root.attrib["errors"], root.attrib["tests"]) == ("2", "4")


def test_a_run_of_what_was_expected_alone_passes(tmp_path: Path) -> None:
    root = written(results_of({"a/kkt": "not comparable"}, "not comparable"), tmp_path)
    assert [case.attrib["name"] for case in root.iter("testcase")] == ["a/kkt"]
    assert (root.attrib["errors"], root.attrib["failures"]) == ("0", "0")


@pytest.mark.extended("test_a_case_has_every_figure")
@pytest.mark.usefixtures("tables_only")
def test_a_run_writes_its_figures(loopcheck: Command, tmp_path: Path) -> None:
    chosen = (
        "--source",
        "mujoco/kkt",
        "--source",
        "mujoco/as_is",
        "--dt",
        "0.1",
        "--jobs",
        "1",
        "--out",
        tmp_path / "out",
    )
    files = ("--junit", tmp_path / "lc.xml", "--tolerance", "mujoco/as_is=0.0001")
    assert loopcheck("check", MODELS / "four_bar.xml", *chosen, *files)[0] == 1
    xml = ElementTree.parse(tmp_path / "lc.xml").getroot()
    assert xml.attrib["failures"] == "4"  # mujoco/as_is in two configurations, along its own and a random motion
    summary = read(tmp_path / "out").summary
    (rows,) = [
        rows for name, rows in summary.groupby(["configuration", "source"]) if name == ("turned", "mujoco/as_is")
    ]
    (case,) = xml.iterfind(".//testcase[@classname='four_bar.default.home.turned'][@name='mujoco/as_is']")
    for name in ("peak_error", "tolerance", "closure_drift", "tracking_error"):
        assert float(properties(case)[name]) == rows[name].iloc[0]
        assert float(properties(case)[f"motor.{name}"]) == rows[name].iloc[0]
    assert properties(case)["motor.unit"] == "N m"
    np.testing.assert_allclose(float(case.attrib["time"]), rows["wall_time"].iloc[0])


def test_a_file_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="cannot write the JUnit file"):
        write_junit(EMPTY, tmp_path)


@pytest.mark.extended("test_the_file_passes_when_the_run_does")
def test_the_suite_keeps_its_figures_also_of_robots_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)  # those of this run
    own = tmp_path / "my_robots" / "linkage"
    own.mkdir(parents=True)
    shutil.copy(MODELS / "four_bar.xml", own)
    (own / "robot.toml").write_text('title = "t"\nmjcf = "four_bar.xml"\nsource = "s"\n', encoding="utf-8")
    chosen = "default and kkt and mujoco and (3prr and plus and vertical or linkage and turned)"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_suite.py", "-k", chosen]
    options = ["--robots", str(own.parent), "--junit-xml", str(tmp_path / "suite.xml")]
    ran = subprocess.run([*command, *options], cwd=HOUSE, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout
    cases = ElementTree.parse(tmp_path / "suite.xml").getroot().iter("testcase")
    figures = {case.attrib["name"]: properties(case) for case in cases}
    of_3prr, of_linkage = (
        f"test_agrees_with_the_reference[{case}-mujoco/kkt]"
        for case in ("3prr-default-plus-vertical", "linkage-default-home-turned")
    )
    assert list(figures) == [of_3prr, of_linkage]
    assert {f"{actuator}.relative_error" for actuator in ("q1", "q2", "q3")} <= set(figures[of_3prr])
    assert 0 < float(figures[of_3prr]["q1.relative_error"]) < 1e-11
