"""Mechanisms with demands on engines beyond the catalogue, and the limits of their routes.

In the drawings: @ motor, o hinge, U two hinges, O ball or point closure, [ ] slide, # ground.
"""

from functools import reduce
from typing import Protocol

from loopcheck import engines
from loopcheck.analytic.dynamics.noc import Noc
from loopcheck.analytic.kinematics.redundancy import moving_part
from loopcheck.robots.arrays import Array
from loopcheck.robots.efforts import Deviation, EffortHistory
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from loopcheck.validation.common import sources
from loopcheck.validation.common.tolerances import Tolerance, registered
from tests.errors import relative_error

# Full tensors, frames turned every way, two joints on one body away from its origin, a loop in space.
#
#    pitch, yaw   coupler
#           U=============O ball
#    crank /               \ rocker
#         @                 o
#         #                 #
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
#
#               O tip
#       left2  / \  right2
#             /   \
#            o     o
#       left  \   /  right
#              @ @@   two motors on the right crank
#              # #
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
#
#    a         b, slide    c
#    o========o[@]========o=====O end
#    #                          #
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

# As a user writes his first loop: shapes give the masses, and the motion is the automatic one, which comes near a
# singularity, where iterative solvers converge slowly.
#
#        coupler
#      o=========O end
# crank \\         \\ rocker
#        @         o
#        #         #
PLAIN_FOUR_BAR = """
<mujoco>
  <worldbody>
    <body name="crank">
      <joint name="crank" axis="0 1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 0.0781 0 -0.0885"/>
      <body name="coupler" pos="0.0781 0 -0.0885">
        <joint name="elbow" axis="0 1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 0.1538 0 -0.3484"/>
      </body>
    </body>
    <body name="rocker" pos="0.566 0 0">
      <joint name="rocker" axis="0 1 0"/><geom type="capsule" size="0.02" fromto="0 0 0 -0.3341 0 -0.4369"/>
    </body>
  </worldbody>
  <equality><connect name="end" body1="coupler" body2="rocker" anchor="0.1538 0 -0.3484"/></equality>
  <actuator><motor name="crank" joint="crank"/></actuator>
</mujoco>"""

_OBLIQUE = (
    ("<worldbody>", '<worldbody><frame euler="20 30 40">'),
    ("</worldbody>", "</frame></worldbody>"),
    ('<joint name="elbow"', '<site name="here" pos="0.1538 0 -0.3484"/><joint name="elbow"'),
    ('pos="0.566 0 0">', 'pos="0.566 5e-8 0"><site name="there" pos="-0.3341 0 -0.4369"/>'),
    ('body1="coupler" body2="rocker" anchor="0.1538 0 -0.3484"', 'site1="here" site2="there"'),
)
OPEN_FOUR_BAR = reduce(lambda text, change: text.replace(*change), _OBLIQUE, PLAIN_FOUR_BAR)
"""Closed with a small gap, as a CAD model: a hinge 50 nm beside the plane of the four-bar, oblique in space."""

# Three equal cranks: the planar loops are redundant, and two motors drive one degree of freedom.
#
#              bar
#    o=======O=======O
#    | a     | b     | d
#    @       o       o     d: a second motor where a test adds it
#    #       #       #
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

# Two motors of which the rocker's is the faster in the middle of a long swing, and at a dead centre towards its end.
#
#      o=============O end
#     / crank       / rocker
#    @             @
#    #             #
TWO_CRANKS = """
<mujoco><compiler angle="radian"/><option gravity="0 -9.81 0"/><default><joint axis="0 0 1"/></default>
  <worldbody>
    <body name="crank"><joint name="crank"/><inertial pos=".2 0 0" mass="1" diaginertia=".01 .01 .01"/>
      <body name="coupler" pos=".4 0 0"><joint name="coupler"/>
        <inertial pos=".5 0 0" mass="1" diaginertia=".1 .1 .1"/><site name="coupler_end" pos="1 0 0"/></body></body>
    <body name="rocker" pos="1 0 0"><joint name="rocker"/>
      <inertial pos=".2 0 0" mass="1" diaginertia=".01 .01 .01"/><site name="end" pos=".45 0 0"/></body>
  </worldbody>
  <equality><connect name="end" site1="coupler_end" site2="end"/></equality>
  <actuator><motor name="crank" joint="crank"/>{}</actuator>
  <keyframe><key name="home" qpos="4.3 -3.64 2.55"/></keyframe>
</mujoco>"""

# A cart with a damped pendulum that nothing drives, released at 45 degrees: no simulation can start earlier, and its
# acceleration changes from the start.
CART = """<mujoco><compiler angle="radian"/><option gravity="0 0 -9.81"/><worldbody>
  <body name="cart"><joint name="cart" type="slide" axis="1 0 0"/><inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>
    <body name="bob" euler="0 0.785 0"><joint name="pin" axis="0 1 0" damping="5"/>
      <inertial pos="0 0 -0.5" mass="2" diaginertia="0.01 0.01 0.01"/>
    </body></body></worldbody><actuator><motor name="cart" joint="cart"/></actuator></mujoco>"""

# A body that tumbles freely, its mass centre beside its origin.
TUMBLING = """<mujoco><option gravity="0 0 -9.81"/><worldbody><body name="box"><freejoint name="box"/>
<inertial pos="0.05 -0.02 0.03" mass="2" fullinertia="0.2 0.3 0.25 0.01 0.02 -0.01"/></body></worldbody></mujoco>"""

# A chain in space whose last body is welded, by an element that takes its place.
FEET = """<mujoco><option gravity="1 2 -9.81"/><worldbody><site name="ground" pos="0.7 0.1 -0.1" euler="5 60 20"/>
  <body name="crank"><joint name="crank" axis="0 1 0"/><inertial pos="0.1 0 0" mass="1" diaginertia="0.01 0.02 0.02"/>
    <body pos="0.2 0 0.05"><joint type="ball"/><inertial pos="0.25 0 0.02" mass="0.8" diaginertia="0.01 0.03 0.03"/>
      <body pos="0.5 0.1 0.2" euler="20 -30 40"><joint axis="1 0 0"/><joint axis="0 0 1"/>
        <inertial pos="0.05 0.02 -0.1" mass="0.9" diaginertia="0.01 0.02 0.02"/>
        <body name="foot" pos="0.1 0 -0.4" euler="0 50 10"><joint axis="0.2 1 0"/><site name="sole" euler="10 20 30"/>
          <inertial pos="0.05 0.02 -0.03" mass="0.3" diaginertia="0.002 0.003 0.002"/></body></body></body></body>
  </worldbody><equality>{}</equality><actuator><motor joint="crank"/></actuator></mujoco>"""

OWN = {
    "spatial": SPATIAL,
    "five_bar": FIVE_BAR,
    "to_world": TO_WORLD,
    "parallel_cranks": PARALLEL_CRANKS.format(""),
}


ROUND_OFF = 1e-11
"""Registered limit of all routes that take the state as given, here over the own peak of each actuator [-]."""
CLOSED = 1e-9
"""Widest gap that a route may see in a state that closes the loops [m or rad]."""


class Own(Protocol):
    """Makes a case of a model above, or of any text."""

    def __call__(self, name: str, text: str = "") -> Case: ...


def reference(case: Case, motion: Motion) -> Array:
    return Noc().compute_efforts(case, motion).effort


def _over_own_peaks(effort: Array, case: Case, motion: Motion) -> float:
    Pi = moving_part(case.mechanism, motion)
    return relative_error(effort if Pi is None else (Pi @ effort[..., None])[..., 0], reference(case, motion))


def want_right(name: str, case: Case, motion: Motion) -> None:
    """A simulation, and single precision, keep within registered limits; inverse dynamics is exact to round-off."""
    history = sources.load(name).compute_efforts(case, motion)
    engine = sources.engine_of(name)
    if sources.simulates(name) or (engine and engines.engine(engine).single_precision):
        want_agreement(history, reference(case, motion), registered()[name])
    else:
        assert (history.closure_drift or Deviation()).largest < CLOSED
        assert _over_own_peaks(history.effort, case, motion) < ROUND_OFF


def want_agreement(history: EffortHistory, wanted: Array, limit: Tolerance) -> None:
    assert relative_error(history.effort, wanted) < (limit.relative_error or 0)
    for found, most in (
        (history.closure_drift, limit.closure_drift),
        (history.tracking_error, limit.tracking_error),
    ):
        assert (found is None) == (most is None)
        assert found is None or found.largest < (most or 0)
