"""Efforts that acted while a controller moved the robot by actuators on its driven coordinates."""

from collections.abc import Iterator

from loopcheck.engines.as_is import ComputedTorqueAsIs
from loopcheck.engines.mechanics import BALL_OR_FREE
from loopcheck.engines.simbody._equations import equations
from loopcheck.engines.simbody._opensim import guarded
from loopcheck.engines.simbody.simulation import SimbodyRobot
from loopcheck.robots.mechanism import Mechanism


def _unsupported(mechanism: Mechanism) -> Iterator[str]:
    for joint in mechanism.joints:
        if joint.kind in BALL_OR_FREE:
            yield f"{joint.kind} joint '{joint.name}' (represented by angles)"
    for drive in mechanism.drives:
        if not drive.is_joint:
            yield f"drive of tendon '{drive.name}' (actuators only on joints)"


AS_IS = ComputedTorqueAsIs(
    name="simbody/as_is",
    equations=equations,
    robot=SimbodyRobot,
    guarded=guarded,
    settings={
        "loops": "PointConstraint, WeldConstraint and CoordinateCouplerConstraint with default settings",
        "solver": "OpenSim's Manager with default settings, restarted at every step of the controller",
        "actuators": "CoordinateActuator overridden, computed torque held for a step",
        "loads": "springs, dampers, external wrenches and gravity compensation as forces of OpenSim",
    },
    unsupported=_unsupported,
)
