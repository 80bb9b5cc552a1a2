"""PyBullet's inverse dynamics and point Jacobians at the exact state; the engine's constraint solver takes no part."""

from loopcheck.engines.equations import RANK, STATE, efforts_along
from loopcheck.engines.pybullet._angles import in_angles
from loopcheck.engines.pybullet._equations import PybulletEquations
from loopcheck.engines.pybullet._world import opened, refuse
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case


class PybulletKkt(Source):
    """Efforts from PyBullet's inverse dynamics of the spanning tree, projected on the motions of the closed loops."""

    name = "pybullet/kkt"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        refuse(case.mechanism, motion.q, closed=False)
        states = in_angles(case.mechanism, motion.q, motion.qd, motion.qdd)
        with opened(case.mechanism) as world:
            effort = efforts_along(PybulletEquations(world), states)
        return EffortHistory(
            source=self.name,
            actuators=tuple(actuator.name for actuator in case.mechanism.actuators),
            t=motion.t,
            effort=effort,
            settings={
                "tree forces": "calculateInverseDynamics at the exact state",
                "loop Jacobian": "calculateJacobian at the closure points",
                "state": STATE,
                "J̇q̇": "central difference of order eight of J q̇ along q̇",
                "rank tolerance": RANK,
            },
        )
