"""What makes up the error of Newton as its user steps it by MuJoCo: settings that remove one part each."""

from collections.abc import Collection

from loopcheck.engines.newton import tuning
from loopcheck.engines.own_drives_tuning import FINER, log_without
from loopcheck.robots.log import Log
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

CAUSES = {
    "step": f"solver.step(..., dt / {FINER})",
    "softness": "mj_model.eq_solref (2 dt, 1) and eq_solimp (0.9999, 0.9999) of the solver",
}
"""See `loopcheck.engines.contract.Causes`."""


def log(case: Case, motion: Motion, removed: Collection[str]) -> Log:
    """See `loopcheck.engines.contract.Causes.log`; the script of settings is run.

    Args:
        removed: Names of the causes that are removed.
    """
    return log_without("newton/as_is_mujoco", tuning, case, motion, removed)
