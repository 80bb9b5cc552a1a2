"""The command line for a user: its files, its output, its exit status, and bad input in a single line."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from loopcheck.robots.catalogue import CATALOGUE
from loopcheck.validation.cli import QUESTIONS
from loopcheck.validation.common.results import TABLES, read
from loopcheck.validation.common.tolerances import registered
from loopcheck.validation.execution.journal import JOURNAL
from loopcheck.validation.frame.study import MEASURED, exit_status
from tests.conftest import MODELS
from tests.validation.conftest import Command

FAST = ("--mode", "plus", "--variant", "default", "--configuration", "vertical", "--jobs", "1")


@pytest.fixture
def own_robot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalogue of a single robot, `mine`, a copy of the 3-PRR that a test may change."""
    shutil.copytree(CATALOGUE / "3prr", tmp_path / "robots" / "mine")
    monkeypatch.setattr("loopcheck.robots.catalogue.CATALOGUE", tmp_path / "robots")
    return tmp_path / "robots" / "mine"


@pytest.mark.evidence("the main command, as a user types it", seconds=3)
def test_run_writes_tables_and_report(loopcheck: Command, tmp_path: Path) -> None:
    chosen = ("--source", "analytic/lagrange", "--source", "mujoco/kkt", "--source", "mujoco/as_is")
    status, out, err = loopcheck("check", "3prr", *FAST, *chosen, "--out", tmp_path / "new" / "results")
    assert status == 0, err
    folder = tmp_path / "new" / "results"
    written = {path.name for path in folder.iterdir()}
    others = ("efforts.parquet", "run.json", "report.html", "report.md", "logs", JOURNAL)
    assert written == {*(f"{name}.csv" for name, spec in TABLES.items() if not spec.optional), *others}
    summary = pd.read_csv(folder / "summary.csv")
    assert list(summary["source"].unique()) == ["analytic/noc", "analytic/lagrange", "mujoco/kkt", "mujoco/as_is"]
    assert list(summary["actuator"].unique()) == ["q1", "q2", "q3"]
    assert set(summary.loc[summary["source"] == "mujoco/kkt", "verdict"]) == {"agree"}
    assert set(summary.loc[summary["source"] == "mujoco/as_is", "verdict"]) == {"informational"}
    assert "Agreement: 2 of 2 comparisons" in out
    assert "Unmodified simulation: mujoco/as_is is off by" in out
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    assert record["command"][:3] == ["loopcheck", "check", "3prr"]
    assert set(record["tolerances"]["routes"]) == set(summary["source"])


@pytest.mark.extended("test_run_writes_tables_and_report")
@pytest.mark.usefixtures("tables_only")
def test_numbers_survive_the_tables(loopcheck: Command, tmp_path: Path) -> None:
    """Seventeen digits: values are read back bit for bit."""
    loopcheck("check", "3prr", *FAST, "--source", "mujoco/kkt", "--out", tmp_path)
    efforts = read(tmp_path).efforts
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "efforts.parquet"), efforts, check_exact=True, check_dtype=False
    )


@pytest.mark.extended("tests/validation/test_lanes.py::test_workers_go_on_while_nobody_takes_results")
@pytest.mark.usefixtures("tables_only")
def test_the_number_of_workers_does_not_matter(loopcheck: Command, tmp_path: Path) -> None:
    of_one_mode = ("--mode", "plus", "--variant", "default", "--dt", "0.05")
    chosen = ("check", "3prr", *of_one_mode, "--source", "analytic/lagrange", "--source", "mujoco/forward")
    for jobs in ("1", "2"):
        assert loopcheck(*chosen, "--jobs", jobs, "--out", tmp_path / jobs)[0] == 0
    one, two = (read(tmp_path / jobs) for jobs in ("1", "2"))
    pd.testing.assert_frame_equal(one.efforts, two.efforts, check_exact=True)


@pytest.mark.extended("tests/validation/test_tolerances.py::test_a_tolerance_belongs_to_a_source")
@pytest.mark.usefixtures("no_figures")
def test_a_limit_of_the_users_own_judges_and_is_recorded(loopcheck: Command, tmp_path: Path) -> None:
    """Beyond a limit is exit status 1; an informational row is judged once it has a limit."""
    limits = {"mujoco/kkt": 0.5, "mujoco/as_is": 1e-4}
    chosen = [part for source in limits for part in ("--source", source)]
    given = [part for source, limit in limits.items() for part in ("--tolerance", f"{source}={limit}")]
    status, out, _ = loopcheck("check", "3prr", *FAST, *chosen, *given, "--out", tmp_path)
    assert (status, "Unmodified simulation: mujoco/as_is disagrees" in out) == (1, True)
    assert "Agreement: 1 of 1 comparisons" in out
    results = read(tmp_path)
    found = {(row["source"], row["verdict"], row["tolerance"]) for row in results.summary.to_dict("records")}
    assert found >= {("mujoco/kkt", "agree", 0.5), ("mujoco/as_is", "disagree", 1e-4)}
    recorded = results.run["tolerances"]
    assert recorded["own"] == limits
    assert recorded["routes"]["mujoco/kkt"]["reason"] == (
        f"Limit of the user, instead of the registered limit: {registered()['mujoco/kkt'].relative_error:g}."
    )
    report = (tmp_path / "report.md").read_text(encoding="utf-8")
    (line,) = (line for line in report.splitlines() if "tolerances of the user" in line)
    assert "mujoco/kkt 0.5, mujoco/as_is 1.00e-04" in line


@pytest.fixture
def own_folder(tmp_path: Path) -> Path:
    """A folder with a robot of the user's own, with its motion in a file beside it."""
    folder = tmp_path / "my_robots" / "linkage"
    folder.mkdir(parents=True)
    shutil.copy(MODELS / "four_bar.xml", folder)
    t = np.linspace(0, 1, 101)
    swing = {"t": t, "crank.q": 0.1 * np.sin(t) ** 2, "crank.qd": 0.1 * np.sin(2 * t), "crank.qdd": 0.2 * np.cos(2 * t)}
    pd.DataFrame(swing).to_csv(folder / "swing.csv", index=False)
    motion = 'motion = { law = "recorded", parameters = { file = "swing.csv" } }'
    toml = f'title = "Four-bar"\nmjcf = "four_bar.xml"\nsource = "ours"\n{motion}\n'
    (folder / "robot.toml").write_text(toml, encoding="utf-8")
    return folder.parent


@pytest.mark.extended("tests/validation/test_expected.py::test_a_command_prints_what_it_printed[refused_folders]")
@pytest.mark.usefixtures("tables_only")
def test_robots_of_the_users_own(
    loopcheck: Command, own_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listed with the catalogue, run alone, in two worker processes, with the folder relative to the working folder."""
    monkeypatch.chdir(own_folder.parent)
    status, out, _ = loopcheck("list", "my_robots/linkage")
    assert (status, "3prr: " in out, "linkage: Four-bar" in out) == (0, False, True)
    chosen = ("--source", "mujoco/kkt", "--jobs", "2", "--out", tmp_path / "out")
    status, out, err = loopcheck("check", "my_robots/linkage", *chosen)
    assert (status, "Agreement: 2 of 2 comparisons" in out) == (0, True), err
    assert set(read(tmp_path / "out").motion["robot"]) == {"linkage"}
    assert np.ptp(read(tmp_path / "out").motion.query("joint == 'crank'")["q"]) == pytest.approx(0.1 * np.sin(1) ** 2)


@pytest.mark.extended("test_run_writes_tables_and_report")
@pytest.mark.usefixtures("tables_only")
def test_what_the_paper_does_not_model_is_not_comparable(loopcheck: Command, tmp_path: Path, own_robot: Path) -> None:
    model = own_robot / "3prr.xml"
    text = model.read_text(encoding="utf-8").replace('name="q4" type="hinge"', 'name="q4" type="hinge" armature="0.01"')
    model.write_text(text, encoding="utf-8")
    chosen = ("--source", "analytic/paper", "--source", "mujoco/kkt")
    status, out, _ = loopcheck("check", "mine", *FAST, *chosen, "--out", tmp_path / "out")
    assert (status, "Agreement: 1 of 2 comparisons" in out) == (3, True)
    (line,) = (line for line in out.splitlines() if line.startswith("Not in agreement: analytic/paper"))
    assert "armature" in line


def test_list_names_everything(loopcheck: Command) -> None:
    status, out, _ = loopcheck("list")
    assert status == 0
    for name in (
        "3prr",
        "printed_inertia",
        "plus, minus",
        "horizontal, vertical",
        "q1 [N]",
        "analytic/noc",
        "mujoco/forward",
    ):
        assert name in out


@pytest.mark.extended("tests/validation/test_expected.py::test_a_command_prints_what_it_printed[refused_folders]")
def test_a_singular_motion_is_one_line(loopcheck: Command, own_robot: Path, tmp_path: Path) -> None:
    toml = own_robot / "robot.toml"
    law = 'motion = { law = "sine", parameters = { amplitude = 0.05, duration = 1.0 } }'
    toml.write_text(toml.read_text(encoding="utf-8").replace('motion = "kordjazi2011"', law), encoding="utf-8")
    _is_refused(
        loopcheck("check", "mine", "--out", tmp_path / "out"),
        "3prr.xml, mode plus: the motion leaves the workspace or meets a singularity at t = 0.",
    )


@pytest.mark.parametrize("columns", ["80", "120"])
def test_short_descriptions_are_not_cut(loopcheck: Command, monkeypatch: pytest.MonkeyPatch, columns: str) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    for group in ((), ("study",), ("engines",)):
        _, out, _ = loopcheck(*group, "--help")
        commands = out.split("Commands:\n")[1].splitlines()
        assert commands
        assert not [line for line in commands if line.endswith("...") and "versions, ..." not in line]
        assert all(len(line) <= int(columns) for line in out.splitlines())


def test_questions_are_the_first_screen(loopcheck: Command) -> None:
    status, out, _ = loopcheck()
    assert status == 0
    assert len(QUESTIONS) == 5
    for question, command in QUESTIONS.items():
        assert f"{question}\n    loopcheck {command}\n" in out


def test_the_installed_command_answers() -> None:
    """The entry point in a process of its own: help, and bad input without a traceback."""
    command = [sys.executable, "-m", "loopcheck"]
    helped = subprocess.run([*command, "--help"], capture_output=True, text=True, check=False)
    assert helped.returncode == 0
    assert "loopcheck check 3prr" in helped.stdout
    refused = subprocess.run([*command, "check", "3ppr"], capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(
        "loopcheck: unknown target (robot, model file, or folder with robot.toml): '3ppr'. Did you mean '3prr'? Known: "
    )
    assert refused.stderr.count("\n") == 1


def _is_refused(answer: tuple[int, str, str], *messages: str) -> None:
    status, out, err = answer
    assert status == 2, out + err
    assert all(message in err for message in messages), err
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_an_error_of_our_own_is_one_line_and_written_down(
    loopcheck: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def slip(_: object) -> None:
        raise ZeroDivisionError("a slip")

    monkeypatch.setattr("loopcheck.validation.commands.list._robots", slip)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    status, _, err = loopcheck("list")
    (written,) = (tmp_path / "loopcheck" / "errors").iterdir()
    assert status == 70
    assert err == f"loopcheck: internal error: ZeroDivisionError: a slip; traceback: {written}\n"
    assert "Traceback" in written.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("verdicts", "record", "status"),
    [
        (["agree", "disagree", "not run"], {"internal_errors": ["a slip"], "not_run": ["it died"]}, 70),
        (["agree", "disagree"], {"internal_errors": ["a slip"]}, 70),
        (["agree", "disagree", "not run", "not comparable"], {"not_run": ["it died"]}, 1),
        (["agree", "not comparable"], {}, 3),
        ([MEASURED, "not run"], {}, 3),
        ([MEASURED], {"not_run": ["it died"]}, 3),
        (["informational", "reference"], {}, 3),
        ([], {}, 3),
        (["agree", "informational", "as expected"], {}, 0),
        ([MEASURED], {}, 0),
    ],
)
def test_every_command_ends_by_one_rule(verdicts: list[str], record: dict[str, list[str]], status: int) -> None:
    assert exit_status(verdicts, {"not_run": [], "internal_errors": [], **record}) == status


@pytest.mark.extended("tests/validation/test_recovery.py::test_every_command_locks_its_folder")
@pytest.mark.usefixtures("tables_only")
def test_a_folder_is_for_one_study(loopcheck: Command, tmp_path: Path) -> None:
    loopcheck("check", "3prr", *FAST, "--source", "mujoco/kkt", "--out", tmp_path)
    _is_refused(
        loopcheck("study", "errata", "3prr", "--out", tmp_path),
        "must be empty or a folder of the study 'errata', got the study 'check'",
    )
    (tmp_path / "run.json").write_text('{"study": "../run"}', encoding="utf-8")
    _is_refused(loopcheck("report", tmp_path), "'study' must name a study, got '../run'")


@pytest.mark.extended("tests/validation/test_gate_tools.py::test_a_tree_is_called_a_tree")
@pytest.mark.usefixtures("tables_only", "short_proofs")
def test_every_command_calls_a_tree_a_tree(loopcheck: Command, tmp_path: Path) -> None:
    arm = """<mujoco><worldbody><body name="rod"><joint name="hinge" axis="0 1 0" damping="1"/>
    <inertial pos="1 0 0" mass="1" diaginertia=".1 .1 .1"/></body></worldbody>
    <actuator><motor name="hinge" joint="hinge"/></actuator></mujoco>"""
    for name in ("arm.xml", "simple.xml"):
        (tmp_path / name).write_text(arm, encoding="utf-8")
    model, judged = tmp_path / "arm.xml", ("--accuracy", ".1", "--out")
    checked = loopcheck("check", model, "--source", "mujoco/as_is", "--dt", ".1", *judged, tmp_path / "check")
    log = min((tmp_path / "check" / "logs").glob("*-vertical-mujoco.csv"))
    answers = {
        "check": checked,
        "judge": loopcheck("judge", model, log, "--configuration", "vertical", *judged, tmp_path / "judge"),
        "tune": loopcheck("tune", model, *judged, tmp_path / "tune"),
        "serial": loopcheck("serial", model, tmp_path / "simple.xml", "--samples", "4", *judged, tmp_path / "serial"),
        "convert": loopcheck("convert", model, tmp_path / "arm.usda"),
        "list": loopcheck("list", model),
    }
    assert {name: status for name, (status, _, _) in answers.items() if status} == {}
    assert [name for name, (_, text, _) in answers.items() if "no loop" not in text] == []
    mentions = [line for _, text, _ in answers.values() for line in text.splitlines() if "loop gap" in line]
    assert mentions == []
    assert "no loop" not in loopcheck("list", "four_bar")[1]
