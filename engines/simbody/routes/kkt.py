"""Efforts from Simbody's matrices, projected on the motions that keep its loops closed."""

from loopcheck.engines.equations import Kkt
from loopcheck.engines.simbody._equations import equations
from loopcheck.engines.simbody._opensim import guarded

KKT = Kkt(
    name="simbody/kkt",
    equations=equations,
    guarded=guarded,
    settings={
        "tree": "calcM and InverseDynamicsSolver at the exact state",
        "loop Jacobian": "calcG of PointConstraint, WeldConstraint and CoordinateCouplerConstraint",
        "J̇q̇": "calcBiasForAccelerationConstraints",
    },
    own_rows=lambda mechanism: bool(mechanism.rigid_closures),
)
