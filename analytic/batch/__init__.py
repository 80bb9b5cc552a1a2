"""Closed-loop inverse dynamics of many samples at once: the equations are traced into a tape that runs over blocks.

    from analytic.batch import inverse_dynamics

    mechanism = load("3prr").mechanism()                       # robots.robot
    drive = Drive(q, qd, qdd)                                  # robots.motion; each of shape (nt, 3)
    batch = inverse_dynamics(mechanism, drive, guess)          # guess: joint positions near the first sample
    batch.effort                                               # efforts of the motors, shape (nt, 3)

Where few samples come at a time, trace once, with `analytic.batch.trace.trace(mechanism, q)` at a closed pose, and give
it: `inverse_dynamics(mechanism, drive, guess, traced=traced, evaluator="llvm")`.
"""

from analytic.batch.inverse import Batch, inverse_dynamics

__all__ = ["Batch", "inverse_dynamics"]
