"""The six-legged platform by its state equations: efforts drive it forward, in steps of a Runge-Kutta method (order 4).

q̇ = r, ṙ = M⁻¹ (−N r + τ_G + Λφ) (Angeles 2014): the independent coordinates are the legs, the loops are closed by
direct kinematics in every stage, and the work of the legs is integrated with the state.
"""

from dataclasses import dataclass, replace

import numpy as np

from docs.papers.cases import prescribed
from loopcheck.analytic.dynamics.energy import total_energy
from loopcheck.analytic.dynamics.forward import accelerations_by_noc, dependent_velocities
from loopcheck.analytic.dynamics.noc import needed_efforts, noc_model
from loopcheck.analytic.kinematics.continuation import close
from loopcheck.analytic.kinematics.state import State
from loopcheck.robots.arrays import AnyArray, Array
from loopcheck.robots.mechanism import Mechanism

GAINS = (900.0, 60.0)
"""Of the feedback M (900 e + 60 ė) [1/s², 1/s]."""


@dataclass(frozen=True, slots=True)
class End:
    """The end of a simulated motion."""

    deviation: float
    """Largest distance of a leg from its prescribed position [m or rad]."""
    energy: float
    """Work of the legs less the change of the energy, over the largest change [-]."""


def simulated(robot: str, h: float, seconds: float, *, feedback: bool = False) -> End:
    """Drive a robot by the efforts of its prescribed motion, without its external wrench.

    Args:
        h: Step [s].
        seconds: Duration [s].
        feedback: Whether the deviation of the legs is fed back.
    """
    case, whole = prescribed(robot, configuration="vertical")
    mechanism = replace(case.mechanism, wrenches=())
    motion = whole.assemble(np.arange(round(2 * seconds / h) + 1) * h / 2)
    state = State(mechanism=mechanism, q=motion.q, qd=motion.qd)
    legs: AnyArray = np.asarray(mechanism.selection.any(axis=0))
    course = _Course(
        mechanism=mechanism,
        legs=legs,
        efforts=needed_efforts(state, motion.qdd).effort,
        wanted=np.concatenate([mechanism.values_of(mechanism.drives, motion.q), motion.qd @ mechanism.selection.T], 1),
        gains=GAINS if feedback else (0.0, 0.0),
        q=motion.q[:1],
    )
    n = mechanism.na
    y = np.concatenate([course.wanted[0], [0.0]])
    begin = total_energy(mechanism, motion.q[:1], motion.qd[:1])[0]
    for k in range(0, len(motion.t) - 2, 2):
        k1 = course.rates(k, y)
        k2 = course.rates(k + 1, y + h / 2 * k1)
        k3 = course.rates(k + 1, y + h / 2 * k2)
        k4 = course.rates(k + 2, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    q = course.closed(y[:n])
    change = total_energy(mechanism, q, dependent_velocities(mechanism, q, y[None, n:-1], legs))[0] - begin
    swing = np.ptp(total_energy(mechanism, motion.q, motion.qd))
    return End(float(np.abs(y[:n] - course.wanted[-1, :n]).max()), float(abs(y[-1] - change) / swing))


@dataclass(slots=True, kw_only=True)
class _Course:
    mechanism: Mechanism
    legs: AnyArray
    """Mask of the dofs of the legs, shape (nv,)."""
    efforts: Array
    """Efforts at the times of the stages [N or N m], shape (times, n)."""
    wanted: Array
    """Prescribed positions and rates of the legs [m or rad, per s], shape (times, 2 n)."""
    gains: tuple[float, float]
    q: Array
    """Joint positions of the stage before [m or rad], shape (1, nq)."""

    def closed(self, legs: Array) -> Array:
        """Closed joint positions (1, nq) at positions of the legs."""
        q = self.q.copy()
        for drive, value in zip(self.mechanism.drives, legs, strict=True):
            q[0, self.mechanism.q_slices[drive.joints[0]].start] = value
        self.q = close(self.mechanism, q, ~self.legs)[0]
        return self.q

    def rates(self, k: int, y: Array) -> Array:
        """Rates of positions and rates of the legs, and of the work, at a time of a stage."""
        n, mechanism = self.mechanism.na, self.mechanism
        q = self.closed(y[:n])
        qd = dependent_velocities(mechanism, q, y[None, n:-1], self.legs)
        effort = self.efforts[k]
        if any(self.gains):
            M = noc_model(State(mechanism=mechanism, q=q, qd=qd), self.legs).M[0]
            late = self.wanted[k] - y[:-1]
            effort = effort + M @ (self.gains[0] * late[:n] + self.gains[1] * late[n:])
        qdd = accelerations_by_noc(mechanism, q, qd, effort[None], self.legs)
        return np.concatenate([y[n:-1], qdd[0, self.legs], [effort @ y[n:-1]]])
