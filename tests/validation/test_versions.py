"""`loopcheck study versions`: results of several versions side by side, changes, and versions that cannot be made."""

import importlib.metadata
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.dynamics.powers import effort_scale
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.robot import Case, make_case
from loopcheck.validation.check.study import run
from loopcheck.validation.common import results as result_tables
from loopcheck.validation.common import sources
from loopcheck.validation.common.known_issues import known_issues
from loopcheck.validation.execution import uv
from loopcheck.validation.execution.tables import write_tables
from loopcheck.validation.execution.workers import Workers
from loopcheck.validation.frame.study import StudyResult, exit_status, run_study, write_conclusion
from loopcheck.validation.studies.versions import environments as places
from loopcheck.validation.studies.versions import study
from loopcheck.validation.studies.versions.comparison import versions_table
from loopcheck.validation.studies.versions.environments import EngineVersion, made_by_uv, rooms, run_in
from loopcheck.validation.studies.versions.report import VersionsResult, steps
from loopcheck.validation.studies.versions.study import Versions, environments
from tests.faults.adapters import mujoco_without_velocity_term
from tests.validation.conftest import Command, in_this_process

HERE = importlib.metadata.version("mujoco")
ONE_CASE = ("3prr", "--variant", "default", "--mode", "plus", "--configuration", "vertical", "--jobs", "1")
Old = Mapping[str, result_tables.Results | str]


@pytest.fixture(scope="module")
def two(prr: Case) -> Old:
    """Results as they are, and with the term left out that MuJoCo did not have before 3.7."""
    wanted = ("mujoco/kkt", "mujoco/forward")
    new = run([prr], source_names=wanted, workers=Workers(jobs=1))
    fault = mujoco_without_velocity_term
    with in_this_process() as patch:
        load = sources.load
        patch.setattr(sources, "load", lambda name: fault() if name == "mujoco/forward" else load(name))
        old = run([prr], source_names=wanted, workers=Workers(jobs=1))
    return {"3.6.0": old, "3.7.0": "no network", "4.0.0": new}


@pytest.fixture(scope="module")
def found(two: Old) -> VersionsResult:
    return VersionsResult(table=versions_table(two), run=_record(two))


def _record(of: Old) -> Mapping[str, object]:
    where = [
        {
            "version": version,
            "made": "by the test",
            "lacks": results if isinstance(results, str) else "",
            "folder": "",
            "duration_s": None,
            "versions": None,
        }
        for version, results in of.items()
    ]
    return {
        "loopcheck": "0",
        "command": ["loopcheck"],
        "start": "now",
        "duration_s": 1.0,
        "environments": where,
        "engine": "mujoco",
    }


def _cell(table: pd.DataFrame, source: str, version: str) -> pd.Series:
    return table[(table["source"] == source) & (table["version"] == version)].iloc[0]


def test_a_change_of_verdict_and_of_effort_is_named(found: VersionsResult, two: Old) -> None:
    before, after = (_cell(found.table, "mujoco/forward", version) for version in ("3.6.0", "4.0.0"))
    assert (before["verdict"], after["verdict"]) == ("disagree", "agree")
    efforts = []
    for results in (two["3.6.0"], two["4.0.0"]):
        assert isinstance(results, result_tables.Results)
        of_source = results.efforts[results.efforts["source"] == "mujoco/forward"]
        efforts.append(of_source.pivot(index="t", columns="actuator", values="effort").to_numpy())
        scale = results.summary.drop_duplicates("actuator").sort_values("actuator")["scale"].to_numpy()
        reference = results.efforts[results.efforts["source"] == sources.REFERENCE]
    exact = reference.pivot(index="t", columns="actuator", values="effort").to_numpy()
    moved = (np.abs(efforts[0] - efforts[1]).max(0) / scale).max()
    assert after["effort_change"] == pytest.approx(moved, rel=1e-12)
    assert before["relative_error"] == pytest.approx((np.abs(efforts[0] - exact).max(0) / scale).max(), rel=1e-12)
    assert after["change"] == f"disagree → agree; efforts change by {moved:.1e} of their scale"
    assert after["wall_time_ratio"] == after["wall_time"] / before["wall_time"]
    assert before["closure_drift"] > 1e-3 > after["closure_drift"]


def test_what_stays_is_not_named(found: VersionsResult) -> None:
    for source in ("mujoco/kkt", sources.REFERENCE):
        rows = found.table[found.table["source"] == source]
        assert set(rows["change"]) == {""}
        assert _cell(found.table, source, "4.0.0")["effort_change"] == 0.0


def test_a_version_that_did_not_run_has_rows_that_say_so(found: VersionsResult) -> None:
    rows = found.table[found.table["version"] == "3.7.0"]
    assert list(rows["source"]) == [sources.REFERENCE, "mujoco/kkt", "mujoco/forward"]
    assert set(rows["verdict"]) == {"not run"}
    assert set(rows["note"]) == {"no network"}
    assert found.ran == ("3.6.0", "4.0.0")


@pytest.mark.extended("test_a_change_of_verdict_and_of_effort_is_named")
def test_a_robot_that_the_compiler_reads_otherwise_is_named(prr: Case, tmp_path: Path) -> None:
    """The reference moves only if the model does, here by a millionth of all masses, in the robot's files as well."""
    folder = tmp_path / "3prr"
    shutil.copytree(prr.robot.folder, folder)
    text = (folder / "3prr.xml").read_text(encoding="utf-8")
    text = re.sub(r'mass="([^"]+)"', lambda mass: f'mass="{float(mass[1]) * (1 + 1e-6):.17g}"', text)
    (folder / "3prr.xml").write_text(text, encoding="utf-8")
    robot = prr.robot.model_copy(update={"folder": folder})
    heavier = make_case(robot, variant=prr.variant, mode=prr.mode, configuration=prr.configuration)
    both = {"3.6.0": run([prr], source_names=("analytic/lagrange",), workers=Workers(jobs=1))}
    both["4.0.0"] = run([heavier], source_names=("analytic/lagrange",), workers=Workers(jobs=1))
    found = VersionsResult(table=versions_table(both), run=_record(both))
    row = _cell(found.table, sources.REFERENCE, "4.0.0")
    motion = prescribe(prr)
    light, heavy = (Noc().compute_efforts(case, motion).effort for case in (prr, heavier))
    moved = (np.abs(heavy - light).max(0) / effort_scale(prr.mechanism, motion).scale).max()
    assert 1e-7 < moved < 2e-6
    assert row["effort_change"] == pytest.approx(moved, rel=1e-5)
    assert row["change"] == f"efforts change by {row['effort_change']:.1e} of their scale"
    (sentence,) = steps(found)
    assert "MuJoCo's compiler reads 3prr differently: the reference itself changes by up to" in sentence


def test_the_exit_status_is_that_of_the_worst_version(two: Old) -> None:
    for of, status in {("3.6.0", "4.0.0"): 1, ("3.7.0", "4.0.0"): 3, ("4.0.0",): 0, ("3.7.0",): 3}.items():
        table = versions_table({version: two[version] for version in of})
        assert exit_status(table["verdict"], {"not_run": [], "internal_errors": []}) == status


@pytest.mark.extended("test_a_change_of_verdict_and_of_effort_is_named")
def test_the_page_says_what_changes_and_is_rebuilt(found: VersionsResult, loopcheck: Command, tmp_path: Path) -> None:
    record = {"study": "versions", "loopcheck": "0", "start": "", "duration_s": 0.0, **found.run}
    write_tables(tmp_path, Versions.tables, {"versions": found.table}, record)
    write_conclusion(Versions, StudyResult(folder=tmp_path, tables={"versions": found.table}, record=record))
    before = (tmp_path / "versions.html").read_bytes()
    text = (tmp_path / "versions.md").read_text(encoding="utf-8")
    assert "From MuJoCo 3.6.0 to 4.0.0, 1 of 3 comparisons change: 1 disagree → agree" in text
    assert "MuJoCo 3.7.0 did not run: no network" in text
    assert "disagree 6.3e-02" in text
    assert "connect and weld leave J̇q̇ out" in text
    (tmp_path / "versions.html").unlink()
    status, out, _ = loopcheck("report", tmp_path)
    assert (status, "MuJoCo 3.7.0 did not run: no network" in out) == (1, True)  # one row disagrees
    assert (tmp_path / "versions.html").read_bytes() == before


@pytest.mark.extended("test_a_version_that_did_not_run_has_rows_that_say_so")
def test_a_version_that_cannot_be_installed_leaves_the_others(
    loopcheck: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uv = tmp_path / "uv"
    uv.write_text("#!/bin/sh\necho 'error: no route to the registry' >&2\nexit 2\n", encoding="utf-8")
    uv.chmod(0o755)
    monkeypatch.setenv("UV", str(uv))
    out = tmp_path / "out"
    status, said, _ = loopcheck(
        "study", "versions", *ONE_CASE, "--engine", "mujoco==3.6.0", "--source", "mujoco/kkt", "--out", out
    )
    assert status == 3
    reason = "the environment could not be made: error: no route to the registry"
    assert f"MuJoCo 3.6.0 did not run: {reason}" in said
    table = pd.read_csv(out / "versions.csv", keep_default_na=False)
    assert set(table.loc[table["version"] == "3.6.0", "note"]) == {reason}
    kkt = _cell(table, "mujoco/kkt", HERE)
    assert kkt["verdict"] == "agree"
    assert result_tables.read(out / f"mujoco-{HERE}").run["loopcheck"] == importlib.metadata.version("loopcheck")


def test_an_interruption_leaves_what_has_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(environment: EngineVersion, *_: object) -> str:
        if environment.version == "3.6.0":
            return "no network"
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "run_in", stop)
    where = [
        EngineVersion(engine="mujoco", version=version, made="by the test") for version in ("3.6.0", "3.7.0", "4.0.0")
    ]
    result, conclusion = run_study(Versions(environments=where, arguments=("check",)), tmp_path)
    assert [of["lacks"] for of in result.record["environments"]] == ["no network", "interrupted", "interrupted"]
    assert list(result.tables["versions"]["note"]) == ["no network", "interrupted", "interrupted"]
    assert exit_status(conclusion.verdicts, result.record) == 3
    assert "MuJoCo 4.0.0 did not run: interrupted" in (tmp_path / "versions.md").read_text(encoding="utf-8")


def test_without_uv_the_reason_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UV", raising=False)  # that of the uv that runs the tests
    monkeypatch.setattr(shutil, "which", lambda name, path=None: None)
    assert "pip install uv. Or name an interpreter" in made_by_uv("mujoco", "3.6.0").lacks


def test_a_release_runs_in_a_python_that_it_has_wheels_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """With its dependencies: here none in the versions of another Python."""
    monkeypatch.setattr(uv, "program", lambda: "uv")
    monkeypatch.setattr(places, "_version_in", lambda *_: ("3.2.6", ""))
    monkeypatch.setattr(places, "chosen_python", lambda *_: "/usr/bin/python3.13")
    command = made_by_uv("pybullet", "3.2.6").interpreter
    assert command[command.index("--python") + 1] == "/usr/bin/python3.13"
    assert {"--with=pybullet==3.2.6", "--with=numpy<2", "--with=mujoco>=3.10"} <= set(command)
    command = made_by_uv("mujoco", "3.6.0").interpreter
    assert command[command.index("--python") + 1] == sys.executable
    assert {"--with=mujoco==3.6.0", f"--with=numpy=={np.__version__}"} <= set(command)


def test_a_release_without_wheels_does_not_run_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_wheels(requirement: str, *_: object) -> bool:
        return requirement != "drake==1.0.0"

    monkeypatch.setattr(uv, "program", lambda: "uv")
    monkeypatch.setattr(uv, "has_wheels", no_wheels)
    assert made_by_uv("drake", "1.0.0").lacks.startswith("drake==1.0.0: no wheels for Python 3.1")


@pytest.mark.extended("test_bad_input_is_one_line")
def test_the_rooms_stand_alone(tmp_path: Path) -> None:
    """No package of this environment is used: the bare interpreter finds our code, and no MuJoCo."""
    with rooms(tmp_path) as place:
        assert {path.name for path in place.iterdir() if path.suffix != ".dist-info"} == {
            "loopcheck",
        }
        bare = EngineVersion(engine="mujoco", version="none", made="by the test", interpreter=(sys.executable, "-S"))
        assert run_in(bare, place, ["list"]) == "ModuleNotFoundError: No module named 'click'"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("3ppr",), "'3ppr'. Did you mean '3prr'?"),
        (("nowhere.xml",), "nowhere.xml: the model file must exist"),
        (("3prr", "--source", "pybullet/kkt"), "--source must name routes of mujoco, got pybullet/kkt"),
        (("3prr", "--junit", "x.xml"), "--junit is for one version"),
        (("3prr", "--moed", "plus"), "No such option"),
        (("3prr", "--engine", "mujoco==new"), "engine must be ENGINE or ENGINE==VERSION, got 'mujoco==new'"),
        (
            ("3prr", "--engine", "dart==6", "--engine", "mujoco==3.6.0"),
            "must name versions of one engine, got dart, mujoco",
        ),
        (
            ("3prr", "--engine", "dart==6", "--source", "mujoco/kkt"),
            "--source must name routes of dart, got mujoco/kkt",
        ),
        (("3prr", "--engine", "ode==1"), "unknown engine: 'ode'"),
        (("3prr", "--python", "/nowhere/python"), "/nowhere/python: --python must be an interpreter with MuJoCo"),
        (("3prr", "--python", sys.executable), f"MuJoCo {HERE} twice"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], complaint: str, loopcheck: Command, tmp_path: Path) -> None:
    status, _, err = loopcheck("study", "versions", *arguments, "--out", tmp_path / "out")
    assert (status, err.count("\n")) == (2, 1)
    assert complaint in err
    assert not (tmp_path / "out").exists()


@pytest.mark.extended("test_a_change_of_verdict_and_of_effort_is_named")
def test_the_older_mujoco_itself_gives_what_the_ledger_says(tmp_path: Path) -> None:
    """An environment is made; skipped with the reason if it cannot be."""
    try:
        old, here = environments("mujoco", ["3.6.0"], [])
    except HarnessError as error:
        pytest.skip(str(error))
    if old.lacks:
        pytest.skip(old.lacks)
    assert here.version == HERE
    routes = ("--source", "mujoco/kkt", "--source", "mujoco/forward")
    with rooms(tmp_path) as place:
        assert run_in(old, place, ["check", *ONE_CASE, *routes, "--out", str(tmp_path)]) == ""
    results = result_tables.read(tmp_path)
    assert results.run["versions"]["mujoco"] == "3.6.0"
    table = versions_table({"3.6.0": results})
    (issue,) = (issue for issue in known_issues() if issue.key == "mujoco-velocity-term")
    low, high = issue.size
    assert low <= _cell(table, "mujoco/forward", "3.6.0")["relative_error"] <= high
    assert _cell(table, "mujoco/kkt", "3.6.0")["verdict"] == "agree"
