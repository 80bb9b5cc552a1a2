"""Closing lines of check and judge: at most six with the path of the report, the user's own simulation first."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from loopcheck.validation.check import views
from loopcheck.validation.check.closing import (
    closing_lines,
    in_plain_words,
    unsupported_in_words,
    wholly_unsupported,
)
from loopcheck.validation.check.terminal import summary
from loopcheck.validation.check.views import case_name, gravity_in_words
from loopcheck.validation.common.results import Results, table
from loopcheck.validation.common.verdicts import CaseVerdict
from loopcheck.validation.judge.terminal import closing_lines as lines_of_logs
from loopcheck.validation.report.blocks import Cell
from loopcheck.validation.report.terminal import verdict_cell
from tests.validation.test_report import CASE, REFERENCE, Row, audit_row, only, summary_row

OWN = {"command": ["loopcheck", "check", "models/bar.xml"]}
CATALOGUE = {"command": ["loopcheck", "check", "bar"]}


def as_is(verdict: str = "informational", error: float = 0.064, **changed: Any) -> Row:
    limit = np.nan if verdict == "informational" else 0.01
    return summary_row(
        "mujoco/as_is", verdict, error, **{"actuator": "hip", "unit": "N m", "tolerance": limit, **changed}
    )


def lines(*rows: Row, **run: Any) -> dict[str, str]:
    results = replace(only("summary", [summary_row(REFERENCE, "reference"), *rows]), run={**OWN, **run})
    closing = [str(line) for line in closing_lines(results)]
    assert len(closing) <= 5
    return dict(line.split(": ", 1) for line in closing)


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        (
            [as_is(), summary_row("x/kkt", "agree", 3e-15), summary_row("y/kkt", "agree", 3e-15)],
            "Simulated as it is, MuJoCo is 6.4 % off at 'hip'; every other source agrees with the equations of motion.",
        ),
        (
            [as_is(), summary_row("x/kkt", "agree", 3e-15), summary_row("y/kkt", "disagree", 0.2)],
            "Simulated as it is, MuJoCo is 6.4 % off at 'hip'; y/kkt does not agree with the equations of motion, all "
            "others do.",
        ),
        ([summary_row("x/kkt", "disagree", 0.2)], "No source agrees with the equations of motion."),
        ([as_is()], ""),
    ],
)
def test_the_page_begins_in_plain_words(rows: list[Row], wanted: str) -> None:
    results = replace(only("summary", [summary_row(REFERENCE, "reference"), *rows]), run=OWN)
    assert in_plain_words(results) == wanted
    assert in_plain_words(replace(results, run={**OWN, "is_first": True})) == ""


def test_a_known_cause_is_named_first() -> None:
    note = "closure drift must be at most 3e-06 m, got 1 m; MuJoCo ignores the turning (known issue x); extrapolated"
    found = lines(summary_row("mujoco/forward", "disagree", 0.2, note=note))
    assert found["Not in agreement"].endswith(": MuJoCo ignores the turning (known issue x)")


def test_an_unjudged_simulation_is_off_by_its_error_with_actuator_and_unit() -> None:
    found = lines(as_is(), summary_row("x/kkt", "agree", 3e-15))
    assert found == {
        "Your simulation": "mujoco/as_is is off by 6.4 % of the peak effort at 'hip' (0.13 N m); not judged without "
        "--accuracy",
        "Agreement": "1 of 1 comparisons with the reference agree, largest error 3.0e-15 of the effort scale",
        "Next": "loopcheck tune models/bar.xml --accuracy 1%",
    }
    assert next(iter(found)) == "Your simulation"


def test_the_engine_of_the_users_file_is_first() -> None:
    """MuJoCo simulates an MJCF; the disagreement of another engine is not that of the user's simulation."""
    rows = (
        {**as_is("not comparable", note="pybullet/as_is: fell"), "source": "pybullet/as_is"},
        as_is("agree", 0.0088),
    )
    found = lines(*rows)
    assert found["Your simulation"] == (
        "mujoco/as_is agrees, off by 0.88 % of the peak effort at 'hip' (0.018 N m), accuracy 1 %; "
        "pybullet/as_is is not comparable, off by 6.4 %"
    )
    assert found["Next"].startswith("loopcheck tune models/bar.xml --accuracy 1% --source pybullet/as_is")
    nothing = {"relative_error": np.nan, "tolerance": np.nan, "note": "pybullet/as_is: fell"}
    fallen = summary_row("pybullet/as_is", "not comparable", np.nan, **nothing)
    assert lines(as_is("agree"), fallen)["Your simulation"].endswith("; pybullet/as_is is not comparable")
    of_urdf = {"command": ["loopcheck", "check", "models/bar.urdf"]}
    assert lines(fallen, **of_urdf)["Unmodified simulation"] == "pybullet/as_is is not comparable: fell"
    assert "Unmodified simulation" in lines(*rows, **of_urdf)


def test_an_error_beyond_the_effort_itself_is_marked_as_unusable() -> None:
    found = lines(as_is(error=33.0), {**as_is(error=2.5), "source": "pybullet/as_is"})
    assert found["Your simulation"] == (
        "mujoco/as_is is unusable (chatter, a transient, or dry friction, which the peak excludes), off by 3300 % of "
        "the peak effort at 'hip' "
        "(66 N m); not judged without --accuracy; pybullet/as_is 250 % (unusable)"
    )
    assert verdict_cell([CaseVerdict("informational", 33.0, np.nan, "")]).endswith("]unusable 3.3e+01[/]")
    assert views.verdict_cell(CaseVerdict("informational", 33.0, np.nan, "")) == Cell(
        "unusable\n3.3e+01", "informational"
    )
    assert verdict_cell([CaseVerdict("informational", 0.33, np.nan, "")]).endswith("]informational 3.3e-01[/]")
    assert verdict_cell([CaseVerdict("disagree", 33.0, 1e-3, "")]).endswith("]disagree 3.3e+01[/]")


def test_the_users_own_simulation_is_tuned_before_others() -> None:
    rows = ({**as_is("disagree", 0.5), "source": "pybullet/as_is"}, as_is("disagree", 0.1))
    for order in (rows, rows[::-1]):
        assert lines(*order)["Next"] == "loopcheck tune models/bar.xml --accuracy 1%"


@pytest.mark.parametrize(
    ("left_out", "undriven", "said"),
    [
        (
            ["limits of tendons c1, c2"],
            ["'base' floats (6 dof)"],
            "limits of tendons c1, c2. They may carry the robot, ",
        ),
        (["limits of joints hip, flap"], ["'flap' swings (1 dof)"], "limits of joints flap. They may carry"),
        (["limits of joints hip, flap"], ["'flap' is held only by its spring (1 dof)"], ""),
        (["limits of joints hip"], ["'base' floats (6 dof)"], ""),
        (["limits of tendons c1"], [], ""),
        (["dry friction of joints hip"], ["'base' floats (6 dof)"], ""),
    ],
)
def test_limits_that_may_carry_what_nothing_drives_are_named(
    left_out: list[str], undriven: list[str], said: str
) -> None:
    found = lines(as_is("agree"), robots={"bar": {"left_out": left_out, "undriven": undriven}})
    assert found.get("Left out", "").startswith(said)
    assert ("Left out" in found) == bool(said)
    if said:
        assert found["Left out"].endswith(f", but here {undriven[0]}")


def test_a_judged_simulation_has_its_accuracy_and_its_own_gravity_first() -> None:
    rows = (as_is("disagree", configuration="turned"), as_is("agree", 0.002), as_is("disagree", 0.03, actuator="knee"))
    found = lines(*rows)
    assert found["Your simulation"] == (
        "mujoco/as_is disagrees, off by 3 % of the peak effort at 'knee' (0.06 N m), vertical, accuracy 1 %; at most "
        "6.4 % in its other cases (turned)"
    )
    assert found["Agreement"] == "no source was judged"
    assert found["Next"] == "loopcheck tune models/bar.xml --accuracy 1%"


def test_a_simulation_that_agrees_needs_no_next_step() -> None:
    found = lines(as_is("agree", 0.002), summary_row("x/kkt", "agree", 3e-15))
    assert found["Your simulation"].startswith("mujoco/as_is agrees, off by 0.2 % of the peak effort at 'hip'")
    assert "Next" not in found


def test_a_small_error_that_nobody_has_judged_can_be_judged() -> None:
    assert lines(as_is(error=0.002))["Next"] == "loopcheck check models/bar.xml --accuracy 1%"


def test_the_simulation_of_a_catalogue_robot_is_not_the_users_own() -> None:
    found = lines(as_is(), **CATALOGUE)
    assert "Unmodified simulation" in found
    assert found["Next"] == "loopcheck tune bar --accuracy 1%"


def test_a_simulation_without_figure_has_its_reason() -> None:
    note = "not followed: 'hip' is off the motion by 0.3 of its stroke; 3 forces at the end of their range"
    found = lines(as_is(error=np.nan, relative_error=np.nan, note=note))
    assert found["Your simulation"] == f"mujoco/as_is cannot be judged: {note.split('; ')[0]}"
    assert "Next" not in found


@pytest.mark.parametrize("verdict", ["not run", "not comparable"])
@pytest.mark.parametrize(
    ("source", "note", "command"),
    [
        ("mujoco/as_is", "MuJoCo warned", "tune models/bar.xml --accuracy 1% --motion m.csv"),
        ("pybullet/as_is", "fell", "tune models/bar.xml --accuracy 1% --source pybullet/as_is --motion m.csv"),
        ("dart/as_is", "fell", "gate models/bar.xml"),
        ("mujoco/forward", "below", "study refinement models/bar.xml --source mujoco/forward"),
        ("mujoco/kkt", "dropped a loop", "gate models/bar.xml"),
        ("mujoco/kkt", "timeout after 0.5 s", "check models/bar.xml --motion=m.csv --time-limit 2"),
        (REFERENCE, "timeout after 1800 s", "check models/bar.xml --motion=m.csv --time-limit 7200"),
    ],
)
def test_a_missing_verdict_on_a_users_model_has_a_command(verdict: str, source: str, note: str, command: str) -> None:
    nothing = {"relative_error": np.nan, "tolerance": np.nan, "note": note}
    given = ["loopcheck", "check", "models/bar.xml", "--motion=m.csv", "--time-limit", "9"]
    robots: dict[str, Any] = {"bar": {"oddities": ["sites 'a' and 'b' coincide."]}}
    for about in ({}, robots, {**robots, "other": {}}):
        found = lines(summary_row(source, verdict, np.nan, **nothing), command=given, robots=about)
        assert found["Next"] == f"loopcheck {command}"
        assert ("Check the model" in found) == (about == robots)


def test_a_missing_verdict_on_a_catalogue_robot_has_no_command() -> None:
    assert "Next" not in lines(summary_row("mujoco/kkt", "not run", np.nan, note="died"), **CATALOGUE)


def test_options_of_the_target_are_repeated() -> None:
    given = ["loopcheck", "check", "models/bar.xml", "--mode", "up", "--configuration", "given", "--leave-out", "a:b"]
    found = lines(as_is("disagree"), command=[*given, "--motion", "m.csv", "--source", "mujoco"])
    assert found["Next"] == (
        "loopcheck tune models/bar.xml --accuracy 1% --mode up --configuration given --leave-out a:b --motion m.csv"
    )
    found = lines(as_is("disagree"), command=[*given, "--mode", "down"])
    assert found["Next"] == "loopcheck tune models/bar.xml --accuracy 1% --configuration given --leave-out a:b"


def test_random_motions_are_named_only_if_their_verdict_is_worse() -> None:
    random = {"bar": {"up-random": "up"}}
    found = lines(as_is(error=0.002), as_is(mode="up-random"), random_modes=random)["Your simulation"]
    assert found.startswith("mujoco/as_is is off by 0.2 % of the peak effort at 'hip' (0.004 N m); not judged")
    assert found.endswith("; at most 6.4 % in its other cases (random motion)")
    found = lines(as_is("agree", 0.002), as_is("disagree", mode="up-random"), random_modes=random)["Your simulation"]
    assert found == (
        "mujoco/as_is disagrees, off by 6.4 % of the peak effort at 'hip' (0.13 N m), random motion, accuracy 1 %"
    )


def test_sources_that_do_not_agree_have_the_worst_first_with_its_reason() -> None:
    found = lines(
        summary_row("y/forward", "not comparable", note="a loop was dropped"),
        summary_row("x/forward", "disagree", 0.042, note="closure drift 0.006 m, must be at most 1e-6 m; and more"),
        *(summary_row(f"z{k}/kkt", "not run", note="its process died") for k in range(4)),
    )
    assert found["Not in agreement"] == (
        "x/forward disagrees, off by 4.2 % of the effort scale at 'm1' (0.084 N): closure drift 0.006 m, must be at "
        "most 1e-6 m; also z0/kkt (not run), z1/kkt (not run), z2/kkt (not run), 2 more"
    )
    assert found["Agreement"] == "0 of 6 comparisons with the reference agree"


def test_an_engine_that_differs_from_the_model_is_told_by_its_audit() -> None:
    rows = [summary_row(REFERENCE, "reference"), summary_row("x/kkt", "disagree", 0.5)]
    audit = table("audit", [audit_row("x", "static", "mass", 0.3, "disagree")])
    closing = closing_lines(replace(only("summary", rows), audit=audit, run=OWN))
    assert str(closing[-1]) == "First difference: x, static: mass of m1"


def test_an_odd_model_is_before_all_commands() -> None:
    robots = {"bar": {"oddities": ["sites 'a' and 'b' coincide.", "more"]}}
    assert lines(as_is(), robots=robots)["Check the model"] == "sites 'a' and 'b' coincide. (1 more in the report)"


def test_unsupported_sources_share_a_line_and_leave_the_table() -> None:
    note = "{}: not supported: armature of joint 'hip' (joints have no rotors); tendon 't' (too few)"
    rows = [
        summary_row(REFERENCE, "reference"),
        *(summary_row(f"x/{route}", "not supported", note=note.format("x")) for route in ("kkt", "forward")),
        summary_row("y/kkt", "agree", 1e-15),
        summary_row("y/forward", "not supported", note=note.format("y")),
        summary_row("z/kkt", "agree", 1e-15),
        summary_row("z/kkt", "not supported", note=note.format("z"), configuration="turned"),
    ]
    results = replace(only("summary", rows), run={**OWN, "absent": {"newton": {}}})
    assert unsupported_in_words(results) == (
        "x, y/forward, z/kkt (armature of joint 'hip', tendon 't'); newton (not installed)"
    )
    assert wholly_unsupported(results, "bar") == {"x/kkt", "x/forward", "y/forward"}
    shown, line, *_ = summary(results)
    assert line == f"Not supported: {unsupported_in_words(results)}"
    assert [row[0] for row in shown.rows] == [REFERENCE, "y/kkt", "z/kkt"]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("gravity", "words"),
    [
        ([0.0, 0.0, -9.81], "gravity -Z"),
        ([-0.0, 9.8, 1e-16], "gravity +Y"),
        ([0.4, -1.0, -9.7], "gravity 0.4, -1, -9.7 m/s²"),
        ([0.0, 0.0, 0.0], "no gravity"),
    ],
)
def test_gravity_has_a_direction(gravity: list[float], words: str) -> None:
    assert gravity_in_words(gravity) == words


def test_cases_have_names_for_readers() -> None:
    rows = [summary_row("x/kkt", "agree", 1e-12), summary_row("x/kkt", "agree", 1e-12, mode="up-random")]
    run = {"gravity": {"bar": {"vertical": [0, -9.81, 0]}}, "random_modes": {"bar": {"up-random": "up"}}}
    results = replace(only("summary", rows), run=run)
    robot, variant, mode, configuration = CASE.values()
    names = [case_name((robot, variant, name, configuration), results) for name in (mode, "up-random")]
    assert names == ["bar, vertical (gravity -Y), mode up", "bar, vertical (gravity -Y), mode up, random motion"]
    logs = only("summary", [summary_row("log/bench", "agree", 1e-12, mode="bench", variant="light")])
    assert case_name((robot, "light", "bench", configuration), logs) == "bar, variant light, vertical, log bench"


def log_row(name: str, verdict: str, **changed: Any) -> Row:
    return summary_row(f"log/{name}", verdict, 0.1, **{"mode": name, **changed})


def logs(*rows: Row) -> list[str]:
    return list(map(str, lines_of_logs(only("summary", rows))))


def test_a_single_log_has_its_hints() -> None:
    assert logs(log_row("a", "agree"), log_row("a", "disagree", actuator="knee", note="rms 0.2; gravity; gain 2")) == [
        "log/a: disagrees at 'knee': rms 0.2",
        "Hint: gravity",
        "Hint: gain 2",
    ]


def test_a_log_that_disagrees_is_judged_with_the_option_of_its_hint() -> None:
    command = ["loopcheck", "judge", "bar.xml", "a log.csv"]
    hint = "rms 0.2; the log agrees with --fit mass:rod --from 0.2 (error 1e-4): 1 kg; the log agrees with --fit shift"
    partial = "rms 0.2; partial: --fit mass:rod leaves an error of 0.1"
    for verdict, note, count in (
        ("disagree", hint, 1), ("agree", hint, 0), ("disagree", "rms 0.2", 0), ("disagree", partial, 0)
    ):  # fmt: skip
        rows = [log_row("a", verdict, note=note)]
        closing = lines_of_logs(replace(only("summary", rows), run={"command": command}))
        following = [str(line) for line in closing if line.label == "Next"]
        assert following == ["Next: loopcheck judge bar.xml 'a log.csv' --fit mass:rod --from 0.2"] * count


@pytest.mark.parametrize(
    ("first", "second", "accuracy"),
    [
        ("error 0.048, noise floor 0.017, limit 0.03 of the peak", "fell", "7.8%"),
        ("error 0.048, noise floor 0.017,", "undecided by the noise floor: error 1e-05, noise floor 0.2,", "24%"),
        ("error 0.9, noise floor 0.2,", "", ""),
    ],
)
def test_an_undecided_log_is_judged_with_the_accuracy_that_it_resolves(first: str, second: str, accuracy: str) -> None:
    command = ["loopcheck", "judge", "bar.xml", "log.csv", "--accuracy", "3%", "--from", "1"]
    rows = [
        log_row("a", "not comparable", note=f"undecided by the noise floor: {first}; sample every 1 s"),
        log_row("a", "not comparable", actuator="knee", note=second),
    ]
    closing = lines_of_logs(replace(only("summary", rows), run={"command": command}))
    following = [str(line) for line in closing if line.label == "Next"]
    assert following == [f"Next: loopcheck judge bar.xml log.csv --from 1 --accuracy {accuracy}"] * bool(accuracy)
    rows.append(log_row("a", "disagree", actuator="toe"))
    closing = lines_of_logs(replace(only("summary", rows), run={"command": command}))
    assert "Next" not in [line.label for line in closing]


def test_many_logs_have_the_worst_first_and_the_number_of_the_rest() -> None:
    several = [log_row(f"a{k}", verdict) for k, verdict in enumerate(["agree", "disagree", "not run"] * 2)]
    assert logs(*several) == [
        "log/a1: disagrees at 'm1'",
        "log/a4: disagrees at 'm1'",
        "log/a2: did not run at 'm1'",
        "3 more logs: 1 not run, 2 agree",
    ]


def test_results_without_rows_have_closing_lines_too() -> None:
    results: Results = only("summary", [])
    assert [str(line) for line in closing_lines(results)] == ["Agreement: no source was judged"]
    assert isinstance(results.summary, pd.DataFrame)
