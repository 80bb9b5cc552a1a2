"""Properties of Genesis: its refusals, its default rotors, its reading; all but the first part need Genesis."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from loopcheck import engines
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.genesis._support import want_carried
from loopcheck.robots.efforts import EffortHistory, run_of
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.mechanism import Wrench
from loopcheck.robots.robot import Case, load, representative_case
from loopcheck.validation.check.audit.audit import audit, expected_terms
from loopcheck.validation.check.efforts.as_is import Settled, settled
from loopcheck.validation.tune.budget import budget
from tests.conftest import MODELS, CaseMaker
from tests.faults.adapters import applied_twice, misread_history, one_step_late, reading_as_effort


def case_of(name: str) -> Case:
    return representative_case(load(name))


def test_a_loop_that_ends_on_the_world_is_refused_with_what_mends_it() -> None:
    with pytest.raises(
        NotRepresentableError, match=r"equality 's1', .*'s6' on the world.*into a single body without a joint"
    ):
        want_carried(case_of("6spu").mechanism)
    want_carried(case_of("3prr").mechanism)


def test_all_that_is_lost_is_named_at_once(model_case: CaseMaker) -> None:
    with pytest.raises(
        NotRepresentableError, match=r"genesis: not supported: free joint 'base'.*; ball joint 'neck'.*; tendon 'both'"
    ):
        want_carried(model_case(MODELS / "floating_rotors.xml", amplitude=0.1).mechanism)


@cache
def ran(*, as_loaded: bool) -> tuple[Case, EffortHistory]:
    from loopcheck.engines.genesis.routes.as_is import GenesisAsIs

    case = case_of("four_bar")
    return case, GenesisAsIs(as_loaded=as_loaded).compute_efforts(case, prescribe(case))


def left_of(case: Case, history: EffortHistory) -> Settled:
    assert history.as_is is not None
    left = settled(case.mechanism, history.as_is, most=100)
    assert not left.reason
    return left


@pytest.mark.extended("test_all_that_is_lost_is_named_at_once")
def test_what_it_reports_is_the_effort() -> None:
    pytest.importorskip("genesis")
    case, history = ran(as_loaded=False)
    sound = left_of(case, history)
    assert sound.rms / sound.scale < 5e-3
    for wrong in (applied_twice, one_step_late, reading_as_effort("commanded")):
        left = left_of(case, misread_history(history, wrong))
        assert left.rms > np.maximum(left.floor, 1.5 * sound.rms), wrong
    assert history.as_is is not None
    log = history.as_is.log
    np.testing.assert_allclose(log.readings["applied"], log.effort, atol=1e-9 * np.abs(log.effort).max())


@pytest.mark.extended("test_all_that_is_lost_is_named_at_once")
def test_rotors_that_are_filled_in_are_seen() -> None:
    pytest.importorskip("genesis")
    (case, sound), (_, filled_in) = ran(as_loaded=False), ran(as_loaded=True)
    assert left_of(case, filled_in).rms > 100 * left_of(case, sound).rms


@pytest.mark.extended("test_all_that_is_lost_is_named_at_once")
def test_what_is_simulated_is_the_model() -> None:
    """With a wrench; a robot of other masses is another."""
    pytest.importorskip("genesis")
    case = case_of("four_bar")
    vectors = {"point": [0.2, -0.1, 0.3], "moment": [0.3, -0.2, 0.5], "force": [2.0, 1.0, -3.0]}
    load = Wrench(body=1, **{name: np.array(vector) for name, vector in vectors.items()})
    case = replace(case, mechanism=replace(case.mechanism, wrenches=(load,)))
    terms = expected_terms(case, prescribe(case))
    rows = audit(case, terms, "genesis")
    assert {row["verdict"] for row in rows if row["tier"] == "static"} == {"agree"}
    assert [row["quantity"] for row in rows if row["verdict"] != "agree"] == ["terms of the equations"]


@pytest.mark.extended("test_all_that_is_lost_is_named_at_once")
def test_rotors_that_are_filled_in_are_read_back() -> None:
    pytest.importorskip("genesis")
    from loopcheck.engines.genesis._scene import build
    from loopcheck.engines.genesis.audit import inventory

    case = case_of("four_bar")
    q = prescribe(case).q[0]
    assert not inventory(build(case.mechanism), q).armature.any()
    np.testing.assert_allclose(inventory(build(case.mechanism, as_loaded=True), q).armature, 0.1 * np.eye(3))
    assert engines.lineage("genesis") == engines.lineage("mujoco")


@pytest.mark.extended("test_all_that_is_lost_is_named_at_once")
def test_a_script_of_settings_sets_what_was_tried() -> None:
    """Read back from Genesis, and as it is given the very run of the route."""
    genesis = pytest.importorskip("genesis")
    from loopcheck.engines.genesis import tuning
    from loopcheck.engines.genesis._scene import Stepping, numbers

    case, history = ran(as_loaded=False)
    mechanism, motion = case.mechanism, prescribe(case)
    settings = {"timestep": "0.004", "solref": "0.008 1", "solimp": "0.9999 0.9999", "integrator": "implicitfast"}
    built, step = tuning.prepared(mechanism, settings)
    assert step == built.scene.dt == 0.004
    params = numbers(built.entity.equalities[0].get_sol_params())
    np.testing.assert_allclose(params, [0.008, 1, 0.9999, 0.9999, 0.001, 0.5, 2])
    assert built.scene.rigid_solver._options.integrator == genesis.integrator.implicitfast
    np.testing.assert_allclose(
        numbers(built.entity.get_dofs_armature()), [joint.armature for joint in mechanism.joints]
    )
    plan, given = tuning.plan(mechanism, motion), tuning.given(mechanism)
    record = tuning.run(plan, tuning.prepared(mechanism, {}), given.bandwidth)
    np.testing.assert_allclose(record.acted, run_of(history).log.effort, rtol=1e-12)
    assert Stepping().iterations == genesis.options.RigidOptions().iterations


@pytest.mark.extended("test_all_that_is_lost_is_named_at_once")
def test_an_error_is_taken_apart() -> None:
    pytest.importorskip("genesis")
    rows = {row["part"]: row for row in budget(case_of("four_bar"), "genesis/as_is")}
    shares = {name: row["share"] for name, row in rows.items() if row.get("share") is not None and name != "all"}
    assert sum(shares.values()) == pytest.approx(1)
    assert rows["rest"]["rms"] < 0.1 * rows["all"]["rms"]
