"""Other settings of a file in MuJoCo Warp, in single precision: those of MuJoCo."""

from functools import partial

import numpy as np

from engines.as_is import Record
from engines.contract import State
from engines.mujoco import tuning
from engines.mujoco.as_is import Plan, simulate
from engines.mujoco.tuning import families, files, given, plan
from engines.mujoco_warp.batch import worlds
from engines.mujoco_warp.stepper import WarpStepper
from engines.tuning import Settings, best_seconds
from robots.arrays import Array
from robots.mechanism import Mechanism

__all__ = ["families", "files", "given", "plan", "prepared", "run", "seconds_per_step"]


def prepared(mechanism: Mechanism, settings: Settings) -> WarpStepper:
    """See `engines.tuning.Tuning.prepared`."""
    return WarpStepper(tuning.prepared(mechanism, settings))


def run(plan: Plan, prepared: WarpStepper, bandwidth: float, start: int | Array = 0) -> Record:
    """See `engines.tuning.Tuning.run`."""
    return simulate(plan, prepared, bandwidth, start=start, reads_joints=False)


def seconds_per_step(mechanism: Mechanism, q: Array, settings: Settings) -> float:
    """See `engines.tuning.Tuning.seconds_per_step`.

    Args:
        mechanism: Robot.
        q: Joint positions from which it steps [m or rad], shape (nq,).
        settings: What to set.
    """
    state: State = (q[None], np.zeros((1, mechanism.nv)))
    tau = np.zeros((1, mechanism.na))
    world = worlds(mechanism, state, settings, "single")
    return best_seconds(lambda: None, partial(world.run, tau))
