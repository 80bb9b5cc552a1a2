"""What the bench measures must compute the right thing."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analytic.batch import inverse_dynamics
from analytic.noc import Noc
from robots.errors import OutputError
from robots.motion import Motion
from robots.robot import Case
from tests.errors import relative_error
from validation.bench.chain import four_bar_chain
from validation.bench.study import COLUMNS, bench_table, few_rows, write_bench


def test_the_loop_with_pinocchio_agrees_with_noc(prr: Case, prr_motion: Motion) -> None:
    simple_loop = pytest.importorskip("engines.pinocchio.simple_loop", exc_type=ImportError).simple_loop
    loop = simple_loop(prr.mechanism)
    effort = loop.efforts(loop.states(prr_motion.q, prr_motion.qd, prr_motion.qdd))
    assert relative_error(effort, Noc().compute_efforts(prr, prr_motion).effort) < 1e-10


def test_chain_has_its_loops_and_the_batch_agrees_on_it() -> None:
    from validation.bench.study import _swing

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
    monkeypatch.setattr("validation.bench.study.REPETITIONS", 1)
    monkeypatch.setattr("engines.installed", lambda _: False)  # the engines' own rows take most of the time
    figures = bench_table(("andrews",), samples=60, chain=1).set_index(["subject", "quantity"])
    medians, notes = figures["median"], figures["note"]
    assert medians["andrews", "batch"] > 0
    assert medians["andrews", "left to the plain version"] == 60
    assert "point_springs" in notes["andrews", "tracing, once"]


def test_small_batches_are_measured_beside_a_loop_over_pinocchio(prr: Case) -> None:
    """Speed is for the bench to tell; here, that each size is measured in both forms."""
    pytest.importorskip("llvmlite")
    pytest.importorskip("engines.pinocchio.simple_loop", exc_type=ImportError)
    ratios = {(row["size"], row["quantity"]) for row in few_rows(prr) if row["unit"] == "-"}
    assert len(ratios) == 12
    assert {size for size, _ in ratios} == {1, 3, 10, 30, 100, 300}


def test_figures_are_written_whole_or_refused(tmp_path: Path) -> None:
    row = ("robot", "3prr", "batch", "µs/sample", 1000, 0.1, 0.2, 0.3, "")
    figures = pd.DataFrame([row], columns=list(COLUMNS)).astype(COLUMNS)
    write_bench(figures, tmp_path / "new")
    assert json.loads((tmp_path / "new" / "bench.json").read_text())["figures"][0]["median"] == 0.2
    pd.testing.assert_frame_equal(pd.read_csv(tmp_path / "new" / "bench.csv", keep_default_na=False), figures)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        write_bench(figures, tmp_path / "file")
