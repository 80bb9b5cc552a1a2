"""DART as its user runs it: its default step, constraints as they come, and forces on the driven joints."""

from loopcheck.engines.as_is import driven_by_efforts
from loopcheck.engines.boundary import silenced
from loopcheck.engines.dart._equations import equations
from loopcheck.engines.dart._skeleton import guarded
from loopcheck.engines.dart.simulation import DartRobot
from loopcheck.engines.equations import demands_along
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

SETTINGS = {
    "loops": (
        "BallJointConstraint and WeldJointConstraint with default settings: error reduction 0.01, force mixing 1e-9"
    ),
    "solver": "defaults",
    "actuators": "FORCE, computed torque held for a step",
    "loads": "springs of balls and between points, external wrenches and gravity compensation before each step",
}


class DartAsIs(Source):
    """Efforts that acted while a controller moved the robot by forces on its driven joints."""

    name = "dart/as_is"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        mechanism = case.mechanism
        for joint in mechanism.joints:
            if joint.armature:
                raise NotRepresentableError(
                    f"dart: not supported: armature of joint '{joint.name}' (joints have no rotors)"
                )

        with guarded(self.name), silenced():
            known = demands_along(equations(mechanism), (motion.q, motion.qd, motion.qdd))
            return driven_by_efforts(self.name, case, motion, known, DartRobot, SETTINGS)
