"""What makes up the error of PyBullet as its user steps it: settings that remove one part each."""

from collections.abc import Collection

from loopcheck.engines.as_is import log_of
from loopcheck.engines.pybullet._as_is import STEP, Stepping, demands, simulate
from loopcheck.engines.pybullet._bullet import pybullet
from loopcheck.engines.pybullet._world import World
from loopcheck.robots.log import Log
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

FINER = 16
"""Number of steps that replace a single step."""
CAUSES = {
    "step": f"setTimeStep(1 / {240 * FINER})",
    "softness": "changeConstraint(erp=0.8), setPhysicsEngineParameter(erp=0.8)",
    "damping": "changeDynamics(linearDamping=0, angularDamping=0) on every link",
    "solver": "setPhysicsEngineParameter(numSolverIterations=500, solverResidualThreshold=1e-30)",
}
"""See `loopcheck.engines.contract.Causes`."""


def log(case: Case, motion: Motion, removed: Collection[str]) -> Log:
    """See `loopcheck.engines.contract.Causes.log`.

    Args:
        removed: Names of the causes that are removed.
    """

    def prepare(world: World, loops: tuple[int, ...]) -> None:
        where = {"physicsClientId": world.client}
        if "softness" in removed:
            pybullet.setPhysicsEngineParameter(erp=0.8, **where)
            for loop in loops:
                pybullet.changeConstraint(loop, erp=0.8, **where)
        if "damping" in removed:
            for link in range(-1, pybullet.getNumJoints(world.tree, **where)):
                pybullet.changeDynamics(world.tree, link, linearDamping=0, angularDamping=0, **where)
        if "solver" in removed:
            pybullet.setPhysicsEngineParameter(numSolverIterations=500, solverResidualThreshold=1e-30, **where)

    stepping = Stepping(step=STEP / (FINER if "step" in removed else 1), prepare=prepare)
    known = demands(case.mechanism, motion)
    return log_of("pybullet/as_is", case, simulate(case.mechanism, motion, known, stepping=stepping))
