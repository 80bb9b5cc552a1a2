"""Other settings of a file in MuJoCo Warp, in single precision: those of MuJoCo."""

from functools import partial

from engines.as_is import Record
from engines.mujoco import batch, tuning
from engines.mujoco.as_is import Plan, simulate
from engines.mujoco.tuning import families, files, given, plan
from engines.mujoco_warp.batch import worlds
from engines.mujoco_warp.stepper import WarpStepper
from engines.tuning import Settings
from robots.arrays import Array
from robots.mechanism import Mechanism

__all__ = ["families", "files", "given", "plan", "prepared", "run", "seconds_per_step"]


def prepared(mechanism: Mechanism, settings: Settings) -> WarpStepper:
    """See `engines.tuning.Tuning.prepared`."""
    return WarpStepper(tuning.prepared(mechanism, settings))


def run(plan: Plan, prepared: WarpStepper, bandwidth: float, start: int | Array = 0) -> Record:
    """See `engines.tuning.Tuning.run`."""
    return simulate(plan, prepared, bandwidth, start=start, reads_joints=False)


seconds_per_step = partial(batch.seconds_per_step, worlds)
"""See `engines.tuning.Tuning.seconds_per_step`."""
