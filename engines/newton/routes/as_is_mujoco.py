"""Newton as its user runs it with its solver MuJoCo: the step of its examples, and its own drives."""

from loopcheck.engines.newton._as_is import held_by_drives
from loopcheck.engines.newton._stepping import Stepping
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


class NewtonAsIsMuJoCo(Source):
    """Efforts of Newton's own drives while they held the robot along the motion, stepped by MuJoCo."""

    name = "newton/as_is_mujoco"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        return held_by_drives(self.name, case, motion, Stepping(solver="mujoco"))
