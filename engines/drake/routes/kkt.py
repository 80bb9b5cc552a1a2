"""Efforts from Drake's matrices, projected on the motions that keep its loops closed."""

from loopcheck.engines.drake._equations import equations
from loopcheck.engines.drake._plant import guarded
from loopcheck.engines.equations import Kkt

KKT = Kkt(
    name="drake/kkt",
    equations=equations,
    guarded=guarded,
    settings={
        "tree": "CalcMassMatrix, CalcBiasTerm and CalcForceElementsContribution at the exact state",
        "loop Jacobian": "CalcJacobianSpatialVelocity of both ends of each closure",
        "J̇q̇": "CalcBiasSpatialAcceleration of both ends",
    },
)
