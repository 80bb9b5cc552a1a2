"""`check --reactions`: tables, verdicts in the exit status, the section of the page and the line on the terminal."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from loopcheck.analytic.dynamics import reactions as analytic
from loopcheck.analytic.dynamics.recursive_wrenches import recursive_wrenches
from loopcheck.analytic.dynamics.wrenches import Wrenches
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import poses
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.mujoco import wrenches
from loopcheck.engines.mujoco.routes.as_is import MujocoAsIs
from loopcheck.engines.mujoco.routes.forward import MujocoForward
from loopcheck.robots.connections import connections
from loopcheck.robots.efforts import EffortHistory, Source, run_of
from loopcheck.robots.errors import SingularityError
from loopcheck.robots.mechanism import WORLD, Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, make_case, representative_case
from loopcheck.validation.check.efforts.evaluate import evaluate
from loopcheck.validation.check.efforts.outcome import Ran, Unmodified
from loopcheck.validation.check.efforts.rules import Evidence
from loopcheck.validation.check.reactions import (
    NO_LOAD,
    WRONG_EFFORTS,
    Rows,
    reaction_rows,
    reaction_tables,
    reading_rows,
)
from loopcheck.validation.check.sections.reactions import reactions_line, reactions_section
from loopcheck.validation.common import sources
from loopcheck.validation.common.results import TABLES, Results, read, table
from loopcheck.validation.common.tolerances import registered
from loopcheck.validation.common.verdicts import CASE, exit_verdicts
from loopcheck.validation.execution.journal import Task
from loopcheck.validation.report import schematic
from loopcheck.validation.report.blocks import Table
from loopcheck.validation.report.geometry import point_rows
from tests.conftest import MODELS, CaseMaker
from tests.cpu_time import extended_but
from tests.exported_legs import Leg
from tests.validation.conftest import Command, exit_status, in_this_process

COMPONENTS = {"moment.z", "force.x", "force.y"}
"""Those that a planar loop determines."""


ANALYTIC = ("analytic/noc", "analytic/lagrange")
"""The two ways."""


@pytest.fixture(scope="module")
def case() -> Case:
    return representative_case(load("four_bar"))


@pytest.fixture(scope="module")
def rows(case: Case) -> Rows:
    return reaction_rows(case, prescribe(case))


def _results(rows: Rows) -> Results:
    frames = {name: table(name, []) for name in TABLES}
    loads = {name: table(name, getattr(rows, name)) for name in ("reactions", "connections")}
    return Results(**frames | loads, run={})


def test_values_of_what_the_loop_determines_alone(rows: Rows) -> None:
    """Nine times, six components; the closure is a ball of the file, whose missing moments are no finding."""
    frame = _results(rows).reactions
    assert len(frame) == 4 * 6 * 9
    determined = frame[frame["component"].isin(COMPONENTS)]
    assert set(determined["unique"]) == {"yes"}
    assert determined["value"].notna().all()
    assert determined["value"].abs().max() > 10
    pin = determined[(determined["connection"] == "rocker") & (determined["component"] == "moment.z")]
    assert (pin["value"] == 0).all()  # not its round-off
    others = frame[~frame["component"].isin(COMPONENTS)]
    assert others["value"].isna().all()
    assert set(others["unique"]) == {"no", "no: the file closes C as a ball"}
    assert set(frame[frame["component"].str.startswith("force")]["unit"]) == {"N"}


@pytest.mark.parametrize("name", ["four_bar", "6spu"])
def test_forces_in_world_axes_accelerate_each_body(name: str) -> None:
    """F = m (a − g) less the external force, a by differences of the places of its mass centre."""
    case, h = representative_case(load(name)), 1e-4
    mechanism, motion = case.mechanism, prescribe(case, dt=0.05)
    frame = pd.DataFrame(reaction_rows(case, motion).reactions)
    t = frame["t"].unique()[2]
    at = frame[(frame["t"] == t) & frame["component"].str.startswith("force")]
    forces = at.pivot(index="connection", columns="component", values="in_world")
    on_bodies = np.zeros((len(mechanism.bodies), 3))
    for connection in connections(mechanism):
        closure, parent = connection.closure, mechanism.bodies[connection.body].parent
        for body, sign in ((connection.body, 1), (closure.body2 if closure else parent, -1)):
            if body != WORLD:
                on_bodies[body] += sign * forces.loc[connection.name].to_numpy(float)
    c = poses(mechanism, motion.assemble(t + h * np.array([-1.0, 0, 1])).q).c
    masses = np.array([body.mass for body in mechanism.bodies])
    needed = masses[:, None] * ((c[0] - 2 * c[1] + c[2]) / h**2 - mechanism.gravity)
    for load_ in mechanism.wrenches:
        needed[load_.body] -= load_.force
    known = np.isfinite(on_bodies)
    assert known[:, :2].all()
    assert known.all() == (name == "6spu")
    np.testing.assert_allclose(on_bodies[known], needed[known], atol=1e-5 * np.abs(needed).max())


def _pictures(case: Case, monkeypatch: pytest.MonkeyPatch, dt: float | None = None) -> list[Any]:
    """Arguments of the drawn figures of the page."""
    drawn: list[Any] = []

    def figure(*args: Any) -> str:
        drawn.append(args)
        return "<svg/>"

    monkeypatch.setattr(schematic, "forces_figure", figure)
    motion = prescribe(case, dt=dt)
    points = [{**dict(zip(CASE, case.key, strict=True)), **row} for row in point_rows(case.mechanism, motion, None)]
    results = replace(_results(reaction_rows(case, motion)), points=table("points", points))
    (section,) = reactions_section(results)
    pictures = [picture for task in section.blocks if isinstance(task, Task) for picture in task.function(*task.args)]
    assert len(pictures) == len(drawn)
    return drawn


def test_pictures_show_the_largest_forces_at_their_pins(
    case: Case, rows: Rows, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the four-bar: all forces in its plane, at three times, the time of the largest among them."""
    ((scene, samples, forces),) = _pictures(case, monkeypatch)
    frame = _results(rows).reactions.pivot(index=["connection", "t"], columns="component", values="in_world")
    assert [*forces] == ["crank", "coupler", "rocker", "C"]
    for name, (places, vectors) in forces.items():
        expected = frame.loc[name][["force.x", "force.y"]].loc[scene.t[samples]]
        assert (vectors == expected.to_numpy()).all()
        joints = [(body, names.index(name)) for body, names in scene.names.items() if name in names and body != "world"]
        for body, k in joints:
            np.testing.assert_allclose(places, scene.bodies[body][samples, k], atol=1e-12)
    largest = (frame["force.x"] ** 2 + frame["force.y"] ** 2).groupby("t").max()
    assert largest.idxmax() in scene.t[samples]
    assert len(samples) == 3


def test_pictures_leave_out_what_is_not_determined(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _pictures(representative_case(load("bricard")), monkeypatch) == []


def test_pictures_of_a_short_motion_show_its_times(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    ((scene, samples, _),) = _pictures(case, monkeypatch, dt=0.25)
    assert samples == [0, 1]
    assert len(scene.t) == 2


def test_arrows_have_the_directions_and_the_scale_of_the_forces(case: Case) -> None:
    """Two forces at one place: their arrows, and that of 5 N, in the places of the drawing."""
    scene = schematic.scene(pd.DataFrame(list(point_rows(case.mechanism, prescribe(case), None))))
    assert scene is not None
    at = np.zeros((1, 2))
    drawn: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schematic, "_draw_arrow", lambda _, start, end, *__, **___: drawn.append(end - start))
        svg = schematic.forces_figure(
            scene, [0], {"a": (at, np.array([[0.0, 10.0]])), "b": (at, np.array([[-4.0, 0]])), "none": (at, 0 * at)}
        )
    up, left, scale = drawn
    np.testing.assert_allclose([up, left], np.array([[0, 2], [-0.8, 0]]) * scale[0], atol=1e-15)
    assert svg is not None
    assert schematic.forces_figure(scene, [0], {"a": (at, np.zeros((1, 2)))}) is None


def test_largest_loads_are_those_of_the_whole_motion(case: Case, rows: Rows) -> None:
    """Not of the nine times alone; forces of the second way are at these."""
    results, motion = _results(rows), prescribe(case)
    first, second = (results.connections[results.connections["source"] == name] for name in ANALYTIC)
    second = second.set_index("connection")
    state = State(mechanism=case.mechanism, q=motion.q, qd=motion.qd)
    crank = recursive_wrenches(state, motion.qdd, sources.load("analytic/noc").compute_efforts(case, motion).effort)
    lengths = np.linalg.norm(crank.wrench[:, 0, 3:5], axis=1)
    for row in first.to_dict("records"):
        of = results.reactions[results.reactions["connection"] == row["connection"]]
        forces = of[of["component"].isin(["force.x", "force.y"])].pivot(index="t", columns="component", values="value")
        at_samples = np.hypot(*forces.to_numpy().T)
        assert second.loc[row["connection"], "force"] == pytest.approx(at_samples.max())
        assert row["force"] >= at_samples.max() * (1 - 1e-12)
        if row["connection"] == "crank":
            assert row["force"] == pytest.approx(lengths.max())
            assert row["force_t"] == motion.t[lengths.argmax()]
        assert row["determined"] == 3
    assert (second["verdict"] == "agree").all()
    assert (second["error"] < second["tolerance"]).all()
    assert set(second["tolerance"]) == {1e-12}


def test_a_difference_of_both_ways_disagrees(case: Case, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body heavier by 1 ppm in one of them: the rows, the status, the page and the line on the terminal."""
    known = _results(rows)
    assert exit_verdicts(known).count("agree") == 4

    def heavier(state: State, *more: np.ndarray) -> Wrenches:
        mechanism = state.mechanism.with_mass("coupler", 1.1 * (1 + 1e-6))
        return recursive_wrenches(replace(state, mechanism=mechanism), *more)

    monkeypatch.setattr(analytic, "recursive_wrenches", heavier)
    wrong = _results(reaction_rows(case, prescribe(case)))
    assert "disagree" in exit_verdicts(wrong)
    assert exit_status(wrong) == 1
    (_, line), (section,) = reactions_line(wrong), reactions_section(wrong)
    assert "(disagree)" in line
    cells = section.blocks[1]
    assert isinstance(cells, Table)
    assert any(row[-1].kind == "disagree" for row in cells.rows)


def test_rounded_loops_agree_to_their_accuracy(model_case: CaseMaker, tmp_path: Path) -> None:
    """Both ways use the rows that the file resolves, and differ by a part of the gap that its digits leave."""
    path = tmp_path / "leg.xml"
    path.write_text(Leg(carrier="hinge", closure="connect", digits=4, seed=1).text(), encoding="utf-8")
    case = model_case(path, amplitude=0.3, duration=0.1, frequency=2.0)
    loads = _results(reaction_rows(case, prescribe(case))).connections
    loads = loads[loads["source"] == "analytic/lagrange"]
    assert set(loads["verdict"]) == {"agree"}
    assert loads["error"].max() > 1e-12
    assert set(loads["tolerance"]) == {1e-12 + case.mechanism.closing.accuracy}


@pytest.mark.parametrize(("gaps", "is_found"), [(0.01, False), (100.0, True)])
def test_a_difference_beyond_the_gap_of_rounded_loops_disagrees(
    gaps: float, is_found: bool, model_case: CaseMaker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "leg.xml"
    path.write_text(Leg(carrier="hinge", closure="connect", digits=4, seed=1).text(), encoding="utf-8")
    case = model_case(path, amplitude=0.3, duration=0.1, frequency=2.0)

    def heavier(*state: Any) -> Wrenches:
        found = recursive_wrenches(*state)
        return replace(found, wrench=found.wrench * (1 + gaps * case.mechanism.closing.accuracy))

    monkeypatch.setattr(analytic, "recursive_wrenches", heavier)
    loads = _results(reaction_rows(case, prescribe(case))).connections
    assert ("disagree" in set(loads["verdict"])) == is_found


def test_modes_without_a_motion_have_no_rows() -> None:
    """The singular mode of the 3-RRR has an error in the place of its motion; the regular mode has its rows."""
    cases = [make_case(load("3rrr"), variant="default", mode=mode, configuration="vertical") for mode in ("mmp", "pmp")]
    with pytest.raises(SingularityError) as caught:
        prescribe(cases[0], dt=0.1)
    motions = {cases[0].key: caught.value, cases[1].key: prescribe(cases[1], dt=0.1)}
    output = SimpleNamespace(motions=motions, outcomes=[])
    pool = SimpleNamespace(results=lambda tasks, _: [task.function(*task.args) for task in tasks])
    tables = reaction_tables(cases, output, None, pool, table("summary", []))  # type: ignore[arg-type]
    assert {frame["mode"].unique().item() for frame in tables.values()} == {"pmp"}
    assert set(tables["connections"]["verdict"]) == {"reference", "agree"}


def test_a_failure_is_a_row(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("loopcheck.validation.check.reactions.reactions", fails)
    failed = _results(reaction_rows(case, prescribe(case)))
    assert list(failed.connections["verdict"]) == ["not run"]
    assert "ZeroDivisionError" in failed.connections["note"].iloc[0]
    (line,) = reactions_line(failed)
    assert "agree on 0 of 1" in line
    assert list(reactions_section(failed))


def test_nothing_is_shown_without_the_option() -> None:
    nothing = _results(Rows([], []))
    assert not [*reactions_line(nothing), *reactions_section(nothing)]


def test_the_command_writes_both_tables(loopcheck: Command, tmp_path: Path, tables_only: None) -> None:
    with in_this_process():
        status, out, err = loopcheck(
            "check", "four_bar", "--configuration", "vertical", "--source", "analytic/noc", "--reactions",
            "--dt", "0.05", "--jobs", "1", "--out", tmp_path,
        )  # fmt: skip
    assert status == 0, out + err
    assert "agree on 4 of 4 connections" in out.replace("\n", " ")
    assert (tmp_path / "reactions.csv").read_text(encoding="utf-8").count("\n") == 1 + 4 * 6 * 6
    assert list(read(tmp_path).connections["verdict"]) == ["reference"] * 4 + ["agree"] * 4


ROUTE = "mujoco/forward"


@pytest.fixture(scope="module")
def readings(case: Case, rows: Rows) -> Rows:
    return _readings(case, prescribe(case), rows)


def _ran(case: Case, motion: Motion, route: str = ROUTE) -> Ran:
    outcome = evaluate(case, motion, route, registered()[route].limits, reads_wrenches=True)
    assert isinstance(outcome, Ran)
    return outcome


def _readings(case: Case, motion: Motion, analytic: Rows, reason: str = "") -> Rows:
    """Of a simulation that reads wrenches, against the analytic rows."""
    assert analytic.found is not None
    return reading_rows(_ran(case, motion), motion, analytic.found, registered()[ROUTE], reason)


def test_readings_of_an_engine_agree_at_each_connection(readings: Rows) -> None:
    loads = _results(readings).connections
    assert [*zip(loads["reading"], loads["connection"], strict=True)] == [
        *(("cfrc_int", name) for name in ("crank", "coupler", "rocker")),
        ("efc_force", "C"),
    ]
    assert set(loads["verdict"]) == {"agree"}
    assert (loads["error"] > 0).all()  # of a simulation, not of our equations
    assert set(loads["determined"]) == {3}


@pytest.mark.parametrize("fault", ["sign", "axes", "point", "missing", "undetermined"])
def test_a_wrong_reading_is_found(case: Case, rows: Rows, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the coupler alone: the others still agree; components that are not given are not judged."""
    own = wrenches.wrenches

    def wrong(mechanism: Mechanism, model: object, data: object) -> dict[str, np.ndarray]:
        read = {name: wrench.copy() for name, wrench in own(mechanism, model, data).items()}
        wrench = read["cfrc_int"][1]
        if fault == "sign":
            wrench[:] = -wrench
        elif fault == "axes":
            wrench[3:5] = wrench[4:2:-1]
        elif fault == "point":
            wrench[:3] += np.cross([1e-4, 0, 0], wrench[3:])
        elif fault == "missing":
            wrench[[2, 3]] = np.nan
        else:
            wrench[1:] = np.nan
        return read

    monkeypatch.setattr("loopcheck.engines.mujoco.routes.forward.wrenches", wrong)
    loads = _results(_readings(case, prescribe(case), rows)).connections
    verdicts = dict(zip(loads["connection"], loads["verdict"], strict=True))
    verdict, determined = {"missing": ("agree", 1), "undetermined": ("informational", 0)}.get(fault, ("disagree", 3))
    assert verdicts == dict.fromkeys(verdicts, "agree") | {"coupler": verdict}
    assert loads.loc[loads["connection"] == "coupler", "determined"].item() == determined


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_reading_that_is_lost_on_the_way_is_not_compared(
    case: Case, rows: Rows, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not agree by its other times."""
    own, samples = wrenches.wrenches, iter(range(10**6))

    def lost(*state: Any) -> dict[str, np.ndarray]:
        read = {name: wrench.copy() for name, wrench in own(*state).items()}
        if next(samples) % 7 == 5:
            read["cfrc_int"][1, 3] = value
        return read

    monkeypatch.setattr("loopcheck.engines.mujoco.routes.forward.wrenches", lost)
    (row,) = _readings(case, prescribe(case), rows).connections
    assert row["verdict"] == "not run"
    assert "cfrc_int must be finite" in row["note"]


def test_a_route_without_a_limit_is_not_judged(case: Case, rows: Rows) -> None:
    assert rows.found is not None
    motion, unlimited = prescribe(case), registered()[ROUTE].model_copy(update={"relative_error": None})
    results = _results(reading_rows(_ran(case, motion), motion, rows.found, unlimited))
    (line,) = reactions_line(results)
    assert line.endswith("; not judged")  # the accuracy is of unmodified simulations
    loads = results.connections
    assert set(loads["verdict"]) == {"informational"}
    assert not any(loads["note"])
    assert (loads["error"] > 0).all()


def test_no_engine_is_judged_that_simulates_another_robot(case: Case, rows: Rows) -> None:
    blocked = _readings(case, prescribe(case), rows, "mass of 'rocker' differs")
    loads = _results(blocked).connections
    assert set(loads["verdict"]) == {"not comparable"}
    assert set(loads["note"]) == {"mass of 'rocker' differs"}


@pytest.mark.extended("test_readings_of_an_engine_agree_at_each_connection")
def test_redundant_drives_are_compared_by_the_efforts_of_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine leaves a motor off, so that its wrenches are not those of the efforts of least norm."""
    case = representative_case(load("2pur2rpu"))
    motion = prescribe(case)
    analytic = reaction_rows(case, motion)
    for expected in ("agree", "disagree"):
        loads = _results(_readings(case, motion, analytic)).connections
        assert expected in set(loads["verdict"])
        assert ("disagree" in set(loads["verdict"])) == (expected == "disagree")
        monkeypatch.setattr("loopcheck.validation.check.reactions.moving_part", lambda *_: None)


def test_the_reading_lacks_the_force_that_carries_a_part_of_the_weight(model_case: CaseMaker) -> None:
    """`gravcomp` of a half: by Newton's second law the slide does not carry it, but `cfrc_int` reads so."""
    case = model_case(MODELS / "ball_and_universal.xml", configuration="vertical", amplitude=0.1, duration=0.3)
    motion = prescribe(case, dt=0.05)
    loads = _results(_readings(case, motion, reaction_rows(case, motion))).connections
    slide = loads[loads["connection"] == "slide"].to_dict("records")[0]
    assert slide["verdict"] == "disagree"
    assert slide["force_error"] == pytest.approx(0.5 * 0.4 * 9.81, rel=1e-6)
    assert slide["note"].startswith("cfrc_int is wrong in any convention: without gravity compensation")
    assert set(loads[loads["connection"] != "slide"]["verdict"]) == {"agree"}


def test_without_any_load_nothing_is_judged(case: Case) -> None:
    """The weightless robot at rest: a difference of round-off has no size to be measured by."""
    still = replace(case, mechanism=replace(case.mechanism, gravity=np.zeros(3)))
    motion = prescribe(case)
    rest = replace(motion, q=np.tile(motion.q[0], (len(motion.t), 1)), qd=0 * motion.qd, qdd=0 * motion.qdd)
    found = reaction_rows(still, rest)
    assert found.found is not None
    verdicts = {row["verdict"] for row in found.connections if row["source"] == "analytic/lagrange"}
    assert verdicts == {"not comparable"}
    assert {row["note"] for row in found.connections if row["verdict"] == "not comparable"} == {NO_LOAD}


@pytest.fixture(scope="module")
def unmodified(case: Case) -> Unmodified:
    """The four-bar with its own soft pin."""
    outcome = _ran(case, prescribe(case), "mujoco/as_is")
    assert isinstance(outcome, Unmodified)
    return outcome


def _loads(unmodified: Unmodified, analytic: Rows, accuracy: float | None) -> pd.DataFrame:
    tolerance = registered()[unmodified.source].model_copy(update={"relative_error": accuracy})
    assert analytic.found is not None
    found = reading_rows(unmodified, prescribe(unmodified.case), analytic.found, tolerance)
    return _results(found).connections


SOFT = "runs an unmodified simulation and estimates the noise floors of its log"


@pytest.mark.parametrize(
    ("accuracy", "verdict"),
    [
        pytest.param(1e-3, "disagree", marks=pytest.mark.evidence(SOFT, seconds=1.2)),
        *extended_but([], [(0.05, "agree"), (None, "informational")], "test_soft_pins_are_judged_by_the_accuracy"),
    ],
)
def test_soft_pins_are_judged_by_the_accuracy(
    rows: Rows, unmodified: Unmodified, accuracy: float | None, verdict: str
) -> None:
    """Of all connections: 1 to 2 % by the softness, as of the efforts."""
    loads = _loads(unmodified, rows, accuracy)
    assert list(loads["connection"]) == ["crank", "coupler", "rocker", "C"]
    assert set(loads["verdict"]) == {verdict}
    assert loads["error"].between(5e-3, 2e-2).all()
    reference = _results(rows).connections
    of_reference = reference[reference["source"] == "analytic/noc"].set_index("connection")["force"]
    np.testing.assert_allclose(loads.set_index("connection")["force"], of_reference[loads["connection"]], rtol=0.03)
    assert set(loads["determined"]) == {3}
    C = loads[loads["connection"] == "C"]
    assert (C["force_error"] / C["error"] > C["force"] / 2).all()
    assert (C["moment_error"] < 1e-12).all()  # it is a ball
    assert loads.loc[loads["connection"] == "crank", "force_t"].item() == pytest.approx(0.125, abs=0.01)


@pytest.mark.parametrize(
    ("accuracy", "verdict"),
    [
        *extended_but([], [(1e-3, "not comparable"), (1.0, "agree")], "test_soft_pins_are_judged_by_the_accuracy"),
    ],
)
def test_a_run_that_does_not_settle_is_not_compared(
    rows: Rows, unmodified: Unmodified, accuracy: float, verdict: str
) -> None:
    """Unless its wrenches are within the accuracy: then the rest of the transient is too."""
    restless = replace(unmodified.settled, reason="the initial transient lasts", window=np.inf)
    loads = _loads(replace(unmodified, settled=restless), rows, accuracy)
    assert set(loads["verdict"]) == {verdict}
    assert ((loads["note"] == restless.reason) == (verdict == "not comparable")).all()


def test_reading_wrenches_changes_nothing_of_an_unmodified_run(case: Case, unmodified: Unmodified) -> None:
    """Its restart and its slower run, which are not compared, read none."""
    outcome = evaluate(case, prescribe(case), "mujoco/as_is")
    assert isinstance(outcome, Unmodified)
    run, before = run_of(unmodified.history), run_of(outcome.history)
    assert (run.log.effort == before.log.effort).all()
    assert (run.log.q == before.log.q).all()
    assert [*run.log.wrenches] == ["crank", "coupler", "rocker", "C"]
    assert run.slower is not None
    assert not any(log.wrenches for log in (before.log, run.restarted, run.slower[1]))


@pytest.mark.parametrize(("reason", "verdicts"), [("", {"informational"}), ("mass of 'rocker' differs", set())])
def test_no_unmodified_run_of_another_robot_is_judged(
    rows: Rows, unmodified: Unmodified, reason: str, verdicts: set[str]
) -> None:
    """The row of its efforts names the reason."""
    assert rows.found is not None
    motion, tolerance = prescribe(unmodified.case), registered()["mujoco/as_is"]
    found = reading_rows(unmodified, motion, rows.found, tolerance, reason)
    assert {row["verdict"] for row in found.connections} == verdicts


@pytest.mark.parametrize(("verdict", "cause"), [("disagree", WRONG_EFFORTS), ("agree", "")])
def test_reasons_against_an_engine_reach_its_readings(
    case: Case, rows: Rows, readings: Rows, verdict: str, cause: str
) -> None:
    """Outcomes without readings have no task."""
    motion = prescribe(case)
    asked: list[Task] = []
    outcomes = [evaluate(case, motion, "mujoco/kkt", reads_wrenches=True), _ran(case, motion)]

    def results(tasks: Sequence[Task], _: str) -> list[Rows]:
        asked.extend(tasks)
        return [rows if task.function is reaction_rows else readings for task in tasks]

    output = SimpleNamespace(motions={case.key: motion}, outcomes=outcomes)
    evidence = Evidence(blocking_reasons={(case.key, "mujoco"): "mass of 'rocker' differs"}, tolerances=registered())
    row = {**dict(zip(CASE, case.key, strict=True)), "source": outcomes[1].source, "verdict": verdict}
    reaction_tables([case], output, evidence, SimpleNamespace(results=results), pd.DataFrame([row]))  # type: ignore[arg-type]
    assert [task.function for task in asked] == [reaction_rows, reading_rows]
    assert asked[1].args[0] is outcomes[1]
    assert asked[1].args[-2:] == ("mass of 'rocker' differs", cause)


def test_wrong_efforts_are_the_cause_of_wrong_forces(case: Case, rows: Rows) -> None:
    """Not a fault that the reading has in other robots."""
    motion, assumed = prescribe(case), rows.found
    assert assumed is not None
    ran = _ran(case, motion)
    larger = {name: 1.1 * wrench for name, wrench in ran.wrenches.items()}
    ran = replace(ran, history=replace(ran.history, wrenches=larger))
    found = reading_rows(ran, motion, assumed, registered()["mujoco/forward"], "", WRONG_EFFORTS)
    assert {(row["verdict"], row["note"]) for row in found.connections} == {("disagree", WRONG_EFFORTS)}


def test_forces_that_are_not_judged_are_said_not_to_be(rows: Rows, unmodified: Unmodified) -> None:
    assert rows.found is not None
    found = reading_rows(unmodified, prescribe(unmodified.case), rows.found, registered()["mujoco/as_is"])
    (line,) = reactions_line(_results(found))
    assert re.fullmatch(
        r"mujoco/as_is: forces on 4 connections, largest error \S+; not judged without --accuracy", line
    )


@pytest.mark.parametrize(
    "route",
    [
        pytest.param(MujocoForward, marks=pytest.mark.evidence("a command that simulates", seconds=1.2)),
        *extended_but([], [MujocoAsIs], "test_each_motion_is_simulated_once"),
    ],
)
def test_each_motion_is_simulated_once(
    route: type[Source], loopcheck: Command, tmp_path: Path, tables_only: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where wrenches are read: no run for the efforts, and another for the wrenches."""
    runs: list[bytes] = []
    compute = route.compute_efforts

    def counted(source: Source, case: Case, motion: Motion) -> EffortHistory:
        runs.append(motion.q.tobytes())
        return compute(source, case, motion)

    monkeypatch.setattr(route, "compute_efforts", counted)
    with in_this_process():
        loopcheck(
            "check", "four_bar", "--configuration", "vertical", "--source", route.name, "--dt", "0.05", "--reactions",
            "--jobs", "1", "--out", tmp_path,
        )  # fmt: skip
    assert len(runs) == len(set(runs)) == (1 if route is MujocoForward else 2)  # as_is: the random motion too
    assert route.name in set(read(tmp_path).connections["source"])
