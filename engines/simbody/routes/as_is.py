"""Simbody as OpenSim's user runs it: its manager with its own integrator and accuracy, and coordinate actuators."""

from loopcheck.engines.as_is import driven_by_forces
from loopcheck.engines.equations import demands_along
from loopcheck.engines.simbody._as_is import SimbodyStepped, want_scalar
from loopcheck.engines.simbody._equations import equations
from loopcheck.engines.simbody._opensim import guarded
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

SETTINGS = {
    "loops": "PointConstraint, WeldConstraint and CoordinateCouplerConstraint with default settings",
    "solver": "OpenSim's Manager with default settings, restarted at every step of the controller",
    "actuators": "CoordinateActuator overridden, computed torque held for a step",
    "loads": "springs, dampers, external wrenches and gravity compensation as forces of OpenSim",
}


class SimbodyAsIs(Source):
    """Efforts that acted while a controller moved the robot by actuators on its driven coordinates."""

    name = "simbody/as_is"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        mechanism = case.mechanism
        want_scalar(mechanism)

        def start(k: int) -> SimbodyStepped:
            return SimbodyStepped.from_state(mechanism, float(motion.t[k]), motion.q[k], motion.qd[k])

        with guarded(self.name):
            known = demands_along(equations(mechanism), motion)
            return driven_by_forces(self.name, case, motion, known, start, SETTINGS)
