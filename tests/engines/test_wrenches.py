"""Forces in the joints by engine and reading, against the equations of motion at the efforts of the same simulation.

Each route that simulates and gives wrenches, on robots and on the linkage of `docs/orders.py` with one element at a
time. A reading with a `fault` must be wrong by its term, written here independently, and by nothing else.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest

from docs.forces import PAGE, ROBOTS, SAMPLES, declared, differences, read, readings
from docs.orders import TERMS, prepared_term
from loopcheck import engines
from loopcheck.analytic.dynamics.noc import body_wrenches
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import point_of
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.robots.arrays import Array
from loopcheck.robots.connections import Connection, connections
from loopcheck.robots.efforts import EffortHistory
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.mechanism import WORLD, Mechanism
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case, load, representative_case
from loopcheck.validation.check.efforts.evaluate import evaluate
from loopcheck.validation.check.efforts.outcome import Ran, Unmodified
from loopcheck.validation.check.reactions import reaction_rows, reading_rows
from loopcheck.validation.common.tolerances import registered
from tests import conftest
from tests.closed_chains import closed_chain
from tests.conftest import CaseMaker, want_engine
from tests.engines.mechanisms import FEET
from tests.engines.test_oracle import CHAINS

ENGINES = [name for name in engines.engine_names() if engines.provides(name, "wrenches")]
ROUTES = [f"{name}/forward" for name in ENGINES]
WORLD_FIRST = """<mujoco><worldbody><site name="ground" pos="0.8 0 -0.1"/>
  <body><joint name="crank" axis="0 1 0"/><inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.02 0.02"/>
    <body pos="0.2 0 0"><joint axis="0 1 0"/><inertial pos="0.2 0 0.1" mass="0.8" diaginertia="0.01 0.03 0.03"/>
      <body pos="0.5 0 0.2"><joint axis="0 1 0"/><inertial pos="0.05 0 -0.1" mass="0.9" diaginertia="0.01 0.02 0.02"/>
        <site name="tip" pos="0.1 0 -0.3"/></body></body></body></worldbody>
  <equality><connect site1="ground" site2="tip"/></equality><actuator><motor joint="crank"/></actuator>
  <keyframe><key name="home" qpos="0 0 0"/></keyframe></mujoco>"""
"""A four-bar that is closed on the world, which is body 1 of the loop."""
WELD = '<weld body1="world" body2="foot" anchor="0.1 0.2 0.3" torquescale="3"/>'
MODELS: Mapping[str, str] = {"world first": WORLD_FIRST, "weld in space": FEET.format(WELD)}
Judged: TypeAlias = Callable[[str], tuple[Case, Motion]]
SLOW, AT_JOINTS = ("dart", "drake"), ("ball joint", "slide", "weld", "armature")
COMPILED = {"mjx": (ROBOTS[0], "tendon spring", "coupling", "weld in space")}
"""Models of engines that compile for half a minute each."""
RANDOM = ("balls", "struts", "undriven")
"""Chains of `tests/closed_chains.py`."""


def _accumulated(mechanism: Mechanism, state: State, needed: Array) -> Array:
    """Wrenches of bodies about their mass centres as wrenches of the connections that carry them [N m, N]."""
    P, needed = state.poses, needed.copy()

    def moved(wrench: Array, arm: Array) -> Array:
        return wrench + np.concatenate([np.cross(arm, wrench[:, 3:]), 0 * arm], axis=1)

    for b, body in reversed([*enumerate(mechanism.bodies)]):
        if body.parent != WORLD:
            needed[:, body.parent] += moved(needed[:, b], P.c[:, b] - P.c[:, body.parent])
    wrenches = np.zeros((len(state.q), len(connections(mechanism)), 6))
    for k, (_, b, point, closure) in enumerate(connections(mechanism)):
        if closure is None:
            about = moved(needed[:, b], P.c[:, b] - point_of(P, b, point))
            wrenches[:, k] = (about.reshape(-1, 2, 3) @ P.R[:, b]).reshape(-1, 6)
    return wrenches


def _of_second_pass(mechanism: Mechanism, motion: Motion, history: EffortHistory) -> Array:
    """Reactions that Bullet's second pass adds: of the tree without forces, but for its drives of slides.

    Bodies have v x S qd and gyroscopic moments, without m w x v. The drive of a slide acts at both mass centres, and
    so lacks a moment on the body before it.
    """
    free = replace(mechanism, gravity=np.zeros(3), closures=(), wrenches=(), point_springs=())
    state, still = State(mechanism=free, q=motion.q, qd=motion.qd), State.at_rest(free, motion.q)
    K, P, none = state.K, state.poses, 0 * motion.qd
    bias = body_wrenches(state, none)[0]
    bias[..., 3:] -= np.array([[body.mass] for body in free.bodies]) * np.cross(state.twists.w, state.twists.v)
    if mechanism.coordinate_closures or any(joint.armature for joint in mechanism.joints):  # whose gears are unknown
        return np.full((len(motion.t), len(connections(mechanism)), 6), np.nan)
    drives, forces = mechanism.drives, history.effort @ mechanism.gearing
    for k, drive in enumerate(drives):
        joint = mechanism.joints[drive.joints[0]]
        parent = mechanism.bodies[joint.body].parent
        if joint.kind == "slide" and parent != WORLD:
            push = forces[:, k, None] * (P.R[:, joint.body] @ joint.axis)
            bias[:, parent, :3] -= np.cross(P.c[:, joint.body] - P.c[:, parent], push)
    M = np.stack([np.sum(K * body_wrenches(still, none + e)[0][..., None], (1, 2)) for e in np.eye(free.nv)], axis=2)
    qdd = -np.linalg.solve(M, np.sum(K * bias[..., None], (1, 2))[..., None])[..., 0]
    return _accumulated(mechanism, state, bias + body_wrenches(still, qdd)[0])


def _of_compensation(mechanism: Mechanism, motion: Motion, history: EffortHistory) -> Array:
    """Wrenches without gravity compensation, in MJX without springs between points either, less those with it."""
    heavy = replace(mechanism, bodies=tuple(replace(body, gravity_compensation=0.0) for body in mechanism.bodies))
    if history.source.startswith("mjx"):
        heavy = replace(heavy, point_springs=())
    state, heavier = (State(mechanism=each, q=motion.q, qd=motion.qd) for each in (mechanism, heavy))
    return _accumulated(mechanism, state, body_wrenches(heavier, motion.qdd)[0] - body_wrenches(state, motion.qdd)[0])


SURPLUS: Mapping[str, Callable[[Mechanism, Motion, EffortHistory], Array]] = {
    "jointReactionForces": _of_second_pass,
    "cfrc_int": _of_compensation,
}
"""Wrenches less the true wrenches, of readings that no conversion mends."""


@pytest.fixture(scope="session")
def judged(tmp_path_factory: pytest.TempPathFactory, model_case: CaseMaker) -> Judged:
    """A robot, the linkage with an element, or a random chain, with a part of its motion."""
    folder = tmp_path_factory.mktemp("models")

    @cache
    def make(name: str) -> tuple[Case, Motion]:
        if name in TERMS:
            case = prepared_term(name, folder).case
        elif name in MODELS:
            (folder / f"{name}.xml").write_text(MODELS[name], encoding="utf-8")
            case = model_case(folder / f"{name}.xml", amplitude=0.15)
        elif name in RANDOM:
            assert closed_chain(CHAINS[name], np.random.default_rng(0), folder / f"{name}.xml")
            case = model_case(folder / f"{name}.xml", amplitude=0.02)
        else:
            case = representative_case(load(name))
        motion = prescribe(case)
        return case, motion.assemble(motion.t[SAMPLES])

    return make


def _rows() -> Iterator[Any]:
    """Each route on each model; of the slow ones, those elements that their wrenches are read at."""
    for route in ROUTES:
        engine = route.split("/")[0]
        elements = [name for name in TERMS if name in AT_JOINTS or engine not in SLOW]
        for name in COMPILED.get(engine, (*ROBOTS, *elements, *MODELS, *RANDOM)):
            is_quick = name == ROBOTS[0] and engine not in COMPILED
            marks = [] if is_quick else [pytest.mark.extended("test_readings_are_the_wrenches")]
            yield pytest.param(route, name, marks=marks, id=f"{route}-{name}")


def _carries(carriers: str, mechanism: Mechanism, connection: Connection) -> bool:
    if connection.closure is not None:
        return "closures" in carriers
    return carriers == "bodies" or (carriers == "bodies with joints" and bool(mechanism.joints_of[connection.body]))


@pytest.mark.parametrize(("route", "name"), [*_rows()])
def test_readings_are_the_wrenches(
    route: str, name: str, judged: Judged, request: pytest.FixtureRequest, record_property: Any
) -> None:
    """Up to the tolerance of efforts, or to the term that a reading lacks."""
    engine = route.split("/")[0]
    want_engine(engine, request.config)
    case, motion = judged(name)
    try:
        history = read(route, case, motion)
    except NotRepresentableError:
        return
    if "known issue" in history.note:  # its efforts are wrong too
        return
    of_engine = engines.part(engine, "wrenches").READINGS
    assert {*history.wrenches} == {reading.name for reading in of_engine}
    limit = registered()[route].relative_error
    assert limit is not None
    for reading in of_engine:
        wrench = history.wrenches[reading.name]
        surplus = SURPLUS[reading.name](case.mechanism, motion, history) if reading.fault else np.zeros(6)
        as_read, mended = (differences(case, motion, history.effort, wrench - each) for each in (np.zeros(6), surplus))
        carried = np.array([_carries(reading.carriers, case.mechanism, each) for each in connections(case.mechanism)])
        assert np.isnan(as_read).tolist() == (~carried).tolist()
        record_property(reading.name, float(as_read[carried].max(initial=0.0)))
        if np.isnan(mended[carried]).any():
            assert as_read[carried].max() > limit
        else:
            assert mended[carried].max(initial=0.0) < limit


@pytest.mark.parametrize("route", [route for route in ROUTES if route.split("/")[0] not in COMPILED])
def test_the_moment_along_a_driven_hinge_is_its_effort(
    route: str, judged: Judged, request: pytest.FixtureRequest
) -> None:
    """Both are extrapolated alike; Drake's solver leaves 2e-9."""
    want_engine(route.split("/")[0], request.config)
    case, motion = judged("four_bar")
    history, (crank, *_) = read(route, case, motion), case.mechanism.joints
    moment = next(iter(history.wrenches.values()))[:, 0, :3] @ crank.axis
    np.testing.assert_allclose(moment, history.effort[:, 0], rtol=0, atol=1e-8 * np.abs(history.effort).max())


@pytest.mark.parametrize("route", ["dart/forward", "pybullet/forward"])
def test_the_first_reading_without_a_pre_roll_is_refused(
    route: str, judged: Judged, request: pytest.FixtureRequest
) -> None:
    """Robots with unactuated motions have no pre-roll."""
    want_engine(route.split("/")[0], request.config)
    for name, refused in (("undriven", True), ("four_bar", False)):
        for wrench in read(route, *judged(name)).wrenches.values():
            carried = ~np.isnan(wrench).all(axis=(0, 2))
            assert np.isnan(wrench[0, carried]).all() if refused else np.isfinite(wrench[0, carried]).all(), name
            assert np.isfinite(wrench[1:, carried]).all()


def test_a_motor_in_the_place_of_a_tendon_reads_no_forces(
    model_case: CaseMaker, request: pytest.FixtureRequest
) -> None:
    """PyBullet moves a joint that the loop ties to the tendon: the same efforts, but other forces in the joints."""
    want_engine("pybullet", request.config)
    case = model_case(conftest.MODELS / "tendon_hand.xml", amplitude=0.1, duration=0.1, frequency=2.0)
    ran = evaluate(case, prescribe(case), "pybullet/forward", reads_wrenches=True)
    assert isinstance(ran, Ran)
    assert "forces in the joints are not read" in ran.history.note
    assert not ran.wrenches


@pytest.mark.extended("test_readings_are_the_wrenches")
def test_a_weld_is_read_in_an_unmodified_run(model_case: CaseMaker, tmp_path: Path) -> None:
    """Up to the softness of a hard weld, which is proportional to its time constant."""
    error = []
    for step in (1e-3, 5e-4):
        text = FEET.format(WELD.replace("/>", f' solref="{2 * step} 1" solimp="0.9999 0.9999 0.001"/>'))
        (tmp_path / "hard.xml").write_text(text.replace("<option ", f'<option timestep="{step}" '), encoding="utf-8")
        case = model_case(tmp_path / "hard.xml", amplitude=0.15, duration=0.5)
        motion, tolerance = prescribe(case), registered()["mujoco/as_is"].model_copy(update={"relative_error": 1.0})
        run, found = evaluate(case, motion, "mujoco/as_is", reads_wrenches=True), reaction_rows(case, motion).found
        assert isinstance(run, Unmodified)
        assert found is not None
        run = replace(run, settled=replace(run.settled, window=0.2, reason=""))
        *_, weld = reading_rows(run, motion, found, tolerance).connections
        assert weld["moment"] > 1
        error.append([weld["moment_error"] / weld["moment"], weld["force_error"] / weld["force"]])
    assert np.max(error) < 4e-4
    np.testing.assert_allclose(error[1], np.array(error[0]) / 2, rtol=0.05)


def test_the_page_of_readings_is_current(request: pytest.FixtureRequest) -> None:
    """Declarations, and errors within the tolerances unless a term is lacking."""
    for engine in ENGINES:
        want_engine(engine, request.config)
    text = PAGE.read_text(encoding="utf-8")
    assert declared(text) == text
    for engine, reading in readings():
        (line,) = re.findall(rf"\n\| {engine}: `{re.escape(reading.name)}` +\|([-e|. 0-9]+)\|\n", text)
        figures, limit = [float(figure) for figure in line.split("|")], registered()[f"{engine}/forward"].relative_error
        assert limit is not None
        assert len(figures) == len(ROBOTS)
        assert max(figures) < limit or (reading.fault and min(figures) > limit)
