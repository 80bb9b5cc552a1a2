"""PyBullet as its user runs it: `loadURDF`, `createConstraint`, the default step, and torques on the driven joints."""

from functools import partial

from loopcheck.engines.as_is import finite, held_by_others, history
from loopcheck.engines.pybullet._as_is import demands, simulate
from loopcheck.engines.pybullet._refusals import refuse
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

SETTINGS = {
    "loops": "createConstraint with default settings",
    "solver": "defaults: sequential impulse, 50 iterations, residual threshold 1e-7, erp 0.2",
    "actuators": "TORQUE_CONTROL, computed torque held for a step; default motors off",
    "damping": "defaults: linear and angular 0.04; joint damping as in the model",
    "loads": "springs, external wrenches and gravity compensation applied before each step",
}


class PybulletAsIs(Source):
    """Efforts that acted while a controller moved the robot by torques on its driven joints."""

    name = "pybullet/as_is"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        refuse(case.mechanism, motion.q, closed=True)
        known = demands(case.mechanism, motion)
        with finite(self.name):
            runs = [simulate(case.mechanism, motion, known, start=sample) for sample in (0, len(motion.t) // 2)]
            others = held_by_others(partial(simulate, case.mechanism, motion), known)
            return history(self.name, case, motion, (runs[0], runs[1]), SETTINGS, others)
