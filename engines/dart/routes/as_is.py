"""DART as its user runs it: its default step, constraints as they come, and forces on the driven joints."""

import numpy as np

from engines.as_is import finite, history
from engines.dart._as_is import demands, simulate
from robots.efforts import EffortHistory, Source
from robots.errors import NotRepresentableError
from robots.motion import Motion
from robots.robot import Case

SETTINGS = {
    "loops": "BallJointConstraint and WeldJointConstraint as they come: error reduction 0.01, force mixing 1e-9",
    "solver": "defaults",
    "actuators": "FORCE, computed torque held for a step",
    "loads": "springs of balls and between points, external wrenches and gravity compensation before each step",
}


class DartAsIs(Source):
    """Efforts that acted while a controller moved the robot by forces on its driven joints."""

    name = "dart/as_is"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        mechanism = case.mechanism
        for joint in mechanism.joints:
            if joint.armature:
                raise NotRepresentableError(f"dart: armature of joint '{joint.name}': its joints have no rotors")
        known = demands(mechanism, motion)
        with finite(self.name):
            runs = [simulate(mechanism, motion, known, sample=sample) for sample in (0, len(motion.t) // 2)]
            return history(self.name, case, motion, (runs[0], runs[1]), timeconst=np.inf, settings=SETTINGS)
