"""The public benchmark: its files, its score, and the table of its page."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from docs.benchmark import files
from loopcheck.analytic.dynamics.lagrange import Lagrange
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, representative_case
from tests.errors import relative_error

FOLDER = Path(files.__file__).parent


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of a robot, at the samples of its report."""
    monkeypatch.setattr(files, "ROBOTS", ("3prr",))
    monkeypatch.setattr(files, "SAMPLES", len(prescribe(representative_case(load("3prr"))).t))
    assert len([*files.write(tmp_path)]) == 1
    return tmp_path


def test_written_efforts_are_those_of_another_derivation(written: Path) -> None:
    """`lagrange` shares no dynamics with the oracle."""
    case = representative_case(load("3prr"))
    effort = Lagrange().compute_efforts(case, prescribe(case)).effort
    path = written / "submitted.csv"
    np.savetxt(path, effort, fmt="%.17g", delimiter=",", header="q1,q2,q3")
    score = files.score(written, "3prr", path)
    assert float(score.split()[3]) < 1e-11, score
    start = pd.read_csv(written / "3prr.start.csv")
    assert start.columns[:3].tolist() == ["gravity.x", "gravity.y", "gravity.z"]
    np.testing.assert_array_equal(start.iloc[0, :3], case.mechanism.gravity)


def test_a_wrong_effort_is_scored_over_the_peak_of_its_actuator(written: Path) -> None:
    effort = np.loadtxt(written / "3prr.efforts.csv", delimiter=",", skiprows=1)
    effort[17, 1] += 0.25 * np.abs(effort[:, 1]).max()
    path = written / "submitted.csv"
    np.savetxt(path, effort, fmt="%.17g", delimiter=",", header="q1,q2,q3")
    assert files.score(written, "3prr", path) == "3prr: largest error 0.25 of the peak of its actuator"
    np.savetxt(path, effort[1:], delimiter=",", header="q1,q2,q3")
    assert "shape must be" in files.score(written, "3prr", path)


def test_the_loop_with_pinocchio_agrees_with_noc(prr: Case, prr_motion: Motion) -> None:
    simple_loop = pytest.importorskip("docs.benchmark.pinocchio_loop", exc_type=ImportError).simple_loop
    loop = simple_loop(prr.mechanism)
    effort = loop.efforts(loop.states(prr_motion.q, prr_motion.qd, prr_motion.qdd))
    assert relative_error(effort, Noc().compute_efforts(prr, prr_motion).effort) < 1e-10


def test_the_page_shows_the_stored_table() -> None:
    table = pd.read_csv(FOLDER / "rivals.csv", dtype=str, keep_default_na=False)
    page = (FOLDER / "README.md").read_text().replace(" ", "")
    for row in table.itertuples(index=False):
        assert f"|{'|'.join(row)}|".replace(" ", "").replace("`", "") in page.replace("`", "")
