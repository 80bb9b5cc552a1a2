"""Newton as its user runs it with its solver MuJoCo: the step of its examples, and its own drives."""

from engines.newton._as_is import held_by_drives
from engines.newton._stepping import Stepping
from robots.efforts import EffortHistory, Source
from robots.motion import Motion
from robots.robot import Case


class NewtonAsIsMuJoCo(Source):
    """Efforts of Newton's own drives while they held the robot along the motion, stepped by MuJoCo."""

    name = "newton/as_is_mujoco"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        return held_by_drives(self.name, case, motion, Stepping(solver="mujoco"))
