"""What makes up the error of a file in MuJoCo Warp: the settings of MuJoCo that remove one part each."""

from collections.abc import Collection

from loopcheck.engines.mujoco.causes import CAUSES, log_with
from loopcheck.engines.mujoco_warp.stepper import WarpStepper
from loopcheck.robots.log import Log
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

__all__ = ["CAUSES", "log"]


def log(case: Case, motion: Motion, removed: Collection[str]) -> Log:
    """See `loopcheck.engines.contract.Causes.log`; no tolerance of the solver is below 1e-6.

    Args:
        removed: Names of the causes that are removed.
    """
    return log_with(WarpStepper, case, motion, removed)
