"""Projects a logged motion on the closures: independent drives keep their motion, all other joints follow."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from loopcheck.analytic.kinematics.closures import DependentRates, closure_names, closure_of_rows, solve_dependent
from loopcheck.analytic.kinematics.continuation import CLOSED
from loopcheck.analytic.kinematics.state import State
from loopcheck.analytic.kinematics.tree import retract
from loopcheck.robots.arrays import AnyArray, Array, PositionSeries
from loopcheck.robots.errors import LoopClosureError
from loopcheck.robots.mechanism import Coordinate, CoordinateClosure, Mechanism
from loopcheck.robots.motion import Drive
from loopcheck.robots.size import closure_units

MOST_ITERATIONS = 30
"""Newton steps at most."""
WELL_CLOSED = 1e-13
"""Closure residual that need not be improved [m or rad]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class States:
    """Positions, velocities and accelerations of all joints at samples."""

    q: Array
    """Positions [m or rad], shape (n, nq)."""
    qd: Array
    """Velocities [m/s or rad/s], shape (n, nv)."""
    qdd: Array
    """Accelerations [m/s² or rad/s²], shape (n, nv)."""
    kinematics: State | None = None
    """Quantities derived from positions and velocities, computed on demand."""

    def kinematics_of(self, mechanism: Mechanism) -> State:
        """Efforts at positions and velocities, of a mechanism that may differ from theirs in its dynamics."""
        known = self.kinematics
        if known is None or known.mechanism is not mechanism:
            return State(mechanism=mechanism, q=self.q, qd=self.qd)
        return known

    def rows(self, samples: AnyArray) -> "States":
        """The states at some samples.

        Args:
            samples: Their numbers [-], shape (any,).
        """
        return States(q=self.q[samples], qd=self.qd[samples], qdd=self.qdd[samples])


def drive_of(mechanism: Mechanism, drives: tuple[Coordinate, ...], states: States) -> Drive:
    """Motion of the drives in states."""
    W_T = mechanism.rates_of(drives).T
    return Drive(q=mechanism.values_of(drives, states.q), qd=states.qd @ W_T, qdd=states.qdd @ W_T)


def closed_states(mechanism: Mechanism, drives: tuple[Coordinate, ...], drive: Drive, near: States) -> States:
    """The states nearest to given states that close the loops with the given motion of the drives.

    Joints that neither closures nor drives determine, as a rod that spins, keep as much of their motion as possible.

    Args:
        drive: Motion of the drives, each array of shape (n, drives).

    Raises:
        LoopClosureError: If the loops of a sample cannot be closed; `time` is its number.
    """
    state = State(mechanism=mechanism, q=_closed_poses(mechanism, drives, drive.q, near.q), qd=near.qd)
    nearest = NearestRates(state, drives)
    state = state.with_velocities(nearest(near.qd, of_drives=drive.qd))
    qdd = nearest(near.qdd, closing_bias(state), of_drives=drive.qdd)
    return States(q=state.q, qd=state.qd, qdd=qdd, kinematics=state)


def nearest_poses(mechanism: Mechanism, drives: tuple[Coordinate, ...], targets: Array, start: Array) -> PositionSeries:
    """Closed poses along positions of the drives, each nearest to the pose before it.

    Args:
        targets: Positions of the drives [m or rad], shape (n, drives).
        start: Closed pose near the first [m or rad], shape (1, nq).

    Raises:
        LoopClosureError: If the loops of a sample cannot be closed.
    """
    poses = [start]
    for target in targets:
        poses.append(_closed_poses(mechanism, drives, target[None], poses[-1]))
    return np.concatenate(poses[1:])


def closing_bias(state: State) -> Array:
    """Acceleration of the closures without joint accelerations, Φ̇ q̇ [m/s² or rad/s²], shape (n, nc)."""
    return np.asarray((state.Phi_dot @ state.qd[..., None])[..., 0])


class NearestRates:
    """The joint velocities or accelerations nearest to given ones that keep loops closed and drives moving."""

    def __init__(self, state: State, drives: tuple[Coordinate, ...]) -> None:
        """Solve the closures and drives of some poses once.

        Args:
            state: The closed poses.
        """
        self._W = state.mechanism.rates_of(drives)
        self._constraints = _held(state.Phi, self._W)
        self._dependent = DependentRates(self._constraints)

    def __call__(self, near: Array, bias: Array | float = 0.0, of_drives: Array | None = None) -> Array:
        """The nearest rates, shape (n, nv).

        Args:
            near: The given rates [m/s or rad/s, or per s²], shape (n, nv).
            bias: For accelerations, `closing_bias` [m/s² or rad/s²], shape (n, nc).
            of_drives: Wanted rates of the drives, shape (n, drives); by default those of the given rates.
        """
        wanted = near @ self._W.T if of_drives is None else of_drives
        off = (self._constraints @ near[..., None])[..., 0]
        off[:, : off.shape[1] - len(self._W)] += bias
        off[:, off.shape[1] - len(self._W) :] -= wanted
        return near + self._dependent(off[..., None])[..., 0]


class Gap(NamedTuple):
    """Largest opening of the loops."""

    relative: float
    """Over the size of the robot, or over one radian [-]."""
    value: float
    """[m or rad]."""
    unit: str
    """`m` or `rad`."""
    sample: int
    closure: str


def widest_gap(mechanism: Mechanism, q: PositionSeries) -> Gap:
    """Largest opening of the loops over the size of the robot or one radian."""
    residual = np.abs(State.at_rest(mechanism, q).gap)
    if not residual.size:
        return Gap(0.0, 0.0, "m", 0, "")
    relative = residual / closure_units(mechanism).units
    sample, row = (int(k) for k in np.unravel_index(int(relative.argmax()), residual.shape))
    unit = "m" if _is_length(mechanism, row) else "rad"
    return Gap(float(relative[sample, row]), float(residual[sample, row]), unit, sample, closure_names(mechanism)[row])


def _is_length(mechanism: Mechanism, row: int) -> bool:
    """Whether a row of the closures is a length, as in `closure_units`; otherwise it is an angle."""
    rows = closure_of_rows(mechanism)
    closure = mechanism.closures[rows[row]]
    if isinstance(closure, CoordinateClosure):
        return all(mechanism.joints[j].kind == "slide" for j in closure.follower.joints)
    return row - rows.index(rows[row]) < 3  # rotations follow


def _closed_poses(mechanism: Mechanism, drives: tuple[Coordinate, ...], targets: Array, q: Array) -> Array:
    """Newton's method from poses (n, nq) on closures and drives, in each until its residual does not fall."""
    W = mechanism.rates_of(drives)
    best, least = q.copy(), np.full(len(q), np.inf)
    left = np.arange(len(q))  # samples whose residual still falls
    for _ in range(MOST_ITERATIONS):
        state = State.at_rest(mechanism, q)
        off = np.concatenate([state.resolved_gap, mechanism.values_of(drives, q) - targets[left]], axis=1)
        residual = np.maximum(np.abs(off).max(axis=1, initial=0.0), state.residual)
        falls = residual < least[left] / 2
        is_better = residual < least[left]
        best[left[is_better]], least[left[is_better]] = q[is_better], residual[is_better]
        goes_on = falls & (residual > WELL_CLOSED)
        if not goes_on.any():
            break
        left, q, off = left[goes_on], q[goes_on], off[goes_on]
        step = solve_dependent(_held(state.rows(goes_on).Phi, W), off[..., None])[..., 0]
        q = retract(mechanism, q, step / np.maximum(1.0, np.abs(step).max(axis=1, keepdims=True, initial=0.0)))
    worst = int(np.argmax(least)) if len(least) else 0
    if len(least) and least[worst] > CLOSED:
        raise LoopClosureError(
            f"the loops cannot be closed with the logged drive positions: loop gap must be at most {CLOSED:g}, got "
            f"{least[worst]:.3g} (m or rad)",
            residual=float(least[worst]),
            tolerance=CLOSED,
            time=float(worst),
        )
    return best


def _held(Phi: Array, W: Array) -> Array:
    """Constraint rows: Φ above, rates of the drives below, (n, nc + drives, nv)."""
    return np.concatenate([Phi, np.broadcast_to(W, (len(Phi), *W.shape))], axis=1)
