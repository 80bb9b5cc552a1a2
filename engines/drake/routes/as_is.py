"""Drake as its user runs it: a discrete plant with the step of its examples, SAP as it comes, and actuation."""

from loopcheck.engines.as_is import driven_by_efforts
from loopcheck.engines.drake._equations import equations
from loopcheck.engines.drake._plant import guarded
from loopcheck.engines.drake.simulation import DrakeRobot
from loopcheck.engines.equations import demands_along
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

SETTINGS = {
    "loops": "AddBallConstraint, AddWeldConstraint and AddCouplerConstraint",
    "solver": "discrete plant with SAP, default settings",
    "actuators": "actuation input port, computed torque held for a step",
    "loads": "springs as force elements, external wrenches and gravity compensation as applied spatial forces",
}


class DrakeAsIs(Source):
    """Efforts that acted while a controller moved the robot by the actuation of its driven joints."""

    name = "drake/as_is"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        with guarded(self.name):
            known = demands_along(equations(case.mechanism), (motion.q, motion.qd, motion.qdd))
            return driven_by_efforts(self.name, case, motion, known, DrakeRobot, SETTINGS)
