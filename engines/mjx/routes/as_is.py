"""MJX as its user runs it: the file as it is, its own actuators and options, `step` and nothing else."""

from typing import ClassVar

from loopcheck.engines.mjx._mjx import device
from loopcheck.engines.mjx.stepper import MjxStepper
from loopcheck.engines.mujoco.as_is import compiled, driven
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


class MjxAsIs(Source):
    """Efforts that acted, in double precision, while a controller moved the robot through the actuators of its file."""

    name = "mjx/as_is"
    double: ClassVar[bool] = True
    """Whether MJX computes in double precision; its default is single."""

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        stepper = MjxStepper(self.name, compiled(case.mechanism), double=self.double)
        settings = {
            "precision": f"{'double' if self.double else 'single'}, on {device()}",
            "plan": "computed with MuJoCo's matrices in double precision",
        }
        return driven(stepper, case, motion, settings)
