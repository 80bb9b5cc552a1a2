"""Newton's equations of motion at any state: terms of the spanning tree, rows of the loops."""

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.spatial.transform import Rotation

from loopcheck.engines.equations import LoopEquations
from loopcheck.engines.extrapolation import slope_along
from loopcheck.engines.loads import on_joints, wrenches
from loopcheck.engines.mechanics import BALL_OR_FREE, closure_rows, moved, opening
from loopcheck.engines.newton._coordinates import rates, velocity_terms
from loopcheck.engines.newton._model import Tree, build, numbers
from loopcheck.engines.newton._newton import newton, warp
from loopcheck.robots.arrays import Array, JointPositions, JointVelocities
from loopcheck.robots.efforts import Deviation
from loopcheck.robots.mechanism import Mechanism

STEP = 0.1
"""Largest change of a joint between two points of a difference [rad or m]: round-off of single precision counts as much
as truncation."""


@dataclass(frozen=True, slots=True)
class NewtonEquations(LoopEquations):
    """See `loopcheck.engines.equations.Equations`; in single precision."""

    tree: Tree

    @property
    def mechanism(self) -> Mechanism:
        """See `loopcheck.engines.equations.Equations.mechanism`."""
        return self.tree.mechanism

    def jacobian(self, q: JointPositions) -> Array:
        """See `loopcheck.engines.equations.Equations.jacobian`, along the world's axes."""
        self.tree.put(q, np.zeros(self.mechanism.nv))
        return closure_rows(self.mechanism, partial(_of_end, self.tree, _links(self.tree, q)))

    def opening(self, q: JointPositions) -> Deviation:
        """See `loopcheck.engines.equations.LoopEquations.opening`."""
        self.tree.put(q, np.zeros(self.mechanism.nv))
        return opening(self.mechanism, self.tree.body_poses())

    def closure_bias(self, q: JointPositions, qd: JointVelocities) -> Array:
        """See `loopcheck.engines.equations.Equations.closure_bias`: differences of J q̇ (Newton gives no rate)."""
        return slope_along(lambda move: self.jacobian(moved(self.mechanism, q, move)) @ qd, qd, STEP)

    def tree_terms(self, q: JointPositions, qd: JointVelocities) -> tuple[Array, Array, Array]:
        """See `loopcheck.engines.equations.Equations.tree_terms`."""
        tree, nv = self.tree, self.mechanism.nv
        tree.put(q, qd)
        model = tree.model
        size = model.max_dofs_per_articulation
        M = warp.zeros((model.articulation_count, size, size), dtype=float)
        weights, coriolis = (warp.zeros(model.joint_dof_count, dtype=float) for _ in range(2))
        newton.eval_inverse_dynamics_passive(
            model, tree.state, mass_matrix=M, gravity_force=weights, coriolis_force=coriolis
        )
        passive = _springs(tree) - numbers(model.joint_damping)[:nv] * qd + _loads(tree, q)
        T, inertia = rates(self.mechanism, q), numbers(M)[0, :nv, :nv]
        bias = (numbers(weights) + numbers(coriolis))[:nv] + inertia @ velocity_terms(self.mechanism, q, qd)
        return T.T @ inertia @ T, T.T @ bias, passive


def equations(mechanism: Mechanism) -> NewtonEquations:
    """The equations of motion of a mechanism.

    Raises:
        NotRepresentableError: If it has an element that Newton cannot represent.
    """
    return NewtonEquations(build(mechanism))


def _links(tree: Tree, q: Array) -> Array:
    """Velocity of each body's mass centre and its angular velocity, per joint velocity, shape (nb, 6, nv)."""
    nb, nv = len(tree.mechanism.bodies), tree.mechanism.nv
    links = numbers(newton.eval_jacobian(tree.model, tree.state))[0]
    return links.reshape(len(links) // 6, 6, -1)[:nb, :, :nv] @ rates(tree.mechanism, q)


def _of_end(tree: Tree, links: Array, body: int, point: Array) -> Array:
    """Linear and angular rows of a point of a body, world axes, shape (6, nv)."""
    R = tree.body_poses()[1][body]
    linear, angular = links[body][:3], links[body][3:]
    lever = R @ (point - numbers(tree.model.body_com)[body])
    return np.concatenate([linear + np.cross(angular.T, lever).T, angular])


def _springs(tree: Tree) -> Array:
    """Force of the springs of joints, by the stiffness, rest and positions that Newton has [N or N m], shape (nv,)."""
    model, force = tree.model, np.zeros(tree.mechanism.nv)
    stiffness, rest, positions = (
        numbers(values) for values in (model.joint_stiffness, model.joint_rest_q, tree.state.joint_q)
    )
    for joint, places, dofs in zip(
        tree.mechanism.joints, tree.mechanism.q_slices, tree.mechanism.dof_slices, strict=True
    ):
        if joint.kind not in BALL_OR_FREE:
            force[dofs] = stiffness[dofs] * (rest[places] - positions[places])
        elif stiffness[dofs].any():
            turned = Rotation.from_quat(rest[places]).inv() * Rotation.from_quat(positions[places])
            force[dofs] = -stiffness[dofs] * turned.as_rotvec()
    return force


def _loads(tree: Tree, q: Array) -> Array:
    """Generalized force of external wrenches and gravity compensation [N or N m], shape (nv,)."""
    loads = list(wrenches(tree.mechanism))
    links = _links(tree, q) if loads else np.zeros(0)
    return on_joints(np.zeros(tree.mechanism.nv), loads, partial(_of_end, tree, links))
