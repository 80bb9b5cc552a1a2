"""MuJoCo as its user runs it: the file as it is, its own actuators and options, `mj_step` and nothing else."""

from engines.mujoco.as_is import compiled, driven
from engines.mujoco.stepper import MujocoStepper
from robots.efforts import EffortHistory, Source
from robots.motion import Motion
from robots.robot import Case


class MujocoAsIs(Source):
    """Efforts that acted while a controller moved the robot through the actuators of its file."""

    name = "mujoco/as_is"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        return driven(MujocoStepper(compiled(case.mechanism)), case, motion, {})
