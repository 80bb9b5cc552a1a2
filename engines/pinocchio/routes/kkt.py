"""Pinocchio's mass matrix, bias, constraint Jacobians and their rates at the exact state; its solver takes no part."""

from loopcheck.engines.equations import kkt_history
from loopcheck.engines.pinocchio._equations import equations
from loopcheck.engines.pinocchio._tree import guarded
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

SETTINGS = {
    "tree": "crba and nonLinearEffects at the exact state",
    "loop Jacobian": "getConstraintJacobian of a RigidConstraintModel for each closure",
    "J̇q̇": "getFrameClassicalAcceleration of the ends; curvature of coordinate equalities computed by loopcheck",
}


class PinocchioKkt(Source):
    """Efforts from Pinocchio's matrices, projected on the motions that keep its loops closed."""

    name = "pinocchio/kkt"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        with guarded(self.name):
            return kkt_history(self.name, equations(case.mechanism), motion, SETTINGS)
