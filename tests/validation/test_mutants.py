"""Seeded faults are caught or explained, and the study itself can fail."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from loopcheck import engines
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.robots.catalogue import names
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.errors import EngineError, MechanismError
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.mjcf import with_overrides
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, make_case
from loopcheck.validation.comparison.verdicts import FILE
from loopcheck.validation.execution.errors import internal_errors
from loopcheck.validation.execution.journal import JOURNAL
from loopcheck.validation.studies.mutants import faults, misreadings, study
from loopcheck.validation.studies.mutants.detection import (
    CAUGHT,
    PreparedCase,
    compared_sources,
    kill_rate,
    kill_rates,
    not_run,
    prepare,
    rows_of_faults,
)
from loopcheck.validation.studies.mutants.faults import COMMON_FAULTS, FAULTS, MUTANTS, Mutant, by_key, inertial
from loopcheck.validation.studies.mutants.study import TABLE, VERDICTS, Mutants
from loopcheck.validation.studies.study import exit_status, notes_of
from tests.cpu_time import extended_but
from tests.errors import relative_error
from tests.validation.conftest import Command

EXACT = ("analytic/lagrange", "mujoco/kkt", "pinocchio/kkt", "pybullet/kkt")
STATES_STAY_CLOSED = ("mass 1 %", "mass 1 ppm", "inertia point", "mass centre", "gravity turned", "joint damping")


@pytest.fixture(scope="module")
def prepared(prr: Case) -> PreparedCase:
    return prepare(prr, MUTANTS)


def rows(prepared: PreparedCase, source: str, mutants: Sequence[Mutant] = MUTANTS) -> Mapping[str, Mapping[str, Any]]:
    if not source.startswith("analytic/") and not engines.installed(source.split("/")[0]):
        pytest.skip(f"{source} is not installed")
    return {row["mutant"]: row for row in rows_of_faults(prepared, source, mutants)}


def status_of(table: pd.DataFrame) -> int:
    """Exit status of a study with this table."""
    record = {"not_run": [], "internal_errors": internal_errors(notes_of([table]))}
    return exit_status((VERDICTS[came] for came in table["result"]), record)


@pytest.mark.parametrize(
    "source", extended_but(["mujoco/kkt"], EXACT, "test_an_exact_route_notices_every_fault_it_can_have")
)
def test_an_exact_route_notices_every_fault_it_can_have(prepared: PreparedCase, source: str) -> None:
    found = rows(prepared, source)
    without = {key for key, row in found.items() if row["result"] == "not carried"}
    assert without == {"loose loops", "weak motor", "default damping", "start at rest"}
    broken = {key for key, row in found.items() if row["result"] == "broken"}
    assert not broken or source == "analytic/lagrange"  # whose audit of its own terms is an error of ours
    killed = [row for key, row in found.items() if key not in without | broken]
    assert {row["result"] for row in killed} == {"killed"}
    assert all(row["effect"] > row["tolerance"] for row in killed)


@pytest.mark.parametrize("source", EXACT)
def test_the_error_of_a_route_is_the_effect_on_the_reference(prepared: PreparedCase, source: str) -> None:
    """Two codes, given the same wrong robot, are wrong alike: the fault did reach the engine."""
    found = rows(prepared, source, [by_key(key) for key in (*STATES_STAY_CLOSED, "velocity term")])
    for row in found.values():
        assert row["relative_error"] == pytest.approx(row["effect"], rel=1e-6)


@pytest.mark.parametrize(
    ("source", "mutant", "result"),
    [
        ("mujoco/forward", "velocity term", "killed"),
        ("mujoco/forward", "loose loops", "killed"),
        ("mujoco/forward", "mass 1 ppm", "below tolerance"),
        ("mujoco/forward", "weak motor", "not carried"),
        ("pinocchio/forward", "velocity term", "killed"),
        ("pinocchio/forward", "loose loops", "killed"),
        ("pinocchio/forward", "weak motor", "not carried"),
        ("pybullet/forward", "weak motor", "killed"),
        ("pybullet/forward", "default damping", "killed"),
        ("pybullet/forward", "velocity term", "not carried"),
        ("analytic/paper", "axis flipped", "not carried"),
        ("analytic/paper", "joint damping", "refused"),
    ],
)
def test_other_routes(prepared: PreparedCase, source: str, mutant: str, result: str) -> None:
    row = rows(prepared, source, [by_key(mutant)])[mutant]
    assert row["result"] == result, row
    assert result == "killed" or row["note"]
    if result == "below tolerance":
        assert row["effect"] < row["tolerance"]
        assert "below the tolerance 1.0e-06 by a factor 2.09, above the noise" in row["note"]


def test_a_fault_ends_with_its_context(prepared: PreparedCase) -> None:
    """The adapter is whole again after a fault was seeded in it."""
    row = rows(prepared, "mujoco/forward", [by_key("loose loops"), by_key("one sign")])
    assert row["one sign"]["relative_error"] == pytest.approx(row["one sign"]["effect"], rel=1e-6)


def test_a_fault_that_does_nothing_agrees(prepared: PreparedCase) -> None:
    """Changed inertias leave all other inertias as they were."""

    def same(mechanism: Mechanism) -> Mechanism:
        return with_overrides(mechanism, {"body": {body.name: inertial(body) for body in mechanism.bodies}})

    none = Mutant("none", "nothing is wrong", faults._on_model(same))
    for source in ("analytic/lagrange", "mujoco/kkt"):
        assert rows(prepared, source, [none])["none"]["verdict"] == "agree"


def test_a_mirror_image_that_moves_likewise_is_no_fault_of_a_simulation() -> None:
    """Two equal cranks that start upright: with the axis turned round they swing to the other side."""
    robot = load("n_four_bar_2")
    fault = [by_key("axis flipped")]
    of_two = prepare(make_case(robot, variant="default", mode="home", configuration="vertical"), fault)
    assert rows(of_two, "mujoco/kkt", fault)["axis flipped"]["result"] == "killed"
    row = rows(of_two, "pinocchio/forward", fault)["axis flipped"]
    assert (row["result"], row["verdict"]) == ("below tolerance", "agree")
    assert row["effect"] < 1e-12
    assert row["note"].endswith("in recomputed states")


@pytest.mark.parametrize("source", ["mujoco/kkt", "mujoco/forward"])
def test_a_fault_above_the_tolerance_that_agrees_survives(prepared: PreparedCase, source: str) -> None:
    """A fault that never reaches the engine."""

    def compute(of: Source, case: Case, motion: Motion) -> EffortHistory:
        return by_key("mass 1 %").compute(of, case, motion) if of.name == Noc.name else of.compute_efforts(case, motion)

    row = rows(prepared, source, [Mutant("mass 1 %", "", compute)])["mass 1 %"]
    assert (row["result"], row["verdict"]) == ("survived", "agree")
    assert "above the tolerance" in row["note"]
    assert status_of(pd.DataFrame([row])) == 1


@pytest.mark.parametrize(
    ("error", "result"), [(ZeroDivisionError("a slip"), "broken"), (EngineError("it exploded"), "refused")]
)
def test_a_bug_in_a_fault_is_no_kill(prepared: PreparedCase, error: Exception, result: str) -> None:
    def compute(*_: Any) -> Any:
        raise error

    row = rows(prepared, "mujoco/kkt", [Mutant("mass 1 %", "", compute)])["mass 1 %"]
    assert row["result"] == result
    assert status_of(pd.DataFrame([row])) == (70 if result == "broken" else 0)


def test_a_fault_of_an_adapter_that_does_nothing_is_broken(prepared: PreparedCase) -> None:
    def compute(of: Source, case: Case, motion: Motion) -> EffortHistory:
        return of.compute_efforts(case, motion)

    row = rows(prepared, "mujoco/kkt", [Mutant("loose loops", "", compute, in_adapter=True)])
    assert (row["loose loops"]["result"], row["loose loops"]["effect"]) == ("broken", 0.0)
    assert status_of(pd.DataFrame(list(row.values()))) == 3  # nothing is known of the route


def test_a_route_that_disagrees_anyway_kills_nothing(prepared: PreparedCase) -> None:
    away = replace(prepared, case=replace(prepared.case, mechanism=_heavier(prepared.case)))
    row = rows(away, "mujoco/kkt", [by_key("one sign")])["one sign"]
    assert row["result"] == "not carried"
    assert row["note"].startswith("without a fault the verdict is disagree")


def test_what_was_cut_short_is_no_kill(prepared: PreparedCase) -> None:
    mutants = [by_key("one sign")]
    killed = rows_of_faults(prepared, "mujoco/kkt", mutants)
    cut_short = not_run(prepared.case, "pybullet/kkt", mutants, "interrupted")
    table = pd.DataFrame([*killed, *cut_short])
    assert list(table["result"]) == ["killed", "not run"]
    assert table["note"].iloc[1] == "interrupted"
    assert status_of(table) == 3


def test_kill_rate_counts_what_is_above_a_limit() -> None:
    table = pd.DataFrame(
        {
            "result": ["killed", "refused", "killed", "below tolerance", "not carried", "survived"],
            "effect": [1.0, np.inf, 1e-9, 1e-7, 1.0, np.nan],
            "tolerance": [1e-6] * 6,
            "noise": [1e-8] * 6,
            "note": [""] * 6,
        }
    )
    assert kill_rate(table) == (2, 3)
    assert kill_rate(table, "noise") == (2, 4)
    assert status_of(table) == 1
    assert status_of(table[:5]) == 0
    assert status_of(table[4:5]) == 3  # nothing was caught, because nothing was there


def test_what_a_route_shares_is_for_the_files_to_catch() -> None:
    table = pd.DataFrame(
        {
            "source": ["a/kkt"] * 4 + ["b/kkt"],
            "result": ["killed", "shared", "killed", "not carried", "killed"],
            "effect": [1.0, 1.0, 5e-6, 1.0, 5e-6],
            "tolerance": [1e-6] * 5,
            "note": [""] * 5,
        }
    )
    first, second = kill_rates(table).to_dict("records")  # 5e-6 is above the tolerance, but not ten times
    assert first == {"source": "a/kkt", "caught": 1, "shared": 1, "above": 2, "kill_rate": 0.5}
    assert (second["caught"], second["above"]) == (0, 0)
    assert np.isnan(second["kill_rate"])
    assert status_of(table) == 0
    assert status_of(table.replace({"result": {"shared": "survived"}})) == 1


@pytest.mark.parametrize("name", names())
def test_every_robot_has_a_place_for_every_fault_of_its_model(name: str) -> None:
    """No route runs: the wrong models compile, and differ from the right models in the efforts they belong to."""
    robot = load(name)
    mechanism = robot.mechanism()
    heaviest = max(mechanism.bodies, key=lambda body: body.mass)
    wrong = with_overrides(mechanism, {"body": {heaviest.name: inertial(heaviest, center=heaviest.center + 1e-4)}})
    for right, read in zip(mechanism.bodies, wrong.bodies, strict=True):
        shift = 1e-4 if right.name == heaviest.name else 0.0
        np.testing.assert_allclose(read.center, right.center + shift, atol=1e-12)
        np.testing.assert_allclose(read.inertia, right.inertia, atol=1e-12 * np.abs(right.inertia).max())
        assert read.mass == right.mass
    assert (wrong.gravity == mechanism.gravity).all()
    assert len(wrong.wrenches) == len(mechanism.wrenches)


def test_an_override_of_nothing_is_refused(prr: Case) -> None:
    with pytest.raises(MechanismError, match="mass"):
        with_overrides(prr.mechanism, {"body": {"link1": {"mass": "heavy"}}})


def test_rounding_is_that_of_single_precision(prr: Case, prr_motion: Motion) -> None:
    rounded = faults.rounded(prr_motion)
    assert np.abs(rounded.q - prr_motion.q).max() < 2**-24 * np.abs(prr_motion.q).max() * 1.01
    assert (rounded.law(prr_motion.t).q.astype(np.float32) == rounded.law(prr_motion.t).q).all()
    assert (rounded.assemble(prr_motion.t[:2]).qd == rounded.qd[:2]).all()
    change = relative_error(Noc().compute_efforts(prr, rounded).effort, Noc().compute_efforts(prr, prr_motion).effort)
    assert 1e-9 < change < 1e-5


def test_what_is_judged_has_a_tolerance(prr: Case) -> None:
    assert "analytic/noc" not in compared_sources(prr)
    assert not {"mujoco/as_is", "mujoco/inverse"} & set(compared_sources(prr))
    assert {"analytic/lagrange", "analytic/paper", "mujoco/kkt", "mujoco/forward"} <= set(compared_sources(prr))


@pytest.mark.extended("test_every_robot_has_a_place_for_every_fault_of_its_model")
def test_mutants_writes_table_and_page(loopcheck: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # in this process, which gives out the work
    monkeypatch.setattr(study, "compared_sources", lambda case: ["mujoco/kkt"])
    monkeypatch.setattr(misreadings, "routes", lambda case: [])
    status, out, _ = loopcheck("study", "mutants", "3prr", "--jobs", "1", "--out", tmp_path)
    assert status == 0
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"mutants.csv", "kill_rates.csv", "mutants.html", "mutants.md", "run.json", JOURNAL}
    table = pd.read_csv(tmp_path / "mutants.csv", keep_default_na=False)
    assert list(table.columns) == list(Mutants.tables[TABLE].columns)
    of_route = table[table["source"] == "mujoco/kkt"]
    assert list(of_route["mutant"]) == [fault.key for fault in FAULTS]
    assert list(table.loc[table["source"] == FILE, "mutant"]) == [fault.key for fault in COMMON_FAULTS]
    caught, shared = (int(table["result"].isin(results).sum()) for results in (CAUGHT, ["shared"]))
    of_kkt, of_file = pd.read_csv(tmp_path / "kill_rates.csv").to_dict("records")
    assert of_kkt["above"] == len(of_route) - (of_route["result"] == "not carried").sum()
    assert of_kkt["caught"] + of_file["caught"] == caught
    assert of_kkt["shared"] + of_file["shared"] == shared == 1  # gravity, which MuJoCo takes from the case
    assert re.search(rf"mujoco/kkt\W+{of_kkt['caught']}\W+1\W+{of_kkt['above']}\W", out)
    assert f"{caught} of {caught + 1} faults with an effect above the tolerance of their route were caught" in out
    for name in ("mutants.html", "mutants.md"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert f"{caught} of {caught + 1} faults" in text
        assert "1 more, shared by the route and the reference, by the robot" in text
        assert "shared, caught by the robot" in text
        assert "J̇v" in text


def test_an_unknown_robot_is_one_line(loopcheck: Command, tmp_path: Path) -> None:
    status, _, err = loopcheck("study", "mutants", "3ppr", "--out", tmp_path / "out")
    assert (status, err.count("\n")) == (2, 1)


def _heavier(case: Case) -> Mechanism:
    link = next(body for body in case.mechanism.bodies if body.name == "link1")
    return with_overrides(case.mechanism, {"body": {"link1": {"mass": 2 * link.mass}}})
