"""Wrenches in random closed chains against the same equations with 50 digits, by the scalar code of the batches."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb, arb_mat, ctx

from loopcheck.analytic.batch.equations import _load, cross, joint_efforts
from loopcheck.analytic.batch.expressions import Graph
from loopcheck.analytic.batch.tape import assemble_tape
from loopcheck.analytic.batch.trace import dynamics, shape_of, state_of
from loopcheck.analytic.dynamics.maximal_wrenches import MaximalWrenches
from loopcheck.analytic.dynamics.noc import needed_efforts
from loopcheck.analytic.dynamics.recursive_wrenches import recursive_wrenches
from loopcheck.analytic.dynamics.wrenches import ROUND_OFF
from loopcheck.analytic.kinematics.closures import closure_of_rows
from loopcheck.analytic.kinematics.redundancy import independent_dofs
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import joints_of
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.connections import connections
from loopcheck.robots.mechanism import WORLD, ConnectClosure, Mechanism, WeldClosure
from loopcheck.robots.motion import Motion
from loopcheck.robots.robot import Case
from tests.closed_chains import Shape, closed_chain, states
from tests.conftest import CaseMaker
from tests.cpu_time import extended_but
from tests.fifty_digits import DIGITS, Hybrid, _numbers, _run

ELEMENTS = frozenset({"rotors", "dampers", "springs", "held"})
FAST = [0, 1, 2]


@pytest.mark.parametrize(
    "seed", extended_but(FAST, range(24), "test_random_chains_have_the_wrenches_of_fifty_digits[0]")
)
def test_random_chains_have_the_wrenches_of_fifty_digits(seed: int, tmp_path: Path, model_case: CaseMaker) -> None:
    """Every third with a weld and a ball joint; no constraint is redundant, so all wrenches are unique."""
    rng, path = np.random.default_rng(seed), tmp_path / "chain.xml"
    more = {"weld", "ball"} if seed % 3 == 2 else set()
    case = _not_redundant(Shape(planar=False, loops=1, elements=ELEMENTS | more), rng, path, model_case)
    mechanism, motion = case.mechanism, states(case, rng)
    exact, moments = _exact(mechanism, motion, independent_dofs(mechanism, motion)), []
    q, qd, qdd = motion.q[:1], motion.qd[:1], motion.qdd[:1]
    state = State(mechanism=mechanism, q=q, qd=qd)
    effort = needed_efforts(state, qdd).effort
    equations = MaximalWrenches(mechanism, q)
    assert equations.uniqueness().components.all()
    first, second = recursive_wrenches(state, qdd, effort), equations(qd, qdd, effort)
    terms = np.repeat(first.terms, 3)
    for k, connection in enumerate(connections(mechanism)):
        R = np.eye(3) if connection.body == WORLD else state.poses.R[0, connection.body]
        arm = R @ connection.point * (connection.closure is None)
        for way in (first, second):
            moment, force = R @ way.wrench[0, k, :3], R @ way.wrench[0, k, 3:]
            moments.append((np.array([*(moment + np.cross(arm, force)), *force]) - exact[k]) / terms)
    assert np.abs(moments).max() < ROUND_OFF


def _not_redundant(shape: Shape, rng: np.random.Generator, path: Path, model_case: CaseMaker) -> Case:
    """A random chain with as many motors as closures leave freedoms."""
    while True:
        assert closed_chain(shape, rng, path)
        case = model_case(path)
        if case.mechanism.nv - len(closure_of_rows(case.mechanism)) == case.mechanism.na:
            return case


def _exact(mechanism: Mechanism, motion: Motion, independent: AnyArray) -> list[Array]:
    """Wrenches in world axes about the origins of bodies and the first points of closures, from the first state."""
    q, qd, qdd = (x[0] for x in (motion.q, motion.qd, motion.qdd))
    dofs = [int(k) for k in np.flatnonzero(independent)]
    with ctx.workdps(DIGITS):
        shape = shape_of(mechanism, q, dofs)
        closed = Hybrid(shape, list(range(len(dofs))), q)._closed(_numbers(np.zeros(len(dofs))))
        graph = Graph()
        inputs = np.array([graph.input(float(x)) for x in q], dtype=object)
        given = np.zeros((2, mechanism.nv), dtype=object)
        given[:, dofs] = [[graph.input(1.0) for _ in dofs] for _ in range(2)]
        state = state_of(shape, graph, inputs)
        moving = dynamics(shape, state, *given)
        outputs: list[Any] = []
        for b, (link, motion_of_body) in enumerate(zip(state.bodies, moving.moving, strict=True)):
            moment, force = _load(mechanism, b, link, motion_of_body)
            outputs += [*link.R.ravel(), *link.p, *(link.R @ moment), *(link.R @ force)]
            parent = mechanism.bodies[b].parent
            origin = link.offset + (0 if parent == WORLD else state.bodies[parent].p)
            for hinged in link.joints:
                anchor = origin + hinged.before
                origin = anchor - hinged.after
                outputs += [x for axis in hinged.axes for x in (*axis, *anchor)]
        outputs += list(joint_efforts(mechanism, inputs, moving.qd, moving.qdd))
        tape = assemble_tape(graph, outputs)
        found = iter(_run(tape, [*closed, *_numbers(qd[dofs]), *_numbers(qdd[dofs])]))
        return _Equations(mechanism, found).solved()


class _Equations:
    """The square equations of all bodies and dofs: wrenches on bodies, of closures, and efforts."""

    def __init__(self, mechanism: Mechanism, found: Iterator[Any]) -> None:
        """Numbers of all bodies in a pose, in the order of the tape."""

        def take(*shape: int) -> AnyArray:
            return np.array([next(found) for _ in range(int(np.prod(shape)))], dtype=object).reshape(shape)

        self.mechanism, nb, nv = mechanism, len(mechanism.bodies), mechanism.nv
        sizes = [6 if isinstance(closure, WeldClosure) else 3 for closure in mechanism.closures]
        ends = 6 * nb + np.cumsum([0, *sizes])
        self.places = [slice(int(x), int(y)) for x, y in pairwise(ends)]
        self.A = np.zeros((6 * nb + nv, int(ends[-1]) + mechanism.na), dtype=object)
        self.A[6 * nb :, ends[-1] :] = -mechanism.selection.T
        self.R, self.p, loads = [], [], []
        for b in range(nb):
            self.R.append(take(3, 3))
            self.p.append(take(3))
            loads.append(take(6))
            for joint, _, dofs in joints_of(mechanism, b):
                for dof in range(dofs.start, dofs.stop):
                    self._along(b, 6 * nb + dof, take(2, 3), turns=joint.kind != "slide")
        self.right = [*np.concatenate(loads), *(-take(nv))]

    def _along(self, b: int, row: int, line: AnyArray, *, turns: bool) -> None:
        """The equation of a dof of a body."""
        axis, anchor = line
        lever = cross(axis, self.p[b] - anchor) if turns else axis
        self.A[row, 6 * b : 6 * b + 6] = [*(axis if turns else 0 * axis), *lever]

    def _act(self, body: int, point: AnyArray, columns: slice, sign: int) -> None:
        """A wrench about a point on a body, or a force there."""
        if body == WORLD:
            return
        block = np.eye(6, dtype=object)
        block[:3, 3:] = np.array([cross(point - self.p[body], axis) for axis in np.eye(3, dtype=object)]).T
        self.A[6 * body : 6 * body + 6, columns] += sign * block[:, 6 - (columns.stop - columns.start) :]

    def solved(self) -> list[Array]:
        """The wrenches, of bodies first."""
        nb = len(self.mechanism.bodies)
        for b, body in enumerate(self.mechanism.bodies):
            for other, sign in ((b, 1), (body.parent, -1)):
                self._act(other, self.p[b], slice(6 * b, 6 * b + 6), sign)
        for closure, place in zip(self.mechanism.closures, self.places, strict=True):
            assert isinstance(closure, ConnectClosure | WeldClosure)
            for end, point, sign in ((closure.body1, closure.point1, 1), (closure.body2, closure.point2, -1)):
                at = _numbers(point) if end == WORLD else self.p[end] + self.R[end] @ _numbers(point)
                self._act(end, at, place, sign)
        A, right = ([[arb(x) for x in row] for row in rows] for rows in (self.A, np.array(self.right)[:, None]))
        values = np.array([float(x.mid()) for x in arb_mat(A).solve(arb_mat(right)).entries()])
        of_closures = [np.concatenate([np.zeros(6 - (x.stop - x.start)), values[x]]) for x in self.places]
        return [*values[: 6 * nb].reshape(nb, 6), *of_closures]
