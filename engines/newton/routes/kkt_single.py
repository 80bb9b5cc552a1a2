"""Efforts from Newton's matrices in single precision, projected on the motions that keep its loops closed."""

from loopcheck.engines.equations import Kkt
from loopcheck.engines.newton._equations import equations
from loopcheck.engines.newton._model import guarded

KKT = Kkt(
    name="newton/kkt_single",
    equations=equations,
    guarded=guarded,
    settings={
        "precision": "single (the only precision of Newton)",
        "tree": "eval_inverse_dynamics_passive at the exact state",
        "springs and dampers": "computed by loopcheck from Newton's values",
        "loop Jacobian": "eval_jacobian of both ends of each closure",
        "J̇q̇": "finite difference of J q̇ along q̇, 0.1 rad or m to each side",
    },
)
