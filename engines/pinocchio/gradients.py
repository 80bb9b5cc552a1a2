"""Pinocchio's analytic derivatives: of constrained forward dynamics, and of inverse dynamics of the tree."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pinocchio as pin

from loopcheck.engines.boundary import want_representable
from loopcheck.engines.declarations import ACCELERATION, CONSTANTS, FORCE, Differentiated
from loopcheck.engines.pinocchio._loops import gathered, loop_constraints
from loopcheck.engines.pinocchio._simulation import want_rigid
from loopcheck.engines.pinocchio._tree import Tree, build, guarded, is_loaded
from loopcheck.robots.arrays import Array, JointAccelerations, JointPositions, JointVelocities
from loopcheck.robots.mechanism import Mechanism

PROXIMAL = (0.0, 0.0, 1e-7, 20)
"""Tolerances, regularization and iterations of the solver: redundant rows need regularization [1/kg or 1/(kg m²)]."""
ORDER = (0, 1, 2, 3, 4, 5, 7, 6, 8, 9)
"""Place of each inertial parameter among Pinocchio's, which has yy before xz."""


@contextmanager
def functions(mechanism: Mechanism) -> Iterator[list[Differentiated]]:
    """See `loopcheck.engines.contract.Gradients.functions`."""
    if is_loaded(mechanism):
        want_representable("pinocchio", ["derivatives of springs, dampers, loads and gravity compensation"])
    want_rigid(mechanism, ())
    with guarded("pinocchio"):
        tree = build(mechanism)
        inverse, forward = _InverseDynamics(tree), _ForwardDynamics(tree)
        yield [
            Differentiated(
                name="computeRNEADerivatives",
                quantity=FORCE,
                meaning="",
                value=inverse.value,
                derivatives=inverse.derivatives,
            ),
            Differentiated(
                name="computeConstraintDynamicsDerivatives",
                quantity=ACCELERATION,
                meaning="",
                value=forward.value,
                derivatives=forward.derivatives,
            ),
        ]


class _InverseDynamics:
    """Forces on the tree."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree

    def value(self, q: JointPositions, qd: JointVelocities, qdd: JointAccelerations) -> Array:
        return np.array(pin.rnea(self._tree.model, self._tree.data, self._tree.positions(q), qd, qdd))

    def derivatives(self, q: JointPositions, qd: JointVelocities, qdd: JointAccelerations) -> Mapping[str, Array]:
        model, data, x = self._tree.model, self._tree.data, self._tree.positions(q)
        of_q, of_qd, of_qdd = (np.array(part) for part in pin.computeRNEADerivatives(model, data, x, qd, qdd))
        return {"q": of_q, "qd": of_qd, "qdd": of_qdd, "parameters": self._of_parameters(x, qd, qdd)}

    def _of_parameters(self, x: Array, qd: JointVelocities, qdd: JointAccelerations) -> Array:
        model, data = self._tree.model, self._tree.data
        regressor = np.array(pin.computeJointTorqueRegressor(model, data, x, qd, qdd))
        columns = []
        for frame in (model.frames[number] for number in self._tree.bodies):
            own = slice(CONSTANTS * (frame.parentJoint - 1), CONSTANTS * frame.parentJoint)
            columns.append(regressor[:, own] @ _in_joint(frame.placement))
        return np.concatenate(columns, axis=1)


class _ForwardDynamics:
    """Accelerations with the loops closed by rigid constraints."""

    def __init__(self, tree: Tree) -> None:
        self._tree, self._loops = tree, gathered(loop_constraints(tree))
        pin.initConstraintDynamics(tree.model, tree.data, self._loops.models, self._loops.datas)

    def value(self, q: JointPositions, qd: JointVelocities, effort: Array) -> Array:
        return self._solved(q, qd, effort)[0]

    def derivatives(self, q: JointPositions, qd: JointVelocities, effort: Array) -> Mapping[str, Array]:
        _, proximal = self._solved(q, qd, effort)
        tree, loops = self._tree, self._loops
        found = pin.computeConstraintDynamicsDerivatives(tree.model, tree.data, loops.models, loops.datas, proximal)
        of_q, of_qd, of_force = (np.array(part) for part in found[:3])
        return {"q": of_q, "qd": of_qd, "effort": of_force @ tree.mechanism.selection.T}

    def _solved(self, q: JointPositions, qd: JointVelocities, effort: Array) -> tuple[Array, Any]:
        tree, loops, proximal = self._tree, self._loops, pin.ProximalSettings(*PROXIMAL)
        force = effort @ tree.mechanism.selection
        a = pin.constraintDynamics(
            tree.model, tree.data, tree.positions(q), qd, force, loops.models, loops.datas, proximal
        )
        return np.array(a), proximal


def _in_joint(placement: Any) -> Array:
    """Parameters about a joint, in Pinocchio's order, per parameter of a body [- or m], shape (10, 10)."""
    base = pin.Inertia(1.0, np.zeros(3), np.eye(3)).toDynamicParameters()

    def about_joint(parameters: Array) -> Array:
        return np.array((placement * pin.Inertia.FromDynamicParameters(parameters)).toDynamicParameters())

    columns = [about_joint(base + one) - about_joint(base) for one in np.eye(CONSTANTS)]
    return np.array(columns).T[:, ORDER]
