"""Other settings of a file in MJX in single precision, as it computes out of the box: those of MuJoCo it has."""

from functools import partial

import numpy as np

from engines.as_is import Record
from engines.contract import State
from engines.mjx.batch import worlds
from engines.mjx.stepper import MjxStepper
from engines.mujoco import tuning
from engines.mujoco.as_is import Plan, simulate
from engines.mujoco.tuning import files, given, plan
from engines.tuning import Family, Settings, best_seconds
from robots.arrays import Array
from robots.mechanism import Mechanism

__all__ = ["families", "files", "given", "plan", "prepared", "run", "seconds_per_step"]


def families(mechanism: Mechanism) -> list[Family]:
    """See `engines.tuning.Tuning.families`."""
    return [one for one in tuning.families(mechanism) if one.fixed.get("integrator", "Euler") in ("Euler", "RK4")]


def prepared(mechanism: Mechanism, settings: Settings) -> MjxStepper:
    """See `engines.tuning.Tuning.prepared`."""
    return MjxStepper("mjx/as_is_single", tuning.prepared(mechanism, settings), double=False)


def run(plan: Plan, prepared: MjxStepper, bandwidth: float, start: int | Array = 0) -> Record:
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
