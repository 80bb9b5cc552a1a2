"""Closed-loop inverse dynamics of many samples at once: the equations are traced into a tape that runs over blocks.

    from loopcheck.analytic.batch import inverse_dynamics

    mechanism = load("3prr").mechanism()                       # loopcheck.robots.robot
    drive = Drive(q, qd, qdd)                                  # loopcheck.robots.motion; each of shape (nt, 3)
    batch = inverse_dynamics(mechanism, drive, guess)          # guess: joint positions near the first sample
    batch.effort                                               # efforts of the motors, shape (nt, 3)

For few samples at a time, trace once at a closed pose with `loopcheck.analytic.batch.trace.trace(mechanism, q)` and
pass the result: `inverse_dynamics(mechanism, drive, guess, traced=traced, evaluator="llvm")`.
"""

from loopcheck.analytic.batch.accelerations import (
    ForwardBatch,
    HybridBatch,
    forward_dynamics,
    hybrid_dynamics,
    trace_forward,
)
from loopcheck.analytic.batch.inverse import Batch, inverse_dynamics

__all__ = [
    "Batch",
    "ForwardBatch",
    "HybridBatch",
    "forward_dynamics",
    "hybrid_dynamics",
    "inverse_dynamics",
    "trace_forward",
]
