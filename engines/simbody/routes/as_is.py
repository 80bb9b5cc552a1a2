"""Simbody as OpenSim's user runs it: its manager with its own integrator and accuracy, and coordinate actuators."""

import numpy as np

from engines.as_is import finite, history
from engines.simbody._as_is import demands, simulate, want_scalar
from robots.efforts import EffortHistory, Source
from robots.motion import Motion
from robots.robot import Case

SETTINGS = {
    "loops": "PointConstraint, WeldConstraint and CoordinateCouplerConstraint as they come",
    "solver": "OpenSim's Manager as it comes, started anew at every step of the controller",
    "actuators": "CoordinateActuator overridden, computed torque held for a step",
    "loads": "springs, dampers, external wrenches and gravity compensation as forces of OpenSim",
}


class SimbodyAsIs(Source):
    """Efforts that acted while a controller moved the robot by actuators on its driven coordinates."""

    name = "simbody/as_is"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        want_scalar(case.mechanism)
        known = demands(case.mechanism, motion)
        with finite(self.name):
            runs = [simulate(case.mechanism, motion, known, sample=sample) for sample in (0, len(motion.t) // 2)]
            return history(self.name, case, motion, (runs[0], runs[1]), timeconst=np.inf, settings=SETTINGS)
