"""MJX's routes in both precisions. To compile takes seconds a robot and precision: few robots, shared results."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from loopcheck import engines
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.simulation import Readings
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation, EffortHistory
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, make_case, representative_case
from loopcheck.validation.check.audit.audit import audit, blocking_reasons, expected_terms
from loopcheck.validation.common import sources
from loopcheck.validation.common.tolerances import registered
from tests.conftest import CaseMaker
from tests.engines import test_contract
from tests.engines.test_drift_and_tracking import SHIFT, opening
from tests.errors import relative_error
from tests.faults.adapters import forward_without_velocity_term

COMPILED = pytest.mark.extended("test_agrees_on_3prr[kkt]")
if not engines.installed("mjx"):
    pytest.skip("mjx is not installed", allow_module_level=True)


@cache
def prr() -> tuple[Case, Motion, Array]:
    case = make_case(load("3prr"), variant="default", mode="plus", configuration="vertical")
    motion = prescribe(case)
    return case, motion, Noc().compute_efforts(case, motion).effort


@cache
def on_prr(route: str) -> EffortHistory:
    case, motion, _ = prr()
    return engines.load(f"mjx/{route}").compute_efforts(case, motion)


def error(route: str) -> float:
    return relative_error(on_prr(route).effort, prr()[2])


@pytest.mark.parametrize(
    "route",
    [
        pytest.param("kkt", marks=pytest.mark.evidence("a route of MJX, which JAX compiles", seconds=5)),
        *(pytest.param(route, marks=COMPILED) for route in ("kkt_single", "forward")),
    ],
)
def test_agrees_on_3prr(route: str) -> None:
    limit, history = registered()[f"mjx/{route}"], on_prr(route)
    assert error(route) < (limit.relative_error or 0)
    assert limit.closure_drift is None or (history.closure_drift or Deviation()).largest < limit.closure_drift
    assert limit.tracking_error is None or (history.tracking_error or Deviation()).largest < limit.tracking_error


@COMPILED
@pytest.mark.parametrize("route", ["kkt", "kkt_single", "forward", "forward_single"])
def test_keeps_the_contract_of_all_routes(route: str) -> None:
    case, motion, _ = prr()
    test_contract.test_a_history_matches_the_motion(on_prr(route), case, motion)
    test_contract.test_a_simulation_reports_how_well_it_kept_to_the_motion(on_prr(route))
    if route == "forward":
        test_contract.test_a_forward_route_converges_in_its_order(on_prr(route))


@COMPILED
def test_single_precision_is_single() -> None:
    """Its unit round-off, 6e-8, is the least that can be left."""
    assert 6e-8 < error("kkt_single") < 1e-5
    assert 1e-4 < error("forward_single") < 5e-2


@COMPILED
def test_a_precision_is_not_left_switched_on() -> None:
    on_prr("kkt"), on_prr("forward_single")
    jax = pytest.importorskip("jax")
    assert jax.numpy.zeros(1).dtype == np.float32


@COMPILED
def test_forward_is_of_fourth_order() -> None:
    """Seen in the changes from step to step alone, and at compliances that keep round-off below them."""
    from loopcheck.engines.mjx.routes.forward import MjxForward, Settings

    case, motion, _ = prr()
    softer = MjxForward(Settings(compliances=(0.02, 0.04)))
    efforts = [rung.effort for rung in softer.compute_efforts(case, motion).ladder]
    first, second = (np.abs(fine - coarse).max() for coarse, fine in pairwise(efforts))
    assert np.log2(first / second) == pytest.approx(4, abs=0.3)


@COMPILED
def test_a_displaced_start_is_reported() -> None:
    """Displacement of a slider of the second leg, and the resulting gap of its loop, by forward kinematics."""
    case, motion, _ = prr()
    place = [joint.name for joint in case.mechanism.joints].index("q2")
    spoilt = np.array(motion.q)
    spoilt[0, place] += SHIFT
    history = engines.load("mjx/forward").compute_efforts(case, replace(motion, q=spoilt))
    assert history.tracking_error == pytest.approx((SHIFT, 0), rel=1e-6)
    assert history.closure_drift == pytest.approx(opening(case.mechanism, spoilt[0]), rel=1e-6)


@COMPILED
def test_the_audit_names_what_mjx_leaves_out() -> None:
    """J̇v in the reference accelerations of the loops, without other terms."""
    case, motion, _ = prr()
    rows = audit(case, expected_terms(case, motion), "mjx")
    wrong = [row for row in rows if row["verdict"] != "agree"]
    assert [(row["tier"], row["quantity"]) for row in wrong] == [
        ("instantaneous", "closure acceleration in its solver")
    ]
    assert wrong[0]["found"] == 0
    assert not blocking_reasons(rows)


OWN_ROTOR = """
<mujoco><worldbody><body><joint name="a" axis="0 0 1"/><geom size=".1"/></body></worldbody>
<actuator><motor name="m" joint="a" {what}="0.1"/></actuator></mujoco>"""
FLUID = """
<mujoco><option viscosity="0.1" integrator="implicitfast"/>
<worldbody><body><joint name="a" axis="0 0 1"/><geom size=".1"/></body></worldbody></mujoco>"""


@pytest.fixture
def own(tmp_path: Path, model_case: CaseMaker) -> Callable[[str], Case]:
    def make(text: str) -> Case:
        (tmp_path / "own.xml").write_text(text, encoding="utf-8")
        return model_case(tmp_path / "own.xml")

    return make


@pytest.mark.parametrize("what", ["armature", "damping"])
@pytest.mark.parametrize("route", ["kkt", "forward", "kkt_single", "forward_single"])
def test_what_mjx_would_drop_in_silence_is_refused(what: str, route: str, own: Callable[[str], Case]) -> None:
    case = own(OWN_ROTOR.format(what=what))
    with pytest.raises(NotRepresentableError, match=f"mjx: not supported: {what} of actuator 'm'"):
        engines.load(f"mjx/{route}").compute_efforts(case, prescribe(case))


def test_what_mjx_refuses_is_named() -> None:
    from loopcheck.engines.mjx import _model

    mujoco = pytest.importorskip("mujoco")
    model = mujoco.MjModel.from_xml_string(FLUID)
    with pytest.raises(NotRepresentableError, match="mjx: not supported: implicitfast not implemented for fluid drag"):
        _model.put(model)


def test_it_runs_only_where_it_is_named() -> None:
    assert engines.on_request("mjx/kkt")
    assert not any(engines.on_request(name) for name in sources.names(load("3prr")) if name not in sources.ANALYTIC)
    sources.want_known(("mjx/kkt", "mjx/forward_single"))


def test_it_is_no_vote_beside_mujoco() -> None:
    assert engines.lineage("mjx") == engines.lineage("mujoco")
    assert engines.versions()["mjx"]


@COMPILED
def test_the_own_setting_of_the_ladder_is_that_of_the_route() -> None:
    from loopcheck.engines.mjx.refinements import ladders

    case, motion, _ = prr()
    (ladder,) = [found for found in ladders(motion) if found.own[0]]
    (level,) = [level for level in ladder.levels if np.isclose(level.value, ladder.own[1])]
    assert level.source is not None
    effort = level.source.compute_efforts(case, motion).effort
    np.testing.assert_allclose(effort, on_prr("forward").effort, atol=1e-9 * np.abs(effort).max())


@cache
def four_bar() -> tuple[Case, Motion]:
    case = representative_case(load("four_bar"))
    return case, prescribe(case)


@COMPILED
def test_as_it_is_it_errs_as_mujoco_would_without_the_velocity_term() -> None:
    """The same file, controller and step in another program, with a single known difference."""
    mujoco = pytest.importorskip("mujoco")
    from loopcheck.engines.mujoco.as_is import compiled, driven
    from loopcheck.engines.mujoco.stepper import MujocoStepper

    class WithoutVelocityTerm(MujocoStepper):
        def advance(self) -> Readings:
            forward_without_velocity_term(self.model, self.data)
            mujoco.mj_Euler(self.model, self.data)
            return {}

    case, motion = four_bar()
    logs = [
        history.as_is.log
        for history in (
            engines.load("mjx/as_is").compute_efforts(case, motion),
            driven(WithoutVelocityTerm(compiled(case.mechanism)), case, motion, {}),
            engines.load("mujoco/as_is").compute_efforts(case, motion),
        )
        if history.as_is
    ]
    peak = np.abs(logs[1].effort).max()
    apart, term = (np.abs(logs[0].effort - log.effort).max() / peak for log in logs[1:])
    assert apart < 1e-9
    assert term > 1e-2
    for kind in ("commanded", "reported", "joint", "reaction"):
        np.testing.assert_allclose(logs[0].readings[kind], logs[0].effort, atol=1e-9 * peak)


def test_in_single_precision_a_run_begins_where_the_device_has_it() -> None:
    pytest.importorskip("mujoco")
    from loopcheck.engines.mjx.stepper import MjxStepper
    from loopcheck.engines.mujoco.as_is import compiled

    case, motion = four_bar()
    stepper = MjxStepper("mjx/as_is_single", compiled(case.mechanism), double=False)
    stepper.put(motion.q[0], motion.qd[0])
    np.testing.assert_array_equal(stepper.state()[0], motion.q[0].astype(np.float32))
    assert (stepper.state()[0] != motion.q[0]).any()


PINNED = """
<mujoco><worldbody><body name="b"><joint name="x" type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
<geom size=".1"/></body></worldbody><equality><connect body1="b" anchor="0 0 0"/></equality>
<actuator><motor joint="x"/></actuator></mujoco>"""
"""A loop with a row without rates, as loops in a plane have it."""


@COMPILED
def test_a_step_leaves_in_the_data_what_mjx_has() -> None:
    """The arrays that are read alone, against MJX's own step and the whole of its data."""
    jax, mujoco, mjx = map(pytest.importorskip, ("jax", "mujoco", "mujoco.mjx"))
    from loopcheck.engines.mjx._model import QUICK
    from loopcheck.engines.mjx.stepper import MjxStepper

    model = mujoco.MjModel.from_xml_string(PINNED)
    stepper = MjxStepper("mjx/as_is_single", model, double=False)
    stepper.put(np.array([0.01, 0.02]), np.array([0.3, -0.1]))
    data = stepper.data
    state = mjx.make_data(model).replace(qpos=jax.numpy.asarray(data.qpos), qvel=jax.numpy.asarray(data.qvel))
    one_step, on_device = jax.jit(mjx.step, compiler_options=QUICK), mjx.put_model(model)
    for k in range(5):
        stepper.step(np.full(model.nu, 0.1 * k))
        state = one_step(on_device, state.replace(ctrl=jax.numpy.asarray(data.ctrl)))
    whole = mjx.get_data(model, state)
    for name in ("time", "qpos", "qvel", "actuator_force", "efc_pos", "efc_force"):
        np.testing.assert_allclose(getattr(data, name), getattr(whole, name), rtol=1e-4, atol=1e-6, err_msg=name)
    assert data.nefc == whole.nefc == 2


@pytest.mark.parametrize(
    ("option", "says"),
    [('actuatorgroupdisable="0"', "actuatorgroupdisable"), ('noslip_iterations="3"', "noslip_iterations")],
)
def test_options_that_mjx_would_drop_in_silence_are_refused(option: str, says: str, own: Callable[[str], Case]) -> None:
    case = own(OWN_ROTOR.format(what="gear").replace("<worldbody>", f"<option {option}/><worldbody>"))
    with pytest.raises(NotRepresentableError, match=f"mjx: not supported: option {says}"):
        engines.load("mjx/as_is").compute_efforts(case, prescribe(case))


def test_what_is_tuned_has_no_implicit_step() -> None:
    from loopcheck.engines.mjx import tuning

    methods = {family.fixed.get("integrator", "Euler") for family in tuning.families(four_bar()[0].mechanism)}
    assert methods == {"Euler", "RK4"}


@pytest.mark.extended("test_what_is_tuned_has_no_implicit_step")
def test_a_timed_step_is_a_step_of_the_route(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the unmodified simulation in single precision, with the tuned settings."""
    from loopcheck.engines.mjx import tuning

    case, motion = four_bar()
    settings = {"timestep": "0.004"}
    reached: list[Any] = []
    advanced = tuning._advanced

    def recorded(*args: Any) -> Any:
        reached.append(advanced(*args))
        return reached[-1]

    monkeypatch.setattr(tuning, "_advanced", recorded)
    monkeypatch.setattr(tuning, "best_seconds", lambda _, steps: steps(3))
    tuning.seconds_per_step(case.mechanism, motion.q[0], settings)
    stepper = tuning.prepared(case.mechanism, settings)
    stepper.put(motion.q[0], np.zeros(case.mechanism.nv))
    for _ in range(3):
        stepper.advance()
    np.testing.assert_allclose(reached[-1].qpos, stepper.data.qpos, rtol=1e-6)
    assert float(reached[-1].time) == pytest.approx(0.012)
