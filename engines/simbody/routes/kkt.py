"""Simbody's mass matrix, residual forces, constraint matrix and its rate at the exact state; no solver takes part."""

from loopcheck.engines.equations import kkt_history
from loopcheck.engines.simbody._equations import equations
from loopcheck.engines.simbody._opensim import guarded
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

SETTINGS = {
    "tree": "calcM and InverseDynamicsSolver at the exact state",
    "loop Jacobian": "calcG of PointConstraint, WeldConstraint and CoordinateCouplerConstraint",
    "J̇q̇": "calcBiasForAccelerationConstraints",
}


class SimbodyKkt(Source):
    """Efforts from Simbody's matrices, projected on the motions that keep its loops closed."""

    name = "simbody/kkt"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        with guarded(self.name):
            return kkt_history(self.name, equations(case.mechanism), motion, SETTINGS)
