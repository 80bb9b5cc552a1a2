"""Baselines: a command fails only for what is worse than its stored result."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loopcheck.validation.check import baseline
from loopcheck.validation.common.results import Results, table
from loopcheck.validation.execution.baseline import SCHEMA, BaselineError, read_baseline
from loopcheck.validation.frame.study import exit_status
from tests.conftest import MODELS
from tests.json_outputs import valid_output
from tests.validation.conftest import Command
from tests.validation.test_report import EMPTY, REFERENCE, summary_row

ANALYTIC = summary_row("analytic/lagrange", "agree", 1e-12)


def _results(*rows: Mapping[str, Any], floor: float = 0.0, model: str = "a", expected: str = "") -> Results:
    """Results on the robot 'bar', with the same floor of each error [N]."""
    reference = summary_row(REFERENCE, "reference")
    floors = [{name: row[name] for name in baseline.KEY} | {"floor": floor} for row in rows if floor]
    run = {
        "robots": {"bar": {"expected": {"up": expected}}},
        "models": {"bar": {"files": {"bar.xml": model}}},
        "floors": floors,
    }
    return replace(EMPTY, summary=table("summary", [reference, *rows]), run=run)


def _against(then: Results, now: Results, folder: Path) -> baseline.BaselineResult:
    baseline.store(then, folder / "b.json")
    return baseline.compare(now, baseline.stored(folder / "b.json"), "b.json")


def _status(result: baseline.BaselineResult) -> int:
    return exit_status(result.verdicts, {})


VERDICTS = ("agree", "disagree", "not comparable", "not run", "not supported", "informational")


@pytest.mark.parametrize("now", VERDICTS)
@pytest.mark.parametrize("then", VERDICTS)
def test_a_row_is_worse_by_its_verdict(then: str, now: str, tmp_path: Path) -> None:
    """The table of all pairs, written out: exit status of a run with one judged row beside an agreeing row."""
    wanted = {
        "agree": {"disagree": 1, "not comparable": 3, "not run": 3, "not supported": 3, "informational": 3},
        "disagree": {},
        "not run": {"disagree": 1},
        "not comparable": {"disagree": 1, "not run": 3},
        "not supported": {"disagree": 1, "not run": 3, "not comparable": 3},
        "informational": {"disagree": 1, "not run": 3, "not comparable": 3},
    }
    rows = [_results(ANALYTIC, summary_row("b/kkt", "agree"), summary_row("a/kkt", v, 0.1)) for v in (then, now)]
    result = _against(rows[0], rows[1], tmp_path)
    assert _status(result) == wanted[then].get(now, 0)
    assert len(result.worse) == bool(wanted[then].get(now))


@pytest.mark.parametrize(
    ("then", "now", "floors", "status", "better"),
    [
        (0.1, 0.1, (0.0, 0.0), 0, 0),
        (0.1, 0.1001, (0.0, 0.0), 1, 0),
        (0.1, 0.1001, (0.0, 1.1e-4), 0, 0),  # errors are 0.2 and 0.2002 N, so that two floors are 2.2e-4 N
        (0.1, 0.1001, (1.1e-4, 0.0), 0, 0),
        (0.1, 0.1001, (0.0, 0.9e-4), 1, 0),
        (0.1, 0.05, (0.0, 1e-4), 0, 1),
        (0.1, 0.09999, (0.0, 1e-4), 0, 0),
        (0.1, float("nan"), (0.0, 0.0), 1, 0),
        (float("nan"), float("nan"), (0.0, 0.0), 0, 0),
    ],
)
def test_an_error_may_grow_by_two_noise_floors(
    then: float, now: float, floors: tuple[float, float], status: int, better: int, tmp_path: Path
) -> None:
    before, after = (
        _results(ANALYTIC, summary_row("a/kkt", "disagree", error), floor=floor)
        for error, floor in zip((then, now), floors, strict=True)
    )
    result = _against(before, after, tmp_path)
    assert (_status(result), result.better) == (status, better)


def test_new_and_missing_rows(tmp_path: Path) -> None:
    one, other = summary_row("a/kkt", "agree"), summary_row("b/kkt", "disagree", 0.1)
    agreeing, unsupported = summary_row("b/kkt", "agree"), summary_row("b/kkt", "not supported")
    assert _status(_against(_results(one), _results(one, other), tmp_path)) == 1
    assert _status(_against(_results(one), _results(one, agreeing), tmp_path)) == 0
    assert _status(_against(_results(one, agreeing), _results(one), tmp_path)) == 3
    assert _status(_against(_results(one, other), _results(one), tmp_path)) == 3
    assert _status(_against(_results(one, unsupported), _results(one), tmp_path)) == 0


@pytest.mark.parametrize("change", [{"model": "b"}, {"scale": 2.00001}])
def test_another_model_or_load_is_no_excuse_for_old_rows(change: Mapping[str, Any], tmp_path: Path) -> None:
    model = change.get("model", "a")
    row = summary_row("a/kkt", "disagree", 0.1)
    later = row | {name: value for name, value in change.items() if name == "scale"}
    result = _against(_results(row), _results(later, model=model), tmp_path)
    assert _status(result) == 1
    assert "bar" in result.changed[0]
    agreeing = later | {"verdict": "agree"}
    result = _against(_results(row), _results(agreeing, model=model), tmp_path)
    assert (_status(result), len(result.changed)) == (0, 1)


def test_a_case_without_a_judged_engine_is_a_row(tmp_path: Path) -> None:
    """As without a baseline: the agreement of our own models shows nothing about an engine."""
    alone, judged = _results(ANALYTIC), _results(ANALYTIC, summary_row("a/kkt", "agree"))
    assert _status(_against(alone, alone, tmp_path)) == 0
    assert _status(_against(judged, alone, tmp_path)) == 3


def test_an_expected_verdict_of_the_robot_is_not_worse(tmp_path: Path) -> None:
    singular = summary_row("a/kkt", "not comparable")
    empty = _results(expected="not comparable")
    assert _status(_against(empty, _results(singular, expected="not comparable"), tmp_path)) == 0
    agreeing = summary_row("a/kkt", "agree")
    assert _status(_against(empty, _results(agreeing, expected="not comparable"), tmp_path)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        f'{{"schema": "{SCHEMA}", "command": "gate", "rows": []}}',
        f'{{"schema": "{SCHEMA}", "command": "check", "rows": []}}',
        f'{{"schema": "{SCHEMA}", "command": "check", "models": {{"a": 1}}, "rows": []}}',
        f'{{"schema": "{SCHEMA}", "command": "check", "models": {{}}, "rows": 3}}',
        f'{{"schema": "{SCHEMA}", "command": "check", "models": {{}}, "rows": [{{"robot": "a"}}]}}',
    ],
)
def test_a_bad_baseline_is_refused_in_a_line(text: str, tmp_path: Path, loopcheck: Command) -> None:
    path = tmp_path / "b.json"
    path.write_text(text, encoding="utf-8")
    status, _, err = loopcheck("check", MODELS / "four_bar.xml", "--baseline", path, "--out", tmp_path / "out")
    assert (status, err.count("\n")) == (2, 1)
    assert err.startswith(f"loopcheck: {path}: ")


@pytest.mark.extended("test_the_gate_beside_its_baseline")
@pytest.mark.usefixtures("tables_only")
def test_a_check_beside_its_baseline(loopcheck: Command, tmp_path: Path) -> None:
    """A limit that no engine reaches gives old disagreements; a heavier rod changes the model."""
    path, stored = tmp_path / "four_bar.xml", tmp_path / "b.json"
    shutil.copy(MODELS / "four_bar.xml", path)
    check = ("check", path, "--source", "mujoco/kkt", "--jobs", "1", "--out", tmp_path / "out")
    strict = ("--tolerance", "mujoco/kkt=1e-18")
    status, out, _ = loopcheck(*check, *strict, "--write-baseline", stored)
    valid_output(stored.read_text(encoding="utf-8"))
    content = read_baseline(stored, "check", baseline.COLUMNS, ("models",))
    assert {row["source"]: row["verdict"] for row in content["rows"]}["mujoco/kkt"] in ("disagree", "not comparable")
    assert (status, "0 worse" in out) == (0, True)
    status, out, _ = loopcheck(*check, "--baseline", stored, "--format", "json")
    result = valid_output(out)
    assert (status, result["exit_status"], result["baseline"]["worse"]) == (0, 0, [])
    assert result["baseline"]["better"] > 0
    path.write_text(path.read_text(encoding="utf-8").replace("</mujoco>", "<!-- --></mujoco>"), encoding="utf-8")
    status, out, _ = loopcheck(*check, *strict, "--baseline", stored)
    assert status in (1, 3)
    assert "Changed: four_bar: another model file" in out
    assert loopcheck(*check, "--baseline", stored, "--write-baseline", stored)[0] == 2


def test_the_gate_beside_its_baseline(loopcheck: Command, tmp_path: Path) -> None:
    """Old findings are excused by element, wherever their lines and the baseline are; a second fault is not."""
    path, stored = tmp_path / "models" / "leg.xml", tmp_path / "gate.json"
    path.parent.mkdir()
    text = (MODELS / "four_bar.xml").read_text(encoding="utf-8")
    broken = text.replace('joint="crank" gear', 'joint="krank" gear')
    path.write_text(broken, encoding="utf-8")
    assert loopcheck("gate", path)[0] == 1
    status, out, _ = loopcheck("gate", path, "--write-baseline", stored)
    assert (status, out.startswith("1 file: 0 errors, 0 warnings, 0 notes, 1 in the baseline")) == (0, True)
    (row,) = valid_output(stored.read_text(encoding="utf-8"))["rows"]
    assert (row["file"], row["code"], row["count"]) == ("models/leg.xml", "LC101", 1)
    assert loopcheck("gate", path, "--baseline", stored)[0] == 0
    path.write_text(text.replace('joint="crank" gear', 'joint="rank" gear'), encoding="utf-8")  # another fault
    assert loopcheck("gate", path, "--baseline", stored)[0] == 1
    path.write_text(text, encoding="utf-8")
    loopcheck("gate", path, "--write-baseline", stored)
    path.write_text(text.replace("<mujoco", "<!-- a line -->\n\n<mujoco", 1), encoding="utf-8")
    status, out, _ = loopcheck("gate", path, "--baseline", stored, "--format", "json")
    (target,) = valid_output(out)["targets"]
    assert target["findings"] == []
    assert target["known"] > 0


def test_a_stored_finding_excuses_only_itself(tmp_path: Path) -> None:
    from loopcheck.validation.gate.baseline import new_findings, store
    from loopcheck.validation.gate.findings import Finding
    from loopcheck.validation.gate.formats import GateResult

    finding = Finding(code="LC206", message="m", element="joint 'a'", file=str(tmp_path / "a.xml"))
    result = GateResult(target="a", file=tmp_path / "a.xml", findings=(finding,), seconds=0.0)
    store([result], tmp_path / "b.json")
    others = [replace(finding, element="joint 'b'"), replace(finding, code="LC205"), replace(finding, file="b.xml")]
    twice = replace(result, findings=(finding, finding, *others))
    (reduced,) = new_findings([twice], tmp_path / "b.json")
    assert (reduced.findings, reduced.known) == ((finding, *others), 1)


def test_a_baseline_that_cannot_be_written_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="cannot write the baseline"):
        baseline.store(_results(ANALYTIC), tmp_path)
