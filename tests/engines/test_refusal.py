"""Refusals name all missing elements in a single line, so that a user repairs the file once."""

from dataclasses import replace

import numpy as np
import pytest

from loopcheck import engines
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.boundary import want_representable
from loopcheck.robots.errors import NotRepresentableError
from tests.conftest import MODELS, want_engine
from tests.engines.mechanisms import Own, want_right

MUCH = """
<mujoco><compiler angle="radian"/>
  <worldbody>
    <body name="a"><joint name="a" axis="0 0 1"/><geom size=".1" pos=".2 0 0"/>
      <body name="b" pos=".3 0 0"><joint name="b" axis="0 0 1"/><geom size=".1" pos=".2 0 0"/></body></body>
    <body name="c" pos="0 1 0"><joint name="c" axis="0 0 1"/><geom size=".1" pos=".2 0 0"/>
      <body name="d" pos=".3 0 0"><joint name="d" type="ball" damping="0.1"/><geom size=".1" pos=".2 0 0"/></body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="heavy" armature="0.1"><joint joint="a" coef="1"/><joint joint="b" coef="2"/></fixed>
    <fixed name="second" armature="0.2"><joint joint="b" coef="1"/><joint joint="c" coef="2"/></fixed>
  </tendon>
  <equality><tendon name="tie" tendon1="heavy" tendon2="second"/></equality>
  <actuator>
    <motor name="a" joint="a" armature="0.1" damping="0.2"/><motor name="c" joint="c" armature="0.3"/>
  </actuator>
</mujoco>"""
LOST = {
    "exudyn/forward": ("equality 'tie'", "tendon 'heavy'", "tendon 'second'", "spring or damper of ball joint 'd'"),
    "mjx/kkt": ("armature of actuator 'a'", "armature of actuator 'c'", "damping of actuator 'a'"),
    "pinocchio/kkt": ("armature of tendon 'heavy'", "armature of tendon 'second'"),
    "pinocchio/forward": ("armature of tendon 'heavy'", "armature of tendon 'second'", "equality 'tie'"),
    "pybullet/kkt": ("armature of tendon 'heavy'", "armature of tendon 'second'"),
    "pybullet/forward": ("armature of tendon 'heavy'", "armature of tendon 'second'", "'tie' of tendon 'heavy'"),
    "pybullet/as_is": ("armature of tendon 'heavy'", "armature of tendon 'second'", "'tie' of tendon 'second'"),
}


@pytest.mark.parametrize("route", LOST)
def test_all_reasons_are_given_at_once(route: str, own: Own) -> None:
    engine = route.split("/")[0]
    if not engines.installed(engine):
        pytest.skip(f"{engine} is not installed")
    case = own("much", MUCH)
    with pytest.raises(NotRepresentableError) as caught:
        engines.load(route).compute_efforts(case, prescribe(case))
    message = str(caught.value)
    assert message.startswith(f"{engine}: ")
    assert "\n" not in message
    assert [reason for reason in LOST[route] if reason not in message] == []


COAXIAL = """
<mujoco><compiler angle="radian"/><option gravity="0.4 -9 0.2"/><default><joint axis="0 0 1"/></default>
  <worldbody>
    <body name="a"><joint name="housing" pos="0.1 0 0"/><joint name="shaft" pos="0.1 0 -0.2" armature="0.3"/>
      <inertial pos="0.2 0.01 0" mass="0.5" diaginertia="1e-3 2e-3 3e-3"/>
      <body name="b" pos="0.4 0 0"><joint name="elbow"/>
        <inertial pos="0.1 0.01 0" mass="0.5" diaginertia="1e-3 2e-3 3e-3"/></body></body>
    <body name="c" pos="0.4 -0.3 0"><joint name="c"/>
      <inertial pos="0.1 0.01 0" mass="0.5" diaginertia="1e-3 2e-3 3e-3"/></body>
  </worldbody>
  <equality><connect name="loop" body1="b" body2="c" anchor="0.25 0 0"/></equality>
  <actuator><motor name="housing" joint="housing"/><motor name="shaft" joint="shaft"/></actuator>
</mujoco>"""
"""Two hinges about the same axis, of which one turns a rotor: turned against each other, they move no body."""


@pytest.mark.parametrize(
    ("engine", "route"),
    [("dart", "forward"), ("pybullet", "as_is"), ("pybullet", "forward"), ("simbody", "as_is"), ("simbody", "forward")],
)
def test_a_motion_without_mass_is_refused_by_engines_with_rotors_of_their_own(
    engine: str, route: str, own: Own, request: pytest.FixtureRequest
) -> None:
    """The efforts were 80 % off in DART and PyBullet, and not finite in Simbody; equations with M are exact."""
    want_engine(engine, request.config)
    case = own("coaxial", COAXIAL)
    motion = prescribe(case)
    few = motion.assemble(motion.t[:4])
    want_right(f"{engine}/kkt", case, few)
    with pytest.raises(NotRepresentableError, match=f"{engine}: .*'housing' and 'shaft' that turns rotors alone"):
        engines.load(f"{engine}/{route}").compute_efforts(case, few)


@pytest.mark.parametrize(
    ("route", "axis"),
    [*((f"pybullet/{route}", "y") for route in ("kkt", "forward", "as_is")), ("simbody/forward", "its second axis")],
)
def test_angles_of_a_ball_joint_near_their_singularity_are_refused(
    route: str, axis: str, own: Own, request: pytest.FixtureRequest
) -> None:
    want_engine(route.split("/")[0], request.config)
    case = own("ball", (MODELS / "ball_and_universal.xml").read_text(encoding="utf-8"))
    motion, mechanism = prescribe(case), case.mechanism
    ball = [joint.kind for joint in mechanism.joints].index("ball")
    q = motion.q.copy()
    q[50, mechanism.q_slices[ball]] = np.sqrt([0.5, 0, 0.5, 0])
    with pytest.raises(NotRepresentableError, match=rf"not supported: ball joint 'ball' turns by 90\.0° about {axis}"):
        engines.load(route).compute_efforts(case, replace(motion, q=q))


def test_a_reason_is_given_once() -> None:
    with pytest.raises(NotRepresentableError, match=r"^here: not supported: one; two$"):
        want_representable("here", iter(("one", "two", "one")))
    want_representable("here", ())
