"""Other settings of a file in MuJoCo Warp, in single precision: those of MuJoCo."""

from functools import partial

from loopcheck.engines.declarations import Settings
from loopcheck.engines.mujoco import batch, tuning
from loopcheck.engines.mujoco.tuning import SETTINGS, families, files, given, plan, run
from loopcheck.engines.mujoco_warp.batch import worlds
from loopcheck.engines.mujoco_warp.stepper import WarpStepper
from loopcheck.robots.mechanism import Mechanism

__all__ = ["SETTINGS", "families", "files", "given", "plan", "prepared", "run", "seconds_per_step"]


def prepared(mechanism: Mechanism, settings: Settings, precision: str = "") -> WarpStepper:
    """See `Tuning.prepared`."""
    return WarpStepper(tuning.model_with(mechanism, settings))


seconds_per_step = partial(batch.seconds_per_step, worlds)
"""See `Tuning.seconds_per_step`."""
