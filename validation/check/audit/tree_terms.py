"""Terms of a mechanism without the lengths of tendons among its coordinates, as an engine without joints for them."""

from dataclasses import replace

import numpy as np

from loopcheck.analytic.dynamics.lagrange import LagrangeModel
from loopcheck.analytic.kinematics.closures import closure_of_rows
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import Array, PositionSeries, VelocitySeries
from loopcheck.robots.inventory import Inventory
from loopcheck.robots.mechanism import WORLD, CoordinateClosure, Mechanism, PathClosure


class TreeTerms:
    """Elimination of the lengths l of tendons: l̇ = T v and l̈ = T v̇ + Ṫ v by the rows of their closures."""

    def __init__(self, mechanism: Mechanism, q: PositionSeries, qd: VelocitySeries) -> None:
        """For some states of a mechanism."""
        state = State(mechanism=mechanism, q=q, qd=qd)
        nv, of_rows = mechanism.spanning_tree[1], closure_of_rows(mechanism)
        self._is_length = np.array([_is_length(mechanism, k) for k in of_rows], dtype=bool)
        T = state.every_Phi[:, self._is_length, :nv]
        self._E = np.concatenate([np.broadcast_to(np.eye(nv), (len(q), nv, nv)), T], axis=1)
        bias = (state.Phi_dot @ qd[..., None])[:, self._is_length, 0]
        self._bias = np.concatenate([np.zeros((len(q), nv)), bias], axis=1)
        self._joints = sum(joint.body != WORLD for joint in mechanism.joints)

    def terms(self, full: LagrangeModel) -> LagrangeModel:
        """Terms of the equations of motion over the dofs of bodies."""
        moved = full.coriolis + (full.M @ self._bias[..., None])[..., 0]
        closure_bias = full.closure_bias + (full.Phi @ self._bias[..., None])[..., 0]
        return LagrangeModel(
            M=self._matrix(full.M),
            coriolis=self._force(moved),
            gravity=self._force(full.gravity),
            dissipation=self._force(full.dissipation),
            load=self._force(full.load),
            Phi=(full.Phi @ self._E)[:, ~self._is_length],
            closure_bias=closure_bias[:, ~self._is_length],
        )

    def inventory(self, full: Inventory) -> Inventory:
        """Inventory over the joints of bodies, in the first state."""
        joints, nv, E = self._joints, self._E.shape[2], self._E[0]
        of_joints = ("joints", "freedom", "axis", "anchor", "stiffness", "spring_reference")
        return replace(
            full,
            **{name: getattr(full, name)[:joints] for name in of_joints},
            dofs=full.dofs[:nv],
            friction=full.friction[:nv],
            armature=E.T @ full.armature @ E,
            damping=E.T @ full.damping @ E,
            rest_force=E.T @ full.rest_force,
            J=(full.J @ E)[~self._is_length],
            transmission=full.transmission @ E,
        )

    def _matrix(self, M: Array) -> Array:
        return self._E.swapaxes(-1, -2) @ M @ self._E

    def _force(self, force: Array) -> Array:
        return (self._E.swapaxes(-1, -2) @ force[..., None])[..., 0]


def tree_of(mechanism: Mechanism) -> Mechanism:
    """The joints of bodies alone, with the closures that `TreeTerms` keeps, for names and units."""
    joints = tuple(joint for joint in mechanism.joints if joint.body != WORLD)
    closures = [closure for k, closure in enumerate(mechanism.closures) if not _is_length(mechanism, k)]
    of_lengths = tuple(
        PathClosure(name=closure.name, segments=())
        if isinstance(closure, CoordinateClosure) and max(closure.follower.joints) >= len(joints)
        else closure
        for closure in closures
    )
    return replace(mechanism, joints=joints, closures=of_lengths, actuators=(), tendons=(), keyframes={})


def _is_length(mechanism: Mechanism, k: int) -> bool:
    """Whether a closure ties a slide to the length of a path."""
    closure = mechanism.closures[k]
    return isinstance(closure, PathClosure) and closure.slide is not None
