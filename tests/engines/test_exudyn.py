"""Exudyn's route against the reference on many kinds of mechanisms, and its limits."""

import os
import subprocess
import sys
from collections.abc import Sequence
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import loopcheck
from loopcheck import engines
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.efforts import Deviation, EffortHistory, Rung
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from tests.engines.mechanisms import Own, reference
from tests.errors import relative_error
from tests.faults.adapters import set_to


@pytest.fixture(autouse=True)
def exudyn() -> Any:
    return pytest.importorskip("exudyn")


def run(case: Case, motion: Motion) -> EffortHistory:
    return engines.load("exudyn/forward").compute_efforts(case, motion)


def at_steps(case: Case, motion: Motion, parts: Sequence[int]) -> EffortHistory:
    from loopcheck.engines.exudyn.routes.forward import ExudynForward, Settings

    return ExudynForward(Settings(parts=tuple(parts))).compute_efforts(case, motion)


def test_extrapolation_takes_away_the_square_of_the_step(prr: Case, prr_motion: Motion) -> None:
    """Two steps leave an error of at least fourth order, far below that of the finer step."""
    wanted = reference(prr, prr_motion)
    histories = [at_steps(prr, prr_motion, parts) for parts in ((1, 2), (2, 4))]
    left = [np.abs(history.effort - wanted).max() for history in histories]
    finest = [np.abs(history.ladder[-1].effort - wanted).max() for history in histories]
    assert left[0] < finest[0] / 50
    assert left[1] < finest[1] / 500
    assert np.log2(left[0] / left[1]) > 3.5


@pytest.mark.parametrize("parts", [(2, 4), (4, 8)])
def test_the_estimated_error_of_two_steps_bounds_their_error(
    parts: Sequence[int], prr: Case, prr_motion: Motion
) -> None:
    """From the two steps alone, it is up to ten times the error that the reference shows."""
    from loopcheck.engines.exudyn.routes.forward import _left

    motion = prr_motion.assemble(prr_motion.t[:41])
    history = at_steps(prr, motion, parts)
    error = relative_error(history.effort, reference(prr, motion))
    assert error < _left(prr_motion.dt, history.ladder) < 10 * error
    assert _left(prr_motion.dt, history.ladder[:1]) == inf


def test_the_estimated_error_is_a_quarter_of_the_second_derivative_of_the_first_term() -> None:
    """Of errors h² sin(3t) beside efforts of 10; the extrapolation leaves a term times the squares of both steps."""
    from loopcheck.engines.exudyn.routes.forward import _left

    t = np.arange(0, 2, 0.01)
    ladder = [
        Rung(
            dt=dt,
            effort=(10 + dt**2 * np.sin(3 * t))[:, None],
            closure_drift=Deviation(),
            tracking_error=Deviation(),
            wall_time=0.0,
        )
        for dt in (0.5, 0.01, 0.005)
    ]
    assert _left(0.01, ladder) == pytest.approx(9 / 4 * 0.01**2 * 0.005**2 / 10, rel=1e-3)


def test_the_error_of_two_steps_is_unknown_for_two_samples(prr: Case, prr_motion: Motion) -> None:
    from loopcheck.engines.exudyn.routes.forward import _left

    history = at_steps(prr, prr_motion.assemble(prr_motion.t[:2]), (2, 4))
    assert _left(prr_motion.dt, history.ladder) == inf


def test_a_start_without_accelerations_is_never_forgotten(prr: Case, prr_motion: Motion) -> None:
    """Without the accelerations that the motion has, the trapezoidal rule rings from beginning to end."""
    late = set_to("exudyn/forward", exact_start=False).compute_efforts(prr, prr_motion)
    assert relative_error(late.effort, reference(prr, prr_motion)) > 1e-3


def test_mass_matrix_and_forces_are_those_of_the_joints(own: Own) -> None:
    """M q̈ + bias = passive + Sᵀ τ + Jᵀ λ, with the reference's efforts, with springs, dampers and rotors."""
    case = own("five_bar")
    motion = prescribe(case)
    at = [20, 70]
    terms = engines.matrices("exudyn", case.mechanism, motion.q[at], motion.qd[at])
    S, tau = case.mechanism.selection, reference(case, motion)[at]
    for k, n in enumerate(at):
        left = terms.M[k] @ motion.qdd[n] + terms.bias[k] - terms.passive[k] - S.T @ tau[k]
        multipliers = np.linalg.lstsq(terms.J[k].T, left, rcond=1e-9)[0]
        np.testing.assert_allclose(terms.J[k].T @ multipliers, left, atol=1e-12 * np.abs(tau).max())


@pytest.mark.evidence("a process of its own", seconds=1)
def test_exudyn_prints_nothing_and_leaves_no_file(tmp_path: Path) -> None:
    """In a process of its own, as Exudyn prints below Python, also when a simulation fails."""
    script = (
        "import numpy as np\n"
        "from dataclasses import replace\n"
        "from loopcheck import engines\n"
        "from loopcheck.analytic.motion.prescribe import prescribe\n"
        "from loopcheck.robots.errors import EngineError\n"
        "from loopcheck.robots.motion import Drive\n"
        "from loopcheck.robots.robot import load, make_case\n"
        "case = make_case(load('slider_crank'), variant='default', mode='home', configuration='vertical')\n"
        "motion, route = prescribe(case), engines.load('exudyn/forward')\n"
        "route.compute_efforts(case, motion)\n"
        "nan = lambda t: Drive(*(np.full((len(t), 1), np.nan) for _ in range(3)))\n"
        "try:\n"
        "    route.compute_efforts(case, replace(motion, law=nan))\n"
        "except EngineError:\n"
        "    print('failed as wanted')\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(loopcheck.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("failed as wanted\n", "")
    assert list(tmp_path.iterdir()) == []
