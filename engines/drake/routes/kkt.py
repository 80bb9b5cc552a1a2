"""Drake's mass matrix, bias, Jacobians of the loops' points and bias accelerations at the exact state; no solver."""

from engines.drake._equations import equations
from engines.drake._plant import guarded
from engines.equations import kkt_history
from robots.efforts import EffortHistory, Source
from robots.motion import Motion
from robots.robot import Case

SETTINGS = {
    "tree": "CalcMassMatrix, CalcBiasTerm and CalcForceElementsContribution at the exact state",
    "loop Jacobian": "CalcJacobianSpatialVelocity of both ends of each closure",
    "J̇q̇": "CalcBiasSpatialAcceleration of both ends",
}


class DrakeKkt(Source):
    """Efforts from Drake's matrices, projected on the motions that keep its loops closed."""

    name = "drake/kkt"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `robots.efforts.Source.compute_efforts`."""
        with guarded(self.name):
            return kkt_history(self.name, equations(case.mechanism), motion, SETTINGS)
