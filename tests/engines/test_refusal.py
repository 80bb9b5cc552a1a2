"""Refusals name all missing elements in a single line, so that a user repairs the file once."""

import pytest

from loopcheck import engines
from loopcheck.analytic.motion.prescribe import prescribe
from loopcheck.engines.boundary import want_representable
from loopcheck.robots.errors import NotRepresentableError
from tests.engines.mechanisms import Own

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


def test_a_reason_is_given_once() -> None:
    with pytest.raises(NotRepresentableError, match=r"^here: not supported: one; two$"):
        want_representable("here", iter(("one", "two", "one")))
    want_representable("here", ())
