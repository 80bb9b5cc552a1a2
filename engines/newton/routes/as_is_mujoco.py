"""Newton as its user runs it, with three of its solvers: the step of its examples, and its own drives."""

from loopcheck.engines.newton._as_is import held_by_drives
from loopcheck.engines.newton._stepping import Stepping
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


class NewtonAsIs(Source):
    """Efforts of Newton's own drives while they held the robot along the motion, stepped by MuJoCo."""

    name = "newton/as_is_mujoco"

    def __init__(self, solver: str = "mujoco") -> None:
        """With a solver of Newton."""
        self.solver = solver
        self.name = f"newton/as_is_{solver}"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        return held_by_drives(self.name, case, motion, Stepping(solver=self.solver))


KAMINO, STEEL = NewtonAsIs("kamino"), NewtonAsIs("steel")
"""The routes `as_is_kamino` and `as_is_steel`."""
