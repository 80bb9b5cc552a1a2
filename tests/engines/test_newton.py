"""What is Newton's own: its refusals, its readings and what its model holds; all but the first part asks for Newton."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import engines
from analytic.dynamics.noc import Noc
from analytic.motion.prescribe import prescribe
from engines.misreadings import Misread, applied_twice, one_step_late, reading_as_effort
from engines.newton._support import want_carried, want_simulated
from robots.efforts import EffortHistory, Source, run_of
from robots.errors import NotRepresentableError
from robots.mechanism import Mechanism
from robots.motion import Motion
from robots.robot import Case, load, representative_case
from tests.conftest import MODELS, CaseMaker
from tests.errors import relative_error
from validation.judge.as_is import Settled, settled
from validation.judge.audit import audit, expected_terms
from validation.judge.tolerances import registered


def case_of(name: str) -> Case:
    return representative_case(load(name))


def with_first_joint(mechanism: Mechanism, **changes: float) -> Mechanism:
    first, *others = mechanism.joints
    return replace(mechanism, joints=(replace(first, **changes), *others))  # type: ignore[arg-type]


def test_all_that_is_lost_is_named_at_once(model_case: CaseMaker) -> None:
    with pytest.raises(NotRepresentableError, match=r"newton: free joint 'base'.*; ball joint 'neck'.*; tendon 'both'"):
        want_carried(model_case(MODELS / "floating_rotors.xml", amplitude=0.1).mechanism)
    with pytest.raises(NotRepresentableError, match=r"newton: body 'rod3' with a hinge before a slide.*; body 'rod4'"):
        want_carried(case_of("2pur2rpu").mechanism)


@pytest.mark.parametrize("solver", ["kamino", "mujoco", "steel"])
@pytest.mark.parametrize("name", ["four_bar", "3prr", "6spu"])
def test_fully_actuated_robots_are_carried(name: str, solver: str) -> None:
    want_simulated(case_of(name).mechanism, solver)


def test_a_spring_is_refused_where_a_solver_leaves_it_out() -> None:
    sprung = with_first_joint(case_of("four_bar").mechanism, stiffness=3.0)
    with pytest.raises(NotRepresentableError, match="solver kamino: spring of joint 'crank', which it leaves out"):
        want_simulated(sprung, "kamino")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["3prr", "6spu"])
def test_its_matrices_give_the_efforts(name: str) -> None:
    """A platform of six joints, universal joints, an external wrench."""
    pytest.importorskip("newton")
    case = case_of(name)
    motion = prescribe(case)
    history = engines.load("newton/kkt_single").compute_efforts(case, motion)
    limit = registered()["newton/kkt_single"].relative_error or 0
    assert relative_error(history.effort, Noc().compute_efforts(case, motion).effort) < limit


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four_bar", "6spu"])
def test_what_is_simulated_is_the_model(name: str) -> None:
    pytest.importorskip("newton")
    case = case_of(name)
    terms = expected_terms(case, prescribe(case))
    assert {row["verdict"] for row in audit(case, terms, "newton")} == {"agree"}
    spoilt = with_first_joint(case.mechanism, armature=0.05, damping=0.3)
    first, *others = spoilt.bodies
    spoilt = replace(spoilt, bodies=(replace(first, mass=first.mass * 1.0003), *others))
    off = {row["quantity"] for row in audit(replace(case, mechanism=spoilt), terms, "newton") if row["error"] > 1e-4}
    assert {"mass", "armature", "damping"} <= off


@cache
def ran(route: str, name: str) -> tuple[Case, EffortHistory]:
    case = case_of(name)
    return case, engines.load(f"newton/{route}").compute_efforts(case, prescribe(case))


class Ran(Source):
    """A route that has run."""

    name = "newton/as_is_steel"

    def __init__(self, history: EffortHistory) -> None:
        self.history = history

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        return self.history


def left_of(case: Case, history: EffortHistory) -> Settled:
    assert history.as_is is not None
    return settled(case.mechanism, history.as_is, most=100)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("route", "name", "limit"),
    [("as_is_steel", "four_bar", 5e-3), ("as_is_steel", "3prr", 5e-3), ("as_is_mujoco", "3prr", 5e-3)],
)
def test_the_law_at_the_end_of_the_step_is_the_effort(route: str, name: str, limit: float) -> None:
    """What else is taken for it is off by more than the floor; Steel's reaction is it, as no joint has a rotor."""
    pytest.importorskip("newton")
    pytest.importorskip("mujoco_warp")
    case, history = ran(route, name)
    sound = left_of(case, history)
    assert not sound.reason
    assert (sound.rms / sound.scale).max() < limit
    for wrong in (applied_twice, one_step_late, reading_as_effort("commanded")):
        left = left_of(case, Misread(Ran(history), wrong).compute_efforts(case, prescribe(case)))
        assert (left.rms > np.maximum(left.floor, 1.5 * sound.rms)).any(), wrong
    assert history.as_is is not None
    readings, effort = history.as_is.log.readings, history.as_is.log.effort
    if route == "as_is_steel":
        assert np.abs(readings["reaction"] - effort).max() < 1e-3 * np.abs(effort).max()
    else:  # MuJoCo reports the law where the step begins
        np.testing.assert_allclose(readings["reported"], readings["commanded"], atol=1e-3 * np.abs(effort).max())


@pytest.mark.slow
def test_a_reaction_lacks_what_a_rotor_takes() -> None:
    pytest.importorskip("newton")
    case = case_of("four_bar")
    case = replace(case, mechanism=with_first_joint(case.mechanism, armature=0.5))
    history = engines.load("newton/as_is_steel").compute_efforts(case, prescribe(case))
    left = left_of(case, history)
    reaction = left_of(
        case, Misread(Ran(history), reading_as_effort("reaction")).compute_efforts(case, prescribe(case))
    )
    assert left.rms / left.scale < 1e-2
    assert reaction.rms > 10 * left.rms


@pytest.mark.slow
def test_kamino_says_in_how_many_steps_it_stopped_early() -> None:
    """With one iteration in none of its steps it has found what it looks for; its multiplier is the effort."""
    pytest.importorskip("newton")
    from engines.newton._as_is import held_by_drives
    from engines.newton._stepping import Stepping

    case = case_of("four_bar")
    motion = prescribe(case)
    short = replace(motion, **{name: getattr(motion, name)[:9] for name in ("t", "q", "qd", "qdd")})
    history = held_by_drives("newton/as_is_kamino", case, short, Stepping(solver="kamino", iterations=1))
    assert history.as_is is not None
    steps = len(history.as_is.log.t)
    assert f"its solver stopped at its 1 iterations in {steps} of {steps} steps" in history.note
    assert history.settings["effort"].startswith("reported: the multiplier")


@pytest.mark.slow
def test_a_script_of_settings_sets_what_was_tried() -> None:
    """Read back from the solvers, and as it is given the very run of the route."""
    pytest.importorskip("newton")
    from engines.newton import tuning
    from engines.newton._model import build
    from engines.newton._stepping import Stepping

    case = case_of("four_bar")
    mechanism, motion = case.mechanism, prescribe(case)
    model = build(mechanism).model
    hard = tuning.prepared(mechanism, {"timestep": "0.004", "solref": "0.008 1", "solimp": "0.9999 0.9999"})
    loops = hard.made(model).mj_model
    assert hard.step == 0.004
    np.testing.assert_allclose(loops.eq_solref, np.broadcast_to([0.008, 1], loops.eq_solref.shape))
    np.testing.assert_allclose(loops.eq_solimp[:, :2], 0.9999)
    steel = tuning.prepared(mechanism, {"solver": "steel", "iterations": "7"})
    assert type(steel.made(model)).__name__ == "SolverSteel"
    assert steel.made(model)._iterations == steel.most_iterations == 7
    plan, given = tuning.plan(mechanism, motion), tuning.given(mechanism)
    record = tuning.run(plan, tuning.prepared(mechanism, {}), given.bandwidth)
    history = ran("as_is_mujoco", "four_bar")[1]
    np.testing.assert_array_equal(record.acted, run_of(history).log.effort)
    as_it_comes = Stepping(solver="mujoco").made(model).mj_model
    for name, loops in (("solref", as_it_comes.eq_solref[0]), ("solimp", as_it_comes.eq_solimp[0, :2])):
        assert given.settings[name] == " ".join(f"{value:g}" for value in loops)
