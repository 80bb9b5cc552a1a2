"""Drake as its user runs it: a discrete plant with the step of its examples, SAP as it comes, and actuation."""

from engines.as_is import driven_by_forces
from engines.drake._as_is import DrakeStepped
from engines.drake._equations import equations
from engines.drake._plant import guarded
from engines.equations import demands_along
from robots.efforts import EffortHistory, Source
from robots.motion import Motion
from robots.robot import Case

SETTINGS = {
    "loops": "AddBallConstraint, AddWeldConstraint and AddCouplerConstraint",
    "solver": "discrete plant with SAP as it comes",
    "actuators": "actuation input port, computed torque held for a step",
    "loads": "springs as force elements, external wrenches and gravity compensation as applied spatial forces",
}


class DrakeAsIs(Source):
    """Efforts that acted while a controller moved the robot by the actuation of its driven joints."""

    name = "drake/as_is"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        mechanism = case.mechanism

        def start(k: int) -> DrakeStepped:
            return DrakeStepped.from_state(mechanism, motion.q[k], motion.qd[k])

        with guarded(self.name):
            known = demands_along(equations(mechanism), motion)
            return driven_by_forces(self.name, case, motion, known, start, SETTINGS)
