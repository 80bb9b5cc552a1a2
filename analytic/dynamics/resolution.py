"""Resolution of the efforts by the digits of a file: how far its loops leave them open.

Redundant closure equations of a rounded file contradict each other. Another tool may satisfy other equations than the
least squares of `loopcheck.analytic.kinematics.closing`, and is as right. The resolution is the sum over the equations
of the change of the efforts if the others close the gap that one leaves: in the positions, and in the rates and the
directions of motion. It is deterministic. Random weights of the equations give resolutions that differ by 1e7.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from loopcheck.analytic.dynamics.powers import powers_along, tree_inertia
from loopcheck.analytic.kinematics.closures import DependentRates
from loopcheck.analytic.kinematics.redundancy import actuator_motions, independent_drives
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import retract
from loopcheck.robots.arrays import Array, Efforts
from loopcheck.robots.mechanism import Mechanism
from loopcheck.robots.motion import Motion


def file_resolution(mechanism: Mechanism, motion: Motion) -> Efforts:
    """Largest part of each effort that the digits of the file leave open along a motion [N or N m], shape (na,)."""
    state = State(mechanism=mechanism, q=motion.q, qd=motion.qd)
    P = state.resolved
    if P is None or not mechanism.closing.accuracy:
        return np.zeros(mechanism.na)
    W = mechanism.rates_of(independent_drives(mechanism, motion.q[len(motion.t) // 2]))
    near, unresolved = _Near(motion.qdd, W), np.eye(P.shape[-1]) - P
    effort, closing = near.efforts(state), near.rates_of(state.Phi)
    noise, bias = unresolved @ state.every_Phi, unresolved @ state.every_Phi_dot @ state.qd[..., None]
    left = np.zeros_like(effort)
    for row in range(P.shape[-1]):
        shift = closing(_with_drives(P[..., [row]] * state.gap[:, [row], None], W))[..., 0]
        moved = State(mechanism=mechanism, q=retract(mechanism, state.q, shift), qd=state.qd)
        turned = state.with_velocities(state.qd)
        turned.__dict__.update(Phi=state.Phi + P[..., [row]] * noise[:, [row]])
        left += np.abs(near.efforts(moved) - effort)
        left += np.abs(near.efforts(turned, P[..., [row]] * bias[:, [row]]) - effort)
    return left.max(axis=0)


class _Near(NamedTuple):
    """Efforts of the rates nearest to those of a motion that keep the loops closed and move the drives alike."""

    qdd: Array
    """Joint accelerations of the motion [m/s² or rad/s²], shape (nt, nv)."""
    W: Array
    """Rates of independent drives per joint velocity [-, or m per rad], shape (drives, nv)."""

    def rates_of(self, Phi: Array) -> DependentRates:
        """Solver for least rates that close the loops, Φ of shape (nt, nc, nv), while the drives stand still."""
        return DependentRates(np.concatenate([Phi, np.broadcast_to(self.W, (len(Phi), *self.W.shape))], axis=1))

    def efforts(self, state: State, bias: Array | float = 0.0) -> Array:
        """Efforts [N or N m], shape (nt, na).

        Args:
            state: Closed positions, and velocities near those that keep them closed.
            bias: Further acceleration of the closures [m/s² or rad/s²], shape (nt, nc, 1).
        """
        closing = self.rates_of(state.Phi)
        qd = state.qd + closing(_with_drives(state.Phi @ state.qd[..., None], self.W))[..., 0]
        state = state.with_velocities(qd)
        opening = state.Phi @ self.qdd[..., None] + state.Phi_dot @ qd[..., None] + bias
        qdd = self.qdd + closing(_with_drives(opening, self.W))[..., 0]
        D = actuator_motions(state.mechanism, state.Phi, partial(tree_inertia, state))
        return powers_along(state, qdd, D).signed.sum(axis=1)


def _with_drives(opening: Array, W: Array) -> Array:
    """Right-hand side of closures that open and drives that stand still, shape (nt, nc + drives, 1)."""
    return np.concatenate([opening, np.zeros((len(opening), len(W), 1))], axis=1)
