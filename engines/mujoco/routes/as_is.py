"""MuJoCo as its user runs it: the unmodified file, its own actuators and options, `mj_step` alone."""

from typing import Self

from loopcheck.engines.mujoco.as_is import compiled, driven
from loopcheck.engines.mujoco.stepper import MujocoStepper
from loopcheck.robots.efforts import EffortHistory, ReadsWrenches
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


class MujocoAsIs(ReadsWrenches):
    """Efforts that acted while a controller moved the robot through the actuators of its file."""

    name = "mujoco/as_is"

    def __init__(self, *, wrenches: bool = False) -> None:
        """With the wrenches of the connections in its log, or without."""
        self._wrenches = wrenches

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        stepper = MujocoStepper(compiled(case.mechanism))
        stepper.reads_wrenches = self._wrenches
        return driven(stepper, case, motion, {})

    def with_wrenches(self) -> Self:
        """See `loopcheck.robots.efforts.ReadsWrenches.with_wrenches`."""
        return type(self)(wrenches=True)
