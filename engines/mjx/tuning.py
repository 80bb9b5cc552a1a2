"""Other settings of a file in MJX, in double precision: those of MuJoCo that need no implicit step."""

import time

import numpy as np

from engines.as_is import Record
from engines.contract import State
from engines.mjx.batch import worlds
from engines.mjx.stepper import MjxStepper
from engines.mujoco import tuning
from engines.mujoco.as_is import Plan, simulate
from engines.mujoco.tuning import BATCH, REPEATS, files, given, plan
from engines.tuning import Family, Settings
from robots.arrays import Array
from robots.mechanism import Mechanism

__all__ = ["families", "files", "given", "plan", "prepared", "run", "seconds_per_step"]


def families(mechanism: Mechanism) -> list[Family]:
    """See `engines.tuning.Tuning.families`."""
    return [one for one in tuning.families(mechanism) if one.fixed.get("integrator", "Euler") in ("Euler", "RK4")]


def prepared(mechanism: Mechanism, settings: Settings) -> MjxStepper:
    """See `engines.tuning.Tuning.prepared`."""
    return MjxStepper("mjx/as_is", tuning.prepared(mechanism, settings), double=True)


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
    world, best = worlds(mechanism, state, settings, "double"), np.inf
    for _ in range(REPEATS):
        begin = time.perf_counter()
        world.run(tau, BATCH)
        best = min(best, time.perf_counter() - begin)
    return best / BATCH
