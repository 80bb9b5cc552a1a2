"""Other settings of a file in MuJoCo Warp, in single precision: those of MuJoCo."""

from functools import partial

from loopcheck.engines.as_is import Record
from loopcheck.engines.mujoco import batch, tuning
from loopcheck.engines.mujoco.as_is import Plan, simulate
from loopcheck.engines.mujoco.tuning import SETTINGS, families, files, given, plan
from loopcheck.engines.mujoco_warp.batch import worlds
from loopcheck.engines.mujoco_warp.stepper import WarpStepper
from loopcheck.engines.tuning import Settings
from loopcheck.robots.arrays import Array
from loopcheck.robots.mechanism import Mechanism

__all__ = ["SETTINGS", "families", "files", "given", "plan", "prepared", "run", "seconds_per_step"]


def prepared(mechanism: Mechanism, settings: Settings, precision: str = "") -> WarpStepper:
    """See `loopcheck.engines.tuning.Tuning.prepared`."""
    return WarpStepper(tuning.prepared(mechanism, settings))


def run(plan: Plan, prepared: WarpStepper, bandwidth: float, start: int | Array = 0) -> Record:
    """See `loopcheck.engines.tuning.Tuning.run`."""
    return simulate(plan, prepared, bandwidth, start=start, reads_joints=False)


seconds_per_step = partial(batch.seconds_per_step, worlds)
"""See `loopcheck.engines.tuning.Tuning.seconds_per_step`."""
