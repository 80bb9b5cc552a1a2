"""MuJoCo Warp as its user runs it: the file as it is, its own actuators and options, `step` and nothing else."""

from engines.mujoco.as_is import compiled, driven
from engines.mujoco_warp._model import options_changed
from engines.mujoco_warp._warp import device
from engines.mujoco_warp.stepper import WarpStepper
from robots.efforts import EffortHistory, Source
from robots.motion import Motion
from robots.robot import Case


class MujocoWarpAsIs(Source):
    """Efforts that acted, in single precision, while a controller moved the robot through the actuators of its file."""

    name = "mujoco_warp/as_is"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        stepper = WarpStepper(compiled(case.mechanism))
        changed = options_changed(stepper.model, stepper.on_device)
        settings = {"precision": f"single, on {device()}", "plan": "by MuJoCo's own matrices, in double precision"}
        return driven(stepper, case, motion, settings | ({"options that it changes": changed} if changed else {}))
