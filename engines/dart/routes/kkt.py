"""DART's mass matrix, bias, Jacobians of the loops' points and their rates at the exact state; no solver takes part."""

from loopcheck.engines.dart._equations import equations
from loopcheck.engines.dart._skeleton import guarded
from loopcheck.engines.equations import kkt_history
from loopcheck.robots.efforts import EffortHistory, Source
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

SETTINGS = {
    "tree": "getMassMatrix, getCoriolisAndGravityForces and getExternalForces at the exact state",
    "springs and dampers": "of joints, written here from DART's own values; of rotors that are driven too",
    "loop Jacobian": "getLinearJacobian and getAngularJacobian of both ends of each closure",
    "J̇q̇": "getLinearJacobianDeriv and getAngularJacobianDeriv of both ends",
}


class DartKkt(Source):
    """Efforts from DART's matrices, projected on the motions that keep its loops closed."""

    name = "dart/kkt"

    def compute_efforts(self, case: Case, motion: Motion) -> EffortHistory:
        """See `loopcheck.robots.efforts.Source.compute_efforts`."""
        with guarded(self.name):
            return kkt_history(self.name, equations(case.mechanism), motion, SETTINGS)
