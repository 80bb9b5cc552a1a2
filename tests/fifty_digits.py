"""Central differences with 50 digits through the solved loops, from the traced equations of the efforts."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import mpmath
import numpy as np

from loopcheck.analytic.batch.expressions import Graph, Op
from loopcheck.analytic.batch.gradient import BLOCKS, gradient
from loopcheck.analytic.batch.tape import ARITHMETIC, Tape, assemble_tape
from loopcheck.analytic.batch.trace import (
    Shape,
    Trace,
    _actuator_row,
    _newton_tape,
    _retract,
    across,
    dynamics,
    state_of,
)
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


class Hybrid:
    """Efforts and accelerations of undriven dofs for prescribed accelerations of the driven dofs, at a state."""

    def __init__(self, shape: Shape, driven: Sequence[int], q: JointPositions) -> None:
        """Equations of a mechanism.

        Args:
            driven: Numbers of the independent dofs with a drive.
            q: Joint positions with closed loops [m or rad], shape (nq,).
        """
        self.shape, self.driven = shape, list(driven)
        self.undriven = [k for k in range(len(shape.independent)) if k not in driven]
        self.newton, self.forces, self.moved = _newton_tape(shape), _forces_tape(shape), _moved_tape(shape)
        self.q = [mpmath.mpf(float(x)) for x in q]

    def slopes(self, rates: Array, changes: Array) -> list[Array]:
        """Derivatives along positions and velocities of the independent dofs, and accelerations of the driven dofs.

        Args:
            rates: Velocities of the independent dofs [m/s or rad/s], shape (n,).
            changes: Accelerations of the driven dofs [m/s² or rad/s²], shape (r,).

        Returns:
            Three derivatives, of the efforts and below of the accelerations [any unit], shape (na + n − r, n or r).
        """
        found = []
        with mpmath.workdps(DIGITS):
            state = [_numbers(x) for x in (np.zeros_like(rates), rates, changes)]
            for k, part in enumerate(state):
                columns = []
                for unit in np.eye(len(part), dtype=int):
                    sides = [[part + s * STEP * unit if i == k else x for i, x in enumerate(state)] for s in (1, -1)]
                    after, before = (self._solved(*side) for side in sides)
                    columns.append((after - before) / (2 * STEP))
                found.append(np.array(columns, dtype=float).T)
        return found

    def _solved(self, step: AnyArray, rates: AnyArray, changes: AnyArray) -> AnyArray:
        """Efforts and accelerations of the undriven dofs after a step of the independent positions."""
        n, q, accelerations = len(rates), self._closed(step), np.zeros_like(rates)

        def outputs() -> AnyArray:
            """Forces and rates of actuators, shape (1 + na, n)."""
            return np.array(self.forces.run(RULES, [*q, *rates, *accelerations])).reshape(-1, n)

        accelerations[self.driven] = changes
        still, columns = outputs()[0], []
        for k in self.undriven:
            accelerations[k] = mpmath.mpf(1)
            columns.append((outputs()[0] - still)[self.undriven])
            accelerations[k] = mpmath.mpf(0)
        accelerations[self.undriven] = _solution(np.array(columns).T, -still[self.undriven])
        force, *A = outputs()[:, self.driven]
        scaled = self.shape.mechanism.effort_scales[:, None] * np.array(A)
        effort = self.shape.mechanism.effort_scales * (scaled @ _solution(scaled.T @ scaled, force))
        return np.concatenate([effort, accelerations[self.undriven]])

    def _closed(self, step: AnyArray) -> list[Any]:
        """Positions after a step of the independent dofs, and Newton's method with these held."""
        position = self.moved.run(RULES, [*self.q, *step])
        for _ in range(4):
            *position, _, size = self.newton.run(RULES, [*position, *(position[k] for k in self.shape.places)])
        assert size < mpmath.mpf(10) ** (10 - DIGITS), "Newton's method has not converged"
        return position


def _numbers(x: Array) -> AnyArray:
    return np.array([mpmath.mpf(float(y)) for y in x], dtype=object)


def _solution(A: AnyArray, b: AnyArray) -> AnyArray:
    """The x of A x = b with all digits; empty without unknowns."""
    return np.array([*mpmath.lu_solve(mpmath.matrix(A.tolist()), mpmath.matrix(b.tolist()))] if len(b) else [], object)


def _forces_tape(shape: Shape) -> Tape:
    """Positions of all joints, velocities and accelerations of the independent dofs; to forces and rates A = S L."""
    graph, mechanism = Graph(), shape.mechanism
    q = np.array([graph.input(float(x)) for x in shape.pose], dtype=object)
    given = np.zeros((2, mechanism.nv), dtype=object)
    given[:, shape.independent] = [[graph.input(1.0) for _ in shape.independent] for _ in range(2)]
    state = state_of(shape, graph, q)
    motion, rows = dynamics(shape, state, *given), state.rows
    multipliers = state.factors.solve_transposed(list(motion.tau[shape.dependent]), len(rows))
    forces = [motion.tau[i] - across(rows, i, multipliers) for i in shape.independent]
    A = [
        x
        for actuator in mechanism.actuators
        for x in _actuator_row(shape, rows, state.factors, actuator.coordinate.joints[0], actuator.gear)
    ]
    return assemble_tape(graph, [*forces, *A])


def _moved_tape(shape: Shape) -> Tape:
    """Positions of all joints and a step of the independent dofs, to positions after it."""
    graph = Graph()
    q = np.array([graph.input(float(x)) for x in shape.pose], dtype=object)
    step = np.zeros(shape.mechanism.nv, dtype=object)
    step[shape.independent] = [graph.input(1e-3) for _ in shape.independent]
    return assemble_tape(graph, list(_retract(shape.mechanism, q, step)))


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
