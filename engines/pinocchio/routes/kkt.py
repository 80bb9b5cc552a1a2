"""Pinocchio's mass matrix, bias, constraint Jacobians and their rates at the exact state; its solver takes no part."""

from engines.equations import kkt_history
from engines.pinocchio._equations import equations
from engines.pinocchio._tree import guarded
from robots.efforts import EffortHistory, Source
from robots.motion import Motion
from robots.robot import Case

SETTINGS = {
    "tree": "crba and nonLinearEffects at the exact state",
    "loop Jacobian": "getConstraintJacobian of a RigidConstraintModel for each closure",
    "J̇q̇": "getFrameClassicalAcceleration of the ends; curvature of equalities of coordinates written here",
}


class PinocchioKkt(Source):
    """Efforts from Pinocchio's matrices, projected on the motions that keep its loops closed."""

    name = "pinocchio/kkt"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        with guarded(self.name):
            return kkt_history(self.name, equations(case.mechanism), motion, SETTINGS)
