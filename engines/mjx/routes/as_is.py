"""MJX as its user runs it: the file as it is, its own actuators and options, `step` and nothing else."""

from typing import ClassVar

from engines.mjx._mjx import device
from engines.mjx.stepper import MjxStepper
from engines.mujoco.as_is import compiled, driven
from robots.efforts import EffortHistory, Source
from robots.motion import Motion
from robots.robot import Case


class MjxAsIs(Source):
    """Efforts that acted, in double precision, while a controller moved the robot through the actuators of its file."""

    name = "mjx/as_is"
    double: ClassVar[bool] = True
    """Whether MJX computes in double precision, which it does only if it is told to."""

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        stepper = MjxStepper(self.name, compiled(case.mechanism), double=self.double)
        settings = {
            "precision": f"{'double' if self.double else 'single'}, on {device()}",
            "plan": "by MuJoCo's own matrices, in double precision",
        }
        return driven(stepper, case, motion, settings)
