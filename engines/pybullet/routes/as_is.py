"""PyBullet as its user runs it: `loadURDF`, `createConstraint`, the default step, and torques on the driven joints."""

from loopcheck.engines.as_is import Record, finite, held_by_others, history, runs_at
from loopcheck.engines.computed_torque import bandwidth
from loopcheck.engines.equations import Demands
from loopcheck.engines.pybullet._as_is import Stepping, demands, simulate
from loopcheck.engines.pybullet._world import refuse
from loopcheck.engines.pybullet.simulation import STEP
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

            def run(width: float, sample: int, held: Demands = known) -> Record:
                return simulate(case.mechanism, motion, held, start=sample, stepping=Stepping(bandwidth=width))

            runs = runs_at(run, bandwidth(STEP), len(motion.t) // 2)
            others = held_by_others(lambda held: run(runs.bandwidth, 0, held), known)
            return history(self.name, case, motion, runs, SETTINGS, others)
