"""The measured functions of the bench must compute right results."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loopcheck.analytic.batch import inverse_dynamics, support
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.robots.errors import HarnessError
from loopcheck.robots.mechanism import PointSpring
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, representative_case
from loopcheck.validation.execution.tables import read_tables
from loopcheck.validation.studies.speed import measure, study
from loopcheck.validation.studies.speed.measure import four_bar_chain
from loopcheck.validation.studies.speed.study import TABLE, Speed
from tests.errors import relative_error
from tests.validation.conftest import Command, in_this_process


def test_the_loop_with_pinocchio_agrees_with_noc(prr: Case, prr_motion: Motion) -> None:
    simple_loop = pytest.importorskip("loopcheck.engines.pinocchio.simple_loop", exc_type=ImportError).simple_loop
    loop = simple_loop(prr.mechanism)
    effort = loop.efforts(loop.states(prr_motion.q, prr_motion.qd, prr_motion.qdd))
    assert relative_error(effort, Noc().compute_efforts(prr, prr_motion).effort) < 1e-10


def test_chain_has_its_loops_and_the_batch_agrees_on_it() -> None:
    from loopcheck.validation.studies.speed.measure import _swing

    mechanism = four_bar_chain(3)
    assert (len(mechanism.bodies), len(mechanism.closures), mechanism.na) == (9, 3, 3)
    drive = _swing(mechanism, np.linspace(0, 2 * np.pi, 80))
    traced, plain = (
        inverse_dynamics(mechanism, drive, np.zeros(mechanism.nq, dtype=int), evaluator=evaluator)
        for evaluator in ("numpy", "plain")
    )
    assert traced.plain < len(drive.q) == plain.plain
    assert relative_error(traced.effort, plain.effort) < 1e-12


def test_a_robot_without_gravity_that_is_not_traced_is_measured_in_the_plain_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As if springs between points were an element that the traced equations lack."""
    monkeypatch.setattr(measure, "REPETITIONS", 1)
    monkeypatch.setattr("loopcheck.engines.installed", lambda _: False)  # the engines' own rows take most of the time
    monkeypatch.setattr(support, "KNOWN", {kind: names for kind, names in support.KNOWN.items() if kind != PointSpring})
    andrews = representative_case(load("andrews"))
    assert measure.few_rows(andrews) == measure.sample_rows(andrews) == []
    rows = {row["quantity"]: row for row in measure.robot_rows(andrews, 60)}
    assert rows["batch"]["median"] > 0
    assert rows["left to the plain version"]["median"] == 60
    assert "PointSpring" in rows["tracing, once"]["note"]


def test_small_batches_are_measured_beside_a_loop_over_pinocchio(prr: Case) -> None:
    """Speed is left to the bench; here, each size is measured in both forms."""
    pytest.importorskip("llvmlite")
    pytest.importorskip("loopcheck.engines.pinocchio.simple_loop", exc_type=ImportError)
    ratios = {(row["size"], row["quantity"]) for row in measure.few_rows(prr) if row["unit"] == "-"}
    assert len(ratios) == 12
    assert {size for size, _ in ratios} == {1, 3, 10, 30, 100, 300}


def test_figures_are_written_and_printed(loopcheck: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash of a measurement is reported and leaves the others intact."""

    def rows(subject: str) -> list[dict[str, Any]]:
        spread = {"lowest": 0.1, "median": 0.2, "highest": 0.3}
        return [{"study": "robot", "subject": subject, "quantity": "batch", "unit": "s", "size": 1000, **spread}]

    def crash(_: Case) -> None:
        raise ZeroDivisionError("a slip")

    monkeypatch.setattr(study, "robot_rows", lambda case, samples: rows(case.robot.name))
    monkeypatch.setattr(study, "chain_rows", lambda lengths: rows(f"chain of {lengths[-1]}"))
    monkeypatch.setattr(study, "few_rows", lambda case: [])
    monkeypatch.setattr(study, "startup_rows", lambda case: [])
    monkeypatch.setattr(study, "harness_rows", crash)
    monkeypatch.setattr(study, "sample_rows", lambda case: [])
    with in_this_process():
        status, out, err = loopcheck("study", "speed", "andrews", "--chain", "5", "--out", tmp_path)
    assert (status, "ZeroDivisionError: a slip" in err) == (70, True), err
    assert "robot: chain of 5" in out
    table = read_tables(tmp_path, Speed.tables)[TABLE]
    assert list(table["subject"]) == ["andrews", "chain of 5"]
    assert list(table["median"]) == [0.2, 0.2]


def test_the_answer_is_timed_when_it_is_there() -> None:
    said = "import time; print('Agreement: 2 of 2', flush=True); time.sleep(0.5); print('report: x')"
    answered, whole = study.waited([sys.executable, "-c", said])
    assert answered < whole - 0.4
    with pytest.raises(HarnessError, match="no such thing"):
        study.waited([sys.executable, "-c", "import sys; print('no such thing', file=sys.stderr); sys.exit(2)"])


def test_what_a_user_waits_for_is_measured_over_the_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command once per turn, exact sources and all, the imports in the same turn."""
    asked: list[list[str]] = []

    def waited(command: list[str]) -> tuple[float, float]:
        asked.append(command)
        return (
            (2.0, 2.0) if study.IMPORTS in command else (3.0, 5.0) if "--source=mujoco/kkt" in command else (4.0, 8.0)
        )

    monkeypatch.setattr(study, "waited", waited)
    rows = {row["quantity"]: row["median"] for row in study.startup_rows(representative_case(load("four_bar")))}
    assert len(asked) == 3 * study.RUNS
    assert rows.pop(study.UNIT) == 2.0
    assert rows == {
        "answer, exact sources / imports": 1.5,
        "report, exact sources / imports": 2.5,
        "answer, all sources / imports": 2.0,
        "report, all sources / imports": 4.0,
    }
