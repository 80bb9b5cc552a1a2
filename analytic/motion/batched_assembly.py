"""Closes the loops of many samples at once, each from a pose of its own nearby.

`continuation` goes from sample to sample; for many short motions, its Newton steps on a single sample at a time cost
most. Here the drives of all samples move together, straight from their positions to those of the law.
"""

from collections.abc import Sequence

import numpy as np

from loopcheck.analytic.kinematics.closures import (
    closure_jacobian_at,
    solve_dependent,
)
from loopcheck.analytic.kinematics.continuation import CLOSED, EXACT, Tracer, close_batch, motion_through
from loopcheck.analytic.kinematics.tree import retract
from loopcheck.analytic.motion.assembly import assemble
from loopcheck.robots.arrays import Array, Times
from loopcheck.robots.errors import LoopClosureError, SingularityError
from loopcheck.robots.mechanism import Coordinate, Mechanism
from loopcheck.robots.motion import Law, Motion

SHORTEST = 2.0**-6
"""Shortest step, relative to the path to a sample [-]."""
ON_THE_WAY = 1e-8
"""The same of poses that are only passed [m or rad]."""


def assemble_batch(
    mechanism: Mechanism, law: Law, near: Array, t: Times, *, drives: Sequence[Coordinate], where: str
) -> Motion:
    """Close the loops along a motion law, all samples at once if every degree of freedom is driven by a joint.

    Args:
        law: Motion of the driven coordinates.
        near: A pose near each sample, or a single pose for all; its loops may be open [m or rad],
            shape (nt, nq) or (1, nq).
        drives: Prescribed coordinates in the order of the law.
        where: Name of the robot, for the error messages.

    Raises:
        LoopClosureError: If the loops cannot be closed with the drives at their nearby positions.
        SingularityError: If a sample cannot be reached, or the motion meets a singularity.
    """
    tracer = Tracer(mechanism=mechanism, law=law, drives=tuple(drives), where=where)
    if tracer.of_tendons:
        return assemble(mechanism, law, near[0], t, drives=tracer.drives, where=where)
    q = _closed(tracer, near)
    if tracer.undriven(q[:1]):
        return assemble(mechanism, law, q[0], t, drives=tracer.drives, where=where)
    targets = law(t).q
    return motion_through(tracer, _moved(tracer, np.broadcast_to(q, (len(t), mechanism.nq)), targets), t)


def _closed(tracer: Tracer, near: Array) -> Array:
    """The poses (nt, nq) with their loops closed, drives held."""
    q, residual = close_batch(tracer.mechanism, near, tracer.passive, enough=ON_THE_WAY)
    widest = float(residual.max())
    if widest > CLOSED:
        raise LoopClosureError(
            f"{tracer.where}: the loops cannot be closed: loop gap must be at most {CLOSED:g}, got {widest:.3g} (m "
            "or rad)",
            residual=widest,
            tolerance=CLOSED,
            time=float("nan"),
        )
    return q


def _moved(tracer: Tracer, q: Array, targets: Array) -> Array:
    """Closed poses (nt, nq) with the drives moved to wanted positions (nt, drives), in reliable steps."""
    mechanism, dofs, passive = tracer.mechanism, tracer.dofs, tracer.passive
    done, step = 0.0, 1.0
    while done < 1:
        way = (targets - mechanism.values_of(tracer.drives, q)) * (step / (1 - done))
        Phi = closure_jacobian_at(mechanism, q)
        move = np.zeros((len(q), mechanism.nv))
        move[:, dofs] = way
        move[:, passive] = solve_dependent(Phi[..., passive], Phi[..., dofs] @ way[..., None])[..., 0]
        predicted = retract(mechanism, q, move)
        closed, residual = close_batch(mechanism, predicted, passive, enough=EXACT if done + step == 1 else ON_THE_WAY)
        trusted = 1e-4 + 0.5 * np.abs(move).max(axis=1)  # a larger correction may be a jump to another working mode
        if (residual <= CLOSED).all() and (np.abs(closed - predicted).max(axis=1) <= trusted).all():
            q, done = closed, done + step
            step = 1 - done
        elif step > SHORTEST:
            step /= 2
        else:
            raise SingularityError(
                f"{tracer.where}: a sample cannot be reached from a nearby pose: the path leaves the workspace or "
                "meets "
                f"a singularity after {100 * done:.2g} % of its length",
                time=float("nan"),
                singular_value=float("nan"),
            )
    return q
