"""What makes up the error of PhysX as its user steps it: settings that remove one part each."""

from collections.abc import Collection
from dataclasses import replace

from loopcheck.engines.as_is import log_of
from loopcheck.engines.own_drives import Gains, own_drives_run
from loopcheck.engines.physx._articulation import guarded
from loopcheck.engines.physx._readings import reading_of
from loopcheck.engines.physx._stepping import PhysxDriven
from loopcheck.engines.physx.routes.as_is import OWN
from loopcheck.engines.silence import silenced
from loopcheck.robots.log import Log
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

FINER = 16
"""Number of steps that replace a single step."""
CAUSES = {
    "step": f"scene.set_timestep(step / {FINER})",
    "solver": "articulation.set_solver_position_iterations(100), set_solver_velocity_iterations(4)",
}
"""See `loopcheck.engines.contract.Causes`; the route itself sets the friction to zero."""


def log(case: Case, motion: Motion, removed: Collection[str]) -> Log:
    """See `loopcheck.engines.contract.Causes.log`.

    Args:
        removed: Names of the causes that are removed.
    """
    stepping = replace(OWN, position_iterations=100, velocity_iterations=4) if "solver" in removed else OWN
    if "step" in removed:
        stepping = replace(stepping, step=OWN.step / FINER)
    gains, reading = Gains.of_velocity(case.mechanism, motion, OWN.step), reading_of(case.mechanism, tgs=False)
    with guarded("physx/as_is"), silenced():
        robot = PhysxDriven.from_state(case.mechanism, stepping, gains, (motion.q[0], motion.qd[0]))
        run = own_drives_run("physx/as_is", (robot, gains), motion, 0, reading)
    return log_of("physx/as_is", case, run)
