"""MuJoCo as its user runs it: the unmodified file, its own actuators and options, `mj_step` alone."""

from loopcheck.engines.mujoco.as_is import compiled, driven
from loopcheck.engines.mujoco.stepper import MujocoStepper
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


class MujocoAsIs(Source):
    """Efforts that acted while a controller moved the robot through the actuators of its file."""

    name = "mujoco/as_is"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        return driven(MujocoStepper(compiled(case.mechanism)), case, motion, {})
