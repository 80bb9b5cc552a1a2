"""Central differences with 50 digits through the solved loops, from the traced equations of the efforts.

Numbers are of python-flint, whose arithmetic is compiled: mpmath takes several times as long.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from flint import arb, arb_mat, ctx

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
STEP = arb(2.0**-50)
"""Step of the differences [m or rad, per s, per s²]; their error is of the order of its square."""
CONVERGED = 10.0 ** (10 - DIGITS)
"""Largest step of Newton's method at its end [m or rad]."""
RULES: Mapping[int, Callable[..., Any]] = {
    **ARITHMETIC,
    Op.SQRT: lambda x, y, k: x.sqrt(),
    Op.SIN: lambda x, y, k: x.sin(),
    Op.COS: lambda x, y, k: x.cos(),
    Op.NUMBER: lambda x, y, k: arb(k),
    Op.MAX: lambda x, y, k: x.max(y),
    Op.MIN: lambda x, y, k: x.min(y),
}


def _run(tape: Tape, inputs: Sequence[Any]) -> list[Any]:
    """Outputs of a tape, without the bounds of their errors."""
    return [x.mid() for x in tape.run(RULES, inputs)]


def slopes(traced: Trace, q: JointPositions, drive: Drive) -> Array:
    """Derivatives of the efforts at a sample along positions, velocities and accelerations of the drives.

    Args:
        q: Joint positions near the sample [m or rad], shape (nq,).
        drive: Motion of the drives [m or rad, per s, per s²], each of shape (drives,).

    Returns:
        Derivatives [any unit], shape (3, na, drives).
    """
    with ctx.workdps(DIGITS):
        values = np.array([_numbers(row) for row in drive])
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
    nq, position = len(q), [*_numbers(q)]
    for _ in range(4):  # from 16 digits, Newton's method doubles them
        *position, _, _ = _run(traced.newton, [*position, *drive[0]])
    values = _run(traced.efforts, [*position, *drive.ravel()])
    assert values[1 - CHECKS] < CONVERGED, "Newton's method has not converged"
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
        self.q = [*_numbers(q)]

    def slopes(self, rates: Array, changes: Array) -> list[Array]:
        """Derivatives along positions and velocities of the independent dofs, and accelerations of the driven dofs.

        Args:
            rates: Velocities of the independent dofs [m/s or rad/s], shape (n,).
            changes: Accelerations of the driven dofs [m/s² or rad/s²], shape (r,).

        Returns:
            Three derivatives, of the efforts and below of the accelerations [any unit], shape (na + n − r, n or r).
        """
        found = []
        with ctx.workdps(DIGITS):
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
            return np.array(_run(self.forces, [*q, *rates, *accelerations])).reshape(-1, n)

        accelerations[self.driven] = changes
        still, columns = outputs()[0], []
        for k in self.undriven:
            accelerations[k] = arb(1)
            columns.append((outputs()[0] - still)[self.undriven])
            accelerations[k] = arb(0)
        accelerations[self.undriven] = _solution(np.array(columns).T, -still[self.undriven])
        force, *A = outputs()[:, self.driven]
        scales = _numbers(self.shape.mechanism.effort_scales)
        scaled = scales[:, None] * np.array(A)
        effort = scales * (scaled @ _solution(scaled.T @ scaled, force))
        return np.concatenate([effort, accelerations[self.undriven]])

    def _closed(self, step: AnyArray) -> list[Any]:
        """Positions after a step of the independent dofs, and Newton's method with these held."""
        position = _run(self.moved, [*self.q, *step])
        for _ in range(4):
            *position, _, size = _run(self.newton, [*position, *(position[k] for k in self.shape.places)])
        assert size < CONVERGED, "Newton's method has not converged"
        return position


def _numbers(x: Array) -> AnyArray:
    return np.array([arb(float(y)) for y in x], dtype=object)


def _solution(A: AnyArray, b: AnyArray) -> AnyArray:
    """The x of A x = b with all digits; empty without unknowns."""
    return np.array(arb_mat(A.tolist()).solve(arb_mat(b[:, None].tolist())).entries() if len(b) else [], dtype=object)


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
    with ctx.workdps(DIGITS):
        values = _run(traced_slopes.tape, [*_numbers(np.array([*q, *rates]))])
    found = np.zeros((3, mechanism.na, len(dofs)))
    places = [dofs.index(dof) for dof in independent]
    for k, name in enumerate(BLOCKS[:3]):
        block = np.array(values[traced_slopes.blocks[name]], dtype=float)
        found[k][:, places] = block.reshape(mechanism.na, len(independent))
    return found
