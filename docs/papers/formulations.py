"""Formulations of the 2T1R and the 3-RRR on the scalar graph: their operations, and their times as machine code."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from docs.benchmark.timing import FEW, GAP, alternated, repeated
from docs.papers.operations import COST, Number, array_of, cost, on_objects, parts_of
from loopcheck.analytic.batch.compiled import load_map, map_job
from loopcheck.analytic.batch.equations import links, motions, tree_efforts
from loopcheck.analytic.batch.expressions import Graph, Op, Scalar, Symbol, largest, smallest
from loopcheck.analytic.batch.gradient import _add, _slopes
from loopcheck.analytic.batch.interpreter import RULES
from loopcheck.analytic.batch.tape import assemble_tape
from loopcheck.analytic.batch.trace import trace
from loopcheck.analytic.papers import AS_CORRECTED, staicu2006, zubizarreta2010
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case

SAMPLE = 10
"""Sample of the motion. Pivots are chosen at it, which can change a count by a few operations."""
PERIOD = 5e-3
"""Time between samples of the controller of Zubizarreta et al. [s]."""
CALLS = 5000
"""Calls of machine code that are timed at once."""
EQUATIONS, SYSTEMS = 48, 8
"""Newton-Euler equations of eight bodies, and systems that fit into a cache [-]."""


class Traced(NamedTuple):
    """A quantity on a graph."""

    graph: Graph
    outputs: list[Scalar]
    arguments: tuple[list[Scalar], ...] = ()
    """Of the inverse functions of angles that are inputs of the graph."""

    @property
    def operations(self) -> int:
        """Operations, an inverse function as many as a sine."""
        arguments = [x for each in self.arguments for x in each]
        return cost(self.graph, [*self.outputs, *arguments]) + COST[Op.SIN] * len(self.arguments)


def _numbers(graph: Graph, values: Array) -> Any:
    """Inputs of a sample, shape (1, n)."""
    return array_of([Number(x) for x in _inputs(graph, values)])


def _inputs(graph: Graph, values: Array) -> AnyArray:
    return np.array([graph.input(float(x)) for x in values], dtype=object)


def _scalars(array: Any) -> list[Scalar]:
    scalars: list[Scalar] = parts_of(array)[0].ravel().tolist()
    return scalars


def virtual_work(case: Case, motion: Motion) -> Traced:
    """Forces of the 2T1R by equations (6) to (18) from the motion of the platform, as `staicu2006` computes them."""
    paper, p, graph, drive = staicu2006, staicu2006.parameters(case.mechanism), Graph(), _drive(motion)
    x = paper.platform_coordinates(p, drive[0])
    given = paper.relative_velocities(p, paper.frames(p, x), paper._given(drive[1]))
    second = paper.relative_accelerations(p, paper.frames(p, x), given, paper._given(drive[2]))
    moving = [_numbers(graph, values[0]) for values in (x, given.platform, second.platform)]
    with on_objects(paper, [graph.input(0.0) for _ in range(4)]) as numpy:
        rotations = paper.frames(p, moving[0])
        rates = paper.inverse_velocities(p, rotations, moving[1], AS_CORRECTED)
        accelerations = paper.inverse_accelerations(p, rotations, rates, moving[2], AS_CORRECTED)
        moved = paper.body_motions(p, rotations, rates, accelerations)
        forces = paper.resultants(p, moved, case.mechanism.gravity)
        virtual = [paper.relative_velocities(p, rotations, paper._given(row[None])) for row in np.eye(3)]
        powers = [paper.actuator_force(own, forces, v) for own, v in zip("ABC", virtual, strict=True)]
    return Traced(graph, _scalars(np.array(powers)), tuple(numpy.arguments))


def recursion(case: Case, motion: Motion) -> tuple[Traced, Traced]:
    """Efforts by the generic traced equations at closed positions; and all that their tape computes beside them."""
    traced, graph = trace(case.mechanism, motion.q[SAMPLE]), Graph()
    inputs = _inputs(graph, np.concatenate([motion.q[SAMPLE], *(x[0] for x in _drive(motion))]))
    rules = {
        **RULES,
        Op.MAX: lambda x, y, k: largest([x, y]),
        Op.MIN: lambda x, y, k: smallest([x, y]),
        Op.NUMBER: lambda x, y, k: k,
    }
    outputs = traced.efforts.run(rules, list(inputs))
    return Traced(graph, outputs[traced.columns.effort]), Traced(graph, outputs)


def on_the_tree(case: Case, motion: Motion) -> tuple[Traced, Traced]:
    """Efforts on the joints of the cut tree by the recursive Newton-Euler equations, and by those of Lagrange.

    With the energies T and V these are ∂Ṫ/∂q̇ − 2 ∂T/∂q + ∂V/∂q in Nielsen's form, all derivatives by reverse mode.
    """
    mechanism, graph = case.mechanism, Graph()
    q, qd, qdd = (_inputs(graph, x[SAMPLE]) for x in (motion.q, motion.qd, motion.qdd))
    bodies = links(mechanism, q)
    newton_euler = tree_efforts(mechanism, bodies, motions(mechanism, bodies, qd, qdd))
    # accelerations from rest without weight are linear in q̈, with the same coefficients as velocities in q̇
    velocities = motions(replace(mechanism, gravity=np.zeros(3)), bodies, 0 * qd, qd)
    T: Any = 0.0
    V: Any = 0.0
    for body, link, moving in zip(mechanism.bodies, bodies, velocities, strict=True):
        v = moving.acceleration_at(body.center.astype(object))
        T = T + 0.5 * (body.mass * (v @ v) + moving.alpha @ body.inertia @ moving.alpha)
        V = V - body.mass * (mechanism.gravity.astype(object) @ (link.p + link.R @ body.center.astype(object)))
    of_q, of_qd = _slope(T, q), _slope(T, qd)
    lagrange = _slope(of_q @ qd + of_qd @ qdd, qd) - 2 * of_q + _slope(V, q)
    return Traced(graph, list(newton_euler)), Traced(graph, list(lagrange))


def _slope(y: Symbol, inputs: Iterable[Symbol]) -> AnyArray:
    """Derivatives of a scalar along inputs."""
    adjoint: dict[int, Scalar] = {y.place: 1.0}
    for place in range(y.place, -1, -1):
        if place in adjoint and y.graph.args[place]:
            weight = adjoint.pop(place)
            for arg, slope in _slopes(y.graph, place):
                _add(adjoint, arg, slope * weight)
    return np.array([adjoint.get(x.place, 0.0) for x in inputs], dtype=object)


def with_sensors(case: Case, motion: Motion) -> tuple[dict[str, Traced], int]:
    """Parts of `zubizarreta2010` at a sample, and steps of Newton's method from the sample before.

    Returns:
        `step` of Newton's method on (30), `pose` from all joints, torques by the `active` model with the rates of the
        passive joints (41) and by the `redundant` model, and `motors` and `sensors`: pose and torques from these.
    """
    paper, p, graph, drive = zubizarreta2010, zubizarreta2010.parameters(case.mechanism), Graph(), _drive(motion)
    before = motion.law(motion.t[SAMPLE : SAMPLE + 1] - PERIOD).q
    x, q = paper.positions(p, np.concatenate([before, drive[0]]), paper.passive_guess(case))
    rates = (paper.transformation(p, q[1:]) @ drive[1][..., None])[..., 0]
    kinematics = paper.kinematics_of(p, x[1:], q[1:], rates)
    changes = (kinematics.T @ drive[2][..., None] + kinematics.T_dot @ drive[1][..., None])[..., 0]
    steps = 0
    while np.abs(paper.closure_passive(p, _after(steps, p, q))).max() > paper.ROUND_OFF:
        steps += 1
    X, Q, V, A = (_numbers(graph, values) for values in (x[1], q[1], rates[0], changes[0]))
    guess = _numbers(graph, np.concatenate([drive[0][0], q[0, 3:]]))
    g = -float(case.mechanism.gravity[1])
    with on_objects(paper, [graph.input(0.0) for _ in range(3)]) as numpy:
        residual, slope = paper.closure_passive(p, guess), paper.passive_jacobians(p, guess)[1]
        step = guess[:, 3:] - numpy.linalg.solve(slope, residual[..., None])[..., 0]
        pose = _scalars(paper.direct_position(p, Q))
        all_rates = paper._times(paper.transformation(p, Q), V[:, :3])
        model = paper.active_model(p, X, Q, all_rates, g=g)
        active = _scalars(paper._times(model.D, A[:, :3]) + paper._times(model.C, V[:, :3]) + model.G)
        model = paper.redundant_model(p, X, Q, V, g=g)
        redundant = _scalars(paper._times(model.D, A) + paper._times(model.C, V) + model.G)
    arguments = tuple(numpy.arguments)
    return {
        "step": Traced(graph, _scalars(step)),
        "pose": Traced(graph, pose, arguments),
        "active": Traced(graph, active),
        "redundant": Traced(graph, redundant),
        "motors": Traced(graph, [*pose, *active], arguments),
        "sensors": Traced(graph, [*pose, *redundant], arguments),
    }, steps


def _after(steps: int, p: zubizarreta2010.Parameters, q: Array) -> Array:
    """Joints of the second sample after some steps from the passive joints of the first."""
    return zubizarreta2010.passive_joints(p, q[1:, :3], q[:1, 3:], iterations=steps)


def _drive(motion: Motion) -> tuple[Array, Array, Array]:
    """Motion of the motors at the sample [m or rad, per s, per s²], each of shape (1, na)."""
    drive = motion.law(motion.t[SAMPLE : SAMPLE + 1])
    return drive.q, drive.qd, drive.qdd


def times(ways: Mapping[str, Traced]) -> dict[str, Array]:
    """CPU time of a sample by machine code, and of a dense solution of all Newton-Euler equations as `dense` [s].

    Each has the shape (repetitions,); all take turns.
    """
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(SYSTEMS, EQUATIONS, EQUATIONS)), rng.normal(size=(SYSTEMS, EQUATIONS, 1))
    acts = {name: (repeated(machine_code(way), CALLS), CALLS * FEW) for name, way in ways.items()}
    acts["dense"] = (repeated(lambda: np.linalg.solve(A, b), CALLS // 50), CALLS // 50 * SYSTEMS)
    for act, _ in acts.values():
        act()
    return alternated(acts)


def machine_code(traced: Traced) -> Callable[[], Any]:
    """Machine code that computes the sample again and again, so that memory does not count."""
    graph, tape = traced.graph, assemble_tape(traced.graph, traced.outputs)
    inputs = [value for op, value in zip(graph.ops, graph.values, strict=True) if op is Op.INPUT]
    given, found = np.repeat(np.array(inputs)[:, None], GAP, axis=1), np.empty((len(tape.outputs), GAP))
    run, step = load_map(map_job(tape, len(inputs))), given.strides[0]

    def act() -> Array:
        run.call(given.ctypes.data, found.ctypes.data, step, step, FEW // run.width)
        return found[:, :FEW]

    return act
