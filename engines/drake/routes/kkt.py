"""Drake's mass matrix, bias, Jacobians of the loops' points and bias accelerations at the exact state; no solver."""

from loopcheck.engines.drake._equations import equations
from loopcheck.engines.drake._plant import guarded
from loopcheck.engines.equations import kkt_history
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

SETTINGS = {
    "tree": "CalcMassMatrix, CalcBiasTerm and CalcForceElementsContribution at the exact state",
    "loop Jacobian": "CalcJacobianSpatialVelocity of both ends of each closure",
    "J̇q̇": "CalcBiasSpatialAcceleration of both ends",
}


class DrakeKkt(Source):
    """Efforts from Drake's matrices, projected on the motions that keep its loops closed."""

    name = "drake/kkt"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        with guarded(self.name):
            return kkt_history(self.name, equations(case.mechanism), motion, SETTINGS)
