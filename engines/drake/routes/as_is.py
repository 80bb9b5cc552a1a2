"""Drake as its user runs it: a discrete plant with the step of its examples, SAP as it comes, and actuation."""

import numpy as np

from engines.as_is import finite, history
from engines.drake._as_is import demands, simulate
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
        known = demands(case.mechanism, motion)
        with finite(self.name):
            runs = [simulate(case.mechanism, motion, known, sample=sample) for sample in (0, len(motion.t) // 2)]
            return history(self.name, case, motion, (runs[0], runs[1]), timeconst=np.inf, settings=SETTINGS)
