"""MuJoCo Warp, if installed: the user's file in single precision, read back, stepped, compared with MuJoCo."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from loopcheck import engines
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.efforts import EffortHistory
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, representative_case
from loopcheck.validation.check.audit.audit import audit, blocking_reasons, expected_terms
from loopcheck.validation.check.efforts.as_is import settled
from loopcheck.validation.common import sources
from tests.conftest import CaseMaker

pytest.importorskip("mujoco_warp")
SAME = 0.05
"""Largest ratio of a file's errors in MuJoCo and in its port, for soft loops [-]."""


@cache
def four_bar() -> tuple[Case, Motion]:
    """The shortest part of it that settles."""
    case = representative_case(load("four_bar"))
    motion = prescribe(case)
    return case, motion.assemble(motion.t[motion.t < 0.3])


@cache
def history(route: str) -> EffortHistory:
    case, motion = four_bar()
    return engines.load(route).compute_efforts(case, motion)


@pytest.mark.extended("test_what_it_would_drop_is_refused_with_what_it_refuses")
def test_it_errs_as_mujoco_does_but_for_its_digits() -> None:
    """Its own step, in its own precision: near MuJoCo's error, and never equal to it."""
    case, _ = four_bar()
    own, double = history("mujoco_warp/as_is").as_is, history("mujoco/as_is").as_is
    assert own is not None
    assert double is not None
    error, other = (settled(case.mechanism, run) for run in (own, double))
    assert not error.reason
    np.testing.assert_allclose(error.rms, other.rms, rtol=SAME)
    assert (own.log.effort != double.log.effort).any()
    np.testing.assert_array_equal(own.log.q, own.log.q.astype(np.float32))


@pytest.mark.extended("test_what_it_would_drop_is_refused_with_what_it_refuses")
def test_it_says_in_which_precision_it_computes_and_what_it_changes() -> None:
    settings = history("mujoco_warp/as_is").settings
    assert settings["precision"].startswith("single, on ")
    assert settings["options changed by MuJoCo Warp"] == "tolerance 1e-06 instead of 1e-08"


@pytest.mark.extended("test_what_it_would_drop_is_refused_with_what_it_refuses")
def test_all_readings_are_logged() -> None:
    run = history("mujoco_warp/as_is").as_is
    assert run is not None
    for kind in ("commanded", "reported", "joint", "reaction"):
        np.testing.assert_allclose(run.log.readings[kind], run.log.effort, rtol=1e-4, atol=1e-3)


@pytest.mark.extended("test_what_it_would_drop_is_refused_with_what_it_refuses")
def test_the_audit_names_the_velocity_term_and_nothing_else() -> None:
    """Constraints are made before the velocities: in a first step their J̇v is zero."""
    case, motion = four_bar()
    rows = audit(case, expected_terms(case, motion), "mujoco_warp")
    wrong = [row for row in rows if row["verdict"] != "agree"]
    assert [(row["tier"], row["quantity"], row["found"]) for row in wrong] == [
        ("instantaneous", "closure acceleration in its solver", 0)
    ]
    assert not blocking_reasons(rows)


@pytest.mark.extended("test_what_it_would_drop_is_refused_with_what_it_refuses")
def test_the_audit_sees_another_robot() -> None:
    case, motion = four_bar()
    heavy = replace(case.mechanism.bodies[0], mass=1.001 * case.mechanism.bodies[0].mass)
    mechanism = replace(case.mechanism, bodies=(heavy, *case.mechanism.bodies[1:]))
    rows = audit(case, expected_terms(replace(case, mechanism=mechanism), motion), "mujoco_warp")
    assert "mass" in {row["quantity"] for row in rows if row["verdict"] == "disagree"}


def test_what_it_would_drop_is_refused_with_what_it_refuses(tmp_path: Path, model_case: CaseMaker) -> None:
    path = tmp_path / "pair.xml"
    path.write_text(
        """<mujoco><option solver="PGS" actuatorgroupdisable="3"/><worldbody>
        <body><joint name="a" axis="0 1 0"/><geom size=".1"/></body></worldbody>
        <actuator><motor joint="a" group="3"/></actuator></mujoco>""",
        encoding="utf-8",
    )
    case = model_case(path)
    with pytest.raises(NotRepresentableError, match=r"mujoco_warp: .*actuatorgroupdisable 3 .*mjSOL_PGS is"):
        engines.load("mujoco_warp/as_is").compute_efforts(case, prescribe(case))


def test_it_is_no_vote_beside_mujoco_and_runs_only_where_it_is_named() -> None:
    assert engines.lineage("mujoco_warp") == engines.lineage("mujoco")
    assert "mujoco_warp/as_is" not in sources.names(load("3prr"), absent=True)
