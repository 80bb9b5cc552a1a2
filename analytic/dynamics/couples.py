"""Couples that a simulation of a file with offsets along its pins adds to the efforts.

A closure applies a force f at each of its two anchors. If they lie a distance δ apart along the pin u, the two forces
are a couple δ u × f, which no pin transmits. It does no work on a carrier that stands still.
"""

from functools import partial

import numpy as np

from loopcheck.analytic.dynamics.powers import powers_along, tree_inertia
from loopcheck.analytic.kinematics.closures import closure_of_rows, pseudo_inverse, row_factors
from loopcheck.analytic.kinematics.redundancy import actuator_motions
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import Efforts, EffortSeries
from loopcheck.robots.mechanism import WORLD, ConnectClosure, Mechanism
from loopcheck.robots.motion import Motion


def offset_couples(mechanism: Mechanism, motion: Motion, effort: EffortSeries) -> Efforts:
    """Largest efforts of the couples along a motion [N or N m], shape (na,).

    Args:
        mechanism: Robot whose closures are without the offsets of its file.
        effort: Efforts of the motion.
    """
    state = State(mechanism=mechanism, q=motion.q, qd=motion.qd)
    on_tree = powers_along(state, motion.qdd, np.tile(np.eye(mechanism.nv), (len(motion.t), 1, 1))).signed.sum(axis=1)
    factors = row_factors(state.Phi)
    forces = pseudo_inverse(factors * state.Phi).swapaxes(1, 2) @ (on_tree - effort @ mechanism.selection)[..., None]
    forces = (factors * forces)[..., 0]
    D = actuator_motions(mechanism, state.Phi, partial(tree_inertia, state))
    rows, total = np.array(closure_of_rows(mechanism)), np.zeros_like(effort)
    for offset in mechanism.offsets:
        number, closure = next((k, c) for k, c in enumerate(mechanism.closures) if c.name == offset.closure)
        assert isinstance(closure, ConnectClosure)
        for body, axis in zip((closure.body1, closure.body2), offset.axes, strict=True):
            if body == WORLD:
                continue
            arm = state.poses.R[:, body] @ np.array(axis) * (offset.length / 2)
            moment = np.cross(arm, forces[:, rows == number])
            total += np.einsum("ti,tik->tk", moment, state.K[:, body, :3] @ D)
    return np.asarray(np.abs(total).max(axis=0))
