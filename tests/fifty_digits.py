"""Central differences with 50 digits through the solved loops, from the traced equations of the efforts."""

from collections.abc import Callable, Mapping
from typing import Any

import mpmath
import numpy as np

from loopcheck.analytic.batch.expressions import Op
from loopcheck.analytic.batch.gradient import BLOCKS, gradient
from loopcheck.analytic.batch.tape import ARITHMETIC
from loopcheck.analytic.batch.trace import Trace
from loopcheck.analytic.batch.tracking import CHECKS
from loopcheck.robots.arrays import AnyArray, Array, JointPositions
from loopcheck.robots.motion import Drive

DIGITS = 50
STEP = mpmath.mpf(10) ** -15
"""Step of the differences [m or rad, per s, per s²]; their error is of the order of its square."""
RULES: Mapping[int, Callable[..., Any]] = {
    **ARITHMETIC,
    Op.SQRT: lambda x, y, k: mpmath.sqrt(x),
    Op.SIN: lambda x, y, k: mpmath.sin(x),
    Op.COS: lambda x, y, k: mpmath.cos(x),
    Op.NUMBER: lambda x, y, k: k,
    Op.MAX: lambda x, y, k: max(x, y),
    Op.MIN: lambda x, y, k: min(x, y),
}


def slopes(traced: Trace, q: JointPositions, drive: Drive) -> Array:
    """Derivatives of the efforts at a sample along positions, velocities and accelerations of the drives.

    Args:
        q: Joint positions near the sample [m or rad], shape (nq,).
        drive: Motion of the drives [m or rad, per s, per s²], each of shape (drives,).

    Returns:
        Derivatives [any unit], shape (3, na, drives).
    """
    with mpmath.workdps(DIGITS):
        values = np.array([[mpmath.mpf(float(x)) for x in row] for row in drive], dtype=object)
        found = np.zeros((3, traced.mechanism.na, values.shape[1]))
        for k, j in np.ndindex(*values.shape):
            moved = [values.copy() for _ in range(2)]
            moved[0][k, j] += STEP
            moved[1][k, j] -= STEP
            after, before = (efforts(traced, q, x) for x in moved)
            found[k, :, j] = (after - before) / (2 * STEP)
    return found


def efforts(traced: Trace, q: JointPositions, drive: AnyArray) -> AnyArray:
    """Efforts at a sample.

    Args:
        q: Joint positions near the sample [m or rad], shape (nq,).
        drive: Motion of the drives [m or rad, per s, per s²], shape (3, drives).
    """
    nq, position = len(q), [mpmath.mpf(float(x)) for x in q]
    for _ in range(4):  # from 16 digits, Newton's method doubles them
        *position, _, _ = traced.newton.run(RULES, [*position, *drive[0]])
    values = traced.efforts.run(RULES, [*position, *drive.ravel()])
    assert values[1 - CHECKS] < mpmath.mpf(10) ** (10 - DIGITS), "Newton's method has not converged"
    return np.array(values[nq:-CHECKS])


def at_rounded_state(traced: Trace, q: JointPositions, drive: Drive) -> Array | None:
    """The same derivatives from the tape of the derivatives with 50 digits, at positions in double precision.

    Their difference from `slopes` is the effect of rounding the positions alone; None without an effort of its own for
    each independent coordinate, as this effort is not an output of the tape.
    """
    traced_slopes = gradient(traced.shape, ())
    if not traced_slopes.is_direct:
        return None
    mechanism, independent = traced.mechanism, traced.shape.independent
    dofs = [mechanism.dof_slices[j].start for j in mechanism.actuated_joints]
    rates = [float(x[dofs.index(dof)]) for x in (drive.qd, drive.qdd) for dof in independent]
    with mpmath.workdps(DIGITS):
        values = traced_slopes.tape.run(RULES, [mpmath.mpf(float(x)) for x in (*q, *rates)])
    found = np.zeros((3, mechanism.na, len(dofs)))
    places = [dofs.index(dof) for dof in independent]
    for k, name in enumerate(BLOCKS[:3]):
        block = np.array(values[traced_slopes.blocks[name]], dtype=float)
        found[k][:, places] = block.reshape(mechanism.na, len(independent))
    return found
