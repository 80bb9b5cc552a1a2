"""What makes up the error of Genesis as its user steps it: settings that remove one part each."""

from collections.abc import Collection

from engines.genesis import tuning
from engines.own_drives_tuning import FINER, log_without
from robots.log import Log
from robots.motion import Motion
from robots.robot import Case

CAUSES = {
    "step": f"SimOptions(dt=step / {FINER})",
    "softness": "equality.set_sol_params((2 * dt, 1, 0.9999, 0.9999, ...))",
}
"""See `engines.contract.Causes`."""


def log(case: Case, motion: Motion, removed: Collection[str]) -> Log:
    """See `engines.contract.Causes.log`; the script of settings is run.

    Args:
        case: The case.
        motion: Its motion.
        removed: Names of the causes that are removed.
    """
    return log_without("genesis/as_is", tuning, case, motion, removed)
