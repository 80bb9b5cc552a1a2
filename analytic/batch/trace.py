"""The closed-loop inverse dynamics of a mechanism as two tapes: a Newton step on the loops, and the efforts."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from loopcheck.analytic.batch.elimination import Factors, factorize
from loopcheck.analytic.batch.equations import (
    Link,
    Moving,
    Row,
    closure_bias,
    closure_rows,
    joint_efforts,
    links,
    motions,
    spring_efforts,
    tree_efforts,
)
from loopcheck.analytic.batch.expressions import Graph, Scalar, Symbol, largest, smallest
from loopcheck.analytic.batch.support import UNDRIVEN, want_drives_of_joints, want_known
from loopcheck.analytic.batch.tape import Tape, assemble_tape
from loopcheck.analytic.batch.tracking import Columns, columns_of
from loopcheck.analytic.kinematics.closures import closure_jacobian_at
from loopcheck.analytic.kinematics.continuation import conditioning
from loopcheck.analytic.kinematics.redundancy import independent_drives, undriven_dofs
from loopcheck.robots.arrays import AnyArray, Array, JointPositions
from loopcheck.robots.errors import MechanismError
from loopcheck.robots.mechanism import Mechanism


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trace:
    """Tapes recorded from the equations of a mechanism on symbols.

    Inputs of both tapes are positions, used only for the dependent joints, and the motion of the actuated joints. The
    first outputs of both are the positions after a Newton step.
    """

    mechanism: Mechanism
    shape: "Shape"
    columns: Columns
    """Of the records of samples."""
    newton: Tape
    """From given positions; to the largest residual before the Newton step and the largest step [m or rad]."""
    efforts: Tape
    """From positions, velocities and accelerations to: efforts before the Newton step; largest residual before it, and
    largest step [m or rad]; smallest relative pivot times the conditioning at the pose of the trace; product of all
    pivots; difference between prescribed and dependent values of redundant joints, relative to their size [-]."""


def trace(mechanism: Mechanism, q: JointPositions) -> Trace:
    """Run the equations of a mechanism on symbols.

    Args:
        q: A pose with closed loops, at which pivots are chosen.

    Raises:
        MechanismError: If the mechanism has an element that the traced equations lack.
        SingularityError: If the pose is singular.
    """
    want_known(mechanism)
    want_drives_of_joints(mechanism)
    if undriven_dofs(mechanism, q):
        raise MechanismError(f"{mechanism.model.path}: {UNDRIVEN}")
    independent = [mechanism.dof_slices[drive.joints[0]].start for drive in independent_drives(mechanism, q)]
    shape = shape_of(mechanism, q, independent)
    return Trace(
        mechanism=mechanism,
        shape=shape,
        columns=columns_of(mechanism),
        newton=_newton_tape(shape),
        efforts=_efforts_tape(shape),
    )


def shape_of(mechanism: Mechanism, q: JointPositions, independent: list[int]) -> "Shape":
    """Pose and coordinates of a trace.

    Args:
        q: A pose with closed loops.
        independent: Dofs taken as independent coordinates.
    """
    joints = mechanism.actuated_joints
    places = [mechanism.q_slices[j].start for j in joints]
    driven = [mechanism.dof_slices[j].start for j in joints]
    free = {mechanism.q_slices[j].start for j in joints if mechanism.dof_slices[j].start in independent}
    following = [place for place in range(mechanism.nq) if place not in free]
    return Shape(mechanism, q, independent, following, places, driven)


@dataclass(frozen=True, slots=True)
class Shape:
    """Pose and coordinates of a trace."""

    mechanism: Mechanism
    pose: Array
    """Joint positions with closed loops [m or rad], shape (nq,)."""
    independent: list[int]
    """Dofs taken as independent coordinates."""
    following: list[int]
    """Places in q of the joints that follow."""
    places: list[int]
    """Places in q of the actuated joints."""
    driven: list[int]
    """Dofs of the actuated joints."""

    @property
    def dependent(self) -> list[int]:
        """Dofs that follow."""
        return [dof for dof in range(self.mechanism.nv) if dof not in self.independent]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """Symbols of a sample, and the quantities derived from the positions."""

    graph: Graph
    q: AnyArray
    bodies: list[Link]
    rows: list[Row]
    factors: Factors

    def residual(self) -> Scalar:
        """The largest closure residual."""
        return _largest(abs(row.residual) for row in self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dynamics:
    """Symbols of a sample in motion."""

    qd: AnyArray
    """Joint velocities, shape (nv,)."""
    qdd: AnyArray
    """Joint accelerations, shape (nv,)."""
    changes: list[Scalar]
    """Φ̇ q̇ of each row."""
    moving: list[Moving]
    tau: AnyArray
    """Efforts on the joints of the spanning tree, shape (nv,)."""


def state_of(shape: Shape, graph: Graph, q: AnyArray) -> State:
    """Poses, closures and factors of Φᵘ at symbolic positions.

    Args:
        q: Joint positions [m or rad], shape (nq,).
    """
    mechanism = shape.mechanism
    bodies = links(mechanism, q)
    rows = closure_rows(mechanism, bodies, q)
    column = {dof: k for k, dof in enumerate(shape.dependent)}
    Phi_u = [{column[dof]: a for dof, a in row.columns.items() if dof in column} for row in rows]
    factors = factorize(Phi_u, len(column))
    return State(graph=graph, q=q, bodies=bodies, rows=rows, factors=factors)


def dynamics(shape: Shape, state: State, qd: AnyArray, qdd: AnyArray) -> Dynamics:
    """Motion that keeps the loops closed, and its efforts on the tree.

    Args:
        qd: Joint velocities [m/s or rad/s], those of the dependent dofs zero, shape (nv,).
        qdd: Joint accelerations [m/s² or rad/s²], those of the dependent dofs zero, shape (nv,).
    """
    mechanism, rows, solve = shape.mechanism, state.rows, state.factors.solve
    qd, qdd = qd.copy(), qdd.copy()
    qd[shape.dependent] = solve([-along(row, qd) for row in rows])
    bias = motions(mechanism, state.bodies, qd, np.zeros(mechanism.nv, dtype=object))
    changes = closure_bias(mechanism, state.bodies, bias, state.q, qd)
    qdd[shape.dependent] = solve([-(along(row, qdd) + c) for row, c in zip(rows, changes, strict=True)])
    moving = motions(mechanism, state.bodies, qd, qdd)
    tau = tree_efforts(mechanism, state.bodies, moving) + joint_efforts(mechanism, state.q, qd, qdd)
    tau = tau + spring_efforts(mechanism, state.bodies, state.q, qd, qdd)
    return Dynamics(qd=qd, qdd=qdd, changes=changes, moving=moving, tau=tau)


def _state(shape: Shape, given: int) -> tuple[State, list[list[Symbol]]]:
    """The inputs of a tape in a new graph, run up to the factors of Φᵘ.

    Returns:
        The state, and positions of the actuated joints with `given` − 1 of their derivatives.
    """
    graph = Graph()
    q = np.array([graph.input(float(x)) for x in shape.pose], dtype=object)
    drive = [[graph.input(float(x)) for x in shape.pose[shape.places]]]
    drive += [[graph.input(1.0) for _ in shape.places] for _ in range(given - 1)]
    for place, x in zip(shape.places, drive[0], strict=True):
        if place not in shape.following:
            q[place] = x
    return state_of(shape, graph, q), drive


def _newton_step(shape: Shape, state: State) -> tuple[list[Scalar], list[Scalar]]:
    """The positions after a Newton step on the loops; the largest residual before it, and the largest step."""
    step = np.zeros(shape.mechanism.nv, dtype=object)
    step[shape.dependent] = state.factors.solve([-row.residual for row in state.rows])
    size = _largest(abs(x) for x in step[shape.dependent])
    return list(_retract(shape.mechanism, state.q, step)), [state.residual(), size]


def _newton_tape(shape: Shape) -> Tape:
    state, _ = _state(shape, 1)
    moved, sizes = _newton_step(shape, state)
    return assemble_tape(state.graph, [*moved, *sizes])


def _efforts_tape(shape: Shape) -> Tape:
    state, given = _state(shape, 3)
    rows, factors = state.rows, state.factors
    moved, sizes = _newton_step(shape, state)
    motion = dynamics(shape, state, *(_independent_rates(shape, rates) for rates in given[1:]))
    multipliers = factors.solve_transposed(list(motion.tau[shape.dependent]), len(rows))
    force = [motion.tau[i] - across(rows, i, multipliers) for i in shape.independent]
    effort, pivots = _least_effort(shape, rows, factors, force)
    pivots += factors.relative_pivots
    guard = (smallest(map(abs, pivots)) if pivots else 1.0) * conditioning_at(shape)
    orientation = np.prod(np.array(factors.relative_pivots, object))
    apart = _apart(shape, state.q, motion, given)
    return assemble_tape(state.graph, [*moved, *effort, *sizes, guard, orientation, apart])


def conditioning_at(shape: Shape) -> float:
    """Smallest singular value of Φᵘ relative to the largest at the pose of the trace [-]."""
    Phi_u = closure_jacobian_at(shape.mechanism, shape.pose[None])[..., shape.dependent]
    return float(conditioning(Phi_u)[0][0]) if shape.dependent else 1.0


def _independent_rates(shape: Shape, given: list[Symbol]) -> AnyArray:
    """Joint rates with the rates of the dependent joints zero, shape (nv,)."""
    rates = np.zeros(shape.mechanism.nv, dtype=object)
    for dof, rate in zip(shape.driven, given, strict=True):
        if dof in shape.independent:
            rates[dof] = rate
    return rates


def along(row: Row, rates: AnyArray) -> Scalar:
    """Rate of a row's residual.

    Args:
        rates: Joint velocities [m/s or rad/s], shape (nv,).
    """
    return sum((a * rates[dof] for dof, a in row.columns.items()), 0.0)


def across(rows: list[Row], dof: int, multipliers: list[Scalar]) -> Scalar:
    """A row of Φᵀ times the multipliers."""
    return sum((row.columns[dof] * y for row, y in zip(rows, multipliers, strict=True) if dof in row.columns), 0.0)


def _least_effort(
    shape: Shape, rows: list[Row], factors: Factors, force: list[Scalar]
) -> tuple[list[Scalar], list[Symbol]]:
    """Efforts of least norm for a force on the independent coordinates, with the relative pivots of that.

    With A = S L and the scales W of the efforts they are W² A (Aᵀ W² A)⁻¹ f; without redundant actuators the gears are
    all it takes.
    """
    A = [
        _actuator_row(shape, rows, factors, actuator.coordinate.joints[0], actuator.gear)
        for actuator in shape.mechanism.actuators
    ]
    n = len(force)
    if len(A) == n:
        gear_efforts: list[Scalar] = [0.0] * n
        for k, row in enumerate(A):
            (column,) = (i for i, a in enumerate(row) if isinstance(a, Symbol) or a != 0)
            gear_efforts[k] = force[column] / row[column]
        return gear_efforts, []
    scales = shape.mechanism.effort_scales.tolist()
    weighted = [[w * w * a for a in row] for w, row in zip(scales, A, strict=True)]
    normal = [
        {j: sum((p[i] * row[j] for p, row in zip(weighted, A, strict=True)), 0.0) for j in range(n)} for i in range(n)
    ]
    square = factorize(normal, n)
    x = square.solve(force)
    efforts = [sum((a * y for a, y in zip(row, x, strict=True)), 0.0) for row in weighted]
    return efforts, square.relative_pivots


def _actuator_row(shape: Shape, rows: list[Row], factors: Factors, joint: int, gear: float) -> list[Scalar]:
    """Velocity of an actuator per independent velocity."""
    dof = shape.mechanism.dof_slices[joint].start
    if dof in shape.independent:
        return [gear if other == dof else 0.0 for other in shape.independent]
    unit: list[Scalar] = [gear if other == dof else 0.0 for other in shape.dependent]
    weights = factors.solve_transposed(unit, len(rows))
    return [-across(rows, other, weights) for other in shape.independent]


def _apart(shape: Shape, q: AnyArray, motion: Dynamics, given: list[list[Symbol]]) -> Scalar:
    """Distance of dependent actuated joints from their prescribed motion, over 1 + its size."""
    gaps = []
    for k, (place, dof) in enumerate(zip(shape.places, shape.driven, strict=True)):
        if dof not in shape.independent:
            for value, wanted in zip((q[place], motion.qd[dof], motion.qdd[dof]), given, strict=True):
                gaps.append(abs(value - wanted[k]) / (abs(wanted[k]) + 1.0))
    return _largest(gaps)


def _largest(values: Iterable[Any]) -> Scalar:
    """The largest of nonnegative scalars; 0 for an empty list."""
    values = list(values)
    symbols = [x for x in values if isinstance(x, Symbol)]
    number = max((x for x in values if not isinstance(x, Symbol)), default=0.0)
    if not symbols:
        return number
    return largest(symbols) + number


def _retract(mechanism: Mechanism, q: AnyArray, step: AnyArray) -> AnyArray:
    """Joint positions after a small displacement, to first order; quaternions stay near unit length, shape (nq,)."""
    moved = np.array(q, dtype=object)
    for joint, columns, dofs in zip(mechanism.joints, mechanism.q_slices, mechanism.dof_slices, strict=True):
        if joint.kind in ("hinge", "slide"):
            moved[columns] = q[columns] + step[dofs]
            continue
        turn = slice(columns.stop - 4, columns.stop)
        moved[columns.start : turn.start] = q[columns.start : turn.start] + step[dofs.start : dofs.stop - 3]
        w, x, y, z = q[turn]
        a, b, c = step[dofs.stop - 3 : dofs.stop] * 0.5
        turned = np.array(
            [
                w - x * a - y * b - z * c,
                x + w * a + y * c - z * b,
                y + w * b + z * a - x * c,
                z + w * c + x * b - y * a,
            ],
            dtype=object,
        )
        moved[turn] = turned / np.sqrt(turned @ turned)
    return moved
