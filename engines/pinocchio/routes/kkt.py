"""Efforts from Pinocchio's matrices, projected on the motions that keep its loops closed."""

from loopcheck.engines.equations import Kkt
from loopcheck.engines.pinocchio._equations import equations
from loopcheck.engines.pinocchio._tree import guarded
from loopcheck.robots.mechanism import WeldClosure

KKT = Kkt(
    name="pinocchio/kkt",
    equations=equations,
    guarded=guarded,
    settings={
        "tree": "crba and nonLinearEffects at the exact state",
        "loop Jacobian": "getConstraintJacobian of a RigidConstraintModel for each closure",
        "J̇q̇": "getFrameClassicalAcceleration of the ends; curvature of coordinate equalities computed by loopcheck",
    },
    own_rows=lambda mechanism: any(isinstance(closure, WeldClosure) for closure in mechanism.closures),
)
