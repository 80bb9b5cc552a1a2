"""What makes up the error of Genesis as its user steps it: settings that remove one part each."""

from collections.abc import Collection

from loopcheck.engines.genesis import tuning
from loopcheck.engines.own_drives_tuning import FINER, log_without
from loopcheck.robots.log import Log
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

CAUSES = {
    "step": f"SimOptions(dt=step / {FINER})",
    "softness": "equality.set_sol_params((2 * dt, 1, 0.9999, 0.9999, ...))",
}
"""See `loopcheck.engines.contract.Causes`."""


def log(case: Case, motion: Motion, removed: Collection[str]) -> Log:
    """See `loopcheck.engines.contract.Causes.log`; the script of settings is run.

    Args:
        removed: Names of the causes that are removed.
    """
    return log_without("genesis/as_is", tuning, case, motion, removed)
