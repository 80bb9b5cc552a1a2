"""PyBullet's routes against the reference on all sorts of mechanisms, and its Jacobians against its own poses."""

from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

import engines
from analytic.assembly import prescribe
from analytic.noc import Noc
from robots.arrays import Array
from robots.efforts import EffortHistory
from robots.errors import EngineError, NotRepresentableError
from robots.mechanism import ConnectClosure, Wrench
from robots.motion import Drive, Motion
from robots.robot import Case, load, make_case
from tests.conftest import MODELS, CaseMaker
from validation.compare import relative_error
from validation.tolerances import Tolerance, registered

CASES_3PRR = [
    (variant, mode, configuration)
    for variant in ("default", "printed_inertia")
    for mode in ("plus", "minus")
    for configuration in ("horizontal", "vertical")
]

# Full tensors, frames turned every way, two joints on one body away from its origin, a loop in space.
SPATIAL = """
<mujoco><compiler angle="radian"/><option gravity="0.3 -0.5 -9.81"/>
  <worldbody>
    <body name="frame" pos="0.1 -0.2 0.3" euler="0.4 -1.1 0.7">
      <body name="crank" pos="0.05 0.02 -0.1" euler="0.2 0.5 -0.9">
        <joint name="crank" axis="0.2 0.3 1" pos="0.02 -0.01 0.03"/>
        <inertial pos="0.06 0.01 -0.02" mass="0.7" fullinertia="3e-3 4e-3 5e-3 4e-4 -3e-4 5e-4"/>
        <body name="coupler" pos="0.2 0.05 0.02" euler="-0.6 0.3 1.2">
          <joint name="pitch" axis="0 1 0" pos="0.01 0.02 -0.01"/>
          <joint name="yaw" axis="0.1 0 1" pos="-0.02 0.01 0.02"/>
          <inertial pos="0.25 0.03 0.02" mass="1.3" fullinertia="6e-3 2e-2 2.2e-2 2e-3 -1e-3 1.5e-3"/>
        </body>
      </body>
    </body>
    <body name="rocker" pos="0.5 0.3 0.1" euler="1.3 0.2 -0.4">
      <joint name="rocker" axis="1 0.4 -0.2" pos="0 0.05 0"/>
      <inertial pos="0.02 0.1 0.04" mass="0.9" fullinertia="4e-3 3e-3 5e-3 -2e-4 6e-4 3e-4"/>
    </body>
  </worldbody>
  <equality><connect name="ball" body1="coupler" body2="rocker" anchor="0.5 0.02 0.03"/></equality>
  <actuator><motor name="crank" joint="crank" gear="2"/></actuator>
</mujoco>"""

# Planar, with all that a joint or body may carry besides: references, gears, armature, damping, a spring, held weight.
FIVE_BAR = """
<mujoco><compiler angle="radian"/><option gravity="0.4 -9 0.2"/>
  <worldbody>
    <body name="left" pos="-0.05 0.1 0" euler="0 0 1.9">
      <joint name="left" axis="0 0 1" pos="-0.1 0.02 0" ref="0.4" armature="0.02" damping="0.1"/>
      <inertial pos="0.05 0.01 0" mass="0.5" diaginertia="1e-3 2e-3 3e-3"/>
      <body name="left2" pos="0.3 0 0" euler="0 0 -1.2">
        <joint name="left2" axis="0 0 1" pos="-0.03 0 0.01" stiffness="2" springref="0.7" damping="0.05"/>
        <inertial pos="0.12 0.01 0" mass="0.4" diaginertia="1e-3 3e-3 4e-3"/>
      </body>
    </body>
    <body name="right" pos="0.3 0 0.1" euler="0 0 0.6" gravcomp="0.5">
      <joint name="right" axis="0 0 1" pos="0.02 0 0" ref="-0.3"/>
      <inertial pos="0.1 0.01 0.02" mass="0.6" diaginertia="1e-3 2e-3 3e-3"/>
      <body name="right2" pos="0.3 0 0" euler="0 0 0.9">
        <joint name="right2" axis="0 0 -1" pos="-0.01 0 0" armature="0.003"/>
        <inertial pos="0.15 0 0" mass="0.3" diaginertia="1e-3 2e-3 2.5e-3"/>
      </body>
    </body>
  </worldbody>
  <equality><connect name="tip" body1="left2" body2="right2" anchor="0.3 0 0"/></equality>
  <actuator>
    <motor name="left" joint="left" gear="2"/>
    <motor name="right" joint="right" gear="-3"/>
    <motor name="right again" joint="right" gear="1"/>
  </actuator>
</mujoco>"""

# A chain in space that ends at the world.
TO_WORLD = """
<mujoco><compiler angle="radian"/>
  <worldbody>
    <body name="a" euler="0.1 0.2 0.3">
      <joint name="a" axis="0 0.3 1"/>
      <inertial pos="0.03 0.02 0.1" mass="1" fullinertia="3e-3 4e-3 5e-3 4e-4 -3e-4 5e-4"/>
      <body name="b" pos="0.3 0 0.2" euler="0.5 0.4 0">
        <joint name="b" axis="1 0 0" pos="0 0.02 0"/>
        <joint name="slide" type="slide" axis="0 1 0.2" ref="0.2"/>
        <inertial pos="0.1 0.02 0.1" mass="1" fullinertia="3e-3 4e-3 5e-3 4e-4 -3e-4 5e-4"/>
        <body name="c" pos="0.1 0.3 0" euler="0 0.6 0.4">
          <joint name="c" axis="0 1 0"/>
          <inertial pos="0.03 0.02 0.1" mass="1" fullinertia="3e-3 4e-3 5e-3 4e-4 -3e-4 5e-4"/>
        </body>
      </body>
    </body>
  </worldbody>
  <equality><connect name="end" body1="c" anchor="0.2 0.01 0.03"/></equality>
  <actuator><motor name="slide" joint="slide"/></actuator>
</mujoco>"""

# Three equal cranks: the planar loops are redundant, and two motors drive one degree of freedom.
PARALLEL_CRANKS = """
<mujoco><compiler angle="radian"/><option gravity="0 -9.81 0"/>
  <worldbody>
    <body name="a">
      <joint name="a" axis="0 0 1"/><inertial pos="0 0.15 0.01" mass="1" diaginertia="1e-2 2e-3 1e-2"/>
      <body name="bar" pos="0 0.3 0">
        <joint name="bar" axis="0 0 1"/><inertial pos="0.3 0 0" mass="2" diaginertia="1e-2 2e-2 2.5e-2"/>
      </body>
    </body>
    <body name="b" pos="0.35 0 0">
      <joint name="b" axis="0 0 1"/><inertial pos="0 0.15 0" mass="1" diaginertia="1e-2 2e-3 1e-2"/>
    </body>
    <body name="d" pos="0.6 0 0">
      <joint name="d" axis="0 0 1"/><inertial pos="0 0.15 0" mass="1" diaginertia="1e-2 2e-3 1e-2"/>
    </body>
  </worldbody>
  <equality>
    <connect name="b" body1="b" body2="bar" anchor="0 0.3 0"/>
    <connect name="d" body1="d" body2="bar" anchor="0 0.3 0"/>
  </equality>
  <actuator><motor name="a" joint="a"/>{}</actuator>
</mujoco>"""

OWN = {
    "spatial": SPATIAL,
    "five_bar": FIVE_BAR,
    "to_world": TO_WORLD,
    "parallel_cranks": PARALLEL_CRANKS.format(""),
}


class Own(Protocol):
    """Makes a case of one of the models above, or of any text."""

    def __call__(self, name: str, text: str = "") -> Case: ...


@pytest.fixture(autouse=True)
def pybullet() -> Any:
    return pytest.importorskip("pybullet")


@pytest.fixture
def own(tmp_path: Path, model_case: CaseMaker) -> Own:
    def make(name: str, text: str = "") -> Case:
        path = tmp_path / f"{name}.xml"
        path.write_text(text or OWN[name], encoding="utf-8")
        return model_case(path, amplitude=0.15)

    return make


@cache
def case_3prr(key: tuple[str, str, str]) -> tuple[Case, Motion]:
    variant, mode, configuration = key
    case = make_case(load("3prr"), variant=variant, mode=mode, configuration=configuration)
    return case, prescribe(case)


def run(route: str, case: Case, motion: Motion) -> EffortHistory:
    return engines.load(f"pybullet/{route}").compute_efforts(case, motion)


def reference(case: Case, motion: Motion) -> Array:
    return Noc().compute_efforts(case, motion).effort


def want_agreement(history: EffortHistory, wanted: Array, limit: Tolerance) -> None:
    assert relative_error(history.effort, wanted) < (limit.relative_error or 0)
    for found, most in (
        (history.closure_drift, limit.closure_drift),
        (history.tracking_error, limit.tracking_error),
    ):
        assert (found is None) == (most is None)
        assert found is None or found < (most or 0)


@pytest.mark.parametrize("route", ["kkt", "forward"])
@pytest.mark.parametrize("key", CASES_3PRR)
def test_agrees_on_3prr(key: tuple[str, str, str], route: str) -> None:
    case, motion = case_3prr(key)
    want_agreement(run(route, case, motion), reference(case, motion), registered()[f"pybullet/{route}"])


LOST = {
    ("floating_rotors", "kkt"): "pybullet: armature of free joint 'base'",
    ("floating_rotors", "forward"): "pybullet: armature of free joint 'base'",
}
"""What PyBullet cannot carry of the zoo."""


@pytest.mark.parametrize("route", ["kkt", "forward"])
def test_agrees_on_the_zoo(zoo_case: Case, zoo_motion: Motion, route: str) -> None:
    """Welds, joints that follow others by a curve, tendons, ball and free joints, undriven dofs included."""
    if lost := LOST.get((zoo_case.robot.name, route)):
        with pytest.raises(NotRepresentableError, match=lost):
            run(route, zoo_case, zoo_motion)
        return
    wanted = reference(zoo_case, zoo_motion)
    want_agreement(run(route, zoo_case, zoo_motion), wanted, registered()[f"pybullet/{route}"])


@pytest.mark.parametrize("route", ["kkt", "forward"])
@pytest.mark.parametrize("name", OWN)
def test_agrees_on_any_mechanism(own: Own, name: str, route: str) -> None:
    case = own(name)
    motion = prescribe(case)
    want_agreement(run(route, case, motion), reference(case, motion), registered()[f"pybullet/{route}"])


@pytest.mark.parametrize("route", ["kkt", "forward"])
def test_a_joint_held_at_a_constant_is_held(own: Own, route: str) -> None:
    joint = '<joint name="held" axis="0 0 1" pos="0 0.05 0" ref="0.2"/>'
    lock = '<joint name="lock" joint1="held" polycoef="0.05 0 0 0 0"/>'
    text = SPATIAL.replace('<joint name="rocker"', f'{joint}<joint name="rocker"')
    case = own("held", text.replace("<equality>", f"<equality>{lock}"))
    motion = prescribe(case)
    assert motion.q[:, 3] == pytest.approx(0.25)
    want_agreement(run(route, case, motion), reference(case, motion), registered()[f"pybullet/{route}"])


@pytest.mark.parametrize("route", ["kkt", "forward"])
def test_external_wrenches_act(own: Own, route: str) -> None:
    case = own("spatial")
    vectors = {"point": [0.2, -0.1, 0.3], "moment": [0.3, -0.2, 0.5], "force": [2.0, 1.0, -3.0]}
    load = Wrench(body=2, **{name: np.array(vector) for name, vector in vectors.items()})
    loaded = replace(case, mechanism=replace(case.mechanism, wrenches=(load,)))
    motion = prescribe(loaded)
    wanted = reference(loaded, motion)
    assert relative_error(wanted, reference(case, motion)) > 0.1
    want_agreement(run(route, loaded, motion), wanted, registered()[f"pybullet/{route}"])


def test_plain_steps_are_of_first_order() -> None:
    """Seen in the changes from step to step alone, without a reference."""
    ladder = run("forward", *case_3prr(("default", "plus", "vertical"))).ladder
    assert [a.dt / b.dt for a, b in pairwise(ladder)] == pytest.approx([2, 2, 2])
    changes = [np.abs(a.effort - b.effort).max() for a, b in pairwise(ladder)]
    assert np.log2([a / b for a, b in pairwise(changes)]) == pytest.approx(1, abs=0.05)


def test_redundant_motors_are_left_off(own: Own) -> None:
    """What the motors that are on do to the one degree of freedom is what a single motor would."""
    one = own("parallel_cranks")
    two = own("two", PARALLEL_CRANKS.format('<motor name="d" joint="d" gear="2"/>'))
    motion = prescribe(one)

    def both(t: Array) -> Drive:  # equal cranks turn alike
        return Drive(*(np.repeat(x, 2, axis=1) for x in motion.law(t)))

    history = run("forward", two, replace(motion, law=both))
    assert "motors of" in history.note
    assert (history.effort == 0).all(axis=0).sum() == 1
    on_the_dof = history.effort @ two.mechanism.selection.sum(axis=1, keepdims=True)
    assert relative_error(on_the_dof, reference(one, motion)) < (registered()["pybullet/forward"].relative_error or 0)


def test_default_is_untuned() -> None:
    case, motion = case_3prr(("default", "plus", "vertical"))
    history = run("default", case, motion)
    assert "information" in history.note
    assert history.settings["steps"] == "3.33333 ms"  # the grid of 10 ms in three, below 1/240 s
    assert (history.tracking_error or 0) > 1e-3  # a position gain of 0.1 lags behind
    assert relative_error(history.effort, reference(case, motion)) > 1e-2


@pytest.mark.parametrize("name", ["spatial", "five_bar", "to_world"])
def test_loop_jacobian_is_the_derivative_of_pybullets_own_poses(own: Own, pybullet: Any, name: str) -> None:
    from engines.pybullet._jacobian import closure_jacobian
    from engines.pybullet._world import World, opened

    case = own(name)
    h, q = 1e-6, prescribe(case).q[30]

    def gap(world: World, q: Array) -> Array:
        """First closure point minus the second, from the poses of PyBullet's inertial frames (3,)."""
        for joint, position in zip(world.moving, world.positions(q), strict=True):
            pybullet.resetJointState(world.tree, joint, position, physicsClientId=world.client)
        closure = world.mechanism.closures[0]
        assert isinstance(closure, ConnectClosure)
        return place(world, closure.body1, closure.point1) - place(world, closure.body2, closure.point2)

    def place(world: World, body: int, point: Array) -> Array:
        if body < 0:
            return point
        pose = pybullet.getLinkState(world.tree, world.links[body], computeForwardKinematics=True)
        R = np.array(pybullet.getMatrixFromQuaternion(pose[1])).reshape(3, 3)  # of the principal axes
        center, Q = world.principal_frame(body)
        return np.array(pose[0]) + R @ Q.T @ (point - center)

    with opened(case.mechanism) as world:
        J = closure_jacobian(world, q)
        slopes = [(gap(world, q + h * dq) - gap(world, q - h * dq)) / (2 * h) for dq in np.eye(len(q))]
    np.testing.assert_allclose(J, np.array(slopes).T, atol=1e-9)


@pytest.mark.parametrize("route", ["kkt", "forward", "default"])
def test_angles_of_a_ball_joint_near_their_singularity_are_refused(model_case: CaseMaker, route: str) -> None:
    case = model_case(MODELS / "ball_and_universal.xml", amplitude=0.1)
    mechanism, motion = case.mechanism, prescribe(case)
    ball = [joint.kind for joint in mechanism.joints].index("ball")
    q = motion.q.copy()
    q[50, mechanism.q_slices[ball]] = np.sqrt([0.5, 0, 0.5, 0])
    with pytest.raises(NotRepresentableError, match=r"pybullet: ball joint 'ball' turns by 90\.0° about y"):
        run(route, case, replace(motion, q=q))


@pytest.mark.parametrize("route", ["forward", "default"])
def test_a_simulation_that_blows_up_is_an_error(route: str) -> None:
    case, motion = case_3prr(("default", "plus", "horizontal"))

    def nowhere(t: Array) -> Drive:
        return Drive(*(np.full((len(t), 3), np.nan) for _ in range(3)))

    with pytest.raises(EngineError, match=r"pybullet: unstable at steps of 0\.00"):
        run(route, case, replace(motion, law=nowhere))


def test_what_pybullet_raises_becomes_an_engine_error(own: Own, pybullet: Any) -> None:
    from engines.pybullet._world import opened

    with pytest.raises(EngineError, match="pybullet: "), opened(own("to_world").mechanism) as world:
        pybullet.getJointInfo(world.tree, 99, physicsClientId=world.client)


def test_pybullet_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    run("kkt", *case_3prr(("default", "plus", "horizontal")))
    assert capfd.readouterr() == ("", "")
