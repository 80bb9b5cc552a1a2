"""What makes up the error of a file in MJX: the settings of MuJoCo that remove one part each."""

from collections.abc import Collection
from functools import partial

from loopcheck.engines.mjx.stepper import MjxStepper
from loopcheck.engines.mujoco.causes import CAUSES, log_with
from loopcheck.robots.log import Log
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

__all__ = ["CAUSES", "log"]


def log(case: Case, motion: Motion, removed: Collection[str]) -> Log:
    """See `loopcheck.engines.contract.Causes.log`; that loops have no J̇v is a part of their softness.

    Args:
        removed: Names of the causes that are removed.
    """
    return log_with(partial(MjxStepper, "mjx/as_is", double=True), case, motion, removed)
