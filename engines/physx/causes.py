"""What makes up the error of PhysX as its user steps it: settings that remove one part each."""

from collections.abc import Collection
from dataclasses import replace

from engines.as_is import log_of
from engines.own_drives import Gains, own_drives_run
from engines.physx._articulation import guarded
from engines.physx._readings import reading_of
from engines.physx._stepping import PhysxDriven
from engines.physx.routes.as_is import OWN
from engines.silence import silenced
from robots.log import Log
from robots.motion import Motion
from robots.robot import Case

FINER = 16
"""How many steps take the place of one."""
CAUSES = {
    "step": f"scene.set_timestep(step / {FINER})",
    "solver": "articulation.set_solver_position_iterations(100), set_solver_velocity_iterations(4)",
}
"""See `engines.contract.Causes`; friction is set to none in the route itself."""


def log(case: Case, motion: Motion, removed: Collection[str]) -> Log:
    """See `engines.contract.Causes.log`.

    Args:
        case: The case.
        motion: Its motion.
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
