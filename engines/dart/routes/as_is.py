"""Efforts that acted while a controller moved the robot by forces on its driven joints."""

from collections.abc import Iterator

from loopcheck.engines.as_is import ComputedTorqueAsIs
from loopcheck.engines.dart._equations import DartEquations
from loopcheck.engines.dart._skeleton import guarded
from loopcheck.engines.dart.simulation import DartRobot
from loopcheck.robots.mechanism import Mechanism


def _unsupported(mechanism: Mechanism) -> Iterator[str]:
    for joint in mechanism.joints:
        if joint.armature:
            yield f"armature of joint '{joint.name}' (joints have no rotors)"


AS_IS = ComputedTorqueAsIs(
    name="dart/as_is",
    equations=DartEquations,
    robot=DartRobot,
    guarded=guarded,
    settings={
        "loops": "BallJointConstraint and WeldJointConstraint, defaults: error reduction 0.01, force mixing 1e-9",
        "solver": "defaults",
        "actuators": "FORCE, computed torque held for a step",
        "loads": "springs of balls and between points, external wrenches and gravity compensation before each step",
    },
    unsupported=_unsupported,
)
