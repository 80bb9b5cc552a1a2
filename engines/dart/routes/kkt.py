"""Efforts from DART's matrices, projected on the motions that keep its loops closed."""

from loopcheck.engines.dart._equations import DartEquations
from loopcheck.engines.dart._skeleton import guarded
from loopcheck.engines.equations import Kkt

KKT = Kkt(
    name="dart/kkt",
    equations=DartEquations,
    guarded=guarded,
    settings={
        "tree": "getMassMatrix, getCoriolisAndGravityForces and getExternalForces at the exact state",
        "springs and dampers": "of joints, written here from DART's own values; of rotors that are driven too",
        "loop Jacobian": "getLinearJacobian and getAngularJacobian of both ends of each closure",
        "J̇q̇": "getLinearJacobianDeriv and getAngularJacobianDeriv of both ends",
    },
)
