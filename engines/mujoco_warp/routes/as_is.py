"""MuJoCo Warp as its user runs it: the unmodified file, its own actuators and options, `step` alone."""

from loopcheck.engines.mujoco.as_is import compiled, driven
from loopcheck.engines.mujoco_warp._model import options_changed
from loopcheck.engines.mujoco_warp._warp import device
from loopcheck.engines.mujoco_warp.stepper import WarpStepper
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


class MujocoWarpAsIs(Source):
    """Efforts that acted, in single precision, while a controller moved the robot through the actuators of its file."""

    name = "mujoco_warp/as_is"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        stepper = WarpStepper(compiled(case.mechanism))
        changed = options_changed(stepper.model, stepper.on_device)
        settings = {
            "precision": (f"single, on {device()}"),
            "plan": "computed with MuJoCo's matrices in double precision",
        }
        return driven(
            stepper, case, motion, settings | ({("options changed by MuJoCo Warp"): changed} if changed else {})
        )
