"""Properties of Newton: its refusals, its readings and its model; all but the first part need Newton."""

import warnings
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from loopcheck import engines
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.newton._support import want_carried, want_simulated
from loopcheck.engines.own_drives import Gains, Order
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import EffortHistory, run_of
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.formats.mjcf import read_mechanism
from loopcheck.robots.formats.model_file import ModelFile
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, representative_case
from loopcheck.validation.check.audit.audit import audit, expected_terms
from loopcheck.validation.check.efforts.as_is import Settled, settled
from loopcheck.validation.common.tolerances import registered
from loopcheck.validation.tune.budget import budget
from tests.conftest import AMPLITUDES, MODELS, CaseMaker
from tests.engines.mechanisms import TUMBLING
from tests.errors import relative_error
from tests.faults.adapters import applied_twice, misread_history, one_step_late, reading_as_effort


class Zoo(Protocol):
    """A small mechanism and its motion, made once for all tests of a process."""

    def __call__(self, name: str) -> tuple[Case, Motion]: ...


@pytest.fixture(scope="session")
def zoo(model_case: CaseMaker) -> Zoo:
    @cache
    def make(name: str) -> tuple[Case, Motion]:
        path, amplitude = MODELS / f"{name}.xml", AMPLITUDES.get(name, 0.1)
        case = model_case(path, configuration="vertical", amplitude=amplitude)
        return case, prescribe(case)

    return make


def case_of(name: str) -> Case:
    return representative_case(load(name))


def with_first_joint(mechanism: Mechanism, **changes: float) -> Mechanism:
    first, *others = mechanism.joints
    return replace(mechanism, joints=(replace(first, **changes), *others))  # type: ignore[arg-type]


def without_springs(mechanism: Mechanism) -> Mechanism:
    return replace(mechanism, joints=tuple(replace(joint, stiffness=0.0) for joint in mechanism.joints))


def test_all_that_is_lost_is_named_at_once(model_case: CaseMaker) -> None:
    with pytest.raises(
        NotRepresentableError,
        match=r"newton: not supported: rotor, damper or spring of free joint 'base'.*; tendon 'both'",
    ):
        want_carried(model_case(MODELS / "floating_rotors.xml", amplitude=0.1).mechanism)
    with pytest.raises(
        NotRepresentableError, match=r"newton: not supported: body 'rod3' with a hinge before a slide.*; body 'rod4'"
    ):
        want_carried(case_of("2pur2rpu").mechanism)


@pytest.mark.parametrize("solver", ["kamino", "mujoco", "steel"])
@pytest.mark.parametrize("name", ["four_bar", "3prr", "6spu"])
def test_fully_actuated_robots_are_carried(name: str, solver: str) -> None:
    want_simulated(case_of(name).mechanism, solver)


@pytest.mark.parametrize("solver", ["kamino", "steel"])
def test_a_spring_is_refused_where_a_solver_leaves_it_out(solver: str) -> None:
    sprung = with_first_joint(case_of("four_bar").mechanism, stiffness=3.0)
    with pytest.raises(
        NotRepresentableError,
        match=f"solver {solver}: not supported: spring of joint 'crank' .ignored by this solver",
    ):
        want_simulated(sprung, solver)
    want_simulated(sprung, "mujoco")


@pytest.mark.parametrize("solver", ["kamino", "mujoco", "steel"])
@pytest.mark.parametrize("name", ["six_legs", "ball_and_universal"])
def test_free_and_ball_joints_are_carried(name: str, solver: str, model_case: CaseMaker) -> None:
    mechanism = model_case(MODELS / f"{name}.xml", amplitude=0.02).mechanism
    want_simulated(without_springs(mechanism), solver)


def test_a_ball_beside_other_joints_is_refused(model_case: CaseMaker) -> None:
    """A joint of Newton slides and turns about axes, or is a ball."""
    mechanism = model_case(MODELS / "ball_and_universal.xml", amplitude=0.02).mechanism
    ball = next(joint for joint in mechanism.joints if joint.kind == "ball")
    joints = [replace(joint, body=ball.body) if joint.name == "slide" else joint for joint in mechanism.joints]
    with pytest.raises(
        NotRepresentableError, match="newton: not supported: body 'rod' with a ball joint beside further joints"
    ):
        want_carried(replace(mechanism, joints=tuple(joints)))


@pytest.mark.extended("test_fully_actuated_robots_are_carried")
@pytest.mark.parametrize("name", ["3prr", "6spu"])
def test_its_matrices_give_the_efforts(name: str) -> None:
    """A platform of six joints, universal joints, an external wrench."""
    pytest.importorskip("newton")
    case = case_of(name)
    motion = prescribe(case)
    history = engines.load("newton/kkt_single").compute_efforts(case, motion)
    limit = registered()["newton/kkt_single"].relative_error or 0
    assert relative_error(history.effort, Noc().compute_efforts(case, motion).effort) < limit


@pytest.mark.extended("test_fully_actuated_robots_are_carried")
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


@pytest.mark.extended("test_fully_actuated_robots_are_carried")
@pytest.mark.parametrize("name", ["ball_and_universal", "six_legs", "spinning_rod"])
def test_free_and_ball_joints_are_the_model(name: str, zoo: Zoo) -> None:
    """Newton's model, and its mass matrix, velocity terms and Jacobians in our positions and velocities."""
    pytest.importorskip("newton")
    case, motion = zoo(name)
    rows = audit(case, expected_terms(case, motion), "newton")
    assert {row["verdict"] for row in rows} == {"agree"}
    history = engines.load("newton/kkt_single").compute_efforts(case, motion)
    assert relative_error(history.effort, Noc().compute_efforts(case, motion).effort) < 1e-5


@pytest.mark.extended("test_fully_actuated_robots_are_carried")
@pytest.mark.parametrize(
    ("route", "name", "limit"),
    [
        ("as_is_mujoco", "spinning_rod", 3e-3),
        ("as_is_mujoco", "ball_and_universal", 3e-3),
        ("as_is_steel", "ball_and_universal", 3e-3),
        ("as_is_steel", "six_legs", 1e-2),
        ("as_is_kamino", "ball_and_universal", 3e-3),
    ],
)
def test_undriven_free_and_ball_joints_are_simulated(route: str, name: str, limit: float, zoo: Zoo) -> None:
    """Springs of joints under MuJoCo alone; other solvers leave them out."""
    pytest.importorskip("newton")
    pytest.importorskip("mujoco_warp")
    case, motion = zoo(name)
    if route != "as_is_mujoco":
        case = replace(case, mechanism=without_springs(case.mechanism))
        motion = prescribe(case)  # what nothing drives follows from springs
    if route == "as_is_kamino":
        motion = beginning(motion, len(motion.t) // 8)  # it takes an eighth of a second a step
    left = left_of(case, engines.load(f"newton/{route}").compute_efforts(case, motion))
    assert not left.reason
    assert (left.rms / left.scale).max() < limit


@pytest.mark.extended("test_fully_actuated_robots_are_carried")
@pytest.mark.filterwarnings("ignore:set_const_:DeprecationWarning")
@pytest.mark.parametrize("solver", ["steel", "mujoco_warp", "kamino"])
def test_a_body_that_floats_keeps_its_angular_momentum(solver: str, tmp_path: Path) -> None:
    """And its mass centre falls freely: by default Steel would damp its rotation by 1 % in this time."""
    pytest.importorskip("newton")
    pytest.importorskip("mujoco_warp")
    from loopcheck.engines.newton import tuning
    from loopcheck.engines.newton._as_is import NewtonDriven
    from loopcheck.engines.newton._stepping import STEP

    (tmp_path / "box.xml").write_text(TUMBLING, encoding="utf-8")
    mechanism = read_mechanism(ModelFile(path=tmp_path / "box.xml"))
    body, turned = mechanism.bodies[0], np.array([0.8, 0.1, -0.5, 0.2])
    q = np.array([0.1, 0.2, 0.3, *(turned / np.linalg.norm(turned))])
    qd = np.array([0.1, -0.2, 0.3, 2.0, -1.0, 3.0])

    def momenta(state: tuple[Array, Array]) -> tuple[Array, Array]:
        R, (moving, turning) = Rotation.from_quat(np.roll(state[0][3:], -1)), np.split(state[1], 2)
        return R.apply(body.inertia @ turning), moving + R.apply(np.cross(turning, body.center))

    none = Gains(stiffness=np.zeros(0), damping=np.zeros(0))
    robot = NewtonDriven.from_state(mechanism, none, tuning.prepared(mechanism, {"solver": solver}), (q, qd))
    np.testing.assert_allclose(robot.state()[0], q, atol=1e-6)
    np.testing.assert_allclose(robot.state()[1], qd, atol=1e-6)
    for _ in range(100):
        robot.advance()
    (before, moved), (after, fallen) = momenta((q, qd)), momenta(robot.state())
    np.testing.assert_allclose(after, before, atol=1e-3 * float(np.linalg.norm(before)))
    np.testing.assert_allclose(fallen, moved + 100 * STEP * mechanism.gravity, atol=1e-3)


@cache
def ran(route: str, name: str) -> tuple[Case, EffortHistory]:
    case = case_of(name)
    return case, engines.load(f"newton/{route}").compute_efforts(case, prescribe(case))


def beginning(motion: Motion, samples: int) -> Motion:
    return replace(motion, **{name: getattr(motion, name)[:samples] for name in ("t", "q", "qd", "qdd")})


def left_of(case: Case, history: EffortHistory) -> Settled:
    assert history.as_is is not None
    return settled(case.mechanism, history.as_is, most=100)


@pytest.mark.extended("test_fully_actuated_robots_are_carried")
@pytest.mark.parametrize(
    ("route", "name", "limit"),
    [("as_is_steel", "four_bar", 5e-3), ("as_is_steel", "3prr", 5e-3), ("as_is_mujoco", "3prr", 5e-3)],
)
def test_the_law_at_the_end_of_the_step_is_the_effort(route: str, name: str, limit: float) -> None:
    """Other readings are off by more than the floor; Steel's reaction is the effort, as no joint has a rotor."""
    pytest.importorskip("newton")
    pytest.importorskip("mujoco_warp")
    case, history = ran(route, name)
    sound = left_of(case, history)
    assert not sound.reason
    assert (sound.rms / sound.scale).max() < limit
    for wrong in (applied_twice, one_step_late, reading_as_effort("commanded")):
        left = left_of(case, misread_history(history, wrong))
        assert (left.rms > np.maximum(left.floor, 1.5 * sound.rms)).any(), wrong
    assert history.as_is is not None
    readings, effort = history.as_is.log.readings, history.as_is.log.effort
    if route == "as_is_steel":
        assert np.abs(readings["reaction"] - effort).max() < 1e-3 * np.abs(effort).max()
    else:  # MuJoCo reports the law where the step begins
        np.testing.assert_allclose(readings["reported"], readings["commanded"], atol=1e-3 * np.abs(effort).max())


@pytest.mark.extended("test_fully_actuated_robots_are_carried")
def test_a_reaction_lacks_what_a_rotor_takes() -> None:
    pytest.importorskip("newton")
    case = case_of("four_bar")
    case = replace(case, mechanism=with_first_joint(case.mechanism, armature=0.5))
    history = engines.load("newton/as_is_steel").compute_efforts(case, prescribe(case))
    left = left_of(case, history)
    reaction = left_of(case, misread_history(history, reading_as_effort("reaction")))
    assert left.rms / left.scale < 1e-2
    assert reaction.rms > 10 * left.rms


@pytest.mark.extended("test_fully_actuated_robots_are_carried")
def test_kamino_says_in_how_many_steps_it_stopped_early() -> None:
    """It converges with a single iteration in no step; its multiplier is the effort."""
    pytest.importorskip("newton")
    from loopcheck.engines.newton._as_is import held_by_drives
    from loopcheck.engines.newton._stepping import Stepping

    case = case_of("four_bar")
    short, stepping = beginning(prescribe(case), 9), Stepping(solver="kamino", iterations=1)
    history = held_by_drives("newton/as_is_kamino", case, short, stepping)
    assert history.as_is is not None
    steps = len(history.as_is.log.t)
    assert f"the solver stopped at its limit of 1 iterations in {steps} of {steps} steps" in history.note
    assert history.settings["effort"].startswith("reported: multiplier")


@pytest.mark.extended("test_fully_actuated_robots_are_carried")
def test_a_script_of_settings_sets_what_was_tried() -> None:
    """Read back from the solvers, and as it is given the very run of the route."""
    pytest.importorskip("newton")
    from loopcheck.engines.newton import tuning
    from loopcheck.engines.newton._model import build
    from loopcheck.engines.newton._stepping import Stepping

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
    kamino = tuning.prepared(mechanism, {"solver": "kamino", "rho_0": "0.02", "alpha": "0.3"}).made(model)
    assert (kamino._config.padmm.rho_0, kamino._config.constraints.alpha) == (0.02, 0.3)
    plan, given = tuning.plan(mechanism, motion), tuning.given(mechanism)
    record = tuning.run(plan, tuning.prepared(mechanism, {}), given.bandwidth)
    history = ran("as_is_mujoco", "four_bar")[1]
    np.testing.assert_array_equal(record.acted, run_of(history).log.effort)
    as_it_comes = Stepping(solver="mujoco").made(model).mj_model
    for name, loops in (("solref", as_it_comes.eq_solref[0]), ("solimp", as_it_comes.eq_solimp[0, :2])):
        assert given.settings[name] == " ".join(f"{value:g}" for value in loops)


@pytest.mark.extended("test_fully_actuated_robots_are_carried")
def test_kamino_shuts_a_loop_as_slowly_as_it_is_told() -> None:
    """By a hundredth of its opening a step: half of the motion of the four-bar is less than a time constant."""
    pytest.importorskip("newton")
    from loopcheck.engines.newton import _as_is
    from loopcheck.engines.newton._stepping import Stepping

    case = case_of("four_bar")
    motion, stepping = prescribe(case), Stepping(solver="kamino")
    gains = _as_is.drive_gains(case.mechanism, motion, _as_is.BANDWIDTHS["kamino"])
    opened = motion.q[0] + np.array([0.0, 1e-3, 0.0])
    robot = _as_is.NewtonDriven.from_state(case.mechanism, gains, stepping, (opened, 0 * motion.qd[0]))
    gaps = []
    for _ in range(50):
        robot.step(Order(opened[:1], np.zeros(1)))
        gaps.append(robot.opening().largest)
    seconds = (len(gaps) - 10) * stepping.step / np.log(gaps[9] / gaps[-1])
    assert robot.timeconst == pytest.approx(seconds, rel=0.03)


def test_the_libraries_beside_newton_are_named_where_it_would_warn() -> None:
    """As Newton's own warning, which is printed once in a process and easily missed."""
    newton = pytest.importorskip("newton")
    pytest.importorskip("mujoco_warp")
    from loopcheck.engines.newton._companions import LIBRARIES, companions

    newton.solvers.SolverMuJoCo._versions_checked = False
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        newton.solvers.SolverMuJoCo.import_mujoco()
    told = " ".join(str(warning.message) for warning in caught)
    beside = companions("mujoco")["beside"]
    for library in LIBRARIES:
        assert f"{library} {version(library)}" in beside
        assert (f"{library}=={version(library)} (requires" in told) == (f"{library}~=" in beside)
    assert companions("kamino") == companions("steel") == {}


@pytest.mark.extended("test_fully_actuated_robots_are_carried")
def test_an_error_is_taken_apart() -> None:
    pytest.importorskip("newton")
    pytest.importorskip("mujoco_warp")
    rows = {row["part"]: row for row in budget(case_of("four_bar"), "newton/as_is_mujoco")}
    shares = {name: row["share"] for name, row in rows.items() if row.get("share") is not None and name != "all"}
    assert sum(shares.values()) == pytest.approx(1)
    assert rows["rest"]["rms"] < 0.1 * rows["all"]["rms"]
