"""MJX as its user runs it: the unmodified file, its own actuators and options, `step` alone."""

from loopcheck.engines.mjx._mjx import device
from loopcheck.engines.mjx.stepper import MjxStepper
from loopcheck.engines.mujoco.as_is import compiled, driven
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


class MjxAsIs(Source):
    """Efforts that acted, in double precision, while a controller moved the robot through the actuators of its file."""

    name = "mjx/as_is"

    def __init__(self, *, double: bool = True) -> None:
        """In double precision, or in single, the default of MJX."""
        self.double = double
        self.name = "mjx/as_is" if double else "mjx/as_is_single"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        stepper = MjxStepper(self.name, compiled(case.mechanism), double=self.double)
        settings = {
            "precision": f"{'double' if self.double else 'single'}, on {device()}",
            "plan": "computed with MuJoCo's matrices in double precision",
        }
        return driven(stepper, case, motion, settings)


SINGLE = MjxAsIs(double=False)
"""The route `as_is_single`, in the precision of MJX out of the box and on a GPU."""
