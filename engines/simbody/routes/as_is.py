"""Simbody as OpenSim's user runs it: its manager with its own integrator and accuracy, and coordinate actuators."""

from loopcheck.engines.as_is import driven_by_efforts
from loopcheck.engines.equations import demands_along
from loopcheck.engines.simbody._equations import equations
from loopcheck.engines.simbody._model import BALL_OR_FREE
from loopcheck.engines.simbody._opensim import guarded
from loopcheck.engines.simbody.simulation import SimbodyRobot
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.errors import NotRepresentableError
from loopcheck.robots.mechanism import Mechanism
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
        _want_scalar(mechanism)
        with guarded(self.name):
            known = demands_along(equations(mechanism), (motion.q, motion.qd, motion.qdd))
            return driven_by_efforts(self.name, case, motion, known, SimbodyRobot, SETTINGS)


def _want_scalar(mechanism: Mechanism) -> None:
    """Refuse coordinates without OpenSim actuators, and angles that are hard to read.

    Raises:
        NotRepresentableError: If there is any.
    """
    for joint in mechanism.joints:
        if joint.kind in BALL_OR_FREE:
            raise NotRepresentableError(
                f"simbody/as_is: not supported: {joint.kind} joint '{joint.name}' (represented by angles)"
            )
    for drive in mechanism.drives:
        if not drive.is_joint:
            raise NotRepresentableError(
                f"simbody/as_is: not supported: drive of tendon '{drive.name}' (actuators only on joints)"
            )
